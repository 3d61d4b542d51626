"""Keeps the index up to date with the site, from a background thread (docs/search.md).

Of all the processes that serve a site one has the lock, and with it the process that writes the
index (`indexer`); the others try for the lock every second, so that a writer that dies has an
heir. What is sent is what differs between two states of the site; what is new goes first.
"""

import fcntl
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from server.paths import state_folder
from server.search.catalog import Catalog, Version, catalog, changes, size
from server.search.status import DAMAGED, FOLDER, read_status
from server.search.texts import Task, shape, texts
from server.search.words import language_of
from server.site.site import Site, State

log = logging.getLogger("quire")

LOOK_S = 0.1  # how often to look whether the site has changed
RARELY = 10  # so many times as long as a look took passes before the next
RETRY_S = 1.0  # how often to try for the lock
FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 60.0  # after failures: twice as long after each that follows another
REST_S = 10.0  # a process that had nothing to index for so long ends: it takes 30 MB, and starts in 0.3 s
BATCH = 50  # versions that are sent together
BREATH_S = 0.002  # between two batches, for those who wait for the interpreter
COMMIT = 5000  # versions between two commits of a long build
SLOW_S = 2.0  # a build that takes longer says how far it is, this often at first

_CODE = Path(__file__).resolve().parents[2]  # where this very package is, for the process

Report = Callable[[str], None]


class Sync:
    """One thread that brings the index up to date whenever the site has changed."""

    def __init__(self, site: Site, report: Report = log.info) -> None:
        self.site, self.report = site, report
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="search-sync", daemon=True)
        self.leads = threading.Event()  # this process has the lock
        self.done = threading.Event()  # there is nothing left to index, or somebody else has the lock
        self.progress: tuple[int, int] = (0, 0)  # versions looked at, of so many

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; what was being indexed and is not committed is indexed the next time."""
        self._stop.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                folder = state_folder(self.site.root) / FOLDER
                folder.mkdir(mode=0o700, exist_ok=True)
                with _locked(folder / "lock") as lock:
                    if lock is not None:
                        self._lead(folder, lock)
            except _Damaged:
                log.warning("the search index is damaged; it is built anew")
                continue
            except Exception as error:
                if self._stop.is_set():
                    return
                failures = 0 if time.monotonic() - began > LONGEST_WAIT_S else failures
                log.warning("the search index can't be written: %s", error or type(error).__name__)
                self.done.set()
                self._stop.wait(min(FIRST_WAIT_S * 2**failures, LONGEST_WAIT_S))
                failures += 1
            else:
                self.done.set()
                self._stop.wait(RETRY_S)

    def _lead(self, folder: Path, lock: int) -> None:
        self.done.clear()
        self.leads.set()
        try:
            with _Writer(folder, lock) as writer:
                _Feed(self, writer, folder).run(self._stop)
        finally:
            self.leads.clear()


class _Damaged(Exception):
    """The index can't be read, or is not the one that was written here before: it is built anew."""


class _Feed:
    """One writer's work: what the index has been told, and what it has still to be told."""

    def __init__(self, sync: Sync, writer: "_Writer", folder: Path) -> None:
        self.sync, self.writer, self.folder = sync, writer, folder
        self.state: State | None = None
        self.known: Catalog = {}
        self.todo: dict[str, Version | None] = {}  # in the order in which they are sent
        self.shape: str | None = None  # of the whole that is being sent
        self.uncommitted = self.total = 0

    def run(self, stop: threading.Event) -> None:
        """Follow the site until `stop`."""
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
                if time.monotonic() - looked > REST_S:
                    self.writer.rest()
                stop.wait(max(LOOK_S, RARELY * looking))
                began = time.monotonic()
                continue
            self.sync.done.clear()
            self._send()
            looked = time.monotonic()
            done, total = self.sync.progress
            if looked - began > max(SLOW_S, told * 1.5) and done < total:
                told = looked - began
                self._report(f"search: indexing, {done:,} of {total:,} documents")
            stop.wait(BREATH_S)

    def _report(self, line: str) -> None:
        self.sync.report(line)

    def _look(self) -> None:
        """See what has changed in the site since the last look."""
        if (self.folder / DAMAGED).exists():
            raise _Damaged
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
        """Send the next few, and commit where that is due."""
        state = self.state
        assert state is not None
        batch = [(key, self.todo.pop(key)) for key in list(self.todo)[:BATCH]]
        tasks = [_task(key, version, state) for key, version in batch]
        self.uncommitted += self.writer.call("take", tasks)
        total, left = self.total, len(self.todo)
        self.sync.progress = (total - left, total)
        if not left:
            self.writer.call("commit", total, 0, self.shape or "")
            self.shape = None
            self.uncommitted = 0
        elif self.uncommitted >= COMMIT:
            self.writer.call("commit", total, left)
            self.uncommitted = 0


def _newest_first(changed: dict[str, Version | None]) -> dict[str, Version | None]:
    def age(item: tuple[str, Version | None]) -> str:
        return item[1].document.updated_at if item[1] else "~"

    return dict(sorted(changed.items(), key=age, reverse=True))


def _task(key: str, version: Version | None, state: State) -> Task:
    if version is None:
        return Task(key)
    language = language_of(version.group.locale)
    return Task(key, str(version.group), language, tuple(texts(version.document, state.settings)))


class _Writer:
    """The index as `_Feed` writes to it, through a process that is there while there is work for it."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder, self.lock = folder, lock
        self._child: _Child | None = None
        self._build = ""  # which index the last process wrote

    def __enter__(self) -> "_Writer":
        try:
            self._open()  # a damaged index is replaced by an empty one here
        except BaseException:
            self.rest()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.rest()

    def call(self, name: str, *arguments: Any) -> Any:
        """Command something and wait for the answer; see `_Child.call`. Raises _Damaged."""
        return (self._child or self._open()).call(name, *arguments)

    def _open(self) -> "_Child":
        self._child = _Child(self.folder, self.lock)
        self._child.begin()
        status = read_status(self.folder)
        if status is None or self._build not in ("", status.build):
            raise _Damaged
        self._build = status.build
        return self._child

    def rest(self) -> None:
        """End the process, where there is one; the next call starts another."""
        if self._child is not None:
            self._child.end()
            self._child = None


class _Child:
    """The process that writes. It shares the lock, so that nobody else writes before it has ended."""

    def __init__(self, folder: Path, lock: int) -> None:
        command = [sys.executable, "-P", "-m", "server.search.indexer", str(folder)]
        path = os.pathsep.join(filter(None, (str(_CODE), os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(lock,),
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C in a terminal is for the server, which ends this one
        )

    def begin(self) -> None:
        """Wait until the index is open. Raises ChildProcessError."""
        self._receive()

    def end(self) -> None:
        """End the process; what it has not committed is lost."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what it has not read is of no use any more
                if pipe is not None:
                    pipe.close()

    def call(self, name: str, *arguments: Any) -> Any:
        """Command something and wait for the answer. Raises an OSError or EOFError where it has died."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and perhaps said why
            pickle.dump((name, arguments), self._process.stdin)
            self._process.stdin.flush()
        return self._receive()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        try:
            answer = pickle.load(self._process.stdout)
        except EOFError as error:
            raise ChildProcessError(f"its process ended with status {self._process.wait()}") from error
        if isinstance(answer, str):
            raise ChildProcessError(answer)
        return answer


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
