"""An S3 server for tests: moto's server, in a process on a free port."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection

import obstore
from obstore.store import S3Store

from tests.servers import free_port
from tests.waiting import until

KEYS = {"AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "a-secret"}
NAME, PREFIX = "media-of-tests", "site"


@dataclass
class S3:
    """A running S3 server."""

    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def url(self) -> str:
        """The server's endpoint."""
        return f"http://127.0.0.1:{self.port}"

    def settings(self, **more: str) -> str:
        """Return the lines of site.yaml that configure the server's bucket."""
        said = {"store": f"s3://{NAME}/{PREFIX}", "endpoint": self.url, **more}
        return "media:\n" + "".join(f"  {key}: {value}\n" for key, value in said.items())

    def empty(self) -> None:
        """Delete everything and create an empty bucket."""
        self.ask("POST", "/moto-api/reset")
        self.ask("PUT", f"/{NAME}")

    def require_credentials(self, after: int = 0) -> None:
        """Reject invalid credentials after the given number of requests."""
        self.ask("POST", "/moto-api/reset-auth", str(after).encode())

    def ask(self, method: str, path: str, body: bytes = b"") -> int:
        """Send a request without credentials, which the server accepts, and return the response status."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body)
            return connection.getresponse().status
        finally:
            connection.close()

    @property
    def store(self) -> S3Store:
        """The bucket's object store, with which tests read and change objects."""
        return S3Store(
            NAME,
            prefix=PREFIX,
            endpoint=self.url,
            region="us-east-1",
            access_key_id="an-id",
            secret_access_key="a-secret",
            client_options={"allow_http": True},
        )

    def objects(self) -> dict[str, bytes]:
        """Return all objects by key."""
        store = self.store
        keys = [one["path"] for chunk in obstore.list(store) for one in chunk]
        return {key: bytes(obstore.get(store, key).bytes()) for key in keys}

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers with which an object is served."""
        return {str(name): value for name, value in obstore.get(self.store, key).attributes.items()}

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Context manager: the server accepts connections, but does not respond."""
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)

    @contextmanager
    def killed(self) -> Iterator[None]:
        """Context manager: kill the server, and afterwards restart it with the same objects, as if it had a
        disk.
        """
        objects = self.objects()
        self.process.kill()
        self.process.wait()
        try:
            yield
        finally:
            self.process = _launch(self.port)
            until(lambda: _answers(self), seconds=60)
            self.ask("PUT", f"/{NAME}")
            for key, content in objects.items():
                obstore.put(self.store, key, content)


@contextmanager
def s3_server() -> Iterator[S3]:
    """Context manager: run a server."""
    port = free_port()
    server = S3(port, _launch(port))
    try:
        until(lambda: _answers(server), seconds=60)
        yield server
    finally:
        server.process.kill()
        server.process.wait()


def _launch(port: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _answers(server: S3) -> bool:
    try:
        return server.ask("GET", "/moto-api/") == 200
    except OSError:
        return False
