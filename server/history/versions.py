"""Versions of a document in git."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path

from server.documents.document import DRAFT, PUBLISHED
from server.documents.path_rules import Layout, PathClaim
from server.documents.timestamps import from_seconds
from server.paths import CONTENT, TYPES, UPLOADS
from server.schema.model import Schema, Type
from server.site.site import Site, State
from server.storage.files import is_utf_8
from server.storage.git.log import Commit, CommitLog, FileChange
from server.storage.git.refs import head_commit
from server.storage.git.uncommitted import changed_paths

ACTIONS = {
    "A": "create",
    "D": "delete",
    "R": "rename",
}  # by git's status letter; all other letters mean an update


# Returns a change as a caller sees it, or None. The commit is None for an uncommitted change.
ChangeFilter = Callable[[Commit | None, FileChange], FileChange | None]


def _unfiltered(commit: Commit | None, change: FileChange) -> FileChange:
    return change


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a document, which results from one change to its file.

    - `commit`: the commit with the change, or None if the change is uncommitted
    - `parent`: the id of the commit's parent, or "" for the first commit
    - `path`: the path after the change, or "" if the file was deleted
    - `before`: the path before the change, or "" if the file is new
    """

    type: Type | None
    commit: Commit | None
    parent: str
    path: str
    before: str
    locale: str
    status: str
    action: str


@dataclass(frozen=True, slots=True)
class Subjects:
    """The kinds of content that a commit changed, which determine who may see the commit."""

    claims: tuple[PathClaim, ...]
    media: bool
    other_files: bool


@dataclass(frozen=True, slots=True)
class Timeline:
    """The history of the commit `head`: its commits, newest first, and the document paths in them."""

    head: str
    schema: Schema
    commits: tuple[Commit, ...]
    claims: dict[str, PathClaim]
    paths: dict[tuple[str, str], set[str]]  # by uid, and by the documentId that the path determines
    _subjects: dict[str, Subjects] = field(default_factory=dict)  # cache, by commit

    def subjects(self, commit: Commit) -> Subjects:
        subjects = self._subjects.get(commit.id)
        if subjects is None:
            subjects = self._subjects[commit.id] = self._find_subjects(commit)
        return subjects

    def _find_subjects(self, commit: Commit) -> Subjects:
        claims: dict[tuple[str, bool], PathClaim] = {}
        media = others = False
        for path in _paths(commit.changes):
            claim = self.claims.get(path)
            if claim is not None:
                claims.setdefault((claim.type.uid, claim.draft), claim)
            elif path.startswith(f"{UPLOADS}/"):
                media = True
            else:
                others = others or path.startswith((f"{CONTENT}/", f"{TYPES}/"))
        return Subjects(tuple(claims.values()), media, others)


class Versions:
    """Thread-safe reader of the versions of all documents."""

    def __init__(self, site: Site, log: CommitLog) -> None:
        self.site, self.log = site, log
        self._timeline: Timeline | None = None
        self._lock = threading.Lock()

    def timeline(self, state: State, commit: str = "") -> Timeline:
        if commit:
            return self._read(state, commit)
        head, cached = head_commit(self.site.root), self._timeline
        if cached is None or cached.head != head or cached.schema is not state.schema:
            cached = self._timeline = self._read(state, head)
        return cached

    def _read(self, state: State, head: str) -> Timeline:
        with self._lock:
            if head:
                self.log.update(head)
            commits = tuple(self.log.history_of(head)) if head else ()
        layout = Layout(state.schema, state.settings)
        claims: dict[str, PathClaim] = {}
        paths: dict[tuple[str, str], set[str]] = {}
        for path in {path for commit in commits for path in _paths(commit.changes)}:
            # File names that are not UTF-8 never belong to documents, and JSON can't represent them.
            claim = layout.claim(path) if is_utf_8(path) else None
            if claim is not None:
                claims[path] = claim
                paths.setdefault((claim.type.uid, claim.document_id), set()).add(path)
        return Timeline(head, state.schema, commits, claims, paths)

    def list_versions(
        self,
        state: State,
        type_: Type,
        document_id: str,
        commit: str = "",
        change_filter: ChangeFilter = _unfiltered,
    ) -> list[Version]:
        """Return a document's versions up to `commit`, newest first.

        If `commit` is "", all versions are returned, including uncommitted changes. `change_filter` returns a
        change in the form that the caller may see, or None to hide it. If it hides a rename, the versions
        before the rename are omitted.
        """
        timeline = self.timeline(state, commit)
        current = set(self._current_paths(state, type_, document_id))
        paths = current | timeline.paths.get((type_.uid, document_id), set())
        layout = Layout(state.schema, state.settings)
        claim = partial(_claim, timeline, layout)
        versions: list[Version] = []
        followed, last_status = set(paths), dict[str, str]()  # each path's git status in its last commit
        for one in timeline.commits:
            for change in one.changes:
                if change.path in followed:
                    last_status.setdefault(change.path, change.status)
                    visible = change_filter(one, change)
                    if visible is not None and visible.status != "A" and change.status == "R":
                        followed.add(change.before)
                elif change.status == "R" and change.before in followed:
                    last_status.setdefault(change.before, "D")
                    visible = change_filter(one, FileChange("D", change.before))
                else:
                    continue
                if visible is not None:
                    path, before = visible.path, visible.before
                    versions.append(_version(type_, one, visible, claim(path), claim(before)))
        committed = {path for path, status in last_status.items() if status != "D"}
        if not commit:
            versions[:0] = self._uncommitted(type_, timeline, paths, committed, claim, change_filter)
        return [version for version in versions if version.locale]

    def is_there(self, state: State, type_: Type, document_id: str, *, drafts: bool = True) -> bool:
        return next(self._current_paths(state, type_, document_id, drafts=drafts), None) is not None

    def single_type_document_id(self, state: State, type_: Type, commit: str = "") -> str:
        """Return the documentId of a single type's document, even if the document was deleted.

        Returns "" if there has never been a document.
        """
        ids = (key[1] for key in state.snapshot.claims if key[0] == type_.uid)
        earlier = (id_ for uid, id_ in self.timeline(state, commit).paths if uid == type_.uid)
        return next(chain(ids, earlier), "")

    def _current_paths(
        self, state: State, type_: Type, document_id: str, *, drafts: bool = True
    ) -> Iterator[str]:
        for locale in dict.fromkeys((state.settings.locales.default, *state.settings.locales.available)):
            for status in (PUBLISHED, DRAFT) if drafts else (PUBLISHED,):
                for document in state.snapshot.claims.get((type_.uid, document_id, locale, status), ()):
                    yield document.path

    def _uncommitted(
        self,
        type_: Type,
        timeline: Timeline,
        paths: Collection[str],
        committed_paths: Collection[str],
        claim: "partial[PathClaim | None]",
        change_filter: ChangeFilter,
    ) -> Iterator[Version]:
        root, committed_files = self.site.root, self.site.git.committed
        if not timeline.head:
            return
        # The site caches which files differ, but only for the last commit that it has seen.
        is_up_to_date = committed_files.commit == timeline.head
        changed = committed_files.changed if is_up_to_date else changed_paths(root, paths)
        for path in sorted(paths):
            exists, is_committed = (root / path).is_file(), path in committed_paths
            if (not is_committed and not exists) or (is_committed and path not in changed):
                continue
            letter = "M" if is_committed and exists else "A" if exists else "D"
            change = change_filter(None, FileChange(letter, path))
            if change is not None:
                yield _version(type_, None, change, claim(path), None, parent=timeline.head)


