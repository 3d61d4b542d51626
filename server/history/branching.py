"""Branches of a site: list, create and delete them, compare them, write to them."""

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
    """The branches of a site's repository. Methods raise ConflictError in a site without commits."""

    def __init__(self, past: PastStates) -> None:
        self.past = past
        self.root = past.site.root

    def all(self) -> list[Branch]:
        """Return all branches, by name."""
        self.past.require_commits()
        return branches(self.root)

    def served(self) -> str:
        """Return the served branch, which is the checked-out one, or ""."""
        return checked_out(self.root)

    def get(self, name: str) -> Branch:
        """Return a branch. Raises NotFoundError."""
        branch = next((branch for branch in self.all() if branch.name == name), None)
        if branch is None:
            raise NotFoundError(f'There is no branch "{name[:100]}"')
        return branch

    def commit(self, name: str) -> str:
        """Return the last commit of a branch, or of the remote's branch as last fetched (`origin/main`).

        Raises NotFoundError.
        """
        settings = self.past.site.state.settings
        branch = settings.git.branch or self.served()
        is_remote = settings.git.remote and name == f"{settings.git.remote}/{branch}"
        if is_remote and not branch_commit(self.root, name):
            return tracked_commit(self.root, settings.git.remote, branch) or self.get(name).commit
        return self.get(name).commit

    def create(self, name: str, commit: str) -> Branch:
        """Create a branch at a commit.

        Raises ValidationError for an invalid name, and ConflictError if it is taken or there are too many
        branches.
        """
        if not is_branch_name(self.root, name):
            raise ValidationError(f'"{name[:100]}" can\'t be the name of a branch')
        if branch_commit(self.root, name):
            raise ConflictError(f'The branch "{name[:100]}" already exists')
        if find_commit(self.root, name) or read_time(name) is not None:
            raise ValidationError(f'"{name[:100]}" already names a commit, tag or time')
        limit, existing = self.past.site.state.settings.branches.max, self.all()
        similar = next((branch.name for branch in existing if _folded(branch.name) == _folded(name)), "")
        if similar:
            raise ConflictError(
                f'The branch "{similar[:100]}" differs only in case or accents, '
                "which some file systems ignore"
            )
        if len(existing) >= limit:
            raise ConflictError(f"There are {limit:,} branches already (branches.max); delete one first")
        if not move_branch(self.root, name, commit, "", "create"):
            raise ConflictError(f'The branch "{name[:100]}" conflicts with the name of an existing branch')
        return self.get(name)

    def delete(self, name: str) -> None:
        """Delete a branch, merged or not. Raises NotFoundError, and ConflictError if it is checked out."""
        if self.get(name).worktree or name == self.served():
            raise ConflictError(f'The branch "{name[:100]}" is checked out; check out another one first')
        if not delete_branch(self.root, name):
            raise ConflictError(f'git refused to delete the branch "{name[:100]}"; is it being rebased?')


def _folded(name: str) -> str:
    """Return a name as compared by file systems that ignore case and the encoding of accents."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


# --- changes --------------------------------------------------------------------------------------

Key = tuple[str, str, str, str]  # the uid of the type, documentId, locale and status


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A version that differs between two states, with the action and its changed attributes."""

    type: Type
    document_id: str
    locale: str
    status: str
    action: str
    attributes: dict[str, Difference]


def fork_of(past: PastStates, commit: str) -> str:
    """Return the last common commit of a branch and what is checked out. Raises ConflictError."""
    base = merge_base(past.site.root, head_commit(past.site.root), commit)
    if not base:
        raise ConflictError("The branch and the checked-out branch have no common commit")
    return base


def changed_documents(before: PastState, after: PastState, actor: Actor) -> list[DocumentChange]:
    """Return the documents that differ between two states and the actor may find, by type and id."""
    viewer = Viewer(actor, after.state)
    old, new = dict(differing(before, after)), dict(differing(after, before))
    changes = (_change(old.get(key), new.get(key), viewer) for key in sorted({*old, *new}))
    return [change for change in changes if change]


def differing(state: PastState, other: PastState) -> Iterator[tuple[Key, Document]]:
    """Yield the documents of a state whose files differ in the other state."""
    uids = {type_.uid for type_ in state.state.schema.content_types}
    for path, entry in state.known.entries.items():
        document = entry.document
        if document is None or state.known.blobs.get(path) == other.known.blobs.get(path):
            continue
        if document.type.uid in uids:
            yield (document.type.uid, document.document_id, document.locale, document.status), document


