"""Access to a site's bucket, with a limit on concurrent transfers."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

from server.config.model import Settings
from server.errors import BucketError, BusyError
from server.storage.bucket.copies import LocalObjectCache
from server.storage.bucket.keeping import MediaUploader
from server.storage.bucket.opening import open_bucket
from server.storage.bucket.stored import StoredFile, StoredObject

MAX_CONCURRENT_UPLOADS = 8  # per process
QUEUE_TIMEOUT_S = 5.0  # Maximum wait before an upload starts.
CHECK_TTL_S = 10.0  # The result of a check is cached for this long.
# If a check takes longer than this, `is_good` returns False until the check has finished.
CHECK_TIMEOUT_S = 1.0
REDIRECT, STREAM, SIGN = "redirect", "stream", "sign"
SIGNED_URL_TTL_S = 900


def delivery_mode(settings: Settings) -> str:
    """Return how media files are delivered: REDIRECT, STREAM, or SIGN (a redirect to a signed URL)."""
    return settings.media.serve or (REDIRECT if settings.media.public_url else STREAM)


class SiteBucket:
    """Access to a site's bucket, if one is configured. `formats` is the folder for resized images."""

    def __init__(self, root: Path, formats: Path) -> None:
        self._formats, self._copies = formats, LocalObjectCache(root)
        self._places = threading.BoundedSemaphore(MAX_CONCURRENT_UPLOADS)
        self._check: _BucketCheck | None = None
        self._checking = threading.Lock()

    def upload(self, settings: Settings, source: Path, extension: str) -> StoredFile | None:
        """Upload a media file and its variants. Return None if no bucket is configured.

        Raises BucketError if the bucket can't be used, BusyError if too many uploads are waiting, or OSError
        if `source` can't be read.
        """
        if not settings.media.store:
            return None
        copies = self._copies if delivery_mode(settings) == STREAM else None
        with self._place():
            media = settings.media
            uploader = MediaUploader(
                open_bucket(settings), self._formats, copies, media.cache, media.placeholders
            )
            return uploader.upload(source, extension)

    def open(self, settings: Settings, object_: StoredObject) -> BufferedReader:
        """Open an object, downloading it first if it is not in the local cache.

        Raises the same errors as `LocalObjectCache.open`.
        """
        source = open_bucket(self._with_store(settings))
        return self._copies.open(object_, source, settings.media.cache)

    def is_local(self, object_: StoredObject) -> bool:
        return self._copies.has(object_)

    def url(self, settings: Settings, object_: StoredObject) -> str:
        """Return the URL to redirect to, or "" if the server must send the object itself.

        Raises BucketError if no bucket is configured, or if signing the URL fails.
        """
        mode = delivery_mode(self._with_store(settings))
        if mode == REDIRECT:
            return f"{settings.media.public_url}/{object_.key}"
        return open_bucket(settings).sign(object_.key, SIGNED_URL_TTL_S) if mode == SIGN else ""

    def is_ready(self, settings: Settings) -> bool:
        """Return True if the bucket is reachable, or if no bucket is configured."""
        if not settings.media.store:
            return True
        with self._checking:
            if self._check is None or self._check.is_old:
                self._check = _BucketCheck(settings)
            check = self._check
        return check.is_good()

    def _with_store(self, settings: Settings) -> Settings:
        if not settings.media.store:
            raise BucketError("The media file is in a bucket, but media.store is not set in site.yaml")
        return settings

    @contextmanager
    def _place(self) -> Iterator[None]:
        if not self._places.acquire(timeout=QUEUE_TIMEOUT_S):
            raise BusyError("Too many uploads are waiting for the media bucket; try again")
        try:
            yield
        finally:
            self._places.release()


class _BucketCheck:
    """Background check of whether the bucket is reachable.

    Callers wait at most CHECK_TIMEOUT_S for the result.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._ready, self._over = settings, False, threading.Event()
        self._began = self._ended = time.monotonic()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            with suppress(BucketError):
                open_bucket(self._settings).check()
                self._ready = True
        finally:
            self._ended = time.monotonic()
            self._over.set()

    @property
    def is_old(self) -> bool:
        return self._over.is_set() and time.monotonic() - self._ended > CHECK_TTL_S

    def is_good(self) -> bool:
        self._over.wait(max(0.0, self._began + CHECK_TIMEOUT_S - time.monotonic()))
        return self._ready
