"""Behind nginx and HAProxy, nobody hides a request in another one: both see the same requests.

Random streams of bytes are sent to proxies in front of a server. Each request of a stream, and each that is
hidden in a body, a header or a chunk, has a marker in its path. What Bifolio logs as a request, its proxy
must have logged as one. After each stream, another client asks over the same connection between proxy and
server, and must get its own answer: a request that is left over there would get it instead.
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

STREAMS = 2000 if LONG else 75  # for each front
QUIET_S = 0.15  # After so long without an answer, a client leaves.
PATIENCE_S = 30.0
UNLOGGED = (400, 414, 431)  # Bifolio refuses some heads before they are requests.
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
    """A proxy in front of the server: its name in markers, its port, and the file that it logs to."""

    name: str
    port: int
    log: Path

    def seen(self) -> Counter[str]:
        """How often it took each marker for a request and sent that on."""
        return Counter(marker for marker, _ in self._lines())

    def answered(self) -> Counter[tuple[str, int]]:
        """How often the server answered each marker with each status."""
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
    """A server, its log, and the proxies in front of it."""

    log: Path
    fronts: list[Front]

    def seen(self, front: Front) -> Counter[tuple[str, int]]:
        """How often the server took each marker of a front for a request, with the status that it got."""
        found: Counter[tuple[str, int]] = Counter()
        for line in self.log.read_text(errors="replace").splitlines():
            told = json.loads(line)
            marker = MARKER.search(told.get("path", "").encode("latin-1", "replace"))
            if told["event"] == "request" and marker and marker[0].startswith(f"{front.name}-".encode()):
                found[marker[0].decode(), told["status"]] += 1
        return found


@contextmanager
def housed(folder: Path, first: str = "") -> Iterator[House]:
    """Run a server with proxies in front of it; `first` is Python that runs before."""
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
    """Run nginx with its defaults, and once more as lenient as it can be."""
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
    """Run HAProxy with its defaults, and once more as lenient as it can be."""
    sections = [
        HAPROXY_FRONT.format(name=front.name, port=front.port, bifolio=bifolio, options=options)
        for front, options in zip(fronts, ("", "option accept-invalid-http-request"), strict=True)
    ]
    (folder / "haproxy.cfg").write_text(HAPROXY + "".join(sections))
    with running(["haproxy", "-f", str(folder / "haproxy.cfg")], fronts[0].port, fronts[0].log):
        yield


def talk(port: int, pieces: list[bytes]) -> bytes:
    """Send a stream in pieces; return what came back until the proxy closed or had no more to say."""
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
    """Ask as another client, and get one's own answer."""
    request = b"GET /api/notes/bystander HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    came = b""
    with socket.create_connection(("127.0.0.1", front.port), timeout=PATIENCE_S) as client:
        client.sendall(request)
        while part := client.recv(65_536):
            came += part
    assert came.startswith(b"HTTP/1.1 200 "), came
    assert b"the bystander's own" in came


def attack_all(house: House, count: int) -> None:
    """Send some streams to each front of a house, at once."""
    with ThreadPoolExecutor(len(house.fronts)) as pool:
        list(pool.map(attack, house.fronts, [count] * len(house.fronts)))


def attack(front: Front, count: int) -> None:
    """Send the streams of a front, each followed by a bystander."""
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


# A server that overlooks where a body ends, and takes what stands in it for requests.
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
            attack_all(house, 40)
        assert any(differences(house, front) for front in house.fronts)


def wait_for_logs(house: House, front: Front) -> None:
    """Wait until the proxy has logged what the server has; one that never does is a difference."""
    with suppress(AssertionError):
        until(lambda: not differences(house, front), 5)


def differences(house: House, front: Front) -> dict[str, object]:
    """Return what the server took for requests and its proxy did not, and answers that only the proxy saw."""
    seen = house.seen(front)
    requests = Counter(marker for marker, _ in seen.elements())
    answered = Counter({key: count for key, count in front.answered().items() if key[1] not in UNLOGGED})
    found = {"requests": requests - front.seen(), "answers": answered - seen}
    return {name: dict(counts) for name, counts in found.items() if counts}
