"""Tests of recorded responses from a peer, and of the server that replays them."""

import http.client
from email.message import Message
from pathlib import Path

import pytest

from bench.host import HOST
from bench.peer.recording import NOT_RECORDED, Playback, Recording, key, playing

pytestmark = pytest.mark.process
JSON = {"Content-Type": "application/json"}


def recorded(folder: Path) -> Path:
    """Record two responses to a request, and a third response to the same request in a conversation."""
    recording, headers = Recording(), Message()
    headers["Content-Type"] = "application/json"
    headers["Date"] = "today"
    asked = key("GET", "/api/things", {"Authorization": "Bearer full"}, None)
    for body in (b'"one"', b'"two"'):
        recording.add(asked, 200, headers, body)
    recording.begin("1/rules/write/0")
    recording.add(asked, 404, headers, b'"later"')
    recording.add(key("PUT", "/api/things", JSON, b"{}"), 200, headers, b"{}")
    recording.write(folder / "answers.json")
    return folder / "answers.json"


def ask(server: Playback, method: str, body: bytes | None = None) -> tuple[int, bytes]:
    """Send a request and return the status and body of the response."""
    connection = http.client.HTTPConnection(HOST, server.port, timeout=30)
    try:
        headers = JSON if body is not None else {"Authorization": "Bearer full"}
        connection.request(method, "/api/things", body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_answers_are_played_back_by_conversation_in_their_order(tmp_path: Path) -> None:
    with playing(recorded(tmp_path)) as server:
        assert [ask(server, "GET") for _ in range(3)] == [(200, b'"one"'), (200, b'"two"'), (200, b'"two"')]
        assert ask(server, "PUT", b"{}") == (NOT_RECORDED, b"")
        server.begin("1/rules/write/0")
        assert ask(server, "GET") == (404, b'"later"')
        assert ask(server, "PUT", b"{}") == (200, b"{}")
        assert ask(server, "PUT", b"[]") == (NOT_RECORDED, b"")


def test_only_headers_that_are_compared_are_kept(tmp_path: Path) -> None:
    assert "today" not in recorded(tmp_path).read_text(encoding="utf-8")


def test_the_files_of_a_form_do_not_count() -> None:
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    assert key("POST", "/api/upload", form, b"one") == key("POST", "/api/upload", form, b"other")
    assert key("POST", "/api/upload", JSON, b"one") != key("POST", "/api/upload", JSON, b"other")
