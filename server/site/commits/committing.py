"""Commits of writes made over the API (docs/history.md)."""

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
from server.site.commits.contents import new_contents, replaced_digests
from server.site.commits.grouping import Group, due_groups
from server.site.commits.message import Authorship, PreparedMerge, commit_message_for, written_documents
from server.site.commits.own_versions import known_versions_of, record_own_versions
from server.site.commits.reverted import overwritten_writes, reverted_writes
from server.site.record import Record
from server.site.replica import Replica
from server.site.writing.speculative_writes import WriteChain
from server.storage.git.checkout import is_identical_on_disk
from server.storage.git.command import git_as_owner, is_disk_full_error
from server.storage.git.commit import (
    NewCommit,
    Person,
    PreparedCommit,
    is_nested,
    is_own_commit,
    prepare_by_git,
    prepare_commit,
    rebase,
    run_hook,
    store_changed_files,
)
from server.storage.git.commit_queue import CommitQueue
from server.storage.git.index import (
    LockedIndex,
    locked_index,
    may_hold_own_lock,
    remove_own_lock,
    wait_for_index,
    wait_for_other_lock,
)
from server.storage.git.refs import checked_out_branch, find_commit, head_commit, is_ancestor
from server.storage.git.repository import Repository, Tree, repository_of
from server.storage.git.tree import changed_files
from server.storage.git.trouble import AffectedTask, trouble_log
from server.storage.git.written import (
    OthersCommits,
    committed_by_others,
    is_on_disk,
    is_replaced_version_on_disk,
)
from server.storage.intent import Write

log = logging.getLogger("bifolio")

PENDING = "pending"
QUEUE_TIMEOUT_S = 5.0  # A request waits this long for earlier commits.
GIT_LOCK_TIMEOUT_S = 2.0  # A commit waits this long for other git commands.
# After a git command has written files, a commit waits this long for the command to update the index.
INDEX_TIMEOUT_S = 1.0
BACKOFF_S = 1.0  # For this long after a failed commit, only the background job commits.
HOOK_RETRY_INTERVAL_S = 30.0  # After this time, a commit that a hook has rejected is retried.
REPOSITORY_CACHE_TTL_S = 5.0  # The location of the repository and its hooks is cached for this long.
GC_INTERVAL_S = 600.0  # interval between calls of `git gc --auto`


