"""Tests of encodings and entity tags of responses, for all kinds of request headers."""

import gzip
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.api.environ import BUDGET
from server.api.response import (
    ENCODINGS,
    FAST_COMPRESSION_BYTES,
    JSON,
    Answer,
    best_encoding,
    etag_matches,
    represent,
    send,
)
from server.config.model import Settings
from server.errors import NeedsThreadPool
from server.index.budget import Budget, turns

TAG = '"0123456789abcdef"'


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("", ""),
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip;q=1.0, br;q=0.5", "br"),
        ("br;q=0, gzip", "gzip"),
        ("br;q=0.0, gzip;q=0", ""),
        ("*", "br"),
        ("*;q=0", ""),
        ("br;q=0, *", "gzip"),
        ("identity", ""),
        ("deflate", ""),
        ("GZIP", "gzip"),
        ("x" * 100_000, ""),
    ],
)
def test_a_client_gets_an_encoding_that_it_takes(accepted: str, encoding: str) -> None:
    assert best_encoding({"HTTP_ACCEPT_ENCODING": accepted}) == encoding


@given(st.text(st.characters(max_codepoint=255)))
def test_odd_encodings_are_no_error(accepted: str) -> None:
    assert best_encoding({"HTTP_ACCEPT_ENCODING": accepted}) in ("", *ENCODINGS)


@pytest.mark.parametrize(
    ("known", "same"),
    [
        (TAG, True),
        (f"W/{TAG}", True),
        (f'"other", {TAG}', True),
        ("*", True),
        ('"0123456789abcdef-br"', True),
        ('W/"0123456789abcdef-gzip"', True),
        ('"0123456789abcdef-zip"', False),
        ('"0123456789abcdef-"', False),
        ('"0123456789abcde"', False),
        ("0123456789abcdef", False),
        ("", False),
        (",", False),
        ('"0123456789abcdef0"', False),
        ('"00123456789abcdef"', False),
        (f"{',' * 1000}{TAG}{',' * 1000}", True),
        (f'"a,b",W/"c" ,{TAG},"d"', True),
        ('"a", *', False),
    ],
)
def test_an_entity_tag_is_the_same_in_every_encoding(known: str, same: bool) -> None:
    assert etag_matches(known, TAG) == same


@given(
    body=st.binary(max_size=3000),
    status=st.sampled_from([200, 201, 204, 302, 404, 500]),
    method=st.sampled_from(["GET", "HEAD", "POST", "OPTIONS"]),
    headers=st.fixed_dictionaries(
        {},
        optional={
            "HTTP_ACCEPT_ENCODING": st.sampled_from(["br", "gzip", "*", "none"]),
            "HTTP_IF_NONE_MATCH": st.sampled_from([TAG, "*", '"none"']),
            "HTTP_AUTHORIZATION": st.just("Bearer x"),
        },
    ),
    etag=st.sampled_from(["", TAG]),
)
def test_every_answer_is_sound(
    body: bytes, status: int, method: str, headers: dict[str, str], etag: str
) -> None:
    environ = {"REQUEST_METHOD": method, **headers}
    told: list[tuple[str, list[tuple[str, str]]]] = []
    shown = represent(Answer(body, status, etag=etag), environ)
    sent = b"".join(send(shown, environ, lambda line, headers: told.append((line, headers))))
    ((line, listed),) = told
    names = [name for name, _ in listed]
    assert len(names) == len(set(names))
    found = dict(listed)
    if line.startswith("304"):
        assert method in ("GET", "HEAD")
        assert status == 200
    if method == "HEAD" or line.startswith("304"):
        assert sent == b""
    elif status != 204:
        assert int(found["Content-Length"]) == len(sent)
    if sent:
        assert found["Content-Type"] == JSON
        assert ("Content-Encoding" in found) == (sent != body)
    if status == 200 and method in ("GET", "HEAD"):
        assert found["ETag"].startswith(etag[:-1] or '"')
    assert "no-store" in found["Cache-Control"] or (status == 200 and method in ("GET", "HEAD"))


def large_read(method: str = "GET", known: str = "", budget: Budget | None = None) -> dict[str, Any]:
    environ = {"REQUEST_METHOD": method, "HTTP_ACCEPT_ENCODING": "gzip", "HTTP_IF_NONE_MATCH": known}
    return {**environ, BUDGET: budget or Budget()}


def sent_of(environ: dict[str, Any]) -> tuple[str, dict[str, str], bytes]:
    """Send a large response and return its status, headers and body."""
    told: list[tuple[str, list[tuple[str, str]]]] = []
    shown = represent(Answer(b"x" * (FAST_COMPRESSION_BYTES + 1), etag=TAG), environ)
    body = b"".join(send(shown, environ, lambda line, headers: told.append((line, headers))))
    return told[0][0], dict(told[0][1]), body


def test_a_large_answer_is_compressed_by_one_request_at_a_time() -> None:
    taken = turns()
    line, headers, body = sent_of(large_read(budget=Budget(Settings(), taken)))
    assert (line, gzip.decompress(body)) == ("200 OK", b"x" * (FAST_COMPRESSION_BYTES + 1))
    assert int(headers["Content-Length"]) == len(body)
    with pytest.raises(NeedsThreadPool):  # The first request still occupies the only turn to compress.
        sent_of(large_read(budget=Budget(Settings(), taken, waits=False)))


@pytest.mark.parametrize(("method", "known"), [("HEAD", ""), ("GET", TAG), ("GET", "*"), ("HEAD", TAG)])
def test_what_is_answered_without_a_body_is_not_compressed(method: str, known: str) -> None:
    taken = turns()
    taken.acquire()  # If the response were compressed, NeedsThreadPool would be raised.
    line, headers, body = sent_of(large_read(method, known, Budget(Settings(), taken, waits=False)))
    got = sent_of(large_read())[1]
    assert body == b""
    assert "Content-Length" not in headers  # The length is unknown, and these responses may omit it.
    assert headers["ETag"] == got["ETag"]
    assert headers["Vary"] == got["Vary"]
    if not known:
        assert line == "200 OK"
        assert headers == {name: value for name, value in got.items() if name != "Content-Length"}
    else:
        assert line == "304 Not Modified"


def test_a_large_answer_to_a_write_waits_for_no_turn() -> None:
    taken = turns()
    taken.acquire()
    _, headers, body = sent_of(large_read("PUT", budget=Budget(Settings(), taken, waits=False)))
    assert len(body) == FAST_COMPRESSION_BYTES + 1
    assert "Content-Encoding" not in headers
