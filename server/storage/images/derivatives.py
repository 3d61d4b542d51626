"""Size-limited cache of transformed images.

Each file's name contains a digest of its content, which reveals damage.
"""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import IO, Protocol, cast

from server.bounded import Cache
from server.errors import BusyError, StorageError
from server.paths import STATE_FOLDER, state_folder
from server.storage.bounded_folder import NEW_PREFIX, BoundedFolder
from server.storage.files import FileMark, file_mark
from server.storage.images.errors import LostProcessError, UntransformableError
from server.storage.images.processes import Job, image_processes
from server.storage.images.scheduling import QUEUE_TIMEOUT_S, TransformationQueue

# Part of each key. Increase it if the same parameters give another result.
VERSION = 3
DIGEST_DIGITS = 32
IMAGES_FOLDER = f"{STATE_FOLDER}/images"
USE_INTERVAL_S = 3600.0  # The time of the last use is updated at most this often.
RETRY_LATER_S = 60.0  # pause after a transformation in the background has failed
MAX_ATTEMPTS = 3  # to store an image while another program deletes the folder
MAX_CACHE_ENTRIES = 10_000  # verified files and images that can't be transformed, kept in memory
_DELETED = (
    "The image was deleted from the cache before it could be sent; try again, or raise media.transform.cache"
)
_LOST = "The image was not transformed, because its process ended or did not respond; try again"


def _one(key: str, value: object) -> int:
    return 1  # The caches are limited by their number of entries.


Open = Callable[[], IO[bytes]]


@dataclass(frozen=True, slots=True)
class Derivative:
    """Transformed image in an open file, which the caller must close."""

    file: BufferedReader
    digest: str
    path: Path

    @property
    def format(self) -> str:
        return self.path.suffix[1:]


class BucketCopy(Protocol):
    """Copy of a transformed image in the bucket, which all machines share."""

    def fetch(self, into: IO[bytes]) -> str:
        """Download the image, and return its format. Return "" if the download fails."""

    def record_use(self, file: Path) -> None:
        """In the background, mark the image as used or, if the bucket does not contain it, upload `file`."""

    def upload_if_missing(self, file: Path) -> str:
        """Upload `file` if the bucket does not contain the image.

        Return the URL to redirect to, or "" if the server must send the file itself.
        """


@dataclass(frozen=True, slots=True)
class DerivativeRequest:
    """Request for a transformed image.

    `digest` is the SHA-256 hash of the original image, or "" if the original never changes. `client` is the
    network from which the request came, or "" for no limit per client. `max_bytes` is the maximum size of the
    cache.
    """

    key: str
    job: Job
    open_image: Open
    max_bytes: int
    digest: str = ""
    client: str = ""
    is_remote: bool = False
    bucket_copy: BucketCopy | None = None


