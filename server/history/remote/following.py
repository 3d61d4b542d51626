"""Follows the remote: asks it now and then, and at once when woken, and takes over what it has.

One process of all servers of a site does, which the kernel chooses by a lock. What goes wrong is said once in
the log, with when it began, and once when it is over; meanwhile it is tried again, less often each time.
"""

import logging
from contextlib import ExitStack, suppress
from dataclasses import replace
from threading import Event

from server.config.model import Settings
from server.errors import ApiError, CommitError, GitError, NotTakenOverError, RemoteError
from server.history.past import PastStates
from server.history.remote.last_integrated import last_commit
from server.history.remote.remote_status import (
    AWAY,
    BEHIND,
    CURRENT,
    RemoteStatus,
    forget_standing,
    read_remote_status,
    write_standing,
)
from server.history.remote.takeover import Taken, Takeover
from server.history.remote.waking import Pipe
from server.jobs.job import Backoff, Clock, Job, JobContext, JobFailedError, Timing
from server.paths import state_folder
from server.storage.file_lock import FileLock
from server.storage.git.command import git
from server.storage.git.refs import checked_out, head_commit, is_ancestor
from server.storage.git.remote import fetch

log = logging.getLogger("bifolio")

_LOCK_FILE = "following.lock"  # In .bifolio/.
MAX_RETRY_INTERVAL_S = 60.0  # Between two attempts while the remote is away.
STUCK_RETRY_INTERVAL_S = 10.0  # What blocks the remote's commit is tried again after so long.
MAX_REST_S = 0.5  # After a request, the follower rests as long as it took, at most so long.
STATUS_INTERVAL_S = 10.0  # How often an unchanged status is written.


