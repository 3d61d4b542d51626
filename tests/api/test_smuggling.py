"""Tests of request smuggling behind nginx and HAProxy: the proxy and the server must see the same requests.

The tests send random byte streams to proxies in front of a server. Real requests and requests hidden in a
body, a header or a chunk have a marker in their path. Every request that Bifolio logs must also be in the
proxy's log. After each stream, another client sends a request over the same connection between proxy and
server, and must receive the response to its own request. If a hidden request were left over on that
connection, the client would receive the wrong response.
"""

import json
import re
import shutil
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.api.streams_of_bytes import MARKER, Streams
from tests.servers import free_port, serving
from tests.sites import STRING, collection, documents, write
from tests.test_static_servers import MAIN, is_root, running
from tests.torture import LONG, SEED
from tests.waiting import until

STREAMS = 2000 if LONG else 75  # for each proxy
QUIET_S = 0.15  # A client disconnects after this long without a response.
PATIENCE_S = 30.0
UNLOGGED = (400, 414, 431)  # Bifolio rejects some heads before it logs them as requests.
FILES = {
    **collection("note", {"title": STRING}),
    **documents("notes", bystander={"title": "the bystander's own"}),
    "site.yaml": "roles: {public: {note: [find, findOne, update]}}\nsearch: {index: false}\n",
}
needs_proxies = pytest.mark.skipif(
    not (shutil.which("nginx") and shutil.which("haproxy")), reason="nginx or haproxy is not installed"
)
PROXIED = (
    "proxy_pass http://%s; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_next_upstream off;"
)
NGINX = """
log_format {name} escape=json '{name} $upstream_status $request';
upstream {name} {{ server 127.0.0.1:{bifolio}; keepalive 1; }}
server {{
    listen 127.0.0.1:{port};
    access_log {log} {name};
    {options}
    location / {{ {proxied} }}
}}
"""
STREAMED = "proxy_request_buffering off; ignore_invalid_headers off; underscores_in_headers on;"
HAPROXY = """
global
    log stdout format raw local0
    nbthread 1
defaults
    mode http
    log global
    retries 0
    timeout connect 10s
    timeout client 20s
    timeout server 20s
    http-reuse always
"""
HAPROXY_FRONT = """
frontend {name}
    bind 127.0.0.1:{port}
    {options}
    log-format "{name} %s %ST %r"
    default_backend {name}
backend {name}
    server bifolio 127.0.0.1:{bifolio} pool-max-conn 1
"""


@dataclass(frozen=True)
class Front:
    """A proxy in front of the server: its name (the beginning of its markers), its port and its log file."""

    name: str
    port: int
    log: Path

    def seen(self) -> Counter[str]:
        """Return how often the proxy forwarded a request with each marker."""
        return Counter(marker for marker, _ in self._lines())

    def answered(self) -> Counter[tuple[str, int]]:
        """Return how often the server responded to each marker with each status."""
        return Counter((marker, status) for marker, status in self._lines() if status)

    def _lines(self) -> Iterator[tuple[str, int]]:
        for line in self.log.read_bytes().splitlines():
            markers = MARKER.findall(line)
            fields = line.split(b" ", 3)
            if not markers or fields[0].decode() != self.name:
                continue
            if fields[1] == b"<NOSRV>":
                continue
            told = fields[2] if fields[1] == b"bifolio" else fields[1]
            yield markers[0].decode(), int(told) if re.fullmatch(rb"[2-4]\d\d", told) else 0


@dataclass(frozen=True)
class House:
    """A server, its log file and the proxies in front of the server."""

    log: Path
    fronts: list[Front]

    def seen(self, front: Front) -> Counter[tuple[str, int]]:
        """Return how often the server logged each of the proxy's markers with each response status."""
        found: Counter[tuple[str, int]] = Counter()
        for line in self.log.read_text(errors="replace").splitlines():
            told = json.loads(line)
            marker = MARKER.search(told.get("path", "").encode("latin-1", "replace"))
            if told["event"] == "request" and marker and marker[0].startswith(f"{front.name}-".encode()):
                found[marker[0].decode(), told["status"]] += 1
        return found


@contextmanager
def housed(folder: Path, first: str = "") -> Iterator[House]:
    """Context manager: run a server with proxies in front of it. The server first runs the Python code
    `first`.
    """
    root, bifolio, log = folder / "site", free_port(), folder / "bifolio.log"
    write(root, FILES)
    ports = {name: free_port() for name in ("nginx", "nginxstreams", "haproxy", "haproxylenient")}
    fronts = [
        Front(n, p, folder / f"{'nginx.requests' if 'nginx' in n else 'haproxy.log'}")
        for n, p in ports.items()
    ]
    with ExitStack() as stack:
        output = stack.enter_context(log.open("wb"))
        stack.enter_context(serving(root, bifolio, "--workers=1", "--log=json", output=output, first=first))
        stack.enter_context(run_nginx(folder, bifolio, fronts[:2]))
        stack.enter_context(run_haproxy(folder, bifolio, fronts[2:]))
        yield House(log, fronts)


