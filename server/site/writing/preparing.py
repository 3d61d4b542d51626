"""Preparation of a write: determines which files the write changes, without writing any files."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from server.documents.timestamps import now
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


@dataclass(frozen=True, slots=True)
class SpeculativeWrite:
    """A write that is prepared before the git remote has accepted the earlier writes.

    The write can be prepared several times, on top of different earlier writes. `first` contains the document
    versions on which it was based the first time. `chain` contains the earlier writes.
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
    """Prepare a change: call its `prepare` function with a context for the given state, and return the
    result.

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
    """Return the processor time that this thread has used plus the time that it has waited for git commands,
    in seconds.
    """
    return time.thread_time() + seconds_in_git()
