"""A fuzzer for both doors: any bytes get a valid JSON-RPC response, or none if they are a notification.

No message may cause an unexpected error, and the door must still respond to the next message.
"""

import io
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.api.mcp.dispatcher import METHODS
from server.api.mcp.http import NAMED_BY
from server.api.mcp.json_rpc import INVALID_REQUEST, PARSE_ERROR
from server.api.mcp.prompting import PROMPTS
from server.api.mcp.protocol import CAPABILITIES_KEY, SUBSCRIPTION_KEY, VERSION_KEY, VERSIONS
from server.api.mcp.stdio import serve
from server.api.mcp.tools.table import BY_NAME
from server.api.mcp.uris import DOCUMENT_TEMPLATE, SCHEMA_TEMPLATE
from server.api.serving.bodies import MAX_BODY_BYTES
from server.events.database import EventDatabase
from tests.mcp.agents import error_in
from tests.mcp.sites import FILES, SETTINGS
from tests.sites import Api, make

FUZZED = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
LAST = {"jsonrpc": "2.0", "id": "last", "method": "ping"}


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """A site, its event log, and the unexpected errors that were logged."""

    api: Api
    database: EventDatabase
    errors: list[str]


class _Errors(logging.Handler):
    def __init__(self, errors: list[str]) -> None:
        super().__init__(logging.ERROR)
        self.errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(self.format(record))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    text = SETTINGS.replace("mcp: {enabled: true}", "mcp: {enabled: true, write: direct, max_bytes: 16 kB}")
    api = make(tmp_path_factory.mktemp("site"), {**FILES, "site.yaml": text})
    database, errors = EventDatabase(api.root), list[str]()
    handler = _Errors(errors)
    logging.getLogger("bifolio").addHandler(handler)
    yield Fuzzed(api, database, errors)
    logging.getLogger("bifolio").removeHandler(handler)
    database.close()
    api.accounts.close()


# --- messages -------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["", "article", "articles", "tag", "home", "fog", "sea", "title", "en", "fr", "draft", "published", "*"]
)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30) | WORDS
)
KEYS = WORDS | st.text(max_size=10) | st.sampled_from(["$eq", "$contains", "$or", "fields", "action", "data"])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
URIS = st.sampled_from(
    ["bifolio://article/fog", "bifolio://home", "bifolio://schema/tag", "bifolio://article/fog?locale=fr"]
) | st.builds("bifolio://{}".format, st.text(max_size=20))
# Values that are often valid, by the name of a parameter or an argument.
OFTEN: Mapping[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["article", "tag", "home"]),
    "documentId": st.sampled_from(["fog", "sea", "none"]),
    "filters": st.dictionaries(KEYS, JSON, max_size=2),
    "fields": st.lists(WORDS, max_size=3),
    "path": st.sampled_from(["content/articles/fog.json", "content/home.json", "site.yaml", "../x"]),
    "text": st.just('{"title": "Fuzzed"}'),
    "q": WORDS,
    "operations": st.lists(
        st.fixed_dictionaries(
            {"action": st.sampled_from(["create", "update", "delete", "publish", "discardDraft", "none"])},
            optional={
                "type": st.sampled_from(["article", "tag"]) | JSON,
                "documentId": WORDS,
                "data": st.dictionaries(KEYS, JSON, max_size=3),
                "locale": WORDS,
            },
        ),
        max_size=3,
    ),
}


def values(name: str) -> st.SearchStrategy[Any]:
    return OFTEN[name] | OFTEN[name] | JSON if name in OFTEN else JSON


def calls() -> st.SearchStrategy[Any]:
    """Arguments for each tool, of which most have a name that exists."""

    def of(name: str) -> st.SearchStrategy[Any]:
        tool = BY_NAME[name]
        required = {key: values(key) for key in tool.required}
        optional = {key: values(key) for key in tool.input if key not in tool.required}
        arguments = st.fixed_dictionaries(required, optional=optional) | JSON
        return st.fixed_dictionaries({"name": st.just(name), "arguments": arguments})

    return st.sampled_from(sorted(BY_NAME)).flatmap(of)


def prompts() -> st.SearchStrategy[Any]:
    arguments = st.dictionaries(st.sampled_from(["type", "documentId", "locale", "branch"]), WORDS | JSON)
    return st.fixed_dictionaries(
        {"name": st.sampled_from(sorted(PROMPTS))}, optional={"arguments": arguments}
    )


