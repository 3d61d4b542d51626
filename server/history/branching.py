"""The branches of a site, each a state of all content that need not be the one that is served."""

import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import Actor, may_find
from server.config.model import Settings
from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.path_rules import Layout
from server.documents.timestamps import now
from server.errors import BusyError, ConflictError, NotFoundError, ValidationError
from server.history.commit_files import Blobs
from server.history.differences import Difference, Values, differences
from server.history.past import PastState, PastStates
from server.history.viewer import Viewer
from server.schema.model import Type
from server.site.commits.message import Authorship, message_of, touched_documents, with_trailers
from server.site.site import State
from server.storage.changeset import Changeset
from server.storage.files import Signature, size_signature
from server.storage.git.branch_commit import Signed, make_commit
from server.storage.git.branches import (
    Branch,
    branches,
    delete_branch,
    is_branch_name,
    merge_base,
    move_branch,
)
from server.storage.git.checkout import folders_above
from server.storage.git.commit import Person
from server.storage.git.log import Commit
from server.storage.git.refs import branch_commit, checked_out, find_commit, head_commit, read_time
from server.storage.git.remote import tracked_commit
from server.storage.git.times import CommitTimes
from server.storage.git.tree import read_blobs, read_named
from server.storage.intent import Write
from server.storage.read import MAX_FILE_BYTES
from server.storage.store import Store
from server.write.context import Context

# --- branches -------------------------------------------------------------------------------------


class Branches:
    """The branches of a site's repository. Everything raises ConflictError in a site without commits."""

    def __init__(self, past: PastStates) -> None:
        self.past = past
        self.root = past.site.root

    def all(self) -> list[Branch]:
        """Every branch, by name."""
        self.past.require_commits()
        return branches(self.root)

    def served(self) -> str:
        """The branch that is served: the one that is checked out; "" where that is none."""
        return checked_out(self.root)

    def get(self, name: str) -> Branch:
        """A branch. Raises NotFoundError where there is none of the name."""
        found = next((branch for branch in self.all() if branch.name == name), None)
        if found is None:
            raise NotFoundError(f'There is no branch "{name[:100]}"')
        return found

    def commit(self, name: str) -> str:
        """The last commit of a branch, or of that of the git remote (`origin/main`) as it was last fetched.

        Raises NotFoundError.
        """
        settings = self.past.site.state.settings
        branch = settings.git.branch or self.served()
        is_remote = settings.git.remote and name == f"{settings.git.remote}/{branch}"
        if is_remote and not branch_commit(self.root, name):
            return tracked_commit(self.root, settings.git.remote, branch) or self.get(name).commit
        return self.get(name).commit

    def create(self, name: str, commit: str) -> Branch:
        """Make a branch of a commit.

        Raises ValidationError for its name, ConflictError where it is taken or there are too many branches.
        """
        if not is_branch_name(self.root, name):
            raise ValidationError(f'"{name[:100]}" can\'t be the name of a branch')
        if branch_commit(self.root, name):
            raise ConflictError(f'There is a branch "{name[:100]}" already')
        if find_commit(self.root, name) or read_time(name) is not None:
            raise ValidationError(f'"{name[:100]}" means a commit, tag or time already')
        most, taken = self.past.site.state.settings.branches.max, self.all()
        alike = next((branch.name for branch in taken if _folded(branch.name) == _folded(name)), "")
        if alike:
            raise ConflictError(
                f'The branch "{alike[:100]}" differs only in case or accents, which some file systems ignore'
            )
        if len(taken) >= most:
            raise ConflictError(f"There are {most:,} branches already (branches.max); delete one first")
        if not move_branch(self.root, name, commit, "", "create"):
            raise ConflictError(f'The branch "{name[:100]}" can\'t be made beside those that there are')
        return self.get(name)

    def delete(self, name: str) -> None:
        """Delete a branch, merged or not. Raises NotFoundError, and ConflictError where it is checked out."""
        if self.get(name).worktree or name == self.served():
            raise ConflictError(f'The branch "{name[:100]}" is checked out; check out another one first')
        if not delete_branch(self.root, name):
            raise ConflictError(f'git does not delete the branch "{name[:100]}" now; is it being rebased?')


