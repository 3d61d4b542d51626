"""Tests of generations: after a schema change on a large site, new workers replace the old workers without
failed requests.
"""

import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from server.auth.accounts import Accounts
from tests.servers import children, free_port, is_alive, start, stop, wait, workers
from tests.sites import schema, write
from tests.waiting import are_heard, until

COUNT = 2000
LARGE = f"import server.site.site as site; site.MAX_LOCAL_FILES = {COUNT}"
NOTE = {"title": "string", "number": "integer"}
TYPE = "content-types/note.json"
FILES: dict[str, str | bytes] = {
    TYPE: schema("note", NOTE),
    "site.yaml": "roles:\n  public: {note: [find, findOne]}\nsearch: {index: false}\n",
    **{f"content/notes/{i:05d}.md": f"---\ntitle: Note {i}\nextra: {i}\n---\n" for i in range(COUNT)},
}
LIST = "/api/notes?sort=title&pagination[pageSize]=1"


class Server:
    """A running server with two workers."""

    def __init__(self, folder: Path) -> None:
        self.root, self.log, self.port = folder / "site", folder / "log", free_port()
        write(self.root, FILES)
        accounts = Accounts(self.root)
        self.token = accounts.create_token("full", "full-access")
        accounts.close()
        with self.log.open("wb") as out:
            self.process: subprocess.Popen[str] = start(
                self.root, self.port, "--workers=2", output=out, first=LARGE
            )
        wait(self.process, self.port)
        until(lambda: len(self.workers) == 2)

    @property
    def generations(self) -> set[int]:
        return children(self.process.pid)

    @property
    def workers(self) -> set[int]:
        return workers(self.process.pid)

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=60)

    def send(self, method: str, path: str, data: Any = None, on: HTTPConnection | None = None) -> Any:
        """Send a request and return the response's JSON. Without the parameter `on`, open a new
        connection.
        """
        connection = on or self.connect()
        if connection.sock and are_heard([connection.sock]):
            connection.close()  # The server closed the idle connection; reopen it.
        try:
            sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            body = None if data is None else json.dumps({"data": data})
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200, text
            return json.loads(text)
        finally:
            if on is None:
                connection.close()

    def extras(self, name: str = "extra") -> set[int | None]:
        """Return the set of an attribute's values in twenty responses, which should include every worker."""
        return {self.send("GET", LIST)["data"][0].get(name) for _ in range(20)}

    def change(self, **attributes: str) -> None:
        """Add attributes to the original content type."""
        write(self.root, {"content-types/.new": schema("note", NOTE | attributes)})
        (self.root / "content-types/.new").replace(self.root / TYPE)

    def begun(self) -> int:
        """Wait for a new generation to start, and return the id of the process that loads the site."""
        before = set(self.generations)
        until(lambda: self.generations - before)
        return max(self.generations - before)

    def told(self, words: str) -> int:
        return self.log.read_text().count(words)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path)
    try:
        yield running
    finally:
        stop(running.process)