def completions() -> st.SearchStrategy[Any]:
    prompt = st.fixed_dictionaries({"type": st.just("ref/prompt"), "name": st.sampled_from(sorted(PROMPTS))})
    uri = st.sampled_from([DOCUMENT_TEMPLATE, SCHEMA_TEMPLATE])
    resource = st.fixed_dictionaries({"type": st.just("ref/resource"), "uri": uri})
    names = st.sampled_from(["type", "documentId", "locale", "status", "branch"])
    return st.fixed_dictionaries(
        {
            "ref": prompt | resource | JSON,
            "argument": st.fixed_dictionaries({"name": names, "value": WORDS}) | JSON,
        },
        optional={
            "context": st.fixed_dictionaries({"arguments": st.fixed_dictionaries({"type": WORDS})}) | JSON
        },
    )


LISTENING = st.fixed_dictionaries(
    {
        "notifications": JSON
        | st.fixed_dictionaries(
            {},
            optional={
                "resourcesListChanged": st.booleans(),
                "resourceSubscriptions": st.lists(URIS, max_size=3),
            },
        )
    }
)
CURSORS = st.fixed_dictionaries({}, optional={"cursor": st.sampled_from(["0.0", "1.1", "99.99"]) | JSON})
PARAMS: Mapping[str, st.SearchStrategy[Any]] = {
    "tools/call": calls(),
    "prompts/get": prompts(),
    "completion/complete": completions(),
    "resources/list": CURSORS,
    "resources/read": st.fixed_dictionaries({"uri": URIS}),
    "resources/subscribe": st.fixed_dictionaries({"uri": URIS}),
    "resources/unsubscribe": st.fixed_dictionaries({"uri": URIS}),
    "subscriptions/listen": LISTENING,
}
IDS = st.integers(-(2**53), 2**53) | st.text(max_size=20)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """A message that is valid, or nearly so."""
    method = draw(
        st.sampled_from([*METHODS, "tools/call", "tools/call", "tools/call", "notifications/cancelled"])
    )
    params = draw(PARAMS.get(method, st.dictionaries(st.text(max_size=5), JSON, max_size=2)))
    sent = {"jsonrpc": "2.0", "id": draw(IDS), "method": method, "params": params}
    version = draw(st.sampled_from([*VERSIONS, *VERSIONS, "1900-01-01"]) | JSON)
    if draw(st.booleans()):
        params["_meta"] = {VERSION_KEY: version, CAPABILITIES_KEY: {}}
    changed = draw(st.sampled_from(["", "", "", "", "jsonrpc", "id", "method", "params"]))
    if changed:
        sent[changed] = draw(JSON)
        if draw(st.booleans()):
            del sent[changed]
    return sent


def is_request(sent: Any) -> bool:
    return isinstance(sent, dict) and "id" in sent


def check_response(found: Any, sent: Any) -> None:
    """Check that a response is valid, and the one to this message."""
    assert found["jsonrpc"] == "2.0"
    assert ("result" in found) != ("error" in found)
    if "error" in found:
        assert {*found["error"]} <= {"code", "message", "data"}
        assert isinstance(found["error"]["code"], int)
        assert isinstance(found["error"]["message"], str)
        assert "Traceback" not in found["error"]["message"]
    if "id" in found:
        assert (found["id"], type(found["id"])) == (sent["id"], type(sent["id"]))
    else:
        assert "error" in found
    result = found.get("result", {})
    if result.get("isError"):
        _, content = error_in(result["content"][0]["text"])
        assert content["error"]["status"] != 500, content


# --- POST /mcp ------------------------------------------------------------------------------------


def headers_of(sent: Any, version: str) -> dict[str, str]:
    """Return headers that agree with a message, if it can be represented in headers."""
    headers = {"MCP-Protocol-Version": version, "Content-Type": "application/json"}
    method, params = sent.get("method"), sent.get("params")
    if isinstance(method, str) and method.isprintable() and method.isascii():
        headers["Mcp-Method"] = method
    name = params.get(NAMED_BY.get(str(method), "")) if isinstance(params, dict) else None
    if isinstance(name, str) and name.isprintable() and name.isascii():
        headers["Mcp-Name"] = name
    return headers


@FUZZED
@given(messages(), st.sampled_from([*VERSIONS]), st.sampled_from(["full", "public", "nonsense"]))
def test_messages_over_http(site: Fuzzed, sent: Any, version: str, who: str) -> None:
    named = sent["params"].get("_meta") if isinstance(sent.get("params"), dict) else None
    if isinstance(named, dict) and isinstance(named.get(VERSION_KEY), str) and named[VERSION_KEY].isascii():
        version = named[VERSION_KEY]
    version = version if version.isprintable() else "x"
    check_http(site, json.dumps(sent).encode(), sent, headers_of(sent, version), who)


