"""The log of a server: every change of the site's state as one record, in memory that all workers share.

The supervisor makes it before it forks the workers. A worker appends under the site's write lock, after
it has applied all earlier records; reading takes no lock. `site.replica` decides when a worker catches up.

The log has two segments; when the newer is full, it replaces the older. Each segment but the first begins
with a checkpoint, a record of everything, where a worker that starts late or falls behind can begin.

Workers that replace all present ones begin with a checkpoint, too. The present ones may lag behind it while
they end; during that time no write gets its answer.
"""

import fcntl
import mmap
import os
import struct
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

from xxhash import xxh3_64_intdigest

SEGMENT_BYTES = 32 * 1024 * 1024  # After so many bytes of records, the next segment begins.
POLL_INTERVAL_S = 0.1
LAG_POLL_INTERVAL_S = 0.01
MAX_LAG_NS = 2_000_000_000  # How long replaced workers may serve the state before.
REPLACEMENT_TIMEOUT_NS = 30_000_000_000  # After so much more, a worker no longer expects to be replaced.
# Numbers in the shared memory.
_END, _DEMANDED, _STARTED, _ACTIVE, _CHECKPOINT, _REPLACED, _LAG_UNTIL, _NEWEST, _EVENT, _BASES = range(10)
_NUMBER_COUNT = 11
# How long a record is, its checksum, and whether it is a checkpoint.
_FRAME = struct.Struct("=QQ?")
_NO_POSITION = 2**64 - 1
_LEADER_BYTE, _START_BYTE = 0, 1  # The bytes of a file that are locked.


class ChangeLog:
    """The records of the workers of one server. A position counts the bytes before it."""

    def __init__(self, segment: int = SEGMENT_BYTES) -> None:
        self.segment = segment
        self._memory = mmap.mmap(-1, _NUMBER_COUNT * 8)
        self._numbers = memoryview(self._memory).cast("Q")
        self._numbers[_BASES + 1] = _NO_POSITION
        self._segments = [anonymous_file(), anonymous_file()]
        self._note = anonymous_file()
        # Locks of this kind belong to a process: they are not inherited, and end with it.
        self._locks = anonymous_file()
        self._close_files = closed_with(self, *self._segments, self._note, self._locks)

    @property
    def end(self) -> int:
        """The position behind the last record."""
        return self._numbers[_END]

    @property
    def demanded(self) -> int:
        """Up to which position everybody must have applied the records before answering."""
        return self._numbers[_DEMANDED]

    @property
    def newest(self) -> int:
        """The number of the last record."""
        return self._numbers[_NEWEST]

    @newest.setter
    def newest(self, number: int) -> None:
        self._numbers[_NEWEST] = number

    @property
    def event(self) -> int:
        """The number of the last event that is known to be in the log of events (`server.events`)."""
        return self._numbers[_EVENT]

    @event.setter
    def event(self, number: int) -> None:
        self._numbers[_EVENT] = number

    @property
    def note(self) -> bytes:
        """What workers have left to those that take their place (`server.site.problems`)."""
        return os.pread(self._note, os.fstat(self._note).st_size, 0)

    @note.setter
    def note(self, note: bytes) -> None:
        os.ftruncate(self._note, 0)
        os.pwrite(self._note, note, 0)

    def append(self, record: bytes, checkpoint: Callable[[], bytes], *, demanded: bool) -> int:
        """Append a record; returns the position behind it. Call it under the site's write lock.

        `checkpoint` makes the record of everything up to this one, for a segment that begins.
        """
        active = self._numbers[_ACTIVE]
        base = self._numbers[_BASES + active]
        if base and base == self.end:  # A process was killed right after it had begun this segment.
            self._begin(active, checkpoint())
        elif self.end - base > max(self.segment, 2 * self._numbers[_CHECKPOINT]):
            active = self._begin(1 - active, checkpoint())
        end = self._put(active, self.end, record, checkpoint=False)
        self._numbers[_END] = end
        if demanded:
            self._numbers[_DEMANDED] = end
        return end

    def begin_anew(self, record: bytes, *, lag: bool) -> int:
        """Append a record of everything, from which workers begin that replace all others; see `append`.

        These others may `lag` behind it while they end. Returns the position behind it.
        """
        self._numbers[_LAG_UNTIL] = time.monotonic_ns() + MAX_LAG_NS if lag else 0
        self._numbers[_REPLACED] = self.end + _FRAME.size + len(record)
        self._begin(1 - self._numbers[_ACTIVE], record, checkpoint=False)
        if not lag:
            self._numbers[_DEMANDED] = self.end
        return self.end

    def may_lag(self, position: int, patience: int = 0) -> bool:
        """Whether a worker that is at a position need apply nothing, since another one takes its place.

        `patience` is for how many nanoseconds more it expects so.
        """
        numbers = self._numbers
        return position < numbers[_REPLACED] and time.monotonic_ns() < numbers[_LAG_UNTIL] + patience

    def wait_for_laggards(self) -> None:
        """Wait until no worker may lag any more."""
        while time.monotonic_ns() < self._numbers[_LAG_UNTIL]:
            time.sleep(LAG_POLL_INTERVAL_S)

    def end_lag(self) -> None:
        """Tell that the workers that were replaced have ended."""
        self._numbers[_LAG_UNTIL] = 0

    def since(self, position: int) -> tuple[int, list[bytes]]:
        """The position now, and the records since another one.

        Where those are no longer there, the newest checkpoint stands for all before it. Raises ValueError and
        struct.error for damaged ones, and where that checkpoint is not there either.
        """
        end, at, lost = self.end, position, False
        records: list[bytes] = []
        while at < end or lost:
            found = self._read(at, end)
            if found is None:
                base = self._numbers[_BASES + self._numbers[_ACTIVE]]
                if lost and at == base:
                    raise ValueError("records are missing")
                at, end, lost = base, self.end, True  # The segment may have begun behind `end`.
                records.clear()
                continue
            for checkpoint, record in _frames(found):
                if lost or not checkpoint:
                    records.append(record)
                lost = False
            at += len(found)
        return at, records

    def enter(self) -> int:
        """Count a worker that starts; returns its number, from 1."""
        fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, _START_BYTE)
        try:
            self._numbers[_STARTED] += 1
            return self._numbers[_STARTED]
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, _START_BYTE)

    def lead(self, stop: Event | None = None) -> bool:
        """Wait until no other worker leads, then lead until this one resigns or ends; False if stopped."""
        stop = stop or Event()
        while not stop.is_set():
            try:
                fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LEADER_BYTE)
                return True
            except OSError:
                stop.wait(POLL_INTERVAL_S)
        return False

    def resign(self) -> None:
        """Let another worker lead."""
        fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, _LEADER_BYTE)

    def close(self) -> None:
        """Let go of the memory and the files."""
        self._numbers.release()
        self._memory.close()
        self._close_files()

    def _begin(self, segment: int, record: bytes, *, checkpoint: bool = True) -> int:
        """Begin a segment with a record of everything. Whoever still reads what stood there notices.

        Who has read all before skips it where it is a checkpoint, which says nothing new.
        """
        base = self.end
        self._numbers[_BASES + segment] = _NO_POSITION
        os.ftruncate(self._segments[segment], 0)
        end = self._put(segment, base, record, checkpoint=checkpoint, base=base)
        self._numbers[_CHECKPOINT] = end - base
        self._numbers[_BASES + segment] = base
        self._numbers[_ACTIVE] = segment
        self._numbers[_END] = end
        return segment

    def _put(self, segment: int, at: int, record: bytes, *, checkpoint: bool, base: int | None = None) -> int:
        """Write a record into a segment; returns the position behind it."""
        base = self._numbers[_BASES + segment] if base is None else base
        head = _FRAME.pack(len(record), xxh3_64_intdigest(record), checkpoint)
        for part in (head, memoryview(record)):
            written = 0
            while written < len(part):
                written += os.pwrite(self._segments[segment], part[written:], at - base + written)
            at += written
        return at

    def _read(self, at: int, end: int) -> bytes | None:
        """The bytes from a position up to the end of their segment or `end`; None where they are gone."""
        active = self._numbers[_ACTIVE]
        newer, older = self._numbers[_BASES + active], self._numbers[_BASES + 1 - active]
        segment, base, stop = (active, newer, end) if at >= newer else (1 - active, older, min(end, newer))
        if not base <= at < stop:
            return None
        data = _read_all(self._segments[segment], stop - at, at - base)
        return data if self._numbers[_BASES + segment] == base and len(data) == stop - at else None


