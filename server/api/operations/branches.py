"""Operations under `/branches` (docs/branches.md)."""

from server.api.operations.history import PAGES
from server.api.operations.json_schema import (
    COUNT,
    FLAG,
    NUMBER,
    READ,
    STATUS,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMP,
    WRITE,
    JsonSchema,
    body_of,
    in_header,
    in_path,
    in_query,
    list_of,
    object_of,
    ref,
    response_doc,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.permission import may, may_check_branches
from server.api.operations.source import OF_PATHS, PROBLEM
from server.api.serving.bodies import MAX_BODY_BYTES
from server.auth.permissions import BRANCH

BRANCHES = Tag("Branches", "Git branches of the site.")
_BRANCH = object_of(
    {
        "name": TEXT,
        "commit": TEXT,
        "author": object_of({"name": TEXT, "email": TEXT}),
        "date": {
            **TIMESTAMP,
            "type": ["string", "null"],
            "description": "null if the last commit is damaged.",
        },
        "served": {**FLAG, "description": "Whether the branch is checked out in the site's folder."},
        "checkedOut": {**FLAG, "description": "Whether the branch is checked out in any worktree."},
        "documents": {
            "type": ["integer", "null"],
            "description": "Number of documents that the branch has changed and that the caller may find; "
            "null if the branch can't be compared with the served branch, or if the server is too busy "
            "to compare a new branch.",
        },
        "merged": {**FLAG, "description": "Whether the served branch contains all its commits."},
        "problem": {**TEXT, "description": "Why the branch's last commit can't be read."},
    },
    optional=("problem",),
)
_NEW = object_of(
    {
        "name": {**TEXT, "minLength": 1},
        "from": {**TEXT, "minLength": 1, "description": "A commit, tag, branch or time; default: HEAD."},
    },
    optional=("from",),
)
_SIDE: JsonSchema = {"enum": ["ours", "theirs"]}
_BY_ATTRIBUTE: JsonSchema = {
    "type": "object",
    "additionalProperties": {"anyOf": [_SIDE, object_of({"value": {}})]},
}
_RESOLVE: JsonSchema = {
    "type": "object",
    "properties": {
        "documents": {
            "type": "object",
            "additionalProperties": {"anyOf": [_SIDE, _BY_ATTRIBUTE]},
            "description": "By `document` of a conflict: a side for all, or by attribute a side or a value.",
        },
        "files": {
            "type": "object",
            "additionalProperties": _SIDE,
            "description": "A side for each file, by path.",
        },
    },
    "additionalProperties": False,
}
_MERGE: JsonSchema = {
    "type": "object",
    "properties": {
        "into": {**TEXT, "description": "The branch to merge into; default: the served branch."},
        "message": {**TEXT, "maxLength": 10_000},
        "resolve": {**_RESOLVE, "description": "Resolutions of the conflicts that a 409 listed."},
    },
    "additionalProperties": False,
}
_MERGED = object_of(
    {
        "branch": TEXT,
        "into": TEXT,
        "result": {"enum": ["merge", "fast-forward", "nothing"]},
        "commit": {**TEXT, "description": "New commit of the branch; `pending` before it is made."},
        "documents": {**NUMBER, "description": "Number of changed document versions."},
        "files": {**NUMBER, "description": "Number of changed files."},
        "migrations": {
            **list_of(object_of({"name": TEXT, "documents": NUMBER, "applied": {"type": "boolean"}})),
            "description": "Kept migrations that one of the branches lacked, if any.",
        },
    },
    optional=("migrations",),
)
MAX_LISTED_MEDIA = 500
_ACTION = {"enum": ["create", "update", "delete"]}
_DIFFERENCE = object_of({"from": {}, "to": {}, "lines": list_of(TEXT)}, optional=("lines",))
_CHANGE = object_of(
    {
        **dict.fromkeys(("type", "documentId", "locale"), TEXT),
        "title": {**TEXT_OR_NULL, "description": "Title of the document; null if it has none."},
        "status": STATUS,
        "action": _ACTION,
        "attributes": {"type": "object", "additionalProperties": _DIFFERENCE},
    }
)
_MEDIA_CHANGE = object_of(
    {
        "path": TEXT,
        "action": _ACTION,
        "attributes": {
            "type": "object",
            "additionalProperties": _DIFFERENCE,
            "description": "The changed attributes of a description, such as `alternativeText`.",
        },
    }
)
_FILE_CHANGE = object_of(
    {
        "path": TEXT,
        "action": _ACTION,
        "lines": {
            "anyOf": [list_of(TEXT), {"type": "null"}],
            "description": "A unified diff; null if it can't be shown.",
        },
    }
)
_CHANGES = object_of(
    {
        "data": list_of(_CHANGE),
        "meta": object_of(
            {
                "from": TEXT,
                "to": TEXT,
                "pagination": ref("Pagination"),
                "media": {
                    **list_of(_MEDIA_CHANGE, maxItems=MAX_LISTED_MEDIA),
                    "description": "The changed media files and descriptions of media files, on every page.",
                },
                "mediaTotal": COUNT,
                "files": {
                    **list_of(_FILE_CHANGE),
                    "description": "The changed files of content types, settings and migrations, "
                    "at most 100, on every page.",
                },
                "filesTotal": {**COUNT, "description": "Also counts files that the caller may not read."},
            }
        ),
    }
)
_OF_BRANCH = object_of({**PROBLEM["properties"], "new": {**FLAG, "description": "Absent at `meta.from`."}})
_PROBLEMS = object_of(
    {
        "data": list_of(_OF_BRANCH),
        "meta": object_of(
            {
                "from": TEXT,
                "to": TEXT,
                **dict.fromkeys(("errors", "warnings"), COUNT),
                "pagination": ref("Pagination"),
            }
        ),
    }
)
_SINCE = "A commit of the branch; default: the one where the branch was created."
_NAME = in_path("name", "Branch name; may contain slashes.")
_LAST_COMMIT = in_header(
    "If-Match", "Last commit of the branch, in quotation marks; 412 if the branch has another."
)
_ONE = "/branches/{name:path}"

OF_REPOSITORY = Area(
    "branches",
    parts=("branches",),
    tag=BRANCHES,
    ignores_served_commit=True,
    operations=(
        Operation(
            "findBranches", "GET", "/branches", may(BRANCH, "find"),
            Docs(
                "List branches",
                {200: response_doc("The branches, by name.", object_of({"data": list_of(_BRANCH)}))},
                errors=(*READ, 409),
            ),
        ),
        Operation(
            "createBranch", "POST", "/branches", may(BRANCH, "create"),
            Docs(
                "Create a branch",
                {201: response_doc("The new branch.", object_of({"data": _BRANCH}))},
                body=body_of(_NEW), errors=WRITE,
            ),
            branch_only=True,
        ),
        Operation(
            "deleteBranch", "DELETE", _ONE, may(BRANCH, "delete"),
            Docs(
                "Delete a branch that is not checked out", {204: response_doc("Deleted.")},
                [_NAME, _LAST_COMMIT], errors=(*WRITE, 404, 412),
            ),
            slash=False,
        ),
        Operation(
            "mergeBranch", "POST", f"{_ONE}/merge", may(BRANCH, "merge"),
            Docs(
                "Merge a branch into the served branch or another one",
                {200: response_doc("The result of the merge.", object_of({"data": _MERGED}))},
                [_NAME, _LAST_COMMIT], body_of(_MERGE, required=False), (*WRITE, 404, 412),
            ),
            MAX_BODY_BYTES, commits="always", slash=False,
        ),
        Operation(
            "findBranchProblems", "GET", f"{_ONE}/problems", may_check_branches,
            Docs(
                "List problems in the files that a branch changed, and problems that it causes in others",
                {200: response_doc("The problems, by file and line.", _PROBLEMS)},
                [_NAME, in_query("since", TEXT, _SINCE), OF_PATHS, *PAGES],
                errors=(*READ, 404, 409, 503),
            ),
            slash=False,
        ),
        Operation(
            "findBranchChanges", "GET", f"{_ONE}/changes", may(BRANCH, "find"),
            Docs(
                "List documents that a branch changed since it was created",
                {200: response_doc("The changed documents.", _CHANGES)},
                [_NAME], errors=(*READ, 404, 409, 503),
            ),
            slash=False,
        ),
    ),
)  # fmt: skip
