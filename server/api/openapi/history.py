"""The operations of `/history`, as far as the caller may use them (docs/history.md)."""

from collections.abc import Iterator

from server.api.openapi.operations import READ, WRITE, answer, closed, json_content, operation
from server.api.openapi.parameters import name_in_path
from server.api.openapi.services.caller import Caller
from server.api.openapi.types import ref
from server.api.openapi.values import JsonSchema

HISTORY = "History"
_TEXT: JsonSchema = {"type": "string"}
_DATE: JsonSchema = {"type": ["string", "null"]}
_COMMIT = {
    "commit": {"type": ["string", "null"], "description": "null for what is not committed yet."},
    "author": {"anyOf": [closed({"name": _TEXT, "email": _TEXT}), {"type": "null"}]},
    "date": _DATE,
}
_ACTION: JsonSchema = {"enum": ["create", "update", "delete", "rename"]}
_STATUS: JsonSchema = {"enum": ["published", "draft"]}
_VERSION = closed(
    {
        **_COMMIT,
        "message": {"type": ["string", "null"]},
        "locale": _TEXT,
        "status": _STATUS,
        "action": _ACTION,
        "attributes": {
            "type": ["array", "null"],
            "items": _TEXT,
            "description": "Those that differ from before; null where the file can't be read.",
        },
    }
)
_DOCUMENT = closed(
    {"type": _TEXT, "documentId": _TEXT, "locale": _TEXT, "status": _STATUS, "action": _ACTION}
)
_OF_SITE = closed(
    {
        **_COMMIT,
        "message": _TEXT,
        "documents": {"type": "array", "items": _DOCUMENT},
        "count": {"type": "integer", "description": "How many documents the commit has changed."},
    }
)
_DELETED = closed(
    {
        "documentId": _TEXT,
        "title": {"type": ["string", "null"]},
        **_COMMIT,
        "message": {"type": ["string", "null"]},
        "versions": {
            "type": "array",
            "items": closed({"locale": _TEXT, "status": _STATUS, "at": _TEXT}),
            "description": "What there was, and the commit that it is restored from.",
        },
    }
)
_ASKS_DELETED: JsonSchema = {
    "name": "deleted",
    "in": "query",
    "description": "The documents that were deleted, instead of the commits of a single type.",
    "schema": {"const": "true"},
}
_RESTORED: JsonSchema = {
    "type": "object",
    "properties": {
        "at": {**_TEXT, "minLength": 1, "description": "A commit, tag, branch or time."},
        "status": {**_STATUS, "description": "Which version there; without it, that which is written."},
        "fields": {"type": "array", "minItems": 1, "items": _TEXT, "description": "Without it, all."},
    },
    "required": ["at"],
    "additionalProperties": False,
}
_TEXT_OR_NULL: JsonSchema = {"type": ["string", "null"]}
_FILE = {
    "path": _TEXT,
    "before": {**_TEXT_OR_NULL, "description": "Where a file was that was renamed."},
    "action": _ACTION,
    **dict.fromkeys(("type", "documentId", "locale", "status", "title"), _TEXT_OR_NULL),
    "date": _DATE,
}
_NAMES: JsonSchema = {"type": ["array", "null"], "items": _TEXT}
_NOT_COMMITTED = closed(
    {
        "data": {"type": "array", "items": closed({**_FILE, "attributes": _NAMES})},
        "meta": closed(
            {
                "head": _TEXT,
                "branch": _TEXT_OR_NULL,
                "commit": {**_TEXT, "description": "When writes are committed, as `git.commit` has it."},
                "underWay": {**_TEXT_OR_NULL, "description": "What git is at: a merge, a rebase."},
                "pending": {"type": "integer", "description": "How many writes wait to be committed."},
                "pagination": ref("Pagination"),
            }
        ),
    }
)
_DIFFERENCE = closed(
    {
        "data": closed({**_FILE, "attributes": {"type": ["object", "null"]}, "lines": _NAMES}),
        "meta": closed({"head": _TEXT}),
    }
)
_COMMITTING: JsonSchema = {
    "type": "object",
    "properties": {
        "message": {**_TEXT, "minLength": 1, "maxLength": 10_000},
        "files": {"type": "array", "minItems": 1, "maxItems": 5000, "items": _TEXT},
    },
    "required": ["message", "files"],
    "additionalProperties": True,
}
_COMMITTED = closed({"data": closed({"commit": _TEXT, "files": {"type": "array", "items": _TEXT}})})
_PATH = {"name": "path", "in": "query", "required": True, "schema": _TEXT}
_TYPE = name_in_path(
    "type", "The name of a content type: the plural of a collection, or that of a single type."
)
_ID = name_in_path("documentId", "A document; of a single type, `diff` or `blame`.")
_ERRORS = (*READ, 404, 409, 503)


