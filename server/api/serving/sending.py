"""Sends a large body as its client takes it, so that a slow client keeps no more than a part of it in memory.

granian keeps what it is given until the system takes it. So the next part is read, and given to it, once the
system has sent most of those before.
"""

import asyncio
from collections.abc import Iterable, Iterator

from server.api.serving.stream_client import StreamClient
from server.api.serving.unsent import Connections

LARGE = 1024 * 1024  # bytes of a body up to which granian may keep it
_PART = 512 * 1024  # bytes that are sent at once, about
_LEFT = 128 * 1024  # bytes that may be unsent when the next part is
_PAUSES_S = (0.001, 0.2)  # between two looks at how much is unsent: at first, and at most
_STALLED_S = 60.0  # how long a client may take nothing


async def send_body(body: Iterable[bytes], length: int, client: StreamClient) -> None:
    """Send a body of some bytes, and close it. Who takes nothing for long is given up."""
    connections, left, parts = Connections(), length, _parts(body)
    try:
        while left > 0:
            part = await asyncio.to_thread(next, parts, b"")
            left -= len(part)
            if part:
                client.send(part)
            if not part or not await _is_sent(connections, client.name):
                connections.give_up({client.name})  # It was told of more than it gets.
                return
        client.end()
    finally:
        if close := getattr(body, "close", None):
            close()


def _parts(body: Iterable[bytes]) -> Iterator[bytes]:
    blocks, size = list[bytes](), 0
    for block in body:
        blocks.append(block)
        size += len(block)
        if size >= _PART:
            yield b"".join(blocks)
            blocks, size = [], 0
    yield b"".join(blocks)


async def _is_sent(connections: Connections, client: str) -> bool:
    """Wait until most has been sent; False where the client has left, or takes nothing."""
    pause, longest = _PAUSES_S
    before, waited = -1, 0.0
    while True:
        await asyncio.sleep(pause)
        unsent = connections.unsent({client}).get(client)
        if unsent is None:
            return False
        if unsent <= _LEFT:
            return True
        waited = waited + pause if unsent == before else 0.0
        if waited > _STALLED_S:
            return False
        before, pause = unsent, min(2 * pause, longest)
