"""Finds in the background which problems a change brings to other files, and which it ends there.

A document that goes away leaves relations that point to nothing, and a second file for a document is a
problem of one of them. Most changes do neither, and only the documents that changed are looked at. What
points to a document that has come or gone is looked for in all documents, which takes long in a large site:
that is done in a process of its own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from server.documents.document import Document
from server.index.dangling import MEDIA, Key, dangling, exists, pointing, without_copies
from server.index.packed_snapshot import (
    Blocks,
    PackedSnapshot,
    pack_documents,
    pack_snapshot,
    unpack_documents,
    unpack_snapshot,
)
from server.index.snapshot import Snapshot, apply
from server.index.type_table import Table, VersionKey, difference
from server.jobs.job import Backoff, Job, JobContext, Timing
from server.problems import Problem
from server.site.background.process import run_in_process
from server.site.change import Change, Report
from server.site.change import difference as problem_difference
from server.site.problems import find_contested
from server.site.site import Site
from server.storage.media import media_key
from server.storage.read import parsed

MAX_LOCAL_DOCUMENTS = 200  # This process checks so many changed documents itself.
MAX_LOCAL_VERSIONS = 2_000  # It checks a site of so many versions as a whole, in 60 ms at most.
MAX_COMPARED_VERSIONS = 50_000  # Of a larger site, only the changed documents are checked.
PROCESS_TIMEOUT_S = 60.0

Found = tuple[tuple[Problem, ...], tuple[Problem, ...]]  # the problems that are new, and those that are gone


class CheckChanges(Job):
    """Reports the problems in other files, whenever the site has changed and is at rest."""

    name = "check"
    failure = "the problems that a change brings could not be looked for"

    def __init__(self, site: Site, report: Report, timing: Timing) -> None:
        self._site, self._report, self.first_pause_s = site, report, timing.check_s
        self.backoff = Backoff(timing.check_s, timing.check_s)
        self._checked = self._newest = site.state.snapshot

    def run(self, context: JobContext) -> float:
        """Compare the snapshot with the last that was checked, if it was the newest in the last run too."""
        snapshot, before = self._site.state.snapshot, self._checked
        is_at_rest, self._newest = snapshot is self._newest, snapshot
        if is_at_rest and snapshot is not before:
            self._checked = snapshot
            problems, fixed = compare(self._site.root, before, snapshot)
            if problems or fixed:
                self._report(Change(problems=problems, fixed=fixed), 0.0)
        return self.first_pause_s


def compare(root: Path, before: Snapshot, after: Snapshot) -> Found:
    """The problems between documents that one snapshot has, and another before it has not; and those gone."""
    removed, added = _changed_versions(before, after)
    keys = {key for document in (*removed, *added) for key in _keys(document)}
    moved = {key for key in keys if exists(before, key) != exists(after, key)}
    few = len(removed) + len(added) <= MAX_LOCAL_DOCUMENTS
    versions = sum(len(table.versions) for table in after.tables.values())
    if versions > MAX_COMPARED_VERSIONS:
        moved = set()
        removed, added = (removed, added) if few else ([], [])
    elif versions > MAX_LOCAL_VERSIONS and (moved or not few):
        pack = partial(_pack, (before, removed), (after, added))  # No name keeps what is packed.
        return run_in_process(_look_at_packed, root, pack(), moved, timeout_s=PROCESS_TIMEOUT_S)
    return _look(root, (before, removed), (after, added), moved)


@dataclass(frozen=True, slots=True)
class _PackedChange:
    """Two snapshots and what differs between them, for another process; `before` only of another schema."""

    before: PackedSnapshot | None
    removed: Blocks
    after: PackedSnapshot
    added: tuple[VersionKey, ...]


def _pack(before: tuple[Snapshot, list[Document]], after: tuple[Snapshot, list[Document]]) -> _PackedChange:
    (old, removed), (new, added) = before, after
    keys = tuple((d.type.uid, d.document_id, d.locale, d.status) for d in added)
    whole = None if old.schema is new.schema else pack_snapshot(old)
    return _PackedChange(whole, pack_documents(removed), pack_snapshot(new), keys)


def _look_at_packed(root: Path, change: _PackedChange, moved: set[Key]) -> Found:
    """As `_look`, in another process. What was before is made of what is now, if the schema is the same."""
    new, _ = unpack_snapshot(change.after)
    added = [new.tables[key[0]].versions[key[1:]] for key in change.added]
    schema = change.before.schema if change.before else new.schema
    removed = list(unpack_documents(change.removed, schema))
    old = unpack_snapshot(change.before)[0] if change.before else apply(new, added, removed)
    return _look(root, (old, removed), (new, added), moved)


def _changed_versions(before: Snapshot, after: Snapshot) -> tuple[list[Document], list[Document]]:
    """The versions that one of two snapshots has alone."""
    removed: list[Document] = []
    added: list[Document] = []
    for uid in before.tables.keys() | after.tables.keys():
        old, new = before.tables.get(uid, Table()), after.tables.get(uid, Table())
        if old is not new:
            gone, come = difference(old, new)
            removed.extend(without_copies(before, gone))
            added.extend(without_copies(after, come))
    return removed, added


def _keys(document: Document) -> Iterator[Key]:
    """What relations and media can name a document by."""
    yield document.type.uid, document.document_id
    key = media_key(document.path)
    if key:
        yield MEDIA, key


def _look(
    root: Path,
    before: tuple[Snapshot, list[Document]],
    after: tuple[Snapshot, list[Document]],
    moved: set[Key],
) -> Found:
    """The difference of the problems of some documents of each snapshot, and of what points to some keys."""
    (old, removed), (new, added) = before, after
    gone = {document.path for document in removed} - {document.path for document in added}
    was = [document for document in _once(old, removed, moved) if document.path not in gone]
    # The old files have changed since, so nothing in them has a position.
    unknown = dangling(old, lambda path: ({}, {}), was)
    now = dangling(new, partial(parsed, root), _once(new, added, moved))
    return problem_difference((*find_contested(old), *unknown), (*find_contested(new), *now))


def _once(snapshot: Snapshot, documents: Iterable[Document], keys: set[Key]) -> list[Document]:
    """Some documents and those that point to some keys, each once."""
    found = [*documents, *(pointing(snapshot, keys) if keys else ())]
    return list({id(document): document for document in found}.values())
