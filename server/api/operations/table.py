"""The table of operations, and how a path finds its rows.

Flask's rules, `Allow` and 405, the bound of a body, whether a path takes `at`, whether it may wait for
accounts, what it is counted as in metrics, and the OpenAPI document all come from here. To add an operation,
add a row to its area, and a handler for the row's id in `server.api.routes`.
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

METHODS = ("GET", "POST", "PUT", "DELETE")  # that operations have, in the order of `Allow`
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
NOWHERE = Area("other", parts=(), operations=())  # of the paths that nothing is at
OPERATIONS: tuple[Operation, ...] = tuple(operation for area in AREAS for operation in area.operations)
BY_ID: Mapping[str, Operation] = {operation.id: operation for operation in OPERATIONS}
# What requests are counted as in metrics.
ROUTES = (CONTENT.name, *sorted({area.name for area in AREAS} - {CONTENT.name}), NOWHERE.name)
_BY_PART: Mapping[str, Area] = {
    part: area for area in AREAS for part in area.parts if not part.startswith("api/")
}
_BELOW_API: Mapping[str, Area] = {
    part.removeprefix("api/"): area for area in AREAS for part in area.parts if part.startswith("api/")
}
_ROUTE_NUMBERS: Mapping[str, int] = {route: number for number, route in enumerate(ROUTES)}


def area_of(path: str) -> Area:
    """The area that a path is in, by its first part; below /api by its second, any other being a type's."""
    parts = path.split("/", 3)
    if len(parts) > 2 and parts[1] == "api":
        return _BELOW_API.get(parts[2], CONTENT)
    return _BY_PART.get(parts[1], NOWHERE) if len(parts) > 1 else NOWHERE


def route_of(path: str) -> int:
    """The place in ROUTES of what a path is counted as."""
    return _ROUTE_NUMBERS[area_of(path).name]


def operations_at(path: str, schema: Schema) -> Iterator[tuple[Operation, Type | None]]:
    """The operations of a path, and the content type that they are about, if any."""
    area, type_ = area_of(path), None
    if area is CONTENT:
        type_ = schema.endpoints.get(path.split("/", 3)[2])
    for operation in area.operations:
        if operation.matches(path) and (area is not CONTENT or (type_ and type_.kind == operation.kind)):
            yield operation, type_


def methods_at(path: str, schema: Schema) -> tuple[str, ...]:
    """The methods that a path has, as `Allow` lists them; none where nothing is there."""
    found = {operation.method for operation, _ in operations_at(path, schema) if not operation.always_fails}
    methods = [method for method in METHODS if method in found]
    return (*methods, *["HEAD"] * ("GET" in found), "OPTIONS") if methods else ()
