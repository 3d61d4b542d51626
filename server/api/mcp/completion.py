"""The `completion/complete` method, which suggests values for arguments."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from server.api.mcp.json_rpc import INVALID_PARAMS, Json, RpcError
from server.api.mcp.prompting import prompt_named
from server.api.mcp.request import Request
from server.api.mcp.resources import TEMPLATES
from server.api.mcp.rest_client import content_path, require_success
from server.api.mcp.uris import DOCUMENT_TEMPLATE, SCHEMA_TEMPLATE, VERSION_KEYS

MAX_VALUES = 100  # as the protocol specifies
MAX_VALUE_CHARS = 200
STATUSES = ("draft", "published")
_PROMPT, _RESOURCE = "ref/prompt", "ref/resource"
_TEMPLATE_ARGUMENTS: Mapping[str, Sequence[str]] = {
    DOCUMENT_TEMPLATE: ("type", "documentId", *VERSION_KEYS),
    SCHEMA_TEMPLATE: ("type",),
}


def complete(request: Request) -> Json:
    """Suggest argument values that begin with the typed text."""
    argument = _object(request.params, "argument")
    name, typed = argument.get("name"), argument.get("value")
    names = _argument_names(_object(request.params, "ref"))
    if name not in names:
        raise RpcError(
            INVALID_PARAMS, f"Unknown argument: {str(name)[:100]}; use {', '.join(names) or '(none)'}"
        )
    if not isinstance(typed, str) or len(typed) > MAX_VALUE_CHARS:
        raise RpcError(INVALID_PARAMS, f"The value must be a string of at most {MAX_VALUE_CHARS} characters")
    chosen = _object(_object(request.params, "context", {}), "arguments", {})
    values, total = _SOURCES[str(name)](request, typed, chosen)
    shown = values[:MAX_VALUES]
    return {"completion": {"values": shown, "total": total, "hasMore": total > len(shown)}}


def _object(params: Mapping[str, Any], name: str, default: Json | None = None) -> Json:
    found = params.get(name, default)
    if not isinstance(found, dict):
        raise RpcError(INVALID_PARAMS, f'"{name}" must be an object')
    return found


def _argument_names(reference: Json) -> Sequence[str]:
    kind, uri = reference.get("type"), reference.get("uri")
    if kind == _PROMPT:
        return [argument.name for argument in prompt_named(reference.get("name")).arguments]
    if kind != _RESOURCE:
        raise RpcError(INVALID_PARAMS, f"The type of a reference must be {_PROMPT} or {_RESOURCE}")
    found = _TEMPLATE_ARGUMENTS.get(uri) if isinstance(uri, str) else None
    if found is None:
        known = " and ".join(template["uriTemplate"] for template in TEMPLATES)
        raise RpcError(INVALID_PARAMS, f"Unknown resource template; the templates are {known}")
    return found


# --- values ---------------------------------------------------------------------------------------

_Suggestions = tuple[list[str], int]  # values, and how many there are in all


def _matching(names: Sequence[str], typed: str) -> _Suggestions:
    found = [name for name in names if name.lower().startswith(typed.lower())]
    return found, len(found)


def _access(request: Request) -> Json:
    found: Json = require_success(request.rest.send("GET", "/access")).body["data"]
    return found


def _types(request: Request, typed: str, chosen: Json) -> _Suggestions:
    described = _access(request)["contentTypes"]
    return _matching([each["schema"]["singularName"] for each in described], typed)


def _document_ids(request: Request, typed: str, chosen: Json) -> _Suggestions:
    name = chosen.get("type")
    type_ = request.rest.type_named(name) if isinstance(name, str) else None
    if type_ is None or type_.kind == "singleType":
        return [], 0
    query = {
        "fields": ["documentId"],
        "sort": "documentId",
        "pagination": {"start": 0, "limit": MAX_VALUES},
        **({"filters": {"documentId": {"$startsWithi": typed}}} if typed else {}),
    }
    reply = request.rest.send("GET", content_path(type_), query)
    if reply.is_error:
        return [], 0
    ids = [item["documentId"] for item in reply.body["data"]]
    return ids, reply.body["meta"]["pagination"]["total"]


def _locales(request: Request, typed: str, chosen: Json) -> _Suggestions:
    return _matching([locale["code"] for locale in _access(request)["site"]["locales"]], typed)


def _statuses(request: Request, typed: str, chosen: Json) -> _Suggestions:
    return _matching(STATUSES, typed)


def _branches(request: Request, typed: str, chosen: Json) -> _Suggestions:
    reply = request.rest.send("GET", "/branches")
    return ([], 0) if reply.is_error else _matching([each["name"] for each in reply.body["data"]], typed)


_SOURCES: Mapping[str, Callable[[Request, str, Json], _Suggestions]] = {
    "type": _types,
    "documentId": _document_ids,
    "locale": _locales,
    "status": _statuses,
    "branch": _branches,
}
