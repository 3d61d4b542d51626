"""Client for an S3-compatible bucket."""

import hashlib
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any

import obstore
from obstore.exceptions import BaseError, GenericError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from server.errors import BucketError, MissingObjectError
from server.storage.bucket.stored import StoredObject

log = logging.getLogger("bifolio")

CONNECT_TIMEOUT_S = 3
REQUEST_TIMEOUT_S = 15
# Command-line commands have longer timeouts than the server, because they may run over slow connections.
COMMAND_REQUEST_TIMEOUT_S = 120
# The server can do without its transformed images in the bucket, so it waits less for them.
BRIEF_REQUEST_TIMEOUT_S = 3
BRIEF_BACKOFF_S = 10.0
# The minimum part size that S3 allows in a multipart upload. Two parts are held in memory at a time.
PART_BYTES = 5 * 1024 * 1024
# A download is split into ranges. If one range takes less than FAST_RANGE_S, the next range is twice as
# large, up to this size.
MAX_RANGE_BYTES = 64 * 1024 * 1024
FAST_RANGE_S = 1.0
READ_CHUNK_BYTES = 1024 * 1024
MAX_CONCURRENT_PARTS = 2
MAX_RETRIES = 2
# If an existing object is older than this, it is uploaded again, so that it is not deleted as garbage. Must
# be less than media_garbage.GRACE_PERIOD.
MIN_RESEND_AGE = timedelta(hours=12)
# For this long after a failure, this process raises BucketError instead of sending requests to the bucket.
BACKOFF_S = 1.0
_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "access_key_id",
    "AWS_SECRET_ACCESS_KEY": "secret_access_key",
    "AWS_SESSION_TOKEN": "session_token",
}
_RANGE_ERROR = "416 Range Not Satisfiable"  # obstore reports this for an empty object.
_FORBIDDEN = re.compile(r"status code: 40[13]\b")
_UNUSED_PREFIX = "/.bifolio"  # No object has this prefix, so listing it is a fast way to test the bucket.


@dataclass(frozen=True, slots=True)
class ListedObject:
    """Object in a bucket listing. `key` excludes the configured prefix."""

    key: str
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """Modification time and entity tag (ETag) of an object in the bucket."""

    modified: datetime
    tag: str


@dataclass(frozen=True, slots=True)
class DownloadedObject:
    """Hash, entity tag and attributes of a downloaded object."""

    sha256: str
    tag: str
    attributes: Mapping[str, str]


