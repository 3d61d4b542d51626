"""The operations of `/branches`, as far as the caller may use them (docs/history.md)."""

from collections.abc import Iterator, Mapping
from typing import Any

from server.api.openapi.operations import READ, WRITE, answer, closed, json_content, operation
from server.api.openapi.parameters import name_in_path
from server.api.openapi.types import ref
from server.api.openapi.values import JsonSchema
from server.auth.permissions import Actor, may_branch
from server.schema.model import Schema

BRANCHES = "Branches"
_TEXT: JsonSchema = {"type": "string"}
_BRANCH = closed(
    {
        "name": _TEXT,
        "commit": _TEXT,
        "author": closed({"name": _TEXT, "email": _TEXT}),
        "date": {**_TEXT, "format": "date-time"},
        "served": {"type": "boolean", "description": "Whether it is checked out in the site's folder."},
        "checkedOut": {"type": "boolean", "description": "Whether it is checked out anywhere."},
    }
)
_NEW: JsonSchema = {
    "type": "object",
    "properties": {
        "name": {**_TEXT, "minLength": 1},
        "from": {**_TEXT, "minLength": 1, "description": "A commit, tag, branch or time; HEAD without it."},
    },
    "required": ["name"],
    "additionalProperties": False,
}
_SIDE: JsonSchema = {"enum": ["ours", "theirs"]}
_VALUE = closed({"value": {}})
_OF_DOCUMENT: JsonSchema = {"type": "object", "additionalProperties": {"anyOf": [_SIDE, _VALUE]}}
_RESOLVE: JsonSchema = {
    "type": "object",
    "properties": {
        "documents": {
            "type": "object",
            "additionalProperties": {"anyOf": [_SIDE, _OF_DOCUMENT]},
            "description": "By `document` of a conflict: a side, or by attribute a side or a value.",
        },
        "files": {"type": "object", "additionalProperties": _SIDE, "description": "By path: a side."},
    },
    "additionalProperties": False,
}
_MERGE: JsonSchema = {
    "type": "object",
    "properties": {
        "into": {**_TEXT, "description": "The branch to merge into: what is served without it."},
        "message": {**_TEXT, "maxLength": 10_000},
        "resolve": {**_RESOLVE, "description": "How the conflicts are resolved that a 409 has told of."},
    },
    "additionalProperties": False,
}
_MERGED = closed(
    {
        "branch": _TEXT,
        "into": _TEXT,
        "result": {"enum": ["merge", "fast-forward", "nothing"]},
        "commit": {**_TEXT, "description": "What the branch is at; `pending` before the commit is made."},
        "documents": {"type": "integer", "description": "How many versions of documents it has changed."},
        "files": {"type": "integer", "description": "How many files it has changed."},
    }
)
_DIFFERENCE: JsonSchema = {
    "type": "object",
    "properties": {"from": {}, "to": {}, "lines": {"type": "array", "items": _TEXT}},
    "required": ["from", "to"],
    "additionalProperties": False,
}
_CHANGE = closed(
    {
        **dict.fromkeys(("type", "documentId", "locale"), _TEXT),
        "status": {"enum": ["published", "draft"]},
        "action": {"enum": ["create", "update", "delete"]},
        "attributes": {"type": "object", "additionalProperties": _DIFFERENCE},
    }
)


def branch_paths(
    actor: Actor, public: Actor, schema: Schema, *, limited: bool
) -> Iterator[tuple[str, JsonSchema]]:
    """The paths below `/branches`, each with the methods that the actor may use."""
    for path, methods in _paths().items():
        allowed = {
            method: operation(
                BRANCHES, public=may_branch(public, action, schema), limited=limited, **described
            )
            for method, (action, described) in methods.items()
            if may_branch(actor, action, schema)
        }
        if allowed:
            yield path, allowed


def _paths() -> Mapping[str, Mapping[str, tuple[str, dict[str, Any]]]]:
    """By path and method: the action that it takes, and what `operation` is told of it."""
    named = {"parameters": [name_in_path("name", "The name of a branch; it may have slashes.")]}
    meta = closed({"from": _TEXT, "to": _TEXT, "pagination": ref("Pagination")})
    listed = {
        "name": "findBranches",
        "summary": "All branches of the repository",
        "answers": {200: answer("The branches, by name.", closed({"data": _list(_BRANCH)}))},
        "errors": (*READ, 409),
    }
    made = {
        "name": "createBranch",
        "summary": "A new branch",
        "answers": {201: answer("The branch.", closed({"data": _BRANCH}))},
        "body": {"required": True, "content": json_content(_NEW)},
        "errors": WRITE,
    }
    gone = {
        "name": "deleteBranch",
        "summary": "Delete a branch that is not checked out",
        "answers": {204: answer("It is gone.")},
        "errors": (*WRITE, 404),
    }
    merged = {
        "name": "mergeBranch",
        "summary": "Merge a branch into the one that is served, or into another one",
        "answers": {200: answer("What was merged.", closed({"data": _MERGED}))},
        "body": {"required": False, "content": json_content(_MERGE)},
        "errors": (*WRITE, 404),
        "commits": True,
    }
    changed = {
        "name": "findBranchChanges",
        "summary": "The documents that a branch has changed since it began",
        "answers": {200: answer("The documents.", closed({"data": _list(_CHANGE), "meta": meta}))},
        "errors": (*READ, 404, 409, 503),
    }
    return {
        "/branches": {"get": ("find", listed), "post": ("create", made)},
        "/branches/{name}": {"delete": ("delete", {**gone, **named})},
        "/branches/{name}/merge": {"post": ("merge", {**merged, **named})},
        "/branches/{name}/changes": {"get": ("find", {**changed, **named})},
    }


def _list(item: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": item}
