"""Merging one branch into another."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from server.auth.permissions import Actor
from server.config.model import Settings
from server.documents.document import Document
from server.errors import ApiError, BusyError, CommitError, ConflictError, SetupError, ValidationError
from server.history.branching import Branches, CommittedFiles, differing_documents, require_last_commit
from server.history.merging.check import require_fit, require_valid
from server.history.merging.conflicts import Resolution
from server.history.merging.late_migrations import migration_counts
from server.history.merging.plan import Outcome, Plan, Planner
from server.history.merging.sides import MERGE_HINT, MergeSides, sides_of
from server.history.past import PastStates
from server.site.commits.committing import GIT_LOCK_TIMEOUT_S, QUEUE_TIMEOUT_S
from server.site.commits.message import Authorship, PreparedMerge, clean_message, with_trailers
from server.site.configure import is_configuration
from server.site.parts import checkout_permission
from server.site.site import Site
from server.storage.changeset import Changeset
from server.storage.git.branch_commit import CommitMetadata, make_commit
from server.storage.git.branches import move_branch
from server.storage.git.checkout import write_files
from server.storage.git.checkout_watch import BranchMove, BranchMover
from server.storage.git.commit import NewCommit, Person
from server.storage.git.index import LockedIndex, locked_index, remove_own_lock, wait_for_index
from server.storage.git.refs import head_commit
from server.storage.git.repository import GitFile, repository_of
from server.storage.git.tree import changed_files
from server.storage.git.uncommitted import staged_files_in_the_way, uncommitted_paths
from server.storage.media import media_key
from server.storage.temporary import temporary_folder
from server.write.context import Context

# --- served branch --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CommitToServe:
    """A commit that is about to be served.

    `require_fit` raises an error if the served state has changed and the commit no longer fits it.
    """

    merge: PreparedMerge
    changeset: Changeset
    require_fit: Callable[[Context], None]


def serve_commit(site: Site, commit_to_serve: CommitToServe, authorship: Authorship) -> str:
    """Write a commit's files to disk, and move the served branch to the commit.

    Returns the commit id, or "pending" if git could not move the branch yet. Raises CommitError if git is
    busy, ConflictError if a file on disk has changed, or any error that `require_fit` raises.
    """
    with _exclusive_commit(site, commit_to_serve.merge) as index:
        committer = Person.parse(site.state.settings.git.committer)
        move = partial(_move, index, commit_to_serve.merge, committer)
        joined = replace(commit_to_serve.merge, move_branch=move, index=index.before)
        _, _, commit = site.write_locally(
            replace(authorship, prepared_merge=lambda _: joined, describe=None), _put, commit_to_serve
        )
    return commit


def _put(arrival: CommitToServe, context: Context) -> None:
    arrival.require_fit(context)
    context.changeset.adopt(arrival.changeset)


@contextmanager
def _exclusive_commit(site: Site, merge: PreparedMerge) -> Iterator[LockedIndex]:
    """Context manager: block other commits to the site, lock git's index, and yield the locked index."""
    with site.committer.queue.committing(QUEUE_TIMEOUT_S) as acquired:
        if not acquired:
            raise CommitError("timed out waiting for other commits to finish")
        repository, _ = site.committer.find_repository()
        remove_own_lock(repository)
        repository.require_no_operation()
        wait_for_index(repository, time.monotonic() + GIT_LOCK_TIMEOUT_S)
        changed = merge.changed_files
        if changed is None:
            differing_files = changed_files(site.root, merge.base, merge.ready)
            changed = {path: after for path, (_, after) in differing_files.items()}
        with locked_index(repository, changed) as index:
            yield index


def _move(index: LockedIndex, merge: PreparedMerge, committer: Person) -> bool:
    # If another process has moved the branch, the merge stays in the commit queue and is committed later.
    environment = committer.environment("COMMITTER", int(time.time()))
    try:
        index.move_head(merge.base, merge.ready, environment, merge.other_refs)
    except CommitError:
        index.release()
        return False
    return True


# --- merge ----------------------------------------------------------------------------------------

