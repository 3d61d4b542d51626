"""Thread pool in which one client's requests don't delay other clients' requests."""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from server.errors import QueueError

# Limit for each client, because a waiting request occupies a connection even after the client disconnects.
MAX_QUEUED_CALLS = 1000
_QUEUE_FULL = "Too many requests from this address are waiting; try again later"


class ClientThreads:
    """Thread pool that has a queue for each client.

    A client uses at most `threads - reserved` threads at the same time, so other clients' requests are not
    delayed.
    """

    def __init__(self, threads: int, name: str, reserved: int) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._free, self._share = threads, threads - reserved
        self._lock = threading.Lock()
        self._queues: OrderedDict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = OrderedDict()
        self._working: Counter[str] = Counter()  # number of threads that each client occupies

    def submit(self, client: str, work: Callable[..., Any], *args: Any) -> "Future[Any]":
        """Queue a call. Raises QueueError if the client's queue is full."""
        future: Future[Any] = Future()
        with self._lock:
            queue = self._queues.setdefault(client, deque())
            if len(queue) >= MAX_QUEUED_CALLS:
                raise QueueError(_QUEUE_FULL)
            queue.append((future, partial(work, *args)))
            self._start_queued()
        return future

    def shutdown(self) -> None:
        self._pool.shutdown()

    def _start_queued(self) -> None:
        """Start as many queued calls as there are free threads. The caller must hold the lock."""
        while self._free and (client := self._next()) is not None:
            queue = self._queues[client]
            future, work = queue.popleft()
            if queue:
                self._queues.move_to_end(client)
            else:
                del self._queues[client]
            if not future.set_running_or_notify_cancel():
                continue
            self._free -= 1
            self._working[client] += 1
            self._pool.submit(self._run, client, future, work)

    def _next(self) -> str | None:
        return next((one for one in self._queues if self._working[one] < self._share), None)

    def _run(self, client: str, future: "Future[Any]", work: Callable[[], Any]) -> None:
        try:
            result = work()
        except BaseException as error:
            self._end(client)
            future.set_exception(error)
        else:
            self._end(client)
            future.set_result(result)

    def _end(self, client: str) -> None:
        with self._lock:
            self._free += 1
            self._working[client] -= 1
            if not self._working[client]:
                del self._working[client]
            self._start_queued()
