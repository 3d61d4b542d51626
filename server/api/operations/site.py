"""Operations that tell of the site and its server, and pages for people."""

from server.api.operations.json_schema import (
    COUNT,
    FLAG,
    NINE_DIGITS,
    NUMBER,
    READ_ONE,
    TEXT,
    TIMESTAMP,
    JsonSchema,
    answer,
    body_of,
    closed,
    in_path,
    in_query,
    list_of,
    or_null,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.permission import anyone, may
from server.api.serving.bodies import MEDIUM

SITE = Tag("Site", "What the site says of itself.")
_PAGE = "A page for people, or a part of one."

# --- locales, content types, permissions ---------------------------------------------------------

_LOCALE = closed(
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
    of_commit=True,
    of_today=True,
    operations=(
        Operation(
            "findLocales", "GET", "/api/i18n/locales", may("locale", "find"),
            Docs("The locales of the site", {200: answer("The locales.", list_of(_LOCALE))}),
        ),
    ),
)  # fmt: skip

_DESCRIBED: JsonSchema = {"type": "object", "required": ["uid", "schema"]}


def _described(kind: str, path: str, what: str) -> tuple[Operation, Operation]:
    """The operations that describe all content types or components, and one of them."""
    many = {200: answer("Their schemas.", closed({"data": list_of(_DESCRIBED)}))}
    one = {200: answer("Its schema.", closed({"data": _DESCRIBED}))}
    uid = in_path("uid", "Such as `api::article.article`.")
    return (
        Operation(
            f"find{kind}s", "GET", path, may("content-type", "find"), Docs(f"The {what} of the site", many)
        ),
        Operation(
            f"findOne{kind}", "GET", f"{path}/{{uid}}", may("content-type", "findOne"),
            Docs(f"One of the {what}", one, [uid], errors=READ_ONE),
        ),
    )  # fmt: skip


SCHEMA = Area(
    "schema",
    parts=("api/content-type-builder",),
    tag=SITE,
    takes_at=True,
    of_commit=True,
    operations=(
        *_described("ContentType", "/api/content-type-builder/content-types", "content types"),
        *_described("Component", "/api/content-type-builder/components", "components"),
    ),
)

_ACCESS = closed(
    {
        "site": closed(
            {
                "name": TEXT,
                "locales": list_of(closed({"code": TEXT, "name": TEXT, "isDefault": FLAG})),
                "servedAt": {
                    **or_null(closed({"commit": TEXT, "date": TIMESTAMP})),
                    "description": "The commit that the whole site is served at, to read alone.",
                },
                "pageSize": closed(dict.fromkeys(("default", "max"), NUMBER)),
            }
        ),
        "caller": closed(
            {
                "kind": {"enum": ["public", "user", "token", "owner"]},
                **dict.fromkeys(("name", "email", "role"), TEXT),
            },
            optional=("email", "role"),
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
    operations=(
        Operation(
            "access", "GET", "/access", anyone,
            Docs(
                "What the caller may do",
                {200: answer("Who the caller is, and what that one may do.", closed({"data": _ACCESS}))},
            ),
        ),
    ),
)  # fmt: skip

# --- for whoever runs the server -----------------------------------------------------------------

_LOADED = Docs("Whether the site is loaded", {204: answer("The site is loaded.")}, errors=(500,))
_CONDITION = closed(
    {
        "content": {"const": "ready"},
        "accounts": {"enum": ["ready", "away"]},
        "events": {"enum": ["ready", "behind"]},
        "media": {"enum": ["ready", "away"]},
        "remote": or_null(
            closed(
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
            closed(
                {"commits": COUNT, "since": or_null(TIMESTAMP), "reason": TEXT, "files": list_of(TEXT)},
                optional=("reason", "files"),
            )
        ),
        **dict.fromkeys(("commitsWaiting", "deliveriesWaiting"), COUNT),
    }
)
_READY = closed({"data": _CONDITION})

HEALTH = Area(
    "health",
    parts=("_health",),
    tag=SITE,
    asks_accounts=True,
    operations=(
        Operation("health", "GET", "/_health", anyone, _LOADED, in_place=True, slash=False),
        Operation("healthLive", "GET", "/_health/live", anyone, _LOADED, in_place=True, slash=False),
        Operation(
            "healthReady", "GET", "/_health/ready", anyone,
            Docs(
                "The condition of the server",
                {
                    200: answer("What condition the server is in.", _READY),
                    503: answer(
                        "The same, of one that is behind the git remote for longer than `lag`.", _READY
                    ),
                },
                [in_query("lag", NINE_DIGITS, "For how many seconds it may be behind.")],
                errors=(400, 500),
            ),
        ),
    ),
)  # fmt: skip

METRICS = Area(
    "metrics",
    parts=("metrics",),
    tag=SITE,
    asks_accounts=True,
    operations=(
        Operation(
            "metrics", "GET", "/metrics", may("metrics", "read"),
            Docs(
                "What is counted, for Prometheus",
                {
                    200: {
                        "description": "The metrics, in Prometheus' text format.",
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
            "gitHook", "POST", "/git/hook", anyone,  # The body is signed, as the remote's host does it.
            Docs(
                "The git remote tells of a push; signed, as its host does",
                {202: answer("The remote is asked."), 204: answer("It is about another branch, or no push.")},
                body=body_of({"type": "object", "properties": {"ref": TEXT, "after": TEXT}}),
                errors=(*READ_ONE, 413),
            ),
            MEDIUM, slash=False,
        ),
    ),
)  # fmt: skip

# --- pages ---------------------------------------------------------------------------------------

OPENAPI = Area(
    "openapi",
    parts=("openapi.json",),
    of_commit=True,
    operations=(Operation("openapi", "GET", "/openapi.json", anyone, "It is the OpenAPI document."),),
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
    writes_site=False,  # It signs in and out.
    operations=(
        Operation("studioPage", "GET", "/studio", anyone, _PAGE),
        Operation("studioPlace", "GET", "/studio/{place:path}", anyone, _PAGE, slash=False),
        Operation("studioFile", "GET", "/studio/-/{version}/{name:path}", anyone, _PAGE, slash=False),
        Operation(
            "studioSignIn", "POST", "/studio/-/session", anyone, "It is the studio's own.", slash=False
        ),
        Operation(
            "studioSignOut", "DELETE", "/studio/-/session", anyone, "It is the studio's own.", slash=False
        ),
    ),
)
