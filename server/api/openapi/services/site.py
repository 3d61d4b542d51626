"""The operations that tell of the site itself."""

from collections.abc import Iterator

from server.api.openapi.operations import ALWAYS, answer, closed, operation
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
    health = {204: answer("The site is loaded.")}
    yield (
        "/_health",
        methods(
            get=operation(SITE, "health", "Whether the site is loaded", health, errors=(500,), public=True)
        ),
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
