"""The open event streams of one worker. All of them are served by one event loop, and hold no thread.

Each stream has a position in the log of events: it has been sent, or may not see, all up to there. What is
new is read once, encoded once, and put together once for all streams that see the same. A stream that is
behind, since it goes on from an earlier event or its client takes long, is sent what it lacks as it takes it.
So hardly anything is kept for a client. One that takes nothing for SLOW_CLIENT_TIMEOUT_S is disconnected.
It can reconnect, and resumes after the last event that it got.
"""

import asyncio
import logging
import random
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from server.auth.permissions import Actor
from server.errors import ApiError, GoneError, UnavailableError
from server.events import stream as frames
from server.events.model import Event
from server.events.presence import PresenceSource
from server.events.reading import Selection
from server.events.resume import id_of
from server.events.stream import Client, Stream, StreamCounts

log = logging.getLogger("bifolio")
T = TypeVar("T")

POLL_INTERVAL_S = 0.02  # Between two checks for new events.
PRESENCE_INTERVAL_S = 0.2  # Between two checks of presence if somebody has moved.
IDLE_PRESENCE_INTERVAL_S = 1.0  # If nobody has: an entry may have expired.
BATCH_STREAMS = 50  # Streams that are sent to before other requests get the loop.
BATCH_PAUSE_S = 0.002
BACKOFF_S = 1.0  # After a failed check.
HEARTBEAT_INTERVAL_S = 15.0
HEARTBEAT_POLL_INTERVAL_S = 1.0  # Between two checks for due heartbeats.
WINDOW_BYTES = 64 * 1024  # Bytes that are sent before the client must have acknowledged those before.
SLOW_CLIENT_TIMEOUT_S = 30.0  # How long a client may take for a window.
STUCK_POLL_INTERVAL_S = 0.5  # A client that takes longer is checked only so often.
MAX_RECENT_EVENTS = 1000  # Events that are kept in memory.
BATCH_EVENTS = 500  # Events that are read at a time.
MAX_BACKLOG_READS = 4  # Reads for streams far behind, between two checks for new events.
RECONNECT_DELAYS_MS = (500, 4000)  # Clients reconnect after a random time between these, so not all at once.
SHUTDOWN, ACCESS = "shutdown", "access"  # why a stream is ended


class Source(Protocol):
    """The log of events, as a hub reads it (`server.events.stream`)."""

    def newest(self) -> int:
        """The number of the last event that may be sent; it costs nothing to ask."""

    def read(self, log_id: str, position: int, limit: int) -> tuple[str, Sequence[Event]]:
        """The id of the log, and its first events after a position, if its id is as expected.

        Raises GoneError where some of them are no longer kept.
        """

    def sent(self, log_id: str, event: Event, actor: Actor, selection: Selection) -> bytes:
        """The frame of an event; empty where an actor may not see it, or has not asked for it."""

    def identify(self, authorization: str) -> Actor:
        """Whom a header speaks for. Raises UnauthorizedError, UnavailableError."""


class Sockets(Protocol):
    """What is known of the connections of this process, by the names of clients."""

    def unsent(self, clients: Collection[str]) -> dict[str, int]:
        """How many bytes each has yet to get; without those that have left."""

    def give_up(self, clients: Collection[str]) -> None:
        """Close the connections of some."""


class _Audience:
    """The streams of one caller that want the same."""

    __slots__ = ("actor", "authorization", "checked", "selection", "streams")

    def __init__(self, stream: Stream) -> None:
        self.authorization, self.actor = stream.authorization, stream.actor
        self.selection = stream.selection
        self.streams, self.checked = 0, time.monotonic()


