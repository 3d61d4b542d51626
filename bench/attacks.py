"""Requests of one client that try to overload a server, by kind of expensive request."""

import itertools
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from threading import Lock, Thread
from urllib.parse import quote

from bench.attack_site import CONFLICTING, NAME, PICTURES, AttackSite, as_json, picture, worst_text
from bench.effort import scaled
from bench.host import HOST
from bench.sites import WORDS, article_id

CONNECTIONS = scaled(48, 4)  # number of connections in one attack
STREAMS = scaled(2000, 8)
# Multiple addresses are needed, because the limit is 500 streams per client.
STREAM_HOSTS = ("127.0.0.1", "127.0.0.3", "127.0.0.4", "127.0.0.5")
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Request:
    """One request in an attack."""

    path: str
    method: str = "GET"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


Make = Callable[[AttackSite, int], Request]


@dataclass(frozen=True)
class Attack:
    """Requests that one client sends on many connections. `make` creates the request with a given number."""

    name: str
    make: Make
    connections: int = CONNECTIONS
    opens_streams: bool = False
    reads: bool = True  # whether the client reads the responses
    completes: bool = True  # whether the client sends whole bodies


def status_of(connection: HTTPConnection, request: Request) -> int:
    """Send a request and return the status, or 0 if the connection breaks."""
    try:
        connection.request(request.method, request.path, request.body, dict(request.headers))
        response = connection.getresponse()
        response.read()
    except (OSError, HTTPException):
        connection.close()
        return 0
    return response.status


def run(attack: Attack, site: AttackSite, port: int, duration_s: float, first_number: int) -> "Counter[int]":
    """Run an attack for `duration_s` seconds, and count the response statuses.

    Requests are numbered from `first_number`. Status 0 means that the connection broke.
    """
    if attack.opens_streams:
        return _run_streams(port, duration_s)
    if not attack.completes:
        return _run_aborted(attack, site, port, duration_s, first_number)
    if not attack.reads:
        return _run_unread(attack, site, port, duration_s, first_number)
    statuses: Counter[int] = Counter()
    numbers, lock, end = itertools.count(first_number), Lock(), time.monotonic() + duration_s

    def send() -> None:
        connection = HTTPConnection(HOST, port, timeout=_TIMEOUT_S)
        while time.monotonic() < end:
            with lock:
                number = next(numbers)
            status = status_of(connection, attack.make(site, number))
            with lock:
                statuses[status] += 1
        connection.close()

    threads = [Thread(target=send, daemon=True) for _ in range(attack.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()) + _TIMEOUT_S)
    return statuses


def _run_streams(port: int, seconds: float) -> "Counter[int]":
    # Half of the clients never read from their streams.
    end, opened, statuses = time.monotonic() + seconds, list[socket.socket](), Counter[int]()
    for number in range(STREAMS):
        source = (STREAM_HOSTS[number % len(STREAM_HOSTS)], 0)
        try:
            client = socket.create_connection((HOST, port), timeout=5, source_address=source)
            if number % 2:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
        except OSError:
            statuses[0] += 1
            continue
        opened.append(client)
    reading = opened[::2]
    for client in reading:
        try:
            statuses[int(client.recv(4096)[9:12] or 0)] += 1
            client.setblocking(False)
        except OSError:
            statuses[0] += 1
    while time.monotonic() < end:
        for client in reading:
            try:
                client.recv(65536)
            except OSError:
                continue
        time.sleep(0.05)
    for client in opened:
        client.close()
    return statuses


def _run_unread(attack: Attack, site: AttackSite, port: int, seconds: float, first: int) -> "Counter[int]":
    # Responses are read only at the end, and only up to their status.
    opened, statuses = list[socket.socket](), Counter[int]()
    for number in range(attack.connections):
        client = socket.create_connection((HOST, port), timeout=_TIMEOUT_S)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        path = attack.make(site, first + number).path
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        opened.append(client)
    time.sleep(seconds)
    for client in opened:
        with client:
            statuses[int(client.recv(16)[9:12] or 0)] += 1
    return statuses


