"""Operations under `/history` (docs/history.md)."""

from server.api.operations.json_schema import (
    NUMBER,
    OBJECT,
    READ,
    STATUS,
    TEXT,
    TEXT_OR_NULL,
    WRITE,
    JsonSchema,
    body_of,
    in_path,
    in_query,
    list_of,
    object_of,
    or_null,
    ref,
    response_doc,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.permission import may
from server.api.serving.bodies import MEDIUM_BODY_BYTES

HISTORY = Tag("History", "Git history of documents.")
MAX_FILES = 5000  # Maximum for one request.
MAX_MESSAGE_CHARS = 10_000
_COMMIT = {
    "commit": {**TEXT_OR_NULL, "description": "The commit; null if not committed yet."},
    "author": or_null(object_of({"name": TEXT, "email": TEXT})),
    "date": TEXT_OR_NULL,
}
_ACTION: JsonSchema = {"enum": ["create", "update", "delete", "rename"]}
_VERSION = object_of(
    {
        **_COMMIT,
        "message": TEXT_OR_NULL,
        "locale": TEXT,
        "status": STATUS,
        "action": _ACTION,
        "attributes": {
            "type": ["array", "null"],
            "items": TEXT,
            "description": "Changed attributes; null if the file can't be read.",
        },
    }
)
_DOCUMENT = object_of({"type": TEXT, "documentId": TEXT, "locale": TEXT, "status": STATUS, "action": _ACTION})
_OF_SITE = object_of(
    {
        **_COMMIT,
        "message": TEXT,
        "documents": list_of(_DOCUMENT),
        "count": {**NUMBER, "description": "Number of documents that the commit changed."},
    }
)
_DELETED = object_of(
    {
        "documentId": TEXT,
        "title": TEXT_OR_NULL,
        **_COMMIT,
        "message": TEXT_OR_NULL,
        "versions": {
            **list_of(object_of({"locale": TEXT, "status": STATUS, "at": TEXT})),
            "description": "The deleted versions, and the commit to restore each from.",
        },
    }
)
_FILE = {
    "path": TEXT,
    "before": {**TEXT_OR_NULL, "description": "Former path of a renamed file."},
    "action": _ACTION,
    **dict.fromkeys(("type", "documentId", "locale", "status", "title"), TEXT_OR_NULL),
    "date": TEXT_OR_NULL,
}
_NAMES: JsonSchema = {"type": ["array", "null"], "items": TEXT}
_UNCOMMITTED = object_of(
    {
        "data": list_of(object_of({**_FILE, "attributes": _NAMES})),
        "meta": object_of(
            {
                "head": TEXT,
                "branch": TEXT_OR_NULL,
                "commit": {
                    **TEXT,
                    "description": "When writes are committed: the value of `git.commit` in site.yaml.",
                },
                "underWay": {
                    **TEXT_OR_NULL,
                    "description": "Git operation in progress, such as `merge` or `rebase`.",
                },
                "pending": {**NUMBER, "description": "Number of writes that are not committed yet."},
                "pagination": ref("Pagination"),
            }
        ),
    }
)
_DIFFERENCE = object_of(
    {
        "data": object_of({**_FILE, "attributes": {"type": ["object", "null"]}, "lines": _NAMES}),
        "meta": object_of({"head": TEXT}),
    }
)
_FILES_TO_COMMIT: JsonSchema = {
    "type": "object",
    "properties": {
        "message": {**TEXT, "minLength": 1, "maxLength": MAX_MESSAGE_CHARS},
        "files": list_of(TEXT, minItems=1, maxItems=MAX_FILES),
    },
    "required": ["message", "files"],
    "additionalProperties": True,
}
_COMMITTED = object_of({"data": object_of({"commit": TEXT, "files": list_of(TEXT)})})
_RESTORED = object_of(
    {
        "at": {**TEXT, "minLength": 1, "description": "A commit, tag, branch or time."},
        "status": {**STATUS, "description": "Version to restore from; default: the version being written."},
        "fields": {**list_of(TEXT, minItems=1), "description": "Default: all."},
    },
    optional=("status", "fields"),
)
_PAGE_NUMBER: JsonSchema = {"type": "integer", "minimum": 1, "maximum": 999_999}
PAGES = [in_query("page", _PAGE_NUMBER), in_query("pageSize", _PAGE_NUMBER)]
TYPE = in_path("type", "Content type: the plural name of a collection type, or the name of a single type.")
_ID = in_path("documentId", "A documentId; for a single type, `diff` or `blame`.")
_VIEW = in_path(
    "what",
    "`diff`: compare versions. `blame`: show the last commit of each value.",
    {**TEXT, "enum": ["diff", "blame"]},
)
_DELETED_PARAMETER = in_query(
    "deleted",
    {"const": "true"},
    "List deleted documents instead of commits.",
)


def _page(item: JsonSchema) -> JsonSchema:
    return object_of({"data": list_of(item), "meta": object_of({"pagination": ref("Pagination")})})


def _read(
    id_: str, path: str, summary: str, json_schema: JsonSchema, parameters: list[JsonSchema]
) -> Operation:
    docs = Docs(
        summary, {200: response_doc("The history.", json_schema)}, parameters, errors=(*READ, 404, 409, 503)
    )
    return Operation(id_, "GET", path, may("history", "read"), docs)


def _restore(id_: str, path: str, parameters: list[JsonSchema]) -> Operation:
    answers = {
        200: response_doc("The document as it is now.", OBJECT),
        201: response_doc("The restored document, which had been deleted.", OBJECT),
    }
    docs = Docs("Restore an earlier version", answers, parameters, body_of(_RESTORED), (*WRITE, 404))
    return Operation(
        id_,
        "POST",
        path,
        may("history", "read", "restore"),
        docs,
        branch=True,
        dry_run="source",
        commits="maybe",
    )


_OF_TYPE, _OF_DOCUMENT = "/history/{type}", "/history/{type}/{documentId}"

COMMITS = Area(
    "history",
    parts=("history",),
    tag=HISTORY,
    ignores_served_commit=True,
    operations=(
        _read("findHistory", "/history", "List commits of the site", _page(_OF_SITE), []),
        _read(
            "findUncommitted", "/history/uncommitted", "List uncommitted files", _UNCOMMITTED, PAGES
        ),
        _read(
            "diffUncommitted", "/history/uncommitted/diff",
            "Show the changes of an uncommitted file", _DIFFERENCE,
            [in_query("path", {**TEXT, "minLength": 1}, required=True)],
        ),
        Operation(
            "commitFiles", "POST", "/history/commit", may("history", "read", "commit"),
            Docs(
                "Commit the given files",
                {201: response_doc("The commit.", _COMMITTED)},
                body=body_of(_FILES_TO_COMMIT), errors=WRITE,
            ),
            MEDIUM_BODY_BYTES,
        ),
        _read(
            "findTypeHistory", _OF_TYPE, "List commits of a single type, or deleted documents of a type",
            {"anyOf": [_page(_VERSION), _page(_DELETED)]}, [TYPE, _DELETED_PARAMETER],
        ),
        _read("findDocumentHistory", _OF_DOCUMENT, "List commits of a document", OBJECT, [TYPE, _ID]),
        _read(
            "findVersions", f"{_OF_DOCUMENT}/{{what}}",
            "Compare versions, or show the last commit of each value", OBJECT,
            [TYPE, _ID, _VIEW],
        ),
        _restore("restoreSingle", f"{_OF_TYPE}/restore", [TYPE]),
        _restore("restore", f"{_OF_DOCUMENT}/restore", [TYPE, _ID]),
    ),
)  # fmt: skip
