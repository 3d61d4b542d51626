"""Pushes what is committed here to the remote, having taken over what others have pushed before.

Whoever pushes is alone on the machine with that, and nothing is taken over meanwhile."""

import random
import time
from dataclasses import dataclass

from server.config.model import Settings
from server.errors import RemoteAwayError, RemoteError, RemoteLostError
from server.history.remote.takeover import Takeover, served_branch
from server.storage.git.refs import head_commit, is_ancestor
from server.storage.git.remote import fetch, push, tracked_commit

PUSH_TIMEOUT_S = 10.0  # For the remote to accept a commit.
MIN_TIMEOUT_S = 5.0  # Even a late push waits so long.
LOST_RESPONSE_TIMEOUT_S = 3.0  # To learn whether the remote has a commit whose push got no response.
POLL_INTERVAL_S = 0.2  # Between two questions whether it has.
BACKOFF_S = 2.0  # After a timeout, requests do not ask the remote for so long.


@dataclass(frozen=True, slots=True)
class Level:
    """What is checked out, `head`, with all that is known of the remote in it, which is at `tip`."""

    branch: str
    head: str
    tip: str


class Pusher:
    """Pushes the branch that is served. Use it by who is alone with that (`Takeover.alone`)."""

    def __init__(self, takeover: Takeover) -> None:
        self.takeover, self.site, self.root = takeover, takeover.site, takeover.root
        self._rests_until, self._failed = 0.0, RemoteAwayError()
        self._is_away = False

    @property
    def settings(self) -> Settings:
        """The settings of the site as they are now."""
        return self.site.state.settings

    def level(self, *, ask: bool = False, commit: str = "", seconds: float = PUSH_TIMEOUT_S) -> Level:
        """Take over what the remote is known to have; where nothing is known, or with `ask`, it is asked.

        So it is where it did not answer the last time: a write that can't be made leaves nothing behind.
        It may take so many seconds to answer. What is in a `commit` that is to be pushed, as in a merge that
        somebody makes, need not be taken over.
        Raises RemoteError, and NotTakenOverError where what is here can't be merged with it.
        """
        branch = served_branch(self.root, self.settings.git.branch)
        self.require_rested()
        ask = ask or self._is_away
        tip = "" if ask else tracked_commit(self.root, self.settings.git.remote, branch)
        if not tip:
            tip = self._ask_remote(branch, min(PUSH_TIMEOUT_S, max(seconds, MIN_TIMEOUT_S)))
        head = head_commit(self.root)
        known = filter(None, (head, commit))
        if tip not in ("", head) and not any(is_ancestor(self.root, tip, one) for one in known):
            head = self.takeover.take_over_alone(tip, branch).commit
        return Level(branch, head, tip)

    def push(
        self, level: Level, commit: str, seconds: float = PUSH_TIMEOUT_S + LOST_RESPONSE_TIMEOUT_S
    ) -> None:
        """Let the remote go on to a commit, made from what is checked out, from where it is known to be.

        It may take so many seconds. A commit whose answer was lost is pushed where the remote has it. Raises
        RemoteError: RemoteMovedError where it is somewhere else by now, and
        RemoteLostError where it does not say.
        """
        most = min(PUSH_TIMEOUT_S, max(seconds - LOST_RESPONSE_TIMEOUT_S, MIN_TIMEOUT_S))
        try:
            push(self.root, self.settings.git.remote, level.branch, commit, level.tip, most, follows=True)
        except RemoteLostError as error:
            self._is_away = True
            try:
                if self._has_arrived(level, commit):
                    return
            except RemoteError:
                self._rest(error)
            raise
        except RemoteAwayError as error:
            raise self._rest(error) from error

    def require_rested(self) -> None:
        """Raise RemoteAwayError where the remote has just not answered: many would wait for it in turn."""
        if time.monotonic() < self._rests_until:
            raise RemoteAwayError(self._failed.message)

    def _ask_remote(self, branch: str, seconds: float) -> str:
        try:
            tip = fetch(self.root, self.settings.git.remote, branch, seconds)
        except RemoteAwayError as error:
            raise self._rest(error) from error
        self._is_away = False
        return tip

    def _has_arrived(self, level: Level, commit: str) -> bool:
        """Whether the remote takes a commit after all whose push was cut off. Raises RemoteError."""
        until = time.monotonic() + LOST_RESPONSE_TIMEOUT_S
        while True:
            left = max(until - time.monotonic(), POLL_INTERVAL_S)
            tip = fetch(self.root, self.settings.git.remote, level.branch, left)
            if tip and is_ancestor(self.root, commit, tip):
                return True
            if time.monotonic() + POLL_INTERVAL_S > until:
                return False
            time.sleep(POLL_INTERVAL_S)

    def _rest(self, error: RemoteAwayError) -> RemoteAwayError:
        self._is_away = True
        self._rests_until, self._failed = time.monotonic() + BACKOFF_S, error
        return error


# --- fairness between machines --------------------------------------------------------------------

RIVAL_TTL_S = 60.0  # How long after a lost race others count as pushing.
MAX_RUN_S = 2.0  # After pushing for so long without a pause, others that may be there are let in.
IDLE_RESET_S = 0.5  # A push after so long a pause begins a new run.
MAX_PAUSE_S = 0.5


class PushFairness:
    """Pauses between the pushes of one process, so that other machines get a turn. Not thread-safe."""

    def __init__(self) -> None:
        self._met, self._began, self._last = -RIVAL_TTL_S, 0.0, 0.0
        self._until = 0.0

    def meet(self) -> None:
        """Another machine was faster."""
        self._met = time.monotonic()

    def pushed(self, taken: float) -> None:
        """A push was taken; it was `taken` seconds that it was prepared and made."""
        now = time.monotonic()
        if now - self._last > IDLE_RESET_S + taken:
            self._began = now - taken
        self._last = now
        if now - self._met < RIVAL_TTL_S or now - self._began > MAX_RUN_S:
            self._began = now
            self._until = now + min(taken * random.uniform(1.0, 3.0), MAX_PAUSE_S)

    @property
    def left(self) -> float:
        """How many seconds are to pass before the next push."""
        return max(self._until - time.monotonic(), 0.0)
