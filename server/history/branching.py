"""Branches: creating, comparing and deleting them, and writing to them."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import Actor, may_find
from server.config.model import Settings
from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.path_rules import Layout
from server.documents.timestamps import now
from server.errors import (
    ABOUT_BRANCH,
    CHECKED_OUT,
    BranchCheckedOutError,
    BusyError,
    ConflictError,
    NotFoundError,
    PreconditionError,
    ValidationError,
)
from server.formats.normal_form import normalize
from server.history.commit_files import Blobs
from server.history.differences import Difference, Values, differences
from server.history.past import PastState, PastStates
from server.history.titles import title_for
from server.history.viewer import Viewer
from server.paths import UPLOADS, state_folder
from server.schema.model import UPLOAD, Schema, Type
from server.site.commits.message import Authorship, commit_message_for, with_trailers, written_documents
from server.site.site import State
from server.storage.changeset import Changeset
from server.storage.file_lock import FileLock
from server.storage.files import Signature, size_signature, storage_error
from server.storage.git.branch_commit import CommitMetadata, make_commit
from server.storage.git.branches import (
    Branch,
    branches,
    delete_branch,
    is_being_rebased,
    is_branch_name,
    merge_base,
    merged_branches,
    move_branch,
    wait_for_branch_lock,
)
from server.storage.git.checkout import folders_above
from server.storage.git.checkout_watch import BranchMove, BranchMover
from server.storage.git.commit import Person
from server.storage.git.log import Commit
from server.storage.git.refs import branch_commit, checked_out_branch, find_commit, head_commit, parse_time
from server.storage.git.remote import tracked_commit
from server.storage.git.times import CommitTimes
from server.storage.git.tree import read_blobs, read_named
from server.storage.intent import Write
from server.storage.media import SIDECAR_SUFFIX, media_key
from server.storage.read import MAX_FILE_BYTES
from server.storage.store import Store
from server.write.context import Context
from server.write.precondition import MAX_IF_MATCH_CHARS

CREATION_TIMEOUT_S = 5.0  # Maximum wait while other processes create branches.

# --- branches -------------------------------------------------------------------------------------


class Branches:
    """The branches of a site's repository.

    Methods that look up a branch raise ConflictError if the repository has no commits.
    """

    def __init__(self, past: PastStates) -> None:
        self.past = past
        self.root = past.site.root

    def all(self) -> list[Branch]:
        self.past.require_commits()
        return branches(self.root)

    def merged(self) -> frozenset[str]:
        return merged_branches(self.root)

    def served(self) -> str:
        """Return the name of the checked-out branch, or "" if none is checked out."""
        return checked_out_branch(self.root)

    def get(self, name: str) -> Branch:
        branch = next((branch for branch in self.all() if branch.name == name), None)
        if branch is None:
            raise NotFoundError(f'The branch "{name[:100]}" does not exist', {ABOUT_BRANCH: name})
        return branch

    def commit(self, name: str) -> str:
        """Return the id of the last commit on a branch.

        `name` can also be a remote branch, such as `origin/main`. The result is then the last commit that was
        fetched. Raises NotFoundError if the branch does not exist.
        """
        settings = self.past.site.state.settings
        branch = settings.git.branch or self.served()
        is_remote = settings.git.remote and name == f"{settings.git.remote}/{branch}"
        if is_remote and not branch_commit(self.root, name):
            return tracked_commit(self.root, settings.git.remote, branch) or self.get(name).commit
        return self.get(name).commit

    def create(self, name: str, commit: str) -> Branch:
        """Create a branch that points to a commit.

        Raises ValidationError if the name is invalid or already refers to a commit, tag or time,
        ConflictError if it is in use or there are too many branches, BusyError if other processes block the
        request for too long, or StorageError if the lock file can't be written.
        """
        try:
            lock = FileLock(state_folder(self.root) / "branch-lock")
            with lock.held(CREATION_TIMEOUT_S) as is_held:
                if not is_held:
                    raise BusyError
                return self._create(name, commit)
        except OSError as error:
            raise storage_error("The branch can't be created", error, self.root) from error

    def _create(self, name: str, commit: str) -> Branch:
        if not is_branch_name(self.root, name):
            raise ValidationError(f'"{name[:100]}" is not a valid branch name')
        if branch_commit(self.root, name):
            raise ConflictError(f'The branch "{name[:100]}" already exists', {ABOUT_BRANCH: name})
        if find_commit(self.root, name) or parse_time(name) is not None:
            raise ValidationError(
                f'"{name[:100]}" can\'t be a branch name, because it already identifies a commit, tag or time'
            )
        limit, existing = self.past.site.state.settings.branches.max, self.all()
        similar = next((branch.name for branch in existing if _folded(branch.name) == _folded(name)), "")
        if similar:
            raise ConflictError(
                f'The existing branch "{similar[:100]}" differs only in case or accents, '
                "which some file systems ignore"
            )
        if len(existing) >= limit:
            raise ConflictError(
                f"There are already {limit:,} branches, the maximum set by branches.max; delete one first"
            )
        if not move_branch(self.root, name, commit, "", "create"):
            raise ConflictError(f'The branch "{name[:100]}" conflicts with the name of an existing branch')
        return self.get(name)

    def require_not_checked_out(self, branch: Branch) -> None:
        """Raise BranchCheckedOutError if a branch is checked out in a folder.

        A write to the branch would not update the files in that folder.
        """
        if not branch.worktree:
            return
        where = "a different folder; write to it there"
        if branch.name == self.served():
            where = "the site's folder now; repeat the request to write to the files there"
        raise BranchCheckedOutError(
            f'The branch "{branch.name[:100]}" is checked out in {where}', {CHECKED_OUT: branch.name}
        )

    def delete(self, name: str, if_match: str | None = None) -> None:
        """Delete a branch, even if it has not been merged.

        Raises NotFoundError if the branch does not exist, PreconditionError if `if_match` does not contain
        the id of its last commit, or ConflictError if it is checked out or being rebased.
        """
        is_deleted = False
        while not is_deleted:  # If somebody writes to the branch first, it is read and compared again.
            branch = self.get(name)
            require_last_commit(if_match, name, branch.commit)
            if branch.worktree or name == self.served() or is_being_rebased(self.root, name):
                raise ConflictError(
                    f'The branch "{name[:100]}" can\'t be deleted while it is checked out or being rebased'
                )
            is_deleted = delete_branch(self.root, name, branch.commit)


def require_last_commit(if_match: str | None, name: str, commit: str) -> None:
    if if_match is None or if_match.strip() == "*":
        return
    if commit not in (tag.strip().strip('"') for tag in if_match[:MAX_IF_MATCH_CHARS].split(",")):
        raise PreconditionError(
            f'The branch "{name[:100]}" has changed; read its changes again', {"commit": commit}
        )


def _folded(name: str) -> str:
    # Some file systems ignore differences in case and accents.
    return normalize("NFC", normalize("NFD", name).casefold())


# --- changes --------------------------------------------------------------------------------------

Key = tuple[str, str, str, str]  # uid of the content type, documentId, locale, status


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A version of a document that differs between two states of the site.

    `title` is None if the document has no title, or if the actor may not see the title.
    """

    type: Type
    document_id: str
    locale: str
    status: str
    action: str
    attributes: dict[str, Difference]
    title: str | None


