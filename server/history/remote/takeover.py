"""Applies a remote commit to the site in one write, and keeps local changes.

What is edited and in no commit stays so: it is merged by field with what comes, as if it were a commit of its
own, and stays uncommitted. A file that has already what comes is left alone: so what a killed process has
begun is the same when it is done again. Where that is not possible, everything stays as it is.
"""

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from server.errors import ApiError, BusyError, CommitError, ConflictError, NotTakenOverError, StorageError
from server.history.merging.merge import Arrival, put_in_place
from server.history.merging.plan import Outcome
from server.history.merging.sides import Sides, is_plain, require_writable
from server.history.past import PastStates
from server.history.remote.edits import (
    Edit,
    commit_edits,
    edits,
    new_files,
    swaps,
)
from server.history.remote.integration_plan import (
    MAX_NAMED_FILES,
    NOTHING,
    Target,
    plan_integration,
    target_of,
    with_taken,
)
from server.history.remote.last_integrated import keep, last_commit, ref_name, remember
from server.paths import STATE_FOLDER, state_folder
from server.site.commits.committing import PENDING
from server.site.commits.message import Authorship, Joined
from server.storage.changeset import Changeset
from server.storage.files import Signature
from server.storage.git.checkout import holds, in_place_of, write_files
from server.storage.git.refs import checked_out, head_commit
from server.storage.git.repository import Repository, Staged, Tree
from server.storage.git.tree import changed_files
from server.storage.git.uncommitted import staged_in_place_of
from server.storage.write_lock import WriteLock
from server.write.context import Context

MAX_ATTEMPTS = 5  # Attempts to take a commit over while others change files or the branch.
LOCK_TIMEOUT_S = 15.0  # How long one takeover waits for another.
_LOCK_FILE, _TURN_FILE = "takeover.lock", "takeover.turn"  # In .bifolio/.


@dataclass(frozen=True, slots=True)
class Taken:
    """What is checked out after a take-over, how it came there (`target`), and how many files changed."""

    commit: str
    how: str
    files: int = 0
    kept: str = ""  # the name of the commit before, where that is in none of its branches any more


class _Overtaken(Exception):
    """Somebody has changed a file, or the branch, since this was prepared."""


@dataclass(frozen=True, slots=True)
class _Files:
    """The files that a commit changes: those that the journal writes, and all others (`odd`)."""

    plain: Tree
    odd: Tree


