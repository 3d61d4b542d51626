"""Calls of the Model Context Protocol: every method, tool, resource and prompt (docs/agents.md).

New methods and tools are called automatically, with arguments that their schemas describe.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from random import Random
from typing import Any

from server.api.mcp.dispatcher import METHODS
from server.api.mcp.prompting import PROMPTS
from server.api.mcp.tools.table import BY_NAME, TOOLS
from tests.matrix.compare import Shown
from tests.matrix.requests import Request, sample
from tests.matrix.secrets import Group, Secrets, probes
from tests.matrix.sites import served
from tests.mcp.agents import LEGACY, MODERN, error_in, headers_of, message

# Subscriptions send the events that requests for `findEvents` already read.
NOT_CALLED = frozenset({"subscriptions/listen", "resources/subscribe", "resources/unsubscribe"})
_OF_THE_PAST = frozenset({"initialize", "ping"})  # methods that the current version does not have
_PRIVATE, _HIDDEN, _DRAFT, _PAST, _BRANCH, _NAME = (
    probes(group)[0]
    for group in (Group.PRIVATE, Group.HIDDEN, Group.DRAFT, Group.PAST, Group.BRANCH, Group.NAME)
)
Arguments = Mapping[str, Any]


def rpc(method: str, params: Arguments, *, is_read: bool = True) -> Request:
    """Return a request to POST /mcp."""
    version = LEGACY if method in _OF_THE_PAST else MODERN
    part = f"{method} {params['name']}" if method == "tools/call" else method
    headers = headers_of(method, params, version)
    return Request(
        "mcp", "POST", "/mcp", headers, message(method, params, version), part=part, is_read=is_read
    )


def call(tool: str, arguments: Arguments) -> Request:
    return rpc("tools/call", {"name": tool, "arguments": arguments}, is_read=BY_NAME[tool].is_read_only)


def status_of(request: Request, shown: Shown) -> int:
    """Return the status of a response. For an error inside a successful response, return the error's."""
    if request.operation != "mcp" or shown.status >= 400 or not shown.body:
        return shown.status
    response = json.loads(shown.body)
    if "error" in response:
        return 400
    result = response["result"]
    if not result.get("isError"):
        return shown.status
    _, content = error_in(result["content"][0]["text"])
    status: int = content["error"]["status"]
    return status


def parts() -> set[str]:
    """Return the names of everything that must succeed for at least one identity."""
    return {f"tools/call {tool.name}" for tool in TOOLS} | (METHODS.keys() - NOT_CALLED - {"tools/call"})


# --- tools ----------------------------------------------------------------------------------------

_A1: Arguments = {"type": "article", "documentId": "a1"}
_V1: Arguments = {"type": "vault", "documentId": "v1"}
_READS: Mapping[str, Sequence[Arguments]] = {
    "site_info": ({}, {"pageSize": 1}),
    "get_schema": tuple({"type": name} for name in ("article", "home")),
    "find": (
        {"type": "article", "populate": "*"},
        {"type": "article", "status": "draft", "populate": {"tag": {"populate": "*"}}},
        {"type": "article", "at": "main~4"},
        {"type": "article", "at": "next", "locale": "fr"},
        {"type": "article", "sort": "secret"},
        {"type": "article", "q": _PRIVATE},
        {"type": "article", "filters": {"vault": {"title": {"$startsWith": _HIDDEN}}}, "pageSize": 1},
        {"type": "article", "filters": {"secret": {"$startsWith": _PRIVATE}}},
        {"type": "tag", "filters": {"articles": {"title": {"$startsWith": _DRAFT}}}},
        {"type": "vault"},
    ),
    "get": (
        *({**_A1, **more} for more in ({"populate": "*"}, {"status": "draft"}, {"at": "main~4"})),
        _V1,
        {"type": "article", "documentId": "d1"},
        {"type": "article", "documentId": "gone", "at": "main~4"},
        {"type": "home"},
    ),
    "search": (
        {"q": "article", "pageSize": 2},
        {"q": "articel", "type": ["article", "vault"]},
        *({"q": word, "status": "draft"} for word in (_PRIVATE, _HIDDEN, _DRAFT)),
        {"q": _PAST, "at": "main~4"},
    ),
    "diff": (
        {"branch": "next"},
        {"branch": f"{_BRANCH}name"},
        {},
        {**_A1, "from": "main~4"},
        {**_V1, "from": "main~4"},
    ),
    "check": ({}, {"branch": "next"}, {"branch": f"{_BRANCH}name"}, {"paths": "content/vaults/v1.json"}),
    "history": ({}, _A1, {**_A1, "status": "draft"}, _V1, {"type": "home"}),
    "read_file": (
        *(
            {"path": f"content/{path}.json"}
            for path in ("articles/a1", "articles/d1.draft", "vaults/v1", "vaults/nope", "tags/t1", "home")
        ),
        {"path": "content/articles/r2.json", "at": "next"},
        {"path": "content/articles/a1.json", "at": f"{_BRANCH}name"},
        {"path": "site.yaml"},
        {"path": "secret.txt"},
        {"path": "content/articles/../../secret.txt"},
    ),
}
_NEXT: Arguments = {"branch": "next"}
_TITLE: Arguments = {"action": "update", **_A1, "data": {"title": "New title"}}
_FILE: Arguments = {"path": "content/tags/t1.json", "text": "<text> ", "ifMatch": "<tag>"}
_WRITES: Mapping[str, Sequence[Arguments]] = {
    "write": (
        {"operations": [_TITLE], "message": "Of an agent"},
        {"operations": [_TITLE], **_NEXT},
        {"operations": [_TITLE], "dryRun": True},
        {"operations": [{**_TITLE, "status": "draft", "data": {"vault": "v1"}}], **_NEXT},
        {"operations": [{"action": "update", "type": "home", "data": {"title": "New home"}}]},
        {"operations": [{"action": "create", "type": "article", "data": {"title": "New", "tag": "t1"}}]},
        {"operations": [{"action": "delete", "type": "vault", "documentId": "v1"}]},
        {"operations": [{"action": action, **_A1} for action in ("unpublish", "publish", "discard")]},
        {"operations": [{"action": "delete", "type": "tag", "documentId": "t2"}], **_NEXT},
    ),
    "restore": (
        {**_A1, "version": "main~4", "fields": "title"},
        {**_A1, "version": "main~4", "dryRun": True},
        {**_V1, "version": "main~4"},
        {**_A1, "version": "main~4", **_NEXT},
    ),
    "write_file": (
        _FILE,
        {**_FILE, "dryRun": True},
        {**_FILE, **_NEXT, "path": "content/articles/a1.json"},
        {**_FILE, "path": "content/vaults/v1.json"},
    ),
    "upload": (
        {"data": "QSBmaWxl", "name": "new.txt", "alternativeText": "A file"},
        {"data": "QSBmaWxl", "name": "new.txt", **_NEXT},
        {"url": "https://example.org/a.txt"},
    ),
}


