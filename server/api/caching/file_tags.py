"""Entity tags of files: they stand for the bytes, so that all machines that have a file give it the same."""

import os
import time
from typing import IO

from xxhash import xxh3_128

from server.bounded import Cache

_PORTION = 1024 * 1024
_SETTLED_NS = 100_000_000  # A file that changed more lately may change again at the same time, by its clock.
_MOST, _EACH = 4 * 1024 * 1024, 400  # bytes of the tags that a process keeps, and of each, about

Seen = tuple[int, int, int, int, int]
_known: Cache[Seen, str] = Cache(_MOST, lambda *_: _EACH)


def tag_of_file(file: IO[bytes]) -> str:
    """What the entity tag of an opened file says, without quotes. A file that has changed is read again."""
    seen = _seen(file)
    tag = _known.get(seen)
    if tag is None:
        tag = _hashed(file)
        if _seen(file) == seen and time.time_ns() - max(seen[-2:]) > _SETTLED_NS:
            _known.put(seen, tag)
    return tag


def _seen(file: IO[bytes]) -> Seen:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _hashed(file: IO[bytes]) -> str:
    hashed, at = xxh3_128(), 0
    while data := os.pread(file.fileno(), _PORTION, at):
        hashed.update(data)
        at += len(data)
    return hashed.hexdigest()
