"""Cache of transformed images in .bifolio/images/, with a size limit. The least recently used are evicted.

Each file's name contains the key of its transformation and the digest of its content, so a damaged file is
detected. Deleting the folder only costs the time to make the images again.
"""

import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import IO, Protocol, cast

from server.bounded import Cache
from server.errors import BusyError, StorageError
from server.paths import STATE_FOLDER, state_folder
from server.storage.bounded_folder import NEW_PREFIX, BoundedFolder
from server.storage.file_lock import FileLock
from server.storage.files import FileMark, file_mark
from server.storage.images.errors import LostProcessError, UntransformableError
from server.storage.images.processes import Job, image_processes

# Part of each key. Increase it if the same parameters give another result.
VERSION = 3
DIGEST_DIGITS = 32
IMAGES_FOLDER = f"{STATE_FOLDER}/images"
# Maximum wait of a request. A transformation that has begun goes on without it.
QUEUE_TIMEOUT_S = 10.0
# Limit in each process, on waiting requests and on running transformations. The process has more threads than
# this for image requests; the rest serve cached images.
MAX_QUEUED = 16
MAX_REMOTE = 12  # how many of these may wait for the bucket
USE_INTERVAL_S = 3600.0  # The time of the last use is updated at most this often.
MAX_LATER = 100  # transformations without a waiting client, in each process
RETRY_LATER_S = 60.0  # after such a transformation failed
IMAGE_LOCKS = 64
POLL_INTERVAL_S = 0.005  # between attempts to take a slot
MAX_ATTEMPTS = 3  # to store an image while another program deletes the folder
MAX_CACHE_ENTRIES = 10_000  # verified files and images that can't be transformed, kept in memory
_BUSY = "Too many images are being transformed; try again"
_NOT_READY = "The image is not ready yet; try again"
_DELETED = (
    "The image was deleted from the cache before it could be sent; try again, or raise media.transform.cache"
)
_LOST = "The image was not transformed, because its process ended or did not respond; try again"


def _one(key: str, value: object) -> int:
    return 1  # The caches are limited by their number of entries.


Open = Callable[[], IO[bytes]]


@dataclass(frozen=True, slots=True)
class Derivative:
    """An open transformed image, which the caller must close. `digest` is its content's hash."""

    file: BufferedReader
    digest: str
    path: Path

    @property
    def format(self) -> str:
        return self.path.suffix[1:]


class BucketCopy(Protocol):
    """Interface for a transformed image in the bucket, which other machines may have made."""

    def fetch(self, into: IO[bytes]) -> str:
        """Download the image to `into`. Return its format, or "" if this is impossible."""

    def record_use(self, file: Path) -> None:
        """Record that the image is used. Upload `file` in the background if other machines lack it."""

    def ensure_uploaded_url(self, file: Path) -> str:
        """Upload `file` if the bucket lacks it. Return the URL for redirects, or "" to send the file."""


@dataclass(frozen=True, slots=True)
class Request:
    """A requested result: its key, and how to make it from the image that `open_image` opens.

    - `digest`: the SHA-256 hash of the image as a hexadecimal string, or "" if the image never changes.
    - `max_bytes`: the maximum size of the cache.
    - `is_remote`: whether `open_image` has to download the image.
    - `bucket_copy`: the result in the bucket, which another machine may have made.
    """

    key: str
    job: Job
    open_image: Open
    max_bytes: int
    digest: str = ""
    is_remote: bool = False
    bucket_copy: BucketCopy | None = None


