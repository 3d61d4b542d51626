"""Pushing the served branch."""

import random
import time
from dataclasses import dataclass

from server.config.model import Settings
from server.errors import RemoteError, RemoteTimeoutError, UnconfirmedPushError
from server.history.remote.apply_commits import Takeover, served_branch
from server.storage.git.refs import head_commit, is_ancestor
from server.storage.git.remote import fetch, push, tracked_commit

PUSH_TIMEOUT_S = 10.0  # timeout for one fetch or push
MIN_TIMEOUT_S = 5.0  # A push has at least this much time, even if the write times out sooner.
LOST_RESPONSE_TIMEOUT_S = (
    3.0  # how long to check whether the remote has the commit, after a push without a response
)
POLL_INTERVAL_S = 0.2  # pause between these checks
BACKOFF_S = 2.0  # For this long after a timeout, requests fail immediately.


@dataclass(frozen=True, slots=True)
class PushBase:
    """The commit on which a new commit is built.

    `head` is the last commit on the served branch. `remote_commit` is the last known commit on the remote
    branch.
    """

    branch: str
    head: str
    remote_commit: str


class Pusher:
    """Pusher for the served branch. Callers must hold the lock `Takeover.exclusive`."""

    def __init__(self, takeover: Takeover) -> None:
        self.takeover, self.site, self.root = takeover, takeover.site, takeover.root
        self._rests_until, self._failed = 0.0, RemoteTimeoutError()
        self._is_away = False

    @property
    def settings(self) -> Settings:
        return self.site.state.settings

    def merge_remote(
        self, *, must_fetch: bool = False, commit: str = "", timeout_s: float = PUSH_TIMEOUT_S
    ) -> PushBase:
        """Merge the remote's commits into the served branch, unless the branch or `commit` contains them.

        If `must_fetch` is set, fetch first. Raises RemoteError if the fetch fails, or RemoteMergeError if the
        commits can't be merged.
        """
        branch = served_branch(self.root, self.settings.git.branch)
        self.require_rested()
        must_fetch = must_fetch or self._is_away
        tip = "" if must_fetch else tracked_commit(self.root, self.settings.git.remote, branch)
        if not tip:
            tip = self._ask_remote(branch, min(PUSH_TIMEOUT_S, max(timeout_s, MIN_TIMEOUT_S)))
        head = head_commit(self.root)
        known = filter(None, (head, commit))
        if tip not in ("", head) and not any(is_ancestor(self.root, tip, one) for one in known):
            head = self.takeover.take_over_locked(tip, branch).commit
        return PushBase(branch, head, tip)

    def push(
        self, base: PushBase, commit: str, timeout_s: float = PUSH_TIMEOUT_S + LOST_RESPONSE_TIMEOUT_S
    ) -> None:
        """Push `commit`, whose history must contain the remote branch's last known commit.

        Raises RemoteMovedError if the remote has newer commits, UnconfirmedPushError if it is unknown whether
        the push succeeded, or another RemoteError if it failed.
        """
        timeout = min(PUSH_TIMEOUT_S, max(timeout_s - LOST_RESPONSE_TIMEOUT_S, MIN_TIMEOUT_S))
        try:
            push(
                self.root,
                self.settings.git.remote,
                base.branch,
                commit,
                base.remote_commit,
                timeout,
                is_descendant=True,
            )
        except UnconfirmedPushError as error:
            self._is_away = True
            try:
                if self._has_arrived(base, commit):
                    return
            except RemoteError:
                self._rest(error)
            raise
        except RemoteTimeoutError as error:
            raise self._rest(error) from error

    def require_rested(self) -> None:
        # Let waiting requests fail immediately instead of timing out one after the other.
        if time.monotonic() < self._rests_until:
            raise RemoteTimeoutError(self._failed.message)

    def _ask_remote(self, branch: str, seconds: float) -> str:
        try:
            tip = fetch(self.root, self.settings.git.remote, branch, seconds)
        except RemoteTimeoutError as error:
            raise self._rest(error) from error
        self._is_away = False
        return tip

    def _has_arrived(self, base: PushBase, commit: str) -> bool:
        until = time.monotonic() + LOST_RESPONSE_TIMEOUT_S
        while True:
            left = max(until - time.monotonic(), POLL_INTERVAL_S)
            tip = fetch(self.root, self.settings.git.remote, base.branch, left)
            if tip and is_ancestor(self.root, commit, tip):
                return True
            if time.monotonic() + POLL_INTERVAL_S > until:
                return False
            time.sleep(POLL_INTERVAL_S)

    def _rest(self, error: RemoteTimeoutError) -> RemoteTimeoutError:
        self._is_away = True
        self._rests_until, self._failed = time.monotonic() + BACKOFF_S, error
        return error


# --- fairness between machines --------------------------------------------------------------------

RIVAL_TTL_S = 60.0  # how long another machine is treated as active after it has pushed first
MAX_RUN_S = 2.0  # Pushing continuously for this long requires a pause.
IDLE_RESET_S = 0.5  # A longer gap between two pushes is treated as a pause.
MAX_PAUSE_S = 0.5


class PushFairness:
    """Timer for pauses between pushes, during which other machines can push. Not thread-safe."""

    def __init__(self) -> None:
        self._met, self._began, self._last = -RIVAL_TTL_S, 0.0, 0.0
        self._until = 0.0

    def record_other_machine(self) -> None:
        self._met = time.monotonic()

    def record_push(self, duration_s: float) -> None:
        now = time.monotonic()
        if now - self._last > IDLE_RESET_S + duration_s:
            self._began = now - duration_s
        self._last = now
        if now - self._met < RIVAL_TTL_S or now - self._began > MAX_RUN_S:
            self._began = now
            self._until = now + min(duration_s * random.uniform(1.0, 3.0), MAX_PAUSE_S)

    @property
    def remaining_s(self) -> float:
        return max(self._until - time.monotonic(), 0.0)
