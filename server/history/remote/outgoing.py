"""Pushes in the background what is committed here: writes that were answered before, and commits by hand.

They are pushed in their order, merged by attribute with what others have pushed meanwhile. What waits is in
git, so that it outlasts whatever becomes of the server; while it does, that is said once in the log.
"""

import logging
import time
from collections.abc import Callable, Iterable
from threading import Event

from server.errors import ApiError, CommitError, GitSlowError, NotTakenOverError, RemoteMovedError
from server.history.past import PastStates
from server.history.remote.backlog import note_error
from server.history.remote.known import remember
from server.history.remote.pushing import Pusher
from server.history.remote.takeover import Takeover
from server.storage.git.refs import head_commit
from server.storage.git.repository import head_mark

log = logging.getLogger("quire")

PAUSE_S = 0.1  # between two looks whether there is something to push
FIRST_S, LONGEST_S = 1.0, 30.0  # until a push that has failed is tried again: longer each time
TRIES = 3  # in a row, where others are faster


class Outgoing:
    """Pushes what is committed, in one thread. `tell` is told of each commit that the remote has got."""

    def __init__(self, past: PastStates, tell: Callable[[str], None] = lambda _: None) -> None:
        self._takeover, self._site, self._tell = Takeover(past), past.site, tell
        self._pusher = Pusher(self._takeover)
        self._done: object = None  # the mark of HEAD once the remote had all of it
        self._failures, self._error = 0, ""
        self._stuck: object = None  # what HEAD was at a conflict

    def run(self, stop: Event) -> None:
        """Push until it is over."""
        while not self._pause(stop):
            try:
                self.push_due()
            except Exception:
                self._failures += 1
                log.exception("what is committed could not be pushed; that is tried again")

    def _pause(self, stop: Event) -> bool:
        """Wait until something may be to push; whether it is over.

        After a failure longer each time, but not once a conflict may be resolved: by a commit.
        """
        if not self._failures:
            return stop.wait(PAUSE_S)
        seconds, folder = min(FIRST_S * 2.0 ** (self._failures - 1), LONGEST_S), self._site.git.folder
        again = time.monotonic() + seconds
        if stop.wait(min(seconds, FIRST_S)):
            return True
        while time.monotonic() < again:
            if self._stuck and folder and head_mark(folder) != self._stuck:
                break
            if stop.wait(PAUSE_S):
                return True
        return stop.is_set()

    def push_due(self) -> None:
        """Push what the remote has not, if there is something."""
        folder = self._site.git.folder
        if not self._pusher.settings.push or folder is None:
            return
        mark = head_mark(folder)
        if mark is not None and mark == self._done:
            return
        try:
            with self._takeover.alone():
                pushed = self._push()
        except (ApiError, CommitError, GitSlowError, OSError) as error:
            self._stuck = mark if isinstance(error, NotTakenOverError) else None
            self._fail(str(error), error.details.get("files", ()) if isinstance(error, ApiError) else ())
            return
        mark = head_mark(folder)
        # Somebody may have committed since the push began: then there is more to push.
        self._done = mark if head_commit(self._site.root) == pushed else None
        self._stuck, self._failures = None, 0
        if self._error:
            log.info("what is committed is pushed again")
        self._error = ""
        note_error(self._site.root, "")

    def _push(self) -> str:
        """Push the branch that is served, and return the commit that the remote has now.

        Raises RemoteError, and NotTakenOverError for a conflict.
        """
        self._site.committer.flush()
        self._site.refresh()  # What is committed is recorded here, before others can come to it.
        for left in reversed(range(TRIES)):
            level = self._pusher.level(ask=left < TRIES - 1)
            if level.head == level.tip:
                return level.head
            try:
                self._pusher.push(level, level.head)
                break
            except RemoteMovedError:
                if not left:
                    raise
        remember(self._site.root, level.branch, level.head)
        self._tell(level.head)
        return level.head

    def _fail(self, error: str, files: Iterable[str]) -> None:
        self._failures += 1
        if error != self._error:
            log.warning("what is committed is not pushed yet: %s", error)
        self._error = error
        note_error(self._site.root, error, tuple(files))
