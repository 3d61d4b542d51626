"""Several workers serve one site as one: nobody reads what is stale, and no write is lost."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from server.auth.accounts import Accounts
from tests.servers import free_port, start, stop, wait
from tests.sites import schema, write
from tests.waiting import until

WORKERS = 4
FILES: dict[str, str | bytes] = {
    "content-types/note.json": schema("note", {"title": "string", "count": "integer"}),
    "site.yaml": "roles:\n  public: {note: [find, findOne]}\nsearch: {index: false}\n",
    **{f"content/notes/{name}.md": "---\ncount: 0\n---\n" for name in ("a", "b", "c", "d", "shared")},
}


@dataclass
class Server:
    """A running server; each request has a connection of its own, so that any worker may get it."""

    process: "subprocess.Popen[str]"
    port: int
    root: Path
    token: str
    log: Path

    def send(self, method: str, path: str, data: Any = None, **headers: str) -> tuple[int, Any, str]:
        """(status, JSON, entity tag) of one request."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        body = None if data is None else json.dumps({"data": data})
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **headers}
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None, answer.headers.get("ETag", "")
        finally:
            connection.close()

    def count(self, name: str) -> int:
        """What `count` is now."""
        status, body, _ = self.send("GET", f"/api/notes/{name}?fields=count")
        assert status == 200
        return int(body["data"]["count"])

    @property
    def workers(self) -> set[int]:
        """The processes that answer."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return {int(pid) for pid in listed.split() if " Z " not in Path(f"/proc/{pid}/stat").read_text()}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    root, log, port = tmp_path / "site", tmp_path / "log", free_port()
    root.mkdir()
    write(root, FILES)
    accounts = Accounts(root)
    token = accounts.create_token("full", "full-access")
    accounts.close()
    with log.open("wb") as out:
        process = start(root, port, f"--workers={WORKERS}", output=out)
    try:
        wait(process, port)
        yield Server(process, port, root, token, log)
    finally:
        stop(process)


def test_a_write_is_in_the_next_answer_of_every_worker(server: Server) -> None:
    def hammer(name: str) -> None:
        for i in range(1, 31):
            assert server.send("PUT", f"/api/notes/{name}", {"count": i})[0] == 200
            assert [server.count(name) for _ in range(3)] == [i] * 3

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(hammer, "abcd"))


def test_no_update_is_lost_between_workers(server: Server) -> None:
    def add() -> None:
        for _ in range(15):
            while True:
                status, body, tag = server.send("GET", "/api/notes/shared")
                assert status == 200
                count = {"count": body["data"]["count"] + 1}
                status, *_ = server.send("PUT", "/api/notes/shared", count, **{"If-Match": tag})
                if status == 200:
                    break
                assert status == 412

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.count("shared") == 60
    assert "count: 60" in (server.root / "content/notes/shared.md").read_text()


def test_documents_made_at_once_by_several_workers_are_all_there(server: Server) -> None:
    def make(i: int) -> str:
        status, body, _ = server.send("POST", "/api/notes", {"title": f"Note {i}", "count": i})
        assert status == 201
        return str(body["data"]["documentId"])

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(make, range(40)))
    assert len(set(ids)) == 40
    for _ in range(6):
        total = server.send("GET", "/api/notes?pagination[pageSize]=1")[1]["meta"]["pagination"]["total"]
        assert total == 45


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc which processes there are")
def test_a_killed_worker_is_replaced_and_catches_up(server: Server) -> None:
    until(lambda: len(server.workers) == WORKERS)
    before = server.workers
    for i, worker in enumerate(sorted(before)[:2], start=1):
        os.kill(worker, signal.SIGKILL)
        written = {"count": i * 100}
        until(lambda: server.send("PUT", "/api/notes/a", written)[0] == 200)  # noqa: B023
        until(lambda: len(server.workers - {worker}) == WORKERS)  # noqa: B023
    assert len(server.workers - before) == 2
    until(lambda: [server.count("a") for _ in range(20)] == [200] * 20)
    (server.root / "content/notes/b.md").write_text("---\ncount: 7\n---\n")  # somebody still watches
    until(lambda: [server.count("b") for _ in range(20)] == [7] * 20)


def test_an_edit_is_seen_by_all_and_reported_once(server: Server) -> None:
    (server.root / "content/notes/c.md").write_text("---\ncount: 5\n---\n")
    until(lambda: [server.count("c") for _ in range(20)] == [5] * 20)
    time.sleep(0.3)
    assert server.log.read_text().count("read content/notes/c.md") == 1
    assert not (server.root / ".quire/search").exists()  # as site.yaml says


def test_once_an_edit_is_seen_nobody_answers_what_was_before(server: Server) -> None:
    for i in range(1, 11):
        time.sleep(
            0.3
        )  # a worker that is still to hear of the last edit would read this one, and show it first
        (server.root / "content/notes/d.md").write_text(f"---\ncount: {i}\n---\n")
        until(lambda: server.count("d") == i)  # noqa: B023
        assert [server.count("d") for _ in range(5)] == [i] * 5


def test_a_change_of_settings_reaches_every_worker(server: Server) -> None:
    def status() -> int:
        return server.send("GET", "/api/notes", Authorization="")[0]

    assert status() == 200
    (server.root / "site.yaml").write_text("roles:\n  public: {}\n")
    until(lambda: {status() for _ in range(20)} == {403})
