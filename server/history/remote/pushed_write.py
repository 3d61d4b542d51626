"""A write that the git remote must accept before it is served."""

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
    ConcurrentChangeError,
    ConflictError,
    NotServedError,
    RemoteMergeError,
)
from server.history.remote.push_queue import Turn
from server.site.commits.commit_first import create_unpublished_commit
from server.site.commits.contents import new_contents
from server.site.commits.message import Authorship
from server.site.replica import State
from server.site.site import Site
from server.site.writing.preparing import Prepare, Request, Result, SpeculativeWrite
from server.site.writing.speculative_writes import WriteChain
from server.storage.git.commit import PreparedCommit
from server.storage.git.refs import head_commit
from server.storage.git.tree import changed_files
from server.storage.intent import Write
from server.write.context import BaseVersions

log = logging.getLogger("bifolio")

WRITE_TIMEOUT_S = 15.0  # includes waiting for other writes and for the remote
TAKEOVER_BACKOFF_S = 0.1  # pause before the next attempt to apply an accepted commit
NOT_SERVED_MESSAGE = "The change was pushed to the git remote, but is not served here yet"


class WriteAttempt(Turn, Generic[Request, Result]):
    """A write that waits until the git remote has accepted it."""

    result: Result

    def __init__(
        self, site: Site, authorship: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> None:
        super().__init__()
        self.site, self.by, self.prepare, self.request = site, authorship, prepare, request
        self.since = time.monotonic()
        self.until = self.since + WRITE_TIMEOUT_S
        self.writes: list[Write] = []
        self.state = site.state
        self._first, self._begun = BaseVersions(), ""
        self._begins_without_changes = False
        self._outcome: tuple[State, Result, str] | Exception = BusyError()

    @property
    def remaining_s(self) -> float:
        return max(self.until - time.monotonic(), 0.0)

    def begin(self) -> None:
        # Ignore errors, because the write may still succeed once earlier writes are done.
        with suppress(ApiError, CommitError, OSError):
            head = head_commit(self.site.root)
            writes, _ = self.site.preview(self.prepare, self.request, SpeculativeWrite(self._first))
            self._begun, self._begins_without_changes = head, not writes

    def commit(self, head: str, chain: WriteChain | None) -> PreparedCommit:
        first = self._first if self._begun or not chain else BaseVersions()
        if self._begun:
            first.start_retry()
        self.state = self.site.state
        self.writes, self.result = self.site.preview(
            self.prepare, self.request, SpeculativeWrite(first, chain)
        )
        if self._begun and not first.has_versions:
            self._refuse_overtaken(head)
        if not chain and not self._begun:
            self._begun, self._begins_without_changes = head, not self.writes
        if not self.writes:
            if self._begins_without_changes and self._begun != head:
                self._refuse_outdated(chain)
            return PreparedCommit()
        message, documents = self.site.committer.message_and_documents(
            self.writes, self.by, self.result, chain
        )
        files = new_contents(self.site.root, self.writes)
        return prepare_or_refuse(
            partial(create_unpublished_commit, self.site, files, message, documents, self.by, head)
        )

    def write_locally(self) -> tuple[State, Result, str]:
        return self.site.write_locally(self.by, self.prepare, self.request)

    def end_with(self, answer: tuple[State, Result, str]) -> None:
        self._outcome = answer
        self.end()

    def fail(self, error: Exception) -> None:
        if not self.is_over:
            self._outcome = error
            self.end()

    def answer(self) -> tuple[State, Result, str]:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def _refuse_overtaken(self, head: str) -> None:
        # The write replaces whole files, so it can't be merged with other changes.
        changed = changed_files(self.site.root, self._begun, head).keys()
        if both := sorted(write.path for write in self.writes if write.path in changed):
            raise ConcurrentChangeError(details={"files": both})

    def _refuse_outdated(self, chain: WriteChain | None) -> None:
        # The write changes nothing in the version on which it is based. If it would change something in the
        # current version, confirming it would be wrong, because it would have no effect.
        writes, _ = self.site.preview(self.prepare, self.request, SpeculativeWrite(chain=chain))
        if writes:  # The error does not name their files, because the caller may not know them.
            raise ConcurrentChangeError()


@dataclass(frozen=True, slots=True)
class ChainedWrite:
    """A write in a chain, its prepared commit, and the id of that commit's parent (`head`)."""

    attempt: WriteAttempt[Any, Any]
    prepared: PreparedCommit
    head: str


def prepare_or_refuse(make: Callable[[], PreparedCommit]) -> PreparedCommit:
    try:
        return make()
    except CommitError as error:
        if error.refused:
            raise ConflictError(f"The change can't be committed: {error}") from error
        raise BusyError(f"git can't commit the change now: {error}") from error


def take_over_until(take_over: Callable[[], object], deadline: float) -> None:
    """Call `take_over` repeatedly, until it succeeds in applying an accepted commit to the site.

    Raises NotServedError if local edits conflict with the commit, or BusyError if `deadline` has passed.
    """
    while True:
        try:
            take_over()
            return
        except (BusyError, CommitError, ConflictError) as error:
            is_blocked = isinstance(error, RemoteMergeError) and bool(error.details)
            if not is_blocked and time.monotonic() < deadline:
                time.sleep(TAKEOVER_BACKOFF_S)
                continue
            log.warning("a write was pushed, but is not served yet: %s", error)
            if is_blocked:
                raise NotServedError(
                    f"{NOT_SERVED_MESSAGE}, because it conflicts with uncommitted changes"
                ) from error
            raise BusyError(NOT_SERVED_MESSAGE) from error
