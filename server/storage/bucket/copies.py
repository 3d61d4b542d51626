"""Size-limited local cache of bucket objects."""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Protocol

from server.errors import BusyError, StorageError
from server.paths import STATE_FOLDER, state_folder
from server.storage.bounded_folder import NEW_PREFIX, BoundedFolder
from server.storage.bucket.stored import StoredObject

# Limit per process, so that its other threads remain free to serve requests.
MAX_CONCURRENT_FETCHES = 8
QUEUE_TIMEOUT_S = 2.0  # Maximum wait before a fetch starts.
# How many threads may wait for another thread to fetch the same object, and for how long.
MAX_WAITING = 8
TURN_TIMEOUT_S = 10.0
_TURNS = 32
_BUSY = "Too many requests are waiting for the media bucket; try again"
FETCH_TIMEOUT_S = 60.0


class Source(Protocol):
    """Place to fetch objects from, such as a bucket."""

    def fetch(self, object_: StoredObject, into: IO[bytes], timeout_s: float) -> None:
        """Write the bytes of an object to `into`. Raises BucketError if this fails."""


class LocalObjectCache:
    """Local cache of objects from a site's bucket, shared by threads and processes."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / STATE_FOLDER / "media"
        self._files = BoundedFolder(self.folder)
        self._places = threading.BoundedSemaphore(MAX_CONCURRENT_FETCHES)
        self._waiting = threading.BoundedSemaphore(MAX_WAITING)
        # Threads that fetch the same object use the same lock.
        self._turns = [threading.Lock() for _ in range(_TURNS)]

    def open(self, object_: StoredObject, source: Source, max_bytes: int) -> BufferedReader:
        """Open an object in the cache, after downloading it from `source` if necessary.

        Raises BucketError if the download fails, StorageError if the cache can't be written, or BusyError if
        too many downloads are waiting.
        """
        file = self._kept(object_)
        if file is not None:
            return file
        with self._download_slot(object_):
            try:
                return self._kept(object_) or self._fetch(object_, source, max_bytes)
            except OSError as error:
                raise StorageError(f"The file can't be stored: {os.strerror(error.errno or 0)}") from error

    def has(self, object_: StoredObject) -> bool:
        try:
            return self._path(object_).stat().st_size == object_.size
        except OSError:
            return False

    def add(self, object_: StoredObject, file: Path, max_bytes: int) -> None:
        with suppress(OSError):
            target = self._make_path(object_)
            os.link(file, target)
            self._files.note_added(object_.size, max_bytes)

    def _kept(self, object_: StoredObject) -> BufferedReader | None:
        try:
            file = self._path(object_).open("rb")
        except OSError:
            return None
        if os.fstat(file.fileno()).st_size != object_.size:
            file.close()
            return None
        with suppress(OSError):
            os.utime(file.fileno())
        return file

    def _fetch(self, object_: StoredObject, source: Source, max_bytes: int) -> BufferedReader:
        target = self._make_path(object_)
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix=NEW_PREFIX, delete=False) as file:
            try:
                source.fetch(object_, file, FETCH_TIMEOUT_S)
                file.flush()
                os.replace(file.name, target)
                opened = target.open("rb")
                self._files.note_added(object_.size, max_bytes)
                return opened
            finally:
                Path(file.name).unlink(missing_ok=True)

    @contextmanager
    def _download_slot(self, object_: StoredObject) -> Iterator[None]:
        """Wait for a download slot, and hold it in a `with` block. Raises BusyError after a timeout."""
        turn = self._turns[int(object_.sha256[:4], 16) % _TURNS]
        if not turn.acquire(blocking=False):
            # A waiting thread takes no download slot, so a slow object does not delay others.
            if not self._waiting.acquire(timeout=QUEUE_TIMEOUT_S):
                raise BusyError(_BUSY)
            try:
                if not turn.acquire(timeout=TURN_TIMEOUT_S):
                    raise BusyError(_BUSY)
            finally:
                self._waiting.release()
        try:
            if not self._places.acquire(timeout=QUEUE_TIMEOUT_S):
                raise BusyError(_BUSY)
            try:
                yield
            finally:
                self._places.release()
        finally:
            turn.release()

    def _make_path(self, object_: StoredObject) -> Path:
        state_folder(self.root)  # This raises OSError if the site has been moved.
        self.folder.mkdir(exist_ok=True)
        path = self._path(object_)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _path(self, object_: StoredObject) -> Path:
        return self.folder / object_.key
