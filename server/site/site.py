"""The Site object."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from server.config.sections import PUSH_BEFORE
from server.documents.document import Document
from server.errors import (
    ApiError,
    BusyError,
    CommitError,
    ConflictError,
    GitBusyError,
    StorageError,
    UnreadableRecordError,
)
from server.paths import STATE_FOLDER, state_folder
from server.problems import Problem
from server.site.change import (
    OTHER_PROGRAM,
    Change,
    Origin,
    RecordObserver,
    change_of_write,
    summarize_change,
)
from server.site.change_log import ChangeLog
from server.site.changed_files import checked_writes
from server.site.commits.committing import Committer
from server.site.commits.message import Authorship, PreparedMerge, around_write
from server.site.commits.reverted import is_as_written
from server.site.configure import Configuration, configure, recover_configuration
from server.site.contents import Contents
from server.site.folder import SiteFolder
from server.site.git_state import GitState, git_guard, git_marks, log_writes_resumed, wait_for_git
from server.site.loading import Progress, load_contents, paused_garbage_collection, release_free_memory
from server.site.parts import Arbiter, ReadOnlySiteError, SiteConnections
from server.site.problems import all_problems, problems_in_files
from server.site.record import Record
from server.site.replica import Prepared, Replica, State, StateChangedError
from server.site.rescan import (
    ReloadedSite,
    SchemaPending,
    read_new_configuration,
    reload_files,
    reload_files_if_needed,
    require_current_schema,
    rescan_all,
    rescan_paths,
    rescan_written,
    seems_changed,
)
from server.site.writing.preparing import (
    Preparation,
    Prepare,
    Request,
    Result,
    SpeculativeWrite,
    fits_in_lock,
    prepare_change,
)
from server.site.writing.response_state import with_written_documents
from server.storage.changeset import Changeset
from server.storage.entry import Entry
from server.storage.files import storage_error
from server.storage.git.repository import is_git_busy
from server.storage.git.times import CommitTimes
from server.storage.git.trouble import AffectedTask, trouble_log
from server.storage.images.cache import ImageCache
from server.storage.intent import Write
from server.storage.journal import MISSING_FOLDER, Journal
from server.storage.media import media_key, upload_path
from server.storage.recent_versions import RecentVersions

__all__ = ["Change", "Site", "State"]

log = logging.getLogger("bifolio")

# limit on the attempts to prepare a write whose files other programs keep changing
MAX_ATTEMPTS = 4
GIT_TIMEOUT_S = 30.0  # how long a refresh waits for running git commands
WRITE_GIT_TIMEOUT_S = 15.0  # how long a write waits for running git commands
POLL_INTERVAL_S = 0.01
MAX_LOCAL_FILES = 5000  # If a site has more files, new workers load it after a schema change.
_READ_ONLY_PARTS = SiteConnections()
_OVERTAKEN_MESSAGE = "The site changed repeatedly while this write was being prepared; try again"
_SCHEMA_MESSAGE = "All documents are being read under a new schema; try again"


class Site:
    """A site with its current state. All changes to the site's files are made here.

    Call `load` first, and `refresh` whenever files have changed. Each request calls `current` once, and uses
    that state until it ends.
    """

    def __init__(self, root: Path, parts: SiteConnections = _READ_ONLY_PARTS) -> None:
        self.root = root.resolve()
        self.folder = SiteFolder(self.root)
        self._parts = parts
        self.started = time.time()
        self.image_cache = ImageCache(self.root)
        self._journal = Journal(self.root, self.root / STATE_FOLDER)
        self._recent = RecentVersions(self.root)
        self._arbiter: Arbiter | None = None
        self._arbiter_lock = threading.Lock()
        self._committed: Callable[[str, str], None] | None = None
        self._loaded = False
        self._is_predecessor_running: Callable[[], bool] | None = None
        # Old versions of documents that changed while no server was running, by path.
        self.replaced: Mapping[str, Document] = {}
        configuration = recover_configuration(self.root)
        self._replica = Replica(Contents.of(self.root, self.image_cache, configuration, GitState()))
        self.committer = Committer(
            self.root,
            self._replica,
            self._append,
            self.locked,
            self._notify_committed,
            self._repeat_reverted_writes,
        )

    @property
    def state(self) -> State:
        return self._replica.state

    @property
    def applied(self) -> int:
        return self._contents.apply_counter

    @property
    def git(self) -> GitState:
        return self._contents.git

    def basis(self) -> tuple[State, Configuration, CommitTimes, dict[str, Entry]]:
        return self._replica.basis()

    @property
    def roots(self) -> tuple[str, ...]:
        return self._contents.store.layout.roots

    @property
    def folder_problems(self) -> tuple[Problem, ...]:
        return self._contents.folder_problems

    @property
    def problems(self) -> tuple[Problem, ...]:
        return all_problems(self._contents, self.state.snapshot)

    @property
    def problems_in_files(self) -> tuple[Problem, ...]:
        return tuple(problems_in_files(self._contents))

    def load(self, progress: Progress | None = None, cores: int = 1, nice: int = 0) -> None:
        """Read all files. Other processes may write to them at the same time.

        `nice` lowers the priority of the processes that read files. Raises SetupError if the configuration is
        invalid.
        """
        with suppress(OSError):
            state_folder(self.root)  # Create the folder in which a writable site has its write lock.
        writes, replaced = self._journal.lock.counter, list[Document]()
        self.recover()
        with paused_garbage_collection():
            root, pictures, append = self.root, self.image_cache, self._replica.append
            contents = load_contents(
                root,
                pictures,
                configure(root),
                progress,
                cores,
                nice=nice,
                on_cached=lambda found: append(found.full_record()),
                replaced_documents=replaced,
            )
            contents.write_counter = writes
            if self._parts.is_next_generation:
                self._replica.start_packing(contents.entries)
            append(contents.record_since(self._contents))
            if contents.clean_check:
                self._contents.clean_check = (self._contents.apply_counter, contents.clean_check[1])
        release_free_memory()
        self._loaded, self.replaced = True, {document.path: document for document in replaced}
        if replaced:
            with suppress(OSError, BusyError, StorageError), self._journal.writing():
                self._recent.keep(replaced, self.state.schema)
        if self._journal.lock.counter != writes:
            self.refresh()

    # --- changes -------------------------------------------------------------------------------

    def refresh(self, hints: Collection[str] | None = None) -> Change:
        """Check the files in `hints`, or all files if `hints` is None, and apply their changes.

        If a schema has changed and the site is large, new workers are requested instead.
        """
        if not self.seems_changed(hints):
            return Change()
        deadline = time.monotonic() + GIT_TIMEOUT_S
        while True:
            wait_for_git(self.git, deadline)
            configuration = read_new_configuration(self._contents)
            if configuration and self._requests_reload():
                return Change()
            reloaded = reload_files(self._contents, configuration) if configuration else None
            with suppress(SchemaPending), self.locked():
                change = self._rescan(hints, reloaded, stop_if_git_runs=time.monotonic() < deadline)
                if change is not None and (reloaded is None or change.reloaded):
                    return change

    def _refresh_files(self, hints: Collection[str], deadline: float) -> None:
        while True:
            wait_for_git(self.git, deadline)
            try:
                with self.locked():
                    self._rescan(hints, stop_if_git_runs=True)
                return
            except SchemaPending:
                self._wait_for_schema(deadline)

    def _wait_for_schema(self, deadline: float) -> None:
        if len(self._contents.entries) < MAX_LOCAL_FILES or not self._replica.is_shared:
            self.refresh()
        elif self._replica.is_replaced or time.monotonic() > deadline:
            raise BusyError(_SCHEMA_MESSAGE)
        else:
            time.sleep(POLL_INTERVAL_S)

    def _rescan(
        self, hints: Collection[str] | None, reloaded: ReloadedSite | None = None, *, stop_if_git_runs: bool
    ) -> Change | None:
        """Append a record of the changed files. Raises SchemaPending if a new schema must be read first.

        If `stop_if_git_runs` is set and a git command is running, return None.
        """
        contents = self._contents
        before = git_marks(contents.git)
        if stop_if_git_runs and is_git_busy(before[0]):
            return None
        try:
            self._repeat_reverted_writes()
        except GitBusyError:
            if stop_if_git_runs:
                return None
        except (ApiError, CommitError) as error:  # The write is repeated later, before its commit.
            log.warning("%s: a write that git reverted has not been repeated yet: %s", self.root, error)
        writes = self._journal.lock.counter
        record = rescan_all(contents, None if writes != contents.write_counter else hints, writes, reloaded)
        if stop_if_git_runs and git_marks(contents.git) != before:
            return None
        # If the folder was deleted during the rescan, the record is wrong.
        if record is None or self.folder.is_gone():
            return Change()
        change = summarize_change(contents, record)
        self._append(record)
        return change

    def seems_changed(self, hints: Collection[str] | None = None) -> bool:
        if self._replica.is_replaced:
            return False
        self.catch_up()
        contents = self._contents
        return self._journal.lock.counter != contents.write_counter or seems_changed(contents, hints)

    def write(
        self, authorship: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> tuple[State, Result, str]:
        """Write all files that `prepare` changes, or none of them (docs/files.md).

        Return the state, the result of `prepare`, and the id of the commit. The id is "pending" if it is not
        known yet, or "" if there is no commit. Raises BusyError or GitBusyError if the write must be retried
        later, RemoteError if the git remote is unavailable, ReadOnlySiteError if the site is read-only, or
        any error of `prepare`.
        """
        arbiter = self.arbiter
        return (arbiter.write if arbiter else self.write_locally)(authorship, prepare, request)

    @property
    def arbiter(self) -> Arbiter | None:
        """The arbiter, or None if writes do not need the git remote's consent.

        Raises ReadOnlySiteError if the site was opened read-only.
        """
        make = self._parts.make_arbiter
        if make is None:
            raise ReadOnlySiteError()
        if self.state.settings.git.push != PUSH_BEFORE:
            return None
        with self._arbiter_lock:
            if self._arbiter is None:
                self._arbiter = make()
            return self._arbiter

    def write_locally(
        self, authorship: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> tuple[State, Result, str]:
        """Write without asking the git remote. This method is meant only for arbiters and merges."""
        if self._parts.make_arbiter is None:
            raise ReadOnlySiteError()
        state, result, pending, writes = self._write(prepare, request, authorship)
        commit = self.committer.commit_up_to(pending, ignore_delay=authorship.prepared_merge is not None)
        served = self.current() if commit else state
        return with_written_documents(served, state, self._contents, writes), result, commit

    def state_after(self, writes: Collection[Write], before: State) -> State:
        return with_written_documents(self.current(), before, self._contents, writes)

    def _write(
        self, prepare: Prepare[Request, Result], request: Request, authorship: Authorship
    ) -> tuple[State, Result, str, list[Write]]:
        """Write like `write_locally`, but return the write's id in the commit queue, and the writes."""
        began = time.perf_counter()
        if self.folder.is_gone():
            raise StorageError(MISSING_FOLDER)
        try:
            state_folder(self.root)
        except OSError as error:
            raise storage_error("The site can't be written to", error, self.root) from error

        def attempt(
            changeset: Changeset, is_last: bool
        ) -> tuple[tuple[Change, str, list[Write]], State, Result]:
            prepared = self._prepare((prepare, request), changeset)
            with self.locked():
                self._apply_other_servers()
                if not prepared.state.shows_same_content(self.state):
                    if not fits_in_lock(prepared, is_last=is_last):
                        raise StateChangedError()
                    changeset.clear()
                    prepared = self._prepare((prepare, request), changeset)
                require_current_schema(self._contents, prepared.changeset.paths)
                return self._commit(prepared, authorship), self.state, prepared.result

        (change, pending, writes), state, result = self._retry(attempt)
        log_writes_resumed(self.root, self.git)
        if change and self._parts.report:
            self._parts.report(change, time.perf_counter() - began)
        return state, result, pending, writes

    def preview(
        self,
        prepare: Prepare[Request, Result],
        request: Request,
        speculative_write: SpeculativeWrite | None = None,
    ) -> tuple[list[Write], Result]:
        """Return the writes that `write` would make, and the result of `prepare`. Raises the same errors."""
        speculative_write = speculative_write or SpeculativeWrite()

        def attempt(changeset: Changeset, is_last: bool) -> tuple[list[Write], Result]:
            prepared = self._prepare((prepare, request), changeset, speculative_write)
            self._journal.check(writes := checked_writes(self._contents, changeset, speculative_write.chain))
            return writes, prepared.result

        return self._retry(attempt, speculative_write)

    def _retry(
        self, attempt: Callable[[Changeset, bool], Result], speculative_write: SpeculativeWrite | None = None
    ) -> Result:
        attempts_left, deadline = MAX_ATTEMPTS, time.monotonic() + WRITE_GIT_TIMEOUT_S
        while True:
            changeset = Changeset(self.root, speculative_write.chain if speculative_write else None)
            try:
                self.catch_up()
                return attempt(changeset, attempts_left == 1)
            except GitBusyError:
                wait_for_git(self.git, deadline)
                if time.monotonic() > deadline:
                    reason = "a git command has locked .git/index.lock"
                    trouble_log(self.root).report(AffectedTask.WRITES, reason, "writes are rejected")
                    raise
            except SchemaPending:
                self._wait_for_schema(deadline)
            except StateChangedError:
                attempts_left -= 1
                if not attempts_left:
                    raise BusyError(_OVERTAKEN_MESSAGE) from None
            except ConflictError:
                attempts_left -= 1
                if not attempts_left:
                    raise
                self._refresh_files(changeset.paths, deadline)

    def _prepare(
        self,
        change: Preparation[Request, Result],
        changeset: Changeset,
        speculative_write: SpeculativeWrite | None = None,
    ) -> Prepared[Result]:
        git, recent = self._contents.git.committed, partial(self._recent.find, self.state.schema)
        writes, broken = speculative_write or SpeculativeWrite(), dict(self._contents.broken)
        return prepare_change(self.state, git, recent, changeset, change, writes, broken)

    def _apply_other_servers(self) -> None:
        # Other servers for this site have their own change logs, so the write counter is compared.
        is_behind = self._contents.write_counter != self._journal.lock.counter
        if is_behind and self._rescan(None, stop_if_git_runs=True) is None:
            raise GitBusyError()

    def _commit(self, prepared: Prepared[Result], authorship: Authorship) -> tuple[Change, str, list[Write]]:
        """Write the files of a prepared change, and queue them. The caller must hold the write lock.

        Return the change, the id of the write in the commit queue, and the writes.
        """
        contents, writes = self._contents, checked_writes(self._contents, prepared.changeset)
        if not writes:
            return Change(), "", []
        with (
            self.committer.queued_for_commit(writes, authorship, prepared.result) as pending,
            around_write(writes, authorship),
        ):
            self._journal.commit(writes, git_guard(contents.git))
        joined = authorship.prepared_merge(prepared.result) if authorship.prepared_merge else None
        record = self._rescan_written(writes, joined)
        change = change_of_write(contents, record, writes)
        self._append(record, authorship.origin(pending))
        return change, pending, writes

    def _repeat_reverted_writes(self) -> None:
        """Repeat the writes that a git command has overwritten.

        The caller must hold the write lock. Raises ApiError or CommitError if a write can't be repeated.
        """
        contents, number = self._contents, self._journal.lock.counter
        if writes := self.committer.find_reverted():
            self._journal.commit(writes, git_guard(contents.git))
            record = self._rescan_written(writes)
            # If another server has also written, keep the old number, so that a rescan finds that write.
            known = contents.write_counter
            self._append(record if known == number else replace(record, write_counter=known))
            self.committer.log_reverted(writes)

    def _rescan_written(self, writes: list[Write], joined: PreparedMerge | None = None) -> Record:
        for _ in range(MAX_ATTEMPTS):
            record = rescan_written(self._contents, writes, self._journal.lock.counter, joined)
            if not self.committer.queue.waiting or is_as_written(self.root, writes):
                break
            # If this fails, the write is repeated before its commit, or the failure is logged.
            with suppress(ApiError, CommitError):
                if not (again := self.committer.find_reverted()):
                    break
                self._journal.commit(again, git_guard(self._contents.git))
                self.committer.log_reverted(again)
        return record

    def _append(self, record: Record, origin: Origin = OTHER_PROGRAM) -> None:
        # Merges may need the replaced versions later.
        self._recent.keep(self._replica.append(record, origin), self.state.schema)

    def scale(self, path: str) -> State:
        file = self.state.snapshot.media.get(media_key(path) or "")
        if file and self._is_unscaled(file) and self.image_cache.make_variants_of(upload_path(path) or ""):
            with self.locked():
                self._replica.append(rescan_paths(self._contents, {path}))
        return self.state

    def incomplete_images(self) -> list[str]:
        return [file.path for file in self.state.snapshot.media.values() if self._is_unscaled(file)]

    def _is_unscaled(self, file: Document) -> bool:
        return self.image_cache.needs_variants(file, placeholders=self.state.settings.media.placeholders)

    def recover(self) -> None:
        self._journal.sweep()
        if not self._journal.is_empty:
            with self._journal.writing(), suppress(OSError):  # As in `locked`.
                self._journal.recover()
            if self._loaded:
                self.refresh()

    def observe(self, observe: RecordObserver, committed: Callable[[str, str], None] | None = None) -> None:
        """Set the functions that are called for each record and for each commit.

        This must be done before workers are forked. `committed` is called with the id of a write in the
        commit queue, and the id of its commit.
        """
        self._replica.observe, self._committed = observe, committed

    def _notify_committed(self, write: str, commit: str) -> None:
        if self._committed is not None:
            self._committed(write, commit)

    def record(self) -> None:
        with self.locked():
            self._replica.record()

    # --- other processes -----------------------------------------------------------------------

    def share(self, log: ChangeLog) -> None:
        self._replica.share(log)

    def follow_predecessor(self, is_running: Callable[[], bool]) -> None:
        """Let `has_unread_writes` report the old server's writes until `is_running` returns False."""
        self._is_predecessor_running = is_running

    @property
    def has_unread_writes(self) -> bool:
        if self._is_predecessor_running is None:
            return False
        is_running = self._is_predecessor_running()
        if self._journal.lock.counter != self._contents.write_counter:
            return True
        if not is_running:
            self._is_predecessor_running = None
        return False

    def current(self) -> State:
        """Return the current state. It includes all writes that other processes have acknowledged."""
        try:
            return self._replica.current()
        except UnreadableRecordError:
            self.catch_up()
            return self.state

    def catch_up(self) -> None:
        """Apply the changes of other processes or, on failure, rescan all files. Raises BusyError."""
        try:
            self._replica.catch_up()
        except UnreadableRecordError:
            with self._journal.writing():
                self._catch_up_locked()

    def _catch_up_locked(self) -> None:
        try:
            self._replica.catch_up()
        except UnreadableRecordError as error:
            self._rescan_after_unreadable_record(error)

    def _rescan_after_unreadable_record(self, error: UnreadableRecordError) -> None:
        with suppress(OSError):  # Finish or undo the write of a killed process.
            self._journal.recover()
        contents = self._contents
        record = None
        with suppress(SchemaPending):  # The next refresh applies schema changes.
            record = rescan_all(contents, None, self._journal.lock.counter, reload_files_if_needed(contents))
        if record is not None:
            log.warning(
                "a change from another process can't be applied (%s); rereading the files instead", error
            )
            self._append(record)
        self._replica.skip_new_records()
        # Read images without variants again: a rescan does not notice new variants, because the image's file
        # is unchanged.
        scaled = rescan_paths(contents, self.incomplete_images())
        if scaled.entries:
            self._append(scaled)

    def follow(self) -> None:
        self._journal.sweep()
        if not self._replica.is_replaced:
            self.catch_up()

    def start_new_generation(self, log: ChangeLog, loaded_after: int) -> Change:
        """Append a full record to the log, for new workers. Return the change.

        `loaded_after` is the position at which the log ended before the files were loaded. If it still ends
        there, the old workers have served nothing newer, and the next leader can check all files. Otherwise,
        all files are checked here.
        """
        deadline = time.monotonic() + GIT_TIMEOUT_S
        while True:
            wait_for_git(self.git, deadline)
            with suppress(SchemaPending), self.locked():
                hints = () if log.end == loaded_after else None
                change = self._rescan(hints, stop_if_git_runs=time.monotonic() < deadline)
                if change is not None and read_new_configuration(self._contents) is None:
                    return self._replica.start_new_generation(log)
            self.refresh()  # A schema has changed again, or a git command is running.

    def _requests_reload(self) -> bool:
        request_reload, large = self._parts.request_reload, len(self._contents.entries) >= MAX_LOCAL_FILES
        if request_reload is None or not self._replica.is_shared or not large:
            return False
        self._replica.leave_handover_note()
        request_reload()
        return True

    @property
    def _contents(self) -> Contents:
        return self._replica.contents

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Context manager: hold the write lock.

        First, changes of other processes are applied, and interrupted writes are completed or undone.
        """
        with self._journal.writing():
            self._catch_up_locked()
            with suppress(OSError):  # In a read-only site, interrupted writes are left as they are.
                self._journal.recover()
                if self.committer.settle():
                    self._journal.lock.set_counter(self._journal.lock.counter + 1)
            yield
