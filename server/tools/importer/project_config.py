"""Reader of the settings in a Strapi project's `config/api.ts` or `config/api.js`.

This file is a program. It is never executed, so only settings with literal values can be read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from server.config.model import FILE
from server.errors import SetupError
from server.storage.document_text import new_text

CONFIG_ENDINGS = (".ts", ".js", ".mjs", ".cjs", ".json")
MAX_BYTES = 1_000_000
_COMMENTS = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.DOTALL)
# For each key under `rest` in Strapi, the key in site.yaml and the form of the value.
_SETTINGS = {
    "strictParams": ("strict_params", re.compile(r"true|false")),
    "defaultLimit": ("page_size.default", re.compile(r"[1-9][0-9]{0,5}")),
    "maxLimit": ("page_size.max", re.compile(r"[1-9][0-9]{0,5}")),
}
_REST = re.compile(r"[\"']?\brest\b[\"']?\s*:\s*\{")
_ENTRY = re.compile(r"[\"']?\b(\w+)\b[\"']?\s*:\s*([^,{}\n]+)")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The `api` settings for site.yaml, and the names of the settings that could not be read."""

    api: Mapping[str, str]
    unreadable: tuple[str, ...] = ()

    def to_nested_mapping(self) -> dict[str, object]:
        tree: dict[str, object] = {}
        for key, text in self.api.items():
            value: object = text == "true" if text in ("true", "false") else int(text)
            section, _, name = key.rpartition(".")
            if section:
                inner = tree.setdefault(section, {})
                assert isinstance(inner, dict)
                inner[name] = value
            else:
                tree[name] = value
        return tree


NO_SETTINGS = ProjectSettings({})


def read_project(folder: Path) -> ProjectSettings:
    """Return a Strapi project's API settings. Raises SetupError if their file is missing or can't be read."""
    files = [folder / "config" / f"api{ending}" for ending in CONFIG_ENDINGS]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        fix = "pass the Strapi project's folder, which contains config/api.ts or config/api.js"
        raise SetupError(str(folder), None, "does not contain config/api.ts or config/api.js", fix)
    try:
        text = file.read_bytes()[:MAX_BYTES].decode()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(str(file), None, f"can't be read: {error}") from error
    return _read(_COMMENTS.sub("", text))


def _read(text: str) -> ProjectSettings:
    found: dict[str, str] = {}
    unreadable: list[str] = []
    for key, value in _ENTRY.findall(_section(text, _REST)):
        name, form = _SETTINGS.get(key, ("", None))
        if form and form.fullmatch(value.strip()):
            found[name] = value.strip()
        elif form:
            unreadable.append(f"rest.{key}: {value.strip()}")
    return ProjectSettings(found, tuple(unreadable))


def _section(text: str, opening: re.Pattern[str]) -> str:
    begin = opening.search(text)
    if begin is None:
        return ""
    depth = 1
    for at in range(begin.end(), len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[begin.end() : at]
    return ""


def lines_of(settings: ProjectSettings) -> list[str]:
    return new_text(FILE, None, {"api": settings.to_nested_mapping()}).splitlines() if settings.api else []
