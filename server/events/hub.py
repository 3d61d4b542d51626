"""The hub, which sends all event streams of a worker process."""

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
from server.events.model import Event
from server.events.presence import PresenceSource
from server.events.reading import Selection
from server.events.resume import id_of
from server.events.stream import Client, Frames, Stream, StreamCounts

log = logging.getLogger("bifolio")
T = TypeVar("T")

POLL_INTERVAL_S = 0.02  # between checks for new events
PRESENCE_INTERVAL_S = 0.2  # between presence updates
IDLE_PRESENCE_INTERVAL_S = 1.0  # while nothing changes, because entries can still expire
BATCH_STREAMS = 50  # served before other requests get a turn
BATCH_PAUSE_S = 0.002
BACKOFF_S = 1.0  # pause after a failed check
HEARTBEAT_INTERVAL_S = 15.0
HEARTBEAT_POLL_INTERVAL_S = 1.0  # between checks for due heartbeats
# Sending pauses at this number of unacknowledged bytes, until the client has received all of them.
WINDOW_BYTES = 64 * 1024
SLOW_CLIENT_TIMEOUT_S = 30.0  # the time in which a client must receive a full window
STUCK_POLL_INTERVAL_S = 0.5  # between checks of a client that has been slow for longer than this
MAX_RECENT_EVENTS = 1000  # cached in memory
BATCH_EVENTS = 500  # per database read
MAX_BACKLOG_READS = 4  # for streams that are far behind, in each check for new events
RECONNECT_DELAYS_MS = (500, 4000)  # bounds of a random delay, which spreads out reconnects
SHUTDOWN, ACCESS = "shutdown", "access"  # reasons for ending a stream, sent to the client


class Source(Protocol):
    """Interface through which a hub reads the event log."""

    def newest(self) -> int:
        """Return the number of the newest event that can be sent.

        Implementations must be fast, because the hub calls this method often.
        """

    def read(self, log_id: str, position: int, limit: int) -> tuple[str, Sequence[Event]]:
        """Return the log's id, and up to `limit` events after event number `position`.

        Returns no events if the log's id is no longer `log_id`. Raises GoneError if the events after
        `position` were deleted.
        """

    def frames_for(
        self, log_id: str, event: Event, actor: Actor, selection: Selection, frames: Frames
    ) -> bytes:
        """Return the encoded event, or b"" if it is not selected or the actor may not see it."""

    def identify(self, authorization: str) -> Actor:
        """Return the actor that an Authorization header identifies.

        Raises UnauthorizedError if the header is invalid, or UnavailableError if the accounts can't be read.
        """


class Sockets(Protocol):
    """Interface to the client connections of this process.

    A connection is identified by the client's address and port.
    """

    def unacknowledged_bytes(self, clients: Collection[str]) -> dict[str, int]: ...

    def disconnect(self, clients: Collection[str]) -> None: ...


class _Audience:
    """Streams that have the same caller, selection and encoding, and therefore receive the same bytes."""

    __slots__ = ("actor", "authorization", "checked", "frames", "selection", "streams")

    def __init__(self, stream: Stream) -> None:
        self.authorization, self.actor = stream.authorization, stream.actor
        self.selection, self.frames = stream.selection, stream.frames
        self.streams, self.checked = 0, 0.0  # number of streams, and when the actor was last re-identified


class _OpenStream:
    """An open stream. `known_position` is the number of the last event whose id was sent to the client."""

    __slots__ = (
        "audience",
        "beat",
        "client",
        "known_position",
        "next_check",
        "position",
        "presence",
        "sender",
        "slow_since",
        "unacknowledged",
    )

    def __init__(self, client: Client, audience: _Audience, position: int, sender: str) -> None:
        self.sender = sender  # client address, for the limit of streams per client
        self.client, self.audience, self.position, self.known_position = client, audience, position, position
        self.beat = time.monotonic() + HEARTBEAT_INTERVAL_S  # when the next heartbeat is due
        self.unacknowledged = 0  # bytes sent since the client last acknowledged all bytes
        self.presence = b""  # last presence message sent
        self.slow_since = self.next_check = 0.0  # when the window filled up, and when to check it next


