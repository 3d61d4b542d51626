"""Operations of `/history`: commits of documents, uncommitted files, restoring (docs/history.md)."""

from server.api.operations.json_schema import (
    NUMBER,
    OBJECT,
    READ,
    STATUS,
    TEXT,
    TEXT_OR_NULL,
    WRITE,
    JsonSchema,
    answer,
    body_of,
    closed,
    in_path,
    in_query,
    list_of,
    or_null,
    ref,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.permission import may
from server.api.serving.bodies import MEDIUM

HISTORY = Tag("History", "What git says of the documents.")
MAX_FILES = 5000  # of one commit
MAX_MESSAGE = 10_000  # characters
_COMMIT = {
    "commit": {**TEXT_OR_NULL, "description": "null for what is not committed yet."},
    "author": or_null(closed({"name": TEXT, "email": TEXT})),
    "date": TEXT_OR_NULL,
}
_ACTION: JsonSchema = {"enum": ["create", "update", "delete", "rename"]}
_VERSION = closed(
    {
        **_COMMIT,
        "message": TEXT_OR_NULL,
        "locale": TEXT,
        "status": STATUS,
        "action": _ACTION,
        "attributes": {
            "type": ["array", "null"],
            "items": TEXT,
            "description": "Those that differ from before; null where the file can't be read.",
        },
    }
)
_DOCUMENT = closed({"type": TEXT, "documentId": TEXT, "locale": TEXT, "status": STATUS, "action": _ACTION})
_OF_SITE = closed(
    {
        **_COMMIT,
        "message": TEXT,
        "documents": list_of(_DOCUMENT),
        "count": {**NUMBER, "description": "How many documents the commit has changed."},
    }
)
_DELETED = closed(
    {
        "documentId": TEXT,
        "title": TEXT_OR_NULL,
        **_COMMIT,
        "message": TEXT_OR_NULL,
        "versions": {
            **list_of(closed({"locale": TEXT, "status": STATUS, "at": TEXT})),
            "description": "What there was, and the commit that it is restored from.",
        },
    }
)
_FILE = {
    "path": TEXT,
    "before": {**TEXT_OR_NULL, "description": "Where a file was that was renamed."},
    "action": _ACTION,
    **dict.fromkeys(("type", "documentId", "locale", "status", "title"), TEXT_OR_NULL),
    "date": TEXT_OR_NULL,
}
_NAMES: JsonSchema = {"type": ["array", "null"], "items": TEXT}
_UNCOMMITTED = closed(
    {
        "data": list_of(closed({**_FILE, "attributes": _NAMES})),
        "meta": closed(
            {
                "head": TEXT,
                "branch": TEXT_OR_NULL,
                "commit": {**TEXT, "description": "When writes are committed, as `git.commit` has it."},
                "underWay": {**TEXT_OR_NULL, "description": "What git is at: a merge, a rebase."},
                "pending": {**NUMBER, "description": "How many writes wait to be committed."},
                "pagination": ref("Pagination"),
            }
        ),
    }
)
_DIFFERENCE = closed(
    {
        "data": closed({**_FILE, "attributes": {"type": ["object", "null"]}, "lines": _NAMES}),
        "meta": closed({"head": TEXT}),
    }
)
_FILES_TO_COMMIT: JsonSchema = {
    "type": "object",
    "properties": {
        "message": {**TEXT, "minLength": 1, "maxLength": MAX_MESSAGE},
        "files": list_of(TEXT, minItems=1, maxItems=MAX_FILES),
    },
    "required": ["message", "files"],
    "additionalProperties": True,
}
_COMMITTED = closed({"data": closed({"commit": TEXT, "files": list_of(TEXT)})})
_RESTORED = closed(
    {
        "at": {**TEXT, "minLength": 1, "description": "A commit, tag, branch or time."},
        "status": {**STATUS, "description": "Which version there; without it, that which is written."},
        "fields": {**list_of(TEXT, minItems=1), "description": "Without it, all."},
    },
    optional=("status", "fields"),
)
_PAGE_NUMBER: JsonSchema = {"type": "integer", "minimum": 1, "maximum": 999_999}
PAGES = [in_query("page", _PAGE_NUMBER), in_query("pageSize", _PAGE_NUMBER)]
TYPE = in_path("type", "The name of a content type: the plural of a collection, or that of a single type.")
_ID = in_path("documentId", "A document; of a single type, `diff` or `blame`.")
_WHAT = in_path(
    "what", "How two versions differ, or where each value is from.", {**TEXT, "enum": ["diff", "blame"]}
)
_ASKS_DELETED = in_query(
    "deleted",
    {"const": "true"},
    "The documents that were deleted, instead of the commits of a single type.",
)


def _page(item: JsonSchema) -> JsonSchema:
    return closed({"data": list_of(item), "meta": closed({"pagination": ref("Pagination")})})


def _read(id_: str, path: str, summary: str, shown: JsonSchema, parameters: list[JsonSchema]) -> Operation:
    docs = Docs(summary, {200: answer("What git says.", shown)}, parameters, errors=(*READ, 404, 409, 503))
    return Operation(id_, "GET", path, may("history", "read"), docs)


def _restore(id_: str, path: str, parameters: list[JsonSchema]) -> Operation:
    answers = {
        200: answer("The document as it is now.", OBJECT),
        201: answer("The document, which was deleted and is there again.", OBJECT),
    }
    docs = Docs("An earlier version, written again", answers, parameters, body_of(_RESTORED), (*WRITE, 404))
    return Operation(
        id_, "POST", path, may("history", "read", "restore"), docs, branch=True, dry_run=True, commits="maybe"
    )


_OF_TYPE, _OF_DOCUMENT = "/history/{type}", "/history/{type}/{documentId}"

COMMITS = Area(
    "history",
    parts=("history",),
    tag=HISTORY,
    of_repository=True,
    operations=(
        _read("findHistory", "/history", "The commits of the site", _page(_OF_SITE), []),
        _read(
            "findUncommitted", "/history/uncommitted", "Files that are not committed", _UNCOMMITTED, PAGES
        ),
        _read(
            "diffUncommitted", "/history/uncommitted/diff", "What differs in one of them", _DIFFERENCE,
            [in_query("path", TEXT, required=True)],
        ),
        Operation(
            "commitFiles", "POST", "/history/commit", may("history", "read", "commit"),
            Docs(
                "Commit files as they are, and nothing else",
                {201: answer("The commit.", _COMMITTED)},
                body=body_of(_FILES_TO_COMMIT), errors=WRITE,
            ),
            MEDIUM,
        ),
        _read(
            "findTypeHistory", _OF_TYPE, "The commits of a single type, or the deleted documents of any",
            {"anyOf": [_page(_VERSION), _page(_DELETED)]}, [TYPE, _ASKS_DELETED],
        ),
        _read("findDocumentHistory", _OF_DOCUMENT, "The commits of a document", OBJECT, [TYPE, _ID]),
        _read(
            "findVersions", f"{_OF_DOCUMENT}/{{what}}", "What differs, or who wrote it", OBJECT,
            [TYPE, _ID, _WHAT],
        ),
        _restore("restoreSingle", f"{_OF_TYPE}/restore", [TYPE]),
        _restore("restore", f"{_OF_DOCUMENT}/restore", [TYPE, _ID]),
    ),
)  # fmt: skip
