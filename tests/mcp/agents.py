"""An agent for tests, which calls tools through POST /mcp of the real app."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator

from server.api.mcp.protocol import CAPABILITIES_KEY, VERSION_KEY
from server.api.mcp.tools.table import BY_NAME
from tests.sites import Answer, Api

MODERN, LEGACY = "2026-07-28", "2025-11-25"


@dataclass(frozen=True, slots=True)
class Called:
    """The result of a tool: its line of text, its JSON, and whether it is an error."""

    line: str
    content: Any
    is_error: bool
    images: Sequence[Mapping[str, Any]] = ()

    @property
    def data(self) -> Any:
        assert not self.is_error, self.line
        return self.content["data"]

    @property
    def error(self) -> Any:
        assert self.is_error, self.content
        return self.content["error"]


def error_in(text: str) -> tuple[str, Any]:
    """Return the message and the JSON in the text of a tool's error."""
    line, _, body = text.partition("\n")
    return line, json.loads(body)


def message(method: str, params: Mapping[str, Any], version: str, id_: Any = 1) -> dict[str, Any]:
    """Return a JSON-RPC request."""
    meta = {"_meta": {VERSION_KEY: version, CAPABILITIES_KEY: {}}} if version == MODERN else {}
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**params, **meta}}


def headers_of(method: str, params: Mapping[str, Any], version: str) -> dict[str, str]:
    """Return the headers that a client sends with a request."""
    headers = {"MCP-Protocol-Version": version}
    if version == MODERN:
        headers["Mcp-Method"] = method
        if name := params.get("name", params.get("uri")):
            headers["Mcp-Name"] = name
    return headers


@dataclass(slots=True)
class Agent:
    """An agent with a token of the site, or with the permissions of the public."""

    api: Api
    who: str = "full"
    version: str = MODERN
    ids: Any = field(default_factory=lambda: itertools.count(1))

    def post(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> Answer:
        """Send a request and return the HTTP response. `headers` adds or replaces headers."""
        sent = message(method, params or {}, self.version, next(self.ids))
        headers = {**headers_of(method, params or {}, self.version), **options.pop("headers", {})}
        headers = {name: value for name, value in headers.items() if value is not None}
        return self.api.ask("POST", "/mcp", self.who, json=sent, headers=headers, **options)

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send a request and return its result."""
        answer = self.post(method, params)
        assert answer.status == 200, answer.body
        return answer.body["result"]

    def call(self, tool: str, **arguments: Any) -> Called:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        text, *images = result["content"]
        if result.get("isError"):
            assert "structuredContent" not in result
            return Called(*error_in(text["text"]), is_error=True)
        assert "\n" not in text["text"]  # JSON or a summary
        return Called(text["text"], result["structuredContent"], is_error=False, images=images)


def valid(tool: str, called: Called) -> Called:
    """Return the result of a tool, which must match the tool's schema."""
    assert not called.is_error, called.line
    Draft202012Validator(BY_NAME[tool].output_schema).validate(called.content)
    return called


def write(agent: Agent, *operations: dict[str, Any], **arguments: Any) -> Called:
    return valid("write", agent.call("write", operations=list(operations), **arguments))


def retitle(title: str, document_id: str = "fog") -> dict[str, Any]:
    return {"action": "update", "type": "article", "documentId": document_id, "data": {"title": title}}
