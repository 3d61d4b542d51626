"""Parser for site.yaml and schema files, with positions."""

import errno
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.errors import SetupError
from server.formats.conflicts import check_conflict
from server.formats.json import json_positions, read_json
from server.formats.regular_files import read_regular_file
from server.formats.text_positions import KeyPath, Position, Positions, nearest_position
from server.formats.tree import SyntaxProblem, Tree, describe_value, is_null
from server.formats.yaml.reader import read_yaml


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A parsed configuration file, or a mapping in it that begins at the position `top`.

    Error messages do not contain the values at `secret_paths`.
    """

    path: str
    data: Mapping[str, Any]
    positions: Positions
    top: Position | None = None
    secret_paths: Collection[KeyPath] = ()

    def get(self, *path: str | int) -> Tree:
        """Return the value at a path of keys and list indexes, or None if it is missing."""
        value: Tree = self.data
        for key in path:
            if isinstance(value, dict):
                value = value.get(key)
            else:
                value = value[key] if isinstance(value, list) and isinstance(key, int) else None
        return value

    def entries(self, *path: str) -> list["ConfigFile"]:
        """Return the mappings in the list at `path`, or [] if the list is missing.

        Raises SetupError if the value is not a list of mappings.
        """
        value = self.get(*path)
        if is_null(value):
            return []
        if not isinstance(value, list):
            raise self.refuse_value(
                "be a list", "write a list, in which each entry begins with a dash", *path
            )
        for i, item in enumerate(value):
            if not isinstance(item, dict):
                raise self.refuse_value(
                    "be a list of mappings", 'write each entry as lines such as "key: value"', *path, i
                )
        return [self._inside((*path, i), item) for i, item in enumerate(value)]

    def _inside(self, path: KeyPath, data: Mapping[str, Any]) -> "ConfigFile":
        depth = len(path)
        inner = {key[depth:]: position for key, position in self.positions.items() if key[:depth] == path}
        return ConfigFile(self.path, data, inner, self.position(*path))

    def position(self, *path: str | int) -> Position | None:
        # For a missing value, this is the position of its nearest parent.
        return nearest_position(self.positions, path) or self.top

    def refuse(self, message: str, fix: str, *path: str | int) -> SetupError:
        line, column, value = self.position(*path) or Position(1, 1)
        return SetupError(self.path, line, message, fix, value or column)

    def refuse_value(self, requirement: str, fix: str, *path: str | int) -> SetupError:
        """Return an error for the value at `path`. Its message begins with "PATH must REQUIREMENT"."""
        name = ".".join(key for key in path if isinstance(key, str))
        is_secret = any(path[: len(secret)] == secret for secret in self.secret_paths)
        found = "" if is_secret else f" (found {describe_value(self.get(*path))})"
        return self.refuse(f"{name} must {requirement}{found}", fix, *path)

    def refuse_key(self, message: str, fix: str, *path: str | int) -> SetupError:
        line, column, _ = self.position(*path) or Position(1, 1)
        return SetupError(self.path, line, message, fix, column)


def read_config_file(root: Path, path: str, *, optional: bool = False) -> ConfigFile:
    """Read and parse a configuration file, which may be missing if `optional` is set. Raises SetupError."""
    try:
        text = read_regular_file(root / path).decode("utf-8-sig")
    except OSError as error:
        if optional and isinstance(error, FileNotFoundError):
            return ConfigFile(path, {}, {})
        fix = "replace it with a file" if error.errno == errno.EINVAL else "check its permissions"
        raise SetupError(path, None, f"can't be read: {error.strerror}", fix) from error
    except UnicodeDecodeError as error:
        raise SetupError(path, None, "is not UTF-8", "save the file as UTF-8") from error
    return parse_config_file(path, text, optional=optional)


def parse_config_file(path: str, text: str, *, optional: bool = False) -> ConfigFile:
    """Parse the text of a configuration file, which may be empty if `optional` is set. Raises SetupError."""
    positions: Positions = {}
    try:
        check_conflict(text)
        # An empty file is probably just being saved by another program, or was truncated by a crash.
        if not text.strip() and not optional:
            raise SyntaxProblem("the file is empty", None, "add the missing content, or delete the file")
        if path.endswith(".json"):
            data, positions = read_json(text), _json_positions(text)
        else:
            data = read_yaml(text, positions)
    except SyntaxProblem as error:
        raise SetupError(path, error.line, error.message, error.fix, error.column) from error
    file = ConfigFile(path, {} if is_null(data) else data, positions)
    if not isinstance(file.data, dict):
        raise file.refuse("must be a mapping", "write each setting as a key with a value")
    return file


def _json_positions(text: str) -> Positions:
    try:
        return json_positions(text)
    except SyntaxProblem:
        return {}
