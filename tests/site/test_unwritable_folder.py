"""A running server whose folders in `.bifolio/` can't be written to."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from server.auth.accounts import Accounts
from tests.git import commit_all
from tests.servers import free_port, start, stop, wait
from tests.sites import STRING, collection, documents, write

FILES = {
    "site.yaml": "git: {commit: each}\n",
    ".gitignore": ".bifolio/\n",
    **collection("note", {"title": STRING}),
    **documents("notes", a={"title": "A"}, b={"title": "B"}),
}
FORM = (
    b'--line\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n'
    b"Content-Type: text/plain\r\n\r\ntext\r\n--line--\r\n"
)
# root may write to all folders, unless it lacks these capabilities.
AS_OTHERS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


class Server:
    """A running server with two workers. Each request uses its own connection."""

    def __init__(self, root: Path) -> None:
        write(root, FILES)
        commit_all(root)
        accounts = Accounts(root)
        self.token = accounts.create_token("full", "full-access")
        accounts.close()
        self.port = free_port()
        with (root.parent / "log").open("wb") as out:
            self.process = start(root, self.port, "--workers=2", output=out, inside=AS_OTHERS, real=True)
        wait(self.process, self.port)

    def ask(self, method: str, path: str, data: Any = None) -> tuple[int, Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        kind = "multipart/form-data; boundary=line" if data is FORM else "application/json"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        if path.startswith(("/settings", "/roles", "/api/content-type-builder")):
            headers["If-Match"] = "*"
        try:
            body = data if data is FORM else data and json.dumps(data)
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            raw = answer.read()
            return answer.status, json.loads(raw) if raw else None
        finally:
            connection.close()

    def writes(self) -> Iterator[tuple[str, tuple[int, Any]]]:
        """Yield a response to each kind of write that changes files of the site."""
        note, new = {"data": {"title": "C"}}, {"data": {"permissions": {"note": ["find"]}}}
        operation = {"method": "POST", "path": "/api/notes", "body": note}
        add = {"operation": "add", "attribute": "note.text", "definition": {"type": "string"}}
        yield "create", self.ask("POST", "/api/notes", note)
        yield "update", self.ask("PUT", "/api/notes/a", note)
        yield "delete", self.ask("DELETE", "/api/notes/b")
        yield "batch", self.ask("POST", "/batch", {"operations": [operation]})
        yield "settings", self.ask("PUT", "/settings", {"data": {"name": "New"}})
        yield "role", self.ask("PUT", "/roles/editor", new)
        yield "types", self.ask("POST", "/api/content-type-builder/changes", {"data": {"changes": [add]}})
        yield "merge", self.ask("POST", "/branches/spring/merge", {})
        yield "upload", self.ask("POST", "/api/upload", FORM)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    root = tmp_path_factory.mktemp("unwritable") / "site"
    root.mkdir()
    made = Server(root)
    try:
        assert made.ask("POST", "/branches", {"name": "spring"})[0] == 201
        assert made.ask("POST", "/api/notes?branch=spring", {"data": {"title": "D"}})[0] == 201
        assert made.ask("PUT", "/api/notes/a", {"data": {"title": "B"}})[0] == 200
        yield made, root
    finally:
        stop(made.process)


def _as_file(folder: Path) -> Callable[[], None]:
    shutil.rmtree(folder)
    folder.write_text("")
    return folder.unlink


def _with_mode(folder: Path, mode: int) -> Callable[[], None]:
    folder.chmod(mode)
    return lambda: folder.chmod(0o700)


@pytest.mark.parametrize("name", ["journal", "commits"])
@pytest.mark.parametrize("block", [_as_file, lambda f: _with_mode(f, 0o500), lambda f: _with_mode(f, 0)])
def test_a_write_names_the_folder_that_blocks_it(
    server: tuple[Server, Path], name: str, block: Callable[[Path], Callable[[], None]]
) -> None:
    running, root = server
    unblock = block(root / ".bifolio" / name)
    try:
        for kind, (status, body) in running.writes():
            assert status == 507, (kind, status, body)
            assert f".bifolio/{name}" in body["error"]["message"], kind
            assert body["error"]["details"]["path"].startswith(f".bifolio/{name}"), kind
        assert running.ask("GET", "/api/notes")[0] == 200
        assert running.ask("GET", "/_health/ready")[0] == 200
    finally:
        unblock()
    assert running.ask("PUT", "/api/notes/a", {"data": {"title": "A"}})[0] == 200


def test_the_server_says_that_accounts_are_away_without_its_folder(server: tuple[Server, Path]) -> None:
    running, root = server
    (root / ".bifolio").rename(root / ".aside")
    (root / ".bifolio").write_text("")
    try:
        status, body = running.ask("GET", "/_health/ready")
    finally:
        (root / ".bifolio").unlink()
        (root / ".aside").rename(root / ".bifolio")
    assert (status, body["data"]["accounts"]) == (200, "away")  # Public content is served.
