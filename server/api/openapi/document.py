"""The OpenAPI document for one caller."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from server.api.openapi.describe import describe, error_responses
from server.api.openapi.parameters import example_documents, shared_parameters, type_parameters
from server.api.openapi.shared import shared_schemas
from server.api.openapi.types import SUFFIXES, TypeSchemas
from server.api.operations.content import CONTENT
from server.api.operations.json_schema import JsonSchema
from server.api.operations.operation import Area, Audience, TypeView
from server.api.operations.table import AREAS
from server.auth.permissions import Actor
from server.schema.model import BUILT_IN, Type, type_names
from server.schema.sentences import describe_type
from server.service.render import dumps
from server.site.site import State

OPENAPI = "3.1.0"
_ABOUT = (
    "Requests and responses of the API, as the caller of this document may use it: without credentials, what "
    "anyone may do; with `Authorization: Bearer`, what that token or user may do. Queries nest brackets: "
    "`filters[title][$eq]=x`, `populate[author][fields][0]=name`. All errors have the same shape."
)
# Keys whose values are data from the site.
_SITE_VALUES = ("example", "examples", "enum", "const", "default")
_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API token (`bifolio token create`), or the `jwt` of a sign-in response.",
}


def describe_site(state: State, actor: Actor) -> bytes:
    """Return a caller's OpenAPI document as JSON. The output is deterministic."""
    public = Actor("public", state.settings.roles["public"])
    taken = [name for name, _ in shared_schemas(state.settings)]
    schemas = TypeSchemas(
        state.schema, type_names(state.schema, taken, SUFFIXES), actor, state.settings.media.placeholders
    )
    components = _components(state, schemas)
    audience = Audience(actor, public, state.schema, state.settings)
    paths: dict[str, JsonSchema] = {}
    for type_ in state.schema.content_types:
        view = TypeView(type_, schemas.names[type_.uid], example_documents(state, public, type_))
        _add_operations(paths, CONTENT, replace(audience, view=view))
    for area in AREAS:
        if area is not CONTENT:
            _add_operations(paths, area, audience)
    _remove_undefined_parameters(paths, components["parameters"])
    used = _used_components(paths, components)
    document = {
        "openapi": OPENAPI,
        "info": {"title": state.settings.name, "description": _ABOUT, "version": _version(paths, used)},
        "servers": [{"url": "/"}],
        "tags": _tags(state.schema.content_types, paths),
        "paths": paths,
        "components": {**used, "securitySchemes": {"bearer": _BEARER}},
    }
    return dumps(document)


def _add_operations(paths: dict[str, JsonSchema], area: Area, audience: Audience) -> None:
    for operation in area.operations:
        path, view = operation.described_path, audience.view
        if view:
            if operation.kind != view.type.kind:
                continue
            path = path.replace("{pluralApiId}", view.type.plural)
            path = path.replace("{singularApiId}", view.type.singular)
        made = describe(operation, area, audience)
        if made:
            paths.setdefault(path, {})[operation.method.lower()] = made


def _remove_undefined_parameters(
    paths: Mapping[str, JsonSchema], parameters: Mapping[str, JsonSchema]
) -> None:
    known = {f"#/components/parameters/{name}" for name in parameters}
    for methods in paths.values():
        for made in methods.values():
            if "parameters" in made:
                made["parameters"] = [p for p in made["parameters"] if p.get("$ref") in {None, *known}]


def _components(state: State, schemas: TypeSchemas) -> dict[str, dict[str, JsonSchema]]:
    types = [*state.schema.content_types, *(state.schema.types[uid] for uid in BUILT_IN)]
    parameters = dict(shared_parameters(state.settings))
    for type_ in types:
        parameters.update(type_parameters(schemas, type_))
    made = {**dict(shared_schemas(state.settings)), **dict(schemas.all())}
    return {"schemas": made, "parameters": parameters, "responses": dict(error_responses())}


def _used_components(
    paths: Any, components: Mapping[str, Mapping[str, JsonSchema]]
) -> dict[str, dict[str, JsonSchema]]:
    found: set[tuple[str, str]] = set()
    waiting: list[Any] = [paths]
    while waiting:
        for section, name in _references(waiting.pop()):
            if (section, name) not in found:
                found.add((section, name))
                waiting.append(components[section][name])
    return {
        section: {name: made[name] for name in sorted(made) if (section, name) in found}
        for section, made in components.items()
    }


def _references(value: Any) -> Iterable[tuple[str, str]]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(item)
            continue
        # Examples and enumerations are skipped, because they contain data that may look like a reference.
        for key, held in item.items() if isinstance(item, dict) else ():
            if key == "properties":  # The keys of `properties` are names of attributes.
                stack.extend(held.values())
            elif key in ("$ref", "mapping"):
                for pointer in [held] if key == "$ref" else held.values():
                    _, _, section, name = pointer.split("/", 3)
                    yield section, name
            elif key not in _SITE_VALUES:
                stack.append(held)


def _version(*parts: Any) -> str:
    return blake2b(dumps(parts), digest_size=6).hexdigest()


def _tags(types: Iterable[Type], paths: Mapping[str, Any]) -> list[JsonSchema]:
    used = {tag for methods in paths.values() for made in methods.values() for tag in made["tags"]}
    found = {type_.display: " ".join(describe_type(type_)) for type_ in types}
    found |= {area.tag.name: area.tag.description for area in AREAS if area.tag}
    return [{"name": name, "description": text} for name, text in found.items() if name in used]
