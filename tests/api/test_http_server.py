"""Tests of the HTTP server: slow clients occupy no thread, and the protocol works as clients expect."""

import asyncio
import io
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from server.api.serving import bodies
from server.api.serving.bodies import Body, Receiver
from server.api.serving.http_server import REFUSAL_PAUSE_S, RESERVED_THREADS, WAITING_THREADS
from server.auth.accounts import Accounts
from server.database.postgres import RESPONSE_TIMEOUT_S
from server.errors import BusyError
from server.storage.write_lock import WriteLock
from tests.servers import free_port, start, stop, wait, workers
from tests.sites import schema, write
from tests.waiting import are_heard, until

MANY = 40  # more clients than the server has threads
LARGE = 50_000_000
LIMIT = 60_000_000
FILES: dict[str, str | bytes] = {
    "content-types/note.json": schema("note", {"title": "string"}),
    "content-types/uploader.json": schema("uploader", {"title": "text"}),
    "site.yaml": (
        f"api: {{upload_limit: {LIMIT}, trusted_proxies: 127.0.0.1}}\n"
        "roles:\n  public: {note: [find, findOne, update], uploader: [create], upload: [find]}\n"
        "search: {index: false}\n"
    ),
    "content/notes/one.md": "---\ntitle: first\n---\n",
    "content/uploads/large.bin": bytes(LARGE),
    "content/uploads/digits.txt": "0123456789",
    "content/uploads/empty.txt": "",
}
# Short timeouts, so that the tests need not wait.
SOON = "from server.api.serving import bodies, connection; connection.HEAD_TIMEOUT_S = 0.7; "
SOON += "bodies.PROGRESS_TIMEOUT_S, bodies.BODY_TIMEOUT_S = 0.7, 1.5"
PATIENCE_S = 60.0  # a client's timeout, long enough for a busy machine


class Server:
    """A running server with one worker."""

    def __init__(self, folder: Path, first: str = "") -> None:
        self.root, self.port = folder / "site", free_port()
        write(self.root, FILES)
        accounts = Accounts(self.root)
        self.token = accounts.create_token("full", "full-access")
        accounts.close()
        self.process = start(self.root, self.port, "--workers=1", first=first)
        wait(self.process, self.port)

    def connect(self, data: bytes = b"") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        client.sendall(data)
        return client

    def exchange(self, data: bytes) -> bytes:
        """Send data and return everything that the server sends until it closes the connection."""
        with self.connect(data) as client:
            return receive(client)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes, Any]:
        """Send a request with the token. Return the response's status, body and headers."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            sent = {"Authorization": f"Bearer {self.token}", **headers}
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def put(self, title: str) -> int:
        body = json.dumps({"data": {"title": title}})
        return self.ask("PUT", "/api/notes/one", body, **{"Content-Type": "application/json"})[0]

    @property
    def title(self) -> str:
        return str(json.loads(self.ask("GET", "/api/notes/one")[1])["data"]["title"])

    @property
    def memory(self) -> int:
        """The worker's peak memory in bytes."""
        (worker,) = workers(self.process.pid)
        status = Path(f"/proc/{worker}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def receive(client: socket.socket) -> bytes:
    """Return everything that arrives until the other side closes the connection."""
    data = b""
    while part := client.recv(65536):
        data += part
    return data


def head(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("usual"))
    yield running
    stop(running.process)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("impatient"), SOON)
    yield running
    stop(running.process)


@pytest.mark.parametrize(
    "sent",
    [
        head("PUT", "/api/notes/one", "Content-Type: application/json", "Content-Length: 100") + b'{"data":',
        head("PUT", "/api/notes/one", "Content-Length: 200000") + b"x" * 100_000,
        head("PUT", "/api/notes/one", "Transfer-Encoding: chunked") + b"4\r\n{   \r\n",
        head("GET", "/api/notes")[:-2],
        head("GET", "/uploads/large.bin"),
    ],
    ids=["half a body", "half a large body", "chunks", "half a head", "an answer that nobody reads"],
)
def test_slow_clients_do_not_keep_others_waiting(server: Server, sent: bytes) -> None:
    assert server.put("before") == 200
    with ExitStack() as stack:
        for _ in range(MANY):
            stack.enter_context(server.connect(sent))
        time.sleep(0.3)
        assert server.put("meanwhile") == 200  # within 10 s, the timeout of a connection here
        assert server.title == "meanwhile"


