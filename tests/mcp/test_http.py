"""Tests of POST /mcp: versions, headers, statuses and origins."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import JSONRPCError

from server.api.mcp.json_rpc import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
)
from server.api.mcp.protocol import CAPABILITIES_KEY, SERVER_KEY, VERSION_KEY, VERSIONS
from tests.mcp.agents import LEGACY, MODERN, Agent, error_in, message
from tests.mcp.sites import FILES, SETTINGS
from tests.sites import Api, make, write


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    api = make(tmp_path_factory.mktemp("site"), FILES)
    yield api
    api.accounts.close()


@pytest.fixture
def modern(api: Api) -> Agent:
    return Agent(api)


@pytest.fixture
def legacy(api: Api) -> Agent:
    return Agent(api, version=LEGACY)


def test_it_is_off_by_default(tmp_path_factory: pytest.TempPathFactory) -> None:
    api = make(tmp_path_factory.mktemp("site"), {**FILES, "site.yaml": ""})
    for who in ("full", "public"):
        refused = Agent(api, who).post("tools/list")
        assert (refused.status, refused.error["name"]) == (404, "NotFoundError")
        assert "set mcp: {enabled: true} in site.yaml" in refused.error["message"]
    assert api.get("/mcp").status == 405
    api.accounts.close()


def test_discover_tells_versions_and_capabilities(modern: Agent) -> None:
    found = modern.ask("server/discover")
    assert found["supportedVersions"] == list(VERSIONS)
    assert found["supportedVersions"][:2] == [MODERN, LEGACY]
    assert found["capabilities"]["tools"] == {}
    assert (found["resultType"], found["cacheScope"], type(found["ttlMs"])) == ("complete", "public", int)
    assert found["_meta"][SERVER_KEY]["name"] == "bifolio"


def test_the_list_of_tools_may_be_cached_by_everybody(modern: Agent, legacy: Agent) -> None:
    found = modern.ask("tools/list")
    assert (found["resultType"], found["cacheScope"]) == ("complete", "public")
    assert found["ttlMs"] > 0
    assert {*legacy.ask("tools/list")} == {"tools"}
    assert legacy.ask("tools/list")["tools"] == found["tools"]


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (LEGACY, LEGACY),
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2024-11-05"),
        ("1999-01-01", LEGACY),
        (MODERN, LEGACY),  # This version has no `initialize`.
        (7, LEGACY),
    ],
)
def test_initialize_agrees_on_a_version(legacy: Agent, asked: Any, given: str) -> None:
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = legacy.post("initialize", params, headers={"MCP-Protocol-Version": None})
    assert answer.body["result"]["protocolVersion"] == given
    assert answer.body["result"]["serverInfo"]["name"] == "bifolio"
    assert "Mcp-Session-Id" not in answer.headers


def test_notifications_are_accepted_without_a_body(api: Api) -> None:
    sent = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = api.ask("POST", "/mcp", json=sent)
    assert (answer.status, answer.raw) == (202, b"")


def test_ping_is_of_the_older_versions(modern: Agent, legacy: Agent) -> None:
    assert legacy.ask("ping") == {}
    assert modern.post("ping").body["error"]["code"] == METHOD_NOT_FOUND


@pytest.mark.parametrize(("version", "status"), [(MODERN, 404), (LEGACY, 200)])
def test_an_unknown_method(api: Api, version: str, status: int) -> None:
    answer = Agent(api, version=version).post("no/such")
    assert (answer.status, answer.body["error"]["code"], answer.body["id"]) == (status, METHOD_NOT_FOUND, 1)


def test_an_unsupported_version_is_told_the_supported_ones(api: Api) -> None:
    sent = message("tools/list", {"_meta": {VERSION_KEY: "1900-01-01", CAPABILITIES_KEY: {}}}, LEGACY)
    for headers in ({}, {"MCP-Protocol-Version": "1900-01-01"}):
        answer = api.ask("POST", "/mcp", json=sent, headers=headers)
        assert answer.status == 400
        assert answer.body["error"]["code"] == UNSUPPORTED_VERSION
        assert answer.body["error"]["data"] == {"supported": list(VERSIONS), "requested": "1900-01-01"}


@pytest.mark.parametrize(
    "headers",
    [
        {"MCP-Protocol-Version": None},
        {"MCP-Protocol-Version": LEGACY},
        {"MCP-Protocol-Version": "1900-01-01"},
        {"Mcp-Method": None},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Method": "TOOLS/CALL"},
        {"Mcp-Name": None},
        {"Mcp-Name": "find"},
        {"Mcp-Name": "=?base64?!!!?="},
    ],
)
def test_headers_must_agree_with_the_body(modern: Agent, headers: dict[str, Any]) -> None:
    answer = modern.post("tools/call", {"name": "site_info", "arguments": {}}, headers=headers)
    assert (answer.status, answer.body["error"]["code"]) == (400, HEADER_MISMATCH)
    assert answer.body["id"] == 1


def test_spaces_around_a_header_are_not_part_of_it(modern: Agent) -> None:
    headers = {"Mcp-Name": " site_info \t", "Mcp-Method": "tools/call "}
    answer = modern.post("tools/call", {"name": "site_info", "arguments": {}}, headers=headers)
    assert answer.status == 200


def test_a_name_may_be_encoded(modern: Agent) -> None:
    headers = {"Mcp-Name": "=?base64?c2l0ZV9pbmZv?="}
    answer = modern.post("tools/call", {"name": "site_info", "arguments": {}}, headers=headers)
    assert answer.status == 200


@pytest.mark.parametrize("meta", [{}, {VERSION_KEY: MODERN}, {VERSION_KEY: MODERN, CAPABILITIES_KEY: 1}])
def test_metadata_is_required(api: Api, meta: dict[str, Any]) -> None:
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
    answer = api.ask("POST", "/mcp", json=sent, headers=headers)
    assert (answer.status, answer.body["error"]["code"]) == (400, INVALID_PARAMS)


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        ("https://evil.example", "localhost:1337", 403),
        ("http://localhost:6274", "localhost:1337", 200),
        ("http://127.0.0.1:1337", "127.0.0.1:1337", 200),
        ("http://evil.example:1337", "evil.example:1337", 403),  # DNS rebinding
        ("http://localhost:6274", "cms.example.org", 403),
        ("https://app.example.org", "cms.example.org", 200),
        ("null", "localhost:1337", 403),
        ("http://[", "localhost:1337", 403),
    ],
)
def test_pages_of_other_sites_are_refused(
    tmp_path_factory: pytest.TempPathFactory, origin: str, host: str, status: int
) -> None:
    settings = SETTINGS + "api: {cors: ['*', 'https://app.example.org']}\n"
    api = make(tmp_path_factory.mktemp("site"), {**FILES, "site.yaml": settings})
    answer = Agent(api).post("tools/list", headers={"Origin": origin, "Host": host})
    assert answer.status == status
    api.accounts.close()


def test_what_is_not_json_is_refused(api: Api) -> None:
    answer = api.ask("POST", "/mcp", data=b"{", content_type="application/json")
    assert (answer.status, answer.body["error"]["code"]) == (400, PARSE_ERROR)
    assert "id" not in answer.body
    answer = api.ask("POST", "/mcp", data=json.dumps(message("ping", {}, LEGACY)), content_type="text/plain")
    assert (answer.status, answer.body["error"]["code"]) == (400, INVALID_REQUEST)


def test_a_message_with_too_many_values_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = SETTINGS + "api: {limits: {values: 20}}\n"
    api = make(tmp_path_factory.mktemp("site"), {**FILES, "site.yaml": settings})
    answer = Agent(api).post("tools/call", {"name": "find", "arguments": {"fields": ["a"] * 30}})
    assert (answer.status, answer.body["error"]["code"]) == (400, INVALID_REQUEST)
    api.accounts.close()


def test_a_bad_token_is_refused_before_any_message_is_read(api: Api) -> None:
    refused = Agent(api, "nonsense").post("tools/list")
    assert refused.status == 401
    assert "does not contain a valid token of this site" in refused.error["message"]
    error = JSONRPCError.model_validate_json(refused.raw)  # as clients read it
    assert (error.id, error.error.code) == (None, INVALID_REQUEST)


@pytest.mark.parametrize("header", ["Bearer ", "Bearer", "", "token"])
def test_an_authorization_without_a_token_is_refused(api: Api, header: str) -> None:
    refused = Agent(api, "public").post("tools/list", headers={"Authorization": header})
    assert refused.status == 401
    assert "contains no token" in refused.error["message"]


def test_an_unknown_tool_is_an_error_of_the_protocol(modern: Agent) -> None:
    answer = modern.post("tools/call", {"name": "drop", "arguments": {}})
    assert answer.body["error"]["code"] == INVALID_PARAMS
    assert "site_info" in answer.body["error"]["message"]


def test_a_client_without_structured_content_gets_json_as_text(api: Api) -> None:
    sent = message("tools/call", {"name": "get", "arguments": {"type": "home"}}, LEGACY)
    answer = api.ask("POST", "/mcp", json=sent)  # without the header of the version
    [text] = answer.body["result"]["content"]
    assert json.loads(text["text"].partition("\n")[2])["data"]["title"] == "Home"
    assert "structuredContent" not in answer.body["result"]


@pytest.mark.parametrize("version", [MODERN, LEGACY])
def test_the_text_of_a_result_is_its_json_or_a_summary(api: Api, tmp_path: Path, version: str) -> None:
    params = {"name": "find", "arguments": {"type": "article", "fields": ["rating"], "pageSize": 2}}
    result = Agent(api, version=version).ask("tools/call", params)
    [text] = result["content"]
    assert json.loads(text["text"]) == result["structuredContent"]
    assert '"rating":4.5}' in text["text"]
    settings = SETTINGS.replace("{enabled: true}", "{enabled: true, text: summary}")
    other = make(tmp_path, {**FILES, "site.yaml": settings})
    short = Agent(other, version=version).ask("tools/call", params)
    other.accounts.close()
    assert short["content"] == [{"type": "text", "text": "2 of 3 articles. Next: page=2, pageSize=2."}]
    assert short["structuredContent"] == result["structuredContent"]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_is_text_without_structured_content(api: Api, version: str) -> None:
    params = {"name": "get", "arguments": {"type": "tag", "documentId": "none"}}
    result = Agent(api, version=version).ask("tools/call", params)
    [text] = result["content"]
    line, body = error_in(text["text"])
    assert line.endswith("(404 NotFoundError)")
    assert body["error"]["status"] == 404
    assert result["isError"]
    assert "structuredContent" not in result


def test_a_message_is_too_large_for_callers_who_may_not_send_files(api: Api) -> None:
    sent = message("ping", {"a": "x" * 70_000}, LEGACY)
    api.token("reader", may=["article.find"])
    for who, status in (("public", 413), ("reader", 413), ("full", 200)):
        answer = api.ask("POST", "/mcp", who, json=sent)
        assert answer.status == status, who
    assert "65,536" in api.ask("POST", "/mcp", "public", json=sent).body["error"]["message"]


def test_a_rate_limit_counts_each_message_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = SETTINGS + "api: {rate_limit: 3 per hour}\n"
    api = make(tmp_path_factory.mktemp("site"), {**FILES, "site.yaml": settings})
    agent = Agent(api)
    for _ in range(3):
        assert not agent.call("site_info").is_error  # sends two requests
    assert agent.post("tools/list").status == 429
    api.accounts.close()


def test_a_site_without_agents_loads_nothing(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "site.yaml": ""})
    done = subprocess.run([sys.executable, "-c", LOADED, str(tmp_path)], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("404\n[]\n", 0), done.stderr


LOADED = """
import sys
from pathlib import Path
from server.api.app import create_app
from server.auth.accounts import Accounts
from server.service.opening import Mode, open_site

root = Path(sys.argv[1])
client = create_app(open_site(root, Mode.COMMAND).site, Accounts(root)).test_client()
print(client.post("/mcp", json={}).status_code)
print([name for name in sys.modules if name.startswith("server.api.mcp")])
"""
