"""Benchmark of the MCP server: bytes of the list of tools, tools beside the REST API, and memory."""

import http.client
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.effort import scaled
from bench.serving import Serving, bifolio
from bench.sites import article_id, make_site
from bench.tables import ratio, show, size
from bench.writing import writing_token
from server.api.mcp.json_rpc import Json
from server.api.mcp.protocol import CAPABILITIES_KEY, STATELESS, VERSION_KEY

TYPES = (5, 200)  # numbers of content types
MAX_LIST_BYTES = 12_000
# Limits of a tool's bytes compared with the REST API's. By default, a response contains its JSON twice.
MAX_BYTES_RATIO = 2.5
MAX_SUMMARY_RATIO = 1.2
ARTICLES = scaled(2000, 50)
ROUNDS = ARTICLES // 2 - 2


@dataclass(frozen=True, slots=True)
class _EquivalentRequests:
    """A tool's arguments and the REST API's path with the same result, for each round."""

    name: str
    tool: str
    arguments: Callable[[int], Json]
    path: Callable[[int], str]


def measure(folder: Path) -> None:
    """Print the measurements. Raises RuntimeError if a response is too long."""
    _measure_lists(folder / "types")
    root = folder / "site"
    root.mkdir()
    make_site(root, ARTICLES)
    token = writing_token(root)
    settings = (root / "site.yaml").read_text()
    off = _memory(root, token, calls=0)
    (root / "site.yaml").write_text(f"{settings}\nmcp: {{enabled: true}}\n")
    on, used = _memory(root, token, calls=0), _memory(root, token, calls=50)
    with bifolio(root, workers=1) as serving:
        rows = [_row(_Client(serving, token), pair) for pair in _pairs()]
    (root / "site.yaml").write_text(f"{settings}\nmcp: {{enabled: true, text: summary}}\n")
    with bifolio(root, workers=1) as serving:
        short = [_row(_Client(serving, token), pair, MAX_SUMMARY_RATIO) for pair in _pairs()]
    rows = [[*row[:2], *other[1:4], *row[4:]] for row, other in zip(rows, short, strict=True)]
    head = ["call", "bytes", "with text: summary", "REST", "ratio", "time", "REST", "ratio"]
    show(f"Tools beside the REST API, {ARTICLES:,} articles", head, rows)
    head = ["MCP server", "memory of a worker"]
    rows = [["off", size(off)], ["on, not used", size(on)], ["on, after 50 calls", size(used)]]
    show("Memory", head, rows)


# --- list of tools --------------------------------------------------------------------------------


def _measure_lists(folder: Path) -> None:
    rows = []
    for types in TYPES:
        root = folder / str(types)
        _make_types(root, types)
        with bifolio(root, workers=1) as serving:
            client = _Client(serving, "")
            _, listed = client.send("tools/list", {})
            _, info = client.send("tools/call", {"name": "site_info", "arguments": {}})
        if listed > MAX_LIST_BYTES:
            raise RuntimeError(f"tools/list has {listed:,} bytes, more than {MAX_LIST_BYTES:,}")
        rows.append([f"{types} content types", f"{listed:,}", f"{info:,}"])
    show("Bytes of responses by the number of content types", ["site", "tools/list", "site_info"], rows)


def _make_types(root: Path, types: int) -> None:
    (root / "content-types").mkdir(parents=True)
    names = [f"kind-{number}" for number in range(types)]
    grants = "".join(f"    {name}: [find, findOne]\n" for name in names)
    (root / "site.yaml").write_text(f"mcp: {{enabled: true}}\nroles:\n  public:\n{grants}")
    for name in names:
        described = {
            "kind": "collectionType",
            "info": {"singularName": name, "pluralName": f"{name}s", "displayName": name.title()},
            "attributes": {f"text{i}": {"type": "string"} for i in range(20)},
        }
        (root / "content-types" / f"{name}.json").write_text(json.dumps(described))


# --- tools beside the REST API --------------------------------------------------------------------


