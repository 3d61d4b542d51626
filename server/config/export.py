"""The `export` section of site.yaml: what is asked of each type, and further queries by name."""

import re
from collections.abc import Mapping
from typing import Any

from server.config.model import DEFAULTS, QueryExport, TypeExport
from server.config.values import as_parameter, count, section
from server.formats.config_file import ConfigFile
from server.formats.scalars import is_null
from server.schema.spelling import suggestion

# Each key of a type below `export.types`, and a sentence.
TYPE_KEYS: Mapping[str, str] = {
    "populate": "What its lists and documents populate.",
    "fields": "Which attributes they show.",
    "filters": "Which documents there are; the others are not exported.",
    "sort": "The order of its lists.",
    "page_size": "Documents on a page, at most `api.page_size.max`; without it, `api.page_size.default`.",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


def read_type(file: ConfigFile, *at: str) -> TypeExport:
    """What site.yaml asks of the type that it names at a path of keys. Raises SetupError with the line."""
    parameters: dict[str, Any] = {}
    for key, value in section(file, *at).items():
        if key not in TYPE_KEYS:
            fix = suggestion(key, TYPE_KEYS) or "known here: " + ", ".join(TYPE_KEYS)
            raise file.refuse_key(f'the key "{".".join((*at, key))}" is not known', fix, *at, key)
        if key == "page_size":
            parameters["pagination"] = {"pageSize": str(count(file, DEFAULTS.page_size, *at, key))}
        elif not is_null(value):
            parameters[key] = as_parameter(value)
    return TypeExport(parameters, _line(file, *at))


def read_query(file: ConfigFile, *at: str) -> QueryExport:
    """The request at a path of keys. Raises SetupError with the line."""
    if not _NAME.fullmatch(at[-1]):
        raise file.refuse_key(
            f'"{at[-1]}" can\'t be the name of a query', "use letters, digits, - and _", *at
        )
    value = file.get(*at)
    if not isinstance(value, str) or not value.startswith("/api/"):
        fix = "write it as /api/articles?sort=title"
        raise file.refuse(f'"{".".join(at)}" must be a path of the API', fix, *at)
    return QueryExport(str(value), _line(file, *at))


def _line(file: ConfigFile, *at: str) -> int | None:
    position = file.position(*at)
    return position.line if position else None