def calls() -> Iterator[Request]:
    """Yield calls of tools, most of which succeed if the identity has the permission."""
    for tool, each in {**_READS, **_WRITES}.items():
        yield from (call(tool, arguments) for arguments in each)


def own_branch_calls() -> Iterator[Request]:
    """Yield calls whose results depend on where the site lets agents write."""
    yield call("site_info", {})
    yield call("diff", {})
    for tool in ("write", "restore", "write_file", "upload"):
        yield call(tool, _WRITES[tool][0])


def random_calls(random: Random) -> Iterator[Request]:
    """Yield a random call of each tool."""
    for tool in TOOLS:
        yield call(tool.name, sample(random, tool.input_schema))


# --- other methods --------------------------------------------------------------------------------


def other_methods() -> Iterator[Request]:
    """Yield requests for every resource, prompt and completion, and for all other methods."""
    for uri in _uris():
        yield rpc("resources/read", {"uri": uri})
    for prompt in PROMPTS.values():
        arguments = {argument.name: "a1" for argument in prompt.arguments}
        yield rpc("prompts/get", {"name": prompt.name, "arguments": arguments})
    template = "bifolio://{type}/{documentId}{?locale,status}"
    for name, value, chosen in (
        *(("type", word, {}) for word in ("", _NAME)),
        *(("documentId", "", {"type": type_}) for type_ in ("article", "vault")),
        ("locale", "", {}),
    ):
        reference, argument = {"type": "ref/resource", "uri": template}, {"name": name, "value": value}
        yield rpc(
            "completion/complete", {"ref": reference, "argument": argument, "context": {"arguments": chosen}}
        )
    for value in ("", _BRANCH):
        reference, argument = (
            {"type": "ref/prompt", "name": "review-branch"},
            {"name": "branch", "value": value},
        )
        yield rpc("completion/complete", {"ref": reference, "argument": argument})
    for method in METHODS.keys() - NOT_CALLED - {"tools/call"}:
        yield rpc(method, {"protocolVersion": LEGACY} if method == "initialize" else {})


def _uris() -> list[str]:
    """Return the URIs of all documents of the first twin, and of its content types.

    If a request contains the exact name of a hidden content type, the status is 403 instead of 404
    (docs/access.md). Therefore, twins whose content types have other names would differ.
    """
    paths = (path for path in served(Secrets()) if path.endswith(".json") and _NAME not in path)
    files = [PurePosixPath(path) for path in paths]
    found = [f"bifolio://schema/{path.stem}" for path in files if path.match("content-types/*.json")]
    for path in files:
        if path.parts[0] == "content":
            name, *more = path.name.removesuffix(".json").split(".")
            query = "&".join("status=draft" if part == "draft" else f"locale={part}" for part in more)
            type_ = f"{path.parent.name.removesuffix('s')}/" if len(path.parts) == 3 else ""
            found.append(f"bifolio://{type_}{name}{f'?{query}' if query else ''}")
    return sorted(found)
