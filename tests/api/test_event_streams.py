"""Tests of event streams with real servers: exact across workers and restarts, and safe against misbehaving
clients.
"""

import json
import os
import re
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from server.auth.accounts import Accounts
from tests.servers import free_port, is_alive, serving, start, wait, workers
from tests.sites import schema, write
from tests.waiting import until

FILES = {
    "content-types/note.json": schema("note", {"title": "string"}),
    "content-types/draft.json": schema("draft", {"title": "string"}, drafts=True),
    "content-types/secret.json": schema("secret", {"title": "string"}),
    "site.yaml": "roles:\n  public: {note: [find, findOne], draft: [find]}\n",
    "content/notes/one.md": "---\ntitle: first\n---\n",
    "content/secrets/one.md": "---\ntitle: first\n---\n",
    "content/drafts/one.draft.md": "---\ntitle: first\n---\n",
}
ACCEPT = {"Accept": "text/event-stream"}
Told = tuple[str, str, Any]  # an event's id, name and data


class Reader:
    """A client that reads an event stream."""

    def __init__(
        self, port: int, path: str = "/events", token: str = "", method: str = "GET", **headers: str
    ) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=10)
        sent = {**ACCEPT, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        self.connection.request(method, path, headers=sent)
        self.answer: HTTPResponse = self.connection.getresponse()
        self.id = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.answer.close()
        self.connection.close()

    def __iter__(self) -> Iterator[Told]:
        """Yield all events until the server closes the stream."""
        name, data, id_ = "", "", ""
        while line := self.answer.readline().decode():
            key, _, value = line.rstrip("\n").partition(": ")
            if key == "event":
                name = value
            elif key == "data":
                data = value
            elif key == "id":
                id_ = value
            elif not line.strip() and name:
                self.id = id_ or self.id
                yield id_, name, json.loads(data)
                name, data, id_ = "", "", ""

    def next(self) -> Told:
        return next(iter(self))


def save(root: Path, title: str, file: str = "notes/one.md") -> None:
    """Save a document as text editors do: write a new file, then rename it."""
    beside = root / "content" / f"{file}.new"
    beside.write_text(f"---\ntitle: {title}\n---\n")
    beside.replace(root / "content" / file)


def token_of(root: Path) -> str:
    accounts = Accounts(root)
    try:
        return accounts.create_token("all", "read-only")
    finally:
        accounts.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "site", FILES)
    return tmp_path / "site"


def title(port: int) -> str:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/api/notes/one")
        return str(json.loads(connection.getresponse().read())["data"]["title"])
    finally:
        connection.close()


def test_an_edit_is_told_to_whoever_may_see_it(root: Path) -> None:
    token, port = token_of(root), free_port()
    with serving(root, port, "--workers=2"), ExitStack() as stack:
        public = [stack.enter_context(Reader(port)) for _ in range(6)]
        every = stack.enter_context(Reader(port, token=token))
        some = stack.enter_context(Reader(port, "/events?types=secret&events=entry.*", token))
        for reader in (*public, every, some):
            headers = reader.answer.headers
            assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
            assert (headers["X-Accel-Buffering"], headers["Cache-Control"]) == ("no", "no-store")
            assert headers["Access-Control-Allow-Origin"] == "*"
            assert "Accept" in headers["Vary"]
            assert reader.next()[1:] == ("welcome", {"last": 0})
        save(root, "second", "secrets/one.md")
        assert every.next()[2]["model"] == some.next()[2]["model"] == "secret"
        save(root, "second", "drafts/one.draft.md")
        assert every.next()[2]["status"] == "draft"
        save(root, "second")
        told = [reader.next() for reader in (*public, every)]
        assert title(port) == "second"
        assert len({id_ for id_, _, _ in told}) == 1
        assert {(name, data["documentId"], data["model"]) for _, name, data in told} == {
            ("entry.update", "one", "note")
        }
        with Reader(port, method="HEAD") as head:
            assert (head.answer.status, list(head)) == (200, [])


