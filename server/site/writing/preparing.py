"""Preparation of a write: collects the write's file changes without writing any files."""

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
# Changes that need more processor time, including git commands, are never prepared under the lock.
MAX_LOCKED_CPU_S = 0.05


class Arbiter(Protocol):
    """Interface of the object that sends each write to a git remote, and applies the write after its
    acceptance.
    """

    def write(
        self, by: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> tuple[State, Result, str]:
        """See `Site.write`."""

    def commit(
        self,
        contents: Callable[[], Mapping[str, bytes | Path | None]],
        message: str,
        documents: list[str],
        by: Authorship,
    ) -> str:
        """Commit files with the content that they have now."""

    def agreeing(self, base: str, commit: str) -> AbstractContextManager[bool]:
        """Context manager for checking out an existing commit after its acceptance.

        See the function `agreeing`.
        """


@dataclass(frozen=True, slots=True)
class SpeculativeWrite:
    """A write that is prepared before the git remote has accepted it.

    It can be prepared several times and on top of other writes. `first` contains the versions on which it was
    first prepared. `chain` contains the writes before it.
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
    """Prepare a change on a state. Raises any exception from the change's `prepare`."""
    began, first = _seconds_spent(), ahead.first
    first.begin()
    if ahead.chain:
        state, recent = replace(state, snapshot=ahead.chain.snapshot), ahead.chain.recent(recent)
    store = Store(changeset.root, state.schema, state.settings, committed.timestamps)
    context = Context(state.snapshot, state.settings, store, changeset, now(), recent, first)
    prepare, request = change
    result = prepare(request, context)
    changeset.require_sound()
    return Prepared(state, changeset, result, _seconds_spent() - began > MAX_LOCKED_CPU_S)


def _seconds_spent() -> float:
    """Return this thread's processor time plus the time it has spent waiting for git commands."""
    return time.thread_time() + seconds_in_git()


def agreeing(arbiter: Arbiter | None, base: str, commit: str) -> AbstractContextManager[bool]:
    """Context manager for checking out an existing commit on top of `base`.

    If a git remote must accept writes first, it has accepted the commit when the block begins. If other
    commits reached the remote first, those are checked out and the context manager yields False. Raises
    RemoteError.
    """
    if arbiter:
        return arbiter.agreeing(base, commit)
    return nullcontext(True)