class Takeover:
    """Takes commits over. Safe to use from many threads, and beside other processes."""

    def __init__(self, past: PastStates) -> None:
        self.past, self.site, self.root = past, past.site, past.site.root
        self._lock = WriteLock(self.root / STATE_FOLDER / _TURN_FILE, self.root / STATE_FOLDER / _LOCK_FILE)

    @contextmanager
    def alone(self, seconds: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """Be the only one that takes something over. Raises BusyError where others take too long.

        Who waits is the next: so the processes of a machine take turns.
        """
        (state_folder(self.root) / _LOCK_FILE).touch(0o600)
        with self._lock.held(seconds):
            yield

    def take_over(self, theirs: str, branch: str = "", by: Authorship | None = None) -> Taken:
        """Bring what is served to a commit of the remote's `branch`, "" for the one that is checked out.

        `by` is who made a write that this is. Raises NotTakenOverError where that can't be done without loss,
        BusyError and StorageError.
        """
        with self.alone():
            return self.take_over_alone(theirs, branch, by)

    def take_over_alone(
        self,
        theirs: str,
        branch: str = "",
        by: Authorship | None = None,
        taken: Mapping[str, bytes] = MappingProxyType({}),
    ) -> Taken:
        """See `take_over`, for who is alone already.

        `taken` are files with edits by hand that `theirs` has taken along: what differs from those in a
        file is what was edited since.
        """
        reason: ApiError = BusyError("Others changed the site each time that this was ready; try again")
        for _ in range(MAX_ATTEMPTS):
            try:
                return self._take_over(theirs, branch, by, taken)
            except CommitError as error:
                raise NotTakenOverError(f"git can't commit now: {error}") from error
            except NotTakenOverError:
                raise
            except ConflictError as error:  # Somebody has edited a file meanwhile.
                reason = error
                self.site.refresh()
            except _Overtaken:
                continue
        raise reason

    def _take_over(
        self, theirs: str, branch: str, by: Authorship | None, taken: Mapping[str, bytes]
    ) -> Taken:
        branch = served_branch(self.root, branch)
        self._require_committed()
        head = head_commit(self.root)
        if not head:
            raise NotTakenOverError("Nothing is committed here yet; check the branch out first")
        target = target_of(self.past, head, theirs, last_commit(self.root, branch))
        target = replace(target, taken=taken)
        if target.how == NOTHING:
            remember(self.root, branch, theirs)
            return Taken(head, NOTHING)
        kept = keep(self.root, branch, head) if target.keeps else ""
        with tempfile.TemporaryDirectory(prefix="takeover-", dir=self.root / STATE_FOLDER) as folder:
            names, by = {ref_name(branch): theirs}, by or _authorship(target)
            files, commit = self._put(head, target, Path(folder), by, names)
        if commit == PENDING:
            self.site.refresh()
            raise NotTakenOverError("git can't let the branch move now")
        if head_commit(self.root) != target.commit:
            raise _Overtaken()
        remember(self.root, branch, theirs)
        return Taken(target.commit, target.how, files, kept)

    def _require_committed(self) -> None:
        """Have what was written through the API committed, where it is to be, and a merge that was killed."""
        self.site.recover()
        committer = self.site.committer
        if committer.queue.is_unsettled:
            committer.commit_due()
        committer.flush()
        if any(write.joins for write in committer.queue.pending()):
            raise NotTakenOverError("A merge waits to be committed")

    # --- files -----------------------------------------------------------------------------------------

    def _put(
        self, head: str, target: Target, folder: Path, by: Authorship, names: Mapping[str, str]
    ) -> tuple[int, str]:
        """Put the files of a commit in place; how many, and what is said of its commit."""
        repository, _ = self.site.committer.repository()
        files, changeset = self._files(head, target.commit), Changeset(self.root)
        before = _signatures(changeset, files.plain)  # before their contents are
        outcomes = self._outcomes(repository, head, target, files, changeset, before, folder)
        odd = {path: file for path, file in outcomes.items() if path in files.odd}
        plain = {path: file for path, file in outcomes.items() if path not in files.odd}
        self._fill(changeset, plain, folder, before)
        beside = [path for path, file in odd.items() if not isinstance(file, str)]
        joined = Joined(head, target.commit, target.commit, exact=True, names=names, beside=beside)
        if not changeset.writes():
            commit = self.site.committer.join(joined, by)
            self.site.refresh()
            return len(odd), commit
        if not files.odd and all(files.plain.get(path) == file for path, file in plain.items()):
            joined = replace(joined, changed=files.plain)  # Nothing that was edited here is among them.
        arrival = Arrival(joined, changeset, partial(self._require_head, head))
        return len(outcomes), put_in_place(self.site, arrival, by)

    def _files(self, head: str, commit: str) -> _Files:
        """The files that differ between two commits, as the later one has them."""
        found = changed_files(self.root, head, commit)
        try:
            require_writable(self.root, commit, found)
        except ConflictError as error:
            raise NotTakenOverError(error.message, error.details) from error
        changed = found.items()
        swapped = swaps(path for path, _ in changed)
        plain = {
            path: after
            for path, (before, after) in changed
            if path not in swapped and is_plain(path, before, after)
        }
        odd = {path: after for path, (_, after) in changed if path not in plain and _is_ours(path)}
        return _Files(plain, odd)

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
        """What files are to be that are not so already. Raises NotTakenOverError for what is in the way."""
        coming = {**files.plain, **files.odd}
        _require_room(repository, files.odd, coming)
        found = edits(repository, coming)
        same = {path for path in found if holds(repository, path, coming[path])}
        edited = {path: edit for path, edit in found.items() if path not in same}
        _require_mergeable(edited, files.odd)
        if not edited:
            return {path: file for path, file in coming.items() if path not in same}
        new = new_files(repository, self.site.roots)
        before.update((path, changeset.signature(path)) for path in new - before.keys())
        inside = sorted({path for path in found if path in files.plain} | new)
        ours = commit_edits(repository, head, inside, folder)
        try:
            base = with_taken(self.past, head, target)
            plan = plan_integration(self.past, Sides(base, ours, target.commit), changeset)
        except NotTakenOverError as error:
            raise _not_over_edits(error, edited) from error
        return {path: outcome for path, outcome in plan.outcomes.items() if _is_ours(path)}

    def _fill(
        self,
        changeset: Changeset,
        outcomes: Mapping[str, Outcome],
        folder: Path,
        before: Mapping[str, Signature | None],
    ) -> None:
        """Put the files into a changeset, each as a checkout would write it."""
        staged = {path: file for path, file in outcomes.items() if isinstance(file, Staged)}
        written = write_files(self.root, staged, folder) if staged else {}
        for path, outcome in outcomes.items():
            if path in before and changeset.signature(path) != before[path]:
                raise _Overtaken()
            if outcome is None:
                changeset.delete(path)
            elif isinstance(outcome, str):
                changeset.put(path, outcome)
            else:
                changeset.put_file(path, written[path])

    def _require_head(self, head: str, context: Context) -> None:
        if head_commit(self.root) != head:
            raise _Overtaken()


def served_branch(root: Path, wanted: str) -> str:
    """The branch checked out; `wanted` is "" for any. Raises NotTakenOverError where it is another."""
    found = checked_out(root)
    if not found:
        raise NotTakenOverError("No branch is checked out")
    if wanted and found != wanted:
        raise NotTakenOverError(f'The branch "{found}" is checked out, and not "{wanted}"')
    return found


def _is_ours(path: str) -> bool:
    """Whether a file is one to take over: what is in .bifolio/ is the server's own."""
    return path.split("/")[0] != STATE_FOLDER


def _authorship(target: Target) -> Authorship:
    return Authorship("git", "", "", target.how, source="file")


def _signatures(changeset: Changeset, paths: Iterable[str]) -> dict[str, Signature | None]:
    """The signatures of the files in place. Raises NotTakenOverError for one that the system refuses."""
    found: dict[str, Signature | None] = {}
    for path in paths:
        try:
            found[path] = changeset.signature(path)
        except StorageError as error:
            raise NotTakenOverError(error.message, {"files": [path]}) from error
    return found


def _require_mergeable(edited: Mapping[str, Edit], odd: Collection[str]) -> None:
    """Raise NotTakenOverError for edits of what can't be merged."""
    if hidden := sorted(path for path, edit in edited.items() if edit.hidden):
        said = f"{_quote_paths(hidden)}: edited, and git is told to take it for unchanged (git ls-files -v)"
        raise NotTakenOverError(said, {"files": hidden})
    if both := sorted(path for path, edit in edited.items() if edit.is_both):
        raise NotTakenOverError(f"{_quote_paths(both)}: staged, and edited since; commit it", {"files": both})
    if found := sorted(edited.keys() & set(odd)):
        raise NotTakenOverError(
            f"{_quote_paths(found)}: changed here and in the remote; commit it", {"files": found}
        )


def _require_room(repository: Repository, odd: Tree, coming: Tree) -> None:
    """Raise NotTakenOverError for local files that a checkout would remove for others in their place."""
    new = [path for path, file in coming.items() if file]
    if staged := sorted(staged_in_place_of(repository, new)):
        raise NotTakenOverError(
            f"{_quote_paths(staged)}: staged, and the remote has something else there", {"files": staged}
        )
    if found := sorted(in_place_of(repository, odd)):
        raise NotTakenOverError(
            f"{_quote_paths(found)}: not in git, and the remote has something else there", {"files": found}
        )


def _not_over_edits(error: NotTakenOverError, edited: Collection[str]) -> NotTakenOverError:
    """Why edits that are in no commit can't be merged with what comes."""
    files = sorted({*error.details.get("files", ()), *edited})
    return NotTakenOverError(
        f"{error.message}; what is edited here is in no commit", {**error.details, "files": files}
    )


def _quote_paths(paths: list[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED_FILES:,} more" if len(paths) > MAX_NAMED_FILES else ""
    return ", ".join(paths[:MAX_NAMED_FILES]) + more
