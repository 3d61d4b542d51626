"""The `export` section of site.yaml: what is asked of each type, and further queries by name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from server.errors import SetupError
from server.formats.scalars import is_null
from server.formats.tree import Tree
from server.spelling import suggestion

# Each key of a type below `export.types`, and a sentence.
TYPE_KEYS: Mapping[str, str] = {
    "populate": "What its lists and documents populate.",
    "fields": "Which attributes they show.",
    "filters": "Which documents there are; the others are not exported.",
    "sort": "The order of its lists.",
    "page_size": "Documents on a page, at most `api.page_size.max`; without it, `api.page_size.default`.",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_TYPES, _QUERIES = ("export", "types"), ("export", "queries")


@dataclass(frozen=True, slots=True)
class TypeExport:
    """What is asked of a type: read parameters as a query string has them, and the line that says so."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None


@dataclass(frozen=True, slots=True)
class QueryExport:
    """A further request, `/api/articles?…`, and the line that names it."""

    request: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Export:
    """The section: types by singular API id, queries by name."""

    types: Mapping[str, TypeExport] = field(default_factory=dict)
    queries: Mapping[str, QueryExport] = field(default_factory=dict)


class Reader(Protocol):
    """What reads site.yaml, as far as this section needs it."""

    def refuse(self, message: str, fix: str, *at: str | int) -> SetupError:
        """The error that names the line of a path of keys."""

    def line(self, *at: str | int) -> int | None:
        """The line of a path of keys."""

    def section(self, *at: str) -> Mapping[str, Any]:
        """The mapping at a path of keys, which must be one where it is there."""

    def count(self, default: int, *at: str) -> int:
        """The whole number above 0 at a path of keys."""


def read_export(reader: Reader, max_page_size: int) -> Export:
    """The section as site.yaml has it. Raises SetupError with the line of what is wrong."""
    reader.section("export")
    types = {name: _type(reader, name, max_page_size) for name in reader.section(*_TYPES)}
    queries = {name: _query(reader, name, value) for name, value in reader.section(*_QUERIES).items()}
    return Export(types, queries)


def _type(reader: Reader, name: str, max_page_size: int) -> TypeExport:
    at = (*_TYPES, name)
    parameters: dict[str, Any] = {}
    for key, value in reader.section(*at).items():
        if key not in TYPE_KEYS:
            fix = suggestion(key, TYPE_KEYS) or "known here: " + ", ".join(TYPE_KEYS)
            raise reader.refuse(f'the key "{".".join((*at, key))}" is not known', fix, *at, key)
        if key == "page_size":
            size = reader.count(25, *at, key)
            if size > max_page_size:
                what = f"page_size {size} is above api.page_size.max {max_page_size}"
                raise reader.refuse(what, "raise api.page_size.max", *at, key)
            parameters["pagination"] = {"pageSize": str(size)}
        elif not is_null(value):
            parameters[key] = _as_text(value)
    return TypeExport(parameters, reader.line(*at))


def _query(reader: Reader, name: str, value: Tree) -> QueryExport:
    at = (*_QUERIES, name)
    if not _NAME.fullmatch(name):
        raise reader.refuse(f'"{name}" can\'t be the name of a query', "use letters, digits, - and _", *at)
    if not isinstance(value, str) or not value.startswith("/api/"):
        fix = "write it as /api/articles?sort=title"
        raise reader.refuse(f'"{".".join(at)}" must be a path of the API', fix, *at)
    return QueryExport(str(value), reader.line(*at))


def _as_text(tree: Tree) -> Any:
    """A tree as a query string has it: every scalar is text, or None."""
    if isinstance(tree, dict):
        return {str(key): _as_text(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_as_text(value) for value in tree]
    return None if is_null(tree) else str(tree)
