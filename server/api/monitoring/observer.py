"""What one worker notes of each request that it answers: all are counted, and logged where that is wanted."""

import time
from collections.abc import Callable

from server.api.monitoring import request_log
from server.api.monitoring.request_counts import RequestCounts
from server.api.response import Environ, Header

BEGAN, REQUEST = "quire.began", "quire.request"
KEEP_S = 1.0  # how often it is said how much this process keeps


class Observer:
    """Notes the requests of one process. `kept` is how many bytes of answers it keeps; `log`: log each."""

    def __init__(self, counts: RequestCounts, kept: Callable[[], int], *, log: bool = False) -> None:
        self._counts, self._kept, self._log = counts, kept, log
        self._next = 0.0

    def begin(self, environ: Environ) -> None:
        """A request has arrived."""
        environ[BEGAN] = time.perf_counter()
        if self._log:
            environ[REQUEST] = request_log.request_id(environ.get("HTTP_X_REQUEST_ID", ""))

    def answer(self, environ: Environ) -> tuple[Header, ...]:
        """This thread begins to answer a request; returns what its answer says of it."""
        if not self._log:
            return ()
        request_log.begin(environ[REQUEST])
        return ((request_log.HEADER, environ[REQUEST]),)

    def end(self, environ: Environ, status: int, *, streams: bool = False) -> None:
        """A request was answered; where it `streams`, what it took says nothing."""
        now = time.perf_counter()
        seconds = None if streams else now - environ[BEGAN]
        self._counts.count(environ["PATH_INFO"], environ["REQUEST_METHOD"], status, seconds)
        if now >= self._next:
            self._next = now + KEEP_S
            self._counts.keep(self._kept())
        if self._log:
            request_log.tell(environ, environ[REQUEST], status, environ[BEGAN])
            request_log.begin("")