def history_paths(caller: Caller) -> Iterator[tuple[str, JsonSchema]]:
    """The paths below `/history`, each with the method that the caller may use."""
    one, actor, limited = "/history/{type}/{documentId}", caller.actor, caller.limited
    if actor.may("history", "read"):
        anyone = caller.public.may("history", "read")
        yield (
            "/history",
            _read("findHistory", "The commits of the site", _page(_OF_SITE), (), anyone, limited),
        )
        yield from _uncommitted_paths(caller)
        yield (
            "/history/{type}",
            _read(
                "findTypeHistory",
                "The commits of a single type, or the deleted documents of any",
                {"anyOf": [_page(_VERSION), _page(_DELETED)]},
                (_TYPE, _ASKS_DELETED),
                anyone,
                limited,
            ),
        )
        yield (
            one,
            _read("findDocumentHistory", "The commits of a document", {}, (_TYPE, _ID), anyone, limited),
        )
        what = {**name_in_path("what", "How two versions differ, or where each value is from.")}
        what["schema"] = {"type": "string", "enum": ["diff", "blame"]}
        yield (
            one + "/{what}",
            _read("findVersions", "What differs, or who wrote it", {}, (_TYPE, _ID, what), anyone, limited),
        )
    if actor.may("history", "restore"):
        yield "/history/{type}/restore", _restore("restoreSingle", (_TYPE,), caller)
        yield f"{one}/restore", _restore("restore", (_TYPE, _ID), caller)


def _uncommitted_paths(caller: Caller) -> Iterator[tuple[str, JsonSchema]]:
    """What is in no commit yet, and commits of it."""
    anyone, limited = caller.public.may("history", "read"), caller.limited
    listed = _read("findUncommitted", "Files that are not committed", _NOT_COMMITTED, (), anyone, limited)
    page: JsonSchema = {"type": "integer", "minimum": 1, "maximum": 999_999}
    pages = [{"name": name, "in": "query", "schema": page} for name in ("page", "pageSize")]
    listed["get"]["parameters"] = pages
    yield "/history/uncommitted", listed
    summary = "What differs in one of them"
    yield (
        "/history/uncommitted/diff",
        _read("diffUncommitted", summary, _DIFFERENCE, (_PATH,), anyone, limited),
    )
    if caller.actor.may("history", "commit"):
        made = operation(
            HISTORY,
            "commitFiles",
            "Commit files as they are, and nothing else",
            {201: answer("The commit.", _COMMITTED)},
            body={"required": True, "content": json_content(_COMMITTING)},
            errors=WRITE,
            public=anyone and caller.public.may("history", "commit"),
            limited=limited,
        )
        yield "/history/commit", {"post": made}


def _page(item: JsonSchema) -> JsonSchema:
    meta = closed({"pagination": ref("Pagination")})
    return closed({"data": {"type": "array", "items": item}, "meta": meta})


def _read(
    name: str, summary: str, shown: JsonSchema, path: tuple[JsonSchema, ...], public: bool, limited: bool
) -> JsonSchema:
    answers = {200: answer("What git says.", shown or {"type": "object"})}
    found = operation(
        HISTORY, name, summary, answers, parameters=path, errors=_ERRORS, public=public, limited=limited
    )
    return {"get": found}


def _restore(name: str, path: tuple[JsonSchema, ...], caller: Caller) -> JsonSchema:
    answers = {
        200: answer("The document as it is now.", {"type": "object"}),
        201: answer("The document, which was deleted and is there again.", {"type": "object"}),
    }
    found = operation(
        HISTORY,
        name,
        "An earlier version, written again",
        answers,
        parameters=[*path, *[ref("branch", "parameters")] * caller.branches],
        body={"required": True, "content": json_content(_RESTORED)},
        errors=(*WRITE, 404),
        public=caller.public.may("history", "restore"),
        limited=caller.limited,
        commits=caller.commits,
    )
    return {"post": found}