def test_a_large_file_is_not_in_memory_for_those_who_read_slowly(server: Server) -> None:
    assert server.ask("GET", "/api/notes")[0] == 200
    with ExitStack() as stack:
        clients = [stack.enter_context(server.connect(head("GET", "/uploads/large.bin"))) for _ in range(10)]
        assert all(client.recv(12) == b"HTTP/1.1 200" for client in clients)
        time.sleep(0.5)
        assert server.memory < 4 * LARGE
        read = 0
        while read < LARGE:  # A client that continues to read gets the rest.
            read += len(clients[0].recv(65536))


@pytest.mark.parametrize(
    "sent",
    [
        head("PUT", "/api/notes/one", FORM, "Content-Length: 100") + b"data[title]=stopped",
        head("PUT", "/api/notes/one", FORM, "Transfer-Encoding: chunked") + b"13\r\ndata[title]=stopped\r\n",
    ],
)
def test_who_stops_sending_is_given_up(impatient: Server, sent: bytes) -> None:
    began = time.monotonic()
    answer = impatient.exchange(sent)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"RequestTimeoutError"' in answer
    assert time.monotonic() - began < 8
    assert impatient.title == "first"


def test_who_sends_a_byte_now_and_then_is_given_up(impatient: Server) -> None:
    with impatient.connect(head("PUT", "/api/notes/one", FORM, "Content-Length: 100")) as client:
        client.settimeout(0.3)
        for _ in range(20):
            client.sendall(b"x")
            try:
                assert client.recv(12) == b"HTTP/1.1 408"
                return
            except TimeoutError:
                continue
    raise AssertionError("it goes on")


def test_who_sends_half_a_head_is_given_up(impatient: Server) -> None:
    began = time.monotonic()
    assert impatient.exchange(b"GET /api/notes HTTP/1.1\r\nHost:") == b""
    assert time.monotonic() - began < 8


@pytest.mark.parametrize(
    "sent",
    [
        head("PUT", "/api/notes/one", FORM, "Content-Length: 100") + b"data[title]=cut",
        head("PUT", "/api/notes/one", FORM, "Transfer-Encoding: chunked") + b"f\r\ndata[title]=cut\r\n",
        head("PUT", "/api/notes/one", FORM, "Transfer-Encoding: chunked") + b"f\r\ndata[title]=cut\r\nzz\r\n",
    ],
    ids=["shorter than it says", "no last chunk", "a broken chunk"],
)
def test_of_a_body_that_is_cut_off_nothing_is_written(server: Server, sent: bytes) -> None:
    assert server.put("before") == 200
    with server.connect(sent) as client:
        client.shutdown(socket.SHUT_WR)
        answer = receive(client)
    assert not answer.startswith(b"HTTP/1.1 2")
    time.sleep(0.2)
    assert server.title == "before"


def test_a_body_that_is_no_http_is_told_so_and_logged_nowhere(tmp_path: Path) -> None:
    server = Server(tmp_path)
    begun = head("PUT", "/api/notes/one", FORM, "Transfer-Encoding: chunked")
    for chunk in (b"zz\r\nhello\r\n0\r\n\r\n", b"5\r\nhelloXX\r\n0\r\n\r\n"):
        told, _, body = server.exchange(begun + chunk).partition(b"\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 400 ")
        assert json.loads(body)["error"]["name"] == "BadRequestError"
    server.connect(begun + b"5\r\nhel").close()
    assert server.ask("GET", "/api/notes/one")[0] == 200
    server.process.terminate()
    assert server.process.communicate()[1] == ""


def test_credentials_that_can_not_be_read_are_none_of_the_public(server: Server) -> None:
    for value in (b"Bearer t\xc3\xb6ken", b"Bearer \xff", b"Basic \xff"):
        sent = (
            head("GET", "/api/notes/one", "Connection: close")[:-2] + b"Authorization: " + value + b"\r\n\r\n"
        )
        assert server.exchange(sent).startswith(b"HTTP/1.1 401 "), value


