"""Machines that share a log record each change once, whatever commits they are at (docs/events.md).

Each machine knows by its own versions what has changed in its files. The events in the log lead up to
versions that are those of all machines together, and of each file the log knows by what its last event came:
a commit, or what a machine has in no commit yet. A file that a commit has changed has an event if the log has
got to another version, and

- by what is in the history of the machine: it has gone on from there,
- or elsewhere, and a commit that nobody has recorded has changed the file: both are events, in their order.

Otherwise others are ahead, and have recorded what the machine has come to and more.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from server.documents.timestamps import now
from server.errors import GitError
from server.events.change_events import schema_events, shapes_of
from server.events.database import BEGIN_NOTE, Recorded, Told, Transaction
from server.events.model import Event, Key
from server.schema.model import Schema
from server.storage.git.command import git_or_fail
from server.storage.git.refs import are_commits, commits_beside
from server.storage.git.tree import changed_by
from server.storage.media import SIDECAR_SUFFIX

COMMIT_NOTE = "commit"  # The note of the commit that a machine recorded last.
MAX_COMMITS = 1000  # Commits that are searched when a machine arrives at one.
TYPES_FOLDER = "content-types/"  # Stands for all files below it, and has a row like a file.


class Lineage:
    """What a machine at a commit has to record, in a transaction.

    `from_commit` tells which files are as the commit has them.
    """

    def __init__(self, own: Transaction, root: Path, commit: str, from_commit: Callable[[str], bool]) -> None:
        self._own, self._from_commit = own, from_commit
        self.versions = own.of_all() if own.is_shared else own
        self._path = _Path(own, root, own.value(COMMIT_NOTE) if own.is_shared else commit, commit)
        if own.is_shared and not self.versions.value(BEGIN_NOTE):
            self.versions.put_versions(Recorded(*row) for row in own.versions())
            self.versions.put_shapes(own.shapes().items())
            self.versions.note(BEGIN_NOTE, now())

    def differing(self, found: Mapping[str, Recorded | None]) -> set[str]:
        """The paths, of those of some files, that may have events which nobody has recorded."""
        if not self._own.is_shared:
            return set(found)
        known = self._own.versions_at(found.keys())
        differing = {path for path in found if known.get(path) != found[path]}
        gone = [path for path in differing if found[path] is None]
        self._own.put_versions((one for path in differing if (one := found[path])), gone)
        told = self.versions.versions_at(differing)
        new = {path for path in differing if told.get(path) != found[path]}
        committed = {path for path in new if self._from_commit(path)}
        recorded = (new - committed) | self._path.news(committed)
        recorded |= _of_same(recorded, new, (told, found))
        self._own.put_told(recorded - committed, "")
        self._own.put_told(recorded & committed, self._path.commit)
        return recorded

    def of_schema(self, schema: Schema) -> list[Event]:
        """The events of the content types and components that are not as they were."""
        after = shapes_of(schema)
        if self._own.is_shared:
            if self._own.shapes() == after:
                return []
            self._own.put_shapes(after.items())
            if self._path.moved and not self._path.news({TYPES_FOLDER}):
                return []
        events = list(schema_events(self.versions.shapes(), after, schema))
        if events:
            self.versions.put_shapes(after.items())
            if self._own.is_shared:
                self._own.put_told([TYPES_FOLDER], self._path.commit if self._path.moved else "")
        return events

    def arrive(self) -> None:
        """Note that the machine is at the commit, and what is recorded by that."""
        if not self._path.moved:
            return
        here = (path for path in self._own.told_here() if path == TYPES_FOLDER or self._from_commit(path))
        self._own.put_told(here, self._path.commit)
        self._own.forget_commits(self._path.left)
        self._own.put_commits(reversed(self._path.entered or [self._path.commit]))
        self._own.note(COMMIT_NOTE, self._path.commit)


class _Path:
    """How a machine comes from the commit that it has recorded last, "" for none, to another one."""

    def __init__(self, own: Transaction, root: Path, before: str, commit: str) -> None:
        self._own, self._root, self.commit = own, root, commit
        self.moved = commit not in ("", before)
        self.entered = self._commits(commit, before) if self.moved else []  # the newest come first
        # Where it goes back, or to a history that was rewritten, these are in its history no more.
        self.left = self._commits(before, commit) if self.moved and before else []
        known = own.recorded([commit, before]) if self.left else set[str]()
        self._is_first = bool(self.left) and not (commit in known and before not in known)

    def news(self, paths: Collection[str]) -> set[str]:
        """Those of some files, as the commit has them and not the log, that are to be told of."""
        told = {} if self._is_first else self._own.told_by([*paths])
        elsewhere = {path: by for path, by in told.items() if self._is_elsewhere(by)}
        commits = {by.commit for by in elsewhere.values() if by.commit}
        beside = commits_beside(self._root, commits, self.commit) if commits else set[str]()
        others = {path for path, by in elsewhere.items() if not by.commit or by.commit in beside}
        return (set(paths) - others) | self._unrecorded_changes(others)

    def _is_elsewhere(self, by: Told) -> bool:
        """Whether what an event came by may not be in the history of this machine."""
        return by.commit != self.commit if by.commit else by.clone != self._own.clone

    def _unrecorded_changes(self, paths: Collection[str]) -> set[str]:
        """Those of some files that are changed by commits which nobody has recorded."""
        new = set(self.entered) - self._own.recorded(self.entered) if paths else set[str]()
        changed = changed_by(self._root, new) if new else set[str]()
        if any(path.startswith(TYPES_FOLDER) for path in changed):
            changed.add(TYPES_FOLDER)
        return {path for path in paths if path in changed or f"{path}{SIDECAR_SUFFIX}" in changed}

    def _commits(self, commit: str, without: str) -> list[str]:
        """The commits up to one that are not in the history of another; none if either is gone."""
        some = ("rev-list", f"--max-count={MAX_COMMITS}", commit, *([f"^{without}"] if without else []), "--")
        try:
            return git_or_fail(self._root, *some).split()
        except GitError:
            if are_commits(self._root, *filter(None, (commit, without))):
                raise
            return []


def _of_same(
    recorded: Collection[str], new: Collection[str], sides: Iterable[Mapping[str, Recorded | None]]
) -> set[str]:
    """Those of some files that are versions of the documents that others are which are to be told of."""
    sides = tuple(sides)

    def keys(path: str) -> set[Key]:
        return {one.key for side in sides if (one := side.get(path))}

    told = {key for path in recorded for key in keys(path)}
    return {path for path in new if not told.isdisjoint(keys(path))} if told else set()
