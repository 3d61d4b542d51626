"""The table of operations.

To define an operation, add a row to an area, and add a handler in `server.api.routes`.
"""

from collections.abc import Iterator, Mapping

from server.api.operations import (
    agents,
    batch,
    branches,
    events,
    history,
    media,
    people,
    public_site,
    search,
    settings,
    site,
    source,
    user_management,
    webhooks,
)
from server.api.operations.content import CONTENT
from server.api.operations.operation import Area, Operation
from server.schema.model import Schema, Type

METHODS = ("GET", "POST", "PUT", "DELETE")  # in the order of the `Allow` header
AREAS = (
    CONTENT,
    batch.WRITES,
    history.COMMITS,
    media.UPLOAD,
    media.FILES,
    people.AUTH,
    people.CONNECT,
    people.USERS_AND_ROLES,
    settings.SITE_FILE,
    user_management.USERS,
    site.LOCALES,
    site.SCHEMA,
    site.ACCESS,
    site.HEALTH,
    site.METRICS,
    site.GIT,
    search.SEARCH,
    search.OVERVIEW,
    public_site.FEEDS,
    public_site.SITEMAP,
    public_site.LLMS,
    public_site.REDIRECTS,
    source.SOURCES,
    branches.OF_REPOSITORY,
    events.EVENTS,
    events.PRESENCE,
    webhooks.WEBHOOKS,
    source.PROBLEMS_OF_FILES,
    agents.MCP,
    site.OPENAPI,
    site.DOCS,
    site.START,
    site.STUDIO,
)
NOWHERE = Area("other", parts=(), operations=())  # the area of all remaining paths
OPERATIONS: tuple[Operation, ...] = tuple(operation for area in AREAS for operation in area.operations)
BY_ID: Mapping[str, Operation] = {operation.id: operation for operation in OPERATIONS}
# Values of the label `route` in metrics.
ROUTES = (CONTENT.name, *sorted({area.name for area in AREAS} - {CONTENT.name}), NOWHERE.name)
_BY_PART: Mapping[str, Area] = {
    part: area for area in AREAS for part in area.parts if not part.startswith("api/")
}
_BELOW_API: Mapping[str, Area] = {
    part.removeprefix("api/"): area for area in AREAS for part in area.parts if part.startswith("api/")
}
_ROUTE_NUMBERS: Mapping[str, int] = {route: number for number, route in enumerate(ROUTES)}


def area_of(path: str) -> Area:
    parts = path.split("/", 3)
    if len(parts) > 2 and parts[1] == "api":
        return _BELOW_API.get(parts[2], CONTENT)
    if len(parts) < 2:
        return NOWHERE
    return _BY_PART.get(parts[1]) or _BY_PART.get(parts[1].partition("-")[0] + "-", NOWHERE)


def route_of(path: str) -> int:
    return _ROUTE_NUMBERS[area_of(path).name]


def operations_at(path: str, schema: Schema) -> Iterator[tuple[Operation, Type | None]]:
    area, type_ = area_of(path), None
    if area is CONTENT:
        type_ = schema.endpoints.get(path.split("/", 3)[2])
    for operation in area.operations:
        if operation.matches(path) and (area is not CONTENT or (type_ and type_.kind == operation.kind)):
            yield operation, type_


def methods_at(path: str, schema: Schema) -> tuple[str, ...]:
    found = {operation.method for operation, _ in operations_at(path, schema) if not operation.always_fails}
    methods = [method for method in METHODS if method in found]
    return (*methods, *["HEAD"] * ("GET" in found), "OPTIONS") if methods else ()
