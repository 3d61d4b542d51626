"""Counts and durations of requests, in memory that all workers share."""

import mmap
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from server.api.limiting.count_table import CountTable
from server.api.monitoring import request_log
from server.api.operations.table import ROUTES, route_of
from server.api.response import Environ, Header
from server.database.notices import Notices
from server.events.presence import PresenceTable
from server.events.recorder import Recorder
from server.events.stream import StreamCounts, is_alive
from server.jobs.reports import JobReports
from server.paths import UPLOADS_URL

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "other")
STATUSES = (
    *(200, 201, 202, 204, 206, 207, 301, 302, 303, 304, 307, 308),
    *(400, 401, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 422, 423, 428, 429),
    *(431, 499),
    *(500, 501, 502, 503, 504, 507),
    0,  # for responses with any other status
)  # fmt: skip
BUCKET_BOUNDS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MAX_WORKERS = 64  # Workers with higher numbers share a slot with another worker.
_METHOD = {method: number for number, method in enumerate(METHODS)}
_STATUS = {status: number for number, status in enumerate(STATUSES)}
_PROCESS, _CACHED, _LAST_NS, _HEAD = 0, 1, 2, 3  # positions in a slot
ANSWERING_NS = 100_000_000  # for how long a server counts as answering requests after a response
_MEDIA_FILES = route_of(f"{UPLOADS_URL}image.jpg")
_BUCKETS = len(BUCKET_BOUNDS_S) + 1
# After the counts, a slot contains a histogram of durations and their sum in microseconds for each route.
_TIMES = _HEAD + len(ROUTES) * len(METHODS) * len(STATUSES)
_SIZE = _TIMES + len(ROUTES) * (_BUCKETS + 1)


@dataclass(frozen=True, slots=True)
class Durations:
    """Histogram of the durations of a route's requests.

    - `counts`: the number of requests in each bucket of the histogram (see BUCKET_BOUNDS_S).
    - `seconds`: the sum of all durations.
    """

    route: str
    counts: tuple[int, ...]
    seconds: float


class RequestCounts:
    """Request counts and durations of all workers. Must be created before forking."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, MAX_WORKERS * _SIZE * 8)
        self._numbers = memoryview(self._memory).cast("Q")
        self._lock = threading.Lock()
        self._place = 0

    def register_worker(self, worker: int) -> None:
        """Select the memory slot for this worker. Every worker must call this method first."""
        self._place = worker % MAX_WORKERS * _SIZE
        self._lock = threading.Lock()
        self._numbers[self._place + _CACHED] = 0
        self._numbers[self._place + _PROCESS] = os.getpid()

    def count(self, path: str, method: str, status: int, seconds: float | None) -> None:
        """Count a response. `seconds` is the duration of the request, or None for event streams."""
        route = route_of(path)
        cell = (route * len(METHODS) + _METHOD.get(method, len(METHODS) - 1)) * len(STATUSES)
        cell += self._place + _HEAD + _STATUS.get(status, len(STATUSES) - 1)
        if route != _MEDIA_FILES:
            self._numbers[self._place + _LAST_NS] = time.monotonic_ns()
        with self._lock:
            self._numbers[cell] += 1
            if seconds is not None:
                times = self._place + _TIMES + route * (_BUCKETS + 1)
                self._numbers[times + bisect_left(BUCKET_BOUNDS_S, seconds)] += 1
                self._numbers[times + _BUCKETS] += int(seconds * 1e6)

    def has_recent_requests(self) -> bool:
        earliest = time.monotonic_ns() - ANSWERING_NS
        return any(self._numbers[place + _LAST_NS] > earliest for place in self._taken_slots())

    def keep(self, cached: int) -> None:
        self._numbers[self._place + _CACHED] = cached

    def request_counts(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield the number of requests for each route, method and status.

        The status 0 stands for all statuses that are not listed in STATUSES.
        """
        sums = self._sums(_HEAD, _TIMES)
        for cell, count in enumerate(sums):
            if count:
                rest, status = divmod(cell, len(STATUSES))
                route, method = divmod(rest, len(METHODS))
                yield ROUTES[route], METHODS[method], STATUSES[status], count

    def durations(self) -> Iterator[Durations]:
        sums = self._sums(_TIMES, _SIZE)
        for number, route in enumerate(ROUTES):
            *counts, microseconds = sums[number * (_BUCKETS + 1) : (number + 1) * (_BUCKETS + 1)]
            if any(counts):
                yield Durations(route, tuple(counts), microseconds / 1e6)

    def workers(self) -> Iterator[tuple[int, int]]:
        """Yield the process id of each worker, and the size of its response cache in bytes."""
        for place in self._taken_slots():
            if is_alive(process := self._numbers[place + _PROCESS]):
                yield process, self._numbers[place + _CACHED]

    def _sums(self, begin: int, end: int) -> list[int]:
        places = [self._numbers[place + begin : place + end].tolist() for place in self._taken_slots()]
        return [sum(counts) for counts in zip([0] * (end - begin), *places, strict=True)]

    def _taken_slots(self) -> Iterator[int]:
        return (place for place in range(0, MAX_WORKERS * _SIZE, _SIZE) if self._numbers[place + _PROCESS])


# --- observer -------------------------------------------------------------------------------------

BEGAN, REQUEST = "bifolio.began", "bifolio.request"
CACHE_REPORT_INTERVAL_S = 1.0  # How often each process reports the size of its caches.


class Observer:
    """Observer that counts a process's requests and, if `log` is set, logs them."""

    def __init__(self, counts: RequestCounts, cached_bytes: Callable[[], int], *, log: bool = False) -> None:
        self._counts, self._kept, self._log = counts, cached_bytes, log
        self._next = 0.0

    def begin(self, environ: Environ) -> None:
        environ[BEGAN] = time.perf_counter()
        if self._log:
            environ[REQUEST] = request_log.request_id(environ.get("HTTP_X_REQUEST_ID", ""))

    def response_headers(self, environ: Environ) -> tuple[Header, ...]:
        """Return extra headers for the response, and store the request id for this thread's log messages."""
        if not self._log:
            return ()
        request_log.set_request_id(environ[REQUEST])
        return ((request_log.HEADER, environ[REQUEST]),)

    def end(self, environ: Environ, status: int, *, streams: bool = False) -> None:
        now = time.perf_counter()
        seconds = None if streams else now - environ[BEGAN]
        self._counts.count(environ["PATH_INFO"], environ["REQUEST_METHOD"], status, seconds)
        if now >= self._next:
            self._next = now + CACHE_REPORT_INTERVAL_S
            self._counts.keep(self._kept())
        if self._log:
            request_log.log_request(environ, environ[REQUEST], status, environ[BEGAN])
            request_log.set_request_id("")


# --- monitored parts ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MonitoredParts:
    """The parts of a server that are monitored. Each process must call `notices.start` after forking."""

    recorder: Recorder
    counts: RequestCounts = field(default_factory=RequestCounts)
    streams: StreamCounts = field(default_factory=StreamCounts)
    presence: PresenceTable = field(default_factory=PresenceTable)
    notices: Notices = field(default_factory=lambda: Notices(""))
    jobs: JobReports = field(default_factory=JobReports)
    transformations: CountTable = field(default_factory=CountTable)

    @classmethod
    def for_single_process(cls, root: Path, accounts: str) -> "MonitoredParts":
        return cls(Recorder(root, accounts_url=accounts))