class Bucket:
    """Thread-safe client for a bucket, limited to objects below the configured prefix.

    Each process needs its own client. All methods raise BucketError if a request fails or times out.
    """

    def __init__(
        self,
        store: str,
        endpoint: str = "",
        region: str = "",
        *,
        long_timeouts: bool = False,
        short_timeouts: bool = False,
    ) -> None:
        bucket, _, prefix = store.removeprefix("s3://").partition("/")
        seconds = COMMAND_REQUEST_TIMEOUT_S if long_timeouts else REQUEST_TIMEOUT_S
        if short_timeouts:
            seconds = min(seconds, BRIEF_REQUEST_TIMEOUT_S)
        config: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
        config |= {ours: os.environ[name] for name, ours in _CREDENTIALS.items() if os.environ.get(name)}
        self._store = S3Store(
            bucket,
            prefix=prefix or None,
            region=region,
            client_options={
                "allow_http": endpoint.startswith("http://"),
                "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_S),
                "timeout": timedelta(seconds=seconds),
            },
            retry_config={
                "max_retries": 0 if short_timeouts else MAX_RETRIES,
                "retry_timeout": timedelta(seconds=seconds),
                "backoff": {
                    "init_backoff": timedelta(seconds=0.1),
                    "max_backoff": timedelta(seconds=1),
                    "base": 2,
                },
            },
            **config,
        )
        self._has_short_timeouts = short_timeouts
        self._away_until = 0.0  # on the clock of time.monotonic()

    def put(self, object_: StoredObject, source: Path, attributes: Mapping[str, str]) -> bool:
        """Upload the file at `source`, unless the bucket has a copy that is younger than MIN_RESEND_AGE.

        Return True if this call uploaded the file.
        """
        with self._requesting():
            try:
                existing = obstore.head(self._store, object_.key)
            except FileNotFoundError:
                existing = None
            if (
                existing
                and existing["size"] == object_.size
                and _age(existing["last_modified"]) < MIN_RESEND_AGE
            ):
                return False
            with source.open("rb") as file:
                obstore.put(
                    self._store,
                    object_.key,
                    file,
                    attributes=dict(attributes),
                    chunk_size=PART_BYTES,
                    max_concurrency=MAX_CONCURRENT_PARTS,
                )
            if obstore.head(self._store, object_.key)["size"] != object_.size:
                raise BucketError("The media bucket stored only part of the file; try again")
        return True

    def has(self, object_: StoredObject) -> bool:
        with self._requesting():
            try:
                return obstore.head(self._store, object_.key)["size"] == object_.size
            except FileNotFoundError:
                return False

    def fetch(self, object_: StoredObject, into: IO[bytes], timeout_s: float = 3600) -> None:
        """Download an object into the file `into`.

        Raises MissingObjectError if the object is missing or damaged. After an error, `into` may contain
        invalid data.
        """
        digest, deadline = hashlib.sha256(), time.monotonic() + timeout_s
        start, window = 0, PART_BYTES
        while start < object_.size or not start:
            end, began = min(start + window, object_.size), time.monotonic()
            for part in self._parts(object_, start, end):
                digest.update(part)
                into.write(part)
            if end == object_.size:
                break
            if time.monotonic() > deadline:
                raise BucketError("The media bucket is responding too slowly; try again later")
            if time.monotonic() - began < FAST_RANGE_S:
                window = min(2 * window, MAX_RANGE_BYTES)
            start = end
        if digest.hexdigest() != object_.sha256:
            raise self._damage_error(object_)

    def _parts(self, object_: StoredObject, start: int, end: int) -> Iterator[bytes]:
        with self._requesting():
            try:
                if not object_.size:
                    size = obstore.head(self._store, object_.key)["size"]
                else:
                    response = obstore.get(self._store, object_.key, options={"range": (start, end)})
                    size = response.meta["size"]
                if size != object_.size:
                    raise self._damage_error(object_)
                if object_.size:
                    yield from response.stream(READ_CHUNK_BYTES)
            except FileNotFoundError as error:
                log.error("%s is not in the bucket", object_.key)
                raise MissingObjectError() from error
            except GenericError as error:
                if _RANGE_ERROR in str(error):
                    raise self._damage_error(object_) from error
                raise

    def _damage_error(self, object_: StoredObject) -> MissingObjectError:
        log.error("%s in the bucket is damaged: its content does not match its hash", object_.key)
        return MissingObjectError("The media file is damaged in the bucket")

    def list_objects(self, prefix: str = "") -> Iterator[ListedObject]:
        """Yield the objects with this prefix, sorted by key."""
        with self._requesting():
            for chunk in obstore.list(self._store, prefix or None):
                for one in chunk:
                    yield ListedObject(one["path"], one["size"], one["last_modified"])

    def modified(self, key: str) -> datetime | None:
        with self._requesting():
            try:
                return obstore.head(self._store, key)["last_modified"]
            except FileNotFoundError:
                return None

    def delete(self, keys: Iterable[str]) -> None:
        with self._requesting():
            obstore.delete(self._store, list(keys))

    def stat(self, key: str) -> ObjectStat | None:
        with self._requesting():
            try:
                found = obstore.head(self._store, key)
            except FileNotFoundError:
                return None
            return ObjectStat(found["last_modified"], found["e_tag"] or "")

    def read(self, key: str, target: IO[bytes], max_bytes: int) -> DownloadedObject | None:
        """Download an object into `target`. Return None if it is missing or larger than `max_bytes`."""
        digest = hashlib.sha256()
        with self._requesting():
            try:
                response = obstore.get(self._store, key)
            except FileNotFoundError:
                return None
            if response.meta["size"] > max_bytes:
                return None
            attributes = {str(name): value for name, value in response.attributes.items()}
            for part in response.stream(READ_CHUNK_BYTES):
                digest.update(part)
                target.write(part)
        return DownloadedObject(digest.hexdigest(), response.meta["e_tag"] or "", attributes)

    def write(self, key: str, file: IO[bytes], attributes: Mapping[str, str]) -> str:
        """Upload a file, replacing any existing object. Return the new object's entity tag."""
        with self._requesting():
            made = obstore.put(
                self._store,
                key,
                file,
                attributes=dict(attributes),
                chunk_size=PART_BYTES,
                max_concurrency=MAX_CONCURRENT_PARTS,
            )
            return made["e_tag"] or ""

    def sign(self, key: str, seconds: int) -> str:
        with self._requesting():
            return obstore.sign(self._store, "GET", key, timedelta(seconds=seconds))

    def check(self) -> None:
        """Raise BucketError if the bucket is unreachable or denies access."""
        for _ in self.list_objects(_UNUSED_PREFIX):
            return

    @contextmanager
    def _requesting(self) -> Iterator[None]:
        if time.monotonic() < self._away_until:
            raise BucketError()
        try:
            yield
        except (PermissionDeniedError, UnauthenticatedError) as error:
            self._note(error)
            raise BucketError("The media bucket denies access") from error
        except FileNotFoundError as error:  # The bucket itself is missing.
            self._note(error)
            raise BucketError("The media bucket does not exist") from error
        except BaseError as error:
            self._note(error)
            # For listings, obstore raises only a generic error, so check the error's text.
            if _FORBIDDEN.search(str(error).partition("\n")[0]):
                raise BucketError("The media bucket denies access") from error
            raise BucketError() from error

    def _note(self, error: Exception) -> None:
        self._away_until = time.monotonic() + (BRIEF_BACKOFF_S if self._has_short_timeouts else BACKOFF_S)
        log.warning("the media bucket can't be used: %s", str(error).partition("\n")[0])


def _age(modified: datetime) -> timedelta:
    return datetime.now(modified.tzinfo) - modified
