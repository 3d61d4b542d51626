"""Receiving of request bodies before the app handles the request. The size of a body and the time to receive
it are limited.

A small body is stored in memory, and a large body in an unnamed file on the site's disk. If a client stops
sending or sends too slowly, it is disconnected before its request has any effect.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

from server.errors import ApiError, BusyError, ClientGone, RequestTimeoutError, StorageError

MAX_BODY_BYTES = 16 * 1024 * 1024  # Limit for JSON. Larger bodies are rejected without reading them.
SMALL_BODY_BYTES = 64 * 1024  # Limit for most bodies, and for all senders without permission.
MEDIUM_BODY_BYTES = 1_000_000  # Limit for bodies with a file's text, or with many file names or values.
MAX_MEMORY_BYTES = 1024 * 1024  # Larger bodies are stored in a file.
MAX_ALL_MEMORY_BYTES = (
    64 * 1024 * 1024
)  # Limit for all bodies in memory. Beyond it, bodies are stored in files.
# Limit for the total size of all bodies that a process is receiving or handling.
MAX_RECEIVED_BYTES = 1024 * 1024 * 1024
# Additional limit for small bodies, enough for one per connection.
SMALL_RESERVE_BYTES = 256 * 1024 * 1024
PROGRESS_TIMEOUT_S = 30.0  # Maximum time without receiving anything.
BODY_TIMEOUT_S = 300.0  # Maximum time for a whole body.


class Exchange(Protocol):
    """Interface of a request whose body is to be received."""

    async def read(self) -> bytes:
        """Return the next part of the body, or b"" at its end."""


class Receiver:
    """Receives all request bodies in a process, on the process's event loop. `folder` is a function that
    creates the folder for large bodies.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self.folder = folder
        self._room = MAX_RECEIVED_BYTES
        self.in_memory = 0

    async def receive(self, exchange: Exchange, length: int | None, most: int) -> "Body":
        """Receive a body. Its file is positioned at the start.

        `length` is the Content-Length, or None for a chunked body. If the body is longer than `most` bytes,
        the returned length exceeds `most` and the file is incomplete.

        Raises ClientGone, BadRequestError and RequestTimeoutError. Raises StorageError if the disk fails, and
        BusyError if the process is receiving too much from other clients.
        """
        body = Body(self)
        if length is not None and length > most:
            body.length = length
            return body
        with ExitStack() as failed:
            failed.callback(body.close)
            failure = await _receive(exchange, body, most)
            if failure is not None:
                raise failure
            if length is not None and body.length < length:
                raise ClientGone
            failed.pop_all()
        return body

    def reserve(self, size: int, *, small: bool) -> None:
        """Count bytes towards the limits. Raises BusyError."""
        if self._room - size < (-SMALL_RESERVE_BYTES if small else 0):
            raise BusyError("The server is receiving too many large bodies; try again")
        self._room -= size

    def release(self, size: int) -> None:
        self._room += size


class Body:
    """A request body, in memory or on disk, and its length in bytes. It counts towards the receiver's limits
    until it is closed.
    """

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.file: IO[bytes] = BytesIO()
        self.length = 0
        self._reserved = self._in_memory = 0

    def write(self, chunk: bytes) -> None:
        """Append a part to the body. Raises BusyError and OSError."""
        size, receiver = len(chunk), self._receiver
        receiver.reserve(size, small=self.length <= SMALL_BODY_BYTES)
        self._reserved += size
        if isinstance(self.file, BytesIO):
            if self._in_memory + size > MAX_MEMORY_BYTES or receiver.in_memory + size > MAX_ALL_MEMORY_BYTES:
                self._move_to_disk()
            else:
                self._in_memory += size
                receiver.in_memory += size
        self.file.write(chunk)

    def _move_to_disk(self) -> None:
        on_disk = TemporaryFile(dir=self._receiver.folder())  # noqa: SIM115
        on_disk.write(self.file.getvalue())  # type: ignore[attr-defined]
        self.file = on_disk
        self._forget_memory()

    def _forget_memory(self) -> None:
        self._receiver.in_memory -= self._in_memory
        self._in_memory = 0

    def close(self) -> None:
        self.file.close()
        self._forget_memory()
        self._receiver.release(self._reserved)
        self._reserved = 0

    def __enter__(self) -> "Body":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _receive(exchange: Exchange, body: Body, most: int) -> ApiError | None:
    """Receive a body until its length exceeds `most`. Return the error if the time or the disk runs out."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in _parts(exchange):
                body.length += len(chunk)
                if body.length > most:
                    return None
                body.write(chunk)
        body.file.seek(0)
    except TimeoutError:
        return RequestTimeoutError()
    except OSError as error:
        return StorageError(f"The request body could not be stored: {error.strerror}")
    return None


async def _parts(exchange: Exchange) -> AsyncIterator[bytes]:
    """Yield the parts of a body as they arrive. Raises BadRequestError and ClientGone."""
    while True:
        async with asyncio.timeout(PROGRESS_TIMEOUT_S):
            part = await exchange.read()
        if not part:
            return
        yield part