class Derivatives:
    """Cache of transformed images, shared by threads and processes.

    Together, they transform at most `concurrency` images at the same time, and fewer if `is_answering`
    reports that the server is also handling other requests.
    """

    def __init__(
        self,
        root: Path,
        concurrency: int,
        download_timeout_s: float = QUEUE_TIMEOUT_S,
        is_answering: Callable[[], bool] = lambda: False,
    ) -> None:
        self.root, self.folder = root, root / IMAGES_FOLDER
        self._is_answering = is_answering
        self._files = BoundedFolder(self.folder)
        self._queue = TransformationQueue(self._create_folder, concurrency, download_timeout_s, is_answering)
        # Saves listing a folder and hashing the file, 0.2 ms for 100 kB.
        self._verified: Cache[str, tuple[Path, FileMark]] = Cache(MAX_CACHE_ENTRIES, _one)  # by key
        # Why an image can't be transformed, by key. Saves decoding it again, up to 20 s.
        self._unusable: Cache[str, str] = Cache(MAX_CACHE_ENTRIES, _one)
        # When a transformation in the background failed, by key. Saves repeating it for each request, 20 s.
        self._failed_later: Cache[str, float] = Cache(MAX_CACHE_ENTRIES, _one)

    def find(self, key: str) -> Derivative | None:
        """Open a cached image. Return None if it is missing or damaged. A damaged image is deleted."""
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

    def fetch(self, request: DerivativeRequest) -> Derivative | None:
        """Download an image from the bucket to the cache, and return it.

        Return None if the bucket has no usable copy. Raises the same errors as `make`.
        """
        if request.bucket_copy is None or self._unusable.get(request.key):
            return None
        self._queue.run_once(
            f"fetch {request.key}", lambda: self._fetch(request), is_remote=True, client=request.client
        )
        return self.find(request.key)

    def make(self, request: DerivativeRequest, began: float | None = None) -> Derivative:
        """Return an image from the cache or, if it is not there, transform the original.

        `began` is the time at which the caller began to wait (time.monotonic()). Raises UntransformableError
        or StorageError. Raises BusyError if too many requests are waiting, or if this takes too long.
        """
        if derivative := self.find(request.key):
            return derivative
        if reason := self._unusable.get(request.key):
            raise UntransformableError(reason)
        self._queue.run_once(
            request.key,
            lambda: self._make(request),
            is_remote=request.is_remote,
            client=request.client,
            began=began,
        )
        if derivative := self.find(request.key):
            return derivative
        raise BusyError(_DELETED)

    def make_later(self, request: DerivativeRequest) -> None:
        """Make an image in the background.

        Do nothing if making it failed recently, or if too many images are waiting.
        """
        key, failed_at = request.key, self._failed_later.get(request.key)
        if self._unusable.get(key) or (failed_at and time.monotonic() < failed_at + RETRY_LATER_S):
            return
        self._queue.run_later(key, lambda: self._make_quietly(request))

    def _make_quietly(self, request: DerivativeRequest) -> None:
        try:
            (self.fetch(request) or self.make(request)).file.close()
        except (UntransformableError, BusyError, StorageError, OSError):
            self._failed_later.put(request.key, time.monotonic())

    def _fetch(self, request: DerivativeRequest) -> None:
        if not self._path_of(request.key):
            self._store(lambda: self._download(request))

    def _download(self, request: DerivativeRequest) -> None:
        assert request.bucket_copy is not None
        self._create_folder()
        with self._new_file() as result:
            if format_ := request.bucket_copy.fetch(result):
                result.flush()
                self._keep(request, Path(result.name), format_, _digest_of(result))

    def _make(self, request: DerivativeRequest) -> None:
        if self._path_of(request.key):  # Another thread has made it since the caller looked for it.
            return
        # An image in a bucket may have to be downloaded first, which must not delay others.
        with request.open_image() as image:
            self._store(lambda: self._make_unless_cached(request, image))

    def _make_unless_cached(self, request: DerivativeRequest, image: IO[bytes]) -> None:
        with self._queue.slot(request.key, request.client):
            if not self._path_of(request.key):
                self._transform(request, image)

    def _store(self, work: Callable[[], None]) -> None:
        """Call `work`, which stores an image. If another program deletes the cache folder, call `work` again.

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

    def _transform(self, request: DerivativeRequest, image: IO[bytes]) -> None:
        job = replace(request.job, avif_threads=1) if self._is_answering() else request.job
        with self._new_file() as result:
            try:
                made = image_processes().run(job, image, result)
                if request.digest and request.digest != made.source_digest:
                    raise BusyError("The image was replaced while it was transformed; try again")
                self._keep(request, Path(result.name), made.format, made.digest[:DIGEST_DIGITS])
            except UntransformableError as error:
                # If the image has been replaced meanwhile, the error is not about the requested one.
                if request.digest in ("", error.source_digest or _sha256_of(image)):
                    self._unusable.put(request.key, str(error))
                raise
            except LostProcessError as error:
                raise BusyError(_LOST) from error

    @contextmanager
    def _new_file(self) -> Iterator[IO[bytes]]:
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix=NEW_PREFIX, delete=False) as file:
            try:
                yield file
            finally:
                Path(file.name).unlink(missing_ok=True)

    def _keep(self, request: DerivativeRequest, result: Path, format_: str, digest: str) -> None:
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
        if self.folder.is_symlink():  # The cache would delete files in another folder.
            raise StorageError(f"{IMAGES_FOLDER} is a symbolic link; replace it with a folder")
        self.folder.mkdir(exist_ok=True)
        return self.folder


def digest_in(path: Path) -> str:
    return path.stem.partition("-")[2]


def _digest_of(file: IO[bytes]) -> str:
    return _sha256_of(file)[:DIGEST_DIGITS]


def _sha256_of(file: IO[bytes]) -> str:
    file.seek(0)
    return hashlib.file_digest(cast(BufferedReader, file), "sha256").hexdigest()
