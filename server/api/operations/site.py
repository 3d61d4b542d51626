"""Operations for site information and HTML pages."""

from server.api.monitoring.condition import AWAY_STATUS, BEHIND_STATUS, READ_ONLY_STATUS, READY_STATUS
from server.api.operations.batch import undoable
from server.api.operations.json_schema import (
    COUNT,
    FLAG,
    NINE_DIGITS,
    NUMBER,
    READ_ONE,
    TEXT,
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
    response_doc,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.permission import anyone, may
from server.api.serving.bodies import MEDIUM_BODY_BYTES
from server.schema.spelling import ATTRIBUTE_KEYS
from server.site.migrations.arguments import ArgumentForm
from server.site.migrations.migration import HIDDEN_ARGUMENTS
from server.site.migrations.plan import OPERATIONS
from server.site.migrations.schema_changes import CHANGES, MAX_CHANGES
from server.site.migrations.schema_edits import SCHEMA_EDITS

SITE = Tag("Site", "Information about the site and its server.")
_PAGE = "A page for people, or a part of one."

# --- locales, content types, permissions ---------------------------------------------------------

_LOCALE = object_of(
    {
        "id": NUMBER,
        **dict.fromkeys(("documentId", "name", "code"), TEXT),
        **dict.fromkeys(("createdAt", "updatedAt", "publishedAt"), TIMESTAMP),
        "isDefault": FLAG,
    }
)

LOCALES = Area(
    "schema",
    parts=("api/i18n",),
    tag=SITE,
    takes_at=True,
    varies_by_commit=True,
    uses_current_settings=True,
    operations=(
        Operation(
            "findLocales", "GET", "/api/i18n/locales", may("locale", "find"),
            Docs("List locales", {200: response_doc("The locales.", list_of(_LOCALE))}),
        ),
    ),
)  # fmt: skip

_DESCRIBED: JsonSchema = {"type": "object", "required": ["uid", "schema"]}

_LINES = list_of(TEXT)
_CHANGE = object_of(
    {
        "change": {**TEXT, "description": "The operation and its arguments."},
        "documents": {**COUNT, "description": "Number of document files that change."},
        "files": {**_LINES, "description": "Paths of the other files that change."},
        "notes": {**_LINES, "description": "Effects that are easily missed."},
        "warnings": {**_LINES, "description": "Problems that the site has afterwards."},
        "losses": {**_LINES, "description": "The first values that are lost, with file and line."},
        "lost": {**COUNT, "description": "Number of values that are lost."},
    }
)
_FILE = object_of({"path": TEXT, "action": {"enum": ["create", "update", "delete"]}, "lines": _LINES})
_CHANGED = undoable(
    object_of(
        {
            "changes": list_of(_CHANGE),
            "files": {**list_of(_FILE), "description": "The first files, as unified diffs."},
            "total": {**COUNT, "description": "Number of all files that change."},
        },
        optional=("files", "total"),
    )
)


def _describe_argument(form: ArgumentForm) -> JsonSchema:
    text = {"type": "string", "minLength": 1, "pattern": f"^(?:{form.pattern.pattern})$"}
    limited = text | ({"maxLength": form.max_chars} if form.max_chars else {})
    return list_of(limited, minItems=1) if form.is_list else limited


def _describe_change(operation: str) -> JsonSchema:
    edit = SCHEMA_EDITS.get(operation)
    arguments = edit.arguments if edit else OPERATIONS[operation].arguments
    objects, flags = (edit.objects, edit.flags) if edit else ((), ())
    named = {
        name: _describe_argument(form) for name, form in arguments.all.items() if name not in HIDDEN_ARGUMENTS
    }
    properties = {
        "operation": {"const": operation},
        **named,
        **{name: {"type": "object", "maxProperties": len(ATTRIBUTE_KEYS)} for name in objects},
        **dict.fromkeys(flags, FLAG),
    }
    required = {"operation", *arguments.required, *objects}
    return object_of(properties, optional=tuple(name for name in properties if name not in required))


_ONE_CHANGE: JsonSchema = {"oneOf": [_describe_change(operation) for operation in CHANGES]}
_CHANGES_BODY = object_of(
    {
        "data": object_of(
            {
                "changes": list_of(_ONE_CHANGE, minItems=1, maxItems=MAX_CHANGES),
                "lossy": {**FLAG, "description": "Whether values may be lost."},
            },
            optional=("lossy",),
        )
    }
)


def _describe_operations(kind: str, path: str, items: str) -> tuple[Operation, Operation]:
    many = {200: response_doc("Their schemas.", object_of({"data": list_of(_DESCRIBED)}))}
    one = {200: response_doc("Its schema.", object_of({"data": _DESCRIBED}))}
    uid = in_path("uid", "A uid, such as `api::article.article`.")
    return (
        Operation(
            f"find{kind}s", "GET", path, may("content-type", "find"), Docs(f"List {items}", many)
        ),
        Operation(
            f"findOne{kind}", "GET", f"{path}/{{uid}}", may("content-type", "findOne"),
            Docs(f"Get one of the {items}", one, [uid], errors=READ_ONE),
        ),
    )  # fmt: skip


SCHEMA = Area(
    "schema",
    parts=("api/content-type-builder",),
    tag=SITE,
    takes_at=True,
    varies_by_commit=True,
    operations=(
        Operation(
            "changeContentTypes", "POST", "/api/content-type-builder/changes", may("content-type", "write"),
            Docs(
                "Change content types and components, with all documents",
                {
                    200: response_doc(
                        "What the changes do; with `dryRun=true`, what they would do, and the files.",
                        _CHANGED,
                        has_etag=True,
                    )
                },
                parameter_refs("requiredIfMatch", "prefer"),
                body_of(_CHANGES_BODY),
                (*WRITE, 412),
            ),
            branch=True, dry_run="writer", commits="maybe",
        ),
        *_describe_operations("ContentType", "/api/content-type-builder/content-types", "content types"),
        *_describe_operations("Component", "/api/content-type-builder/components", "components"),
    ),
)  # fmt: skip

_ACCESS = object_of(
    {
        "site": object_of(
            {
                "name": TEXT,
                "locales": list_of(object_of({"code": TEXT, "name": TEXT, "isDefault": FLAG})),
                "servedAt": {
                    **or_null(object_of({"commit": TEXT, "date": TIMESTAMP})),
                    "description": "The past commit that is served, read-only.",
                },
                "pageSize": object_of(dict.fromkeys(("default", "max"), NUMBER)),
                "transformsImages": {
                    **FLAG,
                    "description": "Whether URLs of images can have parameters without a signature.",
                },
            }
        ),
        "caller": object_of(
            {
                "kind": {"enum": ["public", "user", "token", "owner", "agent", "role"]},
                **dict.fromkeys(("name", "email", "role"), TEXT),
                "branchOnly": {"const": True, "description": "The token may write only to branches."},
            },
            optional=("email", "role", "branchOnly"),
        ),
        "permissions": {"type": "object", "additionalProperties": list_of(TEXT)},
        "contentTypes": list_of(_DESCRIBED),
        "components": list_of(_DESCRIBED),
    }
)

ACCESS = Area(
    "access",
    parts=("access",),
    tag=SITE,
    takes_at=True,
    operations=(
        Operation(
            "access", "GET", "/access", anyone,
            Docs(
                "Get the caller's permissions",
                {200: response_doc("The caller's identity and permissions.", object_of({"data": _ACCESS}))},
            ),
        ),
    ),
)  # fmt: skip

# --- monitoring and hooks ------------------------------------------------------------------------

_LOADED = Docs("Check whether the site is loaded", {204: response_doc("The site is loaded.")}, errors=(500,))
_CONDITION = object_of(
    {
        "content": {"const": READY_STATUS},
        "accounts": {"enum": [READY_STATUS, AWAY_STATUS, READ_ONLY_STATUS]},
        "events": {"enum": [READY_STATUS, BEHIND_STATUS]},
        "media": {"enum": [READY_STATUS, AWAY_STATUS]},
        "remote": or_null(
            object_of(
                {
                    "state": {"enum": ["current", "behind", "away"]},
                    **dict.fromkeys(("branch", "commit", "reason"), TEXT),
                    "behind": COUNT,
                    "since": or_null(TIMESTAMP),
                    "files": list_of(TEXT),
                },
                optional=("reason", "files"),
            )
        ),
        "push": or_null(
            object_of(
                {"commits": COUNT, "since": or_null(TIMESTAMP), "reason": TEXT, "files": list_of(TEXT)},
                optional=("reason", "files"),
            )
        ),
        **dict.fromkeys(("commitsWaiting", "deliveriesWaiting"), COUNT),
    }
)
_READY = object_of({"data": _CONDITION})

HEALTH = Area(
    "health",
    parts=("_health",),
    tag=SITE,
    may_query_accounts=True,
    operations=(
        Operation("health", "GET", "/_health", anyone, _LOADED, runs_inline=True, slash=False),
        Operation("healthLive", "GET", "/_health/live", anyone, _LOADED, runs_inline=True, slash=False),
        Operation(
            "healthReady", "GET", "/_health/ready", anyone,
            Docs(
                "Get the condition of the server",
                {
                    200: response_doc("The condition of the server.", _READY),
                    503: response_doc(
                        "The server has been behind the git remote for more than `lag` seconds.", _READY
                    ),
                },
                [in_query("lag", NINE_DIGITS, "Seconds: 503 if the server is further behind.")],
                errors=(400, 500),
            ),
        ),
    ),
)  # fmt: skip

METRICS = Area(
    "metrics",
    parts=("metrics",),
    tag=SITE,
    may_query_accounts=True,
    operations=(
        Operation(
            "metrics", "GET", "/metrics", may("metrics", "read"),
            Docs(
                "Get metrics for Prometheus",
                {
                    200: {
                        "description": "Metrics in the Prometheus text format.",
                        "content": {"text/plain": {"schema": TEXT}},
                    }
                },
            ),
        ),
    ),
)  # fmt: skip

GIT = Area(
    "git",
    parts=("git",),
    tag=SITE,
    operations=(
        Operation(
            # Anyone is allowed to send this request, but the handler requires a valid signature.
            "gitHook", "POST", "/git/hook", anyone,
            Docs(
                "Receive a signed push webhook from the git host",
                {
                    202: response_doc("Fetch started."),
                    204: response_doc("Ignored: not a push to this branch."),
                },
                body=body_of({"type": "object", "properties": {"ref": TEXT, "after": TEXT}}),
                errors=(*READ_ONE, 413),
            ),
            MEDIUM_BODY_BYTES, slash=False,
        ),
    ),
)  # fmt: skip

# --- pages ---------------------------------------------------------------------------------------

OPENAPI = Area(
    "openapi",
    parts=("openapi.json",),
    varies_by_commit=True,
    operations=(Operation("openapi", "GET", "/openapi.json", anyone, "This is the OpenAPI document."),),
)
DOCS = Area(
    "openapi",
    parts=("docs",),
    operations=(
        Operation("docsPage", "GET", "/docs", anyone, _PAGE, slash=False),
        Operation("docsPageWithSlash", "GET", "/docs/", anyone, _PAGE, slash=False),
        Operation("docsFile", "GET", "/docs/{name}", anyone, _PAGE, slash=False),
    ),
)
START = Area(
    "start",
    parts=("", "admin", "api", "api/", "favicon.ico"),
    operations=(
        Operation("startPage", "GET", "/", anyone, _PAGE, slash=False),
        Operation("startFromApi", "GET", "/api", anyone, _PAGE, slash=False),
        Operation("startFromAdmin", "GET", "/admin", anyone, _PAGE, slash=False),
        Operation("startFromApiWithSlash", "GET", "/api/", anyone, _PAGE, slash=False),
        Operation("startFromAdminWithSlash", "GET", "/admin/", anyone, _PAGE, slash=False),
    ),
)
STUDIO = Area(
    "studio",
    parts=("studio",),
    writes_site=False,  # Signing in and out does not change the site's files.
    operations=(
        Operation("studioPage", "GET", "/studio", anyone, _PAGE),
        Operation("studioPlace", "GET", "/studio/{place:path}", anyone, _PAGE, slash=False),
        Operation("studioFile", "GET", "/studio/-/{version}/{name:path}", anyone, _PAGE, slash=False),
        Operation(
            "studioSignIn", "POST", "/studio/-/session", anyone, "Internal to the studio.", slash=False
        ),
        Operation(
            "studioSignOut", "DELETE", "/studio/-/session", anyone, "Internal to the studio.", slash=False
        ),
    ),
)
