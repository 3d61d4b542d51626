"""An event stream that was asked for, and what the server of a connection has to do for it."""

import json
import mmap
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Protocol

from server.auth.permissions import Actor
from server.events.database import EventDatabase
from server.events.model import Event
from server.events.reading import Selection, shown, visible
from server.events.resume import id_of, require_kept
from server.schema.model import Schema


@dataclass(frozen=True, slots=True)
class Stream:
    """What a client is to get: of a selection, what it may see of the log `log_id` after `position`.

    `authorization` is the header that says who it is, from which `actor` was found; it is asked again while
    the stream is open. `sender` is who is counted to have it, by its address. A stream is the body of an
    answer; a server without a hub sends its beginning alone.
    """

    authorization: str
    actor: Actor
    selection: Selection
    log_id: str
    position: int
    newest: int
    restarted: bool = False
    sender: str = ""

    @property
    def opening(self) -> bytes:
        """The first frames."""
        return opening(self.log_id, self.position, self.newest, restarted=self.restarted)

    def __iter__(self) -> Iterator[bytes]:
        yield self.opening


class Client(Protocol):
    """The connection of one stream."""

    @property
    def name(self) -> str:
        """The address and port."""

    def send(self, data: bytes) -> object:
        """Send some frames. It does not wait, and does not tell whether they arrive."""

    def end(self) -> None:
        """End the answer, after what was sent."""


# --- frames ---------------------------------------------------------------------------------------

CONTENT_TYPE = "text/event-stream; charset=utf-8"
RECONNECT_DELAY_MS = 2000  # A client that lost its stream reconnects after so long.


def frame(event: str, data: str, id_: str = "") -> bytes:
    """An event; its data is one line."""
    head = f"id: {id_}\n" if id_ else ""
    return f"{head}event: {event}\ndata: {data}\n\n".encode()


def notice(event: str, data: Mapping[str, object], id_: str = "") -> bytes:
    """An event about the stream itself: `welcome`, `restart`."""
    return frame(event, json.dumps(data, separators=(",", ":")), id_)


def opening(log: str, number: int, newest: int, *, restarted: bool) -> bytes:
    """What a stream begins with, that goes on after the event of a number.

    `restarted`: the id that the client has sent is of no event that the stream could go on from.
    """
    first = notice("welcome", {"last": newest}, id_of(log, number))
    again = notice("restart", {"last": newest}) if restarted else b""
    return b"retry: %d\n\n" % RECONNECT_DELAY_MS + first + again


def goaway(reason: str, retry_ms: int) -> bytes:
    """What a stream ends with: why, and after how many milliseconds the client may connect again."""
    return b"retry: %d\n" % retry_ms + notice("goaway", {"reason": reason, "retry": retry_ms})


def heartbeat(id_: str = "") -> bytes:
    """A comment, that tells both sides that the other is there.

    `id_` is of the last event that the client has not been shown, so that it goes on after it.
    """
    return b": heartbeat\n\n" if not id_ else f": heartbeat\nid: {id_}\n\n".encode()


# --- source ---------------------------------------------------------------------------------------

MAX_CACHED_FRAMES = 2048  # Encoded frames that are kept for other clients.


class Source:
    """The log of events in a database. `newest` tells the number of the last event that all workers show.

    `identify` finds whom an Authorization header speaks for, and raises what `Identities.identify` does;
    `schema` returns the one that is served.
    """

    def __init__(
        self,
        database: EventDatabase,
        newest: Callable[[], int],
        identify: Callable[[str], Actor],
        schema: Callable[[], Schema],
    ) -> None:
        self._database, self.newest, self.identify = database, newest, identify
        self._schema = schema
        # Saves 12 µs of 15 of an event to one of 50 streams.
        self._encode = lru_cache(MAX_CACHED_FRAMES)(_encode)

    def read(self, log_id: str, position: int, limit: int) -> tuple[str, list[Event]]:
        """The id of the log, and its first events after a position of the log with an id, if it is this one.

        Raises GoneError where some of them are no longer kept, and StorageError.
        """
        bounds = self._database.bounds()
        if bounds.id != log_id:
            return bounds.id, []
        require_kept(bounds, position)
        return bounds.id, self._database.read(position, limit)

    def sent(self, log_id: str, event: Event, actor: Actor, selection: Selection) -> bytes:
        """The frame of an event, as an actor may see it; empty where it may not, or has not asked for it."""
        seen = visible(event, actor, self._schema()) if selection.has(event) else None
        if seen is None:
            return b""
        if seen.counts is not None or actor.may("history", "read"):
            return _encode(log_id, seen, actor)
        return self._encode(log_id, seen, _READER)


_READER = Actor("reader")  # stands for all who see the same of an event


def _encode(log_id: str, event: Event, actor: Actor) -> bytes:
    data = json.dumps(shown(event, actor), ensure_ascii=False, separators=(",", ":"))
    return frame(event.kind, data, id_of(log_id, event.seq))


# --- stream counts --------------------------------------------------------------------------------

MAX_WORKERS = 256  # A worker that ended leaves its place to a later one.
CLIENT_HASHES = 1024


class StreamCounts:
    """The counts of all workers. Made before the workers are forked; each then enters with its number."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, MAX_WORKERS * 2 * 8)
        self._numbers = memoryview(self._memory).cast("Q")  # by worker: its process, and its count
        self._of_clients = memoryview(mmap.mmap(-1, MAX_WORKERS * CLIENT_HASHES * 2)).cast("H")
        self._key = secrets.token_bytes(16)
        self._place = 0

    def enter(self, worker: int) -> None:
        """Count the streams of this process from now on, as those of the worker with a number."""
        self._place = worker % MAX_WORKERS * 2
        self._numbers[self._place + 1] = 0
        begin = self._place // 2 * CLIENT_HASHES
        self._of_clients[begin : begin + CLIENT_HASHES] = memoryview(bytes(CLIENT_HASHES * 2)).cast("H")
        self._numbers[self._place] = os.getpid()

    def set(self, count: int) -> None:
        """Say how many streams this process has."""
        self._numbers[self._place + 1] = count

    def add(self, client: str, more: int) -> None:
        """Say that a client has so many more streams in this process."""
        self._of_clients[self._place // 2 * CLIENT_HASHES + self._hash(client)] += more

    def total(self) -> int:
        """How many streams the processes have that are alive."""
        return sum(count for _, count in self._living())

    def of_client(self, client: str) -> int:
        """How many of these are of a client."""
        found = self._hash(client)
        return sum(self._of_clients[place * CLIENT_HASHES + found] for place, _ in self._living())

    def _living(self) -> list[tuple[int, int]]:
        """The places of processes that are alive and have streams, and how many."""
        counts = self._numbers.tolist()
        taken = enumerate(zip(counts[::2], counts[1::2], strict=True))
        return [(place, count) for place, (process, count) in taken if count and is_alive(process)]

    def _hash(self, client: str) -> int:
        data = client.encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(data, key=self._key, digest_size=4).digest()) % CLIENT_HASHES


def is_alive(process: int) -> bool:
    """Whether there is a process with a number."""
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False