class Committer:
    """The part of a site that commits queued writes.

    `locked` returns a context manager that holds the write lock. `committed` is called with the id of a write
    and the id of its commit.
    """

    def __init__(
        self,
        root: Path,
        replica: Replica,
        append: Callable[[Record], None],
        locked: Callable[[], AbstractContextManager[None]],
        committed: Callable[[str, str], None],
        repeat_reverted_writes: Callable[[], None],
    ) -> None:
        self.root, self.queue = root, CommitQueue(root / STATE_FOLDER)
        self._replica, self._append, self._locked = replica, append, locked
        self._paused_until = 0.0
        self._repository_cache: tuple[tuple[Repository, bool] | None, float] = None, 0.0
        self._gc_at = time.monotonic()
        self._trouble = trouble_log(root)
        self._committed, self._repeat_reverted_writes = committed, repeat_reverted_writes
        # When to retry a commit that a hook has rejected, by the write's name in the queue.
        self._refused: dict[str, float] = {}

    @property
    def _delay(self) -> timedelta | None:
        return self._replica.state.settings.git.commit

    # --- writes ----------------------------------------------------------------------------------------

    @contextmanager
    def queued_for_commit(self, writes: list[Write], authorship: Authorship, result: Any) -> Iterator[str]:
        """Context manager: queue `writes` to be committed. The block must write them to disk.

        Yields the id of the write in the queue, or "" if it won't be committed. The caller must hold the
        write lock. Raises StorageError if the write can't be stored in the queue.
        """
        contents = self._replica.contents
        merge = authorship.prepared_merge(result) if authorship.prepared_merge else None
        is_needed = merge is not None or self._delay is not None
        if not is_needed or contents.git.git_folder_id is None:
            if is_needed:
                self._trouble.report(
                    AffectedTask.REPOSITORY, "the site is not in a git repository", "writes are not committed"
                )
            yield ""
            return
        message, documents = self.message_and_documents(writes, authorship, result)
        metadata = {
            "author": authorship.name,
            "email": authorship.email,
            "actor": authorship.actor,
            "message": message,
            "documents": documents,
            "at": time.time(),
            "replaced": replaced_digests(self.root, writes),
            **(merge or PreparedMerge(self._head(), "", "")).queue_metadata,
        }
        files = new_contents(self.root, writes)
        name = self.queue.stage(metadata, files)
        with self.queue.applying(self.root, name, metadata):
            yield name
        # If this fails, the next process that acquires the write lock queues the write.
        with suppress(OSError):
            self.queue.enqueue(name)
            if merge and merge.move_branch and merge.move_branch():
                self.queue.finish(name, merge.ready)

    def _head(self) -> str:
        # Ask git, because the checked-out commit may be newer than the one that is being served.
        try:
            return head_commit(self.root)
        except GitError:
            return self._replica.contents.git.committed.commit

    def extend_chain(self, chain: WriteChain, writes: list[Write]) -> bool:
        return chain.add(self._replica.contents, writes)

    def message_and_documents(
        self, writes: list[Write], authorship: Authorship, result: Any, chain: WriteChain | None = None
    ) -> tuple[str, list[str]]:
        contents, chain = self._replica.contents, chain or WriteChain(self.root, self._replica.state.snapshot)
        documents = written_documents(
            writes, chain.entries_before(contents.entries, writes), chain.snapshot, contents.store
        )
        return commit_message_for(documents, authorship, result), [document.name for document in documents]

    def settle(self) -> bool:
        return self.queue.recover(self.root)

    def commit_up_to(self, write_id: str, *, ignore_delay: bool = False) -> str:
        """Commit the queued writes up to `write_id`, and return the id of the commit that contains it.

        If `ignore_delay` is set, they are committed at once, regardless of the `git.commit` setting. Return
        PENDING if the write is still in the queue, or "" if no commit was necessary.
        """
        if not write_id:
            return ""
        if (self._delay and not ignore_delay) or time.monotonic() < self._paused_until:
            return PENDING
        if self.queue.is_pending(write_id):
            self._commit_queue(QUEUE_TIMEOUT_S, write_id)
        return PENDING if self.queue.is_pending(write_id) else self.queue.take_commit_id(write_id)

    def commit_due(self) -> None:
        """Commit the writes that are due, and remove locks that were left by killed processes."""
        if self.queue.has_staged_writes:
            with suppress(BusyError), self._locked():
                pass  # Acquiring the write lock is enough to clean up after killed processes.
        if self.queue.pending():
            self._commit_queue(0.0)
        self._remove_left_lock()
        self.queue.sweep()
        makes_objects = self._delay is not None or self._replica.state.settings.git.follow is not None
        if makes_objects and time.monotonic() - self._gc_at > GC_INTERVAL_S:
            self._gc_at = time.monotonic()
            with suppress(CommitError):  # This packs objects if necessary.
                git_as_owner(self.root, "gc", "--auto", "--quiet")

    def _remove_left_lock(self) -> None:
        # A process of this server that was killed during a commit may have left git's index lock behind.
        folder = self._replica.contents.git.folder
        if folder and may_hold_own_lock(folder):
            with self.queue.committing(0.0) as alone, suppress(CommitError):
                if alone:
                    remove_own_lock(repository_of(self.root))

    # --- commits ---------------------------------------------------------------------------------------

    def flush(self) -> None:
        if self.queue.pending():
            self._commit_queue(QUEUE_TIMEOUT_S, ignore_delay=True)

    def commit_files(
        self,
        files: Mapping[str, bytes | Path | None],
        message: str,
        documents: Collection[str],
        authorship: Authorship,
    ) -> str:
        """Commit `files`, and no other changes. Return the id of the commit, or "" if nothing changed.

        Raises CommitError, for example if an earlier write to one of the files is still queued.
        """
        self.flush()
        metadata = {
            "author": authorship.name,
            "email": authorship.email,
            "actor": authorship.actor,
            "message": message,
            "asked": True,
        }
        with self._locked():
            waiting = {path for write in self.queue.pending() for path in write.files} & files.keys()
            if waiting:
                raise CommitError(f"a write to {min(waiting)} has not been committed yet")
            more = {"documents": list(documents), "at": time.time(), "base": self._head()}
            name = self.queue.stage({**metadata, **more}, files)
            self.queue.enqueue(name)
        with self.queue.committing(QUEUE_TIMEOUT_S) as alone:
            try:
                if not alone:
                    raise CommitError("timed out waiting for other commits to finish")
                for write in self.queue.pending():
                    if write.name == name:
                        # Drop the cached value, in case hooks have just been added.
                        self._repository_cache = None, 0.0
                        repository, by_git = self.find_repository()
                        remove_own_lock(repository)
                        repository.require_no_operation()
                        self._commit(repository, Group([write]), use_git_commit=by_git)
            except BaseException:
                self.queue.drop(name)
                raise
        return self.queue.take_commit_id(name)

    def commit_merge(self, merge: PreparedMerge, authorship: Authorship) -> str:
        """Commit a merge. Only the files in `merge.extra_paths` are written to disk.

        The return value has the same meaning as that of `commit_up_to`.
        """
        metadata = {
            "author": authorship.name,
            "email": authorship.email,
            "actor": authorship.actor,
            "message": authorship.message,
        }
        with self._locked():
            entry = {**metadata, **merge.queue_metadata, "documents": [], "at": time.time()}
            name = self.queue.stage(entry, {})
            with self.queue.applying(self.root, name, entry):
                self.queue.enqueue(name)
        return self.commit_up_to(name, ignore_delay=True)

    def prepare(self, new: NewCommit) -> PreparedCommit:
        """Make a commit on top of `new.base`, without moving the branch.

        Raises CommitError if a hook rejects the commit or git is busy.
        """
        with self.queue.committing(QUEUE_TIMEOUT_S) as alone:
            if not alone:
                raise CommitError("timed out waiting for other commits to finish")
            repository, by_git = self.find_repository()
            remove_own_lock(repository)
            repository.require_no_operation()
            wait_for_index(repository, time.monotonic() + GIT_LOCK_TIMEOUT_S)
            if new.ready:
                return PreparedCommit(new.ready)
            changed = store_changed_files(repository, new, new.base)
            if not changed and not new.joins:
                return PreparedCommit()
            if by_git:
                return PreparedCommit(prepare_by_git(repository, new, new.base, changed))
            return PreparedCommit(
                prepare_commit(repository, new, new.base, changed), changed, new.commit_time
            )

    def _commit_queue(self, timeout_s: float, last_id: str = "", *, ignore_delay: bool = False) -> None:
        """Commit the writes that are due or, if `ignore_delay` is set, all queued writes.

        If `last_id` is given, later writes are not committed. Waits up to `timeout_s` seconds for other
        commits to finish. If a commit fails, its writes stay in the queue.
        """
        try:
            with self.queue.committing(timeout_s) as alone:
                if alone and not (last_id and not self.queue.is_pending(last_id)):
                    self._commit_groups(last_id, ignore_delay=ignore_delay)
        except BusyError:
            pass  # Another process holds the write lock. The files are saved, and are committed later.
        except (CommitError, GitError, StorageError, OSError) as error:
            self._paused_until = time.monotonic() + BACKOFF_S
            self._repository_cache = None, 0.0
            self._log_failure(error)

    def _commit_groups(self, last_id: str, *, ignore_delay: bool) -> None:
        groups = due_groups(
            self.queue.pending(), self._delay or timedelta(), inf if ignore_delay else time.time()
        )
        if not groups:
            return
        repository, by_git = self.find_repository()
        remove_own_lock(repository)
        repository.require_no_operation()
        blocked: set[str] = set()  # files in failed commits; later writes to them must wait
        for group in groups:
            if not blocked.isdisjoint(group.files) or not self._commit_or_postpone(
                repository, group, use_git_commit=by_git
            ):
                blocked.update(group.files)
            if last_id and group.last.name >= last_id:
                return

    def find_repository(self) -> tuple[Repository, bool]:
        """Return the repository, and True if commits must be made with `git commit` in order to run hooks.

        Raises CommitError if there is no readable repository.
        """
        cached, until = self._repository_cache
        if cached is None or time.monotonic() > until:
            repository = repository_of(self.root)
            cached = repository, repository.runs_programs
            self._repository_cache = cached, time.monotonic() + REPOSITORY_CACHE_TTL_S
        return cached

    def _commit_or_postpone(self, repository: Repository, group: Group, *, use_git_commit: bool) -> bool:
        """Commit a group of writes, and return True.

        If a hook rejects the commit, return False. The commit is then retried later, unless a client
        requested it.
        """
        name = group.last.name
        if time.monotonic() < self._refused.get(name, 0.0):
            return False
        self._refused.pop(name, None)
        try:
            self._commit(repository, group, use_git_commit=use_git_commit)
        except CommitError as error:
            if not error.refused:
                raise
            self._refused[name] = time.monotonic() + HOOK_RETRY_INTERVAL_S
            self._log_failure(error)
            # The request has failed, so this commit is not retried.
            if group.last.asked:
                self.queue.drop(name)
            return False
        if not self.queue.waiting:
            self._trouble.resolve(AffectedTask.COMMITS, AffectedTask.CHANGED, AffectedTask.REPOSITORY)
        return True

    def _commit(self, repository: Repository, group: Group, *, use_git_commit: bool) -> None:
        deadline = time.monotonic() + GIT_LOCK_TIMEOUT_S
        while True:
            # Wait now: if the index is still locked later, the new commit has to be discarded.
            wait_for_index(repository, deadline)
            head = repository.head()
            try:
                commit = self._make_commit(repository, group, head, use_git_commit=use_git_commit)
                break
            except CommitError as error:
                if not error.overtaken and (is_disk_full_error(str(error)) or repository.head() == head):
                    raise  # Another attempt would fail, too.
                if time.monotonic() > deadline:
                    raise CommitError(str(error)) from error
        self._log_places(group)
        differing = {path for path, data in group.files.items() if not is_on_disk(self.root / path, data)}
        if differing:
            self._handle_differing_files(repository, group, differing, head, commit)
        for write in group.writes:
            self.queue.finish(write.name, commit)
            if commit:
                self._committed(write.name, commit)
        self.queue.sweep()

    def _new(self, group: Group) -> NewCommit:
        committer, last = Person.parse(self._replica.state.settings.git.committer), group.last
        author = committer.author(last.author, last.email)
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
            bases=known_versions_of(self.queue, group),
        )

    def _make_commit(self, repository: Repository, group: Group, head: str, *, use_git_commit: bool) -> str:
        """Commit a group of writes, and move the branch.

        Return the id of the commit, or "" if nothing changed.
        """
        new = self._new(group)
        if new.joins:
            return self._publish_merge(repository, group, new, head, use_git_commit=use_git_commit)
        changed = store_changed_files(repository, new, head)
        if not changed:
            record_own_versions(self.queue, repository, group)
            return self._find_commit(repository, new, head)
        # Hooks run before the index is locked. They may change more files, or undo all changes.
        make, by_hooks = (prepare_by_git if use_git_commit else prepare_commit), set[str]()
        commit = make(repository, new, head, changed)
        if not commit:
            record_own_versions(self.queue, repository, group)
            return ""
        if use_git_commit and head:
            by_hooks = changed_files(self.root, head, commit).keys() - changed.keys()
        files = repository.versions(commit, {*changed, *by_hooks}) if use_git_commit else changed
        with locked_index(repository, files) as index:
            # Check again now that the index is locked, so the branch can't move anymore.
            if (now := head_commit(self.root)) != head:
                is_same = repository.versions(now, by_hooks) == repository.versions(head, by_hooks)
                if is_same and store_changed_files(repository, new, now) == changed:
                    head, commit = now, rebase(repository, new, commit, now, files, by_git=use_git_commit)
                if head != now or not commit:
                    raise CommitError("another program has committed the same files", overtaken=True)
            with self._locked_without_reverts():
                by_hooks.update(path for path in changed if files[path] != changed[path])
                record_own_versions(self.queue, repository, group, commit, files, by_hooks)
                self._publish(index, new, head, commit, changed)
        if use_git_commit:
            with suppress(CommitError):  # Ignore the hook's exit status, as git does.
                run_hook(repository, {}, "post-commit")
        return commit

    def _publish_merge(
        self, repository: Repository, group: Group, new: NewCommit, head: str, *, use_git_commit: bool
    ) -> str:
        """Move the branch to a merge commit.

        Return the id of the commit, or "" if the merge must be prepared again.
        """
        moved = changed_files(self.root, new.base, new.ready) if new.ready else {}
        goes_back = new.exact and head == new.base  # the branch moves back to an earlier commit
        if not goes_back and is_ancestor(self.root, new.joins, head):  # somebody has already merged
            self._sync_index(repository, repository.versions(head, {**new.files, **moved}))
            return head
        if new.ready and head == new.base and find_commit(self.root, new.ready):
            commit = new.ready
        elif new.exact:  # the files remain as uncommitted edits
            return ""
        else:
            make = prepare_by_git if use_git_commit else prepare_commit
            commit = make(repository, new, head, store_changed_files(repository, new, head))
        files = repository.versions(commit, {**new.files, **moved})
        with locked_index(repository, files) as index:
            if head_commit(self.root) != head:
                raise CommitError("another program has committed in the meantime", overtaken=True)
            with self._locked_without_reverts():
                record_own_versions(self.queue, repository, group, commit, files)
                index.move_head(head, commit, new.committer.environment("COMMITTER", new.commit_time))
        return commit

    def _publish(self, index: LockedIndex, new: NewCommit, head: str, commit: str, changed: Tree) -> None:
        environment = new.committer.environment("COMMITTER", new.commit_time)
        move_head = partial(index.move_head, head, commit, environment)
        record = record_of_commit(self._replica.contents, new, commit, changed, move_head)
        if record is not None:
            self._append(record)

    def _find_commit(self, repository: Repository, new: NewCommit, head: str) -> str:
        # If a process of this server was killed just after committing, the commit already exists.
        if not head or not is_own_commit(repository, head, new.files):
            return ""
        self._sync_index(repository, repository.versions(head, new.files))
        return head

    def _sync_index(self, repository: Repository, files: Tree) -> None:
        with locked_index(repository, files) as index, self._locked_without_reverts():
            index.replace()

    @contextmanager
    def _locked_without_reverts(self) -> Iterator[None]:
        """Context manager: hold the write lock, after repeating the writes that git has overwritten.

        The caller must hold git's index lock. Raises CommitError if a write can't be repeated.
        """
        with self._locked():
            try:
                self._repeat_reverted_writes()
            except ApiError as error:
                raise CommitError(
                    f"a write that a git command reverted can't be repeated: {error}"
                ) from error
            yield

    def find_reverted(self) -> list[Write]:
        """Return writes that repeat the uncommitted writes which git has overwritten.

        The caller must hold the write lock. Raises CommitError or GitError if a git command fails.
        """
        if not self.queue.waiting:
            return []
        # Read `pending` first: when a write leaves the queue, its versions are already in `own_commits`.
        pending = self.queue.pending()
        unseen = overwritten_writes(self._replica.contents, pending, self.queue.own_commits.by_path())
        if not unseen:
            return []
        repository, _ = self.find_repository()
        wait_for_other_lock(repository.folder, INDEX_TIMEOUT_S)
        return reverted_writes(repository, unseen)

    def log_reverted(self, writes: list[Write]) -> None:
        for write in writes:
            log.warning(
                "%s: a git command reverted an uncommitted write to %s; writing it again",
                self.root, write.path,
            )  # fmt: skip

    def _handle_differing_files(
        self, repository: Repository, group: Group, paths: Collection[str], before: str, commit: str
    ) -> None:
        if commit:
            self._log_lost_writes(repository, group, paths, before, commit)
        if not group.last.alone:  # This is neither a merge nor a request to commit existing edits.
            self._save_overtaken_versions(repository, group, paths)

    def _save_overtaken_versions(self, repository: Repository, group: Group, paths: Collection[str]) -> None:
        # Saves the written versions of files for which others have committed a different version.
        head, last = repository.head(), group.last_by_path
        bases = known_versions_of(
            self.queue, group
        )  # read after `head`, so that no committed write is missing
        for path in sorted(paths):
            content = last[path].files[path]
            by_others = committed_by_others(repository, path, content, bases[path], head)
            if content is not None and by_others is OthersCommits.ANOTHER_VERSION:
                kept = self.queue.move_to_unsaved(last[path], path)
                log.warning(
                    "%s: someone committed a different version of %s before a write to this file was "
                    "committed; the written version was saved in %s",
                    self.root, path, kept,
                )  # fmt: skip

    # --- logs ------------------------------------------------------------------------------------------

    def _log_failure(self, error: Exception) -> None:
        reason = str(error)
        if isinstance(error, OSError):
            reason = f"{error.filename or 'a file'} can't be written: {error.strerror}"
        self._trouble.report(AffectedTask.COMMITS, reason, "commits are waiting")

    def _log_places(self, group: Group) -> None:
        if checked_out_branch(self.root):
            self._trouble.resolve(AffectedTask.DETACHED)
        else:
            self._trouble.report(
                AffectedTask.DETACHED, "HEAD is detached, so new commits do not belong to a branch"
            )
        if nested := next((path for path in group.files if is_nested(self.root, path)), None):
            self._trouble.report(
                AffectedTask.SUBMODULES,
                f"{nested} is in a different repository",
                "writes to it are not committed",
            )

    def _log_lost_writes(
        self, repository: Repository, group: Group, paths: Collection[str], before: str, commit: str
    ) -> None:
        bases = known_versions_of(self.queue, group)
        again = {path for path, _ in group.later_writes(self.queue.pending())}
        for path, file in repository.versions(before, sorted(set(paths) - again)).items():
            if is_identical_on_disk(repository, path, file) or is_replaced_version_on_disk(
                self.root / path, bases[path]
            ):
                log.warning(
                    "%s: %s contains an earlier version again, for example because of a git command; "
                    "the overwritten change is in commit %s; to restore it, run: git restore -s %s -SW %s",
                    self.root, path, commit[:10], commit[:10], path,
                )  # fmt: skip
