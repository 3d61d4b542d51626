"""Writes of content to a branch that is not the one that is served: one commit each, made of git's objects.

What is written is validated against the state of the branch, as a write of the site is against its own. The
branch moves in one step, from the commit that the write was prepared on: where somebody else has moved it
meanwhile, the write is prepared again.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from server.config.model import Settings
from server.documents.timestamps import now
from server.errors import BusyError, ConflictError
from server.history.branching.branches import Branches
from server.history.branching.earlier import EarlierVersions
from server.history.commit_files import Blobs
from server.history.past import PastStates
from server.site.commits.message import Authorship, message_of, touched, with_trailers
from server.site.site import State
from server.storage.changeset import Changeset
from server.storage.files import Signature, size_signature
from server.storage.git.branch_commit import Signed, make_commit
from server.storage.git.branches import move_branch
from server.storage.git.checkout import folders_above
from server.storage.git.commit import Person
from server.storage.git.times import CommitTimes
from server.storage.git.tree import read_blobs
from server.storage.journal import Write
from server.storage.store import Store
from server.write.context import Context

Request = TypeVar("Request")
Result = TypeVar("Result")
TRIES = 20  # how often a write is prepared again because somebody else has moved the branch


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
            for _ in range(TRIES):
                head = self._head(name)
                writes, result = self._prepare(head, prepare, request, today)
                if not writes:
                    return self.past.answered(head, today), result, head
                signed = self._signed(head, writes, by, result, today)
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

    def _signed(
        self, head: str, writes: list[Write], by: Authorship, result: object, today: Settings
    ) -> Signed:
        past = self.past.at(head)
        state = past.state
        store = Store(self.branches.root, state.schema, state.settings, CommitTimes().timestamps)
        documents = touched(writes, past.known.entries, state.snapshot, store)
        message = with_trailers(message_of(documents, by, result), by.actor, [d.name for d in documents])
        committer = Person.of(today.committer)
        return Signed(message, Person(by.name, by.email or committer.email), committer)
