"""The versions of a document in git: which commits changed which of its files, through renames.

A file is followed back from where it is now, and from every path that stood for the document before."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path

from server.documents.document import DRAFT, PUBLISHED
from server.documents.path_rules import Claim, Layout
from server.documents.timestamps import from_seconds
from server.paths import CONTENT, TYPES, UPLOADS
from server.schema.model import Schema, Type
from server.site.site import Site, State
from server.storage.files import is_utf_8
from server.storage.git.log import Commit, CommitLog, FileChange
from server.storage.git.refs import head_commit
from server.storage.git.uncommitted import changed_paths

ACTIONS = {"A": "create", "D": "delete", "R": "rename"}  # of a commit's change of a file; else "update"


@dataclass(frozen=True, slots=True)
class Version:
    """One change of one file of a document: by a commit, or, without one, not committed yet.

    `path` is where the file was after it, "" where it was deleted; `before` where it was until then, "" where
    it is new. `parent` is the commit before, "" for the first. `type` is that of the document, whatever its
    file was before; None for a file of no type.
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
    """What the files of a commit are about: one claim for all documents that take the same permission.

    `others` are schemas, and content that no type of today claims.
    """

    claims: tuple[Claim, ...]
    media: bool
    others: bool


@dataclass(frozen=True, slots=True)
class Timeline:
    """All commits of HEAD, the newest first, and the paths that each document ever had."""

    head: str
    schema: Schema
    commits: tuple[Commit, ...]
    claims: dict[str, Claim]  # by path
    paths: dict[tuple[str, str], set[str]]  # by the type's uid and the documentId that the path says
    _subjects: dict[str, Subjects] = field(default_factory=dict)  # by commit; looking costs once per file

    def subjects(self, commit: Commit) -> Subjects:
        """Return what the files of a commit are about."""
        found = self._subjects.get(commit.id)
        if found is None:
            found = self._subjects[commit.id] = self._find_subjects(commit)
        return found

    def _find_subjects(self, commit: Commit) -> Subjects:
        claims: dict[tuple[str, bool], Claim] = {}
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
    """The versions of all documents of a site. Safe to use from many threads."""

    def __init__(self, site: Site, log: CommitLog) -> None:
        self.site, self.log = site, log
        self._timeline: Timeline | None = None
        self._lock = threading.Lock()

    def timeline(self, state: State, commit: str = "") -> Timeline:
        """What a commit and those before it are, or, without one, those of HEAD as of now."""
        if commit:
            return self._read(state, commit)
        head, known = head_commit(self.site.root), self._timeline
        if known is None or known.head != head or known.schema is not state.schema:
            known = self._timeline = self._read(state, head)
        return known

    def _read(self, state: State, head: str) -> Timeline:
        with self._lock:
            if head:
                self.log.update(head)
            commits = tuple(self.log.before(head)) if head else ()
        layout = Layout(state.schema, state.settings)
        claims: dict[str, Claim] = {}
        paths: dict[tuple[str, str], set[str]] = {}
        for path in {path for commit in commits for path in _paths(commit.changes)}:
            # The site has no document of a file whose name is not UTF-8, and no answer could name it.
            claim = layout.claim(path) if is_utf_8(path) else None
            if claim is not None:
                claims[path] = claim
                paths.setdefault((claim.type.uid, claim.document_id), set()).add(path)
        return Timeline(head, state.schema, commits, claims, paths)

    def of(
        self,
        state: State,
        type_: Type,
        document_id: str,
        commit: str = "",
        sees: Callable[[Claim], bool] = lambda _: True,
    ) -> list[Version]:
        """The versions of a document, the newest first, those that are not committed before all others.

        Those up to a commit, where one is given: `state` is that of the commit. A file that was renamed
        begins there if it was before what `sees` denies.
        """
        timeline = self.timeline(state, commit)
        current = set(self._current_paths(state, type_, document_id))
        paths = current | timeline.paths.get((type_.uid, document_id), set())
        layout = Layout(state.schema, state.settings)
        claim = partial(_claim, timeline, layout)
        found: list[Version] = []
        followed, last = set(paths), dict[str, str]()  # by path, what the last commit did that touched it
        for one in timeline.commits:
            for change in one.changes:
                if change.path in followed:
                    last.setdefault(change.path, change.status)
                    before = claim(change.before)
                    if before is not None and not sees(before):
                        shown = FileChange("A", change.path)
                        found.append(_version(type_, one, shown, claim(change.path), None))
                        continue
                    found.append(_version(type_, one, change, claim(change.path), before))
                    if change.status == "R":
                        followed.add(change.before)
                elif change.status == "R" and change.before in followed:
                    last.setdefault(change.before, "D")
                    gone = FileChange("D", change.before)
                    found.append(_version(type_, one, gone, claim(change.before), None))
        committed = {path for path, status in last.items() if status != "D"}
        if not commit:
            found[:0] = self._uncommitted(type_, timeline, paths, committed, claim)
        return [version for version in found if version.locale]

    def is_there(self, state: State, type_: Type, document_id: str, *, drafts: bool = True) -> bool:
        """Whether the site has some version of a document now; without `drafts`, one that is published."""
        return next(self._current_paths(state, type_, document_id, drafts=drafts), None) is not None

    def single_id(self, state: State, type_: Type, commit: str = "") -> str:
        """The id of a single type's document, as it is or was up to a commit; "" if there was none."""
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
        committed: Collection[str],
        claim: "partial[Claim | None]",
    ) -> Iterator[Version]:
        """The changes of files that are in no commit yet; those in `committed` are in the last one."""
        root, known_of = self.site.root, self.site.git.committed
        if not timeline.head:
            return
        # The site knows already which files differ, unless a commit came that it has not looked at.
        looked = known_of.commit == timeline.head
        changed = known_of.changed if looked else changed_paths(root, paths)
        for path in sorted(paths):
            there, known = (root / path).is_file(), path in committed
            if (not known and not there) or (known and path not in changed):
                continue
            letter = "M" if known and there else "A" if there else "D"
            yield _version(type_, None, FileChange(letter, path), claim(path), None, parent=timeline.head)


