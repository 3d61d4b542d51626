"""Tests of a server that takes over the port of another server without refusing any request."""

import json
import os
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from server.api.serving.takeover import BACKLOG_CONNECTIONS, take_over
from tests.servers import free_port, get, is_alive, start, stop, wait
from tests.sites import STRING, collection, documents, write
from tests.waiting import until

FILES = {
    **collection("note", {"text": STRING}),
    **documents("notes", a={"text": "x"}),
    "site.yaml": "roles: {public: {note: [find, findOne, create]}}\nsearch: {index: false}\n",
}
Server = subprocess.Popen[str]
LATE = 5  # open connections that have not yet been used


class Asking:
    """Clients that constantly send requests: one opens a new connection each time, the other keeps its
    connection.

    Further clients connect a hundred times per second and send their requests a little later.
    """

    def __init__(self, port: int) -> None:
        self.port, self.answers, self.wrong = port, 0, list[Any]()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(keeps,)) for keeps in (False, True)]
        self._threads.append(threading.Thread(target=self._ask_late))
        for thread in self._threads:
            thread.start()

    def _ask(self, keeps: bool) -> None:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        number = 0
        while not self._stop.is_set():
            number += 1
            try:
                if number % 5:
                    connection.request("GET", "/api/notes?pagination[pageSize]=1")
                else:
                    body = json.dumps({"data": {"text": f"{keeps} {number}"}})
                    connection.request("POST", "/api/notes", body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                data = json.loads(answer.read())
                if answer.status not in (200, 201):
                    self.wrong.append(answer.status)
                elif answer.status == 201 and not self._is_shown(data["data"]["documentId"]):
                    self.wrong.append(f"{number} is not shown")
                if not keeps:
                    connection.close()
                self.answers += 1
            except OSError as error:
                self.wrong.append(error)
                connection.close()
        connection.close()

    def _is_shown(self, document: str) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", f"/api/notes/{document}")
        status = connection.getresponse().status
        connection.close()
        return status == 200

    def _ask_late(self) -> None:
        connected: deque[HTTPConnection] = deque()
        while not self._stop.wait(0.01):
            connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                connection.connect()
                connected.append(connection)
                if len(connected) > LATE:
                    connection = connected.popleft()
                    connection.request("GET", "/api/notes?pagination[pageSize]=1")
                    assert connection.getresponse().read()
            except (OSError, HTTPException) as error:
                self.wrong.append(error)
            if connection not in connected:
                connection.close()
        for connection in connected:
            connection.close()

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    running: list[Server] = []
    yield running
    for process in running:
        if process.poll() is None:
            stop(process)


def launch(servers: list[Server], root: Path, port: int, *options: str, first: str = "") -> None:
    """Start a server. If it is the first one, wait until it serves requests."""
    launched = start(root, port, "--workers=1", "--quiet", *options, output=subprocess.DEVNULL, first=first)
    servers.append(launched)
    if launched is servers[0]:
        wait(launched, port)


def test_another_server_takes_the_port_over_and_no_request_is_refused(
    tmp_path: Path, servers: list[Server]
) -> None:
    root, port = tmp_path / "site", free_port()
    write(root, FILES)
    servers.append(start(root, port, "--workers=2", "--takeover", output=subprocess.DEVNULL))
    wait(servers[0], port)
    asking = Asking(port)
    for before in range(2):
        seen = asking.answers
        servers.append(start(root, port, "--workers=2", "--takeover", output=subprocess.DEVNULL))
        assert servers[before].wait(60) == 0
        until(lambda seen=seen: asking.answers > seen + 50)  # type: ignore[misc]
    asking.end()
    assert asking.wrong == []
    assert get(port, "/_health/ready")[0] == 200
    kept = json.loads(get(port, "/api/notes?pagination[pageSize]=1")[1])["meta"]["pagination"]["total"]
    assert kept == len(list((root / "content/notes").iterdir()))
    assert kept > 1


def test_one_server_at_a_time_takes_over(tmp_path: Path, servers: list[Server]) -> None:
    root, port = tmp_path / "site", free_port()
    write(root, FILES)
    launch(servers, root, port)
    # the server creates the socket after its first response
    until((root / f".bifolio/serve-{port}.sock").exists)
    taken = take_over(root, port)
    assert taken is not None
    servers.append(start(root, port, "--workers=1", "--quiet", "--takeover"))
    assert "is already being taken over by another server" in servers[1].communicate(timeout=60)[1]
    assert servers[1].returncode
    assert get(port, "/api/notes")[0] == 200
    taken.close()
    launch(servers, root, port, "--takeover")
    assert servers[0].wait(60) == 0
    assert get(port, "/api/notes")[0] == 200


def test_a_server_that_can_not_start_leaves_the_port_to_the_one_that_has_it(
    tmp_path: Path, servers: list[Server]
) -> None:
    root, port = tmp_path / "site", free_port()
    write(root, FILES)
    launch(servers, root, port)
    plain = start(root, port, "--workers=1")
    assert "can't listen" in plain.communicate(timeout=60)[1]
    (root / "site.yaml").write_text("nmae: x\n")
    broken = start(root, port, "--workers=1", "--takeover")
    assert "site.yaml:1" in broken.communicate(timeout=60)[1]
    (root / "site.yaml").write_text(FILES["site.yaml"])
    killed = start(
        root,
        port,
        "--takeover",
        first="import os; from server.site.site import Site; Site.load = lambda *_: os._exit(9)",
    )
    killed.communicate(timeout=60)
    assert killed.returncode == 9
    assert get(port, "/api/notes")[0] == 200
    assert is_alive(servers[0].pid)
    assert (root / f".bifolio/serve-{port}.sock").stat().st_mode & 0o777 == 0o600
    launch(servers, root, port, "--takeover")
    assert servers[0].wait(60) == 0
    assert get(port, "/api/notes")[0] == 200


def test_sockets_of_servers_that_have_ended_are_removed(servers: list[Server], tmp_path: Path) -> None:
    root, ports = tmp_path, [free_port() for _ in range(3)]
    write(root, FILES)
    sockets = [root / f".bifolio/serve-{port}.sock" for port in ports]
    for port in ports[:2]:
        launch(servers, root, port)
    until(lambda: all(path.exists() for path in sockets[:2]))
    servers[0].kill()
    servers[0].wait(60)
    assert sockets[0].exists()
    launch(servers, root, ports[2])
    until(sockets[2].exists)
    assert not sockets[0].exists()
    assert sockets[1].exists()
    stop(servers[2])
    assert not sockets[2].exists()
    assert sockets[1].exists()


@contextmanager
def connected(root: Path, port: int) -> Iterator[socket.socket]:
    """Yield a connection to the socket through which a server hands over its port."""
    until((root / f".bifolio/serve-{port}.sock").exists)
    folder = os.open(root / ".bifolio", os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(f"/proc/self/fd/{folder}/serve-{port}.sock")
        asking.settimeout(10)
        os.close(folder)
        yield asking


def test_what_only_asks_takes_nothing(tmp_path: Path, servers: list[Server]) -> None:
    root, port = tmp_path / "site", free_port()
    write(root, FILES)
    launch(servers, root, port)
    for said in (b"", b"x"):
        with connected(root, port) as asking:
            asking.sendall(b"a")
            _, descriptors, _, _ = socket.recv_fds(asking, 1, 1)
            os.close(descriptors[0])
            asking.sendall(said)
    assert get(port, "/api/notes")[0] == 200
    assert servers[0].poll() is None


def test_who_connects_and_says_nothing_is_in_nobodys_way(tmp_path: Path, servers: list[Server]) -> None:
    root, port = tmp_path / "site", free_port()
    write(root, FILES)
    launch(servers, root, port)
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(root, port)) for _ in range(BACKLOG_CONNECTIONS + 5)]
        assert silent[0].recv(1) == b""  # The number of connections is limited, so the oldest is closed.
        launch(servers, root, port, "--takeover")
        assert servers[0].wait(60) == 0
    assert get(port, "/api/notes")[0] == 200


def test_who_takes_too_long_gives_way_to_another(tmp_path: Path, servers: list[Server]) -> None:
    root, port = tmp_path / "site", free_port()
    write(root, FILES)
    soon = "from server.api.serving import takeover; takeover.READY_TIMEOUT_S = 0"
    launch(servers, root, port, first=soon)
    until((root / f".bifolio/serve-{port}.sock").exists)
    taken = take_over(root, port)
    assert taken is not None
    launch(servers, root, port, "--takeover")
    assert servers[0].wait(60) == 0
    taken.close()
    assert get(port, "/api/notes")[0] == 200
