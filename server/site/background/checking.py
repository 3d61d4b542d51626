"""Background check for problems that a change causes in other files."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from server.documents.document import Document
from server.index.dangling import MEDIA, Key, exists, find_dangling, pointing, without_copies
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
from server.site.change import compare_problem_lists as problem_difference
from server.site.problems import find_duplicate_files
from server.site.site import Site
from server.storage.media import media_key
from server.storage.read import parsed

MAX_LOCAL_DOCUMENTS = 200  # Up to this many changed documents are checked in this process.
# A site with up to this many document versions is checked in this process, which takes up to 60 ms.
MAX_LOCAL_VERSIONS = 2_000
# In a site with more versions than this, only the changed documents are checked.
MAX_COMPARED_VERSIONS = 50_000
PROCESS_TIMEOUT_S = 60.0

Problems = tuple[tuple[Problem, ...], tuple[Problem, ...]]  # (new problems, resolved problems)


class CheckChanges(Job):
    """Job that waits until the site is idle, then checks whether changes caused problems in other files."""

    name = "check"
    failure = "a change can't be checked for problems"

    def __init__(self, site: Site, report: Report, timing: Timing) -> None:
        self._site, self._report, self.initial_delay_s = site, report, timing.check_s
        self.backoff = Backoff(timing.check_s, timing.check_s)
        self._checked = self._newest = site.state.snapshot

    def run(self, context: JobContext) -> float:
        snapshot, before = self._site.state.snapshot, self._checked
        is_at_rest, self._newest = snapshot is self._newest, snapshot
        if is_at_rest and snapshot is not before:
            self._checked = snapshot
            problems, fixed = compare_problems(self._site.root, before, snapshot)
            if problems or fixed:
                self._report(Change(problems=problems, fixed=fixed), 0.0)
        return self.initial_delay_s


def compare_problems(root: Path, before: Snapshot, after: Snapshot) -> Problems:
    """Return the problems that exist only in `after`, and those that exist only in `before`."""
    removed, added = _changed_versions(before, after)
    keys = {key for document in (*removed, *added) for key in _keys(document)}
    moved = {key for key in keys if exists(before, key) != exists(after, key)}
    is_small = len(removed) + len(added) <= MAX_LOCAL_DOCUMENTS
    versions = sum(len(table.versions) for table in after.tables.values())
    if versions > MAX_COMPARED_VERSIONS:
        moved = set()
        removed, added = (removed, added) if is_small else ([], [])
    elif versions > MAX_LOCAL_VERSIONS and (moved or not is_small):
        # The packed data is not assigned to a variable, so it is freed as soon as it has been sent.
        pack = partial(_pack, (before, removed), (after, added))
        return run_in_process(_find_packed_problems, root, pack(), moved, timeout_s=PROCESS_TIMEOUT_S)
    return _find_problems(root, (before, removed), (after, added), moved)


@dataclass(frozen=True, slots=True)
class _PackedChange:
    """Two snapshots, and the documents that differ between them, in serialized form.

    If both snapshots have the same schema, `before` is None, because it can be rebuilt from the other fields.
    """

    before: PackedSnapshot | None
    removed: Blocks
    after: PackedSnapshot
    added: tuple[VersionKey, ...]


def _pack(before: tuple[Snapshot, list[Document]], after: tuple[Snapshot, list[Document]]) -> _PackedChange:
    (old, removed), (new, added) = before, after
    keys = tuple((d.type.uid, d.document_id, d.locale, d.status) for d in added)
    whole = None if old.schema is new.schema else pack_snapshot(old)
    return _PackedChange(whole, pack_documents(removed), pack_snapshot(new), keys)


def _find_packed_problems(root: Path, change: _PackedChange, changed_keys: set[Key]) -> Problems:
    new, _ = unpack_snapshot(change.after)
    added = [new.tables[key[0]].versions[key[1:]] for key in change.added]
    schema = change.before.schema if change.before else new.schema
    removed = list(unpack_documents(change.removed, schema))
    old = unpack_snapshot(change.before)[0] if change.before else apply(new, added, removed)
    return _find_problems(root, (old, removed), (new, added), changed_keys)


def _changed_versions(before: Snapshot, after: Snapshot) -> tuple[list[Document], list[Document]]:
    removed: list[Document] = []
    added: list[Document] = []
    for uid in before.tables.keys() | after.tables.keys():
        old, new = before.tables.get(uid, Table()), after.tables.get(uid, Table())
        if old is not new:
            only_old, only_new = difference(old, new)
            removed.extend(without_copies(before, only_old))
            added.extend(without_copies(after, only_new))
    return removed, added


def _keys(document: Document) -> Iterator[Key]:
    yield document.type.uid, document.document_id
    key = media_key(document.path)
    if key:
        yield MEDIA, key


def _find_problems(
    root: Path,
    before: tuple[Snapshot, list[Document]],
    after: tuple[Snapshot, list[Document]],
    changed_keys: set[Key],
) -> Problems:
    (old, removed), (new, added) = before, after
    gone = {document.path for document in removed} - {document.path for document in added}
    was = [document for document in _with_referrers(old, removed, changed_keys) if document.path not in gone]
    # The old versions of the files no longer exist, so the positions in them are unknown.
    unknown = find_dangling(old, lambda path: ({}, {}), was)
    now = find_dangling(new, partial(parsed, root), _with_referrers(new, added, changed_keys))
    return problem_difference((*find_duplicate_files(old), *unknown), (*find_duplicate_files(new), *now))


def _with_referrers(snapshot: Snapshot, documents: Iterable[Document], keys: set[Key]) -> list[Document]:
    affected = [*documents, *(pointing(snapshot, keys) if keys else ())]
    return list({id(document): document for document in affected}.values())
