"""Takeover: applying a remote commit to the site's files and to the served branch."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from server.errors import ApiError, BusyError, CommitError, ConflictError, RemoteMergeError, StorageError
from server.history.merging.merge import CommitToServe, serve_commit
from server.history.merging.plan import Outcome
from server.history.merging.sides import MergeSides, is_plain, require_writable
from server.history.past import PastStates
from server.history.remote.edits import (
    Edit,
    commit_edits,
    file_folder_swaps,
    find_edits,
    new_files,
)
from server.history.remote.integration_plan import (
    MAX_NAMED_FILES,
    NOTHING,
    Target,
    base_with_edits,
    find_target,
    plan_integration,
)
from server.history.remote.last_integrated import create_backup_ref, last_commit, ref_name, set_last_commit
from server.paths import STATE_FOLDER, state_folder
from server.site.commits.committing import PENDING
from server.site.commits.message import Authorship, PreparedMerge
from server.storage.changeset import Changeset
from server.storage.files import Signature
from server.storage.git.checkout import blocking_files, is_identical_on_disk, write_files
from server.storage.git.ref_updates import find_ref_lock
from server.storage.git.refs import BRANCH_PREFIX, checked_out_branch, head_commit
from server.storage.git.repository import GitFile, Repository, Tree, git_folder, operation_in_progress
from server.storage.git.tree import changed_files
from server.storage.git.uncommitted import staged_files_in_the_way
from server.storage.temporary import temporary_folder
from server.storage.write_lock import WriteLock
from server.write.context import Context

MAX_ATTEMPTS = 5  # A takeover is retried if other processes change the files or the branch first.
LOCK_TIMEOUT_S = 15.0  # maximum wait for the takeover lock
_LOCK_FILE, _TURN_FILE = "takeover.lock", "takeover.turn"  # in .bifolio/


@dataclass(frozen=True, slots=True)
class AppliedCommit:
    """A remote commit that has been applied to the site.

    `method` is the kind of update, such as FORWARD or MERGE. `backup_ref` is the name of a ref to the
    previous commit if the new history does not contain that commit, otherwise "".
    """

    commit: str
    method: str
    file_count: int = 0
    backup_ref: str = ""


class _SiteChangedError(Exception):
    """Raised if a file or the branch has changed since the new files were prepared."""


@dataclass(frozen=True, slots=True)
class _Files:
    regular: Tree
    special: Tree


class Takeover:
    """Service that applies remote commits to the site. Threads and processes may use it at the same time."""

    def __init__(self, past: PastStates) -> None:
        self.past, self.site, self.root = past, past.site, past.site.root
        self._lock = WriteLock(self.root / STATE_FOLDER / _TURN_FILE, self.root / STATE_FOLDER / _LOCK_FILE)

    @contextmanager
    def exclusive(self, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        # Processes acquire the lock in the order of their requests.
        (state_folder(self.root) / _LOCK_FILE).touch(0o600)
        with self._lock.held(timeout_s):
            yield

    def take_over(
        self, remote_commit: str, branch: str = "", authorship: Authorship | None = None
    ) -> AppliedCommit:
        """Apply a remote commit to the served branch. If `branch` is given, it must be the served branch.

        If the commit was made for a write, `authorship` is the author of the write. Raises RemoteMergeError
        if the commit can't be merged, BusyError if the site is busy, or StorageError if a file can't be
        written.
        """
        with self.exclusive():
            return self.take_over_locked(remote_commit, branch, authorship)

    def take_over_locked(
        self,
        remote_commit: str,
        branch: str = "",
        authorship: Authorship | None = None,
        included_edits: Mapping[str, bytes] = MappingProxyType({}),
    ) -> AppliedCommit:
        """Apply a commit like `take_over`. The caller must hold the takeover lock.

        `included_edits` maps file paths to locally edited content that the commit already contains.
        """
        reason: ApiError = BusyError(
            "The site changed repeatedly while a commit from the git remote was being applied; try again"
        )
        for _ in range(MAX_ATTEMPTS):
            try:
                return self._take_over(remote_commit, branch, authorship, included_edits)
            except CommitError as error:
                raise RemoteMergeError(f"git can't commit now: {error}") from error
            except RemoteMergeError:
                raise
            except ConflictError as error:  # A file has just been edited.
                reason = error
                self.site.refresh()
            except _SiteChangedError:
                continue
        raise reason

    def _take_over(
        self,
        remote_commit: str,
        branch: str,
        authorship: Authorship | None,
        included_edits: Mapping[str, bytes],
    ) -> AppliedCommit:
        branch = served_branch(self.root, branch)
        self._commit_queued_writes()
        head = head_commit(self.root)
        if not head:
            raise RemoteMergeError("The site has no commits; check the branch out first")
        target = find_target(self.past, head, remote_commit, last_commit(self.root, branch))
        target = replace(target, included_edits=included_edits)
        if target.how == NOTHING:
            set_last_commit(self.root, branch, remote_commit)
            return AppliedCommit(head, NOTHING)
        kept = create_backup_ref(self.root, branch, head) if target.needs_backup else ""
        with temporary_folder(self.root, "takeover-") as folder:
            names, authorship = {ref_name(branch): remote_commit}, authorship or _authorship(target)
            files, commit = self._write_and_move_branch(head, target, folder, authorship, names)
        if commit == PENDING:
            self.site.refresh()
            raise RemoteMergeError("git can't move the branch now")
        if head_commit(self.root) != target.commit:
            raise _SiteChangedError()
        set_last_commit(self.root, branch, remote_commit)
        return AppliedCommit(target.commit, target.how, files, kept)

    def _commit_queued_writes(self) -> None:
        """Commit all queued writes.

        Raises RemoteMergeError if a merge can't be committed yet.
        """
        self.site.recover()
        committer = self.site.committer
        if committer.queue.has_staged_writes:
            committer.commit_due()
        committer.flush()
        if any(write.joins for write in committer.queue.pending()):
            raise RemoteMergeError(self._reason_for_waiting())

    def _reason_for_waiting(self) -> str:
        branch = checked_out_branch(self.root)
        if lock := find_ref_lock(self.root, BRANCH_PREFIX + branch, ref_name(branch)):
            return (
                f"git can't move the branch, because {lock} exists; if no git command is running in the "
                "repository, delete this file"
            )
        folder = git_folder(self.root)
        if folder and (operation := operation_in_progress(folder)):
            return f"{operation[0].upper()}{operation[1:]} has been started with git, but is not finished yet"
        return "An earlier commit is still waiting; see the server's log"

    # --- files -----------------------------------------------------------------------------------------

    def _write_and_move_branch(
        self, head: str, target: Target, folder: Path, authorship: Authorship, other_refs: Mapping[str, str]
    ) -> tuple[int, str]:
        """Write a commit's files to disk, and move the branch to the commit.

        Returns the number of changed files, and the commit id. The id is "pending" if git could not move the
        branch yet.
        """
        repository, _ = self.site.committer.find_repository()
        files, changeset = self._changed_files(head, target.commit), Changeset(self.root)
        before = _signatures(changeset, files.regular)  # Read first, so that later edits are noticed.
        outcomes = self._outcomes(repository, head, target, files, changeset, before, folder)
        odd_outcomes = {path: file for path, file in outcomes.items() if path in files.special}
        plain_outcomes = {path: file for path, file in outcomes.items() if path not in files.special}
        self._add_to_changeset(changeset, plain_outcomes, folder, before)
        special_paths = [path for path, file in odd_outcomes.items() if not isinstance(file, str)]
        joined = PreparedMerge(
            head,
            target.commit,
            target.commit,
            only_if_ready=True,
            other_refs=other_refs,
            extra_paths=special_paths,
        )
        if not changeset.writes():
            commit = self.site.committer.commit_merge(joined, authorship)
            self.site.refresh()
            return len(odd_outcomes), commit
        if not files.special and all(
            files.regular.get(path) == file for path, file in plain_outcomes.items()
        ):
            joined = replace(joined, changed_files=files.regular)  # No file has local edits.
        arrival = CommitToServe(joined, changeset, partial(self._require_head, head))
        return len(outcomes), serve_commit(self.site, arrival, authorship)

    def _changed_files(self, head: str, commit: str) -> _Files:
        found = changed_files(self.root, head, commit)
        try:
            require_writable(self.root, commit, found)
        except ConflictError as error:
            raise RemoteMergeError(error.message, error.details) from error
        changed = found.items()
        swapped = file_folder_swaps(path for path, _ in changed)
        plain = {
            path: after
            for path, (before, after) in changed
            if path not in swapped and is_plain(path, before, after)
        }
        special = {path: after for path, (_, after) in changed if path not in plain and _is_integrated(path)}
        return _Files(plain, special)

    def _outcomes(
        self,
        repository: Repository,
        head: str,
        target: Target,
        files: _Files,
        changeset: Changeset,
        before: dict[str, Signature | None],
        folder: Path,
    ) -> Mapping[str, Outcome]:
        """Return the new content of the changed files by path, with local edits merged into it.

        Raises RemoteMergeError if an edit can't be merged.
        """
        incoming = {**files.regular, **files.special}
        _require_free_paths(repository, files.special, incoming)
        local_edits = find_edits(repository, incoming)
        identical = {path for path in local_edits if is_identical_on_disk(repository, path, incoming[path])}
        edited = {path: edit for path, edit in local_edits.items() if path not in identical}
        _require_mergeable(edited, files.special)
        if not edited:
            return {path: file for path, file in incoming.items() if path not in identical}
        untracked = new_files(repository, self.site.roots)
        before.update((path, changeset.signature(path)) for path in untracked - before.keys())
        edited_paths = sorted({path for path in local_edits if path in files.regular} | untracked)
        ours = commit_edits(repository, head, edited_paths, folder)
        try:
            base = base_with_edits(self.past, head, target)
            plan = plan_integration(self.past, MergeSides(base, ours, target.commit), changeset)
        except RemoteMergeError as error:
            raise _uncommitted_error(error, edited) from error
        return {path: outcome for path, outcome in plan.outcomes.items() if _is_integrated(path)}

    def _add_to_changeset(
        self,
        changeset: Changeset,
        outcomes: Mapping[str, Outcome],
        folder: Path,
        before: Mapping[str, Signature | None],
    ) -> None:
        staged = {path: file for path, file in outcomes.items() if isinstance(file, GitFile)}
        written = write_files(self.root, staged, folder) if staged else {}
        for path, outcome in outcomes.items():
            if path in before and changeset.signature(path) != before[path]:
                raise _SiteChangedError()
            if outcome is None:
                changeset.delete(path)
            elif isinstance(outcome, str):
                changeset.put(path, outcome)
            else:
                changeset.put_file(path, written[path])

    def _require_head(self, head: str, context: Context) -> None:
        if head_commit(self.root) != head:
            raise _SiteChangedError()


def served_branch(root: Path, expected: str) -> str:
    """Return the name of the checked-out branch.

    Raises RemoteMergeError if no branch is checked out, or if `expected` is the name of a different branch.
    """
    branch = checked_out_branch(root)
    if not branch:
        raise RemoteMergeError("No branch is checked out")
    if expected and branch != expected:
        raise RemoteMergeError(f'The branch "{branch}" is checked out instead of "{expected}"')
    return branch


def _is_integrated(path: str) -> bool:
    return path.split("/")[0] != STATE_FOLDER


def _authorship(target: Target) -> Authorship:
    return Authorship("git", "", "", target.how, source="file")


def _signatures(changeset: Changeset, paths: Iterable[str]) -> dict[str, Signature | None]:
    signatures: dict[str, Signature | None] = {}
    for path in paths:
        try:
            signatures[path] = changeset.signature(path)
        except StorageError as error:
            raise RemoteMergeError(error.message, {"files": [path]}) from error
    return signatures


def _require_mergeable(edited: Mapping[str, Edit], special: Collection[str]) -> None:
    if hidden := sorted(path for path, edit in edited.items() if edit.hidden):
        message = f"{_quote_paths(hidden)}: edited, but marked as unchanged in git (see git ls-files -v)"
        raise RemoteMergeError(message, {"files": hidden})
    if both := sorted(path for path, edit in edited.items() if edit.is_both):
        raise RemoteMergeError(
            f"{_quote_paths(both)}: staged, then edited again; commit these changes", {"files": both}
        )
    if odd_edits := sorted(edited.keys() & set(special)):
        raise RemoteMergeError(
            f"{_quote_paths(odd_edits)}: changed both here and on the git remote; commit the local changes",
            {"files": odd_edits},
        )


def _require_free_paths(repository: Repository, special: Tree, incoming: Tree) -> None:
    """Raise RemoteMergeError if a checkout would overwrite staged or untracked files."""
    incoming_paths = [path for path, file in incoming.items() if file]
    if staged := sorted(staged_files_in_the_way(repository, incoming_paths)):
        raise RemoteMergeError(
            f"{_quote_paths(staged)}: staged here, but the git remote has a different file at this path",
            {"files": staged},
        )
    if untracked := sorted(blocking_files(repository, special)):
        raise RemoteMergeError(
            f"{_quote_paths(untracked)}: not in git, but the git remote has a different file at this path",
            {"files": untracked},
        )


def _uncommitted_error(error: RemoteMergeError, edited: Collection[str]) -> RemoteMergeError:
    files = sorted({*error.details.get("files", ()), *edited})
    return RemoteMergeError(
        f"{error.message}; the local changes have not been committed", {**error.details, "files": files}
    )


def _quote_paths(paths: list[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED_FILES:,} more" if len(paths) > MAX_NAMED_FILES else ""
    return ", ".join(paths[:MAX_NAMED_FILES]) + more
