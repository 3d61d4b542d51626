"""The operations that tell of the site itself."""

from collections.abc import Iterator

from server.api.openapi.operations import ALWAYS, answer, closed, json_content, operation
from server.api.openapi.parameters import name_in_path
from server.api.openapi.services.caller import FLAG, TEXT, TIMESTAMP, Caller, methods
from server.api.openapi.values import JsonSchema

SITE = "Site"


def site_paths(caller: Caller) -> Iterator[tuple[str, JsonSchema]]:
    """Every path that tells of the site."""
    locales = caller.operation(
        "locale.find", SITE, "findLocales", "The locales of the site",
        {200: answer("The locales.", {"type": "array", "items": _LOCALE})},
    )  # fmt: skip
    yield "/api/i18n/locales", methods(get=locales)
    for name, kind in (("content-types", "ContentType"), ("components", "Component")):
        described = {"type": "object", "required": ["uid", "schema"]}
        many = caller.operation(
            "content-type.find", SITE, f"find{kind}s", f"The {name.replace('-', ' ')} of the site",
            {200: answer("Their schemas.", closed({"data": {"type": "array", "items": described}}))},
        )  # fmt: skip
        yield f"/api/content-type-builder/{name}", methods(get=many)
        one = caller.operation(
            "content-type.findOne", SITE, f"findOne{kind}", f"One of the {name.replace('-', ' ')}",
            {200: answer("Its schema.", closed({"data": described}))},
            parameters=[name_in_path("uid", "Such as `api::article.article`.")], errors=(*ALWAYS, 404),
        )  # fmt: skip
        yield f"/api/content-type-builder/{name}/{{uid}}", methods(get=one)
    access = {200: answer("Who the caller is, and what that one may do.", closed({"data": _ACCESS}))}
    yield (
        "/access",
        methods(
            get=operation(
                SITE, "access", "What the caller may do", access, public=True, limited=caller.limited
            )
        ),
    )
    yield from _monitoring(caller)


def _monitoring(caller: Caller) -> Iterator[tuple[str, JsonSchema]]:
    """The paths for whoever runs the server."""
    loaded = {204: answer("The site is loaded.")}
    for path, name in (("/_health", "health"), ("/_health/live", "healthLive")):
        shown = operation(SITE, name, "Whether the site is loaded", loaded, errors=(500,), public=True)
        yield path, methods(get=shown)
    shape = closed({"data": _CONDITION})
    ready = {
        200: answer("What condition the server is in.", shape),
        503: answer("The same, of one that is behind the git remote for longer than `lag`.", shape),
    }
    lag = {"name": "lag", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 999_999_999}}
    shown = operation(
        SITE, "healthReady", "The condition of the server", ready,
        parameters=[{**lag, "description": "For how many seconds it may be behind."}],
        errors=(400, 500), public=True,
    )  # fmt: skip
    yield "/_health/ready", methods(get=shown)
    pushed = {"type": "object", "properties": {"ref": TEXT, "after": TEXT}}
    hook = operation(
        SITE, "gitHook", "The git remote tells of a push; signed, as its host does",
        {202: answer("The remote is asked."), 204: answer("It is about another branch, or no push.")},
        body={"required": True, "content": json_content(pushed)},
        errors=(*ALWAYS, 404, 413), public=True,
    )  # fmt: skip
    yield "/git/hook", methods(post=hook)
    text = {
        "description": "The metrics, in Prometheus' text format.",
        "content": {"text/plain": {"schema": TEXT}},
    }
    metrics = caller.operation(
        "metrics.read", SITE, "metrics", "What is counted, for Prometheus", {200: text}
    )
    yield "/metrics", methods(get=metrics)


_CONDITION = closed(
    {
        "content": {"const": "ready"},
        "accounts": {"enum": ["ready", "away"]},
        "events": {"enum": ["ready", "behind"]},
        "media": {"enum": ["ready", "away"]},
        "remote": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {
                        "state": {"enum": ["current", "behind", "away"]},
                        **dict.fromkeys(("branch", "commit", "reason"), TEXT),
                        "behind": {"type": "integer", "minimum": 0},
                        "since": {"anyOf": [TIMESTAMP, {"type": "null"}]},
                        "files": {"type": "array", "items": TEXT},
                    },
                    "required": ["state", "branch", "commit", "behind", "since"],
                    "additionalProperties": False,
                },
                {"type": "null"},
            ]
        },
        "push": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {
                        "commits": {"type": "integer", "minimum": 0},
                        "since": {"anyOf": [TIMESTAMP, {"type": "null"}]},
                        "reason": TEXT,
                        "files": {"type": "array", "items": TEXT},
                    },
                    "required": ["commits", "since"],
                    "additionalProperties": False,
                },
                {"type": "null"},
            ]
        },
        **{name: {"type": "integer", "minimum": 0} for name in ("commitsWaiting", "deliveriesWaiting")},
    }
)
_LIST: JsonSchema = {"type": "array", "items": TEXT}
_DESCRIBED: JsonSchema = {"type": "object", "required": ["uid", "schema"]}
_ACCESS = closed(
    {
        "site": closed(
            {
                "name": TEXT,
                "locales": {
                    "type": "array",
                    "items": closed({"code": TEXT, "name": TEXT, "isDefault": FLAG}),
                },
                "servedAt": {
                    "anyOf": [closed({"commit": TEXT, "date": TIMESTAMP}), {"type": "null"}],
                    "description": "The commit that the whole site is served at, to read alone.",
                },
                "pageSize": closed({key: {"type": "integer"} for key in ("default", "max")}),
            }
        ),
        "caller": {
            "type": "object",
            "properties": {
                "kind": {"enum": ["public", "user", "token", "owner"]},
                **dict.fromkeys(("name", "email", "role"), TEXT),
            },
            "required": ["kind", "name"],
            "additionalProperties": False,
        },
        "permissions": {"type": "object", "additionalProperties": _LIST},
        "contentTypes": {"type": "array", "items": _DESCRIBED},
        "components": {"type": "array", "items": _DESCRIBED},
    }
)
_LOCALE = closed(
    {
        "id": {"type": "integer"},
        **dict.fromkeys(("documentId", "name", "code"), TEXT),
        **dict.fromkeys(("createdAt", "updatedAt", "publishedAt"), TIMESTAMP),
        "isDefault": FLAG,
    }
)