class Hub:
    """Hub that sends all event streams of a process.

    `newest`, `is_full` and `client_count` are thread-safe. All other methods must be called on the event
    loop.
    """

    def __init__(
        self, source: Source, counts: StreamCounts, sockets: Sockets, presence: PresenceSource
    ) -> None:
        self._source, self._counts, self._sockets = source, counts, sockets
        self._presence = presence
        self._streams: set[_OpenStream] = set()
        self._audiences: dict[tuple[str, Actor, Selection, Frames], _Audience] = {}
        self._behind: set[_OpenStream] = set()  # streams with events that can be sent now
        self._slow: set[_OpenStream] = set()  # streams with a full window
        self._watching: set[_OpenStream] = set()  # streams that include the presence of a document
        self._presence_version, self._presence_at = (
            -1,
            0.0,
        )  # as of the last presence update
        self._beats: deque[_OpenStream] = deque()  # sorted by the time of the next heartbeat
        # `recent` contains the events after `floor` up to `head`. All events up to `number` have been read.
        self._recent: list[Event] = []
        self._log_id, self._floor, self._head, self._number = "", 0, 0, -1
        self._read_at = time.monotonic()  # when the newest events were read
        self._pool = ThreadPoolExecutor(2, "events")
        self._busy = asyncio.Event()  # set while streams are open
        self._tasks: list[asyncio.Task[None]] = []
        self._ended = False

    @property
    def newest(self) -> int:
        return self._source.newest()

    def is_full(self, limit: int) -> bool:
        return self._ended or self._counts.total() >= limit

    def client_count(self, sender: str) -> int:
        return self._counts.client_count(sender)

    def open(self, stream: Stream, client: Client) -> Callable[[], None]:
        """Start sending a stream, and return a function that must be called when the client disconnects."""
        if not self._streams:
            self._log_id, self._number = stream.log_id, -1
            self._recent, self._floor, self._head = [], stream.newest, stream.newest
        client.send(stream.opening)
        key = stream.authorization, stream.actor, stream.selection, stream.frames
        audience = self._audiences.setdefault(key, _Audience(stream))
        audience.streams += 1
        opened = _OpenStream(client, audience, stream.position, stream.sender)
        self._streams.add(opened)
        self._behind.add(opened)
        self._beats.append(opened)
        if stream.selection.presence:
            self._watching.add(opened)
            self._presence_at = 0.0
        self._counts.set(len(self._streams))
        self._counts.add(opened.sender, 1)
        self._busy.set()
        if not self._tasks:
            loop = asyncio.get_running_loop()
            tasks = (self._follow, self._send_heartbeats, self._check_access)
            self._tasks = [loop.create_task(task()) for task in tasks]
        if self._ended:
            self._disconnect([opened], SHUTDOWN)
        return lambda: self._drop(opened)

    def end(self) -> None:
        self._ended = True
        slow = {stream.client.name for stream in self._slow}
        self._disconnect(list(self._streams), SHUTDOWN)
        if slow:
            self._sockets.disconnect(slow)

    # --- tasks ---------------------------------------------------------------------------------

    async def _follow(self) -> None:
        failing = False
        while True:
            await self._busy.wait()
            try:
                await self._read_new()
                await self._check_behind()
                await self._send_recent()
                await self._send_older()
                await self._send_presence()
                await self._check_slow()
                failing = False
            except Exception:
                if not failing:
                    log.exception("events can't be sent to streams; retrying every %d s", BACKOFF_S)
                failing = True
                await asyncio.sleep(BACKOFF_S)
            await asyncio.sleep(POLL_INTERVAL_S)

    async def _send_heartbeats(self) -> None:
        # Each stream has its own schedule, which spreads the load.
        while True:
            await self._busy.wait()
            await asyncio.sleep(HEARTBEAT_POLL_INTERVAL_S)
            now = time.monotonic()
            while self._beats and self._beats[0].beat <= now:
                stream = self._beats.popleft()
                if stream not in self._streams:
                    continue
                if stream not in self._slow:
                    is_current = stream.known_position == stream.position
                    id_ = "" if is_current else id_of(self._log_id, stream.position)
                    self._send(stream, stream.audience.frames.heartbeat(id_))
                    stream.known_position = stream.position
                stream.beat = now + HEARTBEAT_INTERVAL_S
                self._beats.append(stream)

    async def _check_access(self) -> None:
        while True:
            await self._busy.wait()
            await asyncio.sleep(HEARTBEAT_POLL_INTERVAL_S)
            now = time.monotonic()
            audiences = self._audiences.values()
            await self._check([one for one in audiences if one.checked + HEARTBEAT_INTERVAL_S <= now])

    async def _check_behind(self) -> None:
        # Callers must not receive events that they no longer have permission to see.
        audiences = {stream.audience for stream in self._behind}
        await self._check([one for one in audiences if one.checked <= self._read_at])

    async def _check(self, audiences: Collection[_Audience]) -> None:
        if not audiences:
            return
        now = time.monotonic()
        actors = await self._run(self._identify, {one.authorization for one in audiences})
        for audience in audiences:
            audience.checked = now
            if actors.get(audience.authorization, audience.actor) != audience.actor:
                self._disconnect([s for s in self._streams if s.audience is audience], ACCESS)

    def _identify(self, authorizations: Iterable[str]) -> dict[str, Actor | None]:
        # While the accounts database does not respond, callers are not checked, and their streams continue.
        actors: dict[str, Actor | None] = {}
        for authorization in authorizations:
            try:
                actors[authorization] = self._source.identify(authorization)
            except UnavailableError:
                continue
            except ApiError:
                actors[authorization] = None
        return actors

    # --- sending -------------------------------------------------------------------------------

    async def _read_new(self) -> None:
        number = self._source.newest()
        while number != self._number:
            try:
                log_id, events = await self._run(self._source.read, self._log_id, self._head, BATCH_EVENTS)
            except GoneError:
                self._change_log(self._log_id, number)
                continue
            if log_id != self._log_id:
                self._change_log(log_id, 0)
                continue
            sendable = [event for event in events if event.seq <= number]
            if sendable:
                self._read_at = time.monotonic()
                self._recent.extend(sendable)
                self._head = sendable[-1].seq
                self._behind |= self._streams - self._slow
            if len(self._recent) > MAX_RECENT_EVENTS:
                self._floor = self._recent[-MAX_RECENT_EVENTS - 1].seq
                del self._recent[:-MAX_RECENT_EVENTS]
            if len(sendable) < BATCH_EVENTS:
                self._number = number

    def _change_log(self, log_id: str, position: int) -> None:
        self._log_id, self._recent, self._floor, self._head = log_id, [], position, position
        self._restart(self._streams)

    def _restart(self, streams: Iterable[_OpenStream]) -> None:
        # The clients must fetch all data again. Their streams continue after the newest event.
        for stream in streams:
            stream.position = stream.known_position = self._head
            self._send(stream, stream.audience.frames.restart(self._log_id, self._head))

    async def _send_recent(self) -> None:
        parts: dict[tuple[_Audience, int], tuple[bytes, int, int]] = {}
        behind = [stream for stream in self._behind if stream.position >= self._floor]
        for number, stream in enumerate(behind, 1):
            if stream in self._behind:
                key = stream.audience, stream.position
                if key not in parts:
                    if len(parts) >= BATCH_STREAMS:  # limits the memory for joined parts
                        parts.clear()
                    parts[key] = self._part(self._recent, *key)
                self._advance(stream, *parts[key])
            if number % BATCH_STREAMS == 0:
                await asyncio.sleep(BATCH_PAUSE_S)

    async def _send_older(self) -> None:
        for position in sorted({s.position for s in self._behind if s.position < self._floor})[
            :MAX_BACKLOG_READS
        ]:
            try:
                log_id, events = await self._run(self._source.read, self._log_id, position, BATCH_EVENTS)
            except GoneError:
                self._restart([s for s in self._behind if s.position == position])
                continue
            if log_id != self._log_id:
                return
            sendable = [event for event in events if event.seq <= self._head]
            for stream in [s for s in self._behind if s.position == position]:
                self._advance(stream, *self._part(sendable, stream.audience, position))

    async def _send_presence(self) -> None:
        if not self._watching:
            return
        passed, version = time.monotonic() - self._presence_at, self._presence.version()
        is_idle = version == self._presence_version
        if passed < (IDLE_PRESENCE_INTERVAL_S if is_idle else PRESENCE_INTERVAL_S):
            return
        self._presence_version, self._presence_at = version, time.monotonic()
        if not is_idle:
            await self._check({stream.audience for stream in self._watching})
        present = await self._run(self._presence.read)
        for stream in self._watching - self._slow:
            document = stream.audience.selection.presence
            frame = self._presence.frame(stream.audience.actor, document, present) if document else b""
            if frame and frame != stream.presence:
                stream.presence = frame
                self._send(stream, frame)

    def _part(self, events: Sequence[Event], audience: _Audience, position: int) -> tuple[bytes, int, int]:
        # Returns the bytes, and the numbers of the last encoded and the last examined event.
        parts, size, last_sent, last_examined = list[bytes](), 0, position, position
        for event in events[bisect_right(events, position, key=_number) :]:
            last_examined = event.seq
            part = self._source.frames_for(
                self._log_id, event, audience.actor, audience.selection, audience.frames
            )
            if part:
                parts.append(part)
                last_sent, size = last_examined, size + len(part)
                if size >= WINDOW_BYTES:
                    break
        return b"".join(parts), last_sent, last_examined

    def _advance(self, stream: _OpenStream, data: bytes, last_sent: int, last_examined: int) -> None:
        stream.position = last_examined
        if data:
            stream.known_position = last_sent
            self._send(stream, data)
        if last_examined >= self._head:
            self._behind.discard(stream)

    def _send(self, stream: _OpenStream, data: bytes) -> None:
        stream.client.send(data)
        stream.unacknowledged += len(data)
        if stream.unacknowledged >= WINDOW_BYTES:
            stream.slow_since = stream.next_check = time.monotonic()
            self._slow.add(stream)
            self._behind.discard(stream)

    async def _check_slow(self) -> None:
        now = time.monotonic()
        due = {stream.client.name: stream for stream in self._slow if stream.next_check <= now}
        if not due:
            return
        unacknowledged = await self._run(self._sockets.unacknowledged_bytes, due.keys())
        given_up = {}
        for name, stream in due.items():
            if unacknowledged.get(name) == 0 and stream in self._streams:
                stream.unacknowledged = 0
                self._slow.discard(stream)
                self._behind.add(stream)
            elif now - stream.slow_since > SLOW_CLIENT_TIMEOUT_S:
                given_up[name] = stream
            elif now - stream.slow_since > STUCK_POLL_INTERVAL_S:
                stream.next_check = now + STUCK_POLL_INTERVAL_S
        if given_up:
            await self._run(self._sockets.disconnect, given_up.keys())
            for stream in given_up.values():
                self._drop(stream)

    def _disconnect(self, streams: Iterable[_OpenStream], reason: str) -> None:
        for stream in streams:
            delay_ms = random.randint(*RECONNECT_DELAYS_MS)
            stream.client.send(stream.audience.frames.goaway(reason, delay_ms))
            self._drop(stream)

    def _drop(self, stream: _OpenStream) -> None:
        if stream not in self._streams:
            return
        for some in (self._streams, self._behind, self._slow, self._watching):
            some.discard(stream)
        audience = stream.audience
        audience.streams -= 1
        if not audience.streams:
            key = audience.authorization, audience.actor, audience.selection, audience.frames
            del self._audiences[key]
        self._counts.set(len(self._streams))
        self._counts.add(stream.sender, -1)
        if not self._streams:
            self._busy.clear()
        stream.client.end()

    async def _run(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *args)


def _number(event: Event) -> int:
    return event.seq
