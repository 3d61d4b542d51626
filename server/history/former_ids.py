"""Former ids of renamed documents, found in the git history."""

import threading
from collections.abc import Mapping
from itertools import islice

from server.documents.file_keys import is_marked_as_draft
from server.documents.path_rules import Layout
from server.formats.tree import SyntaxProblem
from server.history.exposure import reveals_more
from server.history.former_layouts import FormerLayouts
from server.history.past import PastStates
from server.history.served_commits import ServedCommits
from server.index.dangling import Key
from server.schema.model import Schema
from server.site.site import State
from server.storage.files import is_utf_8
from server.storage.git.tree import read_named
from server.storage.read import MAX_FILE_BYTES, decode, parse
from server.write.renaming.renames import MAX_COMMITS, Rename, find_renames

# A commit, and everything that determines which document a path belongs to.
_CacheKey = tuple[str, Schema, tuple[str, ...], str]


class FormerIds:
    """Thread-safe cache of the former ids of documents in the served branch's history."""

    def __init__(self, past: PastStates) -> None:
        self.past = past
        self._former, self._served = FormerLayouts(past), ServedCommits(past)
        self._key: _CacheKey | None = None
        self._renames: Mapping[Key, Rename] = {}  # of drafts too, and on merged branches
        self._served_renames: Mapping[Key, Rename] = {}
        self._was_public: dict[Key, bool] = {}  # the former ids that were looked up
        self._lock = threading.Lock()

    def is_known(self, state: State, former: Key) -> bool:
        """Return whether `new_id` would return the new id without reading the history."""
        if not self._commit:
            return True
        is_read = self._key == self._cache_key(state)
        return is_read and (former in self._was_public or former not in self._renames)

    def new_id(self, state: State, former: Key, *, with_drafts: bool) -> str:
        """Return the new id of a renamed document, or "" if it was not renamed.

        Unless `with_drafts` is set, also return "" if the document was not public when it was renamed:
        otherwise, callers could check guesses of the names of drafts. Raises GitError.
        """
        with self._lock:
            if not self._commit:
                return ""
            self._read(state)
            if former not in self._renames:
                return ""
            if former not in self._was_public:
                self._was_public[former] = self._find_public(state, former)
            renames = self._renames if with_drafts else self._served_renames
            return renames[former].name if with_drafts or self._was_public[former] else ""

    @property
    def _commit(self) -> str:
        return self.past.site.git.committed.commit

    def _read(self, state: State) -> None:
        """Find the renames. Only commits that the site has already loaded are considered."""
        commit, *_ = key = self._cache_key(state)
        if self._key == key:
            return
        log, layout = self.past.log, Layout(state.schema, state.settings)
        log.update(commit)
        commits = islice(log.history_of(commit), MAX_COMMITS)
        self._renames = find_renames(((one.id, one.changes) for one in commits), layout)
        served = ((one.id, one.changes) for one in self._served.history_of(commit))
        self._served_renames = find_renames(served, layout)
        self._key, self._was_public = key, {}

    def _find_public(self, state: State, former: Key) -> bool:
        """Return whether a document was public under its former id in the commit before its rename."""
        rename = self._served_renames.get(former)
        if rename is None:
            return False
        schema = self._former.schema(rename.commit)
        uid = former[0]
        if schema is not None and uid in schema.types and reveals_more(state.schema, schema, uid):
            return False
        layout = Layout(state.schema, state.settings)
        claims = {path: layout.claim(path) for path in rename.former_paths}
        public = {path: claim for path, claim in claims.items() if claim is not None and not claim.draft}
        if not any(claim.type.draft_key for claim in public.values()):
            return bool(public)
        usable = [path for path in public if is_utf_8(path) and "\n" not in path]
        names = (f"{rename.commit}^:./{path}" for path in usable)
        contents = read_named(self.past.site.root, names, MAX_FILE_BYTES)
        for path, data in zip(usable, contents, strict=False):
            try:
                tree = parse(path, decode(data), None) if data is not None else None
            except SyntaxProblem:
                continue
            if tree is not None and not is_marked_as_draft(public[path].type, public[path].name, tree):
                return True
        return False

    def _cache_key(self, state: State) -> _CacheKey:
        locales = state.settings.locales
        return self._commit, state.schema, locales.available, locales.default