@pytest.mark.parametrize("name", ["If-Match", "Prefer", "Bifolio-After"])
def test_conditions_that_can_not_be_read_are_refused(server: Server, name: str) -> None:
    for value in (b"\xff", "merge; é".encode(), b'"\xc3"'):
        sent = head("GET", "/api/notes/one", "Connection: close")[:-2] + name.encode() + b": " + value
        answer = server.exchange(sent + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 "), value
        error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
        assert error["name"] == "BadRequestError"
        assert error["message"] == f"The {name} header contains characters that are not ASCII"


def test_a_header_with_an_underscore_is_none(server: Server) -> None:
    """Ignore headers with underscores. Otherwise a client could bypass a proxy that overwrites
    `X-Forwarded-Proto` by also sending `X_Forwarded_Proto`.
    """
    for name, believed in (("X-Forwarded-Proto", True), ("X_Forwarded_Proto", False)):
        headers = server.ask("GET", "/api/notes/one", **{name: "https"})[2]
        assert ("Strict-Transport-Security" in headers) == believed, name
    form = b"data[title]=plain"
    sent = head("PUT", "/api/notes/one", FORM, f"Content-Length: {len(form)}", "Content_Length: 9", "X_Y: z")
    with server.connect(sent + form) as client:
        assert client.recv(12) == b"HTTP/1.1 200"
    assert server.title == "plain"


def test_a_head_has_a_largest_size(server: Server) -> None:
    for size, status in ((30_000, b"200"), (300_000, b"431")):
        sent = head("GET", "/api/notes/one", "Connection: close", f"X-Large: {'a' * size}")
        # The server may close the connection before the client has sent everything.
        with server.connect() as client, suppress(ConnectionError):
            client.sendall(sent)
            assert client.recv(12)[9:] == status


def test_a_request_has_one_host(server: Server) -> None:
    first, close = b"GET /api/notes/one HTTP/1.", b"Connection: close\r\n\r\n"
    for hosts, status in ((b"", b"400"), (b"Host: a\r\nHost: b\r\n", b"400"), (b"Host: a\r\n", b"200")):
        answer = server.exchange(first + b"1\r\n" + hosts + close)
        assert answer.split()[1] == status
    assert server.exchange(first + b"0\r\n" + close).split()[1] == b"200"


def test_uploads_that_wait_for_formats_keep_no_write_waiting(server: Server) -> None:
    folder = server.root / ".bifolio/formats"
    folder.mkdir(exist_ok=True)
    image = io.BytesIO()
    Image.linear_gradient("L").resize((600, 400)).save(image, "PNG")
    part = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n'
    form = part + image.getvalue() + b"\r\n--x--\r\n"
    headers = (f"Authorization: Bearer {server.token}", "Content-Type: multipart/form-data; boundary=x")
    request = head("POST", "/api/upload", *headers, f"Content-Length: {len(form)}") + form
    with ExitStack() as stack, WriteLock(folder / "lock", folder).held():
        clients = [stack.enter_context(server.connect(request)) for _ in range(MANY)]
        uploads = server.root / "content/uploads"
        until(lambda: len(list(uploads.glob("a_*.png"))) >= WAITING_THREADS - RESERVED_THREADS)
        began = time.monotonic()
        assert server.put("meanwhile") == 200
        assert time.monotonic() - began < 10
        for client in clients:
            client.close()


def test_a_body_may_come_in_chunks(server: Server) -> None:
    body = head("PUT", "/api/notes/one", FORM, "Transfer-Encoding: chunked", "Connection: close")
    body += b"8\r\ndata[tit\r\nb\r\nle]=chunked\r\n0\r\n\r\n"
    assert server.exchange(body).startswith(b"HTTP/1.1 200")
    assert server.title == "chunked"


@pytest.mark.parametrize(
    "line", ["GET /api/auth", "HEAD /api/nothing", "OPTIONS /api/articles", "GET /metrics/x", "PUT /access"]
)
def test_a_connection_goes_on_after_a_request_that_no_operation_is_for(server: Server, line: str) -> None:
    request = head(*line.split(), "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n"
    with server.connect(request) as client:
        assert client.recv(9) == b"HTTP/1.1 "
        client.sendall(head("GET", "/_health", "Connection: close"))
        assert b"HTTP/1.1 204" in receive(client)


def test_a_body_in_a_coding_that_is_not_known_is_refused(server: Server) -> None:
    assert server.put("before") == 200
    for coding, status in (("gzip, chunked", b"400"), ("Chunked", b"200")):
        begun = head("PUT", "/api/notes/one", FORM, f"Transfer-Encoding: {coding}", "Connection: close")
        answer = server.exchange(begun + b"11\r\ndata[title]=coded\r\n0\r\n\r\n")
        assert answer.split()[1] == status, coding
        assert (server.title == "coded") == (status == b"200")


def test_a_client_may_ask_before_it_sends(server: Server) -> None:
    length = len("data[title]=expected")
    with server.connect(
        head("PUT", "/api/notes/one", FORM, f"Content-Length: {length}", "Expect: 100-continue")
    ) as client:
        assert client.recv(1000).startswith(b"HTTP/1.1 100 Continue")
        client.sendall(b"data[title]=expected")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
    assert server.title == "expected"


def test_requests_may_follow_each_other_before_they_are_answered(server: Server) -> None:
    form = b"data[title]=piped"
    data = head("PUT", "/api/notes/one", FORM, f"Content-Length: {len(form)}") + form
    data += (
        head("GET", "/api/notes/one")
        + head("HEAD", "/api/notes")
        + head("GET", "/_health", "Connection: close")
    )
    answer = server.exchange(data)
    assert [part[:4] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200 ", b"200 ", b"200 ", b"204 "]
    assert answer.count(b'"title":"piped"') == 2


def test_a_body_that_is_too_large_is_refused_unread(server: Server) -> None:
    token = f"Authorization: Bearer {server.token}"
    json_type = "Content-Type: application/json"
    for path, length, status in (
        ("/api/notes", 17_000_000, 413),
        ("/api/upload", LIMIT + 1, 413),
        ("/api/auth/local", 70_000, 413),
        ("/api/users", 70_000, 413),
    ):
        with server.connect(head("POST", path, token, json_type, f"Content-Length: {length}")) as client:
            assert client.recv(12) == f"HTTP/1.1 {status}".encode()
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with server.connect(head("POST", "/api/notes", token, json_type, "Transfer-Encoding: chunked")) as client:
        for _ in range(257):
            client.sendall(chunk)
        assert client.recv(12) == b"HTTP/1.1 413"
    login = head("POST", "/api/auth/local", token, json_type, "Transfer-Encoding: chunked")
    with server.connect(login + chunk + b"1\r\n \r\n0\r\n\r\n") as client:
        assert client.recv(12) == b"HTTP/1.1 413"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/history/commit", {"message": "m", "files": ["content/notes/none.md"] * 5000}),
        (
            "POST",
            "/problems/fix",
            {
                "fixes": [{"path": "content/notes/none.md", "key": "title", "before": "a", "after": "b"}]
                * 1000
            },
        ),
        ("PUT", "/source/notes/one", {"data": {"text": "---\ntitle: first\n---\n" + "text\n" * 20_000}}),
    ],
    ids=["many files", "many fixes", "a long text"],
)
def test_what_names_much_may_be_longer_than_a_login(
    server: Server, method: str, path: str, body: Any
) -> None:
    status, said = server.ask(method, path, json.dumps(body), **{"Content-Type": "application/json"})[:2]
    assert status != 413
    assert b"The body " not in said
    large = {"Content-Type": "application/json", "Authorization": ""}
    assert server.ask(method, path, json.dumps(body), **large)[0] in (401, 403, 413)


def test_nothing_is_taken_of_an_upload_by_somebody_who_may_not(server: Server) -> None:
    kind = "Content-Type: multipart/form-data; boundary=x"
    with server.connect(head("POST", "/api/upload", kind, f"Content-Length: {LIMIT}")) as client:
        assert client.recv(12) == b"HTTP/1.1 403"
    wrong = "Authorization: Bearer nobody"
    with server.connect(head("POST", "/api/upload", wrong, kind, f"Content-Length: {LIMIT}")) as client:
        assert client.recv(12) == b"HTTP/1.1 401"


@pytest.mark.parametrize("length", ["Content-Length: 16000000", "Transfer-Encoding: chunked"])
def test_nothing_large_is_taken_of_content_by_somebody_who_may_not_write_it(
    server: Server, length: str
) -> None:
    wrong, kind = "Authorization: Bearer nobody", "Content-Type: application/json"
    sent = b"20000\r\n" + b" " * 0x20000 + b"\r\n" if "chunked" in length else b""
    for method, path, headers, status in (
        ("POST", "/api/notes", (), b"403"),
        ("DELETE", "/api/notes/one", (), b"403"),
        ("POST", "/api/notes", (wrong,), b"401"),
        ("PUT", "/api/notes/one", (wrong,), b"401"),
    ):
        with server.connect(head(method, path, *headers, kind, length) + sent) as client:
            assert client.recv(12) == b"HTTP/1.1 " + status


def test_a_type_whose_name_begins_like_uploads_is_content(server: Server) -> None:
    body = json.dumps({"data": {"title": "x" * 70_000}})
    headers = {"Authorization": "", "Content-Type": "application/json"}
    assert server.ask("POST", "/api/uploaders", body, **headers)[0] == 201


def test_a_body_counts_until_it_is_closed(tmp_path: Path) -> None:
    """A body counts towards the limits until it is closed, because it may wait for a thread after it has
    arrived. Bodies in memory have their own limit.
    """

    class Sender:
        def __init__(self, *parts: bytes) -> None:
            self.parts = [*parts, b""]

        async def read(self) -> bytes:
            return self.parts.pop(0)

    async def receive_all() -> None:
        receiver = Receiver(lambda: tmp_path)

        async def go(size: int) -> Body:
            return await receiver.receive(Sender(bytes(size)), size, 10**9)

        large = [await go(900_000) for _ in range(80)]
        in_memory = sum(isinstance(body.file, BytesIO) for body in large)
        assert in_memory * 900_000 <= bodies.MAX_ALL_MEMORY_BYTES < (in_memory + 1) * 900_000
        assert all(len(body.file.read()) == 900_000 for body in large)
        receiver._room = 1_000_000
        with pytest.raises(BusyError):
            await go(1_100_000)
        for body in large:
            body.close()
        assert (receiver._room, receiver.in_memory) == (1_000_000 + 80 * 900_000, 0)
        with await go(1_100_000) as body:
            assert body.length == 1_100_000

    asyncio.run(receive_all())


def test_large_bodies_leave_room_for_small_ones(tmp_path: Path) -> None:
    server = Server(
        tmp_path, "from server.api.serving import bodies; bodies.MAX_RECEIVED_BYTES = 1_000_000; "
    )
    begun = head("PUT", "/api/notes/one", FORM, "Content-Length: 2000000") + b"x" * 990_000
    large = head("PUT", "/api/notes/one", FORM, "Content-Length: 200000") + b"x" * 200_000
    small = json.dumps({"data": {"title": "later"}}) + " " * 30_000
    try:
        with server.connect(begun):
            time.sleep(1)  # until the server has received the request
            with server.connect(large) as client:
                assert client.recv(12) == b"HTTP/1.1 503"
            assert (
                server.ask("PUT", "/api/notes/one", small, **{"Content-Type": "application/json"})[0] == 200
            )
    finally:
        stop(server.process)


def test_a_large_upload_is_not_in_memory(server: Server) -> None:
    start_of_part = b'--x\r\nContent-Disposition: form-data; name="files"; filename="big.bin"\r\n\r\n'
    body = start_of_part + bytes(40_000_000) + b"\r\n--x--\r\n"
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    assert server.ask("POST", "/api/upload", start_of_part + b"1\r\n--x--\r\n", **kind)[0] == 201
    before = server.memory
    status, answer, _ = server.ask("POST", "/api/upload", body, **kind)
    assert status == 201
    assert json.loads(answer)[0]["size"] == 40_000.0
    assert server.memory - before < 15_000_000
    # Abandoned requests from earlier tests may still be deleting their files.
    until(lambda: not list((server.root / ".bifolio/incoming").iterdir()))


def test_files_are_sent_in_whole_in_part_and_not_again(server: Server) -> None:
    status, body, headers = server.ask("GET", "/uploads/digits.txt")
    assert (status, body, headers["Content-Length"]) == (200, b"0123456789", "10")
    status, body, part = server.ask("GET", "/uploads/digits.txt", Range="bytes=2-4")
    assert (status, body, part["Content-Range"], part["Content-Length"]) == (206, b"234", "bytes 2-4/10", "3")
    assert server.ask("GET", "/uploads/digits.txt", Range="bytes=20-")[0] == 416
    assert server.ask("GET", "/uploads/digits.txt", **{"If-None-Match": headers["ETag"]})[:2] == (304, b"")
    status, body, of_head = server.ask("HEAD", "/uploads/digits.txt")
    assert (status, body, of_head["Content-Length"]) == (200, b"", "10")
    assert server.ask("GET", "/uploads/empty.txt")[:2] == (200, b"")


def test_what_has_begun_is_finished_when_the_server_ends(tmp_path: Path) -> None:
    running = Server(tmp_path)
    form = b"data[title]=last"
    told = head("PUT", "/api/notes/one", FORM, f"Content-Length: {len(form)}", "Expect: 100-continue")
    with running.connect(told + form[:4]) as client:
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"  # The server waits for the body.
        running.process.terminate()
        time.sleep(0.5)
        client.sendall(form[4:])
        assert client.recv(12) == b"HTTP/1.1 200"
    running.process.communicate(timeout=20)
    assert running.process.returncode == 0
    assert "last" in (running.root / "content/notes/one.md").read_text()


def test_connections_never_take_up_all_open_files(tmp_path: Path) -> None:
    few = f"{SOON}; import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (260, 260))"
    running = Server(tmp_path, few)
    try:
        assert running.put("before") == 200
        with ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(running.connect())
            # once the server has closed the silent connections
            until(lambda: running.put("meanwhile") == 200)
            assert running.title == "meanwhile"
    finally:
        stop(running.process)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        head("GET", "/api/notes")[:-2],
        head("GET", "/api/notes"),
        head("POST", "/api/auth/local", "Content-Length: 60000") + b"x",
    ],
    ids=["nothing", "half a head", "a request", "half a body"],
)
def test_a_client_with_all_connections_keeps_nobody_out(tmp_path: Path, sent: bytes) -> None:
    few = "from server.api.serving import connection, http_server; "
    few += "http_server.MAX_CONNECTIONS, connection.HEAD_TIMEOUT_S = 100, 600"
    running = Server(tmp_path, few)
    try:
        with ExitStack() as stack, running.connect() as kept:
            for _ in range(300):
                greedy = socket.create_connection(("127.0.0.1", running.port), 60, ("127.0.0.2", 0))
                stack.enter_context(greedy).sendall(sent)
            assert running.put("meanwhile") == 200
            kept.sendall(head("GET", "/api/notes/one", "Connection: close"))
            assert b"meanwhile" in receive(kept)
    finally:
        stop(running.process)


