"""Operations under `/source` and `/problems` (docs/files.md)."""

from server.api.operations.history import PAGES, TYPE
from server.api.operations.json_schema import (
    COUNT,
    FLAG,
    READ,
    STATUS,
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
    or_null,
    parameter_refs,
    ref,
    response_doc,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.permission import may
from server.api.serving.bodies import MEDIUM_BODY_BYTES
from server.auth.permissions import PROBLEMS, SOURCE
from server.problems import RULES

OF_SOURCE = Tag("Source", "Source files of documents.")
OF_PROBLEMS = Tag("Problems", "Problems in the site's files.")
MAX_FIXES = 1000  # maximum for one request

_FILE = {"path": TEXT, "locale": TEXT, "status": STATUS}
_SOURCE = object_of(
    {
        **_FILE,
        "text": {**TEXT, "description": "Text of the file, with `(hidden 1)` in place of a password."},
        "otherKeys": {**TEXT, "description": "Keys that the type does not have, in the file's format."},
        "problem": {
            **or_null(object_of({"line": {"type": ["integer", "null"]}, "message": TEXT, "fix": TEXT})),
            "description": "The problem that keeps the file from being read.",
        },
    }
)
_ANSWER = object_of({"data": _SOURCE, "meta": object_of({"files": list_of(object_of(_FILE))})})
_BODY = object_of({"data": {"anyOf": [object_of({"text": TEXT}), object_of({"otherKeys": TEXT})]}})
_ID = in_path("documentId", "A documentId.")


def _operations(name: str, path: str, variables: list[JsonSchema]) -> tuple[Operation, Operation]:
    shown = Docs(
        "Get the source file of a document",
        {200: response_doc("Path and text of the file.", _ANSWER)},
        [*variables, *parameter_refs("localeWritten", "status")],
        errors=(*READ, 404, 409, 507),
    )
    written = Docs(
        "Replace the text of a source file, or its keys that the type does not have",
        {
            200: response_doc(
                "The file after the write; with `dryRun=true`, the changes that it would make.",
                _ANSWER,
                has_etag=True,
            )
        },
        [*variables, *parameter_refs("localeWritten", "statusWritten", "ifMatch")],
        body_of(_BODY),
        (*WRITE, 404, 412),
    )
    writes = may(SOURCE, "read", "write")
    return (
        Operation(f"find{name}Source", "GET", path, may(SOURCE, "read"), shown),
        Operation(
            f"replace{name}Source",
            "PUT",
            path,
            writes,
            written,
            MEDIUM_BODY_BYTES,
            branch=True,
            dry_run="source",
            commits="maybe",
        ),
    )


SOURCES = Area(
    "source",
    parts=("source",),
    tag=OF_SOURCE,
    takes_at=True,
    varies_by_commit=True,
    operations=(
        *_operations("Single", "/source/{type}", [TYPE]),
        *_operations("Document", "/source/{type}/{documentId}", [TYPE, _ID]),
    ),
)

_NUMBER_OR_NULL: JsonSchema = {"type": ["integer", "null"]}
_NAMED = {"path": TEXT, "key": TEXT, "before": TEXT_OR_NULL, "after": TEXT_OR_NULL}
_FIX = object_of(_NAMED)
PROBLEM = object_of(
    {
        "path": {**TEXT, "description": "Path of the file, relative to the site."},
        "line": _NUMBER_OR_NULL,
        "column": _NUMBER_OR_NULL,
        "severity": {"enum": ["error", "warning"]},
        "rule": {"enum": list(RULES)},
        "message": TEXT,
        "fix": {**TEXT, "description": "How to fix the problem."},
        **dict.fromkeys(("type", "documentId", "locale", "status", "title", "attribute"), TEXT_OR_NULL),
        "change": {**or_null(_FIX), "description": "A safe fix, if there is one."},
    }
)
_META = object_of(
    {
        "checkedAt": TIMESTAMP,
        "current": {**FLAG, "description": "Whether no change of the site is known since."},
        **dict.fromkeys(("errors", "warnings", "fixable"), COUNT),
        "more": {**COUNT, "description": "Number of problems that are not listed."},
        "pagination": ref("Pagination"),
    }
)
OF_PATHS = in_query("path", list_of(TEXT), "Only problems in these files, up to 100.")
_LISTED = object_of({"data": list_of(PROBLEM), "meta": _META})
_FIXED = object_of({"fixed": list_of(_FIX), "refused": list_of(object_of({**_NAMED, "reason": TEXT}))})
_FIXES = object_of({"fixes": list_of(_FIX, minItems=1, maxItems=MAX_FIXES)})

PROBLEMS_OF_FILES = Area(
    "problems",
    parts=("problems",),
    tag=OF_PROBLEMS,
    operations=(
        Operation(
            "findProblems", "GET", "/problems", may(PROBLEMS, "find"),
            Docs(
                "List problems in the site's files",
                {200: response_doc("The problems, by file and line.", _LISTED)},
                [
                    in_query("severity", {"enum": ["error", "warning"]}),
                    in_query("fixable", FLAG),
                    in_query("type", TEXT),
                    in_query("documentId", TEXT),
                    OF_PATHS,
                    *PAGES,
                ],
                errors=(*READ, 503),
            ),
        ),
        Operation(
            "fixProblems", "POST", "/problems/fix", may(PROBLEMS, "find", "fix"),
            Docs(
                "Apply fixes that GET /problems offers",
                {200: response_doc("The applied and the refused fixes.", object_of({"data": _FIXED}))},
                body=body_of(_FIXES), errors=WRITE,
            ),
            MEDIUM_BODY_BYTES, commits="maybe",
        ),
    ),
)  # fmt: skip
