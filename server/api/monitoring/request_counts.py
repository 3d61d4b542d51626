"""How many requests were answered, and how quickly, in memory that all workers share.

Each worker counts in a place of its own, so that none waits for another. A worker that has ended leaves its
counts where they are, and a later one goes on with them: what is counted never gets less.
"""

import mmap
import os
import threading
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from server.api.operations.table import ROUTES, route_of
from server.events.stream_counts import is_alive

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "other")
STATUSES = (
    *(200, 201, 202, 204, 206, 207, 301, 302, 303, 304, 307, 308),
    *(400, 401, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 422, 423, 428, 429),
    *(431, 499),
    *(500, 501, 502, 503, 504, 507),
    0,  # any other
)  # fmt: skip
BOUNDS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PLACES = 64  # of workers, by their numbers
_METHOD = {method: number for number, method in enumerate(METHODS)}
_STATUS = {status: number for number, status in enumerate(STATUSES)}
_PROCESS, _CACHED, _HEAD = 0, 1, 2  # what a place begins with: whose it is, and the bytes that one keeps
_BUCKETS = len(BOUNDS_S) + 1
_TIMES = _HEAD + len(ROUTES) * len(METHODS) * len(STATUSES)  # of each route: its buckets, then microseconds
_SIZE = _TIMES + len(ROUTES) * (_BUCKETS + 1)


@dataclass(frozen=True, slots=True)
class Durations:
    """How long the requests of a route took: how many up to each of BOUNDS_S, and longer; seconds in all."""

    route: str
    counts: tuple[int, ...]
    seconds: float


class RequestCounts:
    """The counts of all workers. Made before the workers are forked; each then enters with its number."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, PLACES * _SIZE * 8)
        self._numbers = memoryview(self._memory).cast("Q")
        self._lock = threading.Lock()
        self._place = 0

    def enter(self, worker: int) -> None:
        """Count in the place of the worker with a number from now on."""
        self._place = worker % PLACES * _SIZE
        self._lock = threading.Lock()
        self._numbers[self._place + _CACHED] = 0
        self._numbers[self._place + _PROCESS] = os.getpid()

    def count(self, path: str, method: str, status: int, seconds: float | None) -> None:
        """Count a request that was answered; `seconds` is None for one whose answer is a stream."""
        route = route_of(path)
        cell = (route * len(METHODS) + _METHOD.get(method, len(METHODS) - 1)) * len(STATUSES)
        cell += self._place + _HEAD + _STATUS.get(status, len(STATUSES) - 1)
        with self._lock:
            self._numbers[cell] += 1
            if seconds is not None:
                times = self._place + _TIMES + route * (_BUCKETS + 1)
                self._numbers[times + bisect_left(BOUNDS_S, seconds)] += 1
                self._numbers[times + _BUCKETS] += int(seconds * 1e6)

    def keep(self, cached: int) -> None:
        """Say how many bytes of answers this process keeps."""
        self._numbers[self._place + _CACHED] = cached

    def requests(self) -> Iterator[tuple[str, str, int, int]]:
        """How many requests were answered: route, method, status (0 for a rare one), and how many."""
        sums = self._sums(_HEAD, _TIMES)
        for cell, count in enumerate(sums):
            if count:
                rest, status = divmod(cell, len(STATUSES))
                route, method = divmod(rest, len(METHODS))
                yield ROUTES[route], METHODS[method], STATUSES[status], count

    def durations(self) -> Iterator[Durations]:
        """How long requests took, of each route that was asked for."""
        sums = self._sums(_TIMES, _SIZE)
        for number, route in enumerate(ROUTES):
            *counts, microseconds = sums[number * (_BUCKETS + 1) : (number + 1) * (_BUCKETS + 1)]
            if any(counts):
                yield Durations(route, tuple(counts), microseconds / 1e6)

    def workers(self) -> Iterator[tuple[int, int]]:
        """The processes that are alive, and how many bytes of answers each keeps."""
        for place in self._taken():
            if is_alive(process := self._numbers[place + _PROCESS]):
                yield process, self._numbers[place + _CACHED]

    def _sums(self, begin: int, end: int) -> list[int]:
        places = [self._numbers[place + begin : place + end].tolist() for place in self._taken()]
        return [sum(counts) for counts in zip([0] * (end - begin), *places, strict=True)]

    def _taken(self) -> Iterator[int]:
        return (place for place in range(0, PLACES * _SIZE, _SIZE) if self._numbers[place + _PROCESS])