def costly(name: str) -> bytes:
    """Return a request with many filters that has never been sent before, so no cache can help."""
    filters = "&".join(f"filters[$and][{n}][title][$notContainsi]={name}{n}" for n in range(90))
    return head("GET", f"/api/notes?{filters}")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("large")
    text = "of many words, again and again, " * 1800
    files: dict[str, str | bytes] = {
        "content-types/note.json": schema("note", {"title": "text"}),
        "site.yaml": "roles: {public: {note: [find, findOne]}}\nsearch: {index: false}\n",
    }
    files |= {f"content/notes/n{n}.md": f"---\ntitle: {text}{n}\n---\n" for n in range(300)}
    write(folder / "site", files)
    running = Server(folder, "from server.index import budget; budget.COSTLY_CPU_S = 0.005")
    yield running
    stop(running.process)


def test_costly_requests_do_not_keep_others_waiting(large: Server) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(large.connect(costly(f"many{n}"))) for n in range(MANY)]
        for _ in range(5):
            assert large.ask("GET", "/api/notes/n7")[0] == 200
        statuses = {client.recv(12)[9:] for client in clients}
    assert statuses == {b"200", b"503"}


def test_a_client_with_many_costly_requests_takes_no_place_of_another(large: Server) -> None:
    with ExitStack() as stack:
        many = [stack.enter_context(large.connect(costly(f"first{n}"))) for n in range(MANY)]
        began = time.monotonic()
        until(lambda: are_heard(many))  # The first rejection arrives, because the queue is full.
        other = socket.create_connection(("127.0.0.1", large.port), PATIENCE_S, ("127.0.0.2", 0))
        with other:
            other.sendall(costly("other"))
            assert other.recv(12)[9:] == b"200"
        refused = [client.recv(12)[9:] for client in many].count(b"503")
        assert refused
        assert time.monotonic() - began > REFUSAL_PAUSE_S


