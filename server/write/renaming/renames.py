"""What the documents and media files are called now that commits have renamed.

git says which files a commit renamed, and how much of each stayed the same. That is followed to the last
commit, so that whoever uses an earlier id can be told the one of today.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from server.documents.path_rules import Layout
from server.index.dangling import MEDIA, Key
from server.storage.git.log import FileChange
from server.storage.media import upload_path

MAX_COMMITS = 20_000  # Renames are searched in so many of the newest commits.


@dataclass(frozen=True, slots=True)
class Rename:
    """What an id or the path of a media file became: `name` is what it is called now.

    `commit` is the id of the commit that gave up the earlier name, "" for one that is not made yet. `alike`
    says how much of the file stayed the same, in per cent.
    """

    name: str
    commit: str
    alike: int


def find_renames(commits: Iterable[tuple[str, Iterable[FileChange]]], layout: Layout) -> dict[Key, Rename]:
    """The last rename of each name that documents and media files had, from commits, the newest first."""
    now: dict[str, tuple[str, int]] = {}  # what became of each path: where it is, "" for gone, and how alike
    found: dict[Key, Rename] = {}
    for commit, changes in commits:
        moved: dict[str, tuple[str, int]] = {}
        for change in changes:
            if change.status == "R" and change.before:
                path, alike = now.get(change.path, (change.path, 100))
                moved[change.before] = path, min(alike, change.alike)
            if change.status in "ADR":  # The file is not there before, or another one of this name.
                now[change.path] = "", 0
        now.update(moved)
        for before, (path, alike) in moved.items():
            old, new = _key_of(before, layout), _key_of(path, layout)
            if old and new and old[0] == new[0] and old != new:
                found.setdefault(old, Rename(new[1], commit, alike))
    return found


def _key_of(path: str, layout: Layout) -> Key | None:
    """What relations and media name the document or media file at a path by."""
    claim = layout.claim(path)
    if claim is not None:
        return claim.type.uid, claim.document_id
    upload = upload_path(path)
    return (MEDIA, upload) if upload else None
