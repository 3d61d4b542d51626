"""Front matter: the block at the top of a Markdown file that holds attributes, parted from the body.

python-frontmatter finds the handler for the way a text begins, and gives the interface of a handler
(`detect`, `split`, `load`, `export`). The handlers are ours, since a file that is changed must keep
every byte that nobody changed: the library's own strip the text, turn CRLF into LF, type values by
YAML 1.1, and serve an unclosed block as text. Its `parse()` and `dumps()` do so around any handler,
so they are not called. A further format of front matter is one more entry in HANDLERS.

Blank lines above the block belong to it, as Hugo, Zola and Astro read files, if it is closed and begins with
a key: elsewhere a line of dashes is a rule of the text. The blank line after the block and the newline at the
end of the file belong to the file, not to the text: readers get the body without them, and writers keep them.
"""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, cast

from frontmatter import detect_format
from frontmatter.default_handlers import BaseHandler

from server.formats.json import edit_json, json_positions, json_text, read_json
from server.formats.text_positions import KeyPath, Positions, RepeatedKey, newline_of
from server.formats.toml.edit import drop_repeated_toml, edit_toml
from server.formats.toml.reader import read_toml, toml_mapping
from server.formats.tree import SyntaxProblem, Tree, is_null
from server.formats.yaml.edit import drop_repeated_yaml, edit_yaml
from server.formats.yaml.reader import read_yaml
from server.formats.yaml.writer import yaml_mapping