def _run_aborted(attack: Attack, site: AttackSite, port: int, seconds: float, first: int) -> "Counter[int]":
    # Of each body, the last byte is missing. The oldest connections are closed when too many are open.
    opened, statuses, end = deque[socket.socket](), Counter[int](), time.monotonic() + seconds
    for number in itertools.count(first):
        if time.monotonic() > end:
            break
        request = attack.make(site, number)
        body = request.body or b""
        lines = [f"{name}: {value}" for name, value in request.headers.items()]
        head = [
            f"{request.method} {request.path} HTTP/1.1",
            "Host: x",
            f"Content-Length: {len(body)}",
            *lines,
        ]
        try:
            client = socket.create_connection((HOST, port), timeout=_TIMEOUT_S)
            opened.append(client)
            client.sendall("\r\n".join([*head, "", ""]).encode() + body[:-1])
        except OSError:
            pass
        statuses[0] += 1
        if len(opened) > attack.connections:
            opened.popleft().close()
    for client in opened:
        client.close()
    return statuses


# --- requests -------------------------------------------------------------------------------------


def _commit(site: AttackSite, number: int) -> str:
    return site.commits[number * 7919 % len(site.commits)]


def _reads(path: str) -> Make:
    """Return a function that creates read requests, each of which is different."""

    def make(site: AttackSite, number: int) -> Request:
        put = path.replace("{commit}", _commit(site, number)).replace("{article}", article_id(0))
        put = put.replace("{other}", article_id(number % site.sizes.articles))
        put = put.replace("{picture}", f"picture-{number % PICTURES}.jpg")
        return Request(f"{put}{'&' if '?' in put else '?'}n={number}")

    return make


def _authorized(site: AttackSite) -> dict[str, str]:
    return {"Authorization": f"Bearer {site.token}", "Content-Type": "application/json"}


def _sends(method: str, path: str, body: Callable[[AttackSite, int], object]) -> Make:

    def make(site: AttackSite, number: int) -> Request:
        put = path.replace("{other}", article_id(number % site.sizes.articles))
        data = as_json(body(site, number))
        return Request(put, method, data, _authorized(site))

    return make


def _batch(site: AttackSite, number: int) -> object:
    ids = [article_id((number + i) % site.sizes.articles) for i in range(100)]
    return {
        "operations": [
            {
                "method": "PUT",
                "path": f"/api/articles/{id_}?populate=*",
                "body": {"data": {"summary": f"{number}"}},
            }
            for id_ in ids
        ]
    }


def _login(site: AttackSite, number: int) -> Request:
    body = {"identifier": f"{NAME}{number}", "password": f"wrong {number}"}
    return Request("/api/auth/local", "POST", as_json(body), {"Content-Type": "application/json"})


def _long_login(site: AttackSite, number: int) -> Request:
    return Request("/api/auth/local", "POST", b"[" * 64_000, {"Content-Type": "application/json"})


def _register(site: AttackSite, number: int) -> Request:
    body = {"username": f"u{number}", "email": f"u{number}@example.org", "password": f"password {number}"}
    return Request("/api/auth/local/register", "POST", as_json(body), {"Content-Type": "application/json"})


def _upload(site: AttackSite, number: int) -> Request:
    data = _LARGE_PICTURE
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="l%d.jpg"\r\n'
    head += b"Content-Type: image/jpeg\r\n\r\n"
    headers = {**_authorized(site), "Content-Type": "multipart/form-data; boundary=x"}
    return Request("/api/upload", "POST", head % number + data + b"%d" % number + b"\r\n--x--\r\n", headers)


def _openapi(site: AttackSite, number: int) -> Request:
    return Request(f"/openapi.json?n={number}", headers=_authorized(site) if number % 2 else {})


def _redirects(site: AttackSite, number: int) -> Request:
    return Request(f"/redirects?at={_commit(site, number)}&n={number}", headers=_authorized(site))


def _tokens(site: AttackSite, number: int) -> Request:
    return Request(f"/api/articles/{article_id(0)}", headers={"Authorization": f"Bearer {number:064x}"})


