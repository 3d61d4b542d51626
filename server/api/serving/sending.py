"""Sending of large response bodies in parts, at the client's speed.

Clients that read slowly must not fill the memory. In each process, the bodies that are being sent may use up
to `MAX_MEMORY_BYTES`. If this limit is exceeded, a body is moved to an unnamed file on the site's disk until
the client has read it. If these files become too large, one connection is closed: a connection from the
client with the most bytes in files. This prevents one client from blocking large responses to other clients.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from server.api.error_response import failure
from server.api.response import JSON, Header
from server.api.serving.connection import Exchange
from server.bounded import network_of
from server.errors import ApiError, BusyError

SMALL_BYTES = 64 * 1024  # A body up to this size is sent at once.
MAX_MEMORY_BYTES = 64 * 1024 * 1024  # Limit for all larger bodies that a process holds in memory.
MAX_FILE_BYTES = 1024 * 1024 * 1024  # Limit for all bodies that a process holds in files.
_PART_BYTES = 128 * 1024  # Approximate size of parts.
# Size of parts of a body in memory. asyncio may copy a part for each client that does not read. Parts of
# 128 kB take 10 % more processor time, and larger ones save little.
_MEMORY_PART_BYTES = 256 * 1024
_BUSY = BusyError("Too many large responses are being sent; try again")


class LargeBodies:
    """Large bodies that a process is sending. May only be used on the process's event loop.

    `folder` is a function that creates the folder for files.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._users: Counter[int] = Counter()  # by the id() of a body, which a cache may share
        self._in_memory = 0
        # The sizes of the bodies in files, by client and exchange, oldest first.
        self._in_files: dict[str, dict[Exchange, int]] = {}

    async def send(self, body: bytes, status: int, headers: list[Header], exchange: Exchange) -> None:
        """Send a response with a body that is already in memory. Sends a 503 if there is no room for it."""
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
        except OSError:  # The disk is full, for example.
            refuse(exchange, _BUSY)
        else:
            del body
            exchange.begin(status, headers)
            await send_body(_blocks(file), size, exchange)
        finally:
            self._forget(client, exchange)

    def _make_room(self, client: str, size: int) -> bool:
        """Whether a body of this size can be stored in a file. If necessary, clients with more bytes in files
        are disconnected first.
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
            oldest.give_up()

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
            exchange.begin(status, headers)
            view = memoryview(body)
            for at in range(0, len(body), _MEMORY_PART_BYTES):
                exchange.send(view[at : at + _MEMORY_PART_BYTES])
                if not await exchange.connection.drain():
                    exchange.give_up()
                    return
            exchange.end()
        finally:
            self._users[id(body)] -= 1
            if not self._users[id(body)]:
                del self._users[id(body)]
                self._in_memory -= len(body)


def refuse(exchange: Exchange, error: ApiError) -> None:
    """Send the response for an error."""
    refusal = failure(error)
    assert isinstance(refusal.body, bytes)
    exchange.respond(refusal.status, [("Content-Type", JSON), *refusal.headers], refusal.body)


def _store(body: bytes, folder: Callable[[], Path]) -> IO[bytes]:
    """Write a body to an unnamed file, and return the file. Raises OSError."""
    file = TemporaryFile(dir=folder())  # noqa: SIM115
    try:
        file.write(body)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while block := file.read(_PART_BYTES):
            yield block


async def send_body(body: Iterable[bytes], length: int, exchange: Exchange) -> None:
    """Send a body with a known length as fast as the client reads, then close the body."""
    left, parts = length, _parts(body)
    try:
        while left > 0:
            size = exchange.send(await asyncio.to_thread(next, parts, b""))
            left -= size
            if not size or not await exchange.connection.drain():
                exchange.give_up()  # The client would wait for more bytes.
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
        if size >= _PART_BYTES:
            del block  # While the client does not read, only asyncio stores the part.
            size = 0
            yield _joined(blocks)
    yield _joined(blocks)


def _joined(blocks: list[bytes]) -> bytes:
    """Return the blocks joined, and remove them from the list."""
    data = b"".join(blocks)
    blocks.clear()
    return data


def length_of(headers: Iterable[Header]) -> int:
    """Return the Content-Length in the headers, or 0."""
    return next((int(value) for name, value in headers if name == "Content-Length" and value), 0)