def _change(before: Document | None, after: Document | None, viewer: Viewer) -> DocumentChange | None:
    """Return the difference of a document as a viewer may see it, or None if nothing is visible."""
    document, actor = after or before, viewer.actor
    if document is None or not may_find(actor, document.type.uid):
        return None
    if document.status == DRAFT and not may_read_drafts(actor, document.type):
        return None
    attributes = differences(viewer.attributes(document.type), _values(before), _values(after), viewer)
    if before and after and not attributes:
        return None
    action = "update" if before and after else "create" if after else "delete"
    return DocumentChange(
        document.type, document.document_id, document.locale, document.status, action, attributes
    )


def _values(document: Document | None) -> Values | None:
    return dict(zip(document.type.attributes, document.values, strict=True)) if document else None


# --- earlier versions -----------------------------------------------------------------------------

MAX_SEARCHED_COMMITS = 100  # Most commits of a document that are searched for a version.


@dataclass(frozen=True, slots=True)
class EarlierVersions:
    """Earlier versions of documents on a branch whose head is the commit `head`, with its state."""

    past: PastStates
    head: str
    state: State

    def of(self, type_: Type, document_id: str, locale: str) -> Iterator[Document]:
        """Yield the versions of a document in a locale, newest first, read with the branch's schema."""
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
        """Return the files of a document, and the paths where its other version would be."""
        layout, claims = Layout(self.state.schema, self.state.settings), self.state.snapshot.claims
        keys = ((type_.uid, document_id, locale, status) for status in (PUBLISHED, DRAFT))
        claimed_paths = [document.path for key in keys for document in claims.get(key, ())]
        siblings = (layout.sibling(path, draft=draft) for path in claimed_paths for draft in (False, True))
        paths = dict.fromkeys((*claimed_paths, *filter(None, siblings)))
        return tuple(path for path in paths if "\n" not in path)

    def _commits(self, paths: Sequence[str]) -> list[Commit]:
        """Return the commits that changed any of some files, newest first."""
        self.past.log.update(self.head)
        return [commit for commit in self.past.log.before(self.head) if any(_touched_paths(commit, paths))]


def _touched_paths(commit: Commit, paths: Sequence[str]) -> Iterator[str]:
    """Yield the given paths that a commit changed."""
    for change in commit.changes:
        yield from (path for path in (change.path, change.before) if path in paths)


def _times(commits: Sequence[Commit], paths: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the times of the first and last commit of each file, as `storage.git.times` does."""
    times: dict[str, tuple[int, int]] = {}
    for commit in commits:
        for path in _touched_paths(commit, paths):
            first, last = times.get(path, (commit.committed, commit.committed))
            times[path] = min(first, commit.committed), last
    return times


# --- write ----------------------------------------------------------------------------------------

Request = TypeVar("Request")
Result = TypeVar("Result")
MAX_ATTEMPTS = 20  # Attempts to prepare a write while other writers move the branch.


class CommittedFiles:
    """Reader of a commit's files for `Changeset`."""

    def __init__(self, root: Path, blobs: Blobs) -> None:
        self.root, self.blobs = root, blobs

    def signature(self, path: str) -> Signature | None:
        """Return a signature that depends only on the size; None if there is no such file."""
        blob = self.blobs.get(path)
        return size_signature(blob.size) if blob else None

    def read(self, path: str) -> tuple[bytes, Signature]:
        """Return the content of a file.

        Raises FileNotFoundError, and ConflictError if a partial clone lacks it.
        """
        blob = self.blobs.get(path)
        if blob is None:
            raise FileNotFoundError(path)
        data = next(read_blobs(self.root, [blob.id]))
        if data is None:
            raise ConflictError(f"{path} is not in this clone of the repository")
        return data, size_signature(len(data))

    def is_below_file(self, path: str) -> bool:
        """Return whether a folder of the path is a file."""
        return any(folder in self.blobs for folder in folders_above(path))


class BranchWriter:
    """Writer for branches of a site. Thread-safe and multi-process-safe."""

    def __init__(self, past: PastStates, branches: Branches) -> None:
        self.past, self.branches = past, branches
        self._lock = threading.Lock()  # Serializes threads, so that they don't prepare writes that conflict.

    def state(self, name: str, today: Settings) -> State:
        """Return the state of a branch that can be written to.

        Raises NotFoundError, and ConflictError if it is checked out, because its files would no longer match.
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
        """Let `prepare` change files of a branch, like `Site.write` does for the served one.

        Returns the new state, the result of `prepare`, and the branch's commit. Raises the errors of `state`
        and `prepare`, StorageError, and BusyError if the branch moves during each attempt.
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
        raise BusyError("The branch kept changing while this write was prepared; try again")

    def preview(
        self, name: str, prepare: Callable[[Request, Context], Result], request: Request, today: Settings
    ) -> tuple[list[Write], Result]:
        """Return the files that `write` would change, and the result of `prepare`."""
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
