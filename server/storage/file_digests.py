"""Digests of open files, cached until the files change."""

import hashlib
import os
import time
from collections.abc import Callable
from typing import IO, Protocol

from server.bounded import Cache

_CHUNK_BYTES = 1024 * 1024
# The digest of a file that changed more recently than this is not cached, because the file could change again
# without getting a new timestamp.
_RACY_WINDOW_NS = 100_000_000
_MAX_ENTRIES = 10_000

_FileState = tuple[int, int, int, int, int]


class Hash(Protocol):
    """Interface of the hash objects in hashlib."""

    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


class FileDigests:
    """Cache of the digests of open files."""

    def __init__(self, make_hash: Callable[[], Hash]) -> None:
        self._make_hash = make_hash
        # The cache saves 2 ms for the SHA-256 of 3 MB, and 0.2 of the 1.0 ms that sending 1 MB takes.
        self._known: Cache[_FileState, str] = Cache(_MAX_ENTRIES, lambda *_: 1)

    def digest_of(self, file: IO[bytes]) -> str:
        """Return the hexadecimal digest of a file, without changing the current position in it."""
        seen = _state_of(file)
        digest = self._known.get(seen)
        if digest is None:
            digest = self._hash(file)
            if _state_of(file) == seen and time.time_ns() - max(seen[-2:]) > _RACY_WINDOW_NS:
                self._known.put(seen, digest)
        return digest

    def _hash(self, file: IO[bytes]) -> str:
        hashed, at = self._make_hash(), 0
        while data := os.pread(file.fileno(), _CHUNK_BYTES, at):
            hashed.update(data)
            at += len(data)
        return hashed.hexdigest()


_sha256 = FileDigests(hashlib.sha256)


def sha256_of(file: IO[bytes]) -> str:
    return _sha256.digest_of(file)


def _state_of(file: IO[bytes]) -> _FileState:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