MAX_ATTEMPTS = 8  # A merge is retried if another writer moves the branch first.
_OVERTAKEN_MESSAGE = "The branch changed repeatedly while this merge was being prepared; try again"
_MAX_NAMED_FILES = 20  # limit for the files that an error names


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """A request to merge the branch `name` into the branch `target` ("" for the served branch).

    If `if_match` is set, it must contain the id of the last commit on the branch `name`.
    """

    name: str
    target: str
    actor: Actor
    authorship: Authorship
    resolution: Resolution
    if_match: str | None = None


@dataclass(frozen=True, slots=True)
class MergedMigration:
    """A migration that one of the branches lacked, and the number of documents that it changed.

    `applied` is False if the migration was skipped.
    """

    name: str
    documents: int
    applied: bool


@dataclass(frozen=True, slots=True)
class BranchMergeResult:
    """The result of a merge.

    `result` is "merge", "fast-forward", or "nothing" if the branch was already merged. `commit` is the commit
    id, or "pending" if git could not move the branch yet.
    """

    target_branch: str
    result: str
    commit: str
    document_count: int = 0
    file_count: int = 0
    migrations: tuple[MergedMigration, ...] = ()


class _BranchMovedError(Exception):
    """Raised if the target branch has changed since the merge was planned."""

    def __init__(self, reason: ConflictError | None = None) -> None:
        self.reason = reason
        super().__init__()


@dataclass(frozen=True, slots=True)
class _ValidatedMerge:
    """A validated merge. `documents` is the number of documents that it creates, changes or deletes."""

    plan: Plan
    commit: str
    message: str
    changed: tuple[Document, ...]
    documents: int

    @property
    def sides(self) -> MergeSides:
        return self.plan.sides

    def completed(self, into: str, commit: str) -> BranchMergeResult:
        result = "fast-forward" if self.plan.is_fast_forward else "merge"
        brought = self.plan.migrated
        migrations = tuple(MergedMigration(*each) for each in migration_counts(brought)) if brought else ()
        return BranchMergeResult(into, result, commit, self.documents, len(self.plan.outcomes), migrations)


@dataclass(frozen=True, slots=True)
class _FilesToWrite:
    ready: _ValidatedMerge
    changeset: Changeset
    joined: PreparedMerge


