"""Front matter of Markdown files."""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, cast

from frontmatter import detect_format
from frontmatter.default_handlers import BaseHandler

from server.formats.json import edit_json, json_positions, json_text, read_json
from server.formats.text_positions import DuplicateKey, KeyPath, Positions, newline_of
from server.formats.toml.edit import edit_toml, remove_duplicate_toml_keys
from server.formats.toml.reader import read_toml, toml_mapping
from server.formats.tree import SyntaxProblem, Tree, is_null
from server.formats.yaml.edit import edit_yaml, remove_duplicate_yaml_keys
from server.formats.yaml.reader import read_yaml
from server.formats.yaml.writer import yaml_mapping

Duplicates = list[DuplicateKey] | None
# As in Hugo, Zola and Astro, there can be blank lines above the front matter.
_BLANK_LINES = re.compile(
    r"""(?:[ \t]*\r?\n)+
    (?=(?:---|\+\+\+)[ \t]*\r?\n  # a fence
    (?:[ \t]*(?:\#.*)?\r?\n)*  # comments
    ["']?[\w.-]+["']?[ \t]*[:=])  # a key""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class MarkdownParts:
    """Parts of a Markdown file. If the file has no front matter, `body_text` is its whole text."""

    handler: "Handler | None"
    opening: str
    front_matter: str
    closing: str
    body_text: str

    @property
    def body(self) -> str:
        body = self.body_text
        for lead in ("\r\n", "\n"):
            if body.startswith(lead):
                body = body.removeprefix(lead)
                break
        # In a file whose lines end in \n, a \r before the final \n belongs to the text.
        newline = newline_of(self.opening or self.closing or self.body_text)
        return body.removesuffix(newline) if body.endswith(newline) else body.removesuffix("\n")

    def load(self, positions: Positions | None = None, duplicates: Duplicates = None) -> dict[str, Tree]:
        if self.handler is None or not self.front_matter:
            return {}
        return self.handler.load(self.front_matter, positions, duplicates, self.opening.count("\n"))


# The handlers of python-frontmatter strip the text and convert CRLF, but edits must keep all other bytes.
class Handler(BaseHandler):
    """Handler for one format of front matter."""

    CLOSING: re.Pattern[str]

    def parts(self, text: str) -> MarkdownParts:
        """Split a Markdown file with this format of front matter.

        Raises SyntaxProblem if the front matter is not closed.
        """
        start = text.find("\n") + 1 or len(text)
        closing = self.CLOSING.search(text, start)
        if not closing:
            fix = f"add the line {self.END_DELIMITER} after the front matter"
            raise SyntaxProblem("the front matter is not closed", 1, fix, 1)
        front_matter = text[start : closing.start()]
        return MarkdownParts(self, text[:start], front_matter, closing[0], text[closing.end() :])

    def split(self, text: str) -> tuple[str, str]:
        # python-frontmatter requires this method.
        parts = self.parts(text)
        return parts.front_matter, parts.body_text

    def load(
        self,
        front_matter: str,
        positions: Positions | None = None,
        duplicates: Duplicates = None,
        lines_above: int = 1,
    ) -> dict[str, Tree]:
        """Parse front matter. Raises SyntaxProblem if it is not a valid mapping.

        `lines_above` is the number of lines above the front matter, and is added to line numbers.
        """
        found_duplicates: Duplicates = None if duplicates is None else []
        try:
            data = self.read(front_matter, positions, found_duplicates)
        except SyntaxProblem as error:
            line = error.line + lines_above if error.line else None
            raise SyntaxProblem(error.message, line, error.fix, error.column) from error
        if positions is not None:
            for at, position in positions.items():
                positions[at] = position._replace(line=position.line + lines_above)
        if duplicates is not None and found_duplicates:
            duplicates.extend(duplicate.below(lines_above) for duplicate in found_duplicates)
        if is_null(data):
            return {}
        if not isinstance(data, dict):
            raise SyntaxProblem(
                "front matter must be a mapping", lines_above + 1, 'write it as lines such as "key: value"', 1
            )
        return data

    def read(
        self, front_matter: str, positions: Positions | None = None, duplicates: Duplicates = None
    ) -> Tree:
        raise NotImplementedError

    def edit(self, front_matter: str, changes: dict[str, Any], *, expand: bool) -> str:
        raise NotImplementedError

    def remove_duplicates(self, front_matter: str, keys: Collection[KeyPath]) -> str:
        raise NotImplementedError


class YamlHandler(Handler):
    """Handler for front matter in YAML, delimited by `---` lines."""

    FM_BOUNDARY = re.compile(r"---[ \t]*(?:\r?\n|\Z)")
    CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
    START_DELIMITER = END_DELIMITER = "---"

    def read(
        self, front_matter: str, positions: Positions | None = None, duplicates: Duplicates = None
    ) -> Tree:
        return read_yaml(front_matter, positions, duplicates)

    def export(self, metadata: dict[str, Any], **kwargs: object) -> str:
        return yaml_mapping(metadata)

    def edit(self, front_matter: str, changes: dict[str, Any], *, expand: bool) -> str:
        return edit_yaml(front_matter, self.load(front_matter, None, []) or None, changes, expand=expand)

    def remove_duplicates(self, front_matter: str, keys: Collection[KeyPath]) -> str:
        return remove_duplicate_yaml_keys(front_matter, keys)


class TomlHandler(Handler):
    """Handler for front matter in TOML, delimited by `+++` lines, as in Hugo and Zola."""

    FM_BOUNDARY = re.compile(r"\+\+\+[ \t]*(?:\r?\n|\Z)")
    CLOSING = re.compile(r"^\+\+\+[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
    START_DELIMITER = END_DELIMITER = "+++"

    def read(
        self, front_matter: str, positions: Positions | None = None, duplicates: Duplicates = None
    ) -> Tree:
        return read_toml(front_matter, positions, duplicates)

    def export(self, metadata: dict[str, Any], **kwargs: object) -> str:
        return toml_mapping(metadata)

    def edit(self, front_matter: str, changes: dict[str, Any], *, expand: bool) -> str:
        return edit_toml(front_matter, read_toml(front_matter, None, []), changes, expand=expand)

    def remove_duplicates(self, front_matter: str, keys: Collection[KeyPath]) -> str:
        return remove_duplicate_toml_keys(front_matter, keys)


class JsonHandler(Handler):
    """Handler for front matter that is a JSON object, as in Hugo."""

    FM_BOUNDARY = re.compile(r'\{\s*"(?:\\.|[^"\\\n])*"\s*:')
    CLOSING = re.compile(r"[ \t]*(?:\r?\n|\Z)")

    def parts(self, text: str) -> MarkdownParts:
        try:
            _, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            read_json(text)  # raises SyntaxProblem with the position
            raise
        closing = self.CLOSING.match(text, end)
        behind = closing.end() if closing else end
        return MarkdownParts(self, "", text[:end], text[end:behind], text[behind:])

    def read(
        self, front_matter: str, positions: Positions | None = None, duplicates: Duplicates = None
    ) -> Tree:
        if positions is not None:
            positions.update(json_positions(front_matter))
        return read_json(front_matter)

    def export(self, metadata: dict[str, Any], **kwargs: object) -> str:
        return json_text(metadata, indent="  ")

    def edit(self, front_matter: str, changes: dict[str, Any], *, expand: bool) -> str:
        return edit_json(front_matter, read_json(front_matter), changes)


class UnsupportedHandler(Handler):
    """Handler that rejects unsupported front matter, such as `---json`."""

    FM_BOUNDARY = re.compile(r"---[ \t]*(?:json|toml|yaml|js|javascript|coffee|cson)[ \t]*\r?\n")
    START_DELIMITER = END_DELIMITER = "---"

    def parts(self, text: str) -> MarkdownParts:
        language = text.partition("\n")[0].strip("- \t\r")
        fix = "write YAML between --- lines, or TOML between +++ lines"
        raise SyntaxProblem(f'front matter that begins with "---{language}" is not supported', 1, fix, 1)


YAML = YamlHandler()
TOML = TomlHandler()
JSON = JsonHandler()
HANDLERS: tuple[Handler, ...] = (YAML, TOML, JSON, UnsupportedHandler())


def split_front_matter(text: str) -> MarkdownParts:
    """Split a Markdown file into front matter and body. Raises SyntaxProblem if the front matter is not
    closed.
    """
    if (blank := _BLANK_LINES.match(text)) is not None:
        try:
            parts = split_front_matter(text[blank.end() :])
        except SyntaxProblem:  # The dashes are a horizontal rule, not the start of front matter.
            return MarkdownParts(None, "", "", "", text)
        return replace(parts, opening=blank[0] + parts.opening)
    handler = cast("Handler | None", detect_format(text, HANDLERS))
    return handler.parts(text) if handler else MarkdownParts(None, "", "", "", text)
