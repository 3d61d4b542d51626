"""A Redis server for tests, if Redis is installed."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.servers import free_port


@dataclass
class Redis:
    """A running server that stores nothing on disk."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server again after it was stopped."""
        self.process = _started(self.port)

    def stop(self) -> None:
        """Kill the server."""
        self.process.kill()
        self.process.wait()


def _started(port: int) -> "subprocess.Popen[bytes]":
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


@contextmanager
def redis_server() -> Iterator[Redis]:
    """Context manager: run a server. Skip the test if Redis is not installed."""
    if not shutil.which("redis-server"):
        pytest.skip("there is no Redis server on this machine")
    port = free_port()
    running = Redis(port, _started(port))
    try:
        yield running
    finally:
        running.stop()
