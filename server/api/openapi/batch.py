"""The operation of `/batch`, several writes as one (docs/batch.md)."""

from collections.abc import Iterable, Iterator

from server.api.openapi.operations import WRITE, answer, closed, json_content, operation
from server.api.openapi.services.caller import TIMESTAMP, Caller
from server.api.openapi.types import ref
from server.api.openapi.values import JsonSchema
from server.api.routes.batch import LONGEST_MESSAGE, MERGE, MOST
from server.api.routes.operation import WRITES
from server.api.routes.undo.offer import PUBLIC
from server.auth.permissions import may_write
from server.schema.model import Type

BATCH = "Batch"
_TEXT: JsonSchema = {"type": "string"}
_TEXT_OR_NULL: JsonSchema = {"type": ["string", "null"]}


def batch_paths(caller: Caller, types: Iterable[Type]) -> Iterator[tuple[str, JsonSchema]]:
    """The path of `/batch`; none where the caller may write nothing."""
    types = list(types)
    if may_write(caller.actor, types):
        yield "/batch", {"post": _batch(caller, public=may_write(caller.public, types))}


def undo_paths(caller: Caller, types: Iterable[Type]) -> Iterator[tuple[str, JsonSchema]]:
    """The path that takes a write back; none for the public, and where the caller may write nothing."""
    if may_write(caller.actor, types) and caller.actor.name != PUBLIC:
        yield "/batch/undo/{id}", {"post": _undo(caller)}


def _batch(caller: Caller, *, public: bool) -> JsonSchema:
    return operation(
        BATCH,
        "batch",
        "Several writes as one: all of them are made, or none",
        {200: answer("What each operation came to, in their order.", _undoable({"data": _list(_RESULT)}))},
        parameters=[*[ref("branch", "parameters")] * caller.branches, ref("prefer", "parameters")],
        body={"required": True, "content": json_content(_BODY)},
        errors=(*WRITE, 404, 412),
        public=public,
        limited=caller.limited,
        commits=caller.commits,
    )


def _undo(caller: Caller) -> JsonSchema:
    said = "How many files are as they were before."
    return operation(
        BATCH,
        "undoWrite",
        "Take a write back that was made with `Prefer: undo`: its files hold again what they held",
        {200: answer(said, _undoable({"data": closed({"files": {"type": "integer", "minimum": 0}})}))},
        parameters=[
            {"name": "id", "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}},
            ref("prefer", "parameters"),
        ],
        errors=(*WRITE, 404),
        limited=caller.limited,
        commits=caller.commits,
    )


def _undoable(members: JsonSchema) -> JsonSchema:
    """An object that may offer to take the write back."""
    made = closed(members)
    undo = {
        **closed({"id": _TEXT, "expires": TIMESTAMP}),
        "description": "With `Prefer: undo`, where it can be.",
    }
    return {**made, "properties": {**made["properties"], "undo": undo}}


def _list(item: JsonSchema, **more: int) -> JsonSchema:
    return {"type": "array", "items": item, **more}


_OPERATION: JsonSchema = {
    "type": "object",
    "properties": {
        "method": {"enum": ["POST", "PUT", "DELETE"]},
        "path": {
            **_TEXT,
            "description": "A path of the content API and its query: `/api/articles?locale=fr`.",
        },
        "body": {"type": "object", "description": "What the request alone would have as its body."},
        "ifMatch": {**_TEXT, "description": "An entity tag: the version that is to be there."},
        "prefer": {
            "const": MERGE,
            "description": "Where `ifMatch` names an earlier version, the change is merged with those made "
            "since; 412 with `details.conflicts` where they overlap.",
        },
    },
    "required": ["method", "path"],
    "additionalProperties": False,
    "description": "One write. `{{0.documentId}}` in its path or in texts of its body stands for the "
    "documentId of an operation before it, of which the first is 0.",
}
_BODY: JsonSchema = {
    "type": "object",
    "properties": {
        "operations": _list(_OPERATION, minItems=1, maxItems=MOST),
        "message": {**_TEXT, "maxLength": LONGEST_MESSAGE, "description": "What the change is about."},
    },
    "required": ["operations"],
    "additionalProperties": False,
}
_RESULT: JsonSchema = {
    **closed(
        {
            "status": {"enum": sorted({status for _, _, status in WRITES.values()})},
            "documentId": _TEXT_OR_NULL,
            "etag": _TEXT_OR_NULL,
            "body": {
                "type": ["object", "null"],
                "description": "What the request alone would answer, as the document is after the batch.",
            },
            "preferenceApplied": {"const": MERGE, "description": "The change was merged with others."},
        }
    ),
    "required": ["status", "documentId", "etag", "body"],
}
