"""A Redis server of one's own, where it is installed."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.servers import free_port


@dataclass
class Redis:
    """A server that runs, and keeps nothing."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """Its address."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Run it, after it was stopped."""
        self.process = _started(self.port)

    def stop(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


def _started(port: int) -> "subprocess.Popen[bytes]":
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


@contextmanager
def redis_server() -> Iterator[Redis]:
    """A server for the block; the test is skipped where there is none on the machine."""
    if not shutil.which("redis-server"):
        pytest.skip("there is no Redis server on this machine")
    port = free_port()
    running = Redis(port, _started(port))
    try:
        yield running
    finally:
        running.stop()
