"""Parser for site.yaml and schema files. It stores the position of each value for error messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.errors import SetupError
from server.formats.conflicts import check_conflict
from server.formats.json import json_positions, read_json
from server.formats.text_positions import KeyPath, Position, Positions, nearest
from server.formats.tree import SyntaxProblem, Tree, describe_value, is_null
from server.formats.yaml.reader import read_yaml


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The content of site.yaml or a schema file: its path, its values as a mapping, and their positions.

    An object can also represent a mapping inside a file. In this case, `top` is the position of that mapping.
    """

    path: str
    data: Mapping[str, Any]
    positions: Positions
    top: Position | None = None

    def get(self, *at: str | int) -> Tree:
        """Return the value at a path of keys and list indexes, or None if the value is missing."""
        value: Tree = self.data
        for key in at:
            if isinstance(value, dict):
                value = value.get(key)
            else:
                value = value[key] if isinstance(value, list) and isinstance(key, int) else None
        return value

    def entries(self, *at: str) -> list["ConfigFile"]:
        """Return the mappings in the list at a path of keys, each as a ConfigFile.

        If the list is missing, return []. Raises SetupError if the value is not a list, or if an item is not
        a mapping.
        """
        value = self.get(*at)
        if is_null(value):
            return []
        if not isinstance(value, list):
            raise self.refuse_value("be a list", "write a list, in which each entry begins with a dash", *at)
        for i, item in enumerate(value):
            if not isinstance(item, dict):
                raise self.refuse_value(
                    "be a list of mappings", 'write each entry as lines such as "key: value"', *at, i
                )
        return [self._inside((*at, i), item) for i, item in enumerate(value)]

    def _inside(self, at: KeyPath, data: Mapping[str, Any]) -> "ConfigFile":
        """Return a ConfigFile for the mapping `data`, which is at a path of keys in this file."""
        depth = len(at)
        inner = {key[depth:]: found for key, found in self.positions.items() if key[:depth] == at}
        return ConfigFile(self.path, data, inner, self.position(*at))

    def position(self, *at: str | int) -> Position | None:
        """Return the position of the value at a path of keys. If the value is missing, return the position of
        the nearest parent that exists.
        """
        return nearest(self.positions, at) or self.top

    def refuse(self, message: str, fix: str, *at: str | int) -> SetupError:
        """Return an error with the position of the value at a path of keys. If the value is missing, the
        error has the position of the nearest parent that exists.

        `message` describes what is wrong, and `fix` describes what to do.
        """
        line, column, value = self.position(*at) or Position(1, 1)
        return SetupError(self.path, line, message, fix, value or column)

    def refuse_value(self, must: str, fix: str, *at: str | int) -> SetupError:
        """Return an error for an invalid value at a path of keys.

        The message consists of "must" and the argument `must`, such as "be true or false".
        """
        name = ".".join(key for key in at if isinstance(key, str))
        return self.refuse(f"{name} must {must} (found {describe_value(self.get(*at))})", fix, *at)

    def refuse_key(self, message: str, fix: str, *at: str | int) -> SetupError:
        """Return an error with the position of the key at a path of keys. `message` and `fix` have the same
        meaning as in `refuse`.
        """
        line, column, _ = self.position(*at) or Position(1, 1)
        return SetupError(self.path, line, message, fix, column)


def read_config_file(root: Path, path: str, *, optional: bool = False) -> ConfigFile:
    """Read site.yaml or a schema file of the site at `root`.

    A file whose name ends with .json is parsed as JSON, and all other files are parsed as YAML. If an
    optional file is empty or missing, return an empty mapping. Raises SetupError if the file can't be read or
    is not a mapping, or if a required file is missing.
    """
    positions: Positions = {}
    try:
        text = (root / path).read_bytes().decode("utf-8-sig")
        check_conflict(text)
        # Another program is saving the file, or a crash has truncated it.
        if not text.strip() and not optional:
            raise SyntaxProblem("the file is empty", None, "add the missing content, or delete the file")
        if path.endswith(".json"):
            data, positions = read_json(text), _json_positions(text)
        else:
            data = read_yaml(text, positions)
    except OSError as error:
        if optional and isinstance(error, FileNotFoundError):
            return ConfigFile(path, {}, {})
        raise SetupError(path, None, f"can't be read: {error.strerror}", "check its permissions") from error
    except UnicodeDecodeError as error:
        raise SetupError(path, None, "is not UTF-8", "save the file as UTF-8") from error
    except SyntaxProblem as error:
        raise SetupError(path, error.line, error.message, error.fix, error.column) from error
    file = ConfigFile(path, {} if is_null(data) else data, positions)
    if not isinstance(file.data, dict):
        raise file.refuse("must be a mapping", "write each setting as a key with a value")
    return file


def _json_positions(text: str) -> Positions:
    """Return the positions of the keys in a JSON text. If the text is not valid JSON, return an empty
    mapping.
    """
    try:
        return json_positions(text)
    except SyntaxProblem:
        return {}
