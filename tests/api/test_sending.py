"""Tests of large responses: how much memory and disk space clients that read slowly can occupy."""

import asyncio
import io
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from server.api.serving.file_body import PART_BYTES, FileBody
from server.api.serving.sending import LargeBodies
from tests.api import test_pipelining as pipelining
from tests.servers import free_port, get, start, stop, wait, workers
from tests.sites import collection, documents, write
from tests.waiting import until

NOTES, NOTE_BYTES = 100, 80_000
SIZE = NOTES * NOTE_BYTES  # minimum size of the list's response in bytes
FILES = {
    **collection("note", {"body": {"type": "richtext"}}),
    **documents("notes", **{f"n{n}": {"body": chr(97 + n % 26) * NOTE_BYTES} for n in range(NOTES)}),
    "site.yaml": "roles: {public: {note: [find]}}\nsearch: {index: false}\n",
}
# One list fits into the memory limit, and three fit into the limit for files.
LIMITS = "from server.api.serving import sending; "
LIMITS += f"sending.MAX_MEMORY_BYTES, sending.MAX_FILE_BYTES = {int(1.5 * SIZE)}, {int(3.5 * SIZE)}"
CACHED_NOTES = 50  # A response with this many notes is cached, but does not fit into a socket's buffer.
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    root, port = tmp_path_factory.mktemp("site"), free_port()
    write(root, FILES)
    process = start(root, port, "--workers=1", first=LIMITS)
    wait(process, port)
    (worker,) = workers(process.pid)
    spooled[port], sites[port] = worker, root
    yield port
    stop(process)


sites: dict[int, Path] = {}
spooled: dict[int, int] = {}  # process id of each server's worker, by port


def request(
    stack: ExitStack, port: int, query: str, notes: int = NOTES, source: str = "127.0.0.1"
) -> socket.socket:
    """Send a request without reading the response, and return the connection."""
    client = stack.enter_context(socket.socket())
    client.bind((source, 0))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(PATIENCE_S)
    client.connect(("127.0.0.1", port))
    path = f"/api/notes?pagination[pageSize]={notes}&{query}"
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    return client


def requests(stack: ExitStack, port: int, count: int, name: str) -> list[socket.socket]:
    """Send requests one after the other, so that the server handles them in this order.

    The next request is sent once the previous response has begun.
    """
    clients = []
    for n in range(count):
        clients.append(request(stack, port, f"{name}={n}"))
        assert clients[-1].recv(12)[-3:] == b"200"
    return clients


def read(client: socket.socket, begun: bytes = b"") -> bytes:
    parts = [begun]
    while part := client.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)


def files_of(port: int) -> int:
    """Return how many unnamed files the worker has open in .bifolio/incoming/."""
    descriptors = Path(f"/proc/{spooled[port]}/fd").iterdir()
    links = (str(one.readlink()) for one in descriptors if one.is_symlink())
    return sum("/incoming/" in link for link in links)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="lists open files in /proc")
def test_unread_responses_go_to_files_and_arrive_whole(port: int) -> None:
    with ExitStack() as stack:
        clients, begun = [], []
        for n in range(5):
            clients.append(request(stack, port, f"n={n}"))
            begun.append(clients[-1].recv(12))
        assert [one[-3:] for one in begun] == [b"200"] * 4 + [b"503"]
        until(lambda: files_of(port) == 3)
        answers = [read(client, first) for client, first in zip(clients, begun, strict=True)]
    bodies = [answer.partition(b"\r\n\r\n")[2] for answer in answers]
    assert len(bodies[0]) > SIZE
    assert bodies[1:4] == bodies[:1] * 3
    assert b"Retry-After" in answers[4] or b"retry-after" in answers[4]
    assert b"Too many large responses" in bodies[4]
    until(lambda: files_of(port) == 0)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="lists open files in /proc")
def test_a_cached_response_occupies_memory_once(port: int) -> None:
    with ExitStack() as stack:
        read(request(stack, port, "same", CACHED_NOTES))
        clients = [request(stack, port, "same", CACHED_NOTES) for _ in range(8)]
        assert {client.recv(12)[-3:] for client in clients} == {b"200"}
        assert files_of(port) == 0
        # Only the bodies are compared: the header Date changes with the second.
        assert len({read(client).partition(b"\r\n\r\n")[2] for client in clients}) == 1


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="lists open files in /proc")
def test_a_client_that_leaves_gives_its_room_back(port: int) -> None:
    for turn in range(3):
        with ExitStack() as stack:
            requests(stack, port, 4, f"turn={turn}&n")
        until(lambda: files_of(port) == 0)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="lists open files in /proc")