def _pairs() -> list[_EquivalentRequests]:
    some = {"type": "article", "sort": "title", "pageSize": 25}
    listed = "sort=title&pagination[pageSize]=25"

    def get(turn: int, **more: Any) -> Json:
        return {"type": "article", "documentId": article_id(turn), **more}

    def find(turn: int, **more: Any) -> Json:
        return {**some, "filters": {"slug": {"$ne": f"none-{turn}"}}, **more}

    return [
        _EquivalentRequests("get", "get", get, lambda turn: f"/{article_id(turn)}"),
        _EquivalentRequests(
            "get, with its author",
            "get",
            lambda turn: get(turn, populate={"author": {"fields": ["name"]}}),
            lambda turn: f"/{article_id(turn)}?populate[author][fields][0]=name",
        ),
        _EquivalentRequests(
            "find, 25 titles",
            "find",
            lambda turn: find(turn, fields=["title"]),
            lambda turn: f"?{listed}&fields[0]=title&filters[slug][$ne]=none-{turn}",
        ),
        _EquivalentRequests(
            "find, 25 whole articles", "find", find, lambda turn: f"?{listed}&filters[slug][$ne]=none-{turn}"
        ),
    ]


def _row(client: "_Client", pair: _EquivalentRequests, max_ratio: float = MAX_BYTES_RATIO) -> list[str]:
    ours, theirs, sizes = [], [], [0, 0]
    for turn in range(-2, ROUNDS):  # The first turns are a warm-up.
        # All requests are different, so that no response comes from a cache.
        mine, other = 2 * (turn + 2), 2 * (turn + 2) + 1
        taken, called = client.send("tools/call", {"name": pair.tool, "arguments": pair.arguments(mine)})
        requested, rest = client.get(f"/api/articles{pair.path(other)}")
        if turn >= 0:
            ours.append(taken)
            theirs.append(requested)
            sizes = [sizes[0] + called, sizes[1] + rest]
    called, rest = (each // ROUNDS for each in sizes)
    if called > max_ratio * rest:
        raise RuntimeError(f"{pair.name} has {called:,} bytes, and the REST API has {rest:,}")
    mine_s, other_s = median(ours), median(theirs)
    times = f"{mine_s * 1000:.2f} ms", f"{other_s * 1000:.2f} ms", ratio(mine_s / other_s)
    return [pair.name, size(called), size(rest), ratio(called / rest), *times]


class _Client:
    """Connection to a server, through which an agent calls tools and another client reads."""

    def __init__(self, serving: Serving, token: str) -> None:
        self._connection = serving.connect()
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def send(self, method: str, params: dict[str, Any]) -> tuple[float, int]:
        """Send a message. Return the duration in seconds, and the size of the response."""
        meta = {VERSION_KEY: STATELESS.name, CAPABILITIES_KEY: {}}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {
            "Content-Type": "application/json",
            "MCP-Protocol-Version": STATELESS.name,
            "Mcp-Method": method,
            **({"Mcp-Name": str(params["name"])} if "name" in params else {}),
        }
        taken, body = self._request("POST", "/mcp", json.dumps(message), headers)
        found = json.loads(body)
        if "error" in found or found["result"].get("isError"):
            raise RuntimeError(f"{method}: {body[:300]!r}")
        return taken, len(body)

    def get(self, path: str) -> tuple[float, int]:
        taken, body = self._request("GET", path, None, {})
        return taken, len(body)

    def _request(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str]
    ) -> tuple[float, bytes]:
        began = time.perf_counter()
        self._connection.request(method, path, body, {**self._headers, **headers})
        answer: http.client.HTTPResponse = self._connection.getresponse()
        found = answer.read()
        taken = time.perf_counter() - began
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {found[:300]!r}")
        return taken, found


# --- memory ---------------------------------------------------------------------------------------


def _memory(root: Path, token: str, calls: int) -> int:
    """Return the memory of a worker after reads and calls of tools, in bytes."""
    with bifolio(root, workers=1) as serving:
        client = _Client(serving, token)
        client.get("/access")  # loads Flask
        for number in range(50):
            client.get(f"/api/articles/{article_id(number % ARTICLES)}")
        for number in range(calls):
            arguments = {"type": "article", "documentId": article_id(number % ARTICLES)}
            client.send("tools/call", {"name": "get", "arguments": arguments})
        return serving.memory()
