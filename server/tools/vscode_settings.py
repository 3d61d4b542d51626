"""VS Code settings that associate JSON Schemas with files."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from server.documents.path_rules import YAML
from server.errors import SetupError
from server.formats.json import json_nodes, json_text, read_json
from server.formats.text_positions import newline_of, position_at
from server.formats.tree import Node, SyntaxProblem
from server.paths import CONTENT
from server.schema.model import Schema, Type
from server.tools.json_schemas import Status, schema_name, statuses

SETTINGS_PATH = ".vscode/settings.json"
JSON_KEY, YAML_KEY = "json.schemas", "yaml.schemas"
_EXTENSIONS: Mapping[str, tuple[str, ...]] = {"json": (".json",), "yaml": YAML}
# patterns for strings, comments, and commas before a closing bracket
_COMMENT = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_TOKEN = re.compile(rf'"(?:[^"\\\n]|\\.)*"?|(?P<comment>{_COMMENT})', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:[^"\\\n]|\\.)*"?|(?P<comma>,)(?=\s*[\]}])', re.DOTALL)

# --- associations ---------------------------------------------------------------------------------


def schema_associations(schema: Schema, folder: str) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Return the values of the settings `json.schemas` and `yaml.schemas`.

    `folder` is the folder that contains the JSON Schemas.
    """
    found = [(type_, status) for type_ in schema.content_types for status in statuses(type_)]
    in_json = [
        {"fileMatch": list(_globs(type_, status, "json", "/")), "url": _url(folder, "json", type_, status)}
        for type_, status in found
    ]
    in_yaml = {_url(folder, "yaml", t, status): list(_globs(t, status, "yaml", "")) for t, status in found}
    return [row for row in in_json if row["fileMatch"]], {url: g for url, g in in_yaml.items() if g}


def _url(folder: str, format_: str, type_: Type, status: Status) -> str:
    return f"{_prefix(folder)}{format_}/{schema_name(type_, status)}"


def _prefix(folder: str) -> str:
    return "./" if folder == "." else f"./{folder}/"


def _globs(type_: Type, status: Status, format_: str, root: str) -> Iterator[str]:
    """Yield globs for the files of a content type. A glob that begins with `!` excludes files."""
    for stem, extension in _path_patterns(type_, _EXTENSIONS[format_]):
        if status == "draft":
            yield f"{root}{stem}.draft{extension}"
            continue
        yield f"{root}{stem}{extension}"
        if type_.kind == "singleType" and "*" not in stem:
            yield f"{root}{stem}.*{extension}"  # files for other locales
        if type_.draft_publish:
            yield f"!{root}{stem}.draft{extension}"
            if type_.kind == "singleType" and "*" not in stem:
                yield f"!{root}{stem}.*.draft{extension}"


def _path_patterns(type_: Type, extensions: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for pattern in type_.files:
        path = PurePosixPath(pattern)
        if path.suffix in extensions:
            stem = pattern.removesuffix(path.suffix)
            for field, glob in (("{locale}", "*"), ("{initial}", "*"), ("{name}", "**/*")):
                stem = stem.replace(field, glob)
            yield re.sub(r"[^/]+\*\*/\*", "**/*", stem), path.suffix
    if not type_.files:
        stem = f"{CONTENT}/{type_.singular if type_.kind == 'singleType' else f'{type_.plural}/**/*'}"
        yield from ((stem, extension) for extension in extensions)


# --- merging --------------------------------------------------------------------------------------


def merge_settings(text: str | None, schema: Schema, folder: str) -> str:
    """Return the text of a settings file with updated schema associations. All other text is kept.

    Raises SetupError if the text is invalid or if a comment would be lost.
    """
    text = "{}\n" if text is None or not text.strip() else text
    plain = _without_comments(text)
    try:
        tree = read_json(plain)
    except SyntaxProblem as error:
        raise SetupError(SETTINGS_PATH, error.line, error.message, error.fix, error.column) from error
    if not isinstance(tree, dict):
        raise SetupError(SETTINGS_PATH, 1, "must contain an object", "write the settings in { … }")
    in_json, in_yaml = schema_associations(schema, folder)
    wanted = {
        JSON_KEY: _merged_list(tree.get(JSON_KEY), in_json, folder),
        YAML_KEY: _merged_mapping(tree.get(YAML_KEY), in_yaml, folder),
    }
    for key, value in wanted.items():
        if value is None:
            raise _refusal(text, plain, key, "does not have the type that VS Code expects", "correct it")
        if tree.get(key) != value and (value or key in tree):
            text = _set_value(text, key, value)
    return text


def _merged_list(existing: Any, generated: list[dict[str, Any]], folder: str) -> list[Any] | None:
    if existing is not None and not isinstance(existing, list):
        return None
    return [*(row for row in existing or () if not _is_ours(row, folder, "json")), *generated]


def _is_ours(row: Any, folder: str, format_: str) -> bool:
    url = row.get("url") if isinstance(row, dict) else row
    return isinstance(url, str) and url.startswith(f"{_prefix(folder)}{format_}/")


def _merged_mapping(existing: Any, generated: dict[str, list[str]], folder: str) -> dict[str, Any] | None:
    if existing is not None and not isinstance(existing, dict):
        return None
    return {
        **{url: v for url, v in (existing or {}).items() if not _is_ours(url, folder, "yaml")},
        **generated,
    }


def _without_comments(text: str) -> str:
    # Replace commas with spaces, so that all positions stay the same.
    return _TRAILING_COMMA.sub(lambda found: " " if found["comma"] else found[0], _blanked(text))


def _blanked(text: str) -> str:
    return _TOKEN.sub(lambda found: re.sub(r"[^\r\n]", " ", found[0]) if found["comment"] else found[0], text)


def _set_value(text: str, key: str, value: Any) -> str:
    """Return the text with a new value for a top-level key. Raises SetupError if a comment would be lost."""
    plain = _without_comments(text)
    root = json_nodes(plain)
    indent = _indent(plain, root)
    newline = newline_of(text)
    written = json_text(value, indent=indent, margin=indent).replace("\n", newline)
    at = root.find(key)
    if at >= 0:
        item = root.items[at]
        if any(found["comment"] for found in _TOKEN.finditer(text[item.start : item.end])):
            fix = "move the comments above the key, then run the command again"
            raise _refusal(text, plain, key, "contains comments, which would be lost", fix)
        return text[: item.start] + written + text[item.end :]
    # The key is added below any comments.
    end, line = len(text[: root.end - 1].rstrip()), f"{newline}{indent}{json.dumps(key)}: {written}"
    after = root.items[-1].end if root.items else end
    has_comma = "," in _blanked(text)[after:end]
    comma = "," if root.items and not has_comma else ""
    close = text[end:] if "\n" in text[end : root.end] else newline + text[root.end - 1 :]
    return text[:after] + comma + text[after:end] + line + ("," if has_comma else "") + close


def _indent(plain: str, root: Node) -> str:
    if not root.keys:
        return "  "
    start = root.keys[0].start
    before = plain[plain.rfind("\n", 0, start) + 1 : start]
    return before if before and not before.strip() else "  "


def _refusal(text: str, plain: str, key: str, what: str, fix: str) -> SetupError:
    root = json_nodes(plain)
    line, column, _ = position_at(text, root.keys[root.find(key)].start)
    return SetupError(SETTINGS_PATH, line, f"{key} {what}", fix, column)