@contextmanager
def run_nginx(folder: Path, bifolio: int, fronts: list[Front]) -> Iterator[None]:
    """Context manager: run nginx twice, with its defaults and with the most lenient settings."""
    servers = [
        NGINX.format(
            name=front.name,
            port=front.port,
            bifolio=bifolio,
            log=front.log,
            options=options,
            proxied=PROXIED % front.name,
        )
        for front, options in zip(fronts, ("", STREAMED), strict=True)
    ]
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, config="".join(servers)))
    command = ["nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    command += ["-g", "user root;"] if is_root() else []
    with running(command, fronts[0].port, folder / "nginx.log"):
        yield


@contextmanager
def run_haproxy(folder: Path, bifolio: int, fronts: list[Front]) -> Iterator[None]:
    """Context manager: run HAProxy twice, with its defaults and with the most lenient settings."""
    sections = [
        HAPROXY_FRONT.format(name=front.name, port=front.port, bifolio=bifolio, options=options)
        for front, options in zip(fronts, ("", "option accept-invalid-http-request"), strict=True)
    ]
    (folder / "haproxy.cfg").write_text(HAPROXY + "".join(sections))
    with running(["haproxy", "-f", str(folder / "haproxy.cfg")], fronts[0].port, fronts[0].log):
        yield


def talk(port: int, pieces: list[bytes]) -> bytes:
    """Send a stream in pieces. Return everything received until the proxy closed the connection or stayed
    silent.
    """
    came = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.settimeout(QUIET_S)
        for piece in pieces:
            client.sendall(piece)
        while part := client.recv(65_536):
            came += part
    return came


def bystander(front: Front) -> None:
    """Send a request as another client and require the response to this request."""
    request = b"GET /api/notes/bystander HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    came = b""
    with socket.create_connection(("127.0.0.1", front.port), timeout=PATIENCE_S) as client:
        client.sendall(request)
        while part := client.recv(65_536):
            came += part
    assert came.startswith(b"HTTP/1.1 200 "), came
    assert b"the bystander's own" in came


def attack_all(house: House, count: int, rounds: int = 1) -> None:
    """Send a number of streams to all proxies of a house at the same time, in each round."""
    with ThreadPoolExecutor(len(house.fronts)) as pool:
        for _ in range(rounds):
            list(pool.map(attack, house.fronts, [count] * len(house.fronts)))


def attack(front: Front, count: int) -> None:
    """Send streams to a proxy, each followed by a request from another client."""
    streams = Streams(front.name, str(SEED))
    for _ in range(count):
        pieces = streams.next()
        talk(front.port, pieces)
        try:
            bystander(front)
        except AssertionError as error:
            raise AssertionError(f"{front.name}: after {pieces!r}, a bystander got {error}") from None


@needs_proxies
def test_no_request_is_seen_by_one_side_as_two(tmp_path: Path) -> None:
    with housed(tmp_path) as house:
        attack_all(house, STREAMS)
        for front in house.fronts:
            wait_for_logs(house, front)
            assert not differences(house, front)
            assert sum(front.seen().values()) > STREAMS / 2


# Makes the server ignore a body's length, so that it treats the content of the body as requests.
OVERLOOKS = """
import re
from server.api.serving import connection
class Parser(connection.HttpRequestParser):
    def feed_data(self, data):
        super().feed_data(re.sub(b"(?i)content-length:", b"X-Length:", bytes(data)))
connection.HttpRequestParser = Parser
"""


@needs_proxies
def test_a_server_that_sees_other_requests_is_caught(tmp_path: Path) -> None:
    with housed(tmp_path, OVERLOOKS) as house:
        with pytest.raises(AssertionError, match="a bystander got"):
            attack_all(house, 40, rounds=10)  # On a busy machine, every bystander of a round can be late.
        assert any(differences(house, front) for front in house.fronts)


def wait_for_logs(house: House, front: Front) -> None:
    """Wait until the proxy's log matches the server's log, for at most 5 s. The caller reports a remaining
    mismatch.
    """
    with suppress(AssertionError):
        until(lambda: not differences(house, front), 5)


def differences(house: House, front: Front) -> dict[str, object]:
    """Return the requests that only the server logged, and the responses that only the proxy logged."""
    seen = house.seen(front)
    requests = Counter(marker for marker, _ in seen.elements())
    answered = Counter({key: count for key, count in front.answered().items() if key[1] not in UNLOGGED})
    found = {"requests": requests - front.seen(), "answers": answered - seen}
    return {name: dict(counts) for name, counts in found.items() if counts}
