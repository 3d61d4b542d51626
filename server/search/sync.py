"""Keeps the index up to date with the site, from a background thread (docs/search.md).

Of the processes that serve a site, one holds a lock and runs the process that writes the index. The
others try to get the lock every second, so that one of them takes over when its holder dies. What
differs between two states of the site is sent to the writer, the newest documents first.
"""

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from server.paths import state_folder
from server.search.catalog import Catalog, IndexedVersion, catalog, changes, size
from server.search.status import DAMAGED, FOLDER
from server.search.texts import Task, shape, texts
from server.search.words import language_of
from server.search.writer_process import DamagedIndex, WriterProcess
from server.site.background.thread import Background
from server.site.site import Site, State

log = logging.getLogger("quire")

LOOK_S = 0.1  # how often to look whether the site has changed
LOOK_FACTOR = 10  # the wait between two looks is at least so many times as long as a look takes
RETRY_S = 1.0  # how often to try for the lock
FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 60.0  # after a failure; it doubles with each further one
IDLE_S = 10.0  # after so long without work the writing process is ended: it takes 30 MB and starts in 0.3 s
BATCH = 50  # versions that are sent together
BATCH_PAUSE_S = 0.002  # between two batches, for threads that wait for the interpreter
COMMIT = 5000  # versions between two commits of a long build
SLOW_S = 2.0  # a build that takes longer reports its progress, at first in such intervals

Tell = Callable[[str], None]


class Sync(Background):
    """One thread that brings the index up to date whenever the site has changed.

    What has not been committed when it is stopped is indexed at the next start.
    """

    def __init__(self, site: Site, report: Tell = log.info) -> None:
        self.site, self.report = site, report
        super().__init__("search-sync", self._run)
        self.leads = threading.Event()  # this process has the lock
        self.done = threading.Event()  # there is nothing left to index, or somebody else has the lock
        self.progress: tuple[int, int] = (0, 0)  # versions looked at, of so many

    def _run(self, stop: threading.Event) -> None:
        failures = 0
        while not stop.is_set():
            began = time.monotonic()
            try:
                folder = state_folder(self.site.root) / FOLDER
                folder.mkdir(mode=0o700, exist_ok=True)
                with _locked(folder / "lock") as lock:
                    if lock is not None:
                        self._lead(folder, lock, stop)
            except DamagedIndex:
                log.warning("the search index is damaged; it is built anew")
                continue
            except Exception as error:
                if stop.is_set():
                    return
                failures = 0 if time.monotonic() - began > LONGEST_WAIT_S else failures
                log.warning("the search index can't be written: %s", error or type(error).__name__)
                self.done.set()
                stop.wait(min(FIRST_WAIT_S * 2**failures, LONGEST_WAIT_S))
                failures += 1
            else:
                self.done.set()
                stop.wait(RETRY_S)

    def _lead(self, folder: Path, lock: int, stop: threading.Event) -> None:
        self.done.clear()
        self.leads.set()
        try:
            with WriterProcess(folder, lock) as writer:
                _Session(self, writer, folder).run(stop)
        finally:
            self.leads.clear()


class _Session:
    """The work of the process that holds the lock: what the index has, and what is still to be sent."""

    def __init__(self, sync: Sync, writer: WriterProcess, folder: Path) -> None:
        self.sync, self.writer, self.folder = sync, writer, folder
        self.state: State | None = None
        self.known: Catalog = {}
        self.todo: dict[str, IndexedVersion | None] = {}  # in the order in which they are sent
        self.shape: str | None = None  # set while all versions are being sent
        self.uncommitted = self.total = 0

    def run(self, stop: threading.Event) -> None:
        """Keep the index up to date until `stop`."""
        looked = began = time.monotonic()
        told = 0.0
        while not stop.is_set():
            looking = time.monotonic()
            self._look()
            looking = time.monotonic() - looking
            if not self.todo and self.shape is None:
                if told:
                    self._report(f"search: {self.total:,} documents indexed in {looked - began:.0f} s")
                self.sync.done.set()
                told = 0.0
                if time.monotonic() - looked > IDLE_S:
                    self.writer.end()
                stop.wait(max(LOOK_S, LOOK_FACTOR * looking))
                began = time.monotonic()
                continue
            self.sync.done.clear()
            self._send()
            looked = time.monotonic()
            done, total = self.sync.progress
            if looked - began > max(SLOW_S, told * 1.5) and done < total:
                told = looked - began
                self._report(f"search: indexing, {done:,} of {total:,} documents")
            stop.wait(BATCH_PAUSE_S)

    def _report(self, line: str) -> None:
        self.sync.report(line)

    def _look(self) -> None:
        """Find what has changed in the site since the last look."""
        if (self.folder / DAMAGED).exists():
            raise DamagedIndex
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
        """Send the next batch, and commit if it is time to."""
        state = self.state
        assert state is not None
        batch = [(key, self.todo.pop(key)) for key in list(self.todo)[:BATCH]]
        tasks = [_task(key, version, state) for key, version in batch]
        self.uncommitted += self.writer.call("take", tasks)
        total, left = self.total, len(self.todo)
        self.sync.progress = (max(0, total - left), total)  # What is to be removed is to be sent as well.
        if not left:
            self.writer.call("commit", total, 0, self.shape or "")
            self.shape = None
            self.uncommitted = 0
        elif self.uncommitted >= COMMIT:
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


@contextmanager
def _locked(path: Path) -> Iterator[int | None]:
    """The lock of a file as a descriptor; None where another process has it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield lock
    finally:
        os.close(lock)