def processor_time(process: int) -> int:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_nothing_more_is_done_for_clients_that_have_left(large: Server) -> None:
    (worker,) = workers(large.process.pid)

    def spent(leave: bool) -> int:
        began = processor_time(worker)
        with ExitStack() as stack:
            clients = [stack.enter_context(large.connect(costly(f"{leave}{n}"))) for n in range(9)]
            if not leave:
                assert {client.recv(12)[9:] for client in clients} == {b"200"}
        seen = -1
        while seen != (seen := processor_time(worker)):
            time.sleep(0.3)
        return seen - began

    assert spent(leave=True) < 0.6 * spent(leave=False)


def test_a_batch_whose_client_has_left_is_not_written(large: Server) -> None:
    note = {"body": {"data": {"title": "never written"}}}
    operations = [{"method": "PUT", "path": f"/api/notes/n{n % 300}", **note} for n in range(100)]
    body = json.dumps({"operations": operations}).encode()
    (worker,) = workers(large.process.pid)
    length, kind = f"Content-Length: {len(body)}", "Content-Type: application/json"
    large.connect(head("POST", "/batch", f"Authorization: Bearer {large.token}", length, kind) + body).close()
    seen = -1
    while seen != (seen := processor_time(worker)):
        time.sleep(0.3)
    assert "never" not in (large.root / "content/notes/n0.md").read_text()
    assert (
        large.ask("PUT", "/api/notes/n0", json.dumps(note["body"]), **{"Content-Type": "application/json"})[0]
        == 200
    )


