"""Reads of pictures at a commit: each worker returns the same `formats` as a server that serves a
checkout.
"""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest

from server.auth.accounts import Accounts
from tests.api.test_upload import picture
from tests.git import commit_all, git
from tests.history.test_past import commit
from tests.servers import free_port, start, stop, wait, workers
from tests.sites import Api, collection, load, write
from tests.waiting import until

pytestmark = [
    pytest.mark.skipif(not shutil.which("git"), reason="git is not installed"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc which processes there are"),
]

OLD, NEW, SAME, LAST = picture(), picture(900, 700), picture(1100, 800), picture(500, 400)
FIRST: dict[str, str | bytes] = {
    "site.yaml": "search: {index: false}\n",
    ".gitignore": ".bifolio/\n",
    **collection("note", {"title": {"type": "string"}, "cover": {"type": "media"}}),
    "content/notes/n.yaml": "title: N\ncover: a.png\ncreatedAt: 2024-01-01\nupdatedAt: 2024-01-01\n",
    "content/uploads/a.png": OLD,
    "content/uploads/same.png": SAME,
    "content/uploads/same.png.yaml": "name: The same\n",
    "content/uploads/damaged.png": OLD[: len(OLD) // 2],
    "content/uploads/text.txt": "text",
}
READS = ("/api/upload/files", "/api/notes?populate=*", "/api/notes/n?populate=cover")
FILES = ("/uploads/small_a.png", "/uploads/thumbnail_same.png", "/uploads/medium_gone.png", "/uploads/a.png")


@dataclass
class Worker:
    """One worker process of a server, with an open connection to this process."""

    pid: int
    connection: HTTPConnection
    token: str

    def get(self, path: str, at: str) -> tuple[int, bytes, dict[str, str]]:
        """Return the status, body and caching headers of a response."""
        mark = "&" if "?" in path else "?"
        sent = {"Authorization": f"Bearer {self.token}"}
        self.connection.request("GET", f"{path}{mark}at={at}", headers=sent)
        answer = self.connection.getresponse()
        headers = {name: answer.headers.get(name, "") for name in ("ETag", "Cache-Control", "Content-Type")}
        return answer.status, answer.read(), headers


@dataclass
class Server:
    """A running server with two workers."""

    root: Path
    pid: int
    port: int
    token: str

    @contextmanager
    def workers(self) -> Iterator[tuple[Worker, Worker]]:
        """Yield each worker together with the other one.

        To connect to a certain worker, the other worker is stopped until the connection is accepted.
        """
        until(lambda: len(workers(self.pid)) == 2)
        first, second = sorted(workers(self.pid))
        one, other = self._connected(first, second), self._connected(second, first)
        with closing(one.connection), closing(other.connection):
            yield one, other

    def _connected(self, worker: int, other: int) -> Worker:
        os.kill(other, signal.SIGSTOP)
        try:
            until(lambda: is_stopped(other))
            connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
            connection.request("GET", "/_health")
            assert connection.getresponse().read() == b""
        finally:
            os.kill(other, signal.SIGCONT)
        return Worker(worker, connection, self.token)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    root, port = tmp_path / "site", free_port()
    write(root, FIRST)
    commit_all(root, at="2030-05-01T00:00:00Z")
    accounts = Accounts(root)
    token = accounts.create_token("full", "full-access")
    accounts.close()
    with (tmp_path / "log").open("wb") as out:
        process = start(root, port, "--workers=2", output=out)
    try:
        wait(process, port)
        yield Server(root, process.pid, port, token)
    finally:
        stop(process)


def is_stopped(pid: int) -> bool:
    """Return whether all threads of a process are stopped."""
    states = [
        stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return set(states) == {"T"}


def answers_of_checkout(root: Path, folder: Path, commit_id: str) -> dict[str, bytes]:
    """Serve a checkout of a commit, and return the responses once the server has created all formats."""
    git(root, "clone", "-q", str(root), str(folder))
    git(folder, "checkout", "-q", commit_id)
    api = Api.of(load(folder, {}))
    for path in api.site.incomplete_images():
        api.site.scale(path)
    answers = {path: api.get(path) for path in (*READS, *FILES)}
    api.accounts.close()
    return {path: answer.raw if answer.status == 200 else b"404" for path, answer in answers.items()}


def has_formats(body: bytes) -> bool:
    """Return whether a response from `/api/upload/files` contains formats for all pictures that can be
    scaled.
    """
    pictures = [file for file in json.loads(body) if file["width"] and file["name"] != "damaged.png"]
    return bool(pictures) and all(file["formats"] for file in pictures)


def test_workers_respond_like_a_checkout_in_any_order(server: Server, tmp_path: Path) -> None:
    with server.workers() as (one, other):
        check(server.root, one, other, tmp_path)


def test_formats_that_are_deleted_are_made_again(server: Server) -> None:
    old = git(server.root, "rev-parse", "HEAD").strip()
    write(server.root, {"content/uploads/a.png": NEW})
    now = commit(server.root, 1)
    with server.workers() as both:
        for at in (old, now):
            until(lambda: all(has_formats(one.get(READS[0], at)[1]) for one in both))  # noqa: B023
        made = {(at, path): both[0].get(path, at)[1] for at in (old, now) for path in FILES[:2]}
        (server.root / ".bifolio/formats").rename(
            server.root / "formats"
        )  # in one step, because the server may be writing to the folder
        for (at, path), body in made.items():
            for one in both:
                until(lambda: one.get(path, at)[:2] == (200, body))  # noqa: B023


def check(root: Path, one: Worker, other: Worker, folder: Path) -> None:
    made = [git(root, "rev-parse", "HEAD").strip()]
    one.get(READS[0], made[0])  # possibly before any formats have been created
    write(root, {"content/uploads/a.png": NEW, "content/uploads/gone.png": LAST})
    made.append(commit(root, 1))
    until(lambda: has_formats(one.get(READS[0], made[1])[1]))
    other.get(READS[1], made[1])
    git(root, "rm", "-q", "content/uploads/gone.png")
    write(root, {"content/uploads/a.png": LAST})
    made.append(commit(root, 2))
    until(lambda: has_formats(other.get(READS[0], made[2])[1]))
    for number, commit_id in enumerate(made):
        expected = answers_of_checkout(root, folder / f"checkout{number}", commit_id)
        for worker in (one, other):
            until(lambda: has_formats(worker.get(READS[0], commit_id)[1]))  # noqa: B023
        for path, body in expected.items():
            answers = [worker.get(path, commit_id) for worker in (one, other)]
            assert answers[0] == answers[1], path
            assert (answers[0][1] if answers[0][0] == 200 else b"404") == body, path