def _folded(name: str) -> str:
    """Return a name as file systems compare it that ignore case, and how accents are encoded."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


# --- changes --------------------------------------------------------------------------------------

Key = tuple[str, str, str, str]  # the uid of the type, documentId, locale and status


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """One version of a document that differs: what was done to it, and its attributes before and after."""

    type: Type
    document_id: str
    locale: str
    status: str
    action: str
    attributes: dict[str, Difference]


def fork_of(past: PastStates, commit: str) -> str:
    """The last commit that a branch and what is checked out have in common. Raises ConflictError."""
    found = merge_base(past.site.root, head_commit(past.site.root), commit)
    if not found:
        raise ConflictError("The branch has no commit in common with what is checked out")
    return found


def changed_documents(before: PastState, after: PastState, actor: Actor) -> list[DocumentChange]:
    """The documents that differ between two states, of those that the actor may find; by type and id."""
    viewer = Viewer(actor, after.state)
    old, new = dict(differing(before, after)), dict(differing(after, before))
    found = (_change(old.get(key), new.get(key), viewer) for key in sorted({*old, *new}))
    return [change for change in found if change]


def differing(state: PastState, other: PastState) -> Iterator[tuple[Key, Document]]:
    """The documents of a state whose files are not the same in another one."""
    uids = {type_.uid for type_ in state.state.schema.content_types}
    for path, entry in state.known.entries.items():
        document = entry.document
        if document is None or state.known.blobs.get(path) == other.known.blobs.get(path):
            continue
        if document.type.uid in uids:
            yield (document.type.uid, document.document_id, document.locale, document.status), document


def _change(before: Document | None, after: Document | None, viewer: Viewer) -> DocumentChange | None:
    """How a document differs, as somebody may see it; None where there is nothing that they may see."""
    one, actor = after or before, viewer.actor
    if one is None or not may_find(actor, one.type.uid):
        return None
    if one.status == DRAFT and not may_read_drafts(actor, one.type):
        return None
    found = differences(viewer.attributes(one.type), _values(before), _values(after), viewer)
    if before and after and not found:
        return None
    action = "update" if before and after else "create" if after else "delete"
    return DocumentChange(one.type, one.document_id, one.locale, one.status, action, found)


def _values(document: Document | None) -> Values | None:
    return dict(zip(document.type.attributes, document.values, strict=True)) if document else None


# --- earlier --------------------------------------------------------------------------------------

MAX_SEARCHED_COMMITS = 100  # Commits that changed a document, among which a version is searched.


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
        names = [f"{commit.id}:./{path}" for commit in commits[:MAX_SEARCHED_COMMITS] for path in paths]
        read = read_named(root, names, MAX_FILE_BYTES)
        for at, commit in enumerate(commits[:MAX_SEARCHED_COMMITS]):
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
        return [commit for commit in self.past.log.before(self.head) if any(_touched_paths(commit, paths))]


def _touched_paths(commit: Commit, paths: Sequence[str]) -> Iterator[str]:
    """Those of some paths that a commit has changed."""
    for change in commit.changes:
        yield from (path for path in (change.path, change.before) if path in paths)


def _times(commits: Sequence[Commit], paths: Sequence[str]) -> dict[str, tuple[int, int]]:
    """When files were first and last committed, as `storage.git.times` has it of all files."""
    found: dict[str, tuple[int, int]] = {}
    for commit in commits:
        for path in _touched_paths(commit, paths):
            first, last = found.get(path, (commit.committed, commit.committed))
            found[path] = min(first, commit.committed), last
    return found


# --- write ----------------------------------------------------------------------------------------

Request = TypeVar("Request")
Result = TypeVar("Result")
MAX_ATTEMPTS = 20  # Attempts to prepare a write while others move the branch.


class CommittedFiles:
    """The files of a commit, as a `Changeset` reads files."""

    def __init__(self, root: Path, blobs: Blobs) -> None:
        self.root, self.blobs = root, blobs

    def signature(self, path: str) -> Signature | None:
        """What differs where the size does; None where there is no such file."""
        blob = self.blobs.get(path)
        return size_signature(blob.size) if blob else None

    def read(self, path: str) -> tuple[bytes, Signature]:
        """What is in a file. Raises FileNotFoundError, and ConflictError where a partial clone lacks it."""
        blob = self.blobs.get(path)
        if blob is None:
            raise FileNotFoundError(path)
        data = next(read_blobs(self.root, [blob.id]))
        if data is None:
            raise ConflictError(f"{path} is not in this clone of the repository")
        return data, size_signature(len(data))

    def is_below_file(self, path: str) -> bool:
        """Whether a file is where a path has a folder."""
        return any(folder in self.blobs for folder in folders_above(path))


class BranchWriter:
    """Writes to the branches of a site. Safe to use from many threads, and beside other processes."""

    def __init__(self, past: PastStates, branches: Branches) -> None:
        self.past, self.branches = past, branches
        self._lock = threading.Lock()  # Threads wait for each other instead of preparing a write in vain.

    def state(self, name: str, today: Settings) -> State:
        """The state of a branch that can be written to.

        Raises NotFoundError, and ConflictError where it is checked out: its files would no longer fit it.
        """
        return self.past.answered(self._head(name), today)

    def write(
        self,
        name: str,
        prepare: Callable[[Request, Context], Result],
        request: Request,
        by: Authorship,
        today: Settings,
    ) -> tuple[State, Result, str]:
        """Let `prepare` change files of a branch, as `Site.write` does with those of the site.

        Returns the state after it, what `prepare` returned, and the commit that the branch is at. Raises what
        `state` and `prepare` raise, StorageError, and BusyError where others were faster each time.
        """
        with self._lock:
            for _ in range(MAX_ATTEMPTS):
                head = self._head(name)
                writes, result = self._prepare(head, prepare, request, today)
                if not writes:
                    return self.past.answered(head, today), result, head
                signed = self._sign(head, writes, by, result, today)
                files = {write.path: write.source or write.data for write in writes}
                commit = make_commit(self.branches.root, (head,), files, signed)
                if move_branch(self.branches.root, name, commit, head, "write"):
                    return self.past.answered(commit, today), result, commit
        raise BusyError("Others changed the branch each time that this write was ready; try again")

    def preview(
        self, name: str, prepare: Callable[[Request, Context], Result], request: Request, today: Settings
    ) -> tuple[list[Write], Result]:
        """The files that `write` would change, and what `prepare` returns."""
        return self._prepare(self._head(name), prepare, request, today)

    def _head(self, name: str) -> str:
        branch = self.branches.get(name)
        if branch.worktree:
            raise ConflictError(f'The branch "{name}" is checked out in another folder; write to it there')
        return branch.commit

    def _prepare(
        self, head: str, prepare: Callable[[Request, Context], Result], request: Request, today: Settings
    ) -> tuple[list[Write], Result]:
        root, state = self.branches.root, self.past.answered(head, today)
        changeset = Changeset(root, CommittedFiles(root, self.past.at(head).known.blobs))
        store = Store(root, state.schema, state.settings, CommitTimes().timestamps)
        recent = EarlierVersions(self.past, head, state).of
        context = Context(state.snapshot, state.settings, store, changeset, now(), recent)
        result = prepare(request, context)
        changeset.require_sound()
        return changeset.writes(), result

    def _sign(
        self, head: str, writes: list[Write], by: Authorship, result: object, today: Settings
    ) -> Signed:
        past = self.past.at(head)
        state = past.state
        store = Store(self.branches.root, state.schema, state.settings, CommitTimes().timestamps)
        documents = touched_documents(writes, past.known.entries, state.snapshot, store)
        message = with_trailers(message_of(documents, by, result), by.actor, [d.name for d in documents])
        committer = Person.of(today.git.committer)
        return Signed(message, Person(by.name, by.email or committer.email), committer)
