"""Accounts in a database elsewhere: while it says nothing, all that needs no accounts is answered."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from server.auth.accounts import Accounts
from tests.postgres import Postgres, postgres
from tests.servers import free_port, start, stop, wait
from tests.sites import schema, write
from tests.waiting import until

FILES = {
    "content-types/note.json": schema("note", {"title": "string"}),
    "content/notes/one.md": "---\ntitle: first\n---\n",
}
PUBLIC = "note: [find, findOne, create], upload: [find], auth: [callback]"
MANY = 60  # requests at once, more than there are threads
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


def ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes, Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body and json.dumps(body), {**(JSON if body else {}), **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def test_what_needs_no_accounts_is_answered_while_their_database_stands_still(
    database: Postgres, tmp_path: Path
) -> None:
    site = f"accounts: {database.url}\nroles: {{public: {{{PUBLIC}}}}}\nsearch: {{index: false}}\n"
    write(tmp_path, {**FILES, "site.yaml": site})
    accounts = Accounts(tmp_path, database.url)
    known = {"Authorization": f"Bearer {accounts.create_token('one', 'full-access')}"}
    accounts.close()
    login = {"identifier": "nobody", "password": "secret12"}
    port = free_port()
    process = start(tmp_path, port, "--workers=1")
    try:
        wait(process, port)
        assert ask(port, "GET", "/api/notes/one", **known)[0] == 200
        asked = [
            ("GET", "/api/notes/one", None, known),
            ("PUT", "/api/notes/one", {"data": {"title": "x"}}, known),
            ("POST", "/api/auth/local", login, {}),
        ]
        free = [
            ("GET", "/api/notes/one", None, 200),
            ("GET", "/search?q=first", None, 200),
            ("GET", "/openapi.json", None, 200),
            ("GET", "/api/upload/files", None, 200),
            ("POST", "/api/notes", {"data": {"title": "new"}}, 201),
        ]
        assert ask(port, "GET", "/openapi.json")[0] == 200
        with ThreadPoolExecutor(MANY) as clients:
            with database.stopped():
                waiting = [
                    clients.submit(ask, port, method, path, body, **headers)
                    for method, path, body, headers in asked * (MANY // len(asked))
                ]
                time.sleep(0.5)
                for method, path, body, status in free:
                    began = time.monotonic()
                    assert ask(port, method, path, body)[0] == status, path
                    assert time.monotonic() - began < 1.5, path
                for refused in waiting:
                    status, sent, headers = refused.result()
                    assert status == 503
                    assert json.loads(sent)["error"]["name"] == "ServiceUnavailableError"
                    assert headers["Retry-After"]
                assert time.monotonic() - began < 15
            until(lambda: ask(port, "GET", "/api/notes/one", **known)[0] == 200, 5)
    finally:
        stop(process)
