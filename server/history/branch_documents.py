"""Number of documents that each branch has changed."""

from collections.abc import Iterable
from dataclasses import dataclass

from server.auth.draft_visibility import may_see_file
from server.auth.permissions import Actor
from server.bounded import Cache
from server.documents.path_rules import Layout
from server.errors import ConflictError
from server.history.past import PastStates
from server.site.configure import is_configuration
from server.storage.git.branches import merge_base
from server.storage.git.refs import head_commit
from server.storage.git.tree import changed_files

_MAX_CACHE_BYTES = 4_000_000
_BYTES_PER_ENTRY = 400  # of an entry without its paths


@dataclass(frozen=True, slots=True)
class _ChangedFiles:
    paths: tuple[str, ...]
    layouts: tuple[Layout, ...]


class BranchDocumentCounter:
    """Thread-safe counter of the documents that a branch has changed.

    Files are compared by blob id, so a document counts as changed even if only its formatting differs.
    """

    def __init__(self, past: PastStates) -> None:
        self._past = past
        # Saves 2.5 ms for each branch.
        self._forks: Cache[tuple[str, str], str] = Cache(_MAX_CACHE_BYTES, lambda *_: _BYTES_PER_ENTRY)
        # Saves 5.5 ms for each branch.
        self._changed: Cache[tuple[str, str], _ChangedFiles] = Cache(_MAX_CACHE_BYTES, _size)

    def count(self, commit: str, actor: Actor, current_layout: Layout) -> int | None:
        """Return the number of changed documents that the actor may see.

        `commit` is compared to its merge base with the served branch. Returns None if there is no merge base,
        or if the configuration in one of the two commits is invalid. Raises GitError.
        """
        fork = self._fork(commit)
        if not fork:
            return None
        try:
            changed = self._between(fork, commit)
        except ConflictError:
            return None
        layouts = (current_layout, *changed.layouts)
        return len({name for path in changed.paths if (name := _document_at(path, layouts, actor))})

    def _fork(self, commit: str) -> str:
        key = head_commit(self._past.site.root), commit
        fork = self._forks.get(key)
        if fork is None:
            fork = merge_base(self._past.site.root, *key)
            self._forks.put(key, fork)
        return fork

    def _between(self, fork: str, commit: str) -> _ChangedFiles:
        if fork == commit:
            return _ChangedFiles((), ())
        changed = self._changed.get((fork, commit))
        if changed is None:
            paths = tuple(changed_files(self._past.site.root, fork, commit))
            commits = (fork, commit) if any(map(is_configuration, paths)) else (fork,)
            changed = _ChangedFiles(paths, tuple(self._past.layout(one) for one in commits))
            self._changed.put((fork, commit), changed)
        return changed


def _size(_: tuple[str, str], changed: _ChangedFiles) -> int:
    return _BYTES_PER_ENTRY + sum(60 + len(path) for path in changed.paths)


def _document_at(path: str, layouts: Iterable[Layout], actor: Actor) -> tuple[str, str] | None:
    claims = [claim for layout in layouts if (claim := layout.claim(path))]
    if not claims or not all(may_see_file(actor, claim) for claim in claims):
        return None
    return claims[0].type.uid, claims[0].name
