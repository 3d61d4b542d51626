"""What the workers of one server tell each other: which files changed, in memory that all of them share.

Made before the workers are forked. To ask whether there is news costs a look at two numbers. The
records stand in a ring; who has fallen behind by more than the ring looks at everything instead.
"""

import fcntl
import json
import mmap
import os
import struct
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SIZE = 1024 * 1024
PAUSE_S = 0.1
_HEAD = struct.Struct("=QQQ")  # bytes ever told, those that a request must know of, workers ever started
_LEAD, _TELL = 0, 1  # the bytes of the lock file that are locked


@dataclass(frozen=True, slots=True)
class Record:
    """What one worker told: who, the paths (None: any), the number of the write if it was one.

    What is `urgent` everybody must have taken over before the next answer.
    """

    worker: int
    paths: tuple[str, ...] | None
    write: int | None = None
    urgent: bool = False


class Feed:
    """The news of the workers of one server."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self._memory = mmap.mmap(-1, _HEAD.size + size)
        # Locks of this kind belong to a process: they are not inherited, and end with it.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._threads = threading.Lock()

    @property
    def position(self) -> int:
        """How many bytes have been told."""
        return int(_HEAD.unpack_from(self._memory)[0])

    @property
    def demanded(self) -> int:
        """Up to which position everybody must know the news before answering: that of the last urgent one."""
        return int(_HEAD.unpack_from(self._memory)[1])

    def tell(self, paths: Iterable[str] | None, write: int | None = None, *, urgent: bool = False) -> None:
        """Tell the others which files changed or may have; what is urgent must be in their next answer."""
        told = None if paths is None else sorted(paths)
        line = json.dumps([os.getpid(), told, write, urgent]).encode() + b"\n"
        if len(line) > self.size // 4:
            line = json.dumps([os.getpid(), None, write, urgent]).encode() + b"\n"
        with self._telling():
            total, demanded, started = _HEAD.unpack_from(self._memory)
            self._put(total % self.size, line)
            total += len(line)
            demanded = total if urgent else demanded
            _HEAD.pack_into(self._memory, 0, total, demanded, started)

    def since(self, position: int) -> tuple[int, list[Record] | None]:
        """The position now and what was told since another; None where that is no longer known."""
        with self._telling():
            total = self.position
            if total - position > self.size:
                return total, None
            data = self._get(position % self.size, total - position)
        return total, [_record(line) for line in data.splitlines()]

    def enter(self) -> int:
        """Count a worker that starts; returns its number, from 1."""
        with self._telling():
            total, demanded, started = _HEAD.unpack_from(self._memory)
            _HEAD.pack_into(self._memory, 0, total, demanded, started + 1)
            return int(started) + 1

    def lead(self) -> None:
        """Wait until no other worker leads, then lead for as long as this process lives."""
        while True:  # asked again and again: to the kernel, one that waits here and tells there is a deadlock
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LEAD)
                return
            except OSError:
                time.sleep(PAUSE_S)

    def close(self) -> None:
        """Let go of the memory."""
        self._file.close()
        self._memory.close()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        with self._threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _TELL)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _TELL)

    def _put(self, at: int, data: bytes) -> None:
        head = min(len(data), self.size - at)
        start = _HEAD.size + at
        self._memory[start : start + head] = data[:head]
        self._memory[_HEAD.size : _HEAD.size + len(data) - head] = data[head:]

    def _get(self, at: int, length: int) -> bytes:
        head = min(length, self.size - at)
        start = _HEAD.size + at
        return self._memory[start : start + head] + self._memory[_HEAD.size : _HEAD.size + length - head]


def _record(line: bytes) -> Record:
    worker, paths, write, urgent = json.loads(line)
    return Record(worker, None if paths is None else tuple(paths), write, urgent)
