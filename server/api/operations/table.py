"""The table of operations, and functions that look up operations by path.

Many parts of the server are derived from this table: Flask's rules, status 405 and the `Allow` header, size
limits for bodies, support for the parameter `at`, waiting for accounts, metrics labels and the OpenAPI
document.

To add an operation, add a row to an area, and add a handler with the row's id in `server.api.routes`.
"""

from collections.abc import Iterator, Mapping

from server.api.operations import (
    batch,
    branches,
    events,
    history,
    media,
    people,
    search,
    site,
    source,
)
from server.api.operations.content import CONTENT
from server.api.operations.operation import Area, Operation
from server.schema.model import Schema, Type

METHODS = ("GET", "POST", "PUT", "DELETE")  # in the order used by `Allow`
AREAS = (
    CONTENT,
    batch.WRITES,
    history.COMMITS,
    media.UPLOAD,
    media.FILES,
    people.AUTH,
    people.CONNECT,
    people.USERS_AND_ROLES,
    site.LOCALES,
    site.SCHEMA,
    site.ACCESS,
    site.HEALTH,
    site.METRICS,
    site.GIT,
    search.SEARCH,
    search.OVERVIEW,
    source.SOURCES,
    branches.OF_REPOSITORY,
    events.EVENTS,
    events.PRESENCE,
    source.PROBLEMS_OF_FILES,
    site.OPENAPI,
    site.DOCS,
    site.START,
    site.STUDIO,
)
NOWHERE = Area("other", parts=(), operations=())  # area for unknown paths
OPERATIONS: tuple[Operation, ...] = tuple(operation for area in AREAS for operation in area.operations)
BY_ID: Mapping[str, Operation] = {operation.id: operation for operation in OPERATIONS}
# Request labels in metrics.
ROUTES = (CONTENT.name, *sorted({area.name for area in AREAS} - {CONTENT.name}), NOWHERE.name)
_BY_PART: Mapping[str, Area] = {
    part: area for area in AREAS for part in area.parts if not part.startswith("api/")
}
_BELOW_API: Mapping[str, Area] = {
    part.removeprefix("api/"): area for area in AREAS for part in area.parts if part.startswith("api/")
}
_ROUTE_NUMBERS: Mapping[str, int] = {route: number for number, route in enumerate(ROUTES)}


def area_of(path: str) -> Area:
    """Return the area for a path. The first path segment determines the area. Below /api, the second segment
    determines it.
    """
    parts = path.split("/", 3)
    if len(parts) > 2 and parts[1] == "api":
        return _BELOW_API.get(parts[2], CONTENT)
    return _BY_PART.get(parts[1], NOWHERE) if len(parts) > 1 else NOWHERE


def route_of(path: str) -> int:
    """Return the index in ROUTES of the metrics label for a path."""
    return _ROUTE_NUMBERS[area_of(path).name]


def operations_at(path: str, schema: Schema) -> Iterator[tuple[Operation, Type | None]]:
    """Yield the operations at a path. Each is paired with its content type, or with None."""
    area, type_ = area_of(path), None
    if area is CONTENT:
        type_ = schema.endpoints.get(path.split("/", 3)[2])
    for operation in area.operations:
        if operation.matches(path) and (area is not CONTENT or (type_ and type_.kind == operation.kind)):
            yield operation, type_


def methods_at(path: str, schema: Schema) -> tuple[str, ...]:
    """Return the methods that a path supports, in the order for the `Allow` header. Returns () for unknown
    paths.
    """
    found = {operation.method for operation, _ in operations_at(path, schema) if not operation.always_fails}
    methods = [method for method in METHODS if method in found]
    return (*methods, *["HEAD"] * ("GET" in found), "OPTIONS") if methods else ()
