"""The OpenAPI document of a site, as one actor sees it: only what the actor may do, and what that shows."""

from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import blake2b
from itertools import chain
from typing import Any

from server.api.commits.header import names_commit
from server.api.openapi.batch import BATCH, batch_paths, undo_paths
from server.api.openapi.branches import BRANCHES, branch_paths
from server.api.openapi.content import ContentPaths, answer_schemas
from server.api.openapi.events import EVENTS, event_paths
from server.api.openapi.examples import examples_of
from server.api.openapi.history import HISTORY, history_paths
from server.api.openapi.operations import error_responses, read
from server.api.openapi.parameters import shared_parameters, type_parameters
from server.api.openapi.search import SEARCH, search_path
from server.api.openapi.services.accounts import ACCOUNTS, account_paths
from server.api.openapi.services.caller import Caller
from server.api.openapi.services.media import MEDIA, media_paths
from server.api.openapi.services.presence import PRESENCE, presence_paths
from server.api.openapi.services.problems import PROBLEMS, problem_paths
from server.api.openapi.services.site import SITE, site_paths
from server.api.openapi.services.users import USERS, user_paths
from server.api.openapi.shared import shared_schemas
from server.api.openapi.source import SOURCE, source_paths, with_dry_runs
from server.api.openapi.types import SUFFIXES, TypeSchemas
from server.api.openapi.values import JsonSchema
from server.api.render import dumps
from server.auth.permissions import Actor, may_branch, may_source
from server.schema.model import BUILT_IN, UPLOAD, Type
from server.schema.naming import type_names
from server.schema.sentences import describe_type
from server.site.site import State

OPENAPI = "3.1.0"
_ABOUT = (
    "What the API takes and answers, for whoever asked for this document: without credentials what anyone "
    "may do, with `Authorization: Bearer` what that token or user may do. Queries are in bracket notation: "
    "`filters[title][$eq]=x`, `populate[author][fields][0]=name`. Errors all have one shape."
)
_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API token (`quire token create`), or the token that a login answers.",
}
_SERVICES: Mapping[str, str] = {
    MEDIA: "Files, their descriptions and their content.",
    ACCOUNTS: "Logins, registration, passwords.",
    USERS: "Who there is, and what roles there are.",
    SITE: "What the site says of itself.",
    BATCH: "Several writes as one.",
    HISTORY: "What git says of the documents.",
    SOURCE: "The files of documents.",
    BRANCHES: "States of the site that are not served.",
    EVENTS: "What has changed.",
    PRESENCE: "Who is at which document.",
    PROBLEMS: "What is wrong with the files.",
    SEARCH: "Ranked search across all types and locales.",
}


def describe_site(state: State, actor: Actor) -> bytes:
    """The document as JSON, the same bytes for the same site."""
    public = Actor("public", state.settings.roles["public"])
    taken = [name for name, _ in shared_schemas()]
    names = type_names(state.schema, taken, SUFFIXES)
    schemas = TypeSchemas(state.schema, names, actor)
    examples = cache(lambda type_: examples_of(state, public, type_))
    limited = bool(state.settings.rate_limit)
    branches = may_branch(actor, "update", state.schema)
    commits = branches or state.settings.commit is not None
    caller = Caller(actor, public, limited, commits, branches)
    content = ContentPaths(schemas, public, examples, limited, commits)
    written = {path: made for type_ in state.schema.content_types for path, made in content.of(type_) if made}
    written |= dict(batch_paths(caller, state.schema.content_types))
    written |= dict(history_paths(caller))
    paths = with_dry_runs(written) if may_source(actor, "read", state.schema) else written
    populated = ("populate",) if schemas.links(state.schema.types[UPLOAD]) else ()
    services = chain(
        media_paths(caller, populated), account_paths(caller), user_paths(caller), site_paths(caller)
    )
    paths |= {path: made for path, made in services if made}
    searched = search_path(actor, public, state.schema.content_types, state.settings)
    paths |= {"/search": searched} if searched else {}
    paths |= dict(undo_paths(caller, state.schema.content_types))
    paths |= dict(source_paths(caller, state.schema))
    paths |= dict(branch_paths(actor, public, state.schema, limited=limited))
    paths |= dict(event_paths(actor, public, state.schema, limited=limited))
    paths |= dict(presence_paths(caller, state.schema))
    paths |= dict(problem_paths(caller, state))
    paths = {path: _with_reads(path, methods) for path, methods in paths.items()}
    components = _components(state, schemas)
    used = _reached(paths, components)
    document = {
        "openapi": OPENAPI,
        "info": {"title": state.settings.name, "description": _ABOUT, "version": _version(paths, used)},
        "servers": [{"url": "/"}],
        "tags": _tags(state.schema.content_types, paths),
        "paths": paths,
        "components": {**used, "securitySchemes": {"bearer": _BEARER}},
    }
    return dumps(document)


def _with_reads(path: str, methods: JsonSchema) -> JsonSchema:
    of_content = names_commit(path)
    return {m: read(made, of_content=of_content) if m == "get" else made for m, made in methods.items()}


def _components(state: State, schemas: TypeSchemas) -> dict[str, dict[str, JsonSchema]]:
    """Everything that a path can refer to, by section and name."""
    types = [*state.schema.content_types, *(state.schema.types[uid] for uid in BUILT_IN)]
    parameters = dict(shared_parameters(state.settings))
    for type_ in types:
        parameters.update(type_parameters(schemas, type_))
    made = {**dict(shared_schemas()), **dict(schemas.all()), **dict(answer_schemas(schemas))}
    return {"schemas": made, "parameters": parameters, "responses": dict(error_responses())}


def _reached(
    paths: Any, components: Mapping[str, Mapping[str, JsonSchema]]
) -> dict[str, dict[str, JsonSchema]]:
    """The components that the paths refer to, also through others: what nothing leads to is not shown."""
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
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, str) and item.startswith("#/components/"):
            _, _, section, name = item.split("/", 3)
            yield section, name


def _version(*parts: Any) -> str:
    """Changes whenever what the API takes or answers does."""
    return blake2b(dumps(parts), digest_size=6).hexdigest()


def _tags(types: Iterable[Type], paths: Mapping[str, Any]) -> list[JsonSchema]:
    used = {tag for methods in paths.values() for made in methods.values() for tag in made["tags"]}
    found = {t.display: " ".join(describe_type(t)) for t in types} | dict(_SERVICES)
    return [{"name": name, "description": text} for name, text in found.items() if name in used]
