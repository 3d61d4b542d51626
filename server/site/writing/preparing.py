"""Preparation of writes, during which no files are changed."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from server.documents.timestamps import now
from server.site.replica import Prepared, State
from server.site.writing.speculative_writes import Recent, WriteChain
from server.storage.changeset import Changeset
from server.storage.entry import Entry
from server.storage.git.command import seconds_in_git
from server.storage.git.times import CommitTimes
from server.storage.store import Store
from server.write.context import BaseVersions, Context

Request = TypeVar("Request")
Result = TypeVar("Result")
Prepare = Callable[[Request, Context], Result]
Preparation = tuple[Prepare[Request, Result], Request]
# If preparing a change takes longer, git commands included, it is not done while the write lock is held.
MAX_LOCKED_CPU_S = 0.05
# Limit for the last attempt, so that a large batch succeeds even if other servers keep writing.
MAX_LOCKED_CPU_AT_LAST_S = 2.0


@dataclass(frozen=True, slots=True)
class SpeculativeWrite:
    """A write that is prepared before the git remote has accepted the writes in `chain`.

    `base_versions` are the document versions on which the first attempt to prepare the write was based.
    """

    base_versions: BaseVersions = field(default_factory=BaseVersions)
    chain: WriteChain | None = None


def prepare_change(
    state: State,
    committed: CommitTimes,
    recent: Recent,
    changeset: Changeset,
    change: Preparation[Request, Result],
    speculative_write: SpeculativeWrite,
    broken: Mapping[str, Entry],
) -> Prepared[Result]:
    """Call a `prepare` function, and return the change that it makes.

    `change` consists of the function and its request. `recent` finds earlier versions of documents. `broken`
    contains the entries of files that have an error.
    """
    began, base_versions = _seconds_spent(), speculative_write.base_versions
    base_versions.begin()
    if speculative_write.chain:
        state, recent = (
            replace(state, snapshot=speculative_write.chain.snapshot),
            speculative_write.chain.with_replaced_versions(recent),
        )
    store = Store(changeset.root, state.schema, state.settings, committed.timestamps)
    context = Context(
        state.snapshot, state.settings, store, changeset, now(), recent, base_versions, broken=broken
    )
    prepare, request = change
    result = prepare(request, context)
    changeset.require_writable()
    return Prepared(state, changeset, result, _seconds_spent() - began)


def fits_in_lock(prepared: Prepared[Result], *, is_last: bool) -> bool:
    """Return True if a change is quick enough to be prepared again while the write lock is held.

    The last attempt may take longer.
    """
    return prepared.cpu_s <= (MAX_LOCKED_CPU_AT_LAST_S if is_last else MAX_LOCKED_CPU_S)


def _seconds_spent() -> float:
    return time.thread_time() + seconds_in_git()
