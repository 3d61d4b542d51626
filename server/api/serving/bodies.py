"""Receives the body of a request before anybody works on it: within limits of size and of time.

A small body is kept in memory, a larger one in a file without a name on the site's disk. Who sends too
slowly, or stops, is given up, and nothing has been done for them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

from server.errors import ApiError, BusyError, ClientGone, RequestTimeoutError, StorageError

MAX_BODY_BYTES = 16 * 1024 * 1024  # Of JSON; a larger body is refused unread.
SMALL_BODY_BYTES = 64 * 1024  # The limit for most kinds of body: anybody may send so much.
MEDIUM_BODY_BYTES = 1_000_000  # For a body that names many files or values, or has the text of a file.
MAX_MEMORY_BYTES = 1024 * 1024  # A larger body is written to a file.
MAX_RECEIVED_BYTES = 1024 * 1024 * 1024  # Of all bodies that one process receives at a time.
# More for small bodies: one of each connection that a process can have.
SMALL_RESERVE_BYTES = 256 * 1024 * 1024
PROGRESS_TIMEOUT_S = 30.0  # How long a client may send nothing.
BODY_TIMEOUT_S = 300.0  # How long a body may take in all.


class Exchange(Protocol):
    """A request whose body is to be received."""

    async def read(self) -> bytes:
        """Return the next part of the body, b"" at its end."""


class Receiver:
    """Receives the bodies of one process, on its event loop. `folder` makes the folder of large ones."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._room = MAX_RECEIVED_BYTES

    async def receive(self, exchange: Exchange, length: int | None, most: int) -> tuple[IO[bytes], int]:
        """A body as a file at its beginning, and its length; of more than `most` bytes, only that it is more.

        `length` is what the head says, None for a body in chunks. Raises ClientGone, BadRequestError,
        RequestTimeoutError, StorageError where the disk refuses it, BusyError where others send too much.
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
                        raise BusyError("Too much is being sent to this server; try again")
                    body.write(chunk)
                else:
                    if length is not None and received != length:
                        raise ClientGone
            body.file.seek(0)
            return body.file, received
        except TimeoutError:
            failure = RequestTimeoutError()
        except OSError as error:
            failure = StorageError(f"What was sent could not be kept: {error.strerror}")
        finally:
            self._room += received
        body.file.close()
        raise failure


class _Body:
    """A body so far: in memory, or on disk when it is large."""

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
    """The parts of a body as they come. Raises BadRequestError for what is no HTTP, and ClientGone."""
    while True:
        async with asyncio.timeout(PROGRESS_TIMEOUT_S):
            part = await exchange.read()
        if not part:
            return
        yield part