def _claim(timeline: Timeline, layout: Layout, path: str) -> PathClaim | None:
    if not path:
        return None
    return timeline.claims.get(path) or layout.claim(path)


def _paths(changes: Iterable[FileChange]) -> Iterator[str]:
    for change in changes:
        yield change.path
        if change.before:
            yield change.before


def _version(
    type_: Type,
    commit: Commit | None,
    change: FileChange,
    claim: PathClaim | None,
    before: PathClaim | None,
    parent: str = "",
) -> Version:
    place = claim or before
    if commit is not None:
        parent = commit.parents[0] if commit.parents else ""
    return Version(
        type_,
        commit,
        parent,
        "" if change.status == "D" else change.path,
        "" if change.status == "A" else change.before or change.path,
        place.locale if place else "",
        DRAFT if place and place.draft else PUBLISHED,
        ACTIONS.get(change.status, "update"),
    )


def version_in(commit: Commit, change: FileChange, claim: PathClaim) -> Version:
    return _version(claim.type, commit, change, claim, claim)


def date_of(version: Version, root: Path) -> str | None:
    """Return the time when a version was committed or, if it is uncommitted, when its file was saved.

    Returns None for an uncommitted deletion.
    """
    if version.commit is not None:
        return from_seconds(version.commit.authored)
    try:
        return from_seconds((root / version.path).stat().st_mtime) if version.path else None
    except OSError:
        return None


# --- deleted --------------------------------------------------------------------------------------

Deleted = tuple[str, list[Version]]  # documentId, and one version per deleted file
_UNCOMMITTED_POSITION = -1  # precedes the newest commit, whose position is 0


def deleted_documents(
    state: State, type_: Type, timeline: Timeline, root: Path, change_filter: ChangeFilter, *, drafts: bool
) -> list[Deleted]:
    """Return the deleted documents, most recently deleted first, except those that `change_filter` hides.

    Each document's versions in the default locale come first. Drafts are included only if `drafts` is set.
    """
    last_changes = _last_changes(timeline)
    existing = {key[1] for key in state.snapshot.claims if key[0] == type_.uid}
    deleted = []
    for (uid, document_id), paths in timeline.paths.items():
        if uid != type_.uid or document_id in existing or any((root / path).is_file() for path in paths):
            continue
        deletions = list(_deletions(timeline, last_changes, paths, change_filter, drafts=drafts))
        if deletions:
            default_locale = state.settings.locales.default
            versions = sorted(
                (v for _, v in deletions),
                key=lambda v: (v.locale != default_locale, v.locale, v.status == DRAFT),
            )
            deleted.append((min(position for position, _ in deletions), document_id, versions))
    return [(document_id, versions) for _, document_id, versions in sorted(deleted, key=itemgetter(0, 1))]


def _last_changes(timeline: Timeline) -> dict[str, tuple[str, int, Commit]]:
    last_changes: dict[str, tuple[str, int, Commit]] = {}
    for position, commit in enumerate(timeline.commits):
        for change in commit.changes:
            last_changes.setdefault(change.path, (change.status, position, commit))
            if change.status == "R":
                last_changes.setdefault(change.before, ("renamed", position, commit))
    return last_changes


def _deletions(
    timeline: Timeline,
    last_changes: dict[str, tuple[str, int, Commit]],
    paths: set[str],
    change_filter: ChangeFilter,
    *,
    drafts: bool,
) -> Iterator[tuple[int, Version]]:
    for path in sorted(paths):
        claim = timeline.claims[path]
        status, position, last = last_changes[path]
        if status == "renamed" or (claim.draft and not drafts):
            continue
        deletion, commit = FileChange("D", path), last if status == "D" else None
        if change_filter(commit, deletion) is None:
            continue
        position = position if commit else _UNCOMMITTED_POSITION
        yield position, _version(claim.type, commit, deletion, claim, None, parent=timeline.head)
