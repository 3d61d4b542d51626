"""Preparation of a write: determines which files it changes, without writing any files."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

from server.documents.timestamps import now
from server.site.commits.message import Authorship
from server.site.replica import Prepared, State
from server.site.writing.speculative_writes import Chain, Recent
from server.storage.changeset import Changeset
from server.storage.git.command import seconds_in_git
from server.storage.git.times import CommitTimes
from server.storage.store import Store
from server.write.context import Context, FirstSeen

Request = TypeVar("Request")
Result = TypeVar("Result")
Prepare = Callable[[Request, Context], Result]
Preparation = tuple[Prepare[Request, Result], Request]
# If preparing a change takes more processor time than this (including git commands), it is prepared while the
# write lock is not held.
MAX_LOCKED_CPU_S = 0.05
# The last attempt may take this long while the write lock is held. Otherwise, a large batch would never
# succeed while other servers keep writing.
MAX_LOCKED_CPU_AT_LAST_S = 2.0


class Arbiter(Protocol):
    """Interface to the object that asks a git remote to accept each write, and then applies the write."""

    def write(
        self, by: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> tuple[State, Result, str]:
        """Write files as described in `Site.write`, after the git remote has accepted the write."""

    def commit(
        self,
        contents: Callable[[], Mapping[str, bytes | Path | None]],
        message: str,
        documents: list[str],
        by: Authorship,
    ) -> str:
        """Commit the current content of some files, after the git remote has accepted the commit.

        `contents` returns this content. `documents` are listed at the end of the commit message.
        """

    def agreeing(self, base: str, commit: str) -> AbstractContextManager[bool]:
        """Context manager around the checkout of an existing commit. See the function `agreeing`."""


@dataclass(frozen=True, slots=True)
class SpeculativeWrite:
    """A write that is prepared before the git remote has accepted earlier writes.

    It can be prepared several times, based on different writes. `first` contains the document versions on
    which it was based the first time. `chain` contains the writes before it.
    """

    first: FirstSeen = field(default_factory=FirstSeen)
    chain: Chain | None = None


def prepare_on(
    state: State,
    committed: CommitTimes,
    recent: Recent,
    changeset: Changeset,
    change: Preparation[Request, Result],
    ahead: SpeculativeWrite,
) -> Prepared[Result]:
    """Call the change's `prepare` with a context for the given state. Return what it has prepared.

    Raises any exception from `prepare`.
    """
    began, first = _seconds_spent(), ahead.first
    first.begin()
    if ahead.chain:
        state, recent = replace(state, snapshot=ahead.chain.snapshot), ahead.chain.recent(recent)
    store = Store(changeset.root, state.schema, state.settings, committed.timestamps)
    context = Context(state.snapshot, state.settings, store, changeset, now(), recent, first)
    prepare, request = change
    result = prepare(request, context)
    changeset.require_sound()
    return Prepared(state, changeset, result, _seconds_spent() - began)


def may_lock(prepared: Prepared[Result], *, is_last: bool) -> bool:
    """Whether a change can be prepared again while the write lock is held. `is_last` is whether the write
    fails otherwise.
    """
    return prepared.cpu_s <= (MAX_LOCKED_CPU_AT_LAST_S if is_last else MAX_LOCKED_CPU_S)


def _seconds_spent() -> float:
    """Return this thread's processor time plus the time that it has spent waiting for git commands, in
    seconds.
    """
    return time.thread_time() + seconds_in_git()


def agreeing(arbiter: Arbiter | None, base: str, commit: str) -> AbstractContextManager[bool]:
    """Context manager around the checkout of an existing commit, which is based on the commit `base`.

    If a git remote must accept each write, it has accepted the commit when the block begins. If other commits
    were pushed to the remote first, these are checked out instead, and the context manager yields False.
    Raises RemoteError.
    """
    if arbiter:
        return arbiter.agreeing(base, commit)
    return nullcontext(True)
