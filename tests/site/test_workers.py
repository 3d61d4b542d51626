"""Consistency of several workers of one server: no outdated reads, and no lost writes."""

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
from server.auth.json_web_tokens import JsonWebTokens
from server.auth.session_key import session_key
from server.auth.users import Users
from tests.git import git
from tests.servers import free_port, kill_all, start, stop, wait, workers
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
    """A running server. Each request uses its own connection, so any worker may receive it."""

    process: "subprocess.Popen[str]"
    port: int
    root: Path
    token: str
    log: Path

    def send(self, method: str, path: str, data: Any = None, **headers: str) -> tuple[int, Any, str]:
        """Send a request. Return the response's status, JSON and entity tag."""
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
        """Return the current `count` of a document."""
        status, body, _ = self.send("GET", f"/api/notes/{name}?fields=count")
        assert status == 200
        return int(body["data"]["count"])

    @property
    def workers(self) -> set[int]:
        """The process ids of the workers."""
        return workers(self.process.pid)


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


def test_all_workers_give_the_same_entity_tag_also_after_a_restart(server: Server) -> None:
    tags = {server.send("GET", "/api/notes/a")[2] for _ in range(3 * WORKERS)}
    stop(server.process)
    server.process = start(server.root, server.port, "--workers=1")
    wait(server.process, server.port)
    try:
        assert tags == {server.send("GET", "/api/notes/a")[2]}
    finally:
        stop(server.process)


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


def all_workers(server: Server) -> set[int]:
    """Wait until all workers are running, and return their ids.

    The wait is necessary because other child processes look like workers for a moment.
    """
    found = set[int]()

    def are_there() -> bool:
        nonlocal found
        found = server.workers
        return len(found) == WORKERS

    until(are_there)
    return found


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc which processes there are")
def test_a_killed_worker_is_replaced_and_catches_up(server: Server) -> None:
    before = all_workers(server)
    for i, worker in enumerate(sorted(before)[:2], start=1):
        os.kill(worker, signal.SIGKILL)
        written = {"count": i * 100}
        until(lambda: server.send("PUT", "/api/notes/a", written)[0] == 200)  # noqa: B023
        until(lambda: len(server.workers - {worker}) == WORKERS)  # noqa: B023
    assert len(all_workers(server) - before) == 2
    until(lambda: [server.count("a") for _ in range(20)] == [200] * 20)
    # One worker must still be watching.
    (server.root / "content/notes/b.md").write_text("---\ncount: 7\n---\n")
    until(lambda: [server.count("b") for _ in range(20)] == [7] * 20)


def test_an_edit_is_seen_by_all_and_reported_once(server: Server) -> None:
    (server.root / "content/notes/c.md").write_text("---\ncount: 5\n---\n")
    until(lambda: [server.count("c") for _ in range(20)] == [5] * 20)
    time.sleep(0.3)
    assert server.log.read_text().count("read content/notes/c.md") == 1
    assert not (server.root / ".bifolio/search").exists()  # the search index is disabled in site.yaml


def test_once_an_edit_is_seen_nobody_answers_what_was_before(server: Server) -> None:
    for i in range(1, 11):
        (server.root / "content/notes/d.md").write_text(f"---\ncount: {i}\n---\n")
        until(lambda: server.count("d") == i)  # noqa: B023
        assert [server.count("d") for _ in range(5)] == [i] * 5


def test_a_change_of_settings_reaches_every_worker(server: Server) -> None:
    def status() -> int:
        return server.send("GET", "/api/notes", Authorization="")[0]

    assert status() == 200
    (server.root / "site.yaml").write_text("roles:\n  public: {}\n")
    until(lambda: {status() for _ in range(20)} == {403})


def edit(server: Server, name: str, count: int) -> None:
    (server.root / f"content/notes/{name}.md").write_text(f"---\ncount: {count}\n---\n")


def all_show(server: Server, name: str, count: int, seconds: float = 5.0) -> None:
    """Wait until every worker shows a count: twenty responses in a row must contain it."""
    until(lambda: [server.count(name) for _ in range(20)] == [count] * 20, seconds)


def test_an_edit_and_a_write_in_the_same_instant_are_both_shown_by_all(server: Server) -> None:
    for i in range(1, 11):
        edit(server, "b", i)
        # So many that every worker writes, including the one that watches the files.
        with ThreadPoolExecutor(8) as pool:
            done = pool.map(lambda _: server.send("PUT", "/api/notes/a", {"count": i})[0], range(8))  # noqa: B023
        assert set(done) == {200}
        all_show(server, "b", i)