def _claim(timeline: Timeline, layout: Layout, path: str) -> Claim | None:
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
    claim: Claim | None,
    before: Claim | None,
    parent: str = "",
) -> Version:
    where = claim or before
    if commit is not None:
        parent = commit.parents[0] if commit.parents else ""
    return Version(
        type_,
        commit,
        parent,
        "" if change.status == "D" else change.path,
        "" if change.status == "A" else change.before or change.path,
        where.locale if where else "",
        DRAFT if where and where.draft else PUBLISHED,
        ACTIONS.get(change.status, "update"),
    )


def date_of(version: Version, root: Path) -> str | None:
    """When a version was committed, or its file written where it is in no commit; None where that is gone."""
    if version.commit is not None:
        return from_seconds(version.commit.authored)
    try:
        return from_seconds((root / version.path).stat().st_mtime) if version.path else None
    except OSError:
        return None


# --- deleted --------------------------------------------------------------------------------------

Deleted = tuple[str, list[Version]]  # a documentId, and what was deleted of it: a version of each file
_UNCOMMITTED_PLACE = -1  # Before the newest commit, whose place is 0.


def deleted_documents(
    state: State, type_: Type, timeline: Timeline, root: Path, *, drafts: bool
) -> list[Deleted]:
    """The documents that were deleted and are not there again, the last deleted first; not what was renamed.

    The versions of each begin with that of the default locale. Without `drafts`, those that were published.
    """
    lasts = _last_changes(timeline)
    there = {key[1] for key in state.snapshot.claims if key[0] == type_.uid}
    found = []
    for (uid, document_id), paths in timeline.paths.items():
        if uid != type_.uid or document_id in there or any((root / path).is_file() for path in paths):
            continue
        gone = list(_gone(timeline, lasts, paths, drafts=drafts))
        if gone:
            first = state.settings.locales.default
            versions = sorted(
                (v for _, v in gone), key=lambda v: (v.locale != first, v.locale, v.status == DRAFT)
            )
            found.append((min(place for place, _ in gone), document_id, versions))
    return [(document_id, versions) for _, document_id, versions in sorted(found, key=itemgetter(0, 1))]


def _last_changes(timeline: Timeline) -> dict[str, tuple[str, int, Commit]]:
    """What the last commit did that touched a path, its place among the commits, and itself."""
    lasts: dict[str, tuple[str, int, Commit]] = {}
    for place, commit in enumerate(timeline.commits):
        for change in commit.changes:
            lasts.setdefault(change.path, (change.status, place, commit))
            if change.status == "R":
                lasts.setdefault(change.before, ("renamed", place, commit))
    return lasts


def _gone(
    timeline: Timeline, lasts: dict[str, tuple[str, int, Commit]], paths: set[str], *, drafts: bool
) -> Iterator[tuple[int, Version]]:
    """The deletion of each file that was not renamed: its place among the commits, and the version."""
    for path in sorted(paths):
        claim = timeline.claims[path]
        status, place, commit = lasts[path]
        if status == "renamed" or (claim.draft and not drafts):
            continue
        which = DRAFT if claim.draft else PUBLISHED
        if status == "D":
            parent = commit.parents[0] if commit.parents else ""
            yield place, Version(claim.type, commit, parent, "", path, claim.locale, which, "delete")
        else:
            version = Version(claim.type, None, timeline.head, "", path, claim.locale, which, "delete")
            yield _UNCOMMITTED_PLACE, version
