"""Commits what is written through the API, where the settings of a site ask for that (docs/history.md).

A write is in the queue before it is answered, and is committed beside the site's write lock: by the request
that made it, or later by `server.site.background.committer`, where git can't commit now or is to wait.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import Any

from server.errors import BusyError, CommitError, GitSlowError, StorageError
from server.paths import FOLDER
from server.site.commits.message import Authorship, message_of, summary, touched, with_trailers
from server.site.git_state import git_moved, with_commit
from server.site.look import look_at_committed
from server.site.record import Record
from server.site.replica import Replica
from server.storage.git.command import git_as_owner
from server.storage.git.commit import (
    NewCommit,
    Person,
    changes_of,
    commit_by_git,
    is_on_disk,
    is_own_commit,
    prepare_commit,
    prepare_merge,
)
from server.storage.git.commit_queue import CommitQueue, Pending
from server.storage.git.index import LOCKED, LockedIndex, locked_index, remove_own_lock, sync_index
from server.storage.git.refs import find_commit, is_ancestor
from server.storage.git.repository import Repository, Tree, repository_of
from server.storage.journal import Write

log = logging.getLogger("quire")

PENDING = "pending"
WAIT_S = 5.0  # how long a request waits until those before it are committed
LOCK_S = 2.0  # how long git commands are waited for that have locked the index, or make commits themselves
REST_S = 1.0  # for so long after a failure requests leave it to the background
RETRY_S = 30.0  # after this long a hook is asked again that has refused a commit
KNOWN_S = 5.0  # for so long it is believed where the repository is, and whether it has hooks
TIDY_S = 600.0  # how often git is let pack what it has
_PAUSE_S = 0.01


@dataclass(slots=True)
class _Group:
    """Writes of one author that are one commit."""

    writes: list[Pending] = field(default_factory=list)

    @property
    def last(self) -> Pending:
        return self.writes[-1]

    @property
    def files(self) -> dict[str, bytes | Path | None]:
        """What is to be in the commit: of each file, what was written last."""
        return {path: content for write in self.writes for path, content in write.files.items()}

    @property
    def message(self) -> str:
        said = summary([write.message for write in self.writes])
        return with_trailers(said, self.last.actor, (name for w in self.writes for name in w.documents))


class Committer:
    """Commits the writes of the site at `root`.

    `locked` holds the site's write lock, up to date; under it, `append` appends a record to the log.
    """

    def __init__(
        self,
        root: Path,
        replica: Replica,
        append: Callable[[Record], None],
        locked: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.root, self.queue = root, CommitQueue(root / FOLDER)
        self._replica, self._append, self._locked = replica, append, locked
        self._rests_until = 0.0
        self._known: tuple[tuple[Repository, bool] | None, float] = None, 0.0
        self._tidied = time.monotonic()
        self._told: set[str] = set()
        self.on_commit: Callable[[str, str], None] | None = None  # is told of a write that is in a commit now
        self._refused: dict[str, float] = {}  # by write, until when its commit is not tried again

    @property
    def _after(self) -> timedelta | None:
        return self._replica.state.settings.commit

    # --- a write ---------------------------------------------------------------------------------------

    @contextmanager
    def noting(self, writes: list[Write], by: Authorship | None, result: Any) -> Iterator[str]:
        """Have a write in the queue that is made in the block, under the write lock; "" where it is for none.

        Raises StorageError where it can't be noted, before the block.
        """
        contents = self._replica.contents
        joined = by.joined(result) if by and by.joined else None
        wanted = by is not None and (joined is not None or self._after is not None)
        if by is None or not wanted or contents.git.place is None:
            if wanted:
                self._tell("the site is in no repository")
            yield ""
            return
        snapshot = self._replica.state.snapshot
        documents = touched(writes, contents.entries, snapshot, contents.store)
        about = {
            "author": by.name,
            "email": by.email,
            "actor": by.actor,
            "message": message_of(documents, by, result),
            "documents": [document.name for document in documents],
            "at": time.time(),
            "base": joined.base if joined else contents.git.committed.commit,
            "joins": joined.joins if joined else "",
            "ready": joined.ready if joined else "",
        }
        files = {self._path(write): write.data if write.source is None else write.source for write in writes}
        try:
            name = self.queue.stage(about, files)
        except OSError as error:
            raise StorageError(f"The commit can't be noted: {error.strerror}") from error
        try:
            yield name
        except BaseException:
            self.queue.drop(name)
            raise
        with suppress(OSError):  # It is staged still, and settled by whoever has the write lock next.
            self.queue.keep(name)

    def settle(self) -> None:
        """Decide on what killed writers have left in the queue; call it under the write lock."""
        self.queue.settle(self.root)

    def finish(self, name: str, *, at_once: bool = False) -> str:
        """Commit a write, if it is to be at once, with those before it. Returns what its answer says.

        `at_once`: it is, whatever the settings say.
        """
        if not name:
            return ""
        if (self._after and not at_once) or time.monotonic() < self._rests_until:
            return PENDING
        self._drain(WAIT_S, name)
        return PENDING if self.queue.is_pending(name) else self.queue.commit_of(name)

    def commit_due(self) -> None:
        """Commit all writes whose time has come; what is to be done in the background."""
        if self.queue.is_unsettled:
            with suppress(BusyError), self._locked():
                pass  # Whoever has the lock settles what a killed process has left.
        if self.queue.pending():
            self._drain(0.0)
        self.queue.sweep()
        if self._after is not None and time.monotonic() - self._tidied > TIDY_S:
            self._tidied = time.monotonic()
            with suppress(CommitError):  # It packs what has become much, and as its owner has set it.
                git_as_owner(self.root, "gc", "--auto", "--quiet")

    def _path(self, write: Write) -> str:
        """The path of the file that a write changes, where links lead to it."""
        path = self.root / write.path
        target = path.parent.resolve() / path.name if write.deletes else path.resolve()
        return target.relative_to(self.root).as_posix()

    # --- commits ---------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Commit all writes that are pending, also those whose time has not come. What fails stays there."""
        if self.queue.pending():
            self._drain(WAIT_S, early=True)

    def prepare(self, new: NewCommit) -> str:
        """Make a merge on top of `new.base`, which nobody sees yet; the hooks of the repository have agreed.

        One that is `ready` is left as it is; only whether git is busy is asked then.
        Raises CommitError: where a hook refuses it, and while git is busy with something else.
        """
        with self.queue.committing(WAIT_S) as alone:
            if not alone:
                raise CommitError("other commits take long")
            repository, by_git = self._repository()
            remove_own_lock(repository)
            repository.require_quiet()
            _wait_for_index(repository, time.monotonic() + LOCK_S)
            if new.ready:
                return new.ready
            changed = changes_of(repository, new, new.base)
            make = prepare_merge if by_git else prepare_commit
            return make(repository, new, new.base, changed)

    def _drain(self, seconds: float, until: str = "", *, early: bool = False) -> None:
        """Commit what is due in the queue; up to a write, if one is named. What fails stays there."""
        try:
            with self.queue.committing(seconds) as alone:
                if alone and not (until and not self.queue.is_pending(until)):
                    self._commit_groups(until, early=early)
        except (CommitError, GitSlowError, OSError) as error:
            self._rests_until = time.monotonic() + REST_S
            self._known = None, 0.0
            self._tell(str(error))

    def _commit_groups(self, until: str, *, early: bool) -> None:
        groups = due(self.queue.pending(), self._after or timedelta(), inf if early else time.time())
        if not groups:
            return
        repository, by_git = self._repository()
        remove_own_lock(repository)
        repository.require_quiet()
        held: set[str] = set()  # files of writes that stay in the queue: later ones of the same wait
        for group in groups:
            if not held.isdisjoint(group.files) or not self._try(repository, group, by_git=by_git):
                held.update(group.files)
            if until and group.last.name >= until:
                return

    def _repository(self) -> tuple[Repository, bool]:
        """The repository, and whether `git commit` is to make its commits. Raises CommitError."""
        known, until = self._known
        if known is None or time.monotonic() > until:
            repository = repository_of(self.root)
            known = repository, repository.runs_programs
            self._known = known, time.monotonic() + KNOWN_S
        return known

    def _try(self, repository: Repository, group: _Group, *, by_git: bool) -> bool:
        """Commit a group, unless that is refused: by a hook, say, which is asked again later."""
        name = group.last.name
        if time.monotonic() < self._refused.get(name, 0.0):
            return False
        self._refused.pop(name, None)
        try:
            self._commit(repository, group, by_git=by_git)
        except CommitError as error:
            if not error.refused:
                raise
            self._refused[name] = time.monotonic() + RETRY_S
            self._tell(str(error))
            return False
        self._told.clear()
        return True

    def _commit(self, repository: Repository, group: _Group, *, by_git: bool) -> None:
        """Make the commit of a group, again where somebody else made one meanwhile. Raises CommitError."""
        deadline = time.monotonic() + LOCK_S
        while True:
            _wait_for_index(repository, deadline)  # What is made in vain stays for a while.
            head = repository.head()
            try:
                commit = self._made(repository, self._new(group), head, by_git=by_git)
                break
            except CommitError as error:
                if error.refused and repository.head() == head:
                    raise
                if time.monotonic() > deadline:
                    raise CommitError(str(error)) from error
        for write in group.writes:
            self.queue.finish(write.name, commit)
            if commit and self.on_commit:
                self.on_commit(write.name, commit)

    def _new(self, group: _Group) -> NewCommit:
        committer, last = Person.of(self._replica.state.settings.committer), group.last
        author = Person(last.author or committer.name, last.email or committer.email)
        base = group.writes[0].base
        now = int(time.time())
        joined = (last.joins, last.ready)
        return NewCommit(group.files, group.message, author, int(last.at), committer, now, base, *joined)

    def _made(self, repository: Repository, new: NewCommit, head: str, *, by_git: bool) -> str:
        """The commit that was made, the branch being at it; "" where there was nothing to commit."""
        if new.joins:
            return self._merged(repository, new, head, by_git=by_git)
        changed = changes_of(repository, new, head)
        if not changed:
            return self._found(repository, new, head)
        if by_git:
            commit = commit_by_git(repository, new, head, changed)
            sync_index(repository, _as_in(repository, commit, changed))
            return commit
        commit = prepare_commit(repository, new, head, changed)
        with locked_index(repository, changed) as index:
            if (now := repository.head()) != head:  # From here on, it moves no more.
                if changes_of(repository, new, now) != changed:
                    raise CommitError("others have committed the same files")
                head, commit = now, prepare_commit(repository, new, now, changed)
            with self._locked():
                self._publish(index, new, head, commit, changed)
        return commit

    def _merged(self, repository: Repository, new: NewCommit, head: str, *, by_git: bool) -> str:
        """The commit of a merge, the branch being at it: the one that is ready, where that still fits."""
        if is_ancestor(self.root, new.joins, head):  # Who was killed has made it, or somebody by hand.
            sync_index(repository, _as_in(repository, head, new.files))
            return head
        if new.ready and head == new.base and find_commit(self.root, new.ready):
            commit = new.ready
        else:
            make = prepare_merge if by_git else prepare_commit
            commit = make(repository, new, head, changes_of(repository, new, head))
        with locked_index(repository, _as_in(repository, commit, new.files)) as index:
            if repository.head() != head:
                raise CommitError("others have committed meanwhile")
            with self._locked():
                index.move_head(head, commit, new.committer.environment("COMMITTER", new.committed))
        return commit

    def _publish(self, index: LockedIndex, new: NewCommit, head: str, commit: str, changed: Tree) -> None:
        """Let the branch move to a commit that is made, and the state know of it; call it under the lock."""
        contents = self._replica.contents
        followed = contents.git.head is not None and not git_moved(self.root, contents.git)
        index.move_head(head, commit, new.committer.environment("COMMITTER", new.committed))
        if followed:  # Otherwise a look is due anyhow, which finds out.
            files = {path: is_on_disk(self.root / path, new.files[path]) for path in changed}
            git = with_commit(contents.git, commit, new.committed, files)
            self._append(look_at_committed(contents, git, files.keys()))

    def _found(self, repository: Repository, new: NewCommit, head: str) -> str:
        """The commit that has all of a write already, if it was made here by one who was killed then."""
        if not head or not is_own_commit(repository, head):
            return ""
        sync_index(repository, _as_in(repository, head, new.files))
        return head

    def _tell(self, reason: str) -> None:
        """Say once why commits wait."""
        if reason not in self._told:
            self._told.add(reason)
            log.warning("commits wait: %s", reason)


