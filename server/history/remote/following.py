"""The follower: the process that fetches new commits from the remote and applies them to the site."""

import logging
from contextlib import ExitStack, suppress
from dataclasses import replace
from threading import Event

from server.config.model import Settings
from server.errors import ApiError, CommitError, GitError, RemoteError, RemoteMergeError
from server.history.past import PastStates
from server.history.remote.apply_commits import AppliedCommit, Takeover
from server.history.remote.last_integrated import last_commit
from server.history.remote.remote_status import (
    AWAY,
    BEHIND,
    CURRENT,
    RemoteStatus,
    delete_status,
    read_remote_status,
    write_status,
)
from server.history.remote.wakeup import WakeupPipe
from server.jobs.job import Backoff, Clock, Job, JobContext, JobFailedError, Timing
from server.paths import state_folder
from server.storage.file_lock import FileLock
from server.storage.git.command import git
from server.storage.git.refs import checked_out_branch, head_commit, is_ancestor
from server.storage.git.remote import fetch

log = logging.getLogger("bifolio")

_LOCK_FILE = "following.lock"  # in .bifolio/
MERGE_HINT = "merge the commits with git, and report the error in the log"
MAX_RETRY_INTERVAL_S = 60.0  # limit while the remote is unavailable
STUCK_RETRY_INTERVAL_S = 10.0  # pause before a blocked commit is applied again
MAX_REST_S = 0.5  # After a fetch, the follower pauses as long as the fetch took, at most this long.
STATUS_INTERVAL_S = 10.0  # An unchanged status is written again after this interval.


