"""What requests are counted as: the routes of the API, by how their paths begin."""

from collections.abc import Mapping

OTHER = "other"
# By the first part of a path, and of those below /api by the second: any other there is a content type.
_FIRST: Mapping[str, str] = {
    "": "start",
    "_health": "health",
    "access": "access",
    "admin": "start",
    "batch": "batch",
    "branches": "branches",
    "docs": "openapi",
    "events": "events",
    "favicon.ico": "start",
    "git": "git",
    "history": "history",
    "metrics": "metrics",
    "openapi.json": "openapi",
    "presence": "presence",
    "problems": "problems",
    "search": "search",
    "source": "source",
    "studio": "studio",
    "uploads": "files",
}
_BELOW_API: Mapping[str, str] = {
    "": "start",
    "auth": "users",
    "connect": "users",
    "content-type-builder": "schema",
    "i18n": "schema",
    "upload": "media",
    "users": "users",
    "users-permissions": "users",
}
CONTENT = "content"
ROUTES = (CONTENT, *sorted({*_FIRST.values(), *_BELOW_API.values()}), OTHER)
_NUMBERS: Mapping[str, int] = {route: number for number, route in enumerate(ROUTES)}


def route_of(path: str) -> int:
    """The place in ROUTES of what a path is counted as."""
    parts = path.split("/", 3)
    first = parts[1] if len(parts) > 1 else OTHER
    if first == "api":
        return _NUMBERS[_BELOW_API.get(parts[2] if len(parts) > 2 else "", CONTENT)]
    return _NUMBERS[_FIRST.get(first, OTHER)]
