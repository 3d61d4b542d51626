"""Receiving of request bodies before the app handles the request. The size of a body and the time to receive
it are limited.

A small body is stored in memory, and a large body in an unnamed file on the site's disk. If a client stops
sending or sends too slowly, it is disconnected before its request has any effect.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

from server.errors import ApiError, BusyError, ClientGone, RequestTimeoutError, StorageError

MAX_BODY_BYTES = 16 * 1024 * 1024  # Limit for JSON. Larger bodies are rejected without reading them.
SMALL_BODY_BYTES = 64 * 1024  # Limit for most bodies, and for all senders without permission.
MEDIUM_BODY_BYTES = 1_000_000  # Limit for bodies with a file's text, or with many file names or values.
MAX_MEMORY_BYTES = 1024 * 1024  # Larger bodies are stored in a file.
MAX_RECEIVED_BYTES = 1024 * 1024 * 1024  # Limit for the total size of all bodies that a process is receiving.
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
        self._folder = folder
        self._room = MAX_RECEIVED_BYTES

    async def receive(self, exchange: Exchange, length: int | None, most: int) -> tuple[IO[bytes], int]:
        """Receive a body. Returns it as a file, positioned at its start, and its length.

        `length` is the Content-Length, or None for a chunked body. If the body is longer than `most` bytes,
        the returned length exceeds `most` and the file is incomplete.

        Raises ClientGone, BadRequestError and RequestTimeoutError. Raises StorageError if the disk fails, and
        BusyError if the process is receiving too much from other clients.
        """
        if length is not None and length > most:
            return BytesIO(), length
        body, received = _Body(self._folder), 0
        failure: ApiError | None = None
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                async for chunk in _parts(exchange):
                    received += len(chunk)
                    self._room -= len(chunk)
                    if received > most:
                        break
                    if self._room < (-SMALL_RESERVE_BYTES if received <= SMALL_BODY_BYTES else 0):
                        raise BusyError("The server is receiving too many large bodies; try again")
                    body.write(chunk)
                else:
                    if length is not None and received != length:
                        raise ClientGone
            body.file.seek(0)
            return body.file, received
        except TimeoutError:
            failure = RequestTimeoutError()
        except OSError as error:
            failure = StorageError(f"The request body could not be stored: {error.strerror}")
        finally:
            self._room += received
        body.file.close()
        raise failure


class _Body:
    """A body that is being received. It is stored in memory or on disk."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self.file: IO[bytes] = BytesIO()

    def write(self, chunk: bytes) -> None:
        """Append a part to the body. Raises OSError."""
        if isinstance(self.file, BytesIO) and self.file.tell() + len(chunk) > MAX_MEMORY_BYTES:
            on_disk = TemporaryFile(dir=self._folder())  # noqa: SIM115
            on_disk.write(self.file.getbuffer())
            self.file = on_disk
        self.file.write(chunk)


async def _parts(exchange: Exchange) -> AsyncIterator[bytes]:
    """Yield the parts of a body as they arrive. Raises BadRequestError and ClientGone."""
    while True:
        async with asyncio.timeout(PROGRESS_TIMEOUT_S):
            part = await exchange.read()
        if not part:
            return
        yield part
