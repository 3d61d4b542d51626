"""The `check` tool, and the problems that a write causes."""

import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from server.api.mcp.json_rpc import Json, encode
from server.api.mcp.rest_client import Reply
from server.api.mcp.tools.destination import Destination
from server.api.mcp.tools.paths import unknown_paths
from server.api.mcp.tools.schemas import BRANCH, COUNT, LISTED, PAGES, PATHS, TEXT
from server.api.mcp.tools.tool import Call, Result, Tool, body_of, fitting_page, list_summary
from server.service.problems import MAX_PATHS

# A write's result has at most this many problems.
MAX_NEW_PROBLEMS = 20
_KEYS = (
    "path",
    "line",
    "column",
    "severity",
    "rule",
    "message",
    "fix",
    "type",
    "documentId",
    "locale",
    "new",
)
_OPTION = "--fix "
PAGE_PROBLEMS = 100
MAX_PROBLEM_PAGES = 10
_MAX_NAMED_PATHS = 3  # in the line of text
FIRST_CHECK_TIMEOUT_S = 30.0  # Clients often end a call after 60 s.
CHECK_PAUSE_S = 0.5  # between attempts


def check(call: Call) -> Result:
    """Run the `check` tool."""
    branch = call.text("branch")
    if branch:
        call.reject("with a branch", "severity")
    query = call.values("page", "pageSize", "severity")
    if call.arguments.get("paths"):
        query["path"] = call.arguments["paths"]
    path = f"/branches/{branch}/problems" if branch else "/problems"
    body = body_of(_wait_for_check(call, path, query))
    meta = body["meta"]["pagination"]
    offset = (meta["page"] - 1) * meta["pageSize"]
    found = [_short(one) for one in body["data"]]
    unknown = unknown_paths(call, _paths_without_problems(call, found), branch)
    note = _unknown_paths_note(unknown)
    room = call.max_bytes - len(encode([unknown, note]))
    listed = fitting_page(found, meta["total"], offset, meta["pageSize"], room)
    line = list_summary(listed, f"problems on {branch or 'the served branch'}")
    return Result(line + note, listed | ({"unknownPaths": unknown} if unknown else {}))


def _unknown_paths_note(paths: Sequence[str]) -> str:
    more = len(paths) - _MAX_NAMED_PATHS
    end = f" and {more} more (see unknownPaths)." if more > 0 else "."
    return f" No document has these paths: {', '.join(paths[:_MAX_NAMED_PATHS])}{end}" if paths else ""


def _paths_without_problems(call: Call, found: Sequence[Json]) -> list[str]:
    paths = call.arguments.get("paths") or []
    named = {problem["path"] for problem in found}
    return [path for path in dict.fromkeys([paths] if isinstance(paths, str) else paths) if path not in named]


def _wait_for_check(call: Call, path: str, query: Json) -> Reply:
    deadline = time.monotonic() + FIRST_CHECK_TIMEOUT_S
    while True:
        reply = call.rest.send("GET", path, query)  # waits 3 s for a check
        if reply.status != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > deadline:
            return reply
        time.sleep(CHECK_PAUSE_S)  # A busy server refuses requests at once.


def _short(problem: Mapping[str, Any]) -> Json:
    shown = {key: problem[key] for key in _KEYS if problem.get(key) not in (None, "")}
    if str(shown.get("fix", "")).startswith(_OPTION):  # an option of the command, which agents may not know
        shown["fix"] = f"bifolio check {shown['fix']}"
    return shown


# --- writes ---------------------------------------------------------------------------------------

_Key = tuple[str, str, str]


def problems_before(call: Call, destination: Destination) -> frozenset[_Key] | None:
    """Return keys that identify the problems in the served site before a write.

    Return None if the write goes to a branch, or if the problems can't be determined.
    """
    found = None if destination.branch else _served_problems(call)
    return None if found is None else frozenset(map(_key_of, found))


def new_problems(call: Call, destination: Destination, before: frozenset[_Key] | None) -> list[Json] | None:
    """Return at most 20 problems that a write caused, or None if they can't be determined."""
    if not destination.branch:
        after = None if before is None else _served_problems(call)
        if before is None or after is None:
            return None
        found = [one for one in after if _key_of(one) not in before]
    else:
        since = {"since": destination.commit} if destination.commit else {}
        path = f"/branches/{destination.branch}/problems"
        reply = call.rest.send("GET", path, {**since, "pageSize": PAGE_PROBLEMS})
        if reply.is_error:
            return None
        found = [one for one in reply.body["data"] if one["new"]]
    return [_short(one) for one in found[:MAX_NEW_PROBLEMS]]


def _served_problems(call: Call) -> list[Json] | None:
    found: list[Json] = []
    for page in range(1, MAX_PROBLEM_PAGES + 1):
        reply = call.rest.send("GET", "/problems", {"page": page, "pageSize": PAGE_PROBLEMS})
        if reply.is_error or not reply.body["meta"]["current"]:
            return None
        found += reply.body["data"]
        if len(found) >= reply.body["meta"]["pagination"]["total"]:
            return found
    return None


def _key_of(problem: Mapping[str, Any]) -> _Key:
    return problem["path"], problem["rule"], problem["message"]


TOOLS = (
    Tool(
        "check",
        "Check for problems",
        "Problems such as dangling relations and broken links, in the served content or "
        "in a branch's changes.",
        {
            "branch": {**BRANCH, "description": "Default: the served content"},
            "paths": {**PATHS, "items": TEXT, "minItems": 1, "maxItems": MAX_PATHS},
            "severity": {"enum": ["error", "warning"], "description": "Not with branch"},
            **PAGES,
        },
        {**LISTED, "total": COUNT},
        check,
        optional=("next",),
        is_read_only=True,
    ),
)