def _wait_for_index(repository: Repository, deadline: float) -> None:
    """Wait while a git command has locked the index. Raises CommitError after the deadline."""
    while repository.is_locked:
        if time.monotonic() > deadline:
            raise CommitError(LOCKED)
        time.sleep(_PAUSE_S)


def _as_in(repository: Repository, commit: str, paths: Mapping[str, object]) -> Tree:
    """Some files as a commit has them."""
    there = repository.tree(commit, list(paths))
    return {path: there.get(path) for path in paths}


def due(pending: list[Pending], after: timedelta, now: float) -> list[_Group]:
    """The commits to be made now, in their order, each of one author's writes.

    Writes of one author come into one commit, unless another author has written the same file in between.
    A commit waits for those before it that have one of its files. A merge is one by itself, and at once.
    """
    groups: list[_Group] = []
    for write in pending:
        group = _Group() if not after or write.joins else _joined(groups, write)
        if not group.writes:
            groups.append(group)
        group.writes.append(write)
    last = {_author(write): write.at for write in pending}
    ready: list[_Group] = []
    waiting: set[str] = set()
    for group in groups:
        late = bool(group.last.joins) or now - last[_author(group.last)] >= after.total_seconds()
        if late and waiting.isdisjoint(group.files):
            ready.append(group)
        else:
            waiting.update(group.files)
    return ready


def _joined(groups: list[_Group], write: Pending) -> _Group:
    """The group that a write can be added to; a new one where there is none."""
    for group in reversed(groups):
        if _author(group.last) == _author(write) and not group.last.joins:
            return group
        if not write.files.keys().isdisjoint(group.files):
            break
    return _Group()


def _author(write: Pending) -> tuple[str, str, str]:
    return write.actor, write.author, write.email
