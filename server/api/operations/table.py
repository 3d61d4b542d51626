"""The table of operations, and the lookup of operations by path.

Flask's rules, `Allow` and 405, the maximum body, `at`, waiting for accounts, metrics labels and the OpenAPI
document all come from here. To add an operation, add a row to its area, and a handler for the row's id in
`server.api.routes`.
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

METHODS = ("GET", "POST", "PUT", "DELETE")  # of operations, in the order of `Allow`
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
NOWHERE = Area("other", parts=(), operations=())  # area of unknown paths
OPERATIONS: tuple[Operation, ...] = tuple(operation for area in AREAS for operation in area.operations)
BY_ID: Mapping[str, Operation] = {operation.id: operation for operation in OPERATIONS}
# Labels of requests in metrics.
ROUTES = (CONTENT.name, *sorted({area.name for area in AREAS} - {CONTENT.name}), NOWHERE.name)
_BY_PART: Mapping[str, Area] = {
    part: area for area in AREAS for part in area.parts if not part.startswith("api/")
}
_BELOW_API: Mapping[str, Area] = {
    part.removeprefix("api/"): area for area in AREAS for part in area.parts if part.startswith("api/")
}
_ROUTE_NUMBERS: Mapping[str, int] = {route: number for number, route in enumerate(ROUTES)}


def area_of(path: str) -> Area:
    """Return the area of a path, by its first segment; below /api by the second one, CONTENT by default."""
    parts = path.split("/", 3)
    if len(parts) > 2 and parts[1] == "api":
        return _BELOW_API.get(parts[2], CONTENT)
    return _BY_PART.get(parts[1], NOWHERE) if len(parts) > 1 else NOWHERE


def route_of(path: str) -> int:
    """Return the index in ROUTES of the metrics label of a path."""
    return _ROUTE_NUMBERS[area_of(path).name]


def operations_at(path: str, schema: Schema) -> Iterator[tuple[Operation, Type | None]]:
    """Yield the operations of a path, each with the content type that it is about or None."""
    area, type_ = area_of(path), None
    if area is CONTENT:
        type_ = schema.endpoints.get(path.split("/", 3)[2])
    for operation in area.operations:
        if operation.matches(path) and (area is not CONTENT or (type_ and type_.kind == operation.kind)):
            yield operation, type_


def methods_at(path: str, schema: Schema) -> tuple[str, ...]:
    """Return the methods of a path in the order of `Allow`; () if the path does not exist."""
    found = {operation.method for operation, _ in operations_at(path, schema) if not operation.always_fails}
    methods = [method for method in METHODS if method in found]
    return (*methods, *["HEAD"] * ("GET" in found), "OPTIONS") if methods else ()
