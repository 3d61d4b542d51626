"""The operations of `/problems`, as far as the caller may use them (docs/check.md)."""

from collections.abc import Iterator

from server.api.openapi.operations import READ, WRITE, answer, closed, json_content, operation
from server.api.openapi.services.caller import Caller
from server.api.openapi.types import ref
from server.api.openapi.values import JsonSchema
from server.auth.permissions import PROBLEMS as SUBJECT
from server.auth.permissions import may_of_site
from server.problems import RULES
from server.site.site import State

PROBLEMS = "Problems"
_TEXT: JsonSchema = {"type": "string"}
_TEXT_OR_NULL: JsonSchema = {"type": ["string", "null"]}
_NUMBER: JsonSchema = {"type": "integer", "minimum": 0}
_NUMBER_OR_NULL: JsonSchema = {"type": ["integer", "null"]}
_NAMED = {"path": _TEXT, "key": _TEXT, "before": _TEXT_OR_NULL, "after": _TEXT}
_FIX = closed(_NAMED)
_PROBLEM = closed(
    {
        "path": {**_TEXT, "description": "The file, relative to the site."},
        "line": _NUMBER_OR_NULL,
        "column": _NUMBER_OR_NULL,
        "severity": {"enum": ["error", "warning"]},
        "rule": {"enum": list(RULES)},
        "message": _TEXT,
        "fix": {**_TEXT, "description": "What to do about it."},
        **dict.fromkeys(("type", "documentId", "locale", "status", "title", "attribute"), _TEXT_OR_NULL),
        "change": {"anyOf": [_FIX, {"type": "null"}], "description": "What fixes it, where that is safe."},
    }
)
_META = closed(
    {
        "checkedAt": {**_TEXT, "format": "date-time"},
        "current": {"type": "boolean", "description": "Whether no change of the site is known since."},
        **dict.fromkeys(("errors", "warnings", "fixable"), _NUMBER),
        "more": {**_NUMBER, "description": "How many problems there are that are not told."},
        "pagination": ref("Pagination"),
    }
)
_FIXED = closed(
    {
        "fixed": {"type": "array", "items": _FIX},
        "refused": {"type": "array", "items": closed({**_NAMED, "reason": _TEXT})},
    }
)
_WANTED = closed({"fixes": {"type": "array", "minItems": 1, "maxItems": 1000, "items": _FIX}})


def problem_paths(caller: Caller, state: State) -> Iterator[tuple[str, JsonSchema]]:
    """The paths below `/problems`."""

    def may(action: str) -> bool:
        return may_of_site(caller.actor, SUBJECT, action, state.schema)

    def is_public(action: str) -> bool:
        return may_of_site(caller.public, SUBJECT, action, state.schema)

    if may("find"):
        shown = closed({"data": {"type": "array", "items": _PROBLEM}, "meta": _META})
        listed = operation(
            PROBLEMS,
            "findProblems",
            "What is wrong with the files of the site",
            {200: answer("The problems by file and line.", shown)},
            parameters=list(_parameters()),
            errors=(*READ, 503),
            public=is_public("find"),
            limited=caller.limited,
        )
        yield "/problems", {"get": listed}
    if may("find") and may("fix"):
        fixed = operation(
            PROBLEMS,
            "fixProblems",
            "Fix some of them, as GET /problems says that they can be",
            {200: answer("What was fixed, and what was not.", closed({"data": _FIXED}))},
            body={"required": True, "content": json_content(_WANTED)},
            errors=WRITE,
            public=is_public("fix"),
            limited=caller.limited,
            commits=state.settings.commit is not None,
        )
        yield "/problems/fix", {"post": fixed}


def _parameters() -> Iterator[JsonSchema]:
    page: JsonSchema = {"type": "integer", "minimum": 1, "maximum": 999_999}
    for name, schema in (
        ("severity", {"enum": ["error", "warning"]}),
        ("fixable", {"type": "boolean"}),
        ("type", _TEXT),
        ("documentId", _TEXT),
        ("page", page),
        ("pageSize", page),
    ):
        yield {"name": name, "in": "query", "schema": schema}