def test_a_role_that_is_revoked_while_somebody_writes_is_revoked_for_all(server: Server) -> None:
    def status() -> int:
        return server.send("GET", "/api/notes", Authorization="")[0]

    for i in range(5):
        for roles, expected in (("{}", 403), ("{note: [find, findOne]}", 200)):
            settings = f"roles:\n  public: {roles}\nsearch: {{index: false}}\n"
            (server.root / "site.yaml").write_text(settings)
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda _: server.send("PUT", "/api/notes/a", {"count": i}), range(8)))  # noqa: B023
            until(lambda: {status() for _ in range(20)} == {expected}, 5)  # noqa: B023


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc which processes there are")
def test_a_new_worker_begins_where_the_others_are(server: Server) -> None:
    all_workers(server)
    (server.root / "site.yaml").write_text("name: Other\nroles:\n  public: {note: [find, findOne]}\n")
    edit(server, "a", 7)
    all_show(server, "a", 7)
    before = all_workers(server)
    for worker in before:
        os.kill(worker, signal.SIGKILL)
        until(lambda: worker not in server.workers and len(server.workers) == WORKERS)  # noqa: B023
    assert not all_workers(server) & before
    all_show(server, "a", 7)
    assert server.send("GET", "/api/notes", Authorization="")[0] == 200


def commit(server: Server, at: str = "2024-01-01T00:00:00Z") -> None:
    git(server.root, "add", "content", "content-types", "site.yaml")
    git(server.root, "commit", "-qm", "all", at=at)


def test_a_checkout_of_settings_and_content_is_shown_by_all(server: Server) -> None:
    git(server.root, "init", "-q", "-b", "main")
    commit(server)
    git(server.root, "checkout", "-qb", "other")
    edit(server, "a", 8)
    (server.root / "site.yaml").write_text("roles:\n  public: {}\n")
    commit(server)

    def found() -> set[int]:
        return {server.send("GET", "/api/notes", Authorization="")[0] for _ in range(20)}

    all_show(server, "a", 8)
    # Edits by hand become visible one after the other, but a checkout becomes visible at once.
    until(lambda: found() == {403}, 5)
    for branch, count, status in (("main", 0, 200), ("other", 8, 403), ("main", 0, 200)):
        git(server.root, "checkout", "-q", branch)
        all_show(server, "a", count)
        assert found() == {status}


def test_all_workers_take_timestamps_from_a_repository_that_appears(server: Server) -> None:
    def updated() -> set[str]:
        return {server.send("GET", "/api/notes/a")[1]["data"]["updatedAt"] for _ in range(20)}

    git(server.root, "init", "-q", "-b", "main")
    commit(server)
    until(lambda: updated() == {"2024-01-01T00:00:00.000Z"})
    for i in range(1, 5):
        edit(server, "a", i)
        commit(server, at=f"2024-01-0{i + 1}T00:00:00Z")
        until(lambda: updated() == {f"2024-01-0{i + 1}T00:00:00.000Z"}, 5)  # noqa: B023


def test_a_key_of_sessions_that_is_deleted_counts_in_all_workers_until_the_next_start(server: Server) -> None:
    accounts = Accounts(server.root)
    user = Users(accounts).register("ann", "ann@example.org", "secret12", confirmed=True)
    token = JsonWebTokens(session_key(server.root), 600, accounts.site_id).token(user)
    accounts.close()
    (server.root / ".bifolio/jwt.key").unlink()
    for _ in range(8 * WORKERS):
        assert server.send("GET", "/api/notes/a", Authorization=f"Bearer {token}")[0] == 403
    assert not (server.root / ".bifolio/jwt.key").exists()


def test_every_worker_knows_the_versions_that_others_replaced_also_after_a_kill(server: Server) -> None:
    tag = server.send("GET", "/api/notes/a")[2]
    merging = {"If-Match": tag, "Prefer": "merge"}
    assert server.send("PUT", "/api/notes/a", {"title": "new"})[0] == 200
    for _ in range(2 * WORKERS):
        status, body, _ = server.send("PUT", "/api/notes/a", {"count": 5}, **merging)
        assert (status, body["data"]["title"], body["data"]["count"]) == (200, "new", 5)
    kill_all(server.process)
    server.process = start(server.root, server.port, "--workers=1")
    wait(server.process, server.port)
    try:
        status, body, _ = server.send("PUT", "/api/notes/a", {"count": 5}, **merging)
        assert (status, body["data"]["title"], body["data"]["count"]) == (200, "new", 5)
        status, body, _ = server.send("PUT", "/api/notes/a", {"title": "other"}, **merging)
        assert (status, [row["attribute"] for row in body["error"]["details"]["conflicts"]]) == (
            412,
            ["title"],
        )
    finally:
        stop(server.process)
