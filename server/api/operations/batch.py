"""Operations of `/batch`: several writes as one, and undoing a write (docs/batch.md)."""

from server.api.operations.json_schema import (
    COUNT,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMP,
    WRITE,
    JsonSchema,
    answer,
    body_of,
    closed,
    in_path,
    list_of,
    shared,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.permission import may_undo, may_write_any
from server.api.serving.bodies import MAX_BODY

BATCH = Tag("Batch", "Several writes as one.")
MAX_OPERATIONS = 100
MAX_MESSAGE = 10_000  # characters
MERGE = "merge"  # what an operation may prefer, as requests do in the header `Prefer`

_OPERATION: JsonSchema = {
    **closed(
        {
            "method": {"enum": ["POST", "PUT", "DELETE"]},
            "path": {
                **TEXT,
                "description": "A path of the content API and its query: `/api/articles?locale=fr`.",
            },
            "body": {"type": "object", "description": "What the request alone would have as its body."},
            "ifMatch": {**TEXT, "description": "An entity tag: the version that is to be there."},
            "prefer": {
                "const": MERGE,
                "description": "Where `ifMatch` names an earlier version, the change is merged with those "
                "made since; 412 with `details.conflicts` where they overlap.",
            },
        },
        optional=("body", "ifMatch", "prefer"),
    ),
    "description": "One write. `{{0.documentId}}` in its path or in texts of its body stands for the "
    "documentId of an operation before it, of which the first is 0.",
}
_BODY = closed(
    {
        "operations": list_of(_OPERATION, minItems=1, maxItems=MAX_OPERATIONS),
        "message": {**TEXT, "maxLength": MAX_MESSAGE, "description": "What the change is about."},
    },
    optional=("message",),
)
_RESULT = closed(
    {
        "status": {"enum": [200, 201, 204]},
        "documentId": TEXT_OR_NULL,
        "etag": TEXT_OR_NULL,
        "body": {
            "type": ["object", "null"],
            "description": "What the request alone would answer, as the document is after the batch.",
        },
        "preferenceApplied": {"const": MERGE, "description": "The change was merged with others."},
    },
    optional=("preferenceApplied",),
)
_OFFER = {
    **closed({"id": TEXT, "expires": TIMESTAMP}),
    "description": "With `Prefer: undo`, where it can be.",
}


def _undoable(data: JsonSchema) -> JsonSchema:
    """An answer that may offer to take the write back."""
    return closed({"data": data, "undo": _OFFER}, optional=("undo",))


WRITES = Area(
    "batch",
    parts=("batch",),
    tag=BATCH,
    operations=(
        Operation(
            "batch", "POST", "/batch", may_write_any,
            Docs(
                "Several writes as one: all of them are made, or none",
                {200: answer("What each operation came to, in their order.", _undoable(list_of(_RESULT)))},
                shared("prefer"), body_of(_BODY), (*WRITE, 404, 412),
            ),
            MAX_BODY, branch=True, dry_run=True, commits="maybe",
        ),
        Operation(
            "undoWrite", "POST", "/batch/undo/{id}", may_undo,
            Docs(
                "Take a write back that was made with `Prefer: undo`: its files hold again what they held",
                {200: answer("How many files are as they were before.", _undoable(closed({"files": COUNT})))},
                [in_path("id", "What the write's answer has called it."), *shared("prefer")],
                errors=(*WRITE, 404),
            ),
            commits="maybe",
        ),
    ),
)  # fmt: skip