def _transformation(site: AttackSite, number: int) -> Request:
    sides = f"w={1 + number % 900}&h={1 + number // 900 % 900}"
    return Request(f"/uploads/picture-{number % PICTURES}.jpg?{sides}&fm={('avif', 'webp')[number % 2]}")


_LARGE_PICTURE = picture(6000, 4000)
_LEVELS = "[populate][articles][populate][tags]" * 3
_OR = "&".join(f"filters[$or][{i}][body][$containsi]={WORDS[i % len(WORDS)]}zz" for i in range(300))
_DEEP = "&".join(
    f"populate[tags]{_LEVELS}[filters][articles][author][articles][tags][name][$containsi]={word}zz"
    for word in WORDS[:1]
)
_BODY = {"data": {"title": "Dry", "body": "\n\n".join(WORDS * 40)}}

ATTACKS = (
    Attack("a list at 2,000 commits", _reads("/api/articles?at={commit}")),
    Attack("files at 2,000 commits", _reads("/uploads/{picture}?at={commit}")),
    Attack("one file at 2,000 commits", _reads("/uploads/picture-0.jpg?at={commit}")),
    Attack("search at 2,000 commits", _reads("/search?q=harbour&at={commit}")),
    Attack("history of 500 versions", _reads("/history/articles/{article}?pageSize=100")),
    Attack("diff of 500 versions", _reads("/history/articles/{article}/diff?from={commit}")),
    Attack("blame of 500 versions", _reads("/history/articles/{article}/blame")),
    Attack("history of the site", _reads("/history?pageSize=100&author=a")),
    Attack("redirects at 2,000 commits", _redirects),
    Attack("deleted documents", _reads("/history/articles?deleted=true")),
    Attack("changes of a branch", _reads("/branches/conflicts/changes?pageSize=100")),
    Attack("2,000 event streams", _reads("/events"), opens_streams=True),
    Attack("search, mistyped words", _reads(f"/search?q={quote(worst_text('mistyped'))}")),
    Attack("search, beginnings", _reads(f"/search?q={quote(worst_text('beginnings'))}")),
    Attack("search, phrases", _reads(f"/search?q={quote(worst_text('phrases'))}")),
    Attack("_q of many words", _reads(f"/api/articles?_q={quote(' '.join(WORDS))}")),
    Attack("$or of 300", _reads(f"/api/articles?{_OR}")),
    Attack("deep filters in populate", _reads(f"/api/articles?pagination[pageSize]=100&{_DEEP}")),
    Attack("sort through relations", _reads("/api/articles?sort=tags.articles.tags.articles.author.name")),
    Attack(
        "the largest list, populated deeply",
        _reads("/api/articles?pagination[pageSize]=100&populate[tags][populate][articles][populate]=*"),
    ),
    Attack(
        "large lists that are not read",
        _reads("/api/articles?pagination[pageSize]=25&populate[tags][populate][articles]=true"),
        reads=False,
    ),
    Attack("OpenAPI", _openapi),
    Attack("the list of files", _reads("/api/upload/files")),
    Attack("formats of pictures", _reads("/uploads/thumbnail_{picture}")),
    Attack("transformed pictures, each another", _transformation),
    Attack("overview", _reads("/overview")),
    Attack("start page and studio", _reads("/studio")),
    Attack("logins", _login),
    Attack("logins, aborted", _long_login, connections=scaled(1000, 4), completes=False),
    Attack("registrations", _register),
    Attack("unknown tokens", _tokens),
    Attack("restores, tried", _sends(
        "POST", "/history/articles/" + article_id(0) + "/restore?dryRun=true",
        lambda site, n: {"at": _commit(site, n)})),
    Attack("dry runs", _sends("PUT", "/api/articles/{other}?populate=*&dryRun=true", lambda _, n: _BODY)),
    Attack("batches of 100", _sends("POST", "/batch?dryRun=true", _batch), connections=8),
    Attack("branches made", _sends(
        "POST", "/branches", lambda site, n: {"name": f"b{n}", "from": _commit(site, n)})),
    Attack("branches with conflicts, merged", _sends(
        "POST", f"/branches/{CONFLICTING}/merge", lambda *_: {})),
    Attack("large pictures", _upload, connections=8),
)  # fmt: skip