class Derivatives:
    """Cache of transformed images for the site at `root`. Safe for use by several threads and processes.

    All processes together transform at most `concurrency` images at the same time, and one less while
    `is_answering` returns that the server answers other requests.
    """

    def __init__(
        self,
        root: Path,
        concurrency: int,
        download_timeout_s: float = QUEUE_TIMEOUT_S,
        is_answering: Callable[[], bool] = lambda: False,
    ) -> None:
        self.root, self.folder, self._concurrency = root, root / IMAGES_FOLDER, concurrency
        self._is_answering = is_answering
        self._download_timeout_s = download_timeout_s
        self._files = BoundedFolder(self.folder)
        self._slots = threading.BoundedSemaphore(concurrency)
        self._lock = threading.Lock()
        self._running: dict[str, Future[None]] = {}  # by key
        # Number of waiting requests, of those that wait for the bucket, and of running bucket jobs.
        self._queued = self._queued_remote = self._running_remote = 0
        self._later: ThreadPoolExecutor | None = None
        self._waiting_later = set[str]()  # keys
        # Saves listing a folder and hashing the file, 0.2 ms for 100 kB.
        self._verified: Cache[str, tuple[Path, FileMark]] = Cache(MAX_CACHE_ENTRIES, _one)  # by key
        # Why an image can't be transformed, by key. Saves decoding it again, up to 20 s.
        self._unusable: Cache[str, str] = Cache(MAX_CACHE_ENTRIES, _one)
        # When a transformation in the background failed, by key. Saves repeating it for each request, 20 s.
        self._failed_later: Cache[str, float] = Cache(MAX_CACHE_ENTRIES, _one)

    def find(self, key: str) -> Derivative | None:
        """Open a transformed image if it is cached. Delete it and return None if it is damaged."""
        path, mark = self._verified.get(key) or (None, None)
        path = path or self._path_of(key)
        if path is None:
            return None
        try:
            file = path.open("rb")
        except OSError:
            self._verified.remove(key)
            return None
        digest = digest_in(path)
        current_mark = file_mark(os.fstat(file.fileno()))
        if current_mark != mark and _digest_of(file) != digest:
            file.close()
            with suppress(OSError):
                path.unlink()
            return None
        file.seek(0)
        if time.time() - current_mark[0] / 1e9 > USE_INTERVAL_S:
            with suppress(OSError):  # in a read-only site
                os.utime(file.fileno())
        self._verified.put(key, (path, file_mark(os.fstat(file.fileno()))))
        return Derivative(file, digest, path)

    def fetch(self, request: Request) -> Derivative | None:
        """Return a transformed image that another machine has made, or None. Raises like `make`."""
        if request.bucket_copy is None or self._unusable.get(request.key):
            return None
        self._run_once(f"fetch {request.key}", self._fetch, replace(request, is_remote=True), None)
        return self.find(request.key)

    def make(self, request: Request, began: float | None = None) -> Derivative:
        """Return a transformed image, after making it if necessary.

        `began` is the time at which the caller began to wait, on the clock of time.monotonic().

        Threads that request the same image share one transformation. Raises UntransformableError, BusyError
        if too many images are being transformed, and StorageError if the result can't be stored.
        """
        if derivative := self.find(request.key):
            return derivative
        if reason := self._unusable.get(request.key):
            raise UntransformableError(reason)
        self._run_once(request.key, self._make, request, began)
        if derivative := self.find(request.key):
            return derivative
        raise BusyError(_DELETED)

    def make_later(self, request: Request) -> None:
        """Make a transformed image in the background, unless it failed recently or many others wait."""
        key, failed_at = request.key, self._failed_later.get(request.key)
        if self._unusable.get(key) or (failed_at and time.monotonic() < failed_at + RETRY_LATER_S):
            return
        with self._lock:
            if key in self._waiting_later or len(self._waiting_later) >= MAX_LATER:
                return
            self._waiting_later.add(key)
            if self._later is None:
                self._later = ThreadPoolExecutor(1, "images")
        self._later.submit(self._make_quietly, request)

    def _make_quietly(self, request: Request) -> None:
        try:
            (self.fetch(request) or self.make(request)).file.close()
        except (UntransformableError, BusyError, StorageError, OSError):
            self._failed_later.put(request.key, time.monotonic())
        finally:
            with self._lock:
                self._waiting_later.discard(request.key)

    def _run_once(
        self, name: str, work: Callable[[Request], None], request: Request, began: float | None
    ) -> None:
        """Do some work once, in another thread, for all requests that wait for it. Raises BusyError.

        The work goes on if a request has waited for too long, so a later request finds the result.
        """
        with self._waiting(request):
            future = self._running_work(name, work, request)
            waited_s = time.monotonic() - began if began else 0.0
            timeout_s = self._download_timeout_s if request.is_remote else QUEUE_TIMEOUT_S
            try:
                future.result(max(0.0, timeout_s - waited_s))
            except TimeoutError as error:
                raise BusyError(_NOT_READY) from error

    @contextmanager
    def _waiting(self, request: Request) -> Iterator[None]:
        """Context manager that limits how many requests wait. Raises BusyError."""
        with self._lock:
            if self._queued >= MAX_QUEUED or (request.is_remote and self._queued_remote >= MAX_REMOTE):
                raise BusyError(_BUSY)
            self._queued += 1
            self._queued_remote += request.is_remote
        try:
            yield
        finally:
            with self._lock:
                self._queued -= 1
                self._queued_remote -= request.is_remote

    def _running_work(self, name: str, work: Callable[[Request], None], request: Request) -> "Future[None]":
        with self._lock:
            if future := self._running.get(name):
                return future
            if len(self._running) >= MAX_QUEUED or (request.is_remote and self._running_remote >= MAX_REMOTE):
                raise BusyError(_BUSY)
            future = self._running[name] = Future()
            self._running_remote += request.is_remote
        # A daemon, because a bucket that does not respond must not delay the end of the process.
        threading.Thread(target=self._run, args=(name, work, request, future), daemon=True).start()
        return future

    def _run(
        self, name: str, work: Callable[[Request], None], request: Request, future: "Future[None]"
    ) -> None:
        try:
            work(request)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(None)
        finally:
            with self._lock:
                del self._running[name]
                self._running_remote -= request.is_remote

    def _fetch(self, request: Request) -> None:
        if not self._path_of(request.key):
            self._store(lambda: self._download(request))

    def _download(self, request: Request) -> None:
        assert request.bucket_copy is not None
        self._create_folder()
        with self._new_file() as result:
            if format_ := request.bucket_copy.fetch(result):
                result.flush()
                result.seek(0)
                self._keep(request, Path(result.name), format_, _digest_of(result))

    def _make(self, request: Request) -> None:
        # An image in a bucket may have to be downloaded first, which must not delay others.
        with request.open_image() as image:
            self._store(lambda: self._make_unless_cached(request, image))

    def _make_unless_cached(self, request: Request, image: IO[bytes]) -> None:
        with self._transformation_slot(request.key):
            if not self._path_of(request.key):
                self._transform(request, image)

    def _store(self, work: Callable[[], None]) -> None:
        """Do some work that stores an image. Repeat it if the folder is deleted meanwhile.

        Raises StorageError if the image can't be stored.
        """
        for attempts_left in reversed(range(MAX_ATTEMPTS)):
            try:
                work()
                break
            except OSError as error:
                if not (isinstance(error, FileNotFoundError) and attempts_left):
                    reason = error.strerror or str(error)
                    message = f"The transformed image can't be written to {IMAGES_FOLDER}/: {reason}"
                    raise StorageError(message) from error

    @contextmanager
    def _transformation_slot(self, key: str) -> Iterator[None]:
        """Context manager that limits how many images are transformed. Raises BusyError and OSError.

        It also lets only one process transform a given image.
        """
        deadline = time.monotonic() + QUEUE_TIMEOUT_S
        if not self._slots.acquire(timeout=QUEUE_TIMEOUT_S):
            raise BusyError(_BUSY)
        try:
            same_image = FileLock(self._create_folder() / f"image-{int(key[:8], 16) % IMAGE_LOCKS}.lock")
            with same_image.held(max(0.0, deadline - time.monotonic())) as is_held:
                if not is_held:
                    raise BusyError(_NOT_READY)
                with self._shared_slot(deadline):
                    yield
        finally:
            self._slots.release()

    @contextmanager
    def _shared_slot(self, deadline: float) -> Iterator[None]:
        """Context manager that holds one of the slots that all processes share. Raises BusyError."""
        locks = [FileLock(self.folder / f"place-{number}.lock") for number in range(self._concurrency)]
        while not (held := next((lock for lock in self._allowed(locks) if lock.acquire()), None)):
            if time.monotonic() >= deadline:
                raise BusyError(_BUSY)
            time.sleep(POLL_INTERVAL_S)
        try:
            yield
        finally:
            held.release()

    def _allowed(self, locks: list[FileLock]) -> list[FileLock]:
        # With a decoder on each core, a thread that receives a request often waits up to 4 ms: Linux ends a
        # decoder's turn only at its next clock tick, whatever its priority.
        return locks[:-1] if len(locks) > 1 and self._is_answering() else locks

    def _transform(self, request: Request, image: IO[bytes]) -> None:
        job = replace(request.job, avif_threads=1) if self._is_answering() else request.job
        with self._new_file() as result:
            try:
                made = image_processes().run(job, image, result)
                if request.digest and request.digest != made.source_digest:
                    raise BusyError("The image was replaced while it was transformed; try again")
                self._keep(request, Path(result.name), made.format, made.digest[:DIGEST_DIGITS])
            except UntransformableError as error:
                self._unusable.put(request.key, str(error))
                raise
            except LostProcessError as error:
                raise BusyError(_LOST) from error

    @contextmanager
    def _new_file(self) -> Iterator[IO[bytes]]:
        """Context manager: create a file in the folder, and delete it unless it has been moved."""
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix=NEW_PREFIX, delete=False) as file:
            try:
                yield file
            finally:
                Path(file.name).unlink(missing_ok=True)

    def _keep(self, request: Request, result: Path, format_: str, digest: str) -> None:
        key, status = request.key, result.stat()
        target = self.folder / key[:2] / f"{key}-{digest}.{format_}"
        target.parent.mkdir(exist_ok=True)
        os.replace(result, target)
        self._verified.put(key, (target, file_mark(status)))
        self._files.note_added(status.st_size, request.max_bytes)

    def _path_of(self, key: str) -> Path | None:
        try:
            names = os.listdir(self.folder / key[:2])
        except OSError:
            return None
        name = next((name for name in names if name.startswith(f"{key}-")), None)
        return self.folder / key[:2] / name if name else None

    def _create_folder(self) -> Path:
        state_folder(self.root)  # raises OSError if the site has been moved
        self.folder.mkdir(exist_ok=True)
        return self.folder


def digest_in(path: Path) -> str:
    """Return the digest in the name of a file in the cache."""
    return path.stem.partition("-")[2]


def _digest_of(file: IO[bytes]) -> str:
    return hashlib.file_digest(cast(BufferedReader, file), "sha256").hexdigest()[:DIGEST_DIGITS]
