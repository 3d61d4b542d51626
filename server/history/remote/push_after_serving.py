"""Job that pushes commits in the background, after the server has responded to the writes."""

import logging
from collections.abc import Callable, Iterable

from server.errors import ApiError, CommitError, RemoteMergeError, RemoteMovedError
from server.history.past import PastStates
from server.history.remote.apply_commits import Takeover
from server.history.remote.backlog import store_error
from server.history.remote.last_integrated import set_last_commit
from server.history.remote.pushing import Pusher
from server.jobs.job import Backoff, Clock, Job, JobContext, JobFailedError, Timing
from server.storage.git.refs import head_commit
from server.storage.git.repository import head_cache_key

log = logging.getLogger("bifolio")

MAX_ATTEMPTS = 3  # limit if other machines push first


class PushCommits(Job):
    """Job that pushes local commits. After each push, it calls `notify` with the last pushed commit."""

    name = "push"
    failure = "could not push commits; retrying"

    def __init__(
        self, past: PastStates, timing: Timing, notify: Callable[[str], None] = lambda _: None
    ) -> None:
        self._takeover, self._site, self._notify = Takeover(past), past.site, notify
        self._pusher, self._timing = Pusher(self._takeover), timing
        self.initial_delay_s = timing.push_s
        self.backoff = Backoff(timing.push_retry_s, timing.push_longest_s)
        self._clock = Clock()
        self._done: object = None  # HEAD's mark when the remote last had all commits
        self._failures, self._error = 0, ""
        self._again_at = 0.0  # when a failed push is retried, by the monotonic clock
        self._stuck: object = None  # HEAD's mark at the last conflict

    def start(self, context: JobContext) -> None:
        self._clock = context.clock

    def run(self, context: JobContext) -> float:
        """Push commits if a push is due. Return the seconds until the next run."""
        if self._site.folder.is_gone():  # `server.site.watch` logs this.
            return self._timing.push_s
        is_waiting = self._failures and self._clock.monotonic() < self._again_at
        if is_waiting and not self._is_resolved():
            raise JobFailedError(self._error, self._timing.push_s)
        self.push_due()
        if self._failures:
            raise JobFailedError(self._error, self._pause_s())
        return self._timing.push_s

    def _pause_s(self) -> float:
        # A new commit can resolve a conflict at any time, so the pause stays short.
        pause = self.backoff.pause_s(self._failures)
        return min(pause, self.backoff.first_s) if self._stuck else pause

    def _is_resolved(self) -> bool:
        # A new commit may have resolved the conflict.
        folder = self._site.git.folder
        return bool(self._stuck and folder and head_cache_key(folder) != self._stuck)

    def push_due(self) -> None:
        folder = self._site.git.folder
        mark = head_cache_key(folder) if folder and self._pusher.settings.git.push else None
        if folder is None or not self._pusher.settings.git.push or (mark is not None and mark == self._done):
            self._failures, self._stuck = 0, None
            return
        try:
            with self._takeover.exclusive():
                pushed = self._push()
        except (ApiError, CommitError, OSError) as error:
            self._stuck = mark if isinstance(error, RemoteMergeError) else None
            self._fail(str(error), error.details.get("files", ()) if isinstance(error, ApiError) else ())
            return
        mark = head_cache_key(folder)
        # A commit made during the push still has to be pushed.
        self._done = mark if head_commit(self._site.root) == pushed else None
        self._stuck, self._failures = None, 0
        if self._error:
            log.info("commits are pushed again")
        self._error = ""
        store_error(self._site.root, "")

    def _push(self) -> str:
        """Push the served branch, and return its last commit.

        Raises RemoteError if the push fails, or RemoteMergeError if local and remote commits conflict.
        """
        self._site.committer.flush()
        self._site.refresh()  # Record the commits' events before other machines can do so.
        for attempts_left in reversed(range(MAX_ATTEMPTS)):
            base = self._pusher.merge_remote(must_fetch=attempts_left < MAX_ATTEMPTS - 1)
            if base.head == base.remote_commit:
                return base.head
            try:
                self._pusher.push(base, base.head)
                break
            except RemoteMovedError:
                if not attempts_left:
                    raise
        set_last_commit(self._site.root, base.branch, base.head)
        self._notify(base.head)
        return base.head

    def _fail(self, error: str, files: Iterable[str]) -> None:
        self._failures += 1
        self._again_at = self._clock.monotonic() + self.backoff.pause_s(self._failures)
        if error != self._error:
            log.warning("commits can't be pushed; retrying: %s", error)
        self._error = error
        store_error(self._site.root, error, tuple(files))
