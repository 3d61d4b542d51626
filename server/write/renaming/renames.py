"""Renames of documents and media files, found in the git history."""

from collections.abc import Iterable
from dataclasses import dataclass

from server.documents.path_rules import Layout
from server.index.dangling import MEDIA, Key
from server.storage.git.log import FileChange
from server.storage.media import upload_path

MAX_COMMITS = 20_000  # Older commits are not searched.


@dataclass(frozen=True, slots=True)
class Rename:
    """A rename to `name`. `commit` is the commit that contains the rename, or "" if it is uncommitted.

    `former_paths` are the files that the commit renamed, such as a document's locales and draft.
    """

    name: str
    commit: str
    similarity_percent: int
    former_paths: tuple[str, ...] = ()


def find_renames(commits: Iterable[tuple[str, Iterable[FileChange]]], layout: Layout) -> dict[Key, Rename]:
    """Map each old id or upload path to its rename. `commits` must be sorted newest first."""
    # current path ("" if deleted) and similarity as a percentage, by path
    current: dict[str, tuple[str, int]] = {}
    renames: dict[Key, Rename] = {}
    for commit, changes in commits:
        moved: dict[str, tuple[str, int]] = {}
        for change in changes:
            if change.status == "R" and change.before:
                path, alike = current.get(change.path, (change.path, 100))
                moved[change.before] = path, min(alike, change.similarity_percent)
            # Before this commit, there was no file at this path, or a different one.
            if change.status in "ADR":
                current[change.path] = "", 0
        current.update(moved)
        former_paths: dict[Key, tuple[str, ...]] = {}
        for before in moved:
            if old := _key_of(before, layout):
                former_paths[old] = (*former_paths.get(old, ()), before)
        for before, (path, alike) in moved.items():
            old, new = _key_of(before, layout), _key_of(path, layout)
            if old and new and old[0] == new[0] and old != new:
                renames.setdefault(old, Rename(new[1], commit, alike, former_paths[old]))
    return renames


def _key_of(path: str, layout: Layout) -> Key | None:
    claim = layout.claim(path)
    if claim is not None:
        return claim.type.uid, claim.document_id
    upload = upload_path(path)
    return (MEDIA, upload) if upload else None
