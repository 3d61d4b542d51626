"""Commits of writes through the API, if the site's settings require them (docs/history.md).

A write is added to a queue before its response is sent. It is committed without holding the site's write
lock. Usually, this happens during the request. If git is busy or the settings delay commits,
`server.site.background.jobs` commits the write later.
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
from server.site.commits.contents import contents_of, replaced_digests
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
from server.storage.git.refs import checked_out, find_commit, head_commit, is_ancestor
from server.storage.git.repository import Repository, Tree, repository_of
from server.storage.git.tree import changed_files
from server.storage.git.trouble import Concern, trouble_log
from server.storage.git.written import ByOthers, committed_by_others, is_on_disk
from server.storage.intent import Write

log = logging.getLogger("bifolio")

PENDING = "pending"
QUEUE_TIMEOUT_S = 5.0  # A request waits this long for earlier commits.
GIT_LOCK_TIMEOUT_S = 2.0  # Wait this long for git commands that lock the index or commit.
INDEX_TIMEOUT_S = 1.0  # Wait this long for a git command to write its index after its files.
BACKOFF_S = 1.0  # For this long after a failure, only the background job commits.
HOOK_RETRY_INTERVAL_S = 30.0  # A rejected commit is retried at this interval.
REPOSITORY_CACHE_TTL_S = 5.0  # The repository's location and hooks are cached for this long.
GC_INTERVAL_S = 600.0  # `git gc --auto` runs at this interval.


class Committer:
    """Commits the writes to the site at `root`.

    - `locked` returns a context manager that holds the site's write lock with an up-to-date state.
    - `append` appends a record to the change log. It requires the write lock.
    - `committed` is called for each committed write, with its name in the queue and its commit.
    - `write_again` repeats writes that a git command has reverted (see `reverted`). It requires the write
      lock.
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
        self._paused_until = 0.0
        self._repository_cache: tuple[tuple[Repository, bool] | None, float] = None, 0.0
        self._gc_at = time.monotonic()
        self._trouble = trouble_log(root)
        self._committed, self._write_again = committed, write_again
        self._refused: dict[str, float] = {}  # time of the next attempt, by write

    @property
    def _delay(self) -> timedelta | None:
        return self._replica.state.settings.git.commit

    # --- writes ----------------------------------------------------------------------------------------

    @contextmanager
    def noting(self, writes: list[Write], by: Authorship, result: Any) -> Iterator[str]:
        """Context manager: add the write that is made in the block to the queue. Requires the write lock.

        Yields the name of the write, or "" if it needs no commit. Raises StorageError before the block if the
        queue can't be written.
        """
        contents = self._replica.contents
        joined = by.joined(result) if by.joined else None
        is_needed = joined is not None or self._delay is not None
        if not is_needed or contents.git.place is None:
            if is_needed:
                self._trouble.tell(
                    Concern.REPOSITORY, "the site is not in a git repository", "writes are not committed"
                )
            yield ""
            return
        message, documents = self.described(writes, by, result)
        metadata = {
            "author": by.name,
            "email": by.email,
            "actor": by.actor,
            "message": message,
            "documents": documents,
            "at": time.time(),
            "replaced": replaced_digests(self.root, writes),
            **(joined or Joined(self._head(), "", "")).noted,
        }
        files = contents_of(self.root, writes)
        try:
            name = self.queue.stage(metadata, files)
        except OSError as error:
            raise StorageError(f"The commit can't be queued: {error.strerror}") from error
        with self.queue.making(self.root, name, metadata):
            yield name
        with suppress(OSError):  # On failure, the next holder of the write lock queues the write.
            self.queue.keep(name)
            if joined and joined.move and joined.move():
                self.queue.finish(name, joined.ready)

    def _head(self) -> str:
        """Return the checked-out commit. The replica's may be older: git may just have made another."""
        try:
            return head_commit(self.root)
        except GitError:
            return self._replica.contents.git.committed.commit

    def extend(self, chain: Chain, writes: list[Write]) -> bool:
        """Add a planned write to a chain. Return whether another write can be prepared on top of it."""
        return chain.add(self._replica.contents, writes)

    def described(
        self, writes: list[Write], by: Authorship, result: Any, chain: Chain | None = None
    ) -> tuple[str, list[str]]:
        """Return the commit message for writes, without trailers, and the names of documents for the
        trailers.
        """
        contents, chain = self._replica.contents, chain or Chain(self.root, self._replica.state.snapshot)
        documents = touched_documents(
            writes, chain.over(contents.entries, writes), chain.snapshot, contents.store
        )
        return message_of(documents, by, result), [document.name for document in documents]

    def settle(self) -> bool:
        """Finish or discard the queued writes of processes that were killed.

        Return whether files changed. Requires the write lock.
        """
        return self.queue.settle(self.root)

    def finish(self, name: str, *, at_once: bool = False) -> str:
        """Commit a write and all earlier writes. Return the write's commit.

        Return PENDING if it will be committed later, and "" if it needs no commit. `at_once` overrides the
        delay in the settings.
        """
        if not name:
            return ""
        if (self._delay and not at_once) or time.monotonic() < self._paused_until:
            return PENDING
        if self.queue.is_pending(name):
            self._drain(QUEUE_TIMEOUT_S, name)
        return PENDING if self.queue.is_pending(name) else self.queue.commit_of(name)

    def commit_due(self) -> None:
        """Commit all writes that are due, and clean up. A background job calls this."""
        if self.queue.is_unsettled:
            with suppress(BusyError), self._locked():
                pass  # Acquiring the lock settles the staged writes of a killed process.
        if self.queue.pending():
            self._drain(0.0)
        self._remove_left_lock()
        self.queue.sweep()
        makes_objects = self._delay is not None or self._replica.state.settings.git.follow is not None
        if makes_objects and time.monotonic() - self._gc_at > GC_INTERVAL_S:
            self._gc_at = time.monotonic()
            with suppress(CommitError):  # Packs loose objects if the repository's settings require it.
                git_as_owner(self.root, "gc", "--auto", "--quiet")

    def _remove_left_lock(self) -> None:
        """Remove the index lock of a killed process of this server, if that process had not committed
        anything.
        """
        folder = self._replica.contents.git.folder
        if folder and may_be_left(folder):
            with self.queue.committing(0.0) as alone, suppress(CommitError):
                if alone:
                    remove_own_lock(repository_of(self.root))

    # --- commits ---------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Commit all pending writes, including those that are not due yet.

        Writes that could not be committed stay in the queue.
        """
        if self.queue.pending():
            self._drain(QUEUE_TIMEOUT_S, early=True)

    def commit_files(
        self,
        files: Mapping[str, bytes | Path | None],
        message: str,
        documents: Collection[str],
        by: Authorship,
    ) -> str:
        """Commit only the given files, with the given contents. Return the commit, or "" if nothing has
        changed.

        `documents` are listed in the trailers. The commit is added to the queue first, so it survives a
        crash. Raises CommitError if a hook rejects it, if git is busy, or if an earlier write to one of the
        files is still pending.
        """
        self.flush()
        metadata = {
            "author": by.name,
            "email": by.email,
            "actor": by.actor,
            "message": message,
            "asked": True,
        }
        with self._locked():
            waiting = {path for write in self.queue.pending() for path in write.files} & files.keys()
            if waiting:
                raise CommitError(f"a write to {min(waiting)} has not been committed yet")
            more = {"documents": list(documents), "at": time.time(), "base": self._head()}
            name = self.queue.stage({**metadata, **more}, files)
            self.queue.keep(name)
        with self.queue.committing(QUEUE_TIMEOUT_S) as alone:
            try:
                if not alone:
                    raise CommitError("other commits are taking long")
                for write in self.queue.pending():
                    if write.name == name:
                        self._repository_cache = None, 0.0  # Detects hooks that were just added.
                        repository, by_git = self.repository()
                        remove_own_lock(repository)
                        repository.require_quiet()
                        self._commit(repository, Group([write]), by_git=by_git)
            except BaseException:
                self.queue.drop(name)
                raise
        return self.queue.commit_of(name)

    def join(self, joined: Joined, by: Authorship) -> str:
        """Move the branch to a merge commit that changes no files except those in `beside`. See `finish`."""
        metadata = {"author": by.name, "email": by.email, "actor": by.actor, "message": by.message}
        with self._locked():
            entry = {**metadata, **joined.noted, "documents": [], "at": time.time()}
            name = self.queue.stage(entry, {})
            with self.queue.making(self.root, name, entry):
                self.queue.keep(name)
        return self.finish(name, at_once=True)

    def prepare(self, new: NewCommit) -> Made:
        """Create a commit on top of `new.base` without moving a ref. The repository's hooks must accept it.

        If `new.ready` is set, return that commit after checking that git is not busy. If git would ignore
        every change, return an empty Made. Raises CommitError if a hook rejects the commit or git is busy.
        """
        with self.queue.committing(QUEUE_TIMEOUT_S) as alone:
            if not alone:
                raise CommitError("other commits are taking long")
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
        """Commit the queued writes that are due. If `until` is given, stop after that write.

        Writes that could not be committed stay in the queue.
        """
        try:
            with self.queue.committing(seconds) as alone:
                if alone and not (until and not self.queue.is_pending(until)):
                    self._commit_groups(until, early=early)
        except (CommitError, GitError, OSError) as error:
            self._paused_until = time.monotonic() + BACKOFF_S
            self._repository_cache = None, 0.0
            self._log_failure(error)

    def _commit_groups(self, until: str, *, early: bool) -> None:
        groups = due(self.queue.pending(), self._delay or timedelta(), inf if early else time.time())
        if not groups:
            return
        repository, by_git = self.repository()
        remove_own_lock(repository)
        repository.require_quiet()
        blocked: set[str] = set()  # files in failed commits; later writes to them must wait
        for group in groups:
            if not blocked.isdisjoint(group.files) or not self._try(repository, group, by_git=by_git):
                blocked.update(group.files)
            if until and group.last.name >= until:
                return

    def repository(self) -> tuple[Repository, bool]:
        """Return the repository, and whether commits must be made by `git commit`. Raises CommitError."""
        cached, until = self._repository_cache
        if cached is None or time.monotonic() > until:
            repository = repository_of(self.root)
            cached = repository, repository.runs_programs
            self._repository_cache = cached, time.monotonic() + REPOSITORY_CACHE_TTL_S
        return cached

    def _try(self, repository: Repository, group: Group, *, by_git: bool) -> bool:
        """Commit a group.

        Return False if the commit was rejected, for example by a hook. It will be retried later.
        """
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
            self._log_failure(error)
            if group.last.asked:  # The request has ended, so do not retry.
                self.queue.drop(name)
            return False
        if not self.queue.waiting:
            self._trouble.end(Concern.COMMITS, Concern.CHANGED, Concern.REPOSITORY)
        return True

    def _commit(self, repository: Repository, group: Group, *, by_git: bool) -> None:
        """Commit a group. If another program commits at the same time, retry. Raises CommitError."""
        deadline = time.monotonic() + GIT_LOCK_TIMEOUT_S
        while True:
            wait_for_index(repository, deadline)  # Otherwise the new commit might have to be discarded.
            head = repository.head()
            try:
                commit = self._make_commit(repository, self._new(group), head, by_git=by_git)
                break
            except CommitError as error:
                if not error.overtaken and (is_full(str(error)) or repository.head() == head):
                    raise  # A retry would fail too.
                if time.monotonic() > deadline:
                    raise CommitError(str(error)) from error
        self._log_places(group)
        if commit:
            self._log_lost_writes(repository, group, head, commit)
        self._keep_overtaken(repository, group)
        for write in group.writes:
            self.queue.finish(write.name, commit)
            if commit:
                self._committed(write.name, commit)

    def _new(self, group: Group) -> NewCommit:
        committer, last = Person.of(self._replica.state.settings.git.committer), group.last
        author = Person(last.author or committer.name, last.email or committer.email)
        return NewCommit(
            group.files,
            group.message,
            author,
            int(last.at),
            committer,
            int(time.time()),
            group.writes[0].base,
            last.joins,
            last.ready,
            exact=last.exact,
            bases=group.bases,
        )

    def _make_commit(self, repository: Repository, new: NewCommit, head: str, *, by_git: bool) -> str:
        """Create a commit and move the branch to it. Return "" if there is nothing to commit."""
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
            if (now := repository.head()) != head:  # The branch can't move while the index is locked.
                if changes_of(repository, new, now) != changed:
                    raise CommitError("another program has committed the same files", overtaken=True)
                head, commit = now, prepare_commit(repository, new, now, changed)
            with self._unreverted():
                self._publish(index, new, head, commit, changed)
        return commit

    def _commit_merge(self, repository: Repository, new: NewCommit, head: str, *, by_git: bool) -> str:
        """Move the branch to a merge commit.

        If the existing merge commit no longer fits, create a new one.
        """
        moved = changed_files(self.root, new.base, new.ready) if new.ready else {}
        goes_back = new.exact and head == new.base  # The branch moves back to an ancestor.
        if not goes_back and is_ancestor(self.root, new.joins, head):  # Somebody has already merged.
            self._sync_index(repository, repository.versions(head, {**new.files, **moved}))
            return head
        if new.ready and head == new.base and find_commit(self.root, new.ready):
            commit = new.ready
        elif new.exact:  # The files remain as uncommitted edits, and the caller must merge again.
            return ""
        else:
            make = prepare_by_git if by_git else prepare_commit
            commit = make(repository, new, head, changes_of(repository, new, head))
        with locked_index(repository, repository.versions(commit, {**new.files, **moved})) as index:
            if repository.head() != head:
                raise CommitError("another program has committed since", overtaken=True)
            with self._unreverted():
                index.move_head(head, commit, new.committer.environment("COMMITTER", new.committed))
        return commit

    def _publish(self, index: LockedIndex, new: NewCommit, head: str, commit: str, changed: Tree) -> None:
        environment = new.committer.environment("COMMITTER", new.committed)
        move_head = partial(index.move_head, head, commit, environment)
        record = record_of_commit(self._replica.contents, new, commit, changed, move_head)
        if record is not None:
            self._append(record)

    def _find_commit(self, repository: Repository, new: NewCommit, head: str) -> str:
        """Return the last commit if it already contains the write, else "".

        This happens if a process of this server was killed after committing the write.
        """
        if not head or not is_own_commit(repository, head, new.files):
            return ""
        self._sync_index(repository, repository.versions(head, new.files))
        return head

    def _sync_index(self, repository: Repository, files: Tree) -> None:
        with locked_index(repository, files) as index, self._unreverted():
            index.replace()

    @contextmanager
    def _unreverted(self) -> Iterator[None]:
        """Context manager: acquire the write lock, repeat the writes that a git command has reverted, and
        hold the lock.

        Requires the index lock, which prevents git commands from reverting more writes. Raises CommitError.
        """
        with self._locked():
            try:
                self._write_again()
            except ApiError as error:
                raise CommitError(f"a write that git has reverted can't be repeated: {error}") from error
            yield

    def reverted(self) -> list[Write]:
        """Return writes that restore the files that a git command has reverted. Requires the write lock.

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

    def log_reverted(self, writes: list[Write]) -> None:
        for write in writes:
            log.warning(
                "%s: a git command has reverted an uncommitted write of %s; it is written again",
                self.root, write.path,
            )  # fmt: skip

    def _keep_overtaken(self, repository: Repository, group: Group) -> None:
        """Store the writes that are not committed because others have committed a newer version.

        Raises CommitError and OSError.
        """
        if group.last.alone:  # A merge, or the commit of a file that has been edited again.
            return
        head, bases = repository.head(), group.bases
        last = {path: write for write in group.writes for path in write.files}
        for path, write in last.items():
            content = write.files[path]
            if content is None or is_on_disk(self.root / path, content):
                continue
            by_others = committed_by_others(repository, path, content, bases[path], head)
            if by_others is ByOthers.ANOTHER_VERSION:
                kept = self.queue.put_aside(write, path)
                log.warning(
                    "%s: someone has committed a different version of %s before a write to it was committed; "
                    "the version of the write is in %s",
                    self.root, path, kept,
                )  # fmt: skip

    # --- logs ------------------------------------------------------------------------------------------

    def _log_failure(self, error: Exception) -> None:
        reason = str(error)
        if isinstance(error, OSError):
            reason = f"{error.filename or 'a file'} can't be written: {error.strerror}"
        self._trouble.tell(Concern.COMMITS, reason, "commits wait")

    def _log_places(self, group: Group) -> None:
        if checked_out(self.root):
            self._trouble.end(Concern.DETACHED)
        else:
            self._trouble.tell(
                Concern.DETACHED, "HEAD is detached, so commits of writes don't belong to a branch"
            )
        if nested := next((path for path in group.files if is_nested(self.root, path)), None):
            self._trouble.tell(
                Concern.SUBMODULES, f"{nested} is in another repository", "writes there are not committed"
            )

    def _log_lost_writes(self, repository: Repository, group: Group, before: str, commit: str) -> None:
        """Log the files that a git command reverted before their write was committed."""
        later = (write for write in self.queue.pending() if write.name > group.last.name)
        again = {path for write in later for path in write.files}  # They were changed through the API.
        others = [
            path
            for path, data in group.files.items()
            if path not in again and not is_on_disk(self.root / path, data)
        ]
        for path, file in repository.versions(before, others).items() if others else ():
            if holds(repository, path, file):
                log.warning(
                    "%s: a git command has reverted a write of %s, which is in commit %s; "
                    "to restore it: git restore %s",
                    self.root, path, commit[:10], path,
                )  # fmt: skip
