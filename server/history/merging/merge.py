"""Merges a branch into the one that is served, or into another one.

What a merge comes to is planned, committed as objects of git that nothing leads to, and held against the
rules of the schema before anything else is written. Into the branch that is served, its files are put in
place as one write of the site is, which is noted with both parents before: where its commit can't be made at
once, or the server is killed, it is made later. Any other branch moves to the commit in one step."""

import tempfile
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
from server.history.branching import Branches, CommittedFiles, differing
from server.history.merging.check import require_fit, require_valid
from server.history.merging.conflicts import Resolution
from server.history.merging.plan import Outcome, Plan, Planner
from server.history.merging.sides import MERGE_HINT, Sides, sides_of
from server.history.past import PastStates
from server.paths import STATE_FOLDER
from server.site.commits.committing import GIT_LOCK_TIMEOUT_S, QUEUE_TIMEOUT_S
from server.site.commits.message import Authorship, Joined, clean_message, with_trailers
from server.site.configure import is_configuration
from server.site.site import Site
from server.site.writing.preparing import agreeing
from server.storage.changeset import Changeset
from server.storage.git.branch_commit import Signed, make_commit
from server.storage.git.branches import move_branch
from server.storage.git.checkout import write_files
from server.storage.git.commit import NewCommit, Person
from server.storage.git.index import LockedIndex, locked_index, remove_own_lock, wait_for_index
from server.storage.git.refs import branch_commit, head_commit
from server.storage.git.repository import Staged, repository_of
from server.storage.git.tree import changed_files
from server.storage.git.uncommitted import staged_in_place_of, uncommitted_paths
from server.storage.media import media_key
from server.write.context import Context

# --- served ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arrival:
    """A commit that is made, the files that it takes, and what raises where these do not fit any more."""

    joined: Joined
    changeset: Changeset
    require_fit: Callable[[Context], None]


def put_in_place(site: Site, arrival: Arrival, by: Authorship) -> str:
    """Put a commit in the place of what is served. Returns what the answer says of its commit.

    Raises CommitError while git is busy, ConflictError where somebody has changed a file meanwhile, and what
    `require_fit` and `Site.write_here` raise.
    """
    with _holding_off_others(site, arrival.joined) as index:
        committer = Person.of(site.state.settings.git.committer)
        move = partial(_move, index, arrival.joined, committer)
        joined = replace(arrival.joined, move=move, index=index.before)
        _, _, commit = site.write_here(replace(by, joined=lambda _: joined, describe=None), _put, arrival)
    return commit


def _put(arrival: Arrival, context: Context) -> None:
    arrival.require_fit(context)
    context.changeset.adopt(arrival.changeset)


@contextmanager
def _holding_off_others(site: Site, joined: Joined) -> Iterator[LockedIndex]:
    """Let nobody else commit here, and have the index ready."""
    with site.committer.queue.committing(QUEUE_TIMEOUT_S) as alone:
        if not alone:
            raise CommitError("other commits take long")
        repository, _ = site.committer.repository()
        remove_own_lock(repository)
        repository.require_quiet()
        wait_for_index(repository, time.monotonic() + GIT_LOCK_TIMEOUT_S)
        changed = joined.changed
        if changed is None:
            found = changed_files(site.root, joined.base, joined.ready)
            changed = {path: after for path, (_, after) in found.items()}
        with locked_index(repository, changed) as index:
            yield index


def _move(index: LockedIndex, joined: Joined, committer: Person) -> bool:
    """Let the branch move; where it is somewhere else by now, that is left to who commits what was noted."""
    environment = committer.environment("COMMITTER", int(time.time()))
    try:
        index.move_head(joined.base, joined.ready, environment, joined.names)
    except CommitError:
        index.release()
        return False
    return True


# --- merge ----------------------------------------------------------------------------------------

MAX_ATTEMPTS = 8  # Attempts to plan a merge while others move the branch.
_OVERTAKEN_MESSAGE = "Others changed the branch each time that this merge was ready; try again"
_MAX_NAMED_FILES = 20  # Files in a message.


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Which branch is to be merged into which one ("" for what is served), by whom, and how conflicts end."""

    name: str
    into: str
    actor: Actor
    by: Authorship
    resolution: Resolution


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge that was made: `result` is merge, fast-forward or nothing.

    `commit` is what the branch is at, or "pending"; `documents` and `files` are how many it has changed.
    """

    into: str
    result: str
    commit: str
    documents: int = 0
    files: int = 0


class _Overtaken(Exception):
    """Somebody has changed the branch since a merge was planned; `reason` says how a write was refused."""

    def __init__(self, reason: ConflictError | None = None) -> None:
        self.reason = reason
        super().__init__()


