"""Filter that keeps machines with a shared event log from logging the same change twice (docs/events.md)."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from server.documents.timestamps import now
from server.errors import GitError
from server.events.change_events import schema_events, shapes_of
from server.events.database import BEGIN_NOTE, LastOrigin, LoggedVersion, Transaction
from server.events.model import Event, Key
from server.schema.model import Schema
from server.storage.git.command import git_or_fail
from server.storage.git.refs import are_commits, commits_outside_history
from server.storage.git.tree import paths_changed_by
from server.storage.media import SIDECAR_SUFFIX

COMMIT_NOTE = "commit"  # note with the last commit that a machine logged
MAX_COMMITS = 1000  # examined when a machine checks out another commit
TYPES_FOLDER = "content-types/"  # stands for all files in this folder


class UnloggedChanges:
    """The changes that this machine must log after it has checked out `commit`."""

    def __init__(
        self, own: Transaction, root: Path, commit: str, is_unchanged: Callable[[str], bool]
    ) -> None:
        self._own, self._is_unchanged = own, is_unchanged
        self.versions = own.for_all_clones() if own.is_shared else own
        self._path = _CommitRange(own, root, own.read_note(COMMIT_NOTE) if own.is_shared else commit, commit)
        if own.is_shared and not self.versions.read_note(BEGIN_NOTE):
            self.versions.put_versions(LoggedVersion(*row) for row in own.versions())
            self.versions.put_shapes(own.shapes().items())
            self.versions.write_note(BEGIN_NOTE, now())

    def find_paths(self, versions: Mapping[str, LoggedVersion | None]) -> set[str]:
        if not self._own.is_shared:
            return set(versions)
        known = self._own.versions_at(versions.keys())
        may_be_unlogged = {path for path in versions if known.get(path) != versions[path]}
        gone = [path for path in may_be_unlogged if versions[path] is None]
        self._own.put_versions((one for path in may_be_unlogged if (one := versions[path])), gone)
        logged = self.versions.versions_at(may_be_unlogged)
        new = {path for path in may_be_unlogged if logged.get(path) != versions[path]}
        committed = {path for path in new if self._is_unchanged(path)}
        recorded = (new - committed) | self._path.paths_to_log(committed)
        recorded |= _same_documents(recorded, new, (logged, versions))
        self._own.put_last_sources(recorded - committed, "")
        self._own.put_last_sources(recorded & committed, self._path.commit)
        return recorded

    def schema_events(self, schema: Schema) -> list[Event]:
        after = shapes_of(schema)
        if self._own.is_shared:
            if self._own.shapes() == after:
                return []
            self._own.put_shapes(after.items())
            if self._path.moved and not self._path.paths_to_log({TYPES_FOLDER}):
                return []
        events = list(schema_events(self.versions.shapes(), after, schema))
        if events:
            self.versions.put_shapes(after.items())
            if self._own.is_shared:
                self._own.put_last_sources([TYPES_FOLDER], self._path.commit if self._path.moved else "")
        return events

    def record_checkout(self) -> None:
        if not self._path.moved:
            return
        uncommitted = self._own.uncommitted_paths()
        committed = (path for path in uncommitted if path == TYPES_FOLDER or self._is_unchanged(path))
        self._own.put_last_sources(committed, self._path.commit)
        self._own.forget_commits(self._path.abandoned)
        self._own.put_commits(reversed(self._path.entered or [self._path.commit]))
        self._own.write_note(COMMIT_NOTE, self._path.commit)


class _CommitRange:
    """The commits between the last commit that this machine logged and the current commit."""

    def __init__(self, own: Transaction, root: Path, before: str, commit: str) -> None:
        self._own, self._root, self.commit = own, root, commit
        self.moved = commit not in ("", before)
        self.entered = self._commits(commit, before) if self.moved else []  # newest first
        # Commits removed by a reset or by rewriting history.
        self.abandoned = self._commits(before, commit) if self.moved and before else []
        known = own.recorded([commit, before]) if self.abandoned else set[str]()
        self._is_first = bool(self.abandoned) and not (commit in known and before not in known)

    def paths_to_log(self, paths: Collection[str]) -> set[str]:
        """Return the subset of `paths` whose changes this machine must log.

        The files at `paths` must be the same on disk as in the current commit.
        """
        sources = {} if self._is_first else self._own.last_sources([*paths])
        elsewhere = {path: by for path, by in sources.items() if self._is_elsewhere(by)}
        commits = {by.commit for by in elsewhere.values() if by.commit}
        beside = commits_outside_history(self._root, commits, self.commit) if commits else set[str]()
        others = {path for path, by in elsewhere.items() if not by.commit or by.commit in beside}
        return (set(paths) - others) | self._unrecorded_changes(others)

    def _is_elsewhere(self, by: LastOrigin) -> bool:
        return by.commit != self.commit if by.commit else by.clone != self._own.clone

    def _unrecorded_changes(self, paths: Collection[str]) -> set[str]:
        new = set(self.entered) - self._own.recorded(self.entered) if paths else set[str]()
        changed = paths_changed_by(self._root, new) if new else set[str]()
        if any(path.startswith(TYPES_FOLDER) for path in changed):
            changed.add(TYPES_FOLDER)
        return {path for path in paths if path in changed or f"{path}{SIDECAR_SUFFIX}" in changed}

    def _commits(self, commit: str, without: str) -> list[str]:
        # Returns the commits from newest to oldest, or [] if either commit is unknown.
        some = ("rev-list", f"--max-count={MAX_COMMITS}", commit, *([f"^{without}"] if without else []), "--")
        try:
            return git_or_fail(self._root, *some).split()
        except GitError:
            if are_commits(self._root, *filter(None, (commit, without))):
                raise
            return []


def _same_documents(
    recorded: Collection[str],
    new: Collection[str],
    version_maps: Iterable[Mapping[str, LoggedVersion | None]],
) -> set[str]:
    # Each mapping in `version_maps` contains the logged or the current versions by path.
    version_maps = tuple(version_maps)

    def keys(path: str) -> set[Key]:
        return {one.key for side in version_maps if (one := side.get(path))}

    keys_to_record = {key for path in recorded for key in keys(path)}
    return {path for path in new if not keys_to_record.isdisjoint(keys(path))} if keys_to_record else set()