class _Open:
    """An open stream. Its client has been told the number of the event `told`."""

    __slots__ = ("audience", "beat", "by", "client", "look", "position", "present", "since", "told", "unseen")

    def __init__(self, client: Client, audience: _Audience, position: int, by: str) -> None:
        self.by = by  # who is counted to have it
        self.client, self.audience, self.position, self.told = client, audience, position, position
        self.beat = time.monotonic() + HEARTBEAT_INTERVAL_S  # when the next one is due
        self.unseen = 0  # bytes that it was sent since it was last known to have taken all
        self.present = b""  # what it was told last of who is at its document
        self.since = self.look = 0.0  # since when it has had a window to take; when that is looked at again


class Hub:
    """The streams of this process. Any thread may ask for `newest`, `is_full` and `of_client`; all else is
    called on the event loop."""

    def __init__(
        self, source: Source, counts: StreamCounts, sockets: Sockets, presence: PresenceSource
    ) -> None:
        self._source, self._counts, self._sockets = source, counts, sockets
        self._presence = presence
        self._streams: set[_Open] = set()
        self._audiences: dict[tuple[str, Actor, Selection], _Audience] = {}
        self._behind: set[_Open] = set()  # those that have not got all, and can take more
        self._slow: set[_Open] = set()  # those that have a window to take
        self._watching: set[_Open] = set()  # those that ask who is at a document
        self._present, self._looked = -1, 0.0  # who was where at the last look, and when that was
        self._beats: deque[_Open] = deque()  # in the order in which their heartbeats are due
        # The events of the log after `floor`, up to `head`; `number` is of the last that was known of.
        self._recent: list[Event] = []
        self._log_id, self._floor, self._head, self._number = "", 0, 0, -1
        self._pool = ThreadPoolExecutor(2, "events")
        self._busy = asyncio.Event()  # that there are streams
        self._tasks: list[asyncio.Task[None]] = []
        self._ended = False

    @property
    def newest(self) -> int:
        """The number of the last event that may be sent; 0 where that is not known yet."""
        return self._source.newest()

    def is_full(self, limit: int) -> bool:
        """Whether no more streams may be opened, where a server may have so many."""
        return self._ended or self._counts.total() >= limit

    def of_client(self, sender: str) -> int:
        """How many streams a client has open, in all workers."""
        return self._counts.of_client(sender)

    def open(self, stream: Stream, client: Client) -> Callable[[], None]:
        """Begin to send a stream; returns what is to be called when its client has left."""
        if not self._streams:
            self._log_id, self._number = stream.log_id, -1
            self._recent, self._floor, self._head = [], stream.newest, stream.newest
        client.send(stream.opening)
        key = stream.authorization, stream.actor, stream.selection
        audience = self._audiences.setdefault(key, _Audience(stream))
        audience.streams += 1
        opened = _Open(client, audience, stream.position, stream.sender)
        self._streams.add(opened)
        self._behind.add(opened)
        self._beats.append(opened)
        if stream.selection.presence:
            self._watching.add(opened)
            self._looked = 0.0
        self._counts.set(len(self._streams))
        self._counts.add(opened.by, 1)
        self._busy.set()
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(work()) for work in (self._follow, self._beat, self._check)]
        if self._ended:
            self._send_away([opened], SHUTDOWN)
        return lambda: self._drop(opened)

    def end(self) -> None:
        """Send all clients away, and take no more."""
        self._ended = True
        slow = {stream.client.name for stream in self._slow}
        self._send_away(list(self._streams), SHUTDOWN)
        if slow:
            self._sockets.give_up(slow)

    # --- what is done all the time -------------------------------------------------------------

    async def _follow(self) -> None:
        """Send what is new, and to streams that are behind, what they can take."""
        failing = False
        while True:
            await self._busy.wait()
            try:
                await self._read_new()
                await self._send_recent()
                await self._send_older()
                await self._send_presence()
                await self._look_at_slow()
                failing = False
            except Exception:
                if not failing:
                    log.exception("events could not be sent; that is tried again each %d s", BACKOFF_S)
                failing = True
                await asyncio.sleep(BACKOFF_S)
            await asyncio.sleep(POLL_INTERVAL_S)

    async def _beat(self) -> None:
        """Send heartbeats, to each stream by its own time, so that not all have theirs at once."""
        while True:
            await self._busy.wait()
            await asyncio.sleep(HEARTBEAT_POLL_INTERVAL_S)
            now = time.monotonic()
            while self._beats and self._beats[0].beat <= now:
                stream = self._beats.popleft()
                if stream not in self._streams:
                    continue
                if stream not in self._slow:
                    known = stream.told == stream.position
                    self._send(stream, frames.heartbeat("" if known else self._id(stream.position)))
                    stream.told = stream.position
                stream.beat = now + HEARTBEAT_INTERVAL_S
                self._beats.append(stream)

    async def _check(self) -> None:
        """Ask again who the callers are; one that is now another, or nobody, is sent away."""
        while True:
            await self._busy.wait()
            await asyncio.sleep(HEARTBEAT_POLL_INTERVAL_S)
            now = time.monotonic()
            due = [one for one in self._audiences.values() if one.checked + HEARTBEAT_INTERVAL_S <= now]
            actors: dict[str, Actor | None] = {}
            for audience in due:
                audience.checked = now
                if audience.authorization not in actors:
                    actors[audience.authorization] = await self._identify(audience)
                if actors[audience.authorization] != audience.actor:
                    self._send_away([s for s in self._streams if s.audience is audience], ACCESS)

    async def _identify(self, audience: _Audience) -> Actor | None:
        """Who a caller is now; None for nobody. Where that can't be asked, it is who it was."""
        try:
            return await self._run(self._source.identify, audience.authorization)
        except UnavailableError:
            return audience.actor
        except ApiError:
            return None

    # --- sending -------------------------------------------------------------------------------

    async def _read_new(self) -> None:
        """Read what has come since the last time, and let all streams have it that can take more."""
        number = self._source.newest()
        while number != self._number:
            try:
                log_id, found = await self._run(self._source.read, self._log_id, self._head, BATCH_EVENTS)
            except GoneError:
                self._begin_anew(self._log_id, number)
                continue
            if log_id != self._log_id:
                self._begin_anew(log_id, 0)
                continue
            shown = [event for event in found if event.seq <= number]
            if shown:
                self._recent.extend(shown)
                self._head = shown[-1].seq
                self._behind |= self._streams - self._slow
            if len(self._recent) > MAX_RECENT_EVENTS:
                self._floor = self._recent[-MAX_RECENT_EVENTS - 1].seq
                del self._recent[:-MAX_RECENT_EVENTS]
            if len(shown) < BATCH_EVENTS:
                self._number = number

    def _begin_anew(self, log_id: str, position: int) -> None:
        """Let all streams go on with another log, or later in this one: what comes between is not there."""
        self._log_id, self._recent, self._floor, self._head = log_id, [], position, position
        self._restart(self._streams)

    def _restart(self, streams: Iterable[_Open]) -> None:
        """Have clients read everything again, and go on from now."""
        for stream in streams:
            stream.position = stream.told = self._head
            self._send(stream, frames.notice("restart", {"last": self._head}, self._id(self._head)))

    async def _send_recent(self) -> None:
        """Send what is in memory to those that lack it. What several lack is put together once."""
        parts: dict[tuple[_Audience, int], tuple[bytes, int, int]] = {}
        behind = [stream for stream in self._behind if stream.position >= self._floor]
        for number, stream in enumerate(behind, 1):
            if stream in self._behind:
                key = stream.audience, stream.position
                if key not in parts:
                    if len(parts) >= BATCH_STREAMS:  # Those at many positions are not to be held at once.
                        parts.clear()
                    parts[key] = self._part(self._recent, *key)
                self._advance(stream, *parts[key])
            if number % BATCH_STREAMS == 0:
                await asyncio.sleep(BATCH_PAUSE_S)

    async def _send_older(self) -> None:
        """Send what is in the log alone to some of those that lack it."""
        for position in sorted({s.position for s in self._behind if s.position < self._floor})[
            :MAX_BACKLOG_READS
        ]:
            try:
                log_id, found = await self._run(self._source.read, self._log_id, position, BATCH_EVENTS)
            except GoneError:
                self._restart([s for s in self._behind if s.position == position])
                continue
            if log_id != self._log_id:
                return
            shown = [event for event in found if event.seq <= self._head]
            for stream in [s for s in self._behind if s.position == position]:
                self._advance(stream, *self._part(shown, stream.audience, position))

    async def _send_presence(self) -> None:
        """Tell those that ask for it who is at a document, where that has changed."""
        if not self._watching:
            return
        passed, version = time.monotonic() - self._looked, self._presence.version()
        if passed < (IDLE_PRESENCE_INTERVAL_S if version == self._present else PRESENCE_INTERVAL_S):
            return
        self._present, self._looked = version, time.monotonic()
        present = await self._run(self._presence.read)
        for stream in self._watching - self._slow:
            document = stream.audience.selection.presence
            told = self._presence.frame(stream.audience.actor, document, present) if document else b""
            if told and told != stream.present:
                stream.present = told
                self._send(stream, told)

    def _part(self, some: Sequence[Event], audience: _Audience, position: int) -> tuple[bytes, int, int]:
        """What to send of some events after a position: up to a window, the last one sent, and looked at."""
        parts, size, told, last = list[bytes](), 0, position, position
        for event in some[bisect_right(some, position, key=_number) :]:
            last = event.seq
            part = self._source.sent(self._log_id, event, audience.actor, audience.selection)
            if part:
                parts.append(part)
                told, size = last, size + len(part)
                if size >= WINDOW_BYTES:
                    break
        return b"".join(parts), told, last

    def _advance(self, stream: _Open, data: bytes, told: int, last: int) -> None:
        stream.position = last
        if data:
            stream.told = told
            self._send(stream, data)
        if last >= self._head:
            self._behind.discard(stream)

    def _send(self, stream: _Open, data: bytes) -> None:
        stream.client.send(data)
        stream.unseen += len(data)
        if stream.unseen >= WINDOW_BYTES:
            stream.since = stream.look = time.monotonic()
            self._slow.add(stream)
            self._behind.discard(stream)

    async def _look_at_slow(self) -> None:
        """Let those go on that have taken all; those that have not for too long are given up."""
        now = time.monotonic()
        looked_at = {stream.client.name: stream for stream in self._slow if stream.look <= now}
        if not looked_at:
            return
        left = await self._run(self._sockets.unsent, looked_at.keys())
        given_up = {}
        for name, stream in looked_at.items():
            if left.get(name) == 0 and stream in self._streams:
                stream.unseen = 0
                self._slow.discard(stream)
                self._behind.add(stream)
            elif now - stream.since > SLOW_CLIENT_TIMEOUT_S:
                given_up[name] = stream
            elif now - stream.since > STUCK_POLL_INTERVAL_S:
                stream.look = now + STUCK_POLL_INTERVAL_S
        if given_up:
            await self._run(self._sockets.give_up, given_up.keys())
            for stream in given_up.values():
                self._drop(stream)

    def _send_away(self, streams: Iterable[_Open], reason: str) -> None:
        for stream in streams:
            stream.client.send(frames.goaway(reason, random.randint(*RECONNECT_DELAYS_MS)))
            self._drop(stream)

    def _drop(self, stream: _Open) -> None:
        if stream not in self._streams:
            return
        for some in (self._streams, self._behind, self._slow, self._watching):
            some.discard(stream)
        audience = stream.audience
        audience.streams -= 1
        if not audience.streams:
            del self._audiences[audience.authorization, audience.actor, audience.selection]
        self._counts.set(len(self._streams))
        self._counts.add(stream.by, -1)
        if not self._streams:
            self._busy.clear()
        stream.client.end()

    def _id(self, number: int) -> str:
        return id_of(self._log_id, number)

    async def _run(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *args)


def _number(event: Event) -> int:
    return event.seq