def fork_of(past: PastStates, commit: str) -> str:
    base = merge_base(past.site.root, head_commit(past.site.root), commit)
    if not base:
        raise ConflictError("The branch and the checked-out branch have no common ancestor")
    return base


def changed_documents(
    before: PastState, after: PastState, actor: Actor, served_schema: Schema
) -> list[DocumentChange]:
    """Return the document versions that differ between two states of the site.

    Omits everything that the schema of either state, or `served_schema`, hides from the actor.
    """
    viewer = Viewer(actor, after.state, (before.state.schema, served_schema))
    old, new = dict(differing_documents(before, after)), dict(differing_documents(after, before))
    changes = (_document_change(old.get(key), new.get(key), viewer) for key in sorted({*old, *new}))
    return [change for change in changes if change]


@dataclass(frozen=True, slots=True)
class MediaChange:
    """A media file or description file that differs between two states of the site."""

    path: str
    action: str
    attributes: dict[str, Difference]


def changed_media(
    before: PastState, after: PastState, actor: Actor, served_schema: Schema
) -> list[MediaChange]:
    """Return the media files and description files that differ between two states of the site.

    Returns [] if the actor does not have the `find` permission for media files.
    """
    if not may_find(actor, UPLOAD):
        return []
    old, new = (_media_blobs(state) for state in (before, after))
    paths = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
    viewer = Viewer(actor, after.state, (before.state.schema, served_schema))
    return [
        MediaChange(
            path,
            "create" if path not in old else "update" if path in new else "delete",
            _changed_description(path, before, after, viewer),
        )
        for path in paths
    ]


_TEXTS = ("alternativeText", "caption", "focalPoint")


def _changed_description(
    path: str, before: PastState, after: PastState, viewer: Viewer
) -> dict[str, Difference]:
    key = media_key(path.removesuffix(SIDECAR_SUFFIX))
    if not path.endswith(SIDECAR_SUFFIX) or key is None:
        return {}
    old, new = (past.state.snapshot.media.get(key) for past in (before, after))
    file = new or old
    if file is None:
        return {}
    # A new or deleted file is listed with its path, so its name and size would add nothing.
    names = _TEXTS if old is None or new is None else ("name", *_TEXTS)
    described = (a for a in viewer.attributes(file.type) if a.name in names)
    return differences(described, _values(old), _values(new), viewer)


