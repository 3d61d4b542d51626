"""Log in shared memory, from which workers learn of changes to the site."""

import fcntl
import mmap
import os
import struct
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event

from xxhash import xxh3_64, xxh3_64_intdigest

SEGMENT_BYTES = 32 * 1024 * 1024  # when a segment reaches this size, the next one begins
POLL_INTERVAL_S = 0.1
LAG_POLL_INTERVAL_S = 0.01
MAX_LAG_NS = 2_000_000_000  # how long a worker that is being replaced is allowed to serve an older state
REPLACEMENT_TIMEOUT_NS = 30_000_000_000  # how long a worker expects to be replaced
# positions of the numbers in the shared memory
_END, _DEMANDED, _STARTED, _ACTIVE, _CHECKPOINT, _REPLACED, _LAG_UNTIL, _NEWEST, _EVENT, _BASES = range(10)
_NUMBER_COUNT = 11
# Header of a record: length, checksum, and whether it is a checkpoint.
_FRAME = struct.Struct("=QQ?")
_NO_POSITION = 2**64 - 1
_LEADER_BYTE, _START_BYTE = 0, 1  # These bytes of the lock file are locked separately.


class ChangeLog:
    """Log of changes to a site. All workers read it.

    A position in the log is the number of bytes that were appended before it.
    """

    def __init__(self, segment: int = SEGMENT_BYTES) -> None:
        self.segment = segment
        self._memory = mmap.mmap(-1, _NUMBER_COUNT * 8)
        self._numbers = memoryview(self._memory).cast("Q")
        self._numbers[_BASES + 1] = _NO_POSITION
        self._segments = [anonymous_file(), anonymous_file()]
        self._note = anonymous_file()
        # A POSIX lock belongs to one process. Forked processes do not inherit it, and the kernel releases
        # it when the process dies.
        self._locks = anonymous_file()
        self._close_files = close_with_owner(self, *self._segments, self._note, self._locks)

    @property
    def end(self) -> int:
        return self._numbers[_END]

    @property
    def required_position(self) -> int:
        """The position up to which workers must apply the log before their next response."""
        return self._numbers[_DEMANDED]

    @property
    def newest_record(self) -> int:
        return self._numbers[_NEWEST]

    @newest_record.setter
    def newest_record(self, number: int) -> None:
        self._numbers[_NEWEST] = number

    @property
    def last_event(self) -> int:
        return self._numbers[_EVENT]

    @last_event.setter
    def last_event(self, number: int) -> None:
        self._numbers[_EVENT] = number

    @property
    def handover_note(self) -> bytes:
        return os.pread(self._note, os.fstat(self._note).st_size, 0)

    @handover_note.setter
    def handover_note(self, note: bytes) -> None:
        os.ftruncate(self._note, 0)
        os.pwrite(self._note, note, 0)

    def append(self, record: bytes, checkpoint: Callable[[], bytes], *, is_required: bool) -> int:
        """Append a record, and return the position after it.

        `checkpoint` returns a full record, with which each new segment of the log begins. If `is_required` is
        set, workers apply the record before their next response. The caller must hold the write lock.
        """
        active = self._numbers[_ACTIVE]
        base = self._numbers[_BASES + active]
        # The segment is empty, because a process was killed immediately after it had begun the segment.
        if base and base == self.end:
            self._overwrite_segment(active, [checkpoint()])
        elif self.end - base > max(self.segment, 2 * self._numbers[_CHECKPOINT]):
            active = self._overwrite_segment(1 - active, [checkpoint()])
        end = self._put(active, self.end, [record], checkpoint=False)
        self._numbers[_END] = end
        if is_required:
            self._numbers[_DEMANDED] = end
        return end

    def append_full_record(self, parts: Sequence[bytes | mmap.mmap], *, lag: bool) -> int:
        """Append a full record, and return the position after it.

        The record is the concatenation of `parts`. If `lag` is set, old workers may briefly continue to serve
        an older state. The caller must hold the write lock.
        """
        self._numbers[_LAG_UNTIL] = time.monotonic_ns() + MAX_LAG_NS if lag else 0
        self._numbers[_REPLACED] = self.end + _FRAME.size + sum(map(len, parts))
        self._overwrite_segment(1 - self._numbers[_ACTIVE], parts, checkpoint=False)
        if not lag:
            self._numbers[_DEMANDED] = self.end
        return self.end

    def may_lag(self, position: int, extra_ns: int = 0) -> bool:
        """Return True if a worker at `position` may still serve an older state.

        Only workers that are about to be replaced may do so, and only for a limited time. `extra_ns` extends
        the limit, in nanoseconds.
        """
        numbers = self._numbers
        return position < numbers[_REPLACED] and time.monotonic_ns() < numbers[_LAG_UNTIL] + extra_ns

    def wait_for_laggards(self) -> None:
        while time.monotonic_ns() < self._numbers[_LAG_UNTIL]:
            time.sleep(LAG_POLL_INTERVAL_S)

    def end_lag(self) -> None:
        self._numbers[_LAG_UNTIL] = 0

    def records_since(self, position: int) -> tuple[int, list[bytes]]:
        """Return the position of the log's end, and the records after `position`.

        If some of these records have been overwritten, the first record in the result contains the entire
        site. Raises ValueError or struct.error if the log is damaged.
        """
        end, position_now, lost = self.end, position, False
        records: list[bytes] = []
        while position_now < end or lost:
            data = self._read(position_now, end)
            if data is None:
                base = self._numbers[_BASES + self._numbers[_ACTIVE]]
                if lost and position_now == base:
                    raise ValueError("records are missing")
                position_now, end, lost = base, self.end, True  # The old `end` may be in another segment.
                records.clear()
                continue
            for checkpoint, record in _frames(data):
                if lost or not checkpoint:
                    records.append(record)
                lost = False
            position_now += len(data)
        return position_now, records

    def register_worker(self) -> int:
        fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, _START_BYTE)
        try:
            self._numbers[_STARTED] += 1
            return self._numbers[_STARTED]
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, _START_BYTE)

    def wait_for_leadership(self, stop: Event | None = None) -> bool:
        """Wait until this worker becomes the leader, and return True.

        Return False if `stop` is set first. The worker stays the leader until it calls `resign_leadership` or
        exits.
        """
        stop = stop or Event()
        while not stop.is_set():
            try:
                fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LEADER_BYTE)
                return True
            except OSError:
                stop.wait(POLL_INTERVAL_S)
        return False

    def resign_leadership(self) -> None:
        fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, _LEADER_BYTE)

    def close(self) -> None:
        self._numbers.release()
        self._memory.close()
        self._close_files()

    def _overwrite_segment(
        self, segment: int, parts: Sequence[bytes | mmap.mmap], *, checkpoint: bool = True
    ) -> int:
        """Overwrite a segment of the log with a full record.

        Return the segment's number. If `checkpoint` is set, workers that are up to date skip the record.
        """
        base = self.end
        self._numbers[_BASES + segment] = _NO_POSITION
        os.ftruncate(self._segments[segment], 0)
        end = self._put(segment, base, parts, checkpoint=checkpoint, base=base)
        self._numbers[_CHECKPOINT] = end - base
        self._numbers[_BASES + segment] = base
        self._numbers[_ACTIVE] = segment
        self._numbers[_END] = end
        return segment

    def _put(
        self,
        segment: int,
        start: int,
        parts: Sequence[bytes | mmap.mmap],
        *,
        checkpoint: bool,
        base: int | None = None,
    ) -> int:
        base = self._numbers[_BASES + segment] if base is None else base
        checksum = xxh3_64()
        for part in parts:
            checksum.update(part)
        head = _FRAME.pack(sum(map(len, parts)), checksum.intdigest(), checkpoint)
        for part in (head, *parts):
            written, view = 0, memoryview(part)
            while written < len(view):
                written += os.pwrite(self._segments[segment], view[written:], start - base + written)
            start += written
        return start

    def _read(self, start: int, end: int) -> bytes | None:
        """Return the log's bytes from `start` to `end`, or to the end of the segment if that comes first.

        Return None if these bytes have been overwritten.
        """
        active = self._numbers[_ACTIVE]
        newer, older = self._numbers[_BASES + active], self._numbers[_BASES + 1 - active]
        segment, base, stop = (active, newer, end) if start >= newer else (1 - active, older, min(end, newer))
        if not base <= start < stop:
            return None
        data = _read_all(self._segments[segment], stop - start, start - base)
        return data if self._numbers[_BASES + segment] == base and len(data) == stop - start else None


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
    """Lock that all threads of all workers share.

    If the process that holds the lock is killed, the lock is released. The lock must be created before
    workers are forked.
    """

    def __init__(self) -> None:
        self._file, self._threads = anonymous_file(), threading.Lock()
        close_with_owner(self, self._file)

    def __enter__(self) -> None:
        self._threads.acquire()
        fcntl.lockf(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)
        self._threads.release()


def anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("bifolio")
    descriptor, name = tempfile.mkstemp(prefix="bifolio-")
    Path(name).unlink()
    return descriptor


def close_with_owner(owner: object, *descriptors: int) -> Callable[[], None]:
    """Return a function that closes the file descriptors.

    They are also closed when `owner` is garbage-collected.
    """

    def close() -> None:
        for descriptor in descriptors:
            os.close(descriptor)

    closing = weakref.finalize(owner, close)
    closing.atexit = False  # Do not close the files at exit: threads may use them until the process ends.
    return closing