def test_accounts_elsewhere_that_do_not_answer_keep_no_public_read_waiting(tmp_path: Path) -> None:
    with ExitStack() as stack:
        database = stack.enter_context(socket.socket())
        database.bind(("127.0.0.1", 0))  # The socket refuses connections until it listens.
        url = f"postgresql://bifolio@127.0.0.1:{database.getsockname()[1]}/bifolio"
        site = f"accounts: {url}\nroles: {{public: {{note: [find, findOne]}}}}\nsearch: {{index: false}}\n"
        write(tmp_path, {**FILES, "site.yaml": site})
        port = free_port()
        process = start(tmp_path, port, "--workers=1")
        stack.callback(stop, process)
        wait(process, port)
        database.listen(50)

        def connect(*headers: str) -> socket.socket:
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S))
            client.sendall(head("GET", "/api/notes/one", "Connection: close", *headers))
            return client

        began = time.monotonic()
        unknown = [connect(f"Authorization: Bearer made-up-{n}") for n in range(6)]
        time.sleep(0.3)
        for _ in range(3):
            assert receive(connect()).startswith(b"HTTP/1.1 200")
        # The requests that need the database wait; the other requests have not waited.
        assert not are_heard(unknown)
        assert {receive(client)[9:12] for client in unknown} == {b"503"}
        # all at the same time, not one after the other
        assert time.monotonic() - began < 4 * RESPONSE_TIMEOUT_S
