"""Tests of the hub that sends events to streams: each stream receives every visible event once and in order,
however slow its client is.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Coroutine
from typing import Any

import pytest

from server.auth.permissions import Actor
from server.config.model import DEFAULTS
from server.errors import ApiError, GoneError, UnauthorizedError, UnavailableError
from server.events import hub as hubs
from server.events.hub import Hub
from server.events.model import Event
from server.events.presence import PresenceSource, PresenceTable
from server.events.reading import Selection
from server.events.resume import id_of
from server.events.stream import Frames, Stream, StreamCounts, encode_frame
from server.index.snapshot import build
from server.schema.model import Schema
from server.site.site import State

PUBLIC, EDITOR = Actor("public"), Actor("editor", everything=True)
ALL = Selection()
Scenario = Callable[["Streams"], Coroutine[Any, Any, None]]


class Log:
    """An event log in memory. Only editors can see events with odd numbers."""

    def __init__(self) -> None:
        self.id, self.events, self.first, self.size = "log", list[Event](), 1, 10
        self.actors: dict[str, Actor | ApiError] = {"": PUBLIC, "editor": EDITOR}

    def append(self, count: int = 1) -> None:
        last = self.newest()
        self.events += [Event("entry.update", "", seq=last + n) for n in range(1, count + 1)]

    def newest(self) -> int:
        return self.events[-1].seq if self.events else 0

    def read(self, log_id: str, position: int, limit: int) -> tuple[str, list[Event]]:
        if log_id != self.id:
            return self.id, []
        if position < self.first - 1:
            raise GoneError
        return self.id, [event for event in self.events if event.seq > position][:limit]

    def frames_for(
        self, log_id: str, event: Event, actor: Actor, selection: Selection, frames: Frames
    ) -> bytes:
        if not actor.everything and event.seq % 2:
            return b""
        return encode_frame(event.kind, "x" * self.size, id_of(log_id, event.seq))

    def identify(self, authorization: str) -> Actor:
        found = self.actors[authorization]
        if isinstance(found, ApiError):
            raise found
        return found


class Client:
    """A client that stores the data it has received, and whether its stream has ended."""

    def __init__(self, name: str) -> None:
        self.name, self.ended, self.data = name, False, b""

    def send(self, data: bytes) -> None:
        assert not self.ended
        self.data += data

    def end(self) -> None:
        self.ended = True

    @property
    def events(self) -> list[int]:
        return [int(number) for number in re.findall(rb"-(\d+)\nevent: entry", self.data)]

    @property
    def told(self) -> list[str]:
        return re.findall(r"^event: ([a-z.]+)$", self.data.decode(), re.MULTILINE)

    @property
    def last_id(self) -> str:
        return re.findall(r"^id: (\S+)$", self.data.decode(), re.MULTILINE)[-1]


class Streams:
    """A hub, its log, and the unsent bytes of clients that do not read."""

    def __init__(self) -> None:
        self.log, self.counts = Log(), StreamCounts()
        self.counts.register_worker(1)
        self.stuck: set[str] = set()
        self.given_up: set[str] = set()
        presence = PresenceSource(PresenceTable(), lambda: State(DEFAULTS, Schema({}), build(Schema({}), ())))
        self.hub = Hub(self.log, self.counts, self, presence)
        self.left: dict[str, Callable[[], None]] = {}

    def unacknowledged_bytes(self, clients: Collection[str]) -> dict[str, int]:
        return {name: 99 if name in self.stuck else 0 for name in clients}

    def disconnect(self, clients: Collection[str]) -> None:
        self.given_up.update(clients)

    def open(self, name: str, actor: Actor = EDITOR, position: int | None = None) -> Client:
        client, newest = Client(name), self.log.newest()
        authorization = "editor" if actor is EDITOR else ""
        begun = newest if position is None else position
        stream = Stream(authorization, actor, ALL, self.log.id, begun, newest)
        self.left[name] = self.hub.open(stream, client)
        return client


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "POLL_INTERVAL_S", 0.001)
    monkeypatch.setattr(hubs, "HEARTBEAT_POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(hubs, "STUCK_POLL_INTERVAL_S", 0.01)


def play(scenario: Scenario) -> None:
    """Run a scenario on an event loop."""
    asyncio.run(asyncio.wait_for(scenario(Streams()), 20))


async def until(met: Callable[[], bool]) -> None:
    """Wait until `met` returns true; `play` limits the time."""
    while not met():
        await asyncio.sleep(0.001)


def test_every_stream_gets_what_it_may_see_from_its_beginning_on() -> None:
    async def scenario(streams: Streams) -> None:
        streams.log.append(3)
        editor, reader = streams.open("a"), streams.open("b", PUBLIC)
        streams.log.append(4)
        await until(lambda: editor.events == [4, 5, 6, 7] and reader.events == [4, 6])
        streams.log.append()
        await until(lambda: editor.events[-1:] == [8] == reader.events[-1:])
        assert editor.told[0] == reader.told[0] == "welcome"
        assert editor.last_id == "log-8"

    play(scenario)


def test_a_stream_goes_on_after_the_event_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "MAX_RECENT_EVENTS", 5)
    monkeypatch.setattr(hubs, "BATCH_EVENTS", 4)

    async def scenario(streams: Streams) -> None:
        streams.log.append(50)
        first = streams.open("a")
        streams.log.append(20)
        late = [streams.open(str(position), position=position) for position in (0, 3, 3, 47, 60, 69, 70)]
        streams.log.append(20)
        await until(lambda: first.events == list(range(51, 91)))
        for client in late:
            start = int(client.name)
            await until(lambda: client.events[-1:] == [90])  # noqa: B023
            assert client.events == list(range(start + 1, 91))

    play(scenario)


def test_a_client_that_takes_nothing_is_given_up_and_can_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "SLOW_CLIENT_TIMEOUT_S", 0.2)

    async def scenario(streams: Streams) -> None:
        streams.log.size = 1000
        slow, quick = streams.open("slow"), streams.open("quick")
        streams.stuck.add("slow")
        streams.log.append(2000)
        await until(lambda: quick.events == list(range(1, 2001)))
        assert len(slow.data) < 2 * hubs.WINDOW_BYTES
        await until(lambda: slow.ended)
        assert streams.given_up == {"slow"}
        again = streams.open("again", position=slow.events[-1])
        await until(lambda: again.events[-1:] == [2000])
        assert slow.events + again.events == list(range(1, 2001))

    play(scenario)


def test_a_client_that_takes_its_time_gets_everything() -> None:
    async def scenario(streams: Streams) -> None:
        streams.log.size = 1000
        slow = streams.open("slow")
        streams.stuck.add("slow")
        streams.log.append(300)
        await until(lambda: len(slow.data) > hubs.WINDOW_BYTES)
        await asyncio.sleep(0.05)
        kept = slow.events
        streams.stuck.clear()
        await until(lambda: slow.events == list(range(1, 301)))
        assert len(kept) < 100

    play(scenario)


def test_who_may_not_any_more_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "HEARTBEAT_INTERVAL_S", 0.05)

    async def scenario(streams: Streams) -> None:
        editor, reader = streams.open("a"), streams.open("b", PUBLIC)
        # While accounts are unavailable, the stream keeps its last known caller.
        streams.log.actors["editor"] = UnavailableError()
        await asyncio.sleep(0.2)
        assert not editor.ended
        streams.log.actors["editor"] = UnauthorizedError()
        await until(lambda: editor.ended)
        assert b'"reason":"access"' in editor.data
        assert not reader.ended
        streams.log.actors[""] = Actor("public", frozenset({"note.find"}))
        await until(lambda: reader.ended)
        assert reader.told[-1] == "goaway"

    play(scenario)


@pytest.mark.parametrize("lost", [UnauthorizedError(), Actor("editor", frozenset({"note.find"}))])
def test_no_event_after_the_loss_of_a_permission_is_sent(lost: Actor | ApiError) -> None:
    async def scenario(streams: Streams) -> None:
        editor, reader = streams.open("a"), streams.open("b", PUBLIC)
        streams.log.append(2)
        await until(lambda: editor.events == [1, 2])
        streams.log.actors["editor"] = lost
        streams.log.append(2)
        await until(lambda: reader.events == [2, 4])
        await until(lambda: editor.ended)
        assert (editor.events, editor.told[-1]) == ([1, 2], "goaway")
        assert not reader.ended

    play(scenario)


def test_a_stream_of_a_caller_who_lost_a_permission_before_it_opened_gets_no_event() -> None:
    async def scenario(streams: Streams) -> None:
        streams.log.append(4)
        # The token is revoked after the request was accepted.
        streams.log.actors["editor"] = UnauthorizedError()
        editor = streams.open("a", position=0)
        await until(lambda: editor.ended)
        assert editor.events == []

    play(scenario)


def test_heartbeats_name_the_last_event_even_if_it_may_not_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "HEARTBEAT_INTERVAL_S", 0.02)

    async def scenario(streams: Streams) -> None:
        reader = streams.open("b", PUBLIC)
        streams.log.append(7)
        await until(lambda: reader.last_id == "log-7")
        assert reader.events == [2, 4, 6]
        await until(lambda: reader.data.count(b": heartbeat\n") > 3)
        assert reader.data.count(b"log-7") == 1

    play(scenario)


def test_a_log_that_is_made_anew_or_has_forgotten_too_much_says_so() -> None:
    async def scenario(streams: Streams) -> None:
        streams.log.append(5)
        client = streams.open("a")
        streams.log.id, streams.log.events = "other", []
        streams.log.append(2)
        await until(lambda: client.last_id == "other-2")
        assert client.told[1:] == ["restart", "entry.update", "entry.update"]
        streams.log.append(20)
        streams.log.first = 20
        behind = streams.open("b", position=10)
        await until(lambda: "restart" in behind.told)
        assert behind.events == []

    play(scenario)


def test_the_end_is_told_to_all_and_places_are_counted() -> None:
    async def scenario(streams: Streams) -> None:
        clients = [streams.open(str(n)) for n in range(10)]
        assert streams.counts.total() == 10
        streams.left["3"]()
        streams.left["3"]()
        assert streams.counts.total() == 9
        assert streams.hub.is_full(9)
        assert not streams.hub.is_full(10)
        streams.hub.end()
        assert all(client.ended for client in clients)
        assert all(client.told[-1] == "goaway" for client in clients if client.name != "3")
        assert streams.hub.is_full(10)
        assert streams.counts.total() == 0

    play(scenario)
