"""Receives request bodies before the app handles them, within limits of size and time.

A small body is kept in memory, a large one in an unnamed file on the site's disk. A client that sends too
slowly, or stops, is dropped before its request has any effect.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

from server.errors import ApiError, BusyError, ClientGone, RequestTimeoutError, StorageError

MAX_BODY_BYTES = 16 * 1024 * 1024  # For JSON; larger bodies are refused unread.
SMALL_BODY_BYTES = 64 * 1024  # The limit for most bodies; needs no permission.
MEDIUM_BODY_BYTES = 1_000_000  # For bodies with many file names or values, or the text of a file.
MAX_MEMORY_BYTES = 1024 * 1024  # Larger bodies are written to a file.
MAX_RECEIVED_BYTES = 1024 * 1024 * 1024  # For all bodies that one process receives at once.
# Extra room for small bodies: one for each connection of a process.
SMALL_RESERVE_BYTES = 256 * 1024 * 1024
PROGRESS_TIMEOUT_S = 30.0  # How long a client may send nothing.
BODY_TIMEOUT_S = 300.0  # How long a whole body may take.


class Exchange(Protocol):
    """A request with a body to receive."""

    async def read(self) -> bytes:
        """Return the next part of the body, b"" at its end."""


class Receiver:
    """Receives the bodies of one process, on its event loop. `folder` creates the folder for large bodies."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._room = MAX_RECEIVED_BYTES

    async def receive(self, exchange: Exchange, length: int | None, most: int) -> tuple[IO[bytes], int]:
        """Receive a body and return it as a file, positioned at its start, with its length.

        If the body is longer than `most` bytes, the returned length exceeds `most` and the file is
        incomplete. `length` is the Content-Length, None for a chunked body. Raises ClientGone,
        BadRequestError and RequestTimeoutError, StorageError if the disk fails, BusyError if other clients
        send too much.
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
    """A partly received body: in memory, or on disk if it is large."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self.file: IO[bytes] = BytesIO()

    def write(self, chunk: bytes) -> None:
        """Add a part. Raises OSError."""
        if isinstance(self.file, BytesIO) and self.file.tell() + len(chunk) > MAX_MEMORY_BYTES:
            on_disk = TemporaryFile(dir=self._folder())  # noqa: SIM115
            on_disk.write(self.file.getbuffer())
            self.file = on_disk
        self.file.write(chunk)


async def _parts(exchange: Exchange) -> AsyncIterator[bytes]:
    """Yield the parts of a body as they arrive. Raises BadRequestError for invalid HTTP, and ClientGone."""
    while True:
        async with asyncio.timeout(PROGRESS_TIMEOUT_S):
            part = await exchange.read()
        if not part:
            return
        yield part