@dataclass(frozen=True, slots=True)
class _Ready:
    """A merge that is planned, valid, and a commit that nothing leads to yet, with its message."""

    plan: Plan
    commit: str
    message: str
    changed: tuple[Document, ...]
    documents: int

    @property
    def sides(self) -> Sides:
        """The commits that are merged."""
        return self.plan.sides

    def told(self, into: str, commit: str) -> Merge:
        """What is told of it when it is made."""
        result = "fast-forward" if self.sides.is_forward else "merge"
        return Merge(into, result, commit, self.documents, len(self.plan.outcomes))


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a merge as a write of the site takes them."""

    ready: _Ready
    changeset: Changeset
    joined: Joined


class Merger:
    """Merges the branches of a site. Safe to use from many threads, and beside other processes."""

    def __init__(self, past: PastStates, branches: Branches) -> None:
        self.past, self.branches, self.site, self.root = past, branches, past.site, branches.root
        self._lock = threading.Lock()  # Threads wait for each other instead of planning in vain.

    def merge(self, request: MergeRequest, today: Settings) -> Merge:
        """Make a merge, all of it or nothing.

        Raises NotFoundError, ForbiddenError, ConflictError, UnmergedError for what both branches have
        changed, ValidationError for what the schema does not allow, StorageError and BusyError.
        """
        served = self.branches.served()
        into = request.into or served
        theirs = self.branches.commit(request.name)
        if not into:
            raise ConflictError("No branch is checked out; name one to merge into")
        if into == request.name:
            raise ValidationError("A branch can't be merged into itself")
        if into != served and self.branches.get(into).worktree:
            raise ConflictError(f'The branch "{into}" is checked out in another folder; merge it there')
        make = self._into_served if into == served else self._into_other
        reason: ApiError = BusyError(_OVERTAKEN_MESSAGE)
        with self._lock:
            for _ in range(MAX_ATTEMPTS):
                try:
                    return make(request, into, theirs, today)
                except _Overtaken as error:
                    reason = error.reason or reason
        raise reason

    # --- what it comes to ------------------------------------------------------------------------------

    def _ready(self, request: MergeRequest, sides: Sides, files: Changeset, today: Settings) -> _Ready:
        """Plan a merge, make its commit, and hold that against the rules. Raises what `merge` raises."""
        planner = Planner(self.past, request.actor, today, request.resolution)
        plan = planner.plan(sides, files)
        names = [f"{d.type.singular}/{d.any.document_id}" for d in plan.documents.values() if d.action]
        names += [f"upload/{key}" for path in plan.outcomes if (key := media_key(path))]
        message = with_trailers(self._message_of(request), request.by.actor, names)
        commit = self._commit(plan, message, request.by, today)
        try:
            before, after = self.past.at(sides.ours), self.past.at(commit)
        except ConflictError as error:
            cause = error.__cause__
            reason = str(cause) if isinstance(cause, SetupError) else error.message
            raise ConflictError(f"What the merge comes to is broken: {reason}") from error
        require_valid(before, after)
        changed, gone = dict(differing(after, before)), dict(differing(before, after))
        return _Ready(plan, commit, message, tuple(changed.values()), len({*changed, *gone}))

    def _message_of(self, request: MergeRequest) -> str:
        into = f" into {request.into}" if request.into not in ("", self.branches.served()) else ""
        return clean_message(request.by.message) or clean_message(f"Merge branch {request.name}{into}")

    def _commit(self, plan: Plan, message: str, by: Authorship, today: Settings) -> str:
        """The commit of a plan: theirs where that has all of ours."""
        sides = plan.sides
        if sides.is_forward:
            return sides.theirs
        committer = Person.of(today.git.committer)
        signed = Signed(message, Person(by.name, by.email or committer.email), committer)
        files = {path: _content(outcome) for path, outcome in plan.outcomes.items()}
        return make_commit(self.root, (sides.ours, sides.theirs), files, signed)

    # --- into a branch that is not checked out ---------------------------------------------------------

    def _into_other(self, request: MergeRequest, into: str, theirs: str, today: Settings) -> Merge:
        sides = sides_of(self.root, branch_commit(self.root, into), theirs)
        if sides.is_merged:
            return Merge(into, "nothing", sides.ours)
        files = CommittedFiles(self.root, self.past.at(sides.ours).known.blobs)
        ready = self._ready(request, sides, Changeset(self.root, files), today)
        self._move(into, sides, ready.commit)
        return ready.told(into, ready.commit)

    def _move(self, into: str, sides: Sides, commit: str) -> None:
        if not move_branch(self.root, into, commit, sides.ours, "merge"):
            raise _Overtaken()

    # --- into the branch that is served ----------------------------------------------------------------

    def _into_served(self, request: MergeRequest, into: str, theirs: str, today: Settings) -> Merge:
        self.site.committer.flush()
        sides = sides_of(self.root, head_commit(self.root), theirs)
        if sides.is_merged:
            return Merge(into, "nothing", sides.ours)
        ready = self._ready(request, sides, Changeset(self.root), today)
        self._refuse_uncommitted(ready.plan.outcomes)
        with tempfile.TemporaryDirectory(prefix="merge-", dir=self.root / STATE_FOLDER) as folder:
            files = self._files(ready, Path(folder), request.by, today)
            commit = self._make(files, into, request.by)
        self.site.refresh()
        return ready.told(into, commit)

    def _make(self, files: _Files, into: str, by: Authorship) -> str:
        """Make a merge that is ready, where a git remote takes it that has to be asked; see `_write`."""
        sides, ready = files.ready.sides, files.joined.ready
        with agreeing(self.site.arbiter, sides.ours, ready) as agreed:
            if agreed and files.changeset.writes():
                return self._write(files, by)
            if not agreed:
                raise _Overtaken()
            self._move(into, sides, ready)  # Both have changed the same: only the commit is new.
            return ready

    def _refuse_uncommitted(self, outcomes: Mapping[str, Outcome]) -> None:
        """Raise ConflictError where a file of a merge has changes that are in no commit, or is a folder."""
        coming = [path for path, outcome in outcomes.items() if outcome is not None]
        if folder := next((path for path in coming if (self.root / path).is_dir()), ""):
            what = f"{folder} is a folder here, and a file in the branch"
            raise ConflictError(f"{what}; {MERGE_HINT}", {"files": [folder]})
        try:
            found = sorted(_uncommitted_files(self.root, outcomes)) if outcomes else []
        except CommitError as error:
            raise ConflictError(f"The merge can't be made: {error}") from error
        if found:
            more = f" and {len(found) - _MAX_NAMED_FILES:,} more" if len(found) > _MAX_NAMED_FILES else ""
            names = ", ".join(found[:_MAX_NAMED_FILES])
            raise ConflictError(f"Commit {names}{more} first: the merge changes the same", {"paths": found})

    def _files(self, ready: _Ready, folder: Path, by: Authorship, today: Settings) -> _Files:
        """The files of a merge for the working tree, and its commit as hooks and filters would have it.

        Raises ConflictError where a hook refuses it, or git is busy.
        """
        changeset, sides = Changeset(self.root), ready.sides
        staged = {path: file for path, file in ready.plan.outcomes.items() if isinstance(file, Staged)}
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
        committer, now = Person.of(today.git.committer), int(time.time())
        author = Person(by.name, by.email or committer.email)
        contents = {write.path: write.data if write.source is None else write.source for write in writes}
        forward = sides.theirs if sides.is_forward else ""
        parents = (sides.ours, sides.theirs, forward)
        new = NewCommit(contents, ready.message, author, now, committer, now, *parents, known=staged)
        try:
            commit = self.site.committer.prepare(new).commit
        except CommitError as error:
            raise ConflictError(f"The merge can't be committed: {error}") from error
        return _Files(ready, changeset, Joined(sides.ours, sides.theirs, commit))

    def _write(self, files: _Files, by: Authorship) -> str:
        """Put the files in place and commit them; what the answer says of the commit."""
        message = files.ready.message.rpartition("\n\nBifolio-Actor: ")[0]
        signed = Authorship(by.actor, by.name, by.email, message)
        fit = partial(self._require_fit, files.ready)
        try:
            return put_in_place(self.site, Arrival(files.joined, files.changeset, fit), signed)
        except CommitError as error:
            raise ConflictError(f"The merge can't be committed: {error}") from error
        except ConflictError as error:  # Somebody has edited one of the files meanwhile.
            raise _Overtaken(error) from error

    def _require_fit(self, ready: _Ready, context: Context) -> None:
        """Raise where a merge does not fit what is served by now."""
        head = head_commit(self.root)
        ours, outcomes = ready.sides.ours, ready.plan.outcomes
        if head != ours:
            moved = changed_files(self.root, ours, head).keys()
            if ready.sides.is_forward or not moved.isdisjoint(outcomes) or any(map(is_configuration, moved)):
                raise _Overtaken()
        if not any(map(is_configuration, outcomes)):
            require_fit(ready.changed, context.snapshot, outcomes)


def _uncommitted_files(root: Path, outcomes: Mapping[str, Outcome]) -> Set[str]:
    """The files with changes in no commit that a merge would change, or push out of the index."""
    coming = [path for path, outcome in outcomes.items() if outcome is not None]
    return uncommitted_paths(root, list(outcomes)) | staged_in_place_of(repository_of(root), coming)


def _content(outcome: Outcome) -> bytes | Staged | None:
    return outcome.encode() if isinstance(outcome, str) else outcome