class Merger:
    """Service that merges branches. Threads and processes may use it at the same time."""

    def __init__(self, past: PastStates, branches: Branches) -> None:
        self.past, self.branches, self.site, self.root = past, branches, past.site, branches.root
        self._lock = threading.Lock()  # Concurrent merges would fail.

    def merge(self, request: MergeRequest, current_settings: Settings) -> BranchMergeResult:
        """Merge a branch into another branch. If an error is raised, the target branch is unchanged.

        Raises MergeConflictError if there are unresolved conflicts, PreconditionError if `if_match` does not
        contain the merged branch's last commit, or ValidationError if a document would be invalid after the
        merge.
        """
        served = self.branches.served()
        into = request.target or served
        theirs = self.branches.commit(request.name)
        require_last_commit(request.if_match, request.name, theirs)
        if not into:
            raise ConflictError('No branch is checked out; specify the target branch in "into"')
        if into == request.name:
            raise ValidationError("A branch can't be merged into itself")
        make = self._into_served if into == served else self._into_other
        reason: ApiError = BusyError(_OVERTAKEN_MESSAGE)
        with self._lock:
            for _ in range(MAX_ATTEMPTS):
                try:
                    return make(request, into, theirs, current_settings)
                except _BranchMovedError as error:
                    reason = error.reason or reason
        raise reason

    # --- planning --------------------------------------------------------------------------------------

    def _plan_and_validate(
        self, request: MergeRequest, sides: MergeSides, files: Changeset, current_settings: Settings
    ) -> _ValidatedMerge:
        planner = Planner(self.past, request.actor, current_settings, request.resolution)
        plan = planner.plan(sides, files)
        names = [
            f"{d.type.singular}/{d.some_document.document_id}" for d in plan.documents.values() if d.action
        ]
        names += [f"upload/{key}" for path in plan.outcomes if (key := media_key(path))]
        names += plan.migrated.document_names if plan.migrated else ()
        message = with_trailers(self._message_of(request), request.authorship.actor, names)
        commit = self._commit(plan, message, request.authorship, current_settings)
        planner.require_result(plan, commit)
        try:
            before, after = self.past.at(sides.ours), self.past.at(commit)
        except ConflictError as error:
            cause = error.__cause__
            reason = str(cause) if isinstance(cause, SetupError) else error.message
            raise ConflictError(f"The merged site would be invalid: {reason}") from error
        require_valid(before, after, plan.migrated.our_changes if plan.migrated else {})
        changed, deleted = dict(differing_documents(after, before)), dict(differing_documents(before, after))
        return _ValidatedMerge(plan, commit, message, tuple(changed.values()), len({*changed, *deleted}))

    def _message_of(self, request: MergeRequest) -> str:
        into = f" into {request.target}" if request.target not in ("", self.branches.served()) else ""
        return clean_message(request.authorship.message) or clean_message(
            f"Merge branch {request.name}{into}"
        )

    def _commit(self, plan: Plan, message: str, authorship: Authorship, current_settings: Settings) -> str:
        # A fast-forward needs no new commit.
        sides = plan.sides
        if plan.is_fast_forward:
            return sides.theirs
        committer = Person.parse(current_settings.git.committer)
        signed = CommitMetadata(message, committer.author(authorship.name, authorship.email), committer)
        files = {path: _content(outcome) for path, outcome in plan.outcomes.items()}
        return make_commit(self.root, (sides.ours, sides.theirs), files, signed)

    # --- into a branch that is not checked out ---------------------------------------------------------

    def _into_other(
        self, request: MergeRequest, into: str, theirs: str, current_settings: Settings
    ) -> BranchMergeResult:
        mover, branch = BranchMover(self.root), self.branches.get(into)
        self.branches.require_not_checked_out(branch)
        sides = sides_of(self.past.log, branch.commit, theirs)
        if sides.is_merged:
            return BranchMergeResult(into, "nothing", sides.ours)
        files = CommittedFiles(self.root, self.past.at(sides.ours).known.blobs)
        ready = self._plan_and_validate(request, sides, Changeset(self.root, files), current_settings)
        move = BranchMove(into, ready.commit, sides.ours, ready.plan.outcomes)
        if not (mover.move(move, "merge") and mover.confirm_or_revert(move)):
            raise _BranchMovedError()
        return ready.completed(into, ready.commit)

    def _move(self, branch: str, sides: MergeSides, commit: str) -> None:
        if not move_branch(self.root, branch, commit, sides.ours, "merge"):
            raise _BranchMovedError()

    # --- into the served branch ------------------------------------------------------------------------

    def _into_served(
        self, request: MergeRequest, into: str, theirs: str, current_settings: Settings
    ) -> BranchMergeResult:
        self.site.committer.flush()
        sides = sides_of(self.past.log, head_commit(self.root), theirs)
        if sides.is_merged:
            return BranchMergeResult(into, "nothing", sides.ours)
        ready = self._plan_and_validate(request, sides, Changeset(self.root), current_settings)
        changeset = Changeset(self.root)
        for path in ready.plan.outcomes:
            changeset.signature(path)  # Read first, so that edits after the check below are noticed.
        self._refuse_uncommitted(ready.plan.outcomes)
        with temporary_folder(self.root, "merge-") as folder:
            files = self._collect_files(ready, changeset, folder, request.authorship, current_settings)
            commit = self._make(files, into, request.authorship)
        self.site.refresh()
        return ready.completed(into, commit)

    def _make(self, files: _FilesToWrite, branch: str, authorship: Authorship) -> str:
        # This raises _BranchMovedError if other commits were pushed to the remote first.
        sides, ready = files.ready.sides, files.joined.ready
        with checkout_permission(self.site.arbiter, sides.ours, ready) as agreed:
            if agreed and files.changeset.writes():
                return self._write(files, authorship)
            if not agreed:
                raise _BranchMovedError()
            # Both sides made the same changes, so no file has to be written.
            self._move(branch, sides, ready)
            return ready

    def _refuse_uncommitted(self, outcomes: Mapping[str, Outcome]) -> None:
        """Raise ConflictError if the merge would overwrite an uncommitted change or a folder."""
        written_paths = [path for path, outcome in outcomes.items() if outcome is not None]
        if folder := next((path for path in written_paths if (self.root / path).is_dir()), ""):
            description = f"{folder} is a folder in the target branch, but a file in the merged branch"
            raise ConflictError(f"{description}; {MERGE_HINT}", {"files": [folder]})
        try:
            uncommitted = sorted(_uncommitted_files(self.root, outcomes)) if outcomes else []
        except CommitError as error:
            raise ConflictError(f"The merge failed: {error}") from error
        if uncommitted:
            more = (
                f" and {len(uncommitted) - _MAX_NAMED_FILES:,} more"
                if len(uncommitted) > _MAX_NAMED_FILES
                else ""
            )
            names = ", ".join(uncommitted[:_MAX_NAMED_FILES])
            raise ConflictError(
                f"The merge would overwrite uncommitted changes to {names}{more}. Commit or stash these "
                "changes, then merge again",
                {"paths": uncommitted},
            )

    def _collect_files(
        self,
        ready: _ValidatedMerge,
        changeset: Changeset,
        folder: Path,
        authorship: Authorship,
        current_settings: Settings,
    ) -> _FilesToWrite:
        """Add the merged files to the changeset, and prepare the commit.

        Raises ConflictError if a git hook rejects the commit, or if git is busy.
        """
        sides = ready.sides
        staged = {path: file for path, file in ready.plan.outcomes.items() if isinstance(file, GitFile)}
        written = write_files(self.root, staged, folder) if staged else {}
        claimed = {document.path for document in ready.changed}
        for path, outcome in ready.plan.outcomes.items():
            if outcome is None:
                changeset.delete(path)
            elif isinstance(outcome, str):
                changeset.put(path, outcome)
            elif path in claimed:
                changeset.put(path, written[path].read_bytes().decode())
            else:
                changeset.put_file(path, written[path])
        writes = changeset.writes()
        committer, now = Person.parse(current_settings.git.committer), int(time.time())
        author = committer.author(authorship.name, authorship.email)
        contents = {write.path: write.data if write.source is None else write.source for write in writes}
        forward = sides.theirs if ready.plan.is_fast_forward else ""
        parents = (sides.ours, sides.theirs, forward)
        new = NewCommit(contents, ready.message, author, now, committer, now, *parents, known=staged)
        try:
            commit = self.site.committer.prepare(new).commit
        except CommitError as error:
            raise ConflictError(f"The merge can't be committed: {error}") from error
        return _FilesToWrite(ready, changeset, PreparedMerge(sides.ours, sides.theirs, commit))

    def _write(self, files: _FilesToWrite, authorship: Authorship) -> str:
        message = files.ready.message.rpartition("\n\nBifolio-Actor: ")[0]
        signed = Authorship(authorship.actor, authorship.name, authorship.email, message)
        fit = partial(self._require_fit, files.ready)
        try:
            return serve_commit(self.site, CommitToServe(files.joined, files.changeset, fit), signed)
        except CommitError as error:
            raise ConflictError(f"The merge can't be committed: {error}") from error
        except ConflictError as error:  # One of the files has been edited since.
            raise _BranchMovedError(error) from error

    def _require_fit(self, ready: _ValidatedMerge, context: Context) -> None:
        head = head_commit(self.root)
        ours, outcomes = ready.sides.ours, ready.plan.outcomes
        if head != ours:
            changed_since = changed_files(self.root, ours, head).keys()
            if (
                ready.plan.is_fast_forward
                or not changed_since.isdisjoint(outcomes)
                or any(map(is_configuration, changed_since))
            ):
                raise _BranchMovedError()
        if not any(map(is_configuration, outcomes)):
            require_fit(ready.changed, context.snapshot, outcomes)


def _uncommitted_files(root: Path, outcomes: Mapping[str, Outcome]) -> Set[str]:
    written_paths = [path for path, outcome in outcomes.items() if outcome is not None]
    return uncommitted_paths(root, list(outcomes)) | staged_files_in_the_way(
        repository_of(root), written_paths
    )


def _content(outcome: Outcome) -> bytes | GitFile | None:
    return outcome.encode() if isinstance(outcome, str) else outcome
