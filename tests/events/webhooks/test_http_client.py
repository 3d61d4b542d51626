"""Tests that a request to a receiver ends with an outcome within its timeout, whatever the receiver does."""

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from server.events.webhooks import http_client
from server.events.webhooks.http_client import Outcome, send
from tests.receivers import Answer, Received, Receiver, answering, receiving, status

NO_HTTP = "the response is not HTTP"
ALLOWED = ("127.0.0.1", "localhost")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


def post(receiver: Receiver, answer: Answer, timeout: float = 5, body: bytes = b"{}") -> Outcome:
    receiver.answer = answer
    return send(receiver.url, {"X-A": "b"}, body, ALLOWED, timeout)


def test_a_request_is_sent_as_it_is(receiver: Receiver) -> None:
    outcome = send(f"{receiver.url}?a=b%20c", {"X-A": "b"}, b'{"a":1}', ALLOWED)
    assert (outcome.status, outcome.error, outcome.succeeded) == (200, "", True)
    (received,) = receiver.received
    assert (received.path, received.body) == ("/hook?a=b%20c", b'{"a":1}')
    assert received.headers == {
        "host": f"127.0.0.1:{receiver.port}", "x-a": "b", "content-length": "7", "connection": "close"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "code", "error"),
    [
        (status(204), 204, ""),
        (status(500, body="out\x1b[31m\nof order"), 500, "500 Said: out [31m of order"),
        (status(410), 410, "410 Said"),
        (
            status(301, "Location: http://169.254.169.254/"),
            301,
            "301 Said, a redirect to http://169.254.169.254/, which is not followed",
        ),
        (answering(b"HTTP/1.1 503 Busy\r\n\r\n" + b"x" * 1_000_000), 503, "503 Busy: " + "x" * 990),
        (answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"), 200, ""),
        (answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz"), 200, ""),
        (answering(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 200, ""),
        (answering(b"SSH-2.0-OpenSSH\r\n"), 0, "the response is not HTTP: SSH-2.0-OpenSSH"),
        (answering(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200), 0, f"{NO_HTTP}: got more than 100 headers"),
        (
            answering(b"HTTP/1.1 " + b"2" * 70_000),
            0,
            f"{NO_HTTP}: got more than 65536 bytes when reading status line",
        ),
        (answering(b""), 0, f"{NO_HTTP}: Remote end closed connection without response"),
    ],
)
def test_an_answer_is_a_success_or_says_what_is_wrong(
    receiver: Receiver, answer: Answer, code: int, error: str
) -> None:
    outcome = post(receiver, answer)
    assert (outcome.status, outcome.error) == (code, error)
    assert outcome.seconds < 4
    assert len(receiver.received) == 1  # Redirects are not followed.


def hang(connection: socket.socket, received: Received) -> None:
    time.sleep(3)


def drip(data: bytes) -> Answer:
    """Return a handler that sends the data, and then single bytes with pauses."""

    def answer(connection: socket.socket, received: Received) -> None:
        connection.sendall(data)
        for _ in range(200):
            connection.sendall(b"a")
            time.sleep(0.02)

    return answer


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (hang, (0, "no response within 0.3 s")),
        (drip(b""), (0, "no response within 0.3 s")),
        (drip(b"HTTP/1.1 200 OK\r\nX-A: "), (0, "no response within 0.3 s")),
        (drip(b"HTTP/1.1 200 OK\r\n\r\n"), (200, "")),
        (drip(b"HTTP/1.1 500 No\r\n\r\n"), (500, "500 No")),
    ],
)
def test_a_receiver_that_hangs_or_drips_is_left_at_the_deadline(
    receiver: Receiver, answer: Answer, outcome: tuple[int, str]
) -> None:
    came = post(receiver, answer, timeout=0.3)
    assert (came.status, came.error) == outcome
    assert 0.25 < came.seconds < 2


def test_a_receiver_that_reads_nothing_is_left_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        outcome = send(
            f"http://127.0.0.1:{listener.getsockname()[1]}/", {}, b"x" * 30_000_000, ALLOWED, timeout=0.3
        )
    assert outcome.error == "no response within 0.3 s"
    assert outcome.seconds < 2


def test_an_answer_before_the_end_of_the_body_counts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            connection, _ = listener.accept()
            connection.recv(10)
            connection.sendall(b"HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(100_000):
                pass
            connection.close()

        threading.Thread(target=refuse, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert send(url, {}, b"x" * 3_000_000, ALLOWED, timeout=5).status == 413


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("120", 120), ("0", 0), ("-1", None), ("soon", None), ("", None), ("9" * 30, 999_999_999)],
)
def test_retry_after_in_seconds(receiver: Receiver, value: str, seconds: float | None) -> None:
    assert post(receiver, status(503, f"Retry-After: {value}")).retry_after == seconds


def test_retry_after_as_a_date(receiver: Receiver) -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    seconds = post(receiver, status(429, f"Retry-After: {at}")).retry_after
    assert seconds is not None
    assert 80 < seconds <= 90
    assert post(receiver, status(429, "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT")).retry_after == 0


@pytest.mark.parametrize(
    "date",
    [
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        "Mon, 01 Jan 2026 00:00:00 +99999999999999",
        "Mon, 99 Jan 2026 00:00:00 GMT",
    ],
)
def test_a_retry_after_that_is_no_date_is_none(receiver: Receiver, date: str) -> None:
    outcome = post(receiver, status(410, f"Retry-After: {date}"))
    assert (outcome.status, outcome.retry_after) == (410, None)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert send(f"http://127.0.0.1:{port}/", {}, b"", ALLOWED).error == "Connection refused"


def test_a_host_that_is_not_allowed_is_not_connected_to(receiver: Receiver) -> None:
    outcome = send(receiver.url, {}, b"{}", ["localhost"])
    assert (
        outcome.error
        == "127.0.0.1 is not a public address; to allow it, add it to webhooks_allow in site.yaml"
    )
    assert receiver.received == []


def test_a_certificate_must_be_that_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "cert.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(made)]
    subprocess.run([*command, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, tmp_path / "key.pem")
    with receiving(context) as receiver:
        url = f"https://localhost:{receiver.port}/"
        assert send(url, {}, b"{}", ALLOWED).error.startswith("the certificate can't be trusted: self")
        monkeypatch.setenv("SSL_CERT_FILE", str(made))
        http_client._context.cache_clear()
        try:
            assert send(url, {}, b"{}", ALLOWED).succeeded
            other = send(url.replace("localhost", "127.0.0.1"), {}, b"{}", ALLOWED)
            assert "IP address mismatch" in other.error
        finally:
            http_client._context.cache_clear()
        assert len(receiver.received) == 1


def test_what_is_no_tls_is_told(receiver: Receiver) -> None:
    receiver.answer = answering(b"")
    outcome = send(receiver.url.replace("http", "https"), {}, b"{}", ALLOWED, timeout=2)
    assert outcome.status == 0
    assert outcome.error
