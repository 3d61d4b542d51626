"""Receivers for webhooks on 127.0.0.1: servers that store the requests and send the responses that a test
sets.
"""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.waiting import until


@dataclass
class Received:
    """A request: its path, headers (by lower-case name), body and time of arrival."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def data(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.body)

    @property
    def id(self) -> str:
        """The value of the header webhook-id."""
        return self.headers["webhook-id"]


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Answer = Callable[[socket.socket, Received], None]


def answering(data: bytes) -> Answer:
    """Return a handler that responds with the given bytes."""
    return lambda connection, received: connection.sendall(data)


def status(code: int, *headers: str, body: str = "") -> Answer:
    """Return a handler that responds with a status, headers and a body."""
    head = [f"HTTP/1.1 {code} Said", f"Content-Length: {len(body)}", *headers]
    return answering(("\r\n".join(head) + "\r\n\r\n" + body).encode())


class Receiver:
    """A server that responds to the next requests with `answer`, and stores all requests in `received`."""

    def __init__(self, listener: socket.socket, context: ssl.SSLContext | None = None) -> None:
        self.listener, self._context = listener, context
        self.port = listener.getsockname()[1]
        self.answer: Answer = answering(OK)
        self.received: list[Received] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The URL for the webhook."""
        return f"http://127.0.0.1:{self.port}/hook"

    def until(self, count: int, seconds: float = 20) -> list[Received]:
        """Wait until the given number of requests have arrived, and return all requests."""
        until(lambda: len(self.received) >= count, seconds)
        return self.received

    def serve(self) -> None:
        """Respond to requests until the listening socket is closed."""
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError, IndexError), connection:
            if self._context:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection:
                received = read_request(connection)
                with self._lock:
                    self.received.append(received)
                    self.at_once += 1
                    self.most_at_once = max(self.most_at_once, self.at_once)
                try:
                    self.answer(connection, received)
                finally:
                    with self._lock:
                        self.at_once -= 1


def read_request(connection: socket.socket) -> Received:
    """Read a request from a connection."""
    with connection.makefile("rb") as file:
        path = file.readline().decode("latin-1").split()[1]
        headers: dict[str, str] = {}
        while line := file.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Received(path, headers, file.read(int(headers.get("content-length", "0"))))


@contextmanager
def receiving(context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Context manager: run a receiver."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        receiver = Receiver(listener, context)
        thread = threading.Thread(target=receiver.serve, daemon=True)
        thread.start()
        yield receiver
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)