def _media_blobs(state: PastState) -> Blobs:
    return {path: blob for path, blob in state.known.blobs.items() if path.startswith(f"{UPLOADS}/")}


def differing_documents(past: PastState, other: PastState) -> Iterator[tuple[Key, Document]]:
    """Yield each document in `past` whose file is missing or has different content in `other`."""
    uids = {type_.uid for type_ in past.state.schema.content_types}
    for path, entry in past.known.entries.items():
        document = entry.document
        if document is None or past.known.blobs.get(path) == other.known.blobs.get(path):
            continue
        if document.type.uid in uids:
            yield (document.type.uid, document.document_id, document.locale, document.status), document


def _document_change(
    before: Document | None, after: Document | None, viewer: Viewer
) -> DocumentChange | None:
    document, actor = after or before, viewer.actor
    if document is None or not may_find(actor, document.type.uid):
        return None
    if document.status == DRAFT and not may_read_drafts(actor, document.type):
        return None
    attributes = differences(viewer.attributes(document.type), _values(before), _values(after), viewer)
    if before and after and not attributes:
        return None
    action = "update" if before and after else "create" if after else "delete"
    key = document.type, document.document_id, document.locale, document.status
    return DocumentChange(*key, action, attributes, title_for(viewer, document))


def _values(document: Document | None) -> Values | None:
    return dict(zip(document.type.attributes, document.values, strict=True)) if document else None


# --- earlier versions -----------------------------------------------------------------------------

MAX_SEARCHED_COMMITS = 100  # limit for each document


@dataclass(frozen=True, slots=True)
class EarlierVersions:
    """Reader of earlier versions of documents, in the history of the commit `head`."""

    past: PastStates
    head: str
    state: State

    def versions_of(self, type_: Type, document_id: str, locale: str) -> Iterator[Document]:
        """Yield a document's earlier versions in one locale, newest first.

        Only the last MAX_SEARCHED_COMMITS commits that changed the document's files are searched.
        """
        root, schema, settings = self.past.site.root, self.state.schema, self.state.settings
        paths = self._paths(type_, document_id, locale)
        commits = self._commits(paths)
        names = [f"{commit.id}:./{path}" for commit in commits[:MAX_SEARCHED_COMMITS] for path in paths]
        read = read_named(root, names, MAX_FILE_BYTES)
        for at, commit in enumerate(commits[:MAX_SEARCHED_COMMITS]):
            times = CommitTimes(commit.id, _commit_times(commits[at:], paths))
            store = Store(root, schema, settings, times.timestamps)
            for path in paths:
                data = next(read)
                entry = store.parse_file(path, data, size_signature(len(data))) if data is not None else None
                document = entry.document if entry else None
                if document and (document.document_id, document.locale) == (document_id, locale):
                    yield document

    def _paths(self, type_: Type, document_id: str, locale: str) -> tuple[str, ...]:
        # This includes the path that a missing draft or published version would have.
        layout, claims = Layout(self.state.schema, self.state.settings), self.state.snapshot.claims
        keys = ((type_.uid, document_id, locale, status) for status in (PUBLISHED, DRAFT))
        claimed_paths = [document.path for key in keys for document in claims.get(key, ())]
        siblings = (layout.sibling(path, draft=draft) for path in claimed_paths for draft in (False, True))
        paths = dict.fromkeys((*claimed_paths, *filter(None, siblings)))
        return tuple(path for path in paths if "\n" not in path)

    def _commits(self, paths: Sequence[str]) -> list[Commit]:
        self.past.log.update(self.head)
        return [
            commit for commit in self.past.log.history_of(self.head) if any(_touched_paths(commit, paths))
        ]


def _touched_paths(commit: Commit, paths: Sequence[str]) -> Iterator[str]:
    for change in commit.changes:
        yield from (path for path in (change.path, change.before) if path in paths)