def _frames(data: bytes) -> Iterator[tuple[bool, bytes]]:
    at = 0
    while at < len(data):
        length, checksum, checkpoint = _FRAME.unpack_from(data, at)
        at += _FRAME.size
        record = data[at : at + length]
        if xxh3_64_intdigest(record) != checksum:
            raise ValueError("a record is damaged")
        yield checkpoint, record
        at += length


def _read_all(descriptor: int, length: int, offset: int) -> bytes:
    parts = []
    while length > 0 and (part := os.pread(descriptor, length, offset)):
        parts.append(part)
        length -= len(part)
        offset += len(part)
    return b"".join(parts)


class SharedLock:
    """A lock of all threads of all workers, made before they are forked: `with lock:`.

    A lock of a file ends with its process, so that a worker that is killed holds nobody up; the threads of
    one process need another.
    """

    def __init__(self) -> None:
        self._file, self._threads = anonymous_file(), threading.Lock()
        closed_with(self, self._file)

    def __enter__(self) -> None:
        self._threads.acquire()
        fcntl.lockf(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)
        self._threads.release()


def anonymous_file() -> int:
    """A file without a name, which is gone with the last process that has it.

    It is in memory where the system has that: a temporary folder may be full when a write, which is on disk
    already, is to be appended.
    """
    if hasattr(os, "memfd_create"):
        return os.memfd_create("bifolio")
    descriptor, name = tempfile.mkstemp(prefix="bifolio-")
    Path(name).unlink()
    return descriptor


def closed_with(owner: object, *descriptors: int) -> Callable[[], None]:
    """Have open files closed when an owner is let go, or when what is returned is called."""

    def close() -> None:
        for descriptor in descriptors:
            os.close(descriptor)

    closing = weakref.finalize(owner, close)
    closing.atexit = False  # Threads may use them until the end.
    return closing
