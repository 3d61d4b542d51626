"""Tests of malicious bodies and heads: compressed, endless, in broken chunks, or sent very slowly by many
clients.
"""

import gzip
import re
import socket
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import brotli
import pytest

from server.api.serving.connection import HEAD_TIMEOUT_S
from tests.api.test_http_server import FORM, SOON, Server, head, receive
from tests.servers import stop

BODY = b"data[title]=taken"
CHUNKED = "Transfer-Encoding: chunked"
CLOSE = "Connection: close"
NEXT = head("GET", "/api/notes/one", CLOSE)
DRIPPERS = 50
ZSTD = b"\x28\xb5\x2f\xfd\x04\x58" + b"\x02\x00\x10\x00" * 1000  # frames that each repeat a single byte


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("hostile"))
    yield running
    stop(running.process)


def statuses(answer: bytes) -> list[bytes]:
    return re.findall(rb"HTTP/1\.[01] (\d{3}) ", answer)


def in_chunks(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)


BOMBS = {
    "gzip": gzip.compress(bytes(20_000_000)),
    "br": brotli.compress(bytes(20_000_000), quality=5),
    "zstd": ZSTD,
    "deflate": zlib.compress(bytes(20_000_000)),
    "gzip, gzip": gzip.compress(gzip.compress(bytes(20_000_000))),
    "identity, gzip": gzip.compress(BODY),
    "GZip": gzip.compress(BODY),
    "unknown": BODY,
}


@pytest.mark.parametrize("coding", BOMBS)
def test_a_compressed_body_is_refused_and_never_unpacked(server: Server, coding: str) -> None:
    assert server.put("before") == 200
    before = server.memory
    bomb = BOMBS[coding]
    for length, body in ((f"Content-Length: {len(bomb)}", bomb), (CHUNKED, in_chunks(bomb))):
        sent = head("PUT", "/api/notes/one", FORM, f"Content-Encoding: {coding}", length, CLOSE) + body
        assert statuses(server.exchange(sent)) == [b"415"], length
    assert server.memory - before < 10_000_000
    assert server.title == "before"


CHUNKS = {
    "a size with 0x": (b"0x11\r\n%s\r\n0\r\n\r\n", False),
    "a size with a sign": (b"+11\r\n%s\r\n0\r\n\r\n", False),
    "a negative size": (b"-11\r\n%s\r\n0\r\n\r\n", False),
    "a size that is no number": (b"z1\r\n%s\r\n0\r\n\r\n", False),
    "a size of too many digits": (b"fffffffffffffffff\r\n%s\r\n0\r\n\r\n", False),
    "no size": (b"\r\n%s\r\n0\r\n\r\n", False),
    "a space before a size": (b" 11\r\n%s\r\n0\r\n\r\n", False),
    "a space behind a size": (b"11 \r\n%s\r\n0\r\n\r\n", False),
    "NUL behind a size": (b"11\0\r\n%s\r\n0\r\n\r\n", False),
    "a size in a bare line": (b"11\n%s\r\n0\r\n\r\n", False),
    "a bare line behind a chunk": (b"11\r\n%s\n0\r\n\r\n", False),
    "a bare line at the end": (b"11\r\n%s\r\n0\r\n\n", False),
    "a bare line in an extension": (b"11;a\n\r\n%s\r\n0\r\n\r\n", False),
    "a chunk that is longer": (b"10\r\n%s\r\n0\r\n\r\n", False),
    "a chunk that is shorter": (b"12\r\n%s\r\n0\r\n\r\n", False),
    "a trailer": (b"11\r\n%s\r\n0\r\nContent-Length: 5\r\n\r\n", False),
    "a long extension": (b"11;" + b"a" * 200_000 + b"\r\n%s\r\n0\r\n\r\n", False),
    "zeros without end": (b"0" * 200_000 + b"11\r\n%s\r\n0\r\n\r\n", False),
    "an extension": (b'11;a=b;c="d"\r\n%s\r\n0\r\n\r\n', True),
    "zeros": (b"00000000000000000000011\r\n%s\r\n0\r\n\r\n", True),
}


@pytest.mark.parametrize(("chunks", "taken"), CHUNKS.values(), ids=CHUNKS)
def test_broken_chunks_end_the_connection_and_write_nothing(
    server: Server, chunks: bytes, taken: bool
) -> None:
    assert server.put("before") == 200
    answer = server.exchange(head("PUT", "/api/notes/one", FORM, CHUNKED) + chunks % BODY + NEXT)
    assert statuses(answer) == ([b"200", b"200"] if taken else [b"400"])
    assert server.title == ("taken" if taken else "before")