def _commit_times(commits: Sequence[Commit], paths: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return when each file was first and last changed by one of the commits, in seconds since 1970."""
    times: dict[str, tuple[int, int]] = {}
    for commit in commits:
        for path in _touched_paths(commit, paths):
            first, last = times.get(path, (commit.committed, commit.committed))
            times[path] = min(first, commit.committed), last
    return times


# --- write ----------------------------------------------------------------------------------------

Request = TypeVar("Request")
Result = TypeVar("Result")
MAX_ATTEMPTS = 20  # A write is retried if another writer moves the branch first.


class CommittedFiles:
    """The files of a commit, which a `Changeset` can read instead of the files on disk."""

    def __init__(self, root: Path, blobs: Blobs) -> None:
        self.root, self.blobs = root, blobs

    def signature(self, path: str) -> Signature | None:
        blob = self.blobs.get(path)
        return size_signature(blob.size) if blob else None

    def read(self, path: str) -> tuple[bytes, Signature]:
        """Return a file's content and signature.

        Raises FileNotFoundError if the commit does not contain the file, or ConflictError if the repository
        is a partial clone without the file's content.
        """
        blob = self.blobs.get(path)
        if blob is None:
            raise FileNotFoundError(path)
        data = next(read_blobs(self.root, [blob.id]))
        if data is None:
            raise ConflictError(f"{path} is not in this clone of the repository")
        return data, size_signature(len(data))

    def is_below_file(self, path: str) -> bool:
        return any(folder in self.blobs for folder in folders_above(path))

    def list_files(self, folders: Iterable[str]) -> Iterable[str]:
        starts = tuple(f"{folder}/" if folder else "" for folder in folders)
        return (path for path in self.blobs if path.startswith(starts))


class BranchWriter:
    """Writer for branches that are not checked out. Threads and processes may use it at the same time."""

    def __init__(self, past: PastStates, branches: Branches) -> None:
        self.past, self.branches = past, branches
        self._guard = threading.Lock()
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

    def state(self, name: str, current_settings: Settings) -> State:
        return self.past.state_for_request(self._head(name), current_settings)

    def write(
        self,
        name: str,
        prepare: Callable[[Request, Context], Result],
        request: Request,
        authorship: Authorship,
        current_settings: Settings,
    ) -> tuple[State, Result, str]:
        """Prepare a write, and commit it to the branch `name`.

        Returns the branch's new state, the result of `prepare`, and the commit id. Raises
        BranchCheckedOutError if the branch is checked out, BusyError if it keeps changing, or GitBusyError if
        git has locked it.
        """
        with self._lock_of(name):
            for _ in range(MAX_ATTEMPTS):
                mover, head = BranchMover(self.branches.root), self._head(name)
                wait_for_branch_lock(self.branches.root, name)
                writes, result = self._prepare(head, prepare, request, current_settings)
                if not writes:
                    return self.past.state_for_request(head, current_settings), result, head
                signed = self._sign(head, writes, authorship, result, current_settings)
                files = {write.path: write.source or write.data for write in writes}
                commit = make_commit(self.branches.root, (head,), files, signed)
                move = BranchMove(name, commit, head, files)
                if not mover.move(move, "write"):
                    continue
                # This comes first, because `confirm_or_revert` waits.
                state = self.past.state_for_request(commit, current_settings)
                if mover.confirm_or_revert(move):
                    return state, result, commit
        raise BusyError("The branch changed repeatedly while this write was being prepared; try again")

    def _lock_of(self, name: str) -> threading.Lock:
        # Concurrent writes to one branch would fail. A branch that git has locked must not delay the others.
        with self._guard:
            return self._locks.setdefault(name, threading.Lock())

    def preview(
        self,
        name: str,
        prepare: Callable[[Request, Context], Result],
        request: Request,
        current_settings: Settings,
    ) -> tuple[list[Write], Result]:
        return self._prepare(self._head(name), prepare, request, current_settings)

    def _head(self, name: str) -> str:
        branch = self.branches.get(name)
        self.branches.require_not_checked_out(branch)
        return branch.commit

    def _prepare(
        self,
        head: str,
        prepare: Callable[[Request, Context], Result],
        request: Request,
        current_settings: Settings,
    ) -> tuple[list[Write], Result]:
        root, state = self.branches.root, self.past.state_for_request(head, current_settings)
        known = self.past.at(head).known
        changeset = Changeset(root, CommittedFiles(root, known.blobs))
        broken = {path: entry for path, entry in known.entries.items() if entry.problems and entry.error}
        store = Store(root, state.schema, state.settings, CommitTimes().timestamps)
        recent = EarlierVersions(self.past, head, state).versions_of
        context = Context(state.snapshot, state.settings, store, changeset, now(), recent, broken=broken)
        result = prepare(request, context)
        changeset.require_writable()
        return changeset.writes(), result

    def _sign(
        self,
        head: str,
        writes: list[Write],
        authorship: Authorship,
        result: object,
        current_settings: Settings,
    ) -> CommitMetadata:
        past = self.past.at(head)
        state = past.state
        store = Store(self.branches.root, state.schema, state.settings, CommitTimes().timestamps)
        documents = written_documents(writes, past.known.entries, state.snapshot, store)
        message = with_trailers(
            commit_message_for(documents, authorship, result), authorship.actor, [d.name for d in documents]
        )
        committer = Person.parse(current_settings.git.committer)
        return CommitMetadata(message, committer.author(authorship.name, authorship.email), committer)
