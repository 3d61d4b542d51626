"""Tests of emails over SMTP, with a mail server that stores what it receives, and without a mail server."""

import email.policy
import logging
import queue
import socketserver
import threading
from collections.abc import Iterator
from email.message import EmailMessage

import pytest

from server.auth.mail import Outbox, send
from server.config.model import DEFAULTS, Settings, with_values
from tests.servers import free_port

received: "queue.Queue[bytes]" = queue.Queue()


class Mailbox(socketserver.StreamRequestHandler):
    """A minimal SMTP server."""

    def handle(self) -> None:
        self.say("220 here")
        for line in self.rfile:
            command = line.split()[0].upper()
            if command == b"DATA":
                self.say("354 go on")
                lines = list(iter(self.rfile.readline, b".\r\n"))
                received.put(b"".join(lines))
            self.say("221 bye" if command == b"QUIT" else "250 well")

    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@pytest.fixture
def port() -> Iterator[int]:
    with socketserver.TCPServer(("127.0.0.1", free_port()), Mailbox) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield int(server.server_address[1])
        server.shutdown()
        thread.join()


def settings(port: int) -> Settings:
    return with_values(
        DEFAULTS,
        {"mail.host": "127.0.0.1", "mail.port": port, "mail.tls": False, "mail.from": "site@example.org"},
    )


def test_a_mail_arrives_as_it_was_written(port: int) -> None:
    assert send(settings(port), "ann@example.org", "Été:\n a new password", "Use this:\n\nhttps://x.org/é\n")
    made = email.message_from_bytes(received.get(timeout=5), policy=email.policy.default)
    assert isinstance(made, EmailMessage)
    assert (made["From"], made["To"]) == ("site@example.org", "ann@example.org")
    assert made["Subject"] == "Été: a new password"
    assert made.get_content().splitlines() == ["Use this:", "", "https://x.org/é"]


def test_a_server_that_is_away_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    assert not send(settings(free_port()), "ann@example.org", "Hello", "Hello\n")
    assert "the email to ann@example.org can't be sent: " in caplog.text


def test_without_a_server_the_log_has_the_mail(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert send(Settings(), "ann@example.org", "Hello", "Use this: 1234\n")
    assert "Use this: 1234" in caplog.text


def test_an_outbox_does_one_thing_after_the_other_whatever_happens(caplog: pytest.LogCaptureFixture) -> None:
    done: queue.Queue[int] = queue.Queue()
    outbox = Outbox()
    outbox.put(lambda: done.put(1))
    outbox.put(lambda: 1 // 0)
    outbox.put(lambda: done.put(2))
    assert [done.get(timeout=5), done.get(timeout=5)] == [1, 2]
    assert "an email can't be created" in caplog.text
