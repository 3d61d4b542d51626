"""The operation of `/batch`, several writes as one (docs/batch.md)."""

from collections.abc import Iterable

from server.api.openapi.operations import WRITE, answer, closed, json_content, operation
from server.api.openapi.services.caller import Caller
from server.api.openapi.types import ref
from server.api.openapi.values import JsonSchema
from server.api.routes.batch import LONGEST_MESSAGE, MERGE, MOST
from server.api.routes.operation import WRITES
from server.auth.permissions import may_write
from server.schema.model import Type

BATCH = "Batch"
_TEXT: JsonSchema = {"type": "string"}
_TEXT_OR_NULL: JsonSchema = {"type": ["string", "null"]}


def batch_path(caller: Caller, types: Iterable[Type]) -> JsonSchema:
    """The methods of `/batch`; none where the caller may write nothing."""
    types = list(types)
    if not may_write(caller.actor, types):
        return {}
    made = operation(
        BATCH,
        "batch",
        "Several writes as one: all of them are made, or none",
        {200: answer("What each operation came to, in their order.", closed({"data": _list(_RESULT)}))},
        parameters=[ref("branch", "parameters")] * caller.branches,
        body={"required": True, "content": json_content(_BODY)},
        errors=(*WRITE, 404, 412),
        public=may_write(caller.public, types),
        limited=caller.limited,
        commits=caller.commits,
    )
    return {"post": made}


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
