"""A write that is prepared, and perhaps prepared again, until the remote takes it."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

from server.errors import (
    ApiError,
    BusyError,
    CommitError,
    ConflictError,
    NotServedError,
    NotTakenOverError,
    OvertakenError,
)
from server.history.remote.push_queue import Turn
from server.site.commits.commit_first import commit_ahead
from server.site.commits.contents import contents_of
from server.site.commits.message import Authorship
from server.site.replica import State
from server.site.site import Site
from server.site.writing.preparing import Prepare, Request, Result, SpeculativeWrite
from server.site.writing.speculative_writes import Chain
from server.storage.git.commit import Made
from server.storage.git.refs import head_commit
from server.storage.git.tree import changed_files
from server.storage.intent import Write
from server.write.context import FirstSeen

log = logging.getLogger("bifolio")

WRITE_TIMEOUT_S = 15.0  # How long a write waits for others and for the remote.
TAKEOVER_BACKOFF_S = 0.1  # Before the next attempt to take over what the remote has.
NOT_SERVED_MESSAGE = "The remote has the change, and it is not served here yet"


class Attempt(Turn, Generic[Request, Result]):
    """A write that is prepared until the remote takes it: its files, and what its `prepare` has returned."""

    result: Result

    def __init__(
        self, site: Site, by: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> None:
        super().__init__()
        self.site, self.by, self.prepare, self.request = site, by, prepare, request
        self.since = time.monotonic()
        self.until = self.since + WRITE_TIMEOUT_S
        self.writes: list[Write] = []
        self._first, self._begun = FirstSeen(), ""
        self._answer: tuple[State, Result, str] | Exception = BusyError()

    @property
    def left(self) -> float:
        """How many seconds it may still wait."""
        return max(self.until - time.monotonic(), 0.0)

    def begin(self) -> None:
        """Keep what the write is a change of: what is served when it comes, whoever is before it.

        What can't be prepared now may well be when its turn comes.
        """
        with suppress(ApiError, CommitError, OSError):
            head = head_commit(self.site.root)
            self.site.preview(self.prepare, self.request, SpeculativeWrite(self._first))
            self._begun = head

    def commit(self, head: str, chain: Chain | None) -> Made:
        """Prepare the write on what is served, or a chain of others, and make its commit on top of `head`.

        What it was prepared on first is what was served: others of a chain may never be made.
        """
        first = self._first if self._begun or not chain else FirstSeen()
        if self._begun:
            first.again()
        self.writes, self.result = self.site.preview(
            self.prepare, self.request, SpeculativeWrite(first, chain)
        )
        if self._begun and not first.is_asked:
            self._refuse_overtaken(head)
        if not chain:
            self._begun = self._begun or head
        if not self.writes:
            return Made()
        message, documents = self.site.committer.described(self.writes, self.by, self.result, chain)
        files = contents_of(self.site.root, self.writes)
        return of_git(partial(commit_ahead, self.site, files, message, documents, self.by, head))

    def write_here(self) -> tuple[State, Result, str]:
        """Make the write without the remote."""
        return self.site.write_here(self.by, self.prepare, self.request)

    def end_with(self, answer: tuple[State, Result, str]) -> None:
        """It is over, and was made."""
        self._answer = answer
        self.end()

    def fail(self, error: Exception) -> None:
        """It is over, unless it was before."""
        if not self.is_over:
            self._answer = error
            self.end()

    def answer(self) -> tuple[State, Result, str]:
        """How it has ended. Raises what was in its way."""
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def _refuse_overtaken(self, head: str) -> None:
        """Raise OvertakenError where others have changed a file that the write does not compare itself."""
        changed = changed_files(self.site.root, self._begun, head).keys()
        if both := sorted(write.path for write in self.writes if write.path in changed):
            raise OvertakenError(details={"files": both})


@dataclass(frozen=True, slots=True)
class Link:
    """A write of a chain, with the commit that is made of it, on top of `head`."""

    attempt: Attempt[Any, Any]
    made: Made
    head: str


def of_git(make: Callable[[], Made]) -> Made:
    """A commit as it is made. Raises ConflictError where a hook refuses it, BusyError while git is busy."""
    try:
        return make()
    except CommitError as error:
        if error.refused:
            raise ConflictError(f"The change can't be committed: {error}") from error
        raise BusyError(f"The change can't be committed now: {error}") from error


def take_over_until(take_over: Callable[[], object], until: float) -> None:
    """Take over what the remote has taken: again, until a time, where git or others are at work here.

    Raises NotServedError where edits by hand have changed the same, BusyError where it takes too long.
    """
    while True:
        try:
            take_over()
            return
        except (BusyError, CommitError, ConflictError) as error:
            is_in_the_way = isinstance(error, NotTakenOverError) and bool(error.details)
            if not is_in_the_way and time.monotonic() < until:
                time.sleep(TAKEOVER_BACKOFF_S)
                continue
            log.warning("what a write has pushed is not taken over yet: %s", error)
            if is_in_the_way:
                raise NotServedError(
                    f"{NOT_SERVED_MESSAGE}: what is edited here and in no commit is in its way"
                ) from error
            raise BusyError(NOT_SERVED_MESSAGE) from error
