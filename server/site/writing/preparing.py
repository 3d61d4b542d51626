"""Prepares writes by determining which files they change, without changing those files."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from server.documents.timestamps import now
from server.site.replica import Prepared, State
from server.site.writing.speculative_writes import Chain, Recent
from server.storage.changeset import Changeset
from server.storage.entry import Entry
from server.storage.git.command import seconds_in_git
from server.storage.git.times import CommitTimes
from server.storage.store import Store
from server.write.context import Context, FirstSeen

Request = TypeVar("Request")
Result = TypeVar("Result")
Prepare = Callable[[Request, Context], Result]
Preparation = tuple[Prepare[Request, Result], Request]
# A change that takes more time, including git commands, is not prepared while the write lock is held.
MAX_LOCKED_CPU_S = 0.05
# Limit for the last attempt, so that a large batch succeeds even if other servers keep writing.
MAX_LOCKED_CPU_AT_LAST_S = 2.0


@dataclass(frozen=True, slots=True)
class SpeculativeWrite:
    """A write that is prepared before the git remote has accepted the earlier writes in `chain`.

    `first` contains the document versions that the first preparation was based on.
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
    broken: Mapping[str, Entry],
) -> Prepared[Result]:
    """Call a `prepare` function on a state, and return the prepared change.

    `broken` contains the entries of the files with an error, by path.
    """
    began, first = _seconds_spent(), ahead.first
    first.begin()
    if ahead.chain:
        state, recent = replace(state, snapshot=ahead.chain.snapshot), ahead.chain.recent(recent)
    store = Store(changeset.root, state.schema, state.settings, committed.timestamps)
    context = Context(state.snapshot, state.settings, store, changeset, now(), recent, first, broken=broken)
    prepare, request = change
    result = prepare(request, context)
    changeset.require_sound()
    return Prepared(state, changeset, result, _seconds_spent() - began)


def may_lock(prepared: Prepared[Result], *, is_last: bool) -> bool:
    """Return whether a change is quick enough to be prepared while the write lock is held.

    The last attempt is allowed more time.
    """
    return prepared.cpu_s <= (MAX_LOCKED_CPU_AT_LAST_S if is_last else MAX_LOCKED_CPU_S)


def _seconds_spent() -> float:
    return time.thread_time() + seconds_in_git()
