"""Front matter: the block at the top of a Markdown file that holds attributes, parted from the body.

python-frontmatter finds the handler for the way a text begins, and gives the interface of a handler
(`detect`, `split`, `load`, `export`). The handlers are ours, since a file that is changed must keep
every byte that nobody changed: the library's own strip the text, turn CRLF into LF, type values by
YAML 1.1, and serve an unclosed block as text. Its `parse()` and `dumps()` do so around any handler,
so they are not called. A further format of front matter is one more entry in HANDLERS.

The blank line after the block and the newline at the end of the file belong to the file, not to the
text: readers get the body without them, and writers keep them.
"""

import re
from dataclasses import dataclass
from typing import Any, cast

from frontmatter import detect_format
from frontmatter.default_handlers import BaseHandler

from server.formats.edit_yaml import edit_yaml
from server.formats.lines import newline_of
from server.formats.positions import Positions
from server.formats.scalars import is_null
from server.formats.tree import SyntaxProblem, Tree
from server.formats.yaml_reader import read_yaml
from server.formats.yaml_writer import yaml_mapping


class Handler(BaseHandler):
    """One format of front matter: the lines around it, and how it is read, written and changed."""

    CLOSING: re.Pattern[str]

    def split(self, text: str) -> tuple[str, str]:
        """A text → (front matter, all that follows the closing line), to the byte.

        Raises SyntaxProblem where the block is not closed.
        """
        start = text.find("\n") + 1 or len(text)
        closing = self.CLOSING.search(text, start)
        if not closing:
            fix = f"put a line {self.END_DELIMITER} below it"
            raise SyntaxProblem("the front matter is not closed", 1, fix, 1)
        return text[start : closing.start()], text[closing.end() :]

    def load(self, fm: str, positions: Positions | None = None) -> dict[str, Tree]:
        """Front matter → its mapping, with positions in the whole file. Raises SyntaxProblem."""
        raise NotImplementedError

    def edit(self, fm: str, changes: dict[str, Any], *, expand: bool) -> str:
        """Front matter with other values under some keys; `changes` and `expand` as for `edit_yaml`."""
        raise NotImplementedError


class YamlHandler(Handler):
    """YAML between lines of three dashes; three dots may close it, as they close a YAML document."""

    FM_BOUNDARY = re.compile(r"---[ \t]*(?:\r?\n|\Z)")
    CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
    START_DELIMITER = END_DELIMITER = "---"

    def load(self, fm: str, positions: Positions | None = None) -> dict[str, Tree]:
        """Front matter → its mapping, with positions in the whole file. Raises SyntaxProblem."""
        try:
            data = read_yaml(fm, positions)
        except SyntaxProblem as error:
            line = error.line + 1 if error.line else None
            raise SyntaxProblem(error.message, line, error.fix, error.column) from error
        if positions is not None:
            for at, position in positions.items():
                positions[at] = position._replace(line=position.line + 1)
        if is_null(data):
            return {}
        if not isinstance(data, dict):
            raise SyntaxProblem("front matter must be a mapping", 2, "write it as key: value lines", 1)
        return data

    def export(self, metadata: dict[str, Any], **kwargs: object) -> str:
        """A mapping → new front matter, without the lines around it."""
        return yaml_mapping(metadata)

    def edit(self, fm: str, changes: dict[str, Any], *, expand: bool) -> str:
        """Front matter with other values under some keys; `changes` and `expand` as for `edit_yaml`."""
        return edit_yaml(fm, self.load(fm) or None, changes, expand=expand)


class TomlHandler(Handler):
    """TOML between lines of three plus signs, which is recognised in order to be refused."""

    FM_BOUNDARY = re.compile(r"\+\+\+[ \t]*(?:\r?\n|\Z)")
    START_DELIMITER = END_DELIMITER = "+++"

    def split(self, text: str) -> tuple[str, str]:
        """Raises SyntaxProblem."""
        raise SyntaxProblem("front matter in TOML is not read", 1, "write it as YAML between --- lines", 1)


YAML = YamlHandler()  # what new front matter is written in
HANDLERS: tuple[Handler, ...] = (YAML, TomlHandler())


@dataclass(frozen=True, slots=True)
class Parts:
    """A Markdown text in four parts, which joined are the text; without front matter it is all `rest`."""

    handler: Handler | None
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
        newline = newline_of(self.opening or self.rest)
        return body.removesuffix(newline) if body.endswith(newline) else body.removesuffix("\n")

    def load(self, positions: Positions | None = None) -> dict[str, Tree]:
        """The front matter as a mapping. Raises SyntaxProblem."""
        return self.handler.load(self.matter, positions) if self.handler and self.matter else {}


def split(text: str) -> Parts:
    """The parts of a Markdown text. Raises SyntaxProblem for front matter that is not closed."""
    handler = cast("Handler | None", detect_format(text, HANDLERS))
    if handler is None:
        return Parts(None, "", "", "", text)
    matter, rest = handler.split(text)
    start = text.find("\n") + 1
    return Parts(handler, text[:start], matter, text[start + len(matter) : len(text) - len(rest)], rest)
