"""Tests of JSON-RPC messages."""

import json
import string
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.api.mcp.json_rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    Message,
    RpcError,
    encode,
    error_of,
    parse,
)
from server.formats.json import read_json

MOST = 1000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
IDS = st.integers(-(2**53), 2**53) | st.text(max_size=50)


def outcome(data: bytes) -> Message | RpcError:
    try:
        return parse(data, MOST)
    except RpcError as error:
        return error


@given(IDS, st.text(min_size=1), st.dictionaries(st.text(), JSON, max_size=4))
def test_a_request_is_read_as_it_was_written(id_: Any, method: str, params: dict[str, Any]) -> None:
    sent = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
    assert parse(json.dumps(sent).encode(), 10**6) == Message(method, params, id_)


@given(st.binary() | st.text(string.printable).map(str.encode) | JSON.map(json.dumps).map(str.encode))
def test_anything_else_is_an_error_that_can_be_sent(data: bytes) -> None:
    if isinstance(found := outcome(data), RpcError):
        sent = json.loads(encode(error_of(found)))
        assert sent["error"]["code"] in (PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.sampled_from(["2.0", "1.0"]) | JSON,
            "id": IDS | JSON,
            "method": st.sampled_from(["ping", "tools/call"]) | JSON,
            "params": JSON,
            "result": JSON,
        },
    )
)
def test_a_message_with_wrong_members_is_refused_or_read(message: dict[str, Any]) -> None:
    found = outcome(json.dumps(message).encode())
    if isinstance(found, RpcError):
        assert found.code in (PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS)
        assert found.id is None or found.id == message["id"]
    else:
        assert message["jsonrpc"] == "2.0"
        assert found.method == message.get("method", "")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", PARSE_ERROR),
        (b"{", PARSE_ERROR),
        (b"\xff", PARSE_ERROR),
        (b"[" * 100_000, INVALID_REQUEST),
        (b"[" * 500, PARSE_ERROR),
        (b"NaN", PARSE_ERROR),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', PARSE_ERROR),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', INVALID_REQUEST),
        (b"[]", INVALID_REQUEST),
        (b"1", INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', INVALID_REQUEST),
        (b'{"id": 1, "method": "ping"}', INVALID_REQUEST),
        (b'{"jsonrpc": 2.0, "id": 1, "method": "ping"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 2}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 2.0}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 1}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', INVALID_PARAMS),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": null}', INVALID_PARAMS),
    ],
)
def test_what_is_wrong_has_its_code(data: bytes, code: int) -> None:
    with pytest.raises(RpcError) as caught:
        parse(data, MOST)
    assert caught.value.code == code


def test_a_response_of_the_client_has_no_method() -> None:
    assert parse(b'{"jsonrpc": "2.0", "id": 1, "result": {}}', MOST) == Message("", id=1)


def test_numbers_keep_their_digits() -> None:
    text = '{"a":[0.10,1e5,-2.50000000000000000001,12345678901234567890123]}'
    assert encode(read_json(text)).decode() == text
    assert json.loads(encode({"a": Decimal("1.10")}), parse_float=str) == {"a": "1.10"}
