"""Receiver of request bodies, which are stored in memory or in files."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

from server.api.serving.free_memory import MemoryRelease
from server.errors import ApiError, BadRequestError, BusyError, RequestTimeoutError, StorageError

MAX_BODY_BYTES = 16 * 1024 * 1024  # Limit for JSON. Larger bodies are rejected unread.
SMALL_BODY_BYTES = 64 * 1024  # Limit for most operations, and for callers without permission.
MEDIUM_BODY_BYTES = 1_000_000  # Limit for text files and long lists of names or values.
MAX_MEMORY_BYTES = 1024 * 1024  # Larger bodies are stored in a file.
MAX_ALL_MEMORY_BYTES = 64 * 1024 * 1024  # Limit for all bodies in memory. Further bodies are stored in files.
# Limit for all bodies of a process, in memory and in files.
MAX_RECEIVED_BYTES = 1024 * 1024 * 1024
# Small bodies may exceed MAX_RECEIVED_BYTES by this much, which is enough for one small body on each
# connection.
SMALL_RESERVE_BYTES = 256 * 1024 * 1024
# Each time bodies with this total size have been removed from memory, it is returned to the operating system.
# The C library kept 140 MB of 500 MB by itself.
RELEASE_BYTES = 16 * 1024 * 1024
PROGRESS_TIMEOUT_S = 30.0  # Maximum time between two parts of a body.
BODY_TIMEOUT_S = 300.0  # Maximum time for a whole body.


class Exchange(Protocol):
    """Request whose body has not been received completely."""

    async def read(self) -> bytes:
        """Return the next bytes of the body, or b"" at its end."""


class Receiver:
    """Receiver of a process's request bodies."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self.folder = folder
        self._room = MAX_RECEIVED_BYTES
        self.in_memory = 0
        self._freed_bytes = 0  # since a release was last scheduled
        self._memory = MemoryRelease()

    async def receive(self, exchange: Exchange, length: int | None, max_bytes: int) -> "Body":
        """Receive a body. If it is larger than `max_bytes`, it is not received completely.

        `length` is the length of the body in bytes, or None if the body is chunked. Raises an ApiError if the
        body is incomplete, invalid or can't be stored.
        """
        body = Body(self)
        if length is not None and length > max_bytes:
            body.length = length
            return body
        with ExitStack() as failed:
            failed.callback(body.close)
            failure = await _receive(exchange, body, max_bytes)
            if failure is not None:
                raise failure
            if length is not None and body.length < length:
                raise BadRequestError("The request body is shorter than its Content-Length")
            failed.pop_all()
        return body

    def reserve(self, size: int, *, is_small: bool) -> None:
        """Reserve space for `size` bytes of a body. Raises BusyError if there is not enough space.

        Some space is kept free for small bodies.
        """
        if self._room - size < (-SMALL_RESERVE_BYTES if is_small else 0):
            raise BusyError("The server is receiving too many large request bodies; try again")
        self._room -= size

    def release(self, size: int) -> None:
        self._room += size

    def free_memory(self, size: int) -> None:
        self.in_memory -= size
        self._freed_bytes += size
        if self._freed_bytes >= RELEASE_BYTES:
            self._freed_bytes = 0
            self._memory.schedule()


class Body:
    """Request body in memory or in a file. When it is closed, its space can be used for other bodies."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.file: IO[bytes] = BytesIO()
        self.length = 0
        self._reserved = 0

    def write(self, chunk: bytes) -> None:
        """Append bytes. Raises BusyError if no space is left, and OSError if the file can't be written."""
        size, receiver = len(chunk), self._receiver
        receiver.reserve(size, is_small=self.length <= SMALL_BODY_BYTES)
        self._reserved += size
        if isinstance(self.file, BytesIO):
            receiver.in_memory += size
            if self._reserved > MAX_MEMORY_BYTES or receiver.in_memory > MAX_ALL_MEMORY_BYTES:
                self._move_to_disk(self.file)
        self.file.write(chunk)

    def _move_to_disk(self, memory: BytesIO) -> None:
        file = TemporaryFile(dir=self._receiver.folder())  # noqa: SIM115
        file.write(memory.getbuffer())
        self.file = file
        self._receiver.free_memory(self._reserved)

    def close(self) -> None:
        if isinstance(self.file, BytesIO):
            self._receiver.free_memory(self._reserved)
        self._receiver.release(self._reserved)
        self._reserved = 0
        self.file.close()

    def __enter__(self) -> "Body":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _receive(exchange: Exchange, body: Body, max_bytes: int) -> ApiError | None:
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in _parts(exchange):
                body.length += len(chunk)
                if body.length > max_bytes:
                    return None
                body.write(chunk)
        body.file.seek(0)
    except TimeoutError:
        return RequestTimeoutError()
    except OSError as error:
        return StorageError(f"The request body can't be stored: {error.strerror}")
    return None


async def _parts(exchange: Exchange) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(PROGRESS_TIMEOUT_S):
            part = await exchange.read()
        if not part:
            return
        yield part
