"""Tests of HTTP/1.1 syntax as different clients write it, sent at once and in pieces."""

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.api.serving.heads import MAX_LIST_CHARS, encode_head
from tests.api.test_http_server import FORM, Server, head, receive
from tests.servers import stop

CLOSE = "Connection: close"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("syntax"))
    yield running
    stop(running.process)


def line(first: str, *headers: str) -> bytes:
    return "\r\n".join([first, *headers, "", ""]).encode("latin-1")


REFUSED = {
    "no HTTP": (b"\x16\x03\x01\x02\r\n\r\n", 400),
    "HTTP/0.9": (b"GET /_health\r\n\r\n", 400),
    "HTTP/2": (line("GET /_health HTTP/2.0", "Host: x"), 400),
    "a space in the target": (line("GET /a b HTTP/1.1", "Host: x"), 400),
    "bytes that are no UTF-8": (line("GET /\xff HTTP/1.1", "Host: x"), 400),
    "no path": (line("GET a HTTP/1.1", "Host: x"), 400),
    "another protocol's method": (line("CONNECT x:80 HTTP/1.1", "Host: x"), 400),
    "a long target": (line(f"GET /{'a' * 70_000} HTTP/1.1", "Host: x"), 414),
    "many headers": (line("GET /_health HTTP/1.1", "Host: x", *["X: y"] * 100), 431),
    "a space before a colon": (line("GET /_health HTTP/1.1", "Host: x", "X : y"), 400),
    "a folded header": (line("GET /_health HTTP/1.1", "Host: x", "X: y\r\n z"), 400),
    "NUL in a header": (line("GET /_health HTTP/1.1", "Host: x", "X: y\0"), 400),
    "two lengths": (head("PUT", "/api/notes/one", "Content-Length: 1", "Content-Length: 2") + b"x", 400),
    "a negative length": (head("PUT", "/api/notes/one", "Content-Length: -1"), 400),
    "chunks and a length": (
        head("PUT", "/api/notes/one", "Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
        400,
    ),
    "chunks of HTTP/1.0": (
        line("PUT /api/notes/one HTTP/1.0", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
        400,
    ),
    "a trailer": (
        head("PUT", "/api/notes/one", FORM, "Transfer-Encoding: chunked")
        + b"3\r\na=b\r\n0\r\nX-Y: z\r\n\r\n",
        400,
    ),
}


@pytest.mark.parametrize(("sent", "status"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_request_is_refused_and_the_connection_closed(
    server: Server, sent: bytes, status: int
) -> None:
    answer = server.exchange(sent)
    assert re.findall(rb"HTTP/1\.. (\d{3}) ", answer) == [str(status).encode()]
    told = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (told["data"], told["error"]["status"], bool(told["error"]["message"])) == (None, status, True)
    assert server.title


READ = {
    "as usual": (head("GET", "/api/notes/one", CLOSE), 200),
    "an absolute target": (line("GET http://x/api/notes/one HTTP/1.1", "Host: x", CLOSE), 200),
    "an absolute target without a path": (line("GET http://x HTTP/1.1", "Host: x", CLOSE), 200),
    "a fragment": (head("GET", "/api/notes/one#part", CLOSE), 200),
    "an escaped path": (head("GET", "/api/notes/%6Fne", CLOSE), 200),
    "UTF-8 in the path": (line("GET /api/notes/\xc3\xa9 HTTP/1.1", "Host: x", CLOSE), 404),
    "UTF-8 in the query": (line("GET /api/notes?filters[title]=\xc3\xa9 HTTP/1.1", "Host: x", CLOSE), 200),
    "a quote in the path": (line('GET /api/notes/a"b HTTP/1.1', "Host: x", CLOSE), 404),
    "quotes in the query": (line('GET /api/notes?filters[title]="<{|}>^`\\ HTTP/1.1', "Host: x", CLOSE), 200),
    "an empty header": (head("GET", "/api/notes/one", "Authorization:", "X-Y: z", CLOSE), 200),
    "lines before it": (b"\r\n\r\n" + head("GET", "/api/notes/one", CLOSE), 200),
    "HTTP/1.0": (line("GET /api/notes/one HTTP/1.0"), 200),
}


@pytest.mark.parametrize(("sent", "status"), READ.values(), ids=READ)
def test_a_request_may_come_at_once_twice_or_in_pieces(server: Server, sent: bytes, status: int) -> None:
    answers = [server.exchange(sent), server.exchange(sent)]
    if "\xc3" not in sent.decode("latin-1"):
        with server.connect() as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for begin in range(0, len(sent), 9):
                client.sendall(sent[begin : begin + 9])
                time.sleep(0.001)
            answers.append(receive(client))
    assert {answer.split()[1] for answer in answers} == {str(status).encode()}
    assert len({answer.partition(b"\r\n\r\n")[2] for answer in answers}) == 1


def test_a_connection_of_http_1_0_is_kept_if_it_asks_for_that(server: Server) -> None:
    sent = line("GET /_health HTTP/1.0", "Connection: keep-alive")
    with server.connect(sent) as client:
        assert b"\r\nconnection: keep-alive\r\n" in client.recv(1000)
        client.sendall(line("GET /_health HTTP/1.0"))
        assert b"HTTP/1.0 204 " in receive(client)


@pytest.mark.parametrize("upgrade", ["h2c", "websocket"])
def test_a_client_that_asks_for_another_protocol_gets_this_one(server: Server, upgrade: str) -> None:
    form = b"data[title]=upgraded"
    asks = ("Connection: Upgrade", f"Upgrade: {upgrade}")
    put = head("PUT", "/api/notes/one", FORM, *asks, f"Content-Length: {len(form)}")
    answer = server.exchange(
        put + form + head("GET", "/api/notes/one", *asks) + head("GET", "/_health", CLOSE)
    )
    assert re.findall(rb"HTTP/1\.1 (\d{3}) ", answer) == [b"200", b"200", b"204"]
    assert server.title == "upgraded"


def test_any_number_of_requests_may_arrive_at_once(server: Server) -> None:
    answer = server.exchange(head("GET", "/_health") * 1000 + head("GET", "/_health", CLOSE))
    assert answer.count(b"HTTP/1.1 204 ") == 1001


def test_what_follows_a_request_that_closes_is_not_read(server: Server) -> None:
    answer = server.exchange(head("GET", "/_health", CLOSE) + head("GET", "/api/notes/one"))
    assert answer.count(b"HTTP/1.1 ") == 1


def test_half_of_a_second_request_is_not_taken_for_a_whole_one(server: Server) -> None:
    """The server caches parsed heads. It must use them only for bytes at the start of a request."""
    whole = head("GET", "/api/notes/one")
    server.exchange(whole + head("GET", "/_health", CLOSE))
    with server.connect(whole) as client:
        client.recv(10_000)
        client.sendall(head("GET", "/_health") + b"PUT /api/notes/one HTTP/1.1\r\nX-Y: ")
        assert b" 204 " in client.recv(10_000)
        client.sendall(whole)
        assert (
            client.recv(12) == b"HTTP/1.1 400"
        )  # misread as a write without a body, with the target and version taken from a header


def test_a_body_that_nobody_wants_is_passed_over(server: Server) -> None:
    body = b"x" * 5000
    with server.connect(head("GET", "/api/notes/one", f"Content-Length: {len(body)}") + body[:10]) as client:
        assert client.recv(12) == b"HTTP/1.1 200"
        client.sendall(body[10:] + head("GET", "/_health", CLOSE))
        assert b"HTTP/1.1 204 " in receive(client)


def test_a_response_is_not_split_by_a_header() -> None:
    for value in ("a\r\nSet-Cookie: b", "a\nb", "a\rb", "a\0b"):
        with pytest.raises(ValueError, match="line break"):
            encode_head("1.1", 200, (("X-Y", value),))


def test_who_takes_nothing_of_an_answer_is_given_up(tmp_path: Path) -> None:
    soon = "from server.api.serving import connection as c; c.STALL_TIMEOUT_S = c.HEAD_TIMEOUT_S = 0.5; "
    running = Server(tmp_path, soon)
    try:
        with running.connect(head("GET", "/uploads/large.bin")) as client:
            time.sleep(4)
            with pytest.raises((ConnectionError, AssertionError)):
                assert len(receive(client)) > 50_000_000
        assert json.loads(running.ask("GET", "/api/notes/one")[1])["data"]["title"] == "first"
    finally:
        stop(running.process)


def test_a_list_in_a_header_has_a_largest_size(server: Server) -> None:
    etag = server.ask("GET", "/uploads/digits.txt")[2]["ETag"]
    for length, status in ((MAX_LIST_CHARS, 304), (MAX_LIST_CHARS + 1, 200)):
        known = etag.rjust(length, ",")
        assert server.ask("GET", "/uploads/digits.txt", **{"If-None-Match": known})[0] == status
    kind = "application/json;".ljust(MAX_LIST_CHARS + 1, ";")
    assert server.ask("PUT", "/api/notes/one", b"{}", **{"Content-Type": kind})[0] == 400