def test_a_body_of_chunks_of_one_byte_is_taken(server: Server) -> None:
    text = b'{"data": {"title": "in parts"}}' + b" " * 30_000
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in text) + b"0\r\n\r\n"
    begin = head("PUT", "/api/notes/one", "Content-Type: application/json", CHUNKED)
    assert statuses(server.exchange(begin + chunks + NEXT)) == [b"200", b"200"]
    assert server.title == "in parts"


ENDLESS = {
    "chunks": (head("POST", "/api/auth/local", FORM, CHUNKED), b"400\r\n" + b"a" * 1024 + b"\r\n"),
    "an extension": (head("PUT", "/api/notes/one", FORM, CHUNKED) + b"11;", b"a" * 1024),
    "extensions": (head("PUT", "/api/notes/one", FORM, CHUNKED), b"1;" + b"a" * 1024 + b"\r\nx\r\n"),
    "chunks nobody reads": (head("GET", "/api/notes/one", CHUNKED), b"400\r\n" + b"a" * 1024 + b"\r\n"),
    "an extension nobody reads": (head("GET", "/api/notes/one", CHUNKED) + b"11;", b"a" * 1024),
    "headers": (b"GET /api/notes/one HTTP/1.1\r\nHost: x\r\n", b"X: y\r\n" * 100),
    "a header": (b"GET /api/notes/one HTTP/1.1\r\nHost: x\r\nX: ", b"y" * 1024),
    "a target": (b"GET /api/notes/one", b"a" * 1024),
    "a method": (b"", b"A" * 1024),
    "empty lines": (b"", b"\r\n" * 512),
}


@pytest.mark.parametrize(("begin", "again"), ENDLESS.values(), ids=ENDLESS)
def test_what_has_no_end_is_cut_off(server: Server, begin: bytes, again: bytes) -> None:
    """The server must close the connection long before a timeout expires."""
    before, began = server.memory, time.monotonic()
    with server.connect(begin) as client, suppress(ConnectionError):
        for _ in range(4_000_000 // len(again)):
            client.sendall(again)
        assert set(statuses(receive(client))) <= {b"200", b"400", b"403", b"413", b"414", b"431"}
    assert time.monotonic() - began < HEAD_TIMEOUT_S / 2
    assert server.memory - before < 30_000_000
    assert server.title


def test_many_who_send_a_byte_now_and_then_are_given_up_and_keep_nobody_waiting(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    impatient = Server(tmp_path_factory.mktemp("dripped"), SOON)
    kinds = (
        (b"", NEXT * 9),
        (b"GET /api/notes/one HTTP/1.1\r\nHost: x\r\n", b"X-Y: " + b"z" * 900),
        (head("PUT", "/api/notes/one", FORM, "Content-Length: 900"), b"a" * 900),
        (head("PUT", "/api/notes/one", FORM, CHUNKED) + b"ff;", b"a" * 900),
        (head("GET", "/api/notes/one", CHUNKED), b"1\r\na\r\n" * 150),
    )
    try:
        with ExitStack() as stack:
            clients = {
                stack.enter_context(impatient.connect(begin)): rest for begin, rest in kinds * (DRIPPERS // 5)
            }
            began, sent = time.monotonic(), 0
            while clients and sent < 900:
                for client in list(clients):
                    if drip(client, clients[client][sent : sent + 1]):
                        del clients[client]
                if not sent % 10:
                    assert impatient.put("meanwhile") == 200
                sent += 1
                time.sleep(0.05)
        assert not clients
        assert time.monotonic() - began < 30
    finally:
        stop(impatient.process)


def drip(client: socket.socket, byte: bytes) -> bool:
    """Send one byte and return whether the server has closed the connection."""
    client.setblocking(False)
    with suppress(BlockingIOError):
        try:
            client.send(byte)
            while client.recv(65_536):
                pass
        except ConnectionError:
            return True
        return True
    return False


@pytest.mark.parametrize("host", ["a b", "a/b", "user@a", "a#b", "a?b", 'a"b', "a,b", "a\\b", "<a>", "a\tb"])
def test_a_host_that_can_be_none_is_refused(server: Server, host: str) -> None:
    sent = f"GET /api/notes/one HTTP/1.1\r\nHost: {host}\r\n{CLOSE}\r\n\r\n".encode()
    assert statuses(server.exchange(sent)) == [b"400"]


@pytest.mark.parametrize("host", ["", "a", "a.example:80", "[::1]:80", "127.0.0.1", "xn--a", "a_b", "%C3%A9"])
def test_any_other_host_is_one(server: Server, host: str) -> None:
    with server.connect(f"GET /api/notes/one HTTP/1.1\r\nHost: {host}\r\n{CLOSE}\r\n\r\n".encode()) as client:
        assert statuses(receive(client)) == [b"200"]
