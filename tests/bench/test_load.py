"""Tests of the load generator with a real, slow server."""

import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench.load import Requests, run
from bench.serving import Serving

SLOW_S = 1.5  # longer than the shortest run of wrk


class Slow(BaseHTTPRequestHandler):
    """A server that sends no response until SLOW_S seconds after it was started."""

    protocol_version = "HTTP/1.1"
    ready_at = 0.0

    def do_GET(self) -> None:
        time.sleep(max(0, self.ready_at - time.monotonic()))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def slow() -> Iterator[Serving]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    Slow.ready_at = time.monotonic() + SLOW_S
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Serving(server.server_address[1], os.getpid())
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_run_without_any_response_is_repeated(slow: Serving) -> None:
    assert run(slow, Requests(["/"]), 1).rate > 0


def test_a_run_whose_time_is_over_before_the_first_request_sends_one(
    slow: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # so wrk is not found
    assert run(slow, Requests(["/"]), 0).rate > 0
