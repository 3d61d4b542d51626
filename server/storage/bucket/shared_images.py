"""Transformed images in a site's bucket, shared by all machines that serve the site (docs/images.md)."""

import logging
import os
import queue
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from server.bounded import Cache
from server.config.model import Settings
from server.config.transformation import MEDIA_TYPES
from server.errors import BucketError
from server.storage.bucket.keeping import headers_of
from server.storage.bucket.opening import open_bucket
from server.storage.bucket.site_bucket import REDIRECT, SIGN, SIGNED_URL_TTL_S, delivery_mode
from server.storage.file_digests import sha256_of
from server.storage.images.derivatives import digest_in
from server.storage.images.kinds import SIGNATURE_BYTES, has_signature
from server.storage.images.limits import MAX_RESULT_BYTES

if TYPE_CHECKING:
    from server.storage.bucket.bucket import Bucket

log = logging.getLogger("bifolio")

PREFIX = "derivatives/"
DIGEST = "sha256"  # metadata of each object: the hash of its content
# How long an object is assumed to exist after a response of the bucket has shown it.
CHECK_TTL_S = 10.0
USE_INTERVAL_S = 3600.0  # The time of the last use is updated at most this often.
MAX_CACHE_ENTRIES = 10_000
MAX_LATER = 100  # maximum number of waiting tasks in each process
FULL_S = 60.0  # the pause after objects could not be counted or deleted
BATCH_OBJECTS = 100  # number of objects that each request deletes
_EVICTED_DIVISOR = 10  # When the cache is full, a tenth of it is cleared.
_KEY = re.compile(rf"{PREFIX}[0-9a-f]{{2}}/[0-9a-f]{{32}}")
_FORMATS = {media_type: name for name, media_type in MEDIA_TYPES.items()}


@dataclass(frozen=True, slots=True)
class SharedImage:
    """Reference to a transformed image in the bucket.

    `key` identifies the original image and the transformation.
    """

    images: "SharedImages"
    settings: Settings
    key: str

    @property
    def path(self) -> str:
        return f"{PREFIX}{self.key[:2]}/{self.key}"

    def fetch(self, into: IO[bytes]) -> str:
        return self.images.fetch(self, into)

    def record_use(self, file: Path) -> None:
        self.images.record_use(self, file)

    def upload_if_missing(self, file: Path) -> str:
        return self.images.upload_if_missing(self, file)


@dataclass(frozen=True, slots=True)
class _SeenObject:
    """Entity tag that the bucket reported for an object at the time `seen_at` (time.monotonic())."""

    tag: str
    seen_at: float


class _Download:
    """Writer that passes data on to a file, and also keeps the first bytes in `head`."""

    def __init__(self, into: IO[bytes]) -> None:
        self._into, self.head = into, b""

    def write(self, data: bytes) -> int:
        self.head += bytes(memoryview(data)[: SIGNATURE_BYTES - len(self.head)])
        return self._into.write(data)