def test_nobody_is_refused_and_every_write_is_in_the_next_answer(server: Server) -> None:
    stopped, done = threading.Event(), Counter[str]()

    def read(name: str) -> None:
        """Send read requests on one connection until the test ends."""
        connection = server.connect()
        while not stopped.wait(0.01):
            assert server.send("GET", LIST, on=connection)["meta"]["pagination"]["total"] == COUNT
            done[name] += 1
        connection.close()

    def write_and_read(name: str) -> None:
        connection = server.connect()
        while not stopped.wait(0.01):
            number = done[name] + 1
            server.send("PUT", f"/api/notes/{name}", {"number": number}, on=connection)
            shown = [server.send("GET", f"/api/notes/{name}")["data"]["number"] for _ in range(3)]
            shown.append(server.send("GET", f"/api/notes/{name}", on=connection)["data"]["number"])
            assert shown == [number] * 4
            done[name] += 1
        connection.close()

    with ThreadPoolExecutor(5) as pool:
        at_work = {name: pool.submit(read, name) for name in ("first", "second", "third")}
        at_work |= {name: pool.submit(write_and_read, name) for name in ("00001", "00002")}
        try:
            for attributes, shown in (({"extra": "integer"}, 0), ({}, None), ({"extra": "integer"}, 0)):
                before = server.workers
                server.change(**attributes)
                until(lambda: server.extras() == {shown}, 90)  # noqa: B023
                # Until the old workers exit, they may return old responses, even twenty times in a row.
                until(lambda: len(server.generations) == 1 and not server.workers & before, 60)  # noqa: B023
                assert not any(map(is_alive, before))
            until(lambda: all(done[name] > 3 or one.done() for name, one in at_work.items()), 60)
        finally:
            stopped.set()
        for one in at_work.values():
            one.result()
    assert server.told("a content type has changed") == 3
    assert "Traceback" not in server.log.read_text()


def test_later_edits_are_seen_and_a_worker_that_dies_is_replaced_by_one_that_shows_them(
    server: Server,
) -> None:
    server.change(extra="integer")
    until(lambda: server.extras() == {0}, 90)
    until(lambda: len(server.generations) == 1 and len(server.workers) == 2, 60)
    write(server.root, {"content/notes/00000.md": "---\ntitle: Note 0\nextra: 7\n---\n"})
    until(lambda: server.extras() == {7})
    victims = server.workers
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
        until(lambda: len(server.workers - victims) and len(server.workers) == 2, 60)
    until(lambda: not server.workers & victims, 60)
    assert server.extras() == {7}


def test_one_that_is_killed_over_it_leaves_all_as_it_is_and_is_begun_anew(server: Server) -> None:
    before = server.workers
    server.change(extra="integer")
    begun = server.begun()
    until(lambda: children(begun))
    readers = children(begun)
    os.kill(begun, signal.SIGKILL)
    until(lambda: not any(map(is_alive, readers)))
    until(lambda: server.told("was killed by SIGKILL") == 1)
    assert server.extras() == {None}
    server.send("PUT", "/api/notes/00001", {"number": 5})
    until(lambda: server.extras() == {0}, 90)
    until(lambda: not server.workers & before, 60)
    assert server.send("GET", "/api/notes/00001")["data"]["number"] == 5


def test_what_is_changed_while_it_is_read_is_shown_with_it(server: Server) -> None:
    server.change(extra="integer")
    server.begun()
    server.change(extra="integer", other="string")
    write(server.root, {"content/notes/00000.md": "---\ntitle: Note 0\nextra: 8\nother: text\n---\n"})
    until(lambda: server.extras() == {8}, 90)
    until(lambda: server.extras("other") == {"text"}, 90)


def test_a_schema_that_is_broken_meanwhile_changes_nothing_until_it_is_repaired(server: Server) -> None:
    server.change(extra="integer")
    server.begun()
    write(server.root, {TYPE: "{"})
    until(lambda: server.told("Until this is fixed, the last good configuration is used") >= 1, 60)
    assert server.extras() <= {None, 0}
    server.change(extra="integer")
    until(lambda: server.extras() == {0}, 90)


def test_roles_that_change_with_it_change_for_all_at_once(server: Server) -> None:
    before = server.workers
    write(server.root, {"site.yaml": "roles:\n  public: {note: [find]}\nsearch: {index: false}\n"})
    server.change(extra="integer")
    until(lambda: server.extras() == {0}, 90)
    until(lambda: not server.workers & before, 60)


def test_when_all_that_share_a_memory_are_killed_others_begin(server: Server) -> None:
    (generation,) = server.generations
    os.kill(generation, signal.SIGKILL)
    until(lambda: server.generations - {generation} and len(server.workers) == 2, 60)
    until(lambda: server.told("was killed by SIGKILL") == 1)
    assert server.extras() == {None}
