"""Sender of large response bodies.

Bodies are kept in memory up to a limit. Beyond that limit, they are kept in files. If the files reach a
limit, too, the client with the most bytes in files is disconnected.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from server.api.error_response import error_answer
from server.api.response import JSON, Header
from server.api.serving.connection import Exchange
from server.api.serving.file_body import PART_BYTES, FileBody
from server.api.serving.free_memory import MemoryRelease
from server.bounded import network_of
from server.errors import ApiError, BusyError

SMALL_BYTES = 64 * 1024  # Bodies up to this size are sent in a single part.
# Limit for larger bodies in memory, for each process.
MAX_MEMORY_BYTES = 64 * 1024 * 1024
MAX_FILE_BYTES = 1024 * 1024 * 1024  # Limit for bodies in files, for each process.
# For bodies in memory. asyncio may copy one part for each client that is not reading. Parts of 128 kB take
# 10% more processor time, and parts larger than 256 kB save little.
_MEMORY_PART_BYTES = 256 * 1024
# After a body of at least this size, freed memory is returned to the operating system.
_MIN_RELEASE_BYTES = 1024 * 1024
_BUSY = BusyError("Too many large responses are being sent; try again")


class LargeBodies:
    """Large response bodies that a process is sending."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        # For each body (by its `id()`), the number of clients it is being sent to. Responses are cached, so
        # there may be more than one.
        self._users: Counter[int] = Counter()
        self._in_memory = 0
        # Sizes of bodies in files, by client and exchange, oldest first.
        self._in_files: dict[str, dict[Exchange, int]] = {}
        # If another body is still being sent, the release is scheduled again when it has been sent.
        self._memory = MemoryRelease(lambda: not self._is_sending)

    async def send(self, body: bytes, status: int, headers: list[Header], exchange: Exchange) -> None:
        """Send a response, or a 503 response if the buffers for bodies are full."""
        size = len(body)
        if not length_of(headers):
            headers = [*headers, ("Content-Length", str(size))]
        if id(body) in self._users or self._in_memory + size <= MAX_MEMORY_BYTES:
            await self._send_from_memory(body, status, headers, exchange)
            return
        client = network_of(exchange.environ.get("REMOTE_ADDR", ""))
        if not self._make_room(client, size):
            refuse(exchange, _BUSY)
            return
        self._in_files.setdefault(client, {})[exchange] = size
        try:
            file = await asyncio.to_thread(_store, body, self._folder)
        except OSError:  # for example a full disk
            refuse(exchange, _BUSY)
        else:
            del body
            exchange.send_head(status, headers)
            await send_body(FileBody(file), size, exchange)
        finally:
            self._forget(client, exchange)
            self._release_later(size)

    def _make_room(self, client: str, size: int) -> bool:
        """Disconnect clients that use more space than `client`, until there is room for `size` bytes.

        Return False if there is still not enough room.
        """
        while True:
            totals = {one: sum(sizes.values()) for one, sizes in self._in_files.items()}
            if sum(totals.values()) + size <= MAX_FILE_BYTES:
                return True
            most = max(totals, key=totals.__getitem__, default=client)
            if totals.get(most, 0) <= totals.get(client, 0) + size:
                return False
            oldest = next(iter(self._in_files[most]))
            self._forget(most, oldest)
            oldest.abort()

    def _forget(self, client: str, exchange: Exchange) -> None:
        sizes = self._in_files.get(client, {})
        sizes.pop(exchange, None)
        if not sizes:
            self._in_files.pop(client, None)

    async def _send_from_memory(
        self, body: bytes, status: int, headers: list[Header], exchange: Exchange
    ) -> None:
        self._in_memory += 0 if self._users[id(body)] else len(body)
        self._users[id(body)] += 1
        try:
            exchange.send_head(status, headers)
            view = memoryview(body)
            for at in range(0, len(body), _MEMORY_PART_BYTES):
                exchange.send(view[at : at + _MEMORY_PART_BYTES])
                if not await exchange.connection.drain():
                    exchange.abort()
                    return
            exchange.end()
        finally:
            self._users[id(body)] -= 1
            if not self._users[id(body)]:
                del self._users[id(body)]
                self._in_memory -= len(body)
            self._release_later(len(body))

    def _release_later(self, size: int) -> None:
        # Creating a body needs many small blocks, which the C library does not return to the operating system
        # by itself. It kept 100 MB after hundreds of bodies of 11 MB.
        if size >= _MIN_RELEASE_BYTES and not self._is_sending:
            self._memory.schedule()

    @property
    def _is_sending(self) -> bool:
        return bool(self._users or self._in_files)


def refuse(exchange: Exchange, error: ApiError) -> None:
    refusal = error_answer(error)
    assert isinstance(refusal.body, bytes)
    exchange.respond(refusal.status, [("Content-Type", JSON), *refusal.headers], refusal.body)


def _store(body: bytes, folder: Callable[[], Path]) -> IO[bytes]:
    file = TemporaryFile(dir=folder())  # noqa: SIM115
    try:
        file.write(body)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


async def send_body(body: Iterable[bytes], length: int, exchange: Exchange) -> None:
    """Send a body as fast as the client reads it, then close the body."""
    left, parts = length, _parts(body)
    try:
        while left > 0:
            part = body.read_cached() if isinstance(body, FileBody) else b""
            part = part or await asyncio.to_thread(next, parts, b"")
            # If the file has grown, the client would mistake the additional bytes for the next response.
            size = exchange.send(part[:left])
            left -= size
            await asyncio.sleep(0)  # Otherwise a client that reads fast would keep others waiting.
            if not size or not await exchange.connection.drain():
                exchange.abort()  # Otherwise, the client would wait for missing bytes.
                return
        exchange.end()
    finally:
        if close := getattr(body, "close", None):
            close()


def _parts(body: Iterable[bytes]) -> Iterator[bytes]:
    blocks, size = list[bytes](), 0
    for block in body:
        blocks.append(block)
        size += len(block)
        if size >= PART_BYTES:
            del block  # must not stay in memory while the client is not reading
            size = 0
            yield _take_all(blocks)
    yield _take_all(blocks)


def _take_all(blocks: list[bytes]) -> bytes:
    data = b"".join(blocks)
    blocks.clear()
    return data


def length_of(headers: Iterable[Header]) -> int:
    return next((int(value) for name, value in headers if name == "Content-Length" and value), 0)