@FUZZED
@given(st.binary(max_size=200) | JSON.map(json.dumps).map(str.encode))
def test_bytes_over_http(site: Fuzzed, data: bytes) -> None:
    check_http(site, data, None, {"Content-Type": "application/json"}, "full")


def check_http(site: Fuzzed, data: bytes, sent: Any, headers: dict[str, str], who: str) -> None:
    del site.errors[:]
    answer = site.api.ask("POST", "/mcp", who, data=data, headers=headers)
    if who == "nonsense":  # not a token
        assert answer.status == 401
        return
    assert answer.status in (200, 202, 400, 404)
    if answer.status == 202:
        assert not answer.raw
        return
    if answer.headers["Content-Type"].startswith("text/event-stream"):
        first = json.loads(answer.raw.partition(b"data: ")[2])
        assert first["params"]["_meta"][SUBSCRIPTION_KEY] == sent["id"]
    elif sent is None:
        assert "error" in answer.body
    else:
        check_response(answer.body, sent)
    assert not site.errors


# --- stdio ----------------------------------------------------------------------------------------


def answers_of(site: Fuzzed, lines: list[bytes]) -> list[Any]:
    """Send lines to `bifolio mcp`, then a last request. Return all messages but the last response."""
    source = io.BytesIO(b"\n".join([*lines, json.dumps(LAST).encode()]) + b"\n")
    target = io.BytesIO()
    serve(site.api.app.wsgi_app, "Bearer " + site.api.tokens["full"], site.database, source, target)  # type: ignore[arg-type]
    found = [json.loads(line) for line in target.getvalue().splitlines()]
    assert not site.errors
    last = found.pop()
    assert last["id"] == "last"
    return found


@FUZZED
@given(st.lists(messages(), min_size=1, max_size=4))
def test_messages_over_stdio(site: Fuzzed, sent: list[Any]) -> None:
    del site.errors[:]
    found = answers_of(site, [json.dumps(one).encode() for one in sent])
    responses = [one for one in found if "method" not in one]
    requests = [one for one in sent if is_request(one)]
    for one in found:
        if "method" in one:
            assert one["method"].startswith("notifications/")
    # In the order of the requests. Subscriptions, and messages that look like responses, have none.
    waiting = iter(requests)
    for response in responses:
        if "id" in response:
            wanted = response["id"], type(response["id"])
            check_response(response, next(one for one in waiting if (one["id"], type(one["id"])) == wanted))
        else:
            assert "error" in response


@FUZZED
@given(st.lists(st.binary(max_size=100) | JSON.map(json.dumps).map(str.encode), max_size=5))
def test_lines_over_stdio(site: Fuzzed, lines: list[bytes]) -> None:
    del site.errors[:]
    for found in answers_of(site, lines):
        assert "error" in found


# --- limits ---------------------------------------------------------------------------------------

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
DEEP = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (DEEP, PARSE_ERROR),
        (b"[" * 1_000_000, INVALID_REQUEST),  # too many values
        (b"[" * 5000, PARSE_ERROR),
        (json.dumps([PING]).encode(), INVALID_REQUEST),
        (json.dumps([PING] * 50_000).encode(), INVALID_REQUEST),
        (b"[]", INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b', "method": "ping"}', PARSE_ERROR),
    ],
)
def test_depth_batches_and_numbers_are_limited(site: Fuzzed, data: bytes, code: int) -> None:
    answer = site.api.ask("POST", "/mcp", data=data, content_type="application/json")
    assert (answer.status, answer.body["error"]["code"]) == (400, code)
    [found] = answers_of(site, [data])
    assert found["error"]["code"] == code


def test_the_size_of_a_message_is_limited(site: Fuzzed) -> None:
    long = json.dumps({**PING, "params": {"a": "x" * MAX_BODY_BYTES}}).encode()
    [found] = answers_of(site, [long])
    assert found["error"]["code"] == INVALID_REQUEST
    assert site.api.ask("POST", "/mcp", data=long, content_type="application/json").status == 413
    short = json.dumps({**PING, "params": {"a": "x" * 70_000}}).encode()
    assert site.api.ask("POST", "/mcp", data=short, content_type="application/json").status == 200