class Follower(Job):
    """Job that fetches and applies new remote commits. Only one process of the server does this at a time."""

    name = "follow-remote"
    failure = "could not follow the git remote; retrying"

    def __init__(self, past: PastStates, timing: Timing, takeover: Takeover | None = None) -> None:
        self.past, self.site, self.root = past, past.site, past.site.root
        self._takeover, self._timing = takeover or Takeover(past), timing
        self.backoff = Backoff(timing.follow_remote_s, timing.follow_remote_s)
        self._clock, self._wake = Clock(), _ignore_wake
        self._resources = ExitStack()  # the follower's lock and pipe
        self._is_leading = False
        self._status = RemoteStatus()
        self._written_status: RemoteStatus | None = None  # as last written to disk
        self._away_since = 0.0  # when the remote became unavailable, by the monotonic clock
        self._stuck: object = None  # what blocked a commit; when this changes, the commit is applied again
        self._stuck_until = 0.0

    def start(self, context: JobContext) -> None:
        self._clock, self._wake = context.clock, context.wake

    def run(self, context: JobContext) -> float:
        """If this process is the follower, fetch and apply new commits.

        Returns the seconds until the next run.
        """
        if self.site.folder.is_gone():  # `server.site.watch` logs this.
            self.close()
            return self._timing.follow_remote_s
        try:
            return self._follow(context.stopping) if self._try_lead() else self._timing.follow_remote_s
        except JobFailedError:
            raise
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        # Another process can then become the follower.
        self._resources.close()
        self._is_leading = False

    def _try_lead(self) -> bool:
        if not self._is_leading:
            with ExitStack() as resources:
                if not resources.enter_context(FileLock(state_folder(self.root) / _LOCK_FILE).held()):
                    return False
                pipe = WakeupPipe(self.root)
                resources.callback(pipe.close)
                pipe.listen(self._wake)
                self._status = read_remote_status(self.root) or RemoteStatus()
                self._resources, self._is_leading = resources.pop_all(), True
        return True

    def _follow(self, stopping: Event) -> float:
        """Fetch and apply new commits. Return the seconds until the next fetch.

        Raises JobFailedError if the commits can't be fetched or applied.
        """
        settings = self.site.state.settings
        if not settings.git.remote or settings.git.follow is None:
            delete_status(self.root)
            self._status, self._written_status = RemoteStatus(), None
            return self._timing.follow_remote_s
        began = self._clock.monotonic()
        status = self.fetch_and_merge(settings)
        # If commits arrive constantly, this limits the load to half a processor, and multiple commits are
        # merged at once.
        stopping.wait(min(self._clock.monotonic() - began, MAX_REST_S))
        pause = self._pause(settings.git.follow.total_seconds())
        if status.state != CURRENT:
            raise JobFailedError(status.reason, pause)
        return pause

    def _pause(self, follow: float) -> float:
        # While the remote is unavailable, the pause grows with the length of the outage.
        away = self._clock.monotonic() - self._away_since if self._away_since else 0.0
        return max(follow, min(away, MAX_RETRY_INTERVAL_S))

    # --- one round -------------------------------------------------------------------------------------

    def fetch_and_merge(self, settings: Settings) -> RemoteStatus:
        branch = settings.git.branch or checked_out_branch(self.root)
        status = RemoteStatus(
            CURRENT, settings.git.remote, branch, self._status.commit, asked=self._status.asked
        )
        try:
            if not branch:
                raise RemoteMergeError("No branch is checked out")
            known, theirs = last_commit(self.root, branch), fetch(self.root, settings.git.remote, branch)
            status = replace(status, commit=theirs, asked=self._clock.time())
            self._away_since = 0.0
            if not theirs:
                raise RemoteMergeError(f'The git remote has no branch "{branch}"')
            self._take_over(settings, branch, known, theirs)
        except RemoteError as error:
            self._away_since = self._away_since or self._clock.monotonic()
            status = replace(status, state=AWAY, reason=error.message)
        except RemoteMergeError as error:
            files = tuple(error.details.get("files", ()))
            behind = self._count_behind(status.commit)
            status = replace(status, state=BEHIND, commits=behind, reason=error.message, files=files)
        except (ApiError, CommitError, OSError) as error:
            status = replace(
                status, state=BEHIND, commits=self._count_behind(status.commit), reason=str(error)
            )
        except Exception as error:
            # Otherwise, the status would remain current, although nothing is merged anymore.
            status = replace(
                status,
                state=BEHIND,
                commits=self._count_behind(status.commit),
                reason=f"unexpected error ({type(error).__name__}: {error}); {MERGE_HINT}",
            )
            if status.reason != self._status.reason:
                log.exception("could not follow the git remote")
        self._record(status)
        return self._status

    def _take_over(self, settings: Settings, branch: str, known_commit: str, remote_commit: str) -> None:
        head = head_commit(self.root)
        if remote_commit == head == known_commit and checked_out_branch(self.root) == branch:
            return
        situation = (remote_commit, head, self.site.applied, self.site.git.index)
        if situation == self._stuck and self._clock.monotonic() < self._stuck_until:
            raise RemoteMergeError(self._status.reason, {"files": self._status.files})
        try:
            with self._takeover.exclusive():
                if last_commit(self.root, branch) != known_commit:  # Another process merged it first.
                    known_commit, remote_commit = (
                        last_commit(self.root, branch),
                        fetch(self.root, settings.git.remote, branch),
                    )
                if known_commit and not is_ancestor(self.root, known_commit, remote_commit):
                    remote_commit = self._confirm(settings.git.remote, branch, remote_commit)
                self._report(
                    settings.git.remote, branch, self._takeover.take_over_locked(remote_commit, branch)
                )
            self._stuck = None
        except RemoteMergeError:
            self._stuck, self._stuck_until = situation, self._clock.monotonic() + STUCK_RETRY_INTERVAL_S
            raise

    def _confirm(self, remote: str, branch: str, theirs: str) -> str:
        # The history seems to have been rewritten. Fetch again, because this could be a temporary fault.
        again = fetch(self.root, remote, branch)
        if again != theirs:
            raise RemoteMergeError("The git remote returned two different commits; fetching again")
        return theirs

    def _count_behind(self, theirs: str) -> int:
        if not theirs:
            return 0
        with suppress(GitError):
            return int(git(self.root, "rev-list", "--count", f"HEAD..{theirs}", "--") or 0)
        return 0

    # --- status and log --------------------------------------------------------------------------------

    def _report(self, remote: str, branch: str, integrated: AppliedCommit) -> None:
        if integrated.backup_ref:
            log.warning(
                "the history of %s/%s was rewritten: serving %s now; the previous commit is saved as %s",
                *(remote, branch, integrated.commit[:10], integrated.backup_ref),
            )

    def _record(self, status: RemoteStatus) -> None:
        before = self._status
        if status.state != CURRENT:
            since = before.since if before.state != CURRENT and before.since else self._clock.time()
            status = replace(status, since=since)
        is_still_away = status.state == before.state and AWAY in (status.state, before.state)
        if not is_still_away and (status.state, status.reason) != (before.state, before.reason):
            self._log(before, status)
        self._status = status
        written = self._written_status
        is_same = written is not None and replace(written, asked=status.asked) == status
        if written is None or not is_same or status.asked - written.asked > STATUS_INTERVAL_S:
            write_status(self.root, status)
            self._written_status = status

    def _log(self, before: RemoteStatus, status: RemoteStatus) -> None:
        name = f"{status.remote}/{status.branch}"
        if status.state == CURRENT:
            log.info(
                "%s is served again, after an interruption of %s",
                name,
                _span(self._clock.time() - before.since),
            )
        elif status.state == AWAY:
            log.warning("%s can't be fetched: %s", name, status.reason)
        else:
            log.warning("new commits from %s can't be merged: %s", name, status.reason)


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _ignore_wake() -> None:
    pass
