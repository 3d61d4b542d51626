"""Background job that updates the search index, in the worker that holds the index lock (docs/search.md)."""

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from server.jobs.job import Backoff, Clock, Job, JobContext, JobFailedError, Timing
from server.paths import state_folder
from server.search.catalog import Catalog, IndexedVersion, catalog, changes, size
from server.search.status import DAMAGED_FILE, SEARCH_FOLDER
from server.search.texts import Task, shape, texts
from server.search.words import language_of
from server.search.writer_process import DamagedIndexError, WriterProcess
from server.site.site import Site, State
from server.storage.file_lock import FileLock

log = logging.getLogger("bifolio")

MIN_WAIT_FACTOR = 10  # minimum pause between checks, as a multiple of the last check's duration
MIN_BACKOFF_S, MAX_BACKOFF_S = 0.1, 60.0  # pause after a failure; it doubles with each consecutive failure
BATCH_VERSIONS = 50  # maximum number of versions in one message to the writer process
BATCH_PAUSE_S = 0.002  # pause between batches, so that other threads can run
# number of changed versions after which to commit while a large site is indexed
COMMIT_INTERVAL_VERSIONS = 5000
PROGRESS_INTERVAL_S = 2.0  # first interval between progress reports

Report = Callable[[str], None]


class Sync(Job):
    """Job that updates the search index."""

    name = "index"

    def __init__(self, site: Site, timing: Timing, report: Report = log.info) -> None:
        self.site, self.timing, self.report = site, timing, report
        self.backoff = Backoff(MIN_BACKOFF_S, MAX_BACKOFF_S, reset_s=MAX_BACKOFF_S)
        self.holds_lock = threading.Event()  # set while this process holds the lock
        # set if nothing remains to be indexed, or if another process holds the lock
        self.done = threading.Event()
        self.progress: tuple[int, int] = (0, 0)  # (checked versions, all versions)
        self._session: _IndexingSession | None = None
        self._held = ExitStack()  # the lock and the writer process

    def run(self, context: JobContext) -> float:
        """Index a batch of changes if this process holds the index lock or can acquire it.

        Return the number of seconds until the next run.
        """
        if self.site.folder.is_gone():  # `server.site.watch` logs that the folder is gone.
            self.close()
            return self._wait()
        try:
            session = self._session or self._acquire_lock(context.clock)
            if session is not None:
                return session.step()
        except DamagedIndexError:
            self.close()
            if self.site.folder.is_gone():
                return self._wait()
            log.warning("the search index is damaged; rebuilding it")
            return 0.0
        except Exception as error:
            self.close()
            if context.stopping.is_set():
                return 0.0
            if self.site.folder.is_gone():
                return self._wait()
            reason = str(error) or type(error).__name__
            log.warning("the search index can't be written: %s", reason)
            self.done.set()
            raise JobFailedError(reason) from error
        return self._wait()

    def _wait(self) -> float:
        self.done.set()
        return self.timing.index_lock_s

    def close(self) -> None:
        self._session = None
        self._held.close()
        self.holds_lock.clear()

    def _acquire_lock(self, clock: Clock) -> "_IndexingSession | None":
        """Acquire the lock and start the index writer. Return None if another process holds the lock."""
        folder = state_folder(self.site.root) / SEARCH_FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        with ExitStack() as held:
            lock = FileLock(folder / "lock")
            if not held.enter_context(lock.held()):
                return None
            self.done.clear()
            self.holds_lock.set()
            writer = held.enter_context(WriterProcess(folder, lock.descriptor))
            self._held, self._session = held.pop_all(), _IndexingSession(self, writer, folder, clock)
        return self._session


class _IndexingSession:
    def __init__(self, sync: Sync, writer: WriterProcess, folder: Path, clock: Clock) -> None:
        self.sync, self.writer, self.folder, self.clock = sync, writer, folder, clock
        self.state: State | None = None
        self.known: Catalog = {}
        # the versions that remain to be sent, in this order
        self.todo: dict[str, IndexedVersion | None] = {}
        # the shape that the index will have; None unless all versions are being sent
        self.shape: str | None = None
        self.uncommitted = self.total = 0
        self._is_idle = False
        self._began = self._sent = clock.monotonic()  # when sending began, and when the last batch was sent
        self._reported_s = 0.0  # elapsed seconds at the last progress report

    def step(self) -> float:
        """Find changes to the site, and send a batch of them to the index writer.

        Return the number of seconds until the next run.
        """
        began = self.clock.monotonic()
        if self._is_idle:
            self._began, self._is_idle = began, False
        self._detect_changes()
        check_s = self.clock.monotonic() - began
        if not self.todo and self.shape is None:
            return self._pause(check_s)
        self.sync.done.clear()
        self._send()
        self._sent = self.clock.monotonic()
        done, total = self.sync.progress
        if self._sent - self._began > max(PROGRESS_INTERVAL_S, self._reported_s * 1.5) and done < total:
            self._reported_s = self._sent - self._began
            self._report(f"search: {done:,} of {total:,} documents indexed so far")
        return BATCH_PAUSE_S

    def _pause(self, check_s: float) -> float:
        """Record that the index is up to date. Return the number of seconds until the next run."""
        if self._reported_s:
            self._report(f"search: {self.total:,} documents indexed in {self._sent - self._began:.0f} s")
        self.sync.done.set()
        self._reported_s, self._is_idle = 0.0, True
        if self.clock.monotonic() - self._sent > self.sync.timing.index_idle_s:
            self.writer.end()
        return max(self.sync.timing.index_s, MIN_WAIT_FACTOR * check_s)

    def _report(self, line: str) -> None:
        self.sync.report(line)

    def _detect_changes(self) -> None:
        if (self.folder / DAMAGED_FILE).exists():
            raise DamagedIndexError
        before, state = self.state, self.sync.site.state
        if state is before:
            return
        current = catalog(state, self.known)
        wanted = shape(state.schema, state.settings)
        if before is None or before.schema is not state.schema or before.settings != state.settings:
            self.known = {}
            self.todo.clear()
            self.shape = wanted
            self.writer.call("begin", wanted)
        changed = changes(self.known, current, state.schema.types)
        self.todo = {**_newest_first(changed), **{k: v for k, v in self.todo.items() if k not in changed}}
        self.state, self.known, self.total = state, current, size(current)

    def _send(self) -> None:
        state = self.state
        assert state is not None
        batch = [(key, self.todo.pop(key)) for key in list(self.todo)[:BATCH_VERSIONS]]
        tasks = [_task(key, version, state) for key, version in batch]
        self.uncommitted += self.writer.call("apply", tasks)
        total, left = self.total, len(self.todo)
        # `left` includes removed versions, so it can exceed the total.
        self.sync.progress = (max(0, total - left), total)
        if not left:
            self.writer.call("commit", total, 0, self.shape or "")
            self.shape = None
            self.uncommitted = 0
        elif self.uncommitted >= COMMIT_INTERVAL_VERSIONS:
            self.writer.call("commit", total, left)
            self.uncommitted = 0


def _newest_first(changed: dict[str, IndexedVersion | None]) -> dict[str, IndexedVersion | None]:
    def age(item: tuple[str, IndexedVersion | None]) -> str:
        return item[1].document.updated_at if item[1] else "~"

    return dict(sorted(changed.items(), key=age, reverse=True))


def _task(key: str, version: IndexedVersion | None, state: State) -> Task:
    if version is None:
        return Task(key)
    language = language_of(version.group.locale)
    return Task(key, str(version.group), language, tuple(texts(version.document, state.settings)))
