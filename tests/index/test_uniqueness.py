"""Unique values: if two workers receive the same value at the same time, only one document gets it."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from server.auth.accounts import Accounts
from tests.servers import free_port, serving
from tests.sites import collection, write

# The number of connections for each value. The operating system distributes them over both workers.
AT_ONCE = 6
FILES = {
    **collection("ticket", {"code": {"type": "string", "unique": True}, "slug": {"type": "uid"}}),
    "content/tickets/taken.yaml": "code: taken\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a running server with two workers, and an API token for this server."""
    root: Path = tmp_path_factory.mktemp("site")
    write(root, FILES)
    accounts = Accounts(root)
    token = accounts.create_token("full", "full-access")
    accounts.close()
    with serving(root, free_port(), "--workers=2") as address:
        yield address, token


def ask(server: tuple[str, str], method: str, path: str, data: Any = None) -> tuple[int, Any]:
    """Send a request on a new connection, and return the response's status and body."""
    address, token = server
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = None if data is None else json.dumps({"data": data}).encode()
    request = urllib.request.Request(f"{address}{path}", body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.mark.parametrize("attribute", ["code", "slug"])
def test_one_of_many_simultaneous_creations_wins(server: tuple[str, str], attribute: str) -> None:
    started = Barrier(AT_ONCE)

    def create(value: str) -> int:
        started.wait(30)
        return ask(server, "POST", "/api/tickets", {attribute: value})[0]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for i in range(12):
            statuses = list(pool.map(create, [f"{attribute}-{i}"] * AT_ONCE))
            assert sorted(statuses) == [201, *[400] * (AT_ONCE - 1)]
    found = ask(server, "GET", f"/api/tickets?filters[{attribute}][$startsWith]={attribute}-")[1]["data"]
    assert sorted(ticket[attribute] for ticket in found) == sorted(f"{attribute}-{i}" for i in range(12))


def test_one_of_many_simultaneous_updates_wins(server: tuple[str, str]) -> None:
    made = [ask(server, "POST", "/api/tickets", {"code": f"own-{i}"})[1]["data"] for i in range(AT_ONCE)]
    started = Barrier(AT_ONCE)

    def change(ticket: dict[str, Any]) -> int:
        started.wait(30)
        return ask(server, "PUT", f"/api/tickets/{ticket['documentId']}", {"code": "wanted"})[0]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sorted(pool.map(change, made)) == [200, *[400] * (AT_ONCE - 1)]