def test_a_client_with_many_unread_responses_keeps_no_room_from_another(port: int) -> None:
    with ExitStack() as stack:
        greedy = requests(stack, port, 4, "greedy")
        until(lambda: files_of(port) == 3)
        other = request(stack, port, "other", source="127.0.0.2")
        assert other.recv(12)[-3:] == b"200"
        assert len(read(other)) > SIZE
        assert len(read(greedy[0])) > SIZE  # This response is in memory.
        assert [is_whole(client) for client in greedy[1:]] == [False, True, True]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="lists open files in /proc")
def test_bodies_in_files_leave_files_for_connections(tmp_path: Path) -> None:
    few = "from server.api.serving import http_server, sending; sending.MAX_MEMORY_BYTES = 0; "
    few += "http_server.MAX_CONNECTIONS, http_server.RESERVED_FILES = 60, 40"
    root, port = tmp_path / "site", free_port()
    write(root, FILES)
    process = start(root, port, "--workers=1", first=few)
    try:
        wait(process, port)
        (spooled[port],) = workers(process.pid)
        with ExitStack() as stack:
            for n in range(50):
                request(stack, port, f"n={n}", CACHED_NOTES)
            until(lambda: files_of(port) == 50)
            assert read(request(stack, port, "other", 1)).startswith(b"HTTP/1.1 200 ")
    finally:
        stop(process)


def test_a_client_that_does_not_read_has_a_small_part_of_a_body_in_memory(tmp_path: Path) -> None:
    async def go() -> None:
        server, body, large = pipelining.Server(), bytes(5_000_000), LargeBodies(lambda: tmp_path)
        server.holds = True
        async with pipelining.connected(server) as client:
            await pipelining.send(client, pipelining.GET % 1)
            await pipelining.until(lambda: bool(server.held))
            sending = asyncio.create_task(large.send(body, 200, [("Path", "/1")], server.held[0]))
            await pipelining.until(lambda: server.connections[0].unacknowledged_bytes > 0)
            await pipelining.settle()
            assert server.connections[0].unacknowledged_bytes < 400_000
            received = 0
            while received < len(body):
                received += len(await asyncio.get_running_loop().sock_recv(client, 1 << 20))
            await sending

    asyncio.run(go())


def is_whole(client: socket.socket) -> bool:
    try:
        return len(read(client)) > SIZE
    except ConnectionResetError:
        return False


def test_a_file_that_grows_while_it_is_sent_is_not_sent_further(port: int) -> None:
    path, size = sites[port] / "content/uploads/grows.txt", 20_000_000
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"a" * size)
    until(lambda: get(port, f"/uploads/{path.name}")[0] == 200)
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        head = b"GET /uploads/%s HTTP/1.1\r\nHost: x\r\n\r\n" % path.name.encode()
        client.sendall(head)
        begun = client.recv(1000)
        with path.open("ab") as file:
            file.write(b"HTTP/1.1 200 OK\r\n\r\n")
        client.sendall(b"GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answers = read(client, begun)
    body = answers.partition(b"\r\n\r\n")[2]
    assert body[:size].strip(b"a") == b""
    assert body[size:].startswith(b"HTTP/1.1 404")
    assert answers.count(b"HTTP/1.1") == 2


def test_a_file_is_read_from_memory_or_from_disk(tmp_path: Path) -> None:
    data = bytes(range(256)) * (PART_BYTES // 100)
    (tmp_path / "a").write_bytes(data)
    body = FileBody((tmp_path / "a").open("rb"))
    first, rest = body.read_cached(), iter(body)
    second = next(rest)
    assert (len(first), first + second) == (PART_BYTES, data[: 2 * PART_BYTES])
    assert first + second + body.read_cached() == data
    assert (body.read_cached(), [*rest]) == (b"", [])
    body.close()


def test_what_is_not_a_file_on_disk_is_not_read_on_the_event_loop() -> None:
    body = FileBody(io.BytesIO(b"abc"))
    assert (body.read_cached(), [*body]) == (b"", [b"abc"])