def beginning(port: int, head: str) -> bytes:
    """Send a request with a custom head and return the response up to the first event."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(f"{head}\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n".encode())
        taken = b""
        while b'"last"' not in taken and (data := client.recv(65536)):
            taken += data
        return taken


def test_a_stream_goes_on_where_it_broke_off(root: Path) -> None:
    port = free_port()
    with serving(root, port, "--workers=2"):
        with Reader(port) as reader:
            log = reader.next()[0].partition("-")[0]
            for n in range(4):
                save(root, f"edit {n}")
                assert reader.next()[0] == f"{log}-{n + 1}"
        with Reader(port, last_event_id=f"{log}-2") as again:
            assert [again.next()[:2] for _ in range(3)] == [
                (f"{log}-2", "welcome"),
                (f"{log}-3", "entry.update"),
                (f"{log}-4", "entry.update"),
            ]
        for unknown in (f"{log}-5", "elsewhere-1", "4", f"{log}-{'9' * 30}"):
            with Reader(port, last_event_id=unknown) as lost:
                assert [lost.next()[1:] for _ in range(2)] == [
                    ("welcome", {"last": 4}),
                    ("restart", {"last": 4}),
                ]
        old = beginning(port, "GET /events HTTP/1.0")
        assert b"event: welcome" in old
        assert b"chunked" not in old
    with serving(root, port), Reader(port, last_event_id=f"{log}-3") as later:
        assert [later.next()[0] for _ in range(2)] == [f"{log}-3", f"{log}-4"]
        save(root, "after the restart")
        assert later.next()[0] == f"{log}-5"


def test_a_revoked_token_ends_its_streams(root: Path) -> None:
    token, port = token_of(root), free_port()
    soon = (
        "from server.events import hub; hub.HEARTBEAT_INTERVAL_S = 0.3; hub.HEARTBEAT_POLL_INTERVAL_S = 0.1"
    )
    with serving(root, port, "--workers=1", first=soon), Reader(port, token=token) as reader:
        public = Reader(port)
        assert [reader.next()[1], public.next()[1]] == ["welcome", "welcome"]
        accounts = Accounts(root)
        accounts.revoke_token("all")
        accounts.close()
        assert [(name, data["reason"]) for _, name, data in reader] == [("goaway", "access")]
        (root / "site.yaml").write_text("roles:\n  public: {secret: [find]}\n")
        assert [(name, data["reason"]) for _, name, data in public] == [("goaway", "access")]
        public.close()


def test_there_are_so_many_streams_and_no_more(root: Path) -> None:
    port = free_port()
    (root / "site.yaml").write_text(
        "events: {streams: 3}\nroles:\n  public: {note: [find, findOne], draft: [find]}\n"
    )
    with serving(root, port, "--workers=2"), ExitStack() as stack:
        readers = [stack.enter_context(Reader(port)) for _ in range(3)]
        assert {reader.next()[1] for reader in readers} == {"welcome"}
        with Reader(port) as refused:
            assert (refused.answer.status, refused.answer.headers["Retry-After"]) == (503, "5")
        readers[0].close()  # The client closes the stream.

        def is_taken() -> bool:
            with Reader(port) as reader:
                return reader.answer.status == 200

        until(is_taken)
        assert title(port) == "first"


def test_no_client_takes_them_all(root: Path) -> None:
    port = free_port()
    (root / "site.yaml").write_text(
        "api: {trusted_proxies: 127.0.0.1}\nevents: {streams_per_client: 2}\nroles: {public: {note: [find]}}"
    )

    def read(address: str) -> Reader:
        return Reader(port, X_Forwarded_For=address)

    with serving(root, port, "--workers=2"), ExitStack() as stack:
        for client in ("192.0.2.1", "2001:db8::1"):
            readers = [stack.enter_context(read(client)) for _ in range(2)]
            assert {reader.next()[1] for reader in readers} == {"welcome"}
        for same in ("192.0.2.1", "2001:db8::2"):
            with read(same) as refused:
                assert (refused.answer.status, refused.answer.headers["Retry-After"]) == (503, "5")
        with read("192.0.2.2") as other:
            assert other.next()[1] == "welcome"
        readers[0].close()

        def is_taken() -> bool:
            with read("2001:db8::3") as reader:
                return reader.answer.status == 200

        until(is_taken)


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_clients_that_left_at_once_are_not_counted(root: Path, reset: bool) -> None:
    """The only worker is busy, so it reads some requests only after their clients have disconnected."""
    port, output = free_port(), root.parent / "log"
    (root / "site.yaml").write_text("roles:\n  public: {note: [find], metrics: [read]}\n")
    asked = b"GET /events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"

    def count() -> int:
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        with closing(connection):
            connection.request("GET", "/metrics")
            metrics = connection.getresponse().read().decode()
        return int(float(re.findall(r"^bifolio_event_streams (\S+)", metrics, re.M)[0]))

    with output.open("wb") as out, serving(root, port, "--workers=1", output=out), Reader(port) as reader:
        for _ in range(600):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(asked)
                if reset:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        until(lambda: count() == 1)
        save(root, "second")
        assert [next(iter(reader))[1] for _ in range(2)] == ["welcome", "entry.update"]
        assert count() == 1
    assert "Traceback" not in output.read_text()


def test_a_client_that_does_not_read_costs_little_and_is_given_up(root: Path) -> None:
    port = free_port()
    soon = "from server.events import hub; hub.SLOW_CLIENT_TIMEOUT_S = 1.0; hub.WINDOW_BYTES = 20_000"
    with serving(root, port, "--workers=1", first=soon), socket.socket() as deaf, Reader(port) as reader:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        deaf.connect(("127.0.0.1", port))
        deaf.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
        assert reader.next()[1] == "welcome"
        for turn in range(14):
            for n in range(300):
                (root / f"content/notes/n{n}.md").write_text(f"---\ntitle: {turn}\n---\n")
            seen = 0
            while seen < 300:
                seen += reader.next()[1].startswith("entry.")
        deaf.settimeout(20)
        taken = b""
        with suppress(ConnectionResetError):
            while data := deaf.recv(65536):
                taken += data
        ids = [int(number) for number in re.findall(rb"id: \w+-(\d+)\nevent: entry", taken)]
        assert ids == list(range(1, len(ids) + 1))
        assert len(ids) < 14 * 300


@pytest.mark.parametrize("count", [300])
def test_a_server_with_many_streams_ends_soon(root: Path, count: int) -> None:
    port = free_port()
    process = start(root, port, "--workers=2")
    readers = list[Reader]()
    try:
        wait(process, port)
        readers += [Reader(port) for _ in range(count)]
        assert {reader.next()[1] for reader in readers} == {"welcome"}
        began = time.monotonic()
        process.terminate()
        process.communicate(timeout=20)
        assert time.monotonic() - began < 15
        ends = [list(reader) for reader in readers]
        assert {(name, data["reason"]) for end in ends for _, name, data in end} == {("goaway", "shutdown")}
        assert all(len(end) == 1 for end in ends)
        # so that the clients do not all reconnect at the same moment
        assert len({end[0][2]["retry"] for end in ends}) > count / 10
    finally:
        process.kill()
        for reader in readers:
            reader.close()


def test_a_worker_that_is_killed_takes_its_streams_with_it(root: Path) -> None:
    port = free_port()
    with ExitStack() as stack:
        process = start(root, port, "--workers=1")
        stack.callback(lambda: (process.terminate(), process.communicate(timeout=20)))
        wait(process, port)
        with Reader(port) as reader:
            id_ = reader.next()[0]
            (worker,) = workers(process.pid)
            os.kill(worker, signal.SIGKILL)
            assert list(reader) == []
        until(lambda: not is_alive(worker))
        save(root, "meanwhile")
        wait(process, port)
        with Reader(port, last_event_id=id_) as again:
            assert [again.next()[1] for _ in range(2)] == ["welcome", "entry.update"]


def test_workers_that_are_replaced_send_their_clients_to_the_next(root: Path) -> None:
    port = free_port()
    large = "from server.site import site; site.MAX_LOCAL_FILES = 0"
    with serving(root, port, "--workers=2", first=large):
        reader = Reader(port)
        told = [reader.next()[0]]
        write(root, {"content-types/note.json": schema("note", {"title": "string", "more": "string"})})
        told += [id_ or data["reason"] for id_, _, data in reader]
        assert told[-1] == "shutdown"
        reader.close()
        seen = [id_ for id_ in told if "-" in id_]
        with Reader(port, last_event_id=seen[-1]) as again:
            assert again.next()[:2] == (seen[-1], "welcome")
            save(root, "after all")
            data: Any = {}
            while data.get("documentId") != "one":
                id_, _, data = again.next()
                seen.append(id_)
        numbers = [int(id_.partition("-")[2]) for id_ in seen]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