Repeats = list[RepeatedKey] | None
_BLANK_LINES = re.compile(
    r"""(?:[ \t]*\r?\n)+
    (?=(?:---|\+\+\+)[ \t]*\r?\n  # a fence
    (?:[ \t]*(?:\#.*)?\r?\n)*  # comments
    ["']?[\w.-]+["']?[ \t]*[:=])  # a key""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Parts:
    """A Markdown text in four parts, which joined are the text; without front matter it is all `rest`."""

    handler: "Handler | None"
    opening: str
    matter: str
    closing: str
    rest: str

    @property
    def body(self) -> str:
        """The text below the front matter, as a reader gets it."""
        body = self.rest
        for lead in ("\r\n", "\n"):
            if body.startswith(lead):
                body = body.removeprefix(lead)
                break
        # Where lines end with \n alone, a \r before the last one is text.
        newline = newline_of(self.opening or self.closing or self.rest)
        return body.removesuffix(newline) if body.endswith(newline) else body.removesuffix("\n")

    def load(self, positions: Positions | None = None, repeats: Repeats = None) -> dict[str, Tree]:
        """The front matter as a mapping; `repeats` as for `read_yaml`. Raises SyntaxProblem."""
        if self.handler is None or not self.matter:
            return {}
        return self.handler.load(self.matter, positions, repeats, self.opening.count("\n"))


class Handler(BaseHandler):
    """One format of front matter: the lines around it, and how it is read, written and changed."""

    CLOSING: re.Pattern[str]

    def parts(self, text: str) -> Parts:
        """The parts of a text that `detect` has recognised.

        Raises SyntaxProblem where the block is not closed.
        """
        start = text.find("\n") + 1 or len(text)
        closing = self.CLOSING.search(text, start)
        if not closing:
            fix = f"put a line {self.END_DELIMITER} below it"
            raise SyntaxProblem("the front matter is not closed", 1, fix, 1)
        matter = text[start : closing.start()]
        return Parts(self, text[:start], matter, closing[0], text[closing.end() :])

    def split(self, text: str) -> tuple[str, str]:
        """A text → (front matter, all that follows the closing line), as python-frontmatter asks for it."""
        parts = self.parts(text)
        return parts.matter, parts.rest

    def load(
        self, fm: str, positions: Positions | None = None, repeats: Repeats = None, above: int = 1
    ) -> dict[str, Tree]:
        """Front matter → its mapping, with positions in the whole file, which has some lines above it.

        Raises SyntaxProblem.
        """
        found: Repeats = None if repeats is None else []
        try:
            data = self.read(fm, positions, found)
        except SyntaxProblem as error:
            line = error.line + above if error.line else None
            raise SyntaxProblem(error.message, line, error.fix, error.column) from error
        if positions is not None:
            for at, position in positions.items():
                positions[at] = position._replace(line=position.line + above)
        if repeats is not None and found:
            repeats.extend(repeated.below(above) for repeated in found)
        if is_null(data):
            return {}
        if not isinstance(data, dict):
            raise SyntaxProblem(
                "front matter must be a mapping", above + 1, "write it as key: value lines", 1
            )
        return data

    def read(self, fm: str, positions: Positions | None = None, repeats: Repeats = None) -> Tree:
        """Front matter → its tree; `positions` and `repeats` as for `read_yaml`. Raises SyntaxProblem."""
        raise NotImplementedError

    def edit(self, fm: str, changes: dict[str, Any], *, expand: bool) -> str:
        """Front matter with other values under some keys; `changes` and `expand` as for `edit_yaml`."""
        raise NotImplementedError

    def drop_repeated(self, fm: str, keys: Collection[KeyPath]) -> str:
        """Front matter without the values of some keys that do not count, as their keys stand again."""
        raise NotImplementedError


class YamlHandler(Handler):
    """YAML between lines of three dashes; three dots may close it, as they close a YAML document."""

    FM_BOUNDARY = re.compile(r"---[ \t]*(?:\r?\n|\Z)")
    CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
    START_DELIMITER = END_DELIMITER = "---"

    def read(self, fm: str, positions: Positions | None = None, repeats: Repeats = None) -> Tree:
        """Front matter → its tree; `positions` and `repeats` as for `read_yaml`. Raises SyntaxProblem."""
        return read_yaml(fm, positions, repeats)

    def export(self, metadata: dict[str, Any], **kwargs: object) -> str:
        """A mapping → new front matter, without the lines around it."""
        return yaml_mapping(metadata)

    def edit(self, fm: str, changes: dict[str, Any], *, expand: bool) -> str:
        """Front matter with other values under some keys; `changes` and `expand` as for `edit_yaml`."""
        return edit_yaml(fm, self.load(fm, None, []) or None, changes, expand=expand)

    def drop_repeated(self, fm: str, keys: Collection[KeyPath]) -> str:
        """Front matter without the values of some keys that do not count, as their keys stand again."""
        return drop_repeated_yaml(fm, keys)


class TomlHandler(Handler):
    """TOML between lines of three plus signs, which Hugo and Zola write."""

    FM_BOUNDARY = re.compile(r"\+\+\+[ \t]*(?:\r?\n|\Z)")
    CLOSING = re.compile(r"^\+\+\+[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
    START_DELIMITER = END_DELIMITER = "+++"

    def read(self, fm: str, positions: Positions | None = None, repeats: Repeats = None) -> Tree:
        """Front matter → its tree; `positions` and `repeats` as for `read_toml`. Raises SyntaxProblem."""
        return read_toml(fm, positions, repeats)

    def export(self, metadata: dict[str, Any], **kwargs: object) -> str:
        """A mapping → new front matter, without the lines around it."""
        return toml_mapping(metadata)

    def edit(self, fm: str, changes: dict[str, Any], *, expand: bool) -> str:
        """Front matter with other values under some keys; `changes` and `expand` as for `edit_toml`."""
        return edit_toml(fm, read_toml(fm, None, []), changes, expand=expand)

    def drop_repeated(self, fm: str, keys: Collection[KeyPath]) -> str:
        """Front matter without the values of some keys that do not count, as their keys stand again."""
        return drop_repeated_toml(fm, keys)


class JsonHandler(Handler):
    """A JSON object at the top of the file, which has no lines around it, as Hugo reads it."""

    FM_BOUNDARY = re.compile(r'\{\s*"(?:\\.|[^"\\\n])*"\s*:')
    CLOSING = re.compile(r"[ \t]*(?:\r?\n|\Z)")

    def parts(self, text: str) -> Parts:
        """The parts of a text that `detect` has recognised. Raises SyntaxProblem for what is no JSON."""
        try:
            _, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            read_json(text)  # Raises the problem with its position.
            raise
        closing = self.CLOSING.match(text, end)
        behind = closing.end() if closing else end
        return Parts(self, "", text[:end], text[end:behind], text[behind:])

    def read(self, fm: str, positions: Positions | None = None, repeats: Repeats = None) -> Tree:
        """Front matter → its tree; `positions` and `repeats` as for `read_yaml`. Raises SyntaxProblem."""
        if positions is not None:
            positions.update(json_positions(fm))
        return read_json(fm)

    def export(self, metadata: dict[str, Any], **kwargs: object) -> str:
        """A mapping → new front matter."""
        return json_text(metadata, indent="  ")

    def edit(self, fm: str, changes: dict[str, Any], *, expand: bool) -> str:
        """Front matter with other values under some keys; `changes` as for `edit_yaml`."""
        return edit_json(fm, read_json(fm), changes)


class NamedHandler(Handler):
    """Front matter that names its language behind the dashes, which is recognised in order to be refused."""

    FM_BOUNDARY = re.compile(r"---[ \t]*(?:json|toml|yaml|js|javascript|coffee|cson)[ \t]*\r?\n")
    START_DELIMITER = END_DELIMITER = "---"

    def parts(self, text: str) -> Parts:
        """Raises SyntaxProblem."""
        language = text.partition("\n")[0].strip("- \t\r")
        fix = "write it as YAML between --- lines, or as TOML between +++ lines"
        raise SyntaxProblem(f"front matter in {language} behind --- is not read", 1, fix, 1)


YAML = YamlHandler()
TOML = TomlHandler()
JSON = JsonHandler()
HANDLERS: tuple[Handler, ...] = (YAML, TOML, JSON, NamedHandler())


def split(text: str) -> Parts:
    """The parts of a Markdown text. Raises SyntaxProblem for front matter that is not closed."""
    if (blank := _BLANK_LINES.match(text)) is not None:
        try:
            parts = split(text[blank.end() :])
        except SyntaxProblem:  # not closed: a rule at the top of the text
            return Parts(None, "", "", "", text)
        return replace(parts, opening=blank[0] + parts.opening)
    handler = cast("Handler | None", detect_format(text, HANDLERS))
    return handler.parts(text) if handler else Parts(None, "", "", "", text)
