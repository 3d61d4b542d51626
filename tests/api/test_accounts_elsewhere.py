"""Tests of accounts in PostgreSQL: while the database does not respond, requests that need no accounts
succeed.
"""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from server.auth.accounts import Accounts
from server.auth.users import Users
from tests.postgres import Postgres
from tests.servers import free_port, start, stop, wait
from tests.sites import schema, write
from tests.waiting import until

FILES = {
    "content-types/note.json": schema("note", {"title": "string"}),
    "content/notes/one.md": "---\ntitle: first\n---\n",
}
PUBLIC = "note: [find, findOne, create], upload: [find], auth: [callback]"
MANY = 60  # simultaneous requests, more than the server has threads
JSON = {"Content-Type": "application/json"}


def ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes, Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body and json.dumps(body), {**(JSON if body else {}), **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def condition(port: int) -> str:
    """Return the status of the accounts database that a server reports on its health page."""
    return str(json.loads(ask(port, "GET", "/_health/ready")[1])["data"]["accounts"])


def test_what_needs_no_accounts_is_answered_while_their_database_stands_still(
    database: Postgres, tmp_path: Path
) -> None:
    site = f"accounts: {database.url}\nroles: {{public: {{{PUBLIC}}}}}\nsearch: {{index: false}}\n"
    write(tmp_path, {**FILES, "site.yaml": site})
    database.empty()
    accounts = Accounts(tmp_path, database.url)
    known, unseen = (bearer(accounts.create_token(name, "full-access")) for name in ("one", "two"))
    accounts.close()
    login = {"identifier": "nobody", "password": "secret12"}
    port = free_port()
    process = start(tmp_path, port, "--workers=1")
    try:
        wait(process, port)
        assert ask(port, "GET", "/api/notes/one", **known)[0] == 200
        asked = [
            ("GET", "/api/notes/one", None, known, 200),
            ("PUT", "/api/notes/one", {"data": {"title": "x"}}, known, 200),
            ("GET", "/api/notes/one", None, unseen, 503),
            ("PUT", "/api/notes/one", {"data": {"title": "x"}}, unseen, 503),
            ("POST", "/api/auth/local", login, {}, 503),
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
                    (clients.submit(ask, port, method, path, body, **headers), status)
                    for method, path, body, headers, status in asked * (MANY // len(asked))
                ]
                time.sleep(0.5)
                for method, path, body, status in free:
                    began = time.monotonic()
                    assert ask(port, method, path, body)[0] == status, path
                    # less than requests that need the accounts database wait
                    assert time.monotonic() - began < 2.4, path
                for answered, expected in waiting:
                    status, sent, told = answered.result()
                    assert status == expected
                    if status == 503:
                        assert json.loads(sent)["error"]["name"] == "ServiceUnavailableError"
                        assert told["Retry-After"]
                assert time.monotonic() - began < 30
                began = time.monotonic()
                assert condition(port) == "away"
                assert [ask(port, *each[:3], **each[3])[0] for each in asked] == [each[4] for each in asked]
                assert time.monotonic() - began < 5
            until(lambda: ask(port, "GET", "/api/notes/one", **unseen)[0] == 200)
            assert condition(port) == "ready"
    finally:
        stop(process)


@contextmanager
def machines(database: Postgres, root: Path, count: int, *, refresh: bool = False) -> Iterator[list[int]]:
    """Start servers, each with its own clone and all with the same accounts database. Yield their ports."""
    users = "{note: [find], auth: [changePassword, logout]}, editor: {note: [find], user: [find]}"
    site = f"accounts: {database.url}\nsearch: {{index: false}}\nauth: {{refresh: {str(refresh).lower()}}}\n"
    site += f"roles: {{public: {{{PUBLIC}}}, authenticated: {users}}}\n"
    ports, processes = [free_port() for _ in range(count)], []
    try:
        for number, port in enumerate(ports):
            write(root / str(number), {**FILES, "site.yaml": site})
            processes.append(start(root / str(number), port, "--workers=2", first=ONE_KEY))
        for process, port in zip(processes, ports, strict=True):
            wait(process, port)
        yield ports
    finally:
        for process in processes:
            stop(process)


STUDIO = {"Bifolio-Studio": "1", "Sec-Fetch-Site": "same-origin"}
ONE_KEY = "import os\nos.environ['BIFOLIO_JWT_SECRET'] = 'k' * 40"


def test_what_is_taken_away_at_one_machine_is_refused_by_all_within_a_second(
    database: Postgres, tmp_path: Path
) -> None:
    database.empty()
    accounts = Accounts(tmp_path, database.url)
    admin = bearer(accounts.create_token("admin", "full-access"))
    token = bearer(accounts.create_token("one", "read-only"))
    with machines(database, tmp_path, 3) as (here, *others):

        def status(port: int, path: str, headers: dict[str, str]) -> int:
            return ask(port, "GET", path, **headers)[0]

        def everywhere(
            path: str, headers: dict[str, str], expected: int, change: Callable[[], object]
        ) -> None:
            """Apply a change, wait a second, and require that all other servers return the status `expected`.
            Before the change, they must return a different status.
            """
            for port in others * 5:
                assert status(port, path, headers) != expected
            change()
            time.sleep(1)
            for port in others * 5:
                assert status(port, path, headers) == expected

        def sent(method: str, path: str, body: Any = None, headers: dict[str, str] = admin) -> Any:
            code, answer, _ = ask(here, method, path, body, **headers)
            assert code in (200, 201), answer
            return json.loads(answer)

        def logged_in(password: str) -> dict[str, str]:
            return bearer(
                sent("POST", "/api/auth/local", {"identifier": "ann", "password": password}, {})["jwt"]
            )

        everywhere("/api/notes", token, 401, lambda: accounts.revoke_token("one"))
        ann = {"username": "ann", "email": "ann@example.org", "password": "secret12", "role": 1}
        user = f"/api/users/{sent('POST', '/api/users', ann)['id']}"
        jwt = logged_in("secret12")
        editor = next(
            role["id"]
            for role in sent("GET", "/api/users-permissions/roles")["roles"]
            if role["type"] == "editor"
        )
        # A new role ends the sessions.
        everywhere("/api/users", jwt, 401, lambda: sent("PUT", user, {"role": editor}))
        jwt = logged_in("secret12")
        assert status(others[0], "/api/users", jwt) == 200
        everywhere("/api/users", jwt, 401, lambda: sent("PUT", user, {"role": 1}))
        jwt = logged_in("secret12")
        assert status(others[0], "/api/users", jwt) == 403
        change = {"currentPassword": "secret12", "password": "secret34", "passwordConfirmation": "secret34"}
        everywhere("/api/notes", jwt, 401, lambda: sent("POST", "/api/auth/change-password", change, jwt))
        jwt = logged_in("secret34")
        assert [status(port, "/api/notes", jwt) for port in others * 3] == [200] * 3 * len(others)
        everywhere("/api/notes", jwt, 401, lambda: sent("PUT", user, {"blocked": True}))
        sent("PUT", user, {"blocked": False})
        jwt = logged_in("secret34")
        everywhere("/api/notes", jwt, 401, lambda: sent("DELETE", user))
    accounts.close()


def test_a_session_that_is_ended_at_one_machine_is_refused_by_all(database: Postgres, tmp_path: Path) -> None:
    database.empty()
    accounts = Accounts(tmp_path, database.url)
    Users(accounts).create("ann", "ann@example.org", "secret12", role="authenticated", confirmed=True)
    accounts.close()
    form = {"identifier": "ann", "password": "secret12"}
    with machines(database, tmp_path, 2, refresh=True) as (here, there):
        jwt = bearer(json.loads(ask(here, "POST", "/api/auth/local", form)[1])["jwt"])
        cookie = ask(here, "POST", "/studio/-/session", form, **STUDIO)[2]["Set-Cookie"].partition(";")[0]
        studio = {**STUDIO, "Cookie": cookie.replace(str(here), str(there))}
        for headers, method, path in (
            (jwt, "POST", "/api/auth/logout"),
            (studio, "DELETE", "/studio/-/session"),
        ):
            assert ask(there, "GET", "/api/notes", **headers)[0] == 200
            own = {**headers, "Cookie": cookie} if "Cookie" in headers else headers
            assert ask(here, method, path, **own)[0] in (200, 204)
            until(lambda headers=headers: ask(there, "GET", "/api/notes", **headers)[0] == 401, 1)  # type: ignore[misc]


def test_logins_are_counted_at_all_machines_together(database: Postgres, tmp_path: Path) -> None:
    database.empty()
    form = {"identifier": "nobody", "password": "secret12"}
    with machines(database, tmp_path, 2) as ports:
        found = [ask(port, "POST", "/api/auth/local", form)[0] for port in ports * 6]
    assert found == [400] * 10 + [429] * 2


def test_a_server_that_starts_while_the_database_stands_still_asks_it_when_it_goes_on(
    database: Postgres, tmp_path: Path
) -> None:
    database.empty()
    accounts = Accounts(tmp_path, database.url)
    known = bearer(accounts.create_token("one", "read-only"))
    accounts.close()
    site = f"accounts: {database.url}\nroles: {{public: {{note: [find]}}}}\nsearch: {{index: false}}\n"
    write(tmp_path, {**FILES, "site.yaml": site})
    port = free_port()
    with (tmp_path / "log").open("wb") as output:
        with database.stopped():
            process = start(tmp_path, port, "--workers=1", "--quiet", output=output)
            wait(process, port)
            assert ask(port, "GET", "/api/notes")[0] == 200
            for _ in range(3):
                assert ask(port, "GET", "/api/notes", **known)[0] == 503
        try:
            until(lambda: ask(port, "GET", "/api/notes", **known)[0] == 200, 10)
        finally:
            stop(process)
    told = (tmp_path / "log").read_text()
    assert told.count("ERROR bifolio: the accounts database can't be used") == 1, told
    assert told.count("INFO bifolio: the accounts database is available again") == 1, told
