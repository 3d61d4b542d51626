"""The versions of a document that the commits of a branch have, so that a change of one can be merged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.path_rules import Layout
from server.history.past import PastStates
from server.schema.model import Type
from server.site.site import State
from server.storage.files import size_signature
from server.storage.git.log import Commit
from server.storage.git.times import CommitTimes
from server.storage.git.tree import read_named
from server.storage.read import MAX_BYTES
from server.storage.store import Store

MOST = 100  # commits that have changed a document, among which a version is looked for


@dataclass(frozen=True, slots=True)
class EarlierVersions:
    """The earlier versions of the documents of a branch that is at the commit `head`, in a state."""

    past: PastStates
    head: str
    state: State

    def of(self, type_: Type, document_id: str, locale: str) -> Iterator[Document]:
        """The versions of a document in a locale, the newest first, as the schema of the branch has them."""
        root, schema, settings = self.past.site.root, self.state.schema, self.state.settings
        paths = self._paths(type_, document_id, locale)
        commits = self._commits(paths)
        names = [f"{commit.id}:./{path}" for commit in commits[:MOST] for path in paths]
        read = read_named(root, names, MAX_BYTES)
        for at, commit in enumerate(commits[:MOST]):
            times = CommitTimes(commit.id, _times(commits[at:], paths))
            store = Store(root, schema, settings, times.timestamps)
            for path in paths:
                data = next(read)
                entry = store.entry(path, data, size_signature(len(data))) if data is not None else None
                document = entry.document if entry else None
                if document and (document.document_id, document.locale) == (document_id, locale):
                    yield document

    def _paths(self, type_: Type, document_id: str, locale: str) -> tuple[str, ...]:
        """The files of a document, and where its other version would be."""
        layout, claims = Layout(self.state.schema, self.state.settings), self.state.snapshot.claims
        keys = ((type_.uid, document_id, locale, status) for status in (PUBLISHED, DRAFT))
        known = [document.path for key in keys for document in claims.get(key, ())]
        beside = (layout.sibling(path, draft=draft) for path in known for draft in (False, True))
        found = dict.fromkeys((*known, *filter(None, beside)))
        return tuple(path for path in found if "\n" not in path)

    def _commits(self, paths: Sequence[str]) -> list[Commit]:
        """The commits that have changed some files, the newest first."""
        self.past.log.update(self.head)
        return [commit for commit in self.past.log.before(self.head) if any(_touched(commit, paths))]


def _touched(commit: Commit, paths: Sequence[str]) -> Iterator[str]:
    """Those of some paths that a commit has changed."""
    for change in commit.changes:
        yield from (path for path in (change.path, change.before) if path in paths)


def _times(commits: Sequence[Commit], paths: Sequence[str]) -> dict[str, tuple[int, int]]:
    """When files were first and last committed, as `storage.git.times` has it of all files."""
    found: dict[str, tuple[int, int]] = {}
    for commit in commits:
        for path in _touched(commit, paths):
            first, last = found.get(path, (commit.committed, commit.committed))
            found[path] = min(first, commit.committed), last
    return found