class SharedImages:
    """Thread-safe client for the transformed images in the bucket."""

    def __init__(self) -> None:
        # Saves a request to the bucket, some 10 ms.
        self._seen_objects: Cache[str, _SeenObject] = Cache(MAX_CACHE_ENTRIES, lambda path, seen_object: 1)
        self._lock = threading.Lock()
        self._tasks: queue.Queue[Callable[[], None]] = queue.Queue(MAX_LATER)
        self._worker: threading.Thread | None = None
        self._pending = set[str]()  # paths of the objects that tasks check
        self._added = sys.maxsize  # bytes added since the size was last computed
        # No objects are added before this time (time.monotonic()), because none can be deleted.
        self._full_until = 0.0

    def fetch(self, image: SharedImage, into: IO[bytes]) -> str:
        try:
            return self._fetch(_bucket(image.settings), image.path, into)
        except BucketError:  # The image can be made without the bucket.
            return ""

    def record_use(self, image: SharedImage, file: Path) -> None:
        seen_object = self._seen_objects.get(image.path)
        if seen_object and time.monotonic() - seen_object.seen_at < USE_INTERVAL_S:
            return
        with self._lock:
            if image.path in self._pending:
                return
            self._pending.add(image.path)
        if not self._run_later(lambda: self._record_use_quietly(image, file)):
            self._pending.discard(image.path)

    def upload_if_missing(self, image: SharedImage, file: Path) -> str:
        mode = delivery_mode(image.settings)
        if mode not in (REDIRECT, SIGN):
            return ""
        try:
            seen_object = self._seen_objects.get(image.path)
            if seen_object is None or time.monotonic() - seen_object.seen_at > CHECK_TTL_S:
                self._ensure_uploaded(image, file)
            if mode == REDIRECT:
                return f"{image.settings.media.public_url}/{image.path}"
            return _bucket(image.settings).sign(image.path, SIGNED_URL_TTL_S)
        except (BucketError, OSError):  # The server sends its own copy.
            return ""

    def _fetch(self, bucket: "Bucket", path: str, into: IO[bytes]) -> str:
        download = _Download(into)
        stored = bucket.read(path, cast(IO[bytes], download), MAX_RESULT_BYTES)
        self._seen_objects.remove(path)
        if stored is None:
            return ""
        format_ = _FORMATS.get(stored.attributes.get("Content-Type", ""), "")
        is_whole = stored.sha256 == stored.attributes.get(DIGEST)
        if not format_ or not is_whole or not has_signature(download.head, format_):
            log.warning("%s in the bucket is damaged, and will be replaced", path)
            return ""
        self._seen_objects.put(path, _SeenObject(stored.tag, time.monotonic()))
        return format_

    def _record_use_quietly(self, image: SharedImage, file: Path) -> None:
        try:
            self._ensure_uploaded(image, file)
        except (BucketError, OSError):  # for example, if the file has been evicted
            pass
        finally:
            self._pending.discard(image.path)

    def _ensure_uploaded(self, image: SharedImage, file: Path) -> None:
        """Upload the image if the bucket's copy is missing, damaged, or older than USE_INTERVAL_S.

        Raises BucketError if this fails, or OSError if `file` can't be read.
        """
        bucket = _bucket(image.settings)
        stored, seen_object = bucket.stat(image.path), self._seen_objects.get(image.path)
        if stored is None or datetime.now(UTC) - stored.modified > timedelta(seconds=USE_INTERVAL_S):
            self._put(bucket, image, file)
        elif seen_object is not None and seen_object.tag == stored.tag:
            self._seen_objects.put(image.path, _SeenObject(stored.tag, time.monotonic()))
        else:  # Another machine may have stored it.
            with open(os.devnull, "wb") as nothing:
                is_good = self._fetch(bucket, image.path, nothing)
            if not is_good:
                self._put(bucket, image, file)

    def _put(self, bucket: "Bucket", image: SharedImage, file: Path) -> None:
        if time.monotonic() < self._full_until:
            raise BucketError("The transformed images in the media bucket can't be deleted")
        with file.open("rb") as content:
            digest = sha256_of(content)
            if not digest.startswith(digest_in(file)):
                raise BucketError("The transformed image is damaged on disk")
            attributes = {**headers_of(MEDIA_TYPES[file.suffix[1:]]), DIGEST: digest}
            tag = bucket.write(image.path, content, attributes)
            size = os.fstat(content.fileno()).st_size
        self._seen_objects.put(image.path, _SeenObject(tag, time.monotonic()))
        max_bytes = image.settings.media.transform.cache
        with self._lock:
            self._added += size
            is_due = self._added >= max_bytes // _EVICTED_DIVISOR
            if is_due:
                self._added = 0
        if is_due and not self._run_later(lambda: self._evict(bucket, max_bytes)):
            self._added = sys.maxsize

    def _evict(self, bucket: "Bucket", max_bytes: int) -> None:
        """Delete the least recently used images if all images together are larger than `max_bytes`.

        Images used in the last USE_INTERVAL_S seconds are kept, because clients may be downloading them,
        unless the total exceeds twice `max_bytes`.
        """
        try:
            listed = [one for one in bucket.list_objects(PREFIX.rstrip("/")) if _KEY.fullmatch(one.key)]
            total, victims = sum(one.size for one in listed), []
            in_use = datetime.now(UTC) - timedelta(seconds=USE_INTERVAL_S)
            if total > max_bytes:
                for one in sorted(listed, key=lambda one: (one.modified, one.key))[:-1]:
                    goal = (
                        2 * max_bytes if one.modified > in_use else max_bytes - max_bytes // _EVICTED_DIVISOR
                    )
                    if total <= goal:
                        break
                    victims.append(one.key)
                    total -= one.size
            for start in range(0, len(victims), BATCH_OBJECTS):
                batch = victims[start : start + BATCH_OBJECTS]
                bucket.delete(batch)
                for path in batch:
                    self._seen_objects.remove(path)
        except BucketError:  # The bucket logs why.
            self._added, self._full_until = sys.maxsize, time.monotonic() + FULL_S

    def _run_later(self, task: Callable[[], None]) -> bool:
        """Run a task in the background. Return False if too many tasks are already waiting."""
        with self._lock:
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="shared-images", daemon=True)
                self._worker.start()
        try:
            self._tasks.put_nowait(task)
        except queue.Full:
            return False
        return True

    def _work(self) -> None:
        while True:
            task = self._tasks.get()
            try:
                task()
            except Exception:
                log.exception("a transformed image could not be uploaded to, or deleted from, the bucket")


def _bucket(settings: Settings) -> "Bucket":
    return open_bucket(settings, short_timeouts=True)
