"""Commits what is written through the API, where the settings of a site ask for that (docs/history.md).

A write is in the queue before it is answered, and is committed beside the site's write lock: by the request
that made it, or later by `server.site.background.jobs`, where git can't commit now or is to wait.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from server.errors import ApiError, BusyError, CommitError, GitError, StorageError
from server.paths import STATE_FOLDER
from server.site.commits.commit_record import record_of_commit
from server.site.commits.contents import contents_of
from server.site.commits.grouping import Group, due
from server.site.commits.message import Authorship, Joined, message_of, touched_documents
from server.site.commits.reverted import reverted_writes, unseen_writes
from server.site.record import Record
from server.site.replica import Replica
from server.site.writing.speculative_writes import Chain
from server.storage.git.checkout import holds
from server.storage.git.command import git_as_owner, is_full
from server.storage.git.commit import (
    Made,
    NewCommit,
    Person,
    changes_of,
    commit_by_git,
    is_nested,
    is_on_disk,
    is_own_commit,
    prepare_by_git,
    prepare_commit,
)
from server.storage.git.commit_queue import CommitQueue
from server.storage.git.index import (
    LockedIndex,
    locked_index,
    may_be_left,
    remove_own_lock,
    wait_for_index,
    wait_for_other_lock,
)
from server.storage.git.refs import checked_out, find_commit, is_ancestor
from server.storage.git.repository import Repository, Tree, repository_of
from server.storage.git.tree import changed_files
from server.storage.git.trouble import Concern, trouble_log
from server.storage.intent import Write

log = logging.getLogger("bifolio")

PENDING = "pending"
QUEUE_TIMEOUT_S = 5.0  # How long a request waits for the commits before its own.
GIT_LOCK_TIMEOUT_S = 2.0  # How long to wait for git commands that lock the index or make commits themselves.
INDEX_TIMEOUT_S = 1.0  # How long a git command that has written files may take to note that in its index.
BACKOFF_S = 1.0  # After a failure, requests leave the commits to the background for so long.
HOOK_RETRY_INTERVAL_S = 30.0  # After so long, a hook that refused a commit runs again.
REPOSITORY_CACHE_TTL_S = 5.0  # How long the place of the repository and its hooks are cached.
GC_INTERVAL_S = 600.0  # How often `git gc --auto` runs.


class Committer:
    """Commits the writes of the site at `root`.

    `locked` holds the site's write lock, up to date; under it, `append` appends a record to the log.
    `committed` is called with the name of each write that is in a commit now, and that commit. `write_again`,
    under the lock, makes writes again that git has reverted (see `reverted`).
    """

    def __init__(
        self,
        root: Path,
        replica: Replica,
        append: Callable[[Record], None],
        locked: Callable[[], AbstractContextManager[None]],
        committed: Callable[[str, str], None],
        write_again: Callable[[], None],
    ) -> None:
        self.root, self.queue = root, CommitQueue(root / STATE_FOLDER)
        self._replica, self._append, self._locked = replica, append, locked
        self._rests_until = 0.0
        self._known: tuple[tuple[Repository, bool] | None, float] = None, 0.0
        self._tidied = time.monotonic()
        self._trouble = trouble_log(root)
        self._committed, self._write_again = committed, write_again
        self._refused: dict[str, float] = {}  # by write, until when its commit is not tried again

    @property
    def _after(self) -> timedelta | None:
        return self._replica.state.settings.git.commit

    # --- a write ---------------------------------------------------------------------------------------

    @contextmanager
    def noting(self, writes: list[Write], by: Authorship, result: Any) -> Iterator[str]:
        """Have a write in the queue that is made in the block, under the write lock; "" where it is for none.

        Raises StorageError where it can't be noted, before the block.
        """
        contents = self._replica.contents
        joined = by.joined(result) if by.joined else None
        wanted = joined is not None or self._after is not None
        if not wanted or contents.git.place is None:
            if wanted:
                self._trouble.tell(
                    Concern.REPOSITORY, "the site is in no git repository", "writes are not committed"
                )
            yield ""
            return
        message, documents = self.described(writes, by, result)
        about = {
            "author": by.name,
            "email": by.email,
            "actor": by.actor,
            "message": message,
            "documents": documents,
            "at": time.time(),
            **(joined or Joined(contents.git.committed.commit, "", "")).noted,
        }
        files = contents_of(self.root, writes)
        try:
            name = self.queue.stage(about, files)
        except OSError as error:
            raise StorageError(f"The commit can't be noted: {error.strerror}") from error
        with self.queue.making(self.root, name, about):
            yield name
        with suppress(OSError):  # It is staged still, and settled by whoever has the write lock next.
            self.queue.keep(name)
            if joined and joined.move and joined.move():
                self.queue.finish(name, joined.ready)

    def extend(self, chain: Chain, writes: list[Write]) -> bool:
        """Add a write that is to be made to a chain; whether another can be prepared on it."""
        return chain.add(self._replica.contents, writes)

    def described(
        self, writes: list[Write], by: Authorship, result: Any, chain: Chain | None = None
    ) -> tuple[str, list[str]]:
        """The message of a commit of writes, without trailers, and the documents that these name."""
        contents, chain = self._replica.contents, chain or Chain(self.root, self._replica.state.snapshot)
        documents = touched_documents(
            writes, chain.over(contents.entries, writes), chain.snapshot, contents.store
        )
        return message_of(documents, by, result), [document.name for document in documents]

    def settle(self) -> bool:
        """Decide on what killed writers have left in the queue, under the lock; whether files changed."""
        return self.queue.settle(self.root)

    def finish(self, name: str, *, at_once: bool = False) -> str:
        """Commit a write with those before it, `at_once` whatever the settings say; what its answer says."""
        if not name:
            return ""
        if (self._after and not at_once) or time.monotonic() < self._rests_until:
            return PENDING
        if self.queue.is_pending(name):
            self._drain(QUEUE_TIMEOUT_S, name)
        return PENDING if self.queue.is_pending(name) else self.queue.commit_of(name)

    def commit_due(self) -> None:
        """Commit all writes whose time has come; what is to be done in the background."""
        if self.queue.is_unsettled:
            with suppress(BusyError), self._locked():
                pass  # Whoever has the lock settles what a killed process has left.
        if self.queue.pending():
            self._drain(0.0)
        self._remove_left_lock()
        self.queue.sweep()
        adds = self._after is not None or self._replica.state.settings.git.follow is not None
        if adds and time.monotonic() - self._tidied > GC_INTERVAL_S:
            self._tidied = time.monotonic()
            with suppress(CommitError):  # It packs what has become much, and as its owner has set it.
                git_as_owner(self.root, "gc", "--auto", "--quiet")

    def _remove_left_lock(self) -> None:
        """Remove the lock of the index that a killed process has left before it had anything to commit."""
        folder = self._replica.contents.git.folder
        if folder and may_be_left(folder):
            with self.queue.committing(0.0) as alone, suppress(CommitError):
                if alone:
                    remove_own_lock(repository_of(self.root))

    # --- commits ---------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Commit all writes that are pending, also those whose time has not come. What fails stays there."""
        if self.queue.pending():
            self._drain(QUEUE_TIMEOUT_S, early=True)

    def commit_files(
        self,
        files: Mapping[str, bytes | Path | None],
        message: str,
        documents: Collection[str],
        by: Authorship,
    ) -> str:
        """Commit files as they are, and nothing else, in somebody's name. Returns the commit, "" for none.

        `documents` are those that trailers name. It is noted first: a process that is killed over it leaves
        the commit to the next one. Raises CommitError: where a hook refuses it, while git is busy, and where
        a write of a file waits for that.
        """
        self.flush()
        about = {"author": by.name, "email": by.email, "actor": by.actor, "message": message, "asked": True}
        with self._locked():
            waiting = {path for write in self.queue.pending() for path in write.files} & files.keys()
            if waiting:
                raise CommitError(f"a write of {min(waiting)} waits to be committed itself")
            base = self._replica.contents.git.committed.commit
            more = {"documents": list(documents), "at": time.time(), "base": base}
            name = self.queue.stage({**about, **more}, files)
            self.queue.keep(name)
        with self.queue.committing(QUEUE_TIMEOUT_S) as alone:
            try:
                if not alone:
                    raise CommitError("other commits take long")
                for write in self.queue.pending():
                    if write.name == name:
                        self._known = None, 0.0  # A hook that was added just now counts.
                        repository, by_git = self.repository()
                        remove_own_lock(repository)
                        repository.require_quiet()
                        self._commit(repository, Group([write]), by_git=by_git)
            except BaseException:
                self.queue.drop(name)
                raise
        return self.queue.commit_of(name)

    def join(self, joined: Joined, by: Authorship) -> str:
        """Let the branch move to a commit that takes no files but those `beside` it; see `finish`."""
        about = {"author": by.name, "email": by.email, "actor": by.actor, "message": by.message}
        with self._locked():
            noted = {**about, **joined.noted, "documents": [], "at": time.time()}
            name = self.queue.stage(noted, {})
            with self.queue.making(self.root, name, noted):
                self.queue.keep(name)
        return self.finish(name, at_once=True)

    def prepare(self, new: NewCommit) -> Made:
        """Make a commit on top of `new.base`, which nobody sees yet; the hooks of the repository have agreed.

        One that is `ready` is left as it is; only whether git is busy is asked then. There is none where it
        would change nothing that git does not ignore. Raises CommitError: where a hook refuses it, and while
        git is busy with something else.
        """
        with self.queue.committing(QUEUE_TIMEOUT_S) as alone:
            if not alone:
                raise CommitError("other commits take long")
            repository, by_git = self.repository()
            remove_own_lock(repository)
            repository.require_quiet()
            wait_for_index(repository, time.monotonic() + GIT_LOCK_TIMEOUT_S)
            if new.ready:
                return Made(new.ready)
            changed = changes_of(repository, new, new.base)
            if not changed and not new.joins:
                return Made()
            if by_git:
                return Made(prepare_by_git(repository, new, new.base, changed))
            return Made(prepare_commit(repository, new, new.base, changed), changed, new.committed)

    def _drain(self, seconds: float, until: str = "", *, early: bool = False) -> None:
        """Commit what is due in the queue; up to a write, if one is named. What fails stays there."""
        try:
            with self.queue.committing(seconds) as alone:
                if alone and not (until and not self.queue.is_pending(until)):
                    self._commit_groups(until, early=early)
        except (CommitError, GitError, OSError) as error:
            self._rests_until = time.monotonic() + BACKOFF_S
            self._known = None, 0.0
            self._tell(error)

    def _commit_groups(self, until: str, *, early: bool) -> None:
        groups = due(self.queue.pending(), self._after or timedelta(), inf if early else time.time())
        if not groups:
            return
        repository, by_git = self.repository()
        remove_own_lock(repository)
        repository.require_quiet()
        held: set[str] = set()  # files of writes that stay in the queue: later ones of the same wait
        for group in groups:
            if not held.isdisjoint(group.files) or not self._try(repository, group, by_git=by_git):
                held.update(group.files)
            if until and group.last.name >= until:
                return

    def repository(self) -> tuple[Repository, bool]:
        """The repository, and whether `git commit` is to make its commits. Raises CommitError."""
        known, until = self._known
        if known is None or time.monotonic() > until:
            repository = repository_of(self.root)
            known = repository, repository.runs_programs
            self._known = known, time.monotonic() + REPOSITORY_CACHE_TTL_S
        return known

    def _try(self, repository: Repository, group: Group, *, by_git: bool) -> bool:
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
            self._refused[name] = time.monotonic() + HOOK_RETRY_INTERVAL_S
            self._tell(error)
            if group.last.asked:  # Who asked for it is gone, and nobody waits for another try.
                self.queue.drop(name)
            return False
        if not self.queue.waiting:
            self._trouble.end(Concern.COMMITS, Concern.CHANGED, Concern.REPOSITORY)
        return True

    def _commit(self, repository: Repository, group: Group, *, by_git: bool) -> None:
        """Make the commit of a group, again where somebody else made one meanwhile. Raises CommitError."""
        deadline = time.monotonic() + GIT_LOCK_TIMEOUT_S
        while True:
            wait_for_index(repository, deadline)  # What is made in vain stays for a while.
            head = repository.head()
            try:
                commit = self._make_commit(repository, self._new(group), head, by_git=by_git)
                break
            except CommitError as error:
                if not error.overtaken and (is_full(str(error)) or repository.head() == head):
                    raise  # It would fail again: what it needs is not changed within a moment.
                if time.monotonic() > deadline:
                    raise CommitError(str(error)) from error
        self._tell_of_places(group)
        if commit:
            self._tell_of_lost_writes(repository, group, head, commit)
        for write in group.writes:
            self.queue.finish(write.name, commit)
            if commit:
                self._committed(write.name, commit)

    def _new(self, group: Group) -> NewCommit:
        committer, last = Person.of(self._replica.state.settings.git.committer), group.last
        author = Person(last.author or committer.name, last.email or committer.email)
        base = group.writes[0].base
        now = int(time.time())
        joined = (last.joins, last.ready)
        files, at = group.files, int(last.at)
        return NewCommit(files, group.message, author, at, committer, now, base, *joined, exact=last.exact)

    def _make_commit(self, repository: Repository, new: NewCommit, head: str, *, by_git: bool) -> str:
        """The commit that was made, the branch being at it; "" where there was nothing to commit."""
        if new.joins:
            return self._commit_merge(repository, new, head, by_git=by_git)
        changed = changes_of(repository, new, head)
        if not changed:
            return self._find_commit(repository, new, head)
        if by_git:
            commit = commit_by_git(repository, new, head, changed)
            self._sync_index(repository, repository.versions(commit, changed))
            return commit
        commit = prepare_commit(repository, new, head, changed)
        with locked_index(repository, changed) as index:
            if (now := repository.head()) != head:  # From here on, it moves no more.
                if changes_of(repository, new, now) != changed:
                    raise CommitError("others have committed the same files", overtaken=True)
                head, commit = now, prepare_commit(repository, new, now, changed)
            with self._unreverted():
                self._publish(index, new, head, commit, changed)
        return commit

    def _commit_merge(self, repository: Repository, new: NewCommit, head: str, *, by_git: bool) -> str:
        """The commit of a merge, the branch being at it: the one that is ready, where that still fits."""
        moved = changed_files(self.root, new.base, new.ready) if new.ready else {}
        goes_back = new.exact and head == new.base  # to a commit that is in the branch already
        if not goes_back and is_ancestor(
            self.root, new.joins, head
        ):  # Who was killed has made it, or by hand.
            self._sync_index(repository, repository.versions(head, {**new.files, **moved}))
            return head
        if new.ready and head == new.base and find_commit(self.root, new.ready):
            commit = new.ready
        elif new.exact:  # Whoever has brought it finds its files as edits, and brings it again.
            return ""
        else:
            make = prepare_by_git if by_git else prepare_commit
            commit = make(repository, new, head, changes_of(repository, new, head))
        with locked_index(repository, repository.versions(commit, {**new.files, **moved})) as index:
            if repository.head() != head:
                raise CommitError("others have committed meanwhile", overtaken=True)
            with self._unreverted():
                index.move_head(head, commit, new.committer.environment("COMMITTER", new.committed))
        return commit

    def _publish(self, index: LockedIndex, new: NewCommit, head: str, commit: str, changed: Tree) -> None:
        """Let the branch move to a commit that is made, and the state know of it; call it under the lock."""
        environment = new.committer.environment("COMMITTER", new.committed)
        move_head = partial(index.move_head, head, commit, environment)
        record = record_of_commit(self._replica.contents, new, commit, changed, move_head)
        if record is not None:
            self._append(record)

    def _find_commit(self, repository: Repository, new: NewCommit, head: str) -> str:
        """The commit that has all of a write already, if it was made here by one who was killed then."""
        if not head or not is_own_commit(repository, head, new.files):
            return ""
        self._sync_index(repository, repository.versions(head, new.files))
        return head

    def _sync_index(self, repository: Repository, files: Tree) -> None:
        """Write some files of a finished commit into the index."""
        with locked_index(repository, files) as index, self._unreverted():
            index.replace()

    @contextmanager
    def _unreverted(self) -> Iterator[None]:
        """Hold the write lock, with all writes made again that git has reverted. Raises CommitError.

        Call it with the index locked: until that is released, no git command reverts any more.
        """
        with self._locked():
            try:
                self._write_again()
            except ApiError as error:
                raise CommitError(f"a write that git has reverted can't be made again: {error}") from error
            yield

    def reverted(self) -> list[Write]:
        """Return writes that restore what git has reverted; call it under the lock.

        Raises CommitError and GitError.
        """
        if not self.queue.waiting:
            return []
        unseen = unseen_writes(self._replica.contents, self.queue.pending())
        if not unseen:
            return []
        repository, _ = self.repository()
        wait_for_other_lock(repository.folder, INDEX_TIMEOUT_S)
        return reverted_writes(repository, unseen)

    def tell_of_reverted(self, writes: list[Write]) -> None:
        """Say which files are written again that a git command has reverted."""
        for write in writes:
            log.warning(
                "%s: a git command has put %s back to before a write that is not committed yet; "
                "it is written again",
                self.root, write.path,
            )  # fmt: skip

    # --- what the log says -----------------------------------------------------------------------------

    def _tell(self, error: Exception) -> None:
        """Say once why commits wait."""
        reason = str(error)
        if isinstance(error, OSError):
            reason = f"{error.filename or 'a file'} can't be written: {error.strerror}"
        self._trouble.tell(Concern.COMMITS, reason, "commits wait")

    def _tell_of_places(self, group: Group) -> None:
        """Say once that commits are on no branch, and of files that belong to another repository."""
        if checked_out(self.root):
            self._trouble.end(Concern.DETACHED)
        else:
            self._trouble.tell(
                Concern.DETACHED, "HEAD is detached, so that commits of writes are on no branch"
            )
        if nested := next((path for path in group.files if is_nested(self.root, path)), None):
            self._trouble.tell(
                Concern.SUBMODULES, f"{nested} is in another repository", "writes there are not committed"
            )

    def _tell_of_lost_writes(self, repository: Repository, group: Group, before: str, commit: str) -> None:
        """Log the files that a git command reverted before their write was committed."""
        others = [path for path, data in group.files.items() if not is_on_disk(self.root / path, data)]
        for path, file in repository.versions(before, others).items() if others else ():
            if holds(repository, path, file):
                log.warning(
                    "%s: a git command has put %s back to before a write, which is in commit %s; "
                    "git restore %s brings it back",
                    self.root, path, commit[:10], path,
                )  # fmt: skip
