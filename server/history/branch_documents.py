"""Number of documents that each branch has changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from server.auth.draft_visibility import may_see_file
from server.auth.permissions import Actor
from server.bounded import Cache
from server.documents.document import DRAFT, PUBLISHED
from server.documents.path_rules import Layout, PathClaim
from server.errors import ConflictError
from server.history.past import PastStates
from server.history.versions import Version
from server.history.viewer import Viewer
from server.history.visible_changes import find_visible_changes
from server.index.budget import Budget
from server.site.configure import is_configuration
from server.site.site import State
from server.storage.git.branches import merge_base
from server.storage.git.log import Commit
from server.storage.git.refs import head_commit
from server.storage.git.times import CommitTimes
from server.storage.git.tree import changed_files
from server.storage.store import Store

_MAX_CACHE_BYTES = 4_000_000
_BYTES_PER_ENTRY = 400  # of an entry without its paths


@dataclass(frozen=True, slots=True)
class _ChangedFiles:
    """The changed files, by path with the action, and the path rules of the compared commits."""

    actions: tuple[tuple[str, str], ...]
    layouts: tuple[Layout, ...]


class BranchDocumentCounter:
    """Thread-safe counter of the documents that a branch has changed.

    Files are compared by blob id, so a document counts as changed even if only its formatting differs. Their
    values are compared only for actors from whom the document's content type may hide values: otherwise, the
    number would show that hidden values have changed.
    """

    def __init__(self, past: PastStates) -> None:
        self._past = past
        # Saves 2.5 ms for each branch.
        self._forks: Cache[tuple[str, str], str] = Cache(_MAX_CACHE_BYTES, lambda *_: _BYTES_PER_ENTRY)
        # Saves 5.5 ms for each branch.
        self._changed: Cache[tuple[str, str], _ChangedFiles] = Cache(_MAX_CACHE_BYTES, _size)

    def count(self, commit: str, actor: Actor, state: State, budget: Budget) -> int | None:
        """Return the number of changed documents that the actor may see. `state` is the served state.

        `commit` is compared to its merge base with the served branch. Returns None if there is no merge base,
        or if the configuration in one of the two commits is invalid. Raises GitError or LimitError.
        """
        fork = self._fork(commit)
        if not fork:
            return None
        try:
            changed = self._between(fork, commit)
        except ConflictError:
            return None
        layouts = (Layout(state.schema, state.settings), *changed.layouts)
        viewer = Viewer(actor, state).also_hiding(*(layout.schema for layout in changed.layouts))
        found: dict[int, list[tuple[PathClaim, Version]]] = {}  # by number of the layout that claims the path
        for path, action in changed.actions:
            claimed = _claim(path, layouts, actor)
            if claimed is not None:
                number, claim = claimed
                found.setdefault(number, []).append((claim, _version(fork, commit, path, action, claim)))
        names = set[tuple[str, str]]()
        for number, pairs in found.items():
            store = Store(
                self._past.site.root, layouts[number].schema, state.settings, CommitTimes().timestamps
            )
            versions = [version for _, version in pairs]
            viewers = [viewer] * len(versions)
            visible = find_visible_changes(store, versions, viewers, budget, default=False)
            names.update((c.type.uid, c.name) for (c, _), shown in zip(pairs, visible, strict=True) if shown)
        return len(names)

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
            files = changed_files(self._past.site.root, fork, commit)
            commits = (fork, commit) if any(map(is_configuration, files)) else (fork,)
            actions = tuple(
                (path, "create" if before is None else "delete" if after is None else "update")
                for path, (before, after) in files.items()
            )
            changed = _ChangedFiles(actions, tuple(self._past.layout(one) for one in commits))
            self._changed.put((fork, commit), changed)
        return changed


def _size(_: tuple[str, str], changed: _ChangedFiles) -> int:
    return _BYTES_PER_ENTRY + sum(130 + len(path) for path, _ in changed.actions)


def _claim(path: str, layouts: Sequence[Layout], actor: Actor) -> tuple[int, PathClaim] | None:
    claims = [(n, claim) for n, layout in enumerate(layouts) if (claim := layout.claim(path))]
    if not claims or not all(may_see_file(actor, claim) for _, claim in claims):
        return None
    return claims[0]


def _version(fork: str, commit: str, path: str, action: str, claim: PathClaim) -> Version:
    before = "" if action == "create" else path
    after = "" if action == "delete" else path
    made = Commit(commit, (fork,), "", "", 0, 0, "")
    status = DRAFT if claim.draft else PUBLISHED
    return Version(claim.type, made, fork, after, before, claim.locale, status, action)
