"""Start and stop of the measured servers, each in a separate process on 127.0.0.1."""

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.effort import SHARE
from bench.host import HOST
from tests.servers import free_port as free_port
from tests.servers import start

START_S = 300.0
STOP_S = 10.0


@dataclass(frozen=True)
class Serving:
    """A running server, with its port and the process that was started."""

    port: int
    pid: int

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(HOST, self.port, timeout=30)

    def get(self, path: str) -> bytes:
        connection = self.connect()
        try:
            return fetch(connection, path)
        finally:
            connection.close()

    def memory(self) -> int:
        # Returns the memory of the largest child process or, if there is none, of the server process itself.
        listing = subprocess.run(["ps", "-eo", "pid=,ppid=,rss="], capture_output=True, text=True, check=True)
        rows = [tuple(map(int, line.split())) for line in listing.stdout.splitlines()]
        below = {self.pid}
        for pid, parent, _ in sorted(rows):
            below |= {pid} if parent in below else set()
        found = [row[2] for row in rows if row[0] in below - {self.pid}]
        return max(found or [row[2] for row in rows if row[0] == self.pid]) * 1024


def fetch(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {body[:300]!r}")
    return body


@contextmanager
def bifolio(root: Path, workers: int | None = None) -> Iterator[Serving]:
    """Context manager: run `bifolio serve` for a site."""
    port = free_port()
    options = ["--workers", str(workers)] if workers else []
    # In small runs, the figures are meaningless, so the server is forked from a process that the tests
    # prepare.
    process = start(root, port, *options, output=subprocess.DEVNULL, real=SHARE == 1)
    with _stopped(process, port) as serving:
        yield serving


@contextmanager
def hosted(
    server: str, kind: str, path: Path, packages: Path | None = None, workers: int | None = None
) -> Iterator[Serving]:
    """Context manager: run an app on a compared server, whose packages are in `packages`."""
    port = free_port()
    command = [sys.executable, "-m", "bench.host", server, str(port), kind, str(path)]
    environment = {"PYTHONPATH": str(packages)} if packages else {}
    if workers:
        environment["BENCH_WORKERS"] = str(workers)
    with running(command, port, environment) as serving:
        yield serving


@contextmanager
def running(
    command: list[str], port: int, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Iterator[Serving]:
    surroundings = {**os.environ, **(environment or {})}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=surroundings, cwd=folder, text=True)
    with _stopped(process, port) as serving:
        yield serving


@contextmanager
def _stopped(process: subprocess.Popen[str], port: int) -> Iterator[Serving]:
    """Context manager: wait until a process listens on the port, and stop the process at the end."""
    try:
        _wait(process, port)
        yield Serving(port, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait(process: subprocess.Popen[str], port: int) -> None:
    """Wait until a process listens on the port. Raises RuntimeError if the process ends before that."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError(f"no server on port {port} after {START_S:.0f} s")
