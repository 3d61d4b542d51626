"""Operations under `/batch` (docs/batch.md)."""

from server.api.operations.json_schema import (
    COUNT,
    FLAG,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMP,
    WRITE,
    JsonSchema,
    body_of,
    in_path,
    in_query,
    list_of,
    object_of,
    parameter_refs,
    response_doc,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.permission import may_undo, may_write_any
from server.api.serving.bodies import MAX_BODY_BYTES

BATCH = Tag("Batch", "Several writes in one request.")
MAX_OPERATIONS = 100
MAX_MESSAGE_CHARS = 10_000
DIFF = "diff"  # query parameter
MERGE = "merge"  # `prefer` in a request body means the same as the `Prefer` header

_OPERATION: JsonSchema = {
    **object_of(
        {
            "method": {"enum": ["POST", "PUT", "DELETE"]},
            "path": {
                **TEXT,
                "description": "Path and query of a write of the content API: `/api/articles?locale=fr`.",
            },
            "body": {"type": "object", "description": "Same body as the single request."},
            "ifMatch": {**TEXT, "description": "The entity tag that the document must have; else 412."},
            "prefer": {
                "const": MERGE,
                "description": "If `ifMatch` is an older version, merge with later changes; 412 with "
                "`details.conflicts` if they overlap.",
            },
        },
        optional=("body", "ifMatch", "prefer"),
    ),
    "description": "One write. `{{0.documentId}}` in its path or in texts of its body is replaced by "
    "the documentId of an earlier operation (counted from 0).",
}
_BODY = object_of(
    {
        "operations": list_of(_OPERATION, minItems=1, maxItems=MAX_OPERATIONS),
        "message": {**TEXT, "maxLength": MAX_MESSAGE_CHARS, "description": "Commit message."},
    },
    optional=("message",),
)
_RESULT = object_of(
    {
        "status": {"enum": [200, 201, 204]},
        "documentId": TEXT_OR_NULL,
        "etag": TEXT_OR_NULL,
        "body": {
            "type": ["object", "null"],
            "description": "Body of the single request's response, with the document after the batch.",
        },
        "preferenceApplied": {"const": MERGE, "description": "The change was merged with later changes."},
    },
    optional=("preferenceApplied",),
)
_OFFER = {
    **object_of({"id": TEXT, "expires": TIMESTAMP}),
    "description": "Present after `Prefer: undo` if the write can be undone.",
}


_FILE = object_of({"path": TEXT, "action": {"enum": ["create", "update", "delete"]}, "lines": list_of(TEXT)})


def undoable(data: JsonSchema, **more: JsonSchema) -> JsonSchema:
    return object_of({"data": data, "undo": _OFFER, **more}, optional=("undo", *more))


_UNDONE = undoable(object_of({"files": COUNT}))
_FILES = {
    **list_of(_FILE),
    "type": ["array", "null"],
    "description": "Only with `diff=true`: the changed files, as unified diffs. null if computing them would "
    "exceed a limit; `meta.note` then says which.",
}
_NOTE = object_of({"note": TEXT})
_DIFF_MEANING = "Whether the response also contains the changed files. Requires the permission source.read."
_RESULTS = undoable(list_of(_RESULT), files=_FILES, meta=_NOTE)
WRITES = Area(
    "batch",
    parts=("batch",),
    tag=BATCH,
    operations=(
        Operation(
            "batch", "POST", "/batch", may_write_any,
            Docs(
                "Make several writes, all of them or none",
                {200: response_doc("The result of each operation, in order.", _RESULTS)},
                [in_query(DIFF, FLAG, _DIFF_MEANING), *parameter_refs("prefer")],
                body_of(_BODY), (*WRITE, 404, 412),
            ),
            MAX_BODY_BYTES, branch=True, dry_run="source", commits="maybe",
        ),
        Operation(
            "undoWrite", "POST", "/batch/undo/{id}", may_undo,
            Docs(
                "Undo a write that was made with `Prefer: undo`: restore its files",
                {200: response_doc("Number of restored files that the caller is allowed to see.", _UNDONE)},
                [in_path("id", "`undo.id` of the write's response."), *parameter_refs("prefer")],
                errors=(*WRITE, 404),
            ),
            commits="maybe",
        ),
    ),
)  # fmt: skip
