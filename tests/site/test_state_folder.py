"""A running server whose folder `.bifolio/` is deleted, or whose accounts database is damaged."""

import json
import shutil
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from server.auth.accounts import Accounts
from server.errors import BusyError
from server.paths import state_folder
from server.storage.write_lock import WriteLock
from tests.servers import free_port, start, stop, wait
from tests.sites import schema, write
from tests.waiting import delete_folder

FILES: dict[str, str | bytes] = {
    "content-types/note.json": schema("note", {"title": "string"}),
    "site.yaml": "roles:\n  public: {note: [find, findOne, update], auth: [register, callback]}\n",
    "content/notes/one.md": "---\ntitle: first\n---\n",
}


class Server:
    """A running server with two workers. Each request uses its own connection."""

    def __init__(self, root: Path) -> None:
        self.root, self.port = root, free_port()
        write(root, FILES)
        accounts = Accounts(root)
        self.token = accounts.create_token("full", "full-access")
        accounts.close()
        self.log = root.parent / "log"

    def begin(self) -> None:
        with self.log.open("wb") as out:
            self.process = start(self.root, self.port, "--workers=2", output=out)
        wait(self.process, self.port)

    def ask(self, method: str, path: str, data: Any = None, token: str = "") -> tuple[int, Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {"Content-Type": "application/json"}
        sent |= {"Authorization": f"Bearer {token}"} if token else {}
        try:
            connection.request(method, path, None if data is None else json.dumps(data), sent)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def put(self, title: str) -> int:
        return self.ask("PUT", "/api/notes/one", {"data": {"title": title}})[0]

    def register(self, name: str) -> int:
        user = {"username": name, "email": f"{name}@example.org", "password": "secret12"}
        return self.ask("POST", "/api/auth/local/register", user)[0]

    @property
    def titles(self) -> set[str]:
        """Return the titles in ten responses, which come from all workers."""
        return {self.ask("GET", "/api/notes/one")[1]["data"]["title"] for _ in range(10)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "site")
    yield made
    stop(made.process)


def test_the_folder_is_made_anew_and_the_workers_stay_in_step(server: Server) -> None:
    server.begin()
    assert {server.ask("GET", "/api/notes", token=server.token)[0] for _ in range(10)} == {200}
    assert server.register("before") == 200
    delete_folder(server.root / ".bifolio")
    for i in range(10):
        assert server.put(f"title {i}") == 200
        assert server.titles == {f"title {i}"}
    # The accounts are lost. No worker recognizes any user until one registers again.
    assert {server.ask("GET", "/api/notes", token=server.token)[0] for _ in range(10)} == {401}
    assert server.register("after") == 200
    login = {"identifier": "after", "password": "secret12"}
    assert {server.ask("POST", "/api/auth/local", login)[0] for _ in range(4)} == {200}
    login["identifier"] = "before"
    assert server.ask("POST", "/api/auth/local", login)[0] == 400
    assert (server.root / ".bifolio").stat().st_mode & 0o777 == 0o700
    assert "ERROR" not in server.log.read_text()


@pytest.mark.parametrize("data", [b"no database" * 1000, b"SQLite format 3\0" + b"x" * 5000])
def test_with_damaged_accounts_content_is_served_and_nobody_can_log_in(server: Server, data: bytes) -> None:
    for path in (server.root / ".bifolio").glob("accounts.db*"):
        path.unlink()
    (server.root / ".bifolio/accounts.db").write_bytes(data)
    server.begin()
    told = [line for line in server.log.read_text().splitlines() if "accounts database can't be used" in line]
    assert len(told) == 1
    assert "no user can log in" in told[0]
    assert server.put("written") == 200
    assert server.titles == {"written"}
    assert server.ask("GET", "/api/notes", token=server.token)[0] == 503
    assert server.register("somebody") == 503
    (server.root / ".bifolio/accounts.db").unlink()  # as if a backup were being restored
    accounts = Accounts(server.root)
    token = accounts.create_token("full", "full-access")
    accounts.close()
    assert {server.ask("GET", "/api/notes", token=token)[0] for _ in range(10)} == {200}


def test_it_can_be_deleted_while_it_is_made(tmp_path: Path) -> None:
    stop = threading.Event()

    def delete() -> None:
        while not stop.wait(0.002):
            shutil.rmtree(tmp_path / ".bifolio", ignore_errors=True)

    deleting = threading.Thread(target=delete)
    deleting.start()
    try:
        for _ in range(5000):
            state_folder(tmp_path)
    finally:
        stop.set()
        deleting.join()


def test_the_write_lock_is_held_also_where_the_folder_is_deleted_meanwhile(tmp_path: Path) -> None:
    folder = state_folder(tmp_path)
    first, second = (WriteLock(folder / "write.lock", tmp_path) for _ in range(2))
    with first.held():
        shutil.rmtree(folder)
        state_folder(tmp_path)
        with pytest.raises(BusyError), second.held(0.05):
            pass
        first.set_counter(7)
    with second.held(0.05):
        assert second.counter == 7
