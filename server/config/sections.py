"""Readers for the export, preview and git remote settings."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from server.config import values
from server.config.model import DEFAULTS, PREVIEW_NAMES, Preview, QueryExport, TypeExport
from server.config.values import read_count, read_duration, read_section, text, to_query_parameter
from server.formats.config_file import ConfigFile
from server.formats.text_positions import KeyPath
from server.formats.tree import is_null
from server.schema.model import Schema, Type
from server.schema.spelling import suggestion

# --- export ---------------------------------------------------------------------------------------

# keys in `export.types.TYPE`
TYPE_KEYS: Mapping[str, str] = {
    "populate": "The relations and media that exported lists and documents include.",
    "fields": "The attributes that exported lists and documents contain.",
    "filters": "Export only the documents that match these filters.",
    "sort": "The order of documents in exported lists.",
    "page_size": "Documents per page, at most `api.page_size.max`. The default is `api.page_size.default`.",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


def read_type(file: ConfigFile, *key_path: str) -> TypeExport:
    """Read the export settings for a content type. Raises SetupError if they are invalid."""
    parameters: dict[str, Any] = {}
    for key, value in read_section(file, *key_path).items():
        if key not in TYPE_KEYS:
            fix = suggestion(key, TYPE_KEYS) or "use one of " + ", ".join(TYPE_KEYS)
            raise file.refuse_key(f'unknown key "{".".join((*key_path, key))}"', fix, *key_path, key)
        if key == "page_size":
            parameters["pagination"] = {
                "pageSize": str(read_count(file, DEFAULTS.api.page_size.default, *key_path, key))
            }
        elif not is_null(value):
            parameters[key] = to_query_parameter(value)
    return TypeExport(parameters, _line(file, *key_path))


def read_query(file: ConfigFile, *key_path: str) -> QueryExport:
    """Read an additional API request to export. Raises SetupError if its name or path is invalid."""
    if not _NAME.fullmatch(key_path[-1]):
        what = f'"{key_path[-1]}" is not a valid name for a query in export.queries'
        raise file.refuse_key(what, 'use only letters, digits, "-" and "_"', *key_path)
    value = file.get(*key_path)
    if not isinstance(value, str) or not value.startswith("/api/"):
        raise file.refuse_value(
            "be the path of an API request", "write a path such as /api/articles?sort=title", *key_path
        )
    return QueryExport(str(value), _line(file, *key_path))


def _line(file: ConfigFile, *key_path: str) -> int | None:
    position = file.position(*key_path)
    return position.line if position else None


# --- previews -------------------------------------------------------------------------------------

# keys in `preview.TYPE`
PREVIEW_KEYS: Mapping[str, str] = {
    "url": "The address, with `{placeholders}`.",
    "unmarked": "Attributes that get no marks, such as `seo.canonical`, since a page uses them as addresses.",
}
# The origin contains no placeholders, because the studio must know the origin of the page in its frame.
_ORIGIN_OR_PATH = re.compile(
    r"(https?://([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[1-9]\d{0,4})?(?=[/?#]|$)|/(?![/\\]))", re.I
)
_TEMPLATE = re.compile(r"([^\s{}\x00-\x1f\x7f]|\{[A-Za-z0-9_-]+\})*")


def read_preview(file: ConfigFile, *key_path: str) -> Preview:
    """Read the preview settings for a content type. Raises SetupError if they are invalid."""
    if isinstance(file.get(*key_path), str):
        return Preview(_address(file, *key_path))
    section = values.read_section(file, *key_path)
    for key in section:
        if key not in PREVIEW_KEYS:
            fix = suggestion(key, PREVIEW_KEYS) or "use one of " + ", ".join(PREVIEW_KEYS)
            raise file.refuse_key(f'unknown key "{".".join((*key_path, key))}"', fix, *key_path, key)
    unmarked = values.text_or_texts(file, (), *key_path, "unmarked")
    return Preview(_address(file, *key_path, "url"), frozenset(unmarked))


def _address(file: ConfigFile, *key_path: str) -> str:
    url = values.text(file, "", *key_path)
    start = _ORIGIN_OR_PATH.match(url)
    if not start:
        fix = "write a value such as https://example.org/preview?slug={slug} or /preview?slug={slug}"
        raise file.refuse(f"{'.'.join(key_path)} must be a URL or a path", fix, *key_path)
    if not _TEMPLATE.fullmatch(url[start.end() :]):
        fix = "write placeholders such as {slug}, and percent-encode all other braces and spaces"
        raise file.refuse(f"{'.'.join(key_path)} contains a space or an invalid placeholder", fix, *key_path)
    return url


def check_preview_names(
    previews: Mapping[str, Preview], schema: Schema
) -> Iterator[tuple[str, str, KeyPath]]:
    """Yield (message, fix, key path) for each unknown name in the `preview` section."""
    for name, preview in previews.items():
        type_ = schema.subjects.get(name)
        if type_ is None:
            fix = suggestion(name, schema.subjects) or "use the singular API id of a content type"
            yield f'unknown content type "{name}" in preview', fix, ("preview", name)
            continue
        known = (*(n for n, a in type_.attributes.items() if a.selectable), *PREVIEW_NAMES)
        for placeholder in preview.placeholders:
            if placeholder not in known:
                fix = suggestion(placeholder, known) or "use one of " + ", ".join(known)
                what = f'unknown placeholder "{{{placeholder}}}" in the preview of {name}'
                yield what, fix, ("preview", name, "url")
        for path in sorted(preview.unmarked):
            if not _leads_somewhere(type_, path.split("."), schema):
                what = f'unknown attribute "{path}" in preview.{name}.unmarked'
                fix = suggestion(path, type_.attributes) or "write it as slug or seo.canonical"
                yield what, fix, ("preview", name, "unmarked")


def _leads_somewhere(type_: Type, names: list[str], schema: Schema) -> bool:
    # In a dynamic zone, it is enough if one component has the rest of the path.
    attribute = type_.attributes.get(names[0])
    if attribute is None or len(names) == 1:
        return attribute is not None
    return any(_leads_somewhere(schema.types[uid], names[1:], schema) for uid in attribute.component_uids)


# --- remote ---------------------------------------------------------------------------------------

PUSH_BEFORE, PUSH_AFTER = "before", "after"
_REMOTE = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)


def remote(file: ConfigFile, default: str, *key_path: str) -> str:
    # The remote's URL and credentials are in the git configuration of the machine.
    name = text(file, default, *key_path)
    if name and not _REMOTE.fullmatch(name):
        raise file.refuse(
            "git.remote must be the name of a git remote", "use a name that `git remote` lists", *key_path
        )
    return name


def follow(file: ConfigFile, default: timedelta | None, *key_path: str) -> timedelta | None:
    return default if text(file, "off", *key_path) == "off" else read_duration(file, timedelta(), *key_path)


def read_push_mode(file: ConfigFile, default: str, *key_path: str) -> str:
    word = text(file, default, *key_path)
    if word not in ("", "off", PUSH_BEFORE, PUSH_AFTER):
        raise file.refuse_value(
            'be "before", "after" or "off"', suggestion(word, (PUSH_BEFORE, PUSH_AFTER, "off")), *key_path
        )
    return "" if word == "off" else word
