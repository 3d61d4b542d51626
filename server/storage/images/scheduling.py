"""Limits on the number of waiting and running image transformations."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

from server.errors import BusyError
from server.storage.file_lock import FileLock

# Maximum wait of a request. A transformation that has begun goes on without it.
QUEUE_TIMEOUT_S = 10.0
# Limit in each process, on waiting requests and on running transformations. The process has more threads than
# this for image requests; the rest serve cached images.
MAX_QUEUED = 16
MAX_REMOTE = 12  # how many of these may wait for the bucket
MAX_QUEUED_BY_CLIENT = 12  # how many of these one client may have, while the server answers other requests
MAX_LATER = 100  # transformations without a waiting client, in each process
IMAGE_LOCKS = CLIENT_LOCKS = 64
LAST_SLOT_WAIT_S = 0.5
POLL_INTERVAL_S = 0.005  # between attempts to take a slot
_BUSY = "Too many images are being transformed; try again"
_NOT_READY = "The image is not ready yet; try again"


class TransformationQueue:
    """Queue of a site's transformations. All processes together run at most `concurrency` at the same time.

    While `is_answering` reports that the server is handling other requests, only one transformation runs for
    each client, and the last slot is used only for images that have waited for LAST_SLOT_WAIT_S.
    """

    def __init__(
        self,
        create_folder: Callable[[], Path],
        concurrency: int,
        download_timeout_s: float,
        is_answering: Callable[[], bool],
    ) -> None:
        self._create_folder, self._concurrency = create_folder, concurrency
        self._download_timeout_s, self._is_answering = download_timeout_s, is_answering
        self._slots = threading.BoundedSemaphore(concurrency)
        self._clients = [threading.Lock() for _ in range(CLIENT_LOCKS)]
        self._lock = threading.Lock()
        self._running: dict[str, Future[None]] = {}  # by name
        # Number of waiting requests, of those that wait for the bucket, and of running bucket jobs.
        self._queued = self._queued_remote = self._running_remote = 0
        self._queued_by_client = Counter[str]()
        self._later: ThreadPoolExecutor | None = None
        self._waiting_later = set[str]()  # names

    def run_once(
        self,
        name: str,
        work: Callable[[], None],
        *,
        is_remote: bool,
        client: str = "",
        began: float | None = None,
    ) -> None:
        """Call `work` in another thread, and wait for it.

        If several callers wait for the same `name`, `work` is called once for all of them. `is_remote` means
        that `work` downloads the image. `client` is the network from which the request came, or "" for no
        limit per client. `began` is the time at which the caller began to wait (time.monotonic()). Raises
        BusyError if too many callers are waiting, or if `work` takes too long and goes on in the background.
        """
        with self._limit_waiting(client, is_remote=is_remote):
            future = self._running_work(name, work, is_remote=is_remote)
            waited_s = time.monotonic() - began if began else 0.0
            timeout_s = self._download_timeout_s if is_remote else QUEUE_TIMEOUT_S
            try:
                future.result(max(0.0, timeout_s - waited_s))
            except TimeoutError as error:
                raise BusyError(_NOT_READY) from error

    def run_later(self, name: str, work: Callable[[], None]) -> None:
        """Call `work` in the background.

        Do nothing if work with this `name` is already waiting, or if MAX_LATER other calls are waiting.
        """
        with self._lock:
            if name in self._waiting_later or len(self._waiting_later) >= MAX_LATER:
                return
            self._waiting_later.add(name)
            if self._later is None:
                self._later = ThreadPoolExecutor(1, "images")
        self._later.submit(self._run_later, name, work)

    @contextmanager
    def slot(self, key: str, client: str = "") -> Iterator[None]:
        """Wait for a free slot and for the lock on the result `key`, and hold both in a `with` block.

        `client` means the same as in `run_once`. Raises BusyError after a timeout, or OSError.
        """
        deadline, folder = time.monotonic() + QUEUE_TIMEOUT_S, self._create_folder()
        with self._client_slot(folder, client, deadline):
            if not self._slots.acquire(timeout=max(0.0, deadline - time.monotonic())):
                raise BusyError(_BUSY)
            try:
                path = folder / f"image-{int(key[:8], 16) % IMAGE_LOCKS}.lock"
                with _locked(path, deadline), self._shared_slot(folder, deadline):
                    yield
            finally:
                self._slots.release()

    @contextmanager
    def _client_slot(self, folder: Path, client: str, deadline: float) -> Iterator[None]:
        """While the server is busy, let only one transformation at a time run for this client.

        Raises BusyError after the deadline.
        """
        if not client or not self._is_answering():
            yield
            return
        number = crc32(client.encode()) % CLIENT_LOCKS
        # Threads of this process wait without polling, so that waiting takes no processor time.
        if not self._clients[number].acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise BusyError(_NOT_READY)
        try:
            with _locked(folder / f"client-{number}.lock", deadline):
                yield
        finally:
            self._clients[number].release()

    @contextmanager
    def _limit_waiting(self, client: str, *, is_remote: bool) -> Iterator[None]:
        is_limited = bool(client) and self._is_answering()
        with self._lock:
            if (
                self._queued >= MAX_QUEUED
                or (is_remote and self._queued_remote >= MAX_REMOTE)
                or (is_limited and self._queued_by_client[client] >= MAX_QUEUED_BY_CLIENT)
            ):
                raise BusyError(_BUSY)
            self._queued += 1
            self._queued_remote += is_remote
            self._queued_by_client[client] += 1
        try:
            yield
        finally:
            with self._lock:
                self._queued -= 1
                self._queued_remote -= is_remote
                self._queued_by_client[client] -= 1
                self._queued_by_client += Counter()  # drops clients without waiting requests

    def _running_work(self, name: str, work: Callable[[], None], *, is_remote: bool) -> "Future[None]":
        with self._lock:
            if future := self._running.get(name):
                return future
            if len(self._running) >= MAX_QUEUED or (is_remote and self._running_remote >= MAX_REMOTE):
                raise BusyError(_BUSY)
            future = self._running[name] = Future()
            self._running_remote += is_remote
        # A daemon, because a bucket that does not respond must not delay the end of the process.
        threading.Thread(target=self._run, args=(name, work, is_remote, future), daemon=True).start()
        return future

    def _run(self, name: str, work: Callable[[], None], is_remote: bool, future: "Future[None]") -> None:
        try:
            work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(None)
        finally:
            with self._lock:
                del self._running[name]
                self._running_remote -= is_remote

    def _run_later(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            with self._lock:
                self._waiting_later.discard(name)

    @contextmanager
    def _shared_slot(self, folder: Path, deadline: float) -> Iterator[None]:
        """Hold one of the slots shared by all processes in a `with` block.

        Raises BusyError if no slot becomes free in time.
        """
        locks = [FileLock(folder / f"place-{number}.lock") for number in range(self._concurrency)]
        began = time.monotonic()
        while not (held := next((lock for lock in self._allowed(locks, began) if lock.acquire()), None)):
            if time.monotonic() >= deadline:
                raise BusyError(_BUSY)
            time.sleep(POLL_INTERVAL_S)
        try:
            yield
        finally:
            held.release()

    def _allowed(self, locks: list[FileLock], began: float) -> list[FileLock]:
        # With a decoder on each core, a thread that receives a request often waits up to 4 ms: Linux ends a
        # decoder's turn only at its next clock tick, whatever its priority.
        is_reserved = time.monotonic() < began + LAST_SLOT_WAIT_S and self._is_answering()
        return locks[:-1] if len(locks) > 1 and is_reserved else locks


@contextmanager
def _locked(path: Path, deadline: float) -> Iterator[None]:
    lock = FileLock(path)
    while not lock.acquire():
        if time.monotonic() >= deadline:
            raise BusyError(_NOT_READY)
        time.sleep(POLL_INTERVAL_S)
    try:
        yield
    finally:
        lock.release()