class Follower(Job):
    """Follows the remote of a site, if no other process does."""

    name = "follow-remote"
    failure = "the git remote could not be followed; that is tried again"

    def __init__(self, past: PastStates, timing: Timing, takeover: Takeover | None = None) -> None:
        self.past, self.site, self.root = past, past.site, past.site.root
        self._takeover, self._timing = takeover or Takeover(past), timing
        self.backoff = Backoff(timing.follow_remote_s, timing.follow_remote_s)
        self._clock, self._wake = Clock(), _wake_nobody
        self._held = ExitStack()  # the lock and the pipe of the one that follows
        self._leads = False
        self._standing = RemoteStatus()
        self._noted: RemoteStatus | None = None  # as all processes can read it
        self._away_since = 0.0  # since when the remote has not answered, by the monotonic clock
        self._stuck: object = None  # what there was when something was in the way
        self._stuck_until = 0.0

    def start(self, context: JobContext) -> None:
        """Keep the clock, and the function that others wake this by."""
        self._clock, self._wake = context.clock, context.wake

    def run(self, context: JobContext) -> float:
        """Ask the remote once, as the one process that does."""
        try:
            return self._follow(context.stopping) if self._lead() else self._timing.follow_remote_s
        except JobFailedError:
            raise
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Let another process follow."""
        self._held.close()
        self._leads = False

    def _lead(self) -> bool:
        """Begin to follow if nobody else does; return whether this process follows."""
        if not self._leads:
            with ExitStack() as held:
                if not held.enter_context(FileLock(state_folder(self.root) / _LOCK_FILE).held()):
                    return False
                pipe = Pipe(self.root)
                held.callback(pipe.close)
                pipe.listen(self._wake)
                self._standing = read_remote_status(self.root) or RemoteStatus()
                self._held, self._leads = held.pop_all(), True
        return True

    def _follow(self, stopping: Event) -> float:
        """Return the pause until the remote is asked again."""
        settings = self.site.state.settings
        if not settings.git.remote or settings.git.follow is None:
            forget_standing(self.root)
            self._standing, self._noted = RemoteStatus(), None
            return self._timing.follow_remote_s
        began = self._clock.monotonic()
        standing = self.ask(settings)
        # Where commits come without a pause, it takes half of a processor, and some at once.
        stopping.wait(min(self._clock.monotonic() - began, MAX_REST_S))
        pause = self._pause(settings.git.follow.total_seconds())
        if standing.state != CURRENT:
            raise JobFailedError(standing.reason, pause)
        return pause

    def _pause(self, follow: float) -> float:
        """How long to wait: as long as the remote is away by now, however often it was asked meanwhile."""
        away = self._clock.monotonic() - self._away_since if self._away_since else 0.0
        return max(follow, min(away, MAX_RETRY_INTERVAL_S))

    # --- one round -------------------------------------------------------------------------------------

    def ask(self, settings: Settings) -> RemoteStatus:
        """Ask the remote once, and take over what it has; how what is served stands to it then."""
        branch = settings.git.branch or checked_out(self.root)
        standing = RemoteStatus(
            CURRENT, settings.git.remote, branch, self._standing.commit, asked=self._standing.asked
        )
        try:
            if not branch:
                raise NotTakenOverError("No branch is checked out")
            known, theirs = last_commit(self.root, branch), fetch(self.root, settings.git.remote, branch)
            standing = replace(standing, commit=theirs, asked=self._clock.time())
            self._away_since = 0.0
            if not theirs:
                raise NotTakenOverError(f'The remote has no branch "{branch}"')
            self._take_over(settings, branch, known, theirs)
        except RemoteError as error:
            self._away_since = self._away_since or self._clock.monotonic()
            standing = replace(standing, state=AWAY, reason=error.message)
        except NotTakenOverError as error:
            files = tuple(error.details.get("files", ()))
            behind = self._behind(standing.commit)
            standing = replace(standing, state=BEHIND, commits=behind, reason=error.message, files=files)
        except (ApiError, CommitError, OSError) as error:
            standing = replace(
                standing, state=BEHIND, commits=self._behind(standing.commit), reason=str(error)
            )
        self._tell(standing)
        return self._standing

    def _take_over(self, settings: Settings, branch: str, known: str, theirs: str) -> None:
        """Take a commit over, unless nothing has changed since it could not be."""
        head = head_commit(self.root)
        if theirs == head == known and checked_out(self.root) == branch:
            return
        there = (theirs, head, self.site.applied, self.site.git.index)
        if there == self._stuck and self._clock.monotonic() < self._stuck_until:
            raise NotTakenOverError(self._standing.reason, {"files": self._standing.files})
        try:
            with self._takeover.alone():
                if last_commit(self.root, branch) != known:  # Another process has been faster.
                    known, theirs = (
                        last_commit(self.root, branch),
                        fetch(self.root, settings.git.remote, branch),
                    )
                if known and not is_ancestor(self.root, known, theirs):
                    theirs = self._confirm(settings.git.remote, branch, theirs)
                self._report(settings.git.remote, branch, self._takeover.take_over_alone(theirs, branch))
            self._stuck = None
        except NotTakenOverError:
            self._stuck, self._stuck_until = there, self._clock.monotonic() + STUCK_RETRY_INTERVAL_S
            raise

    def _confirm(self, remote: str, branch: str, theirs: str) -> str:
        """A commit of a remote whose history was rewritten, asked for again: it is rare, and goes back."""
        again = fetch(self.root, remote, branch)
        if again != theirs:
            raise NotTakenOverError("The remote says one time this and one time that; it is asked again")
        return theirs

    def _behind(self, theirs: str) -> int:
        """Return how many remote commits are not served yet; 0 if git fails."""
        if not theirs:
            return 0
        with suppress(GitError):
            return int(git(self.root, "rev-list", "--count", f"HEAD..{theirs}", "--") or 0)
        return 0

    # --- what is said ----------------------------------------------------------------------------------

    def _report(self, remote: str, branch: str, taken: Taken) -> None:
        if taken.kept:
            log.warning(
                "the history of %s/%s was rewritten: %s is served now, and what was is kept as %s",
                *(remote, branch, taken.commit[:10], taken.kept),
            )

    def _tell(self, standing: RemoteStatus) -> None:
        """Record the status, and log it if it changed."""
        before = self._standing
        if standing.state != CURRENT:
            since = before.since if before.state != CURRENT and before.since else self._clock.time()
            standing = replace(standing, since=since)
        said = standing.state == before.state and AWAY in (standing.state, before.state)
        if not said and (standing.state, standing.reason) != (before.state, before.reason):
            self._log(before, standing)
        self._standing = standing
        noted = self._noted
        same = noted is not None and replace(noted, asked=standing.asked) == standing
        if noted is None or not same or standing.asked - noted.asked > STATUS_INTERVAL_S:
            write_standing(self.root, standing)
            self._noted = standing

    def _log(self, before: RemoteStatus, standing: RemoteStatus) -> None:
        name = f"{standing.remote}/{standing.branch}"
        if standing.state == CURRENT:
            log.info("%s is followed again, after %s", name, _span(self._clock.time() - before.since))
        elif standing.state == AWAY:
            log.warning("%s can't be followed: %s", name, standing.reason)
        else:
            log.warning("what %s has is not taken over: %s", name, standing.reason)


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _wake_nobody() -> None:
    """Do nothing: the job has not started."""
