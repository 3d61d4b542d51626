"""What the documents and media files are called now that commits have renamed.

git says which files a commit renamed, and how much of each stayed the same. That is followed to the last
commit, so that whoever uses an earlier id can be told the one of today.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from server.documents.layout import Layout
from server.index.dangling import MEDIA, Key
from server.schema.model import Schema
from server.site.site import Site, State
from server.storage.git.log import CommitLog, FileChange
from server.storage.media import upload_path

Asked = tuple[str, Schema, tuple[str, ...], str]  # a commit, and what says whose document a path is
MOST_COMMITS = 20_000  # the newest, whose renames are known


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


class Renames:
    """The renames in the commits of a site that is served. Safe to use from many threads."""

    def __init__(self, site: Site, log: CommitLog) -> None:
        self.site, self.log = site, log
        self._known: tuple[Asked | None, Mapping[Key, Rename]] = None, {}
        self._lock = threading.Lock()

    def are_known(self, state: State) -> bool:
        """Whether they can be told without asking git, as in a site without commits."""
        return not self.site.git.committed.commit or self._known[0] == self._asked(state)

    def of(self, state: State) -> Mapping[Key, Rename]:
        """The renames up to the last commit that the site has seen."""
        with self._lock:
            commit, *_ = asked = self._asked(state)
            if not commit:
                return {}
            if self._known[0] != asked:
                self.log.update(commit)
                commits = islice(self.log.before(commit), MOST_COMMITS)
                layout = Layout(state.schema, state.settings)
                self._known = asked, find_renames(((one.id, one.changes) for one in commits), layout)
            return self._known[1]

    def _asked(self, state: State) -> Asked:
        settings = state.settings
        return self.site.git.committed.commit, state.schema, settings.locales, settings.default_locale
