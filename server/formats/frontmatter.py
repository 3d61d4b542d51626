"""Front matter: the YAML block at the top of a Markdown file, parted from the body.

A handler for python-frontmatter with a `split` of our own: the library's parse() strips the body,
takes an unclosed block for text and a rule `---` in the body for a fence (notes in docs/files.md).
The blank line after the block and the newline at the end of the file belong to the file, not to the
text: they are cut from the body that a reader sees and kept by whoever writes it back.
"""

import re
from dataclasses import dataclass
from typing import Any

from frontmatter.default_handlers import BaseHandler

from server.formats.positions import Positions
from server.formats.tree import SyntaxProblem, Tree, is_null, read_yaml

_FENCE = re.compile(r"---[ \t]*(\r?\n|\Z)")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Parts:
    """A Markdown file in two: `matter` (without fences) and the `body` as a reader sees it."""

    matter: str
    body: str


class Handler(BaseHandler):
    """What python-frontmatter calls a handler, for the front matter that Quire reads."""

    FM_BOUNDARY = _FENCE
    START_DELIMITER = END_DELIMITER = "---"

    def detect(self, text: str) -> bool:
        """Whether a text begins with front matter."""
        return _FENCE.match(text) is not None

    def split(self, text: str) -> tuple[str, str]:
        """A text → (front matter, body). Raises SyntaxProblem where the block is not closed."""
        parts = split(text)
        return parts.matter, parts.body

    def load(self, fm: str, **kwargs: Any) -> Any:
        """Front matter → tree."""
        return load(fm)


def split(text: str) -> Parts:
    """A Markdown text in two; one without front matter is all body. Raises SyntaxProblem."""
    found = fences(text)
    matter, body = (found[1], found[3]) if found else ("", text)
    return Parts(matter, _trim(body, newline_of(text)))


def fences(text: str) -> tuple[str, str, str, str] | None:
    """A text as (first fence, front matter, second fence, all that follows); None without front matter."""
    opening = _FENCE.match(text)
    if not opening:
        if text.startswith("+++"):
            raise SyntaxProblem(
                "front matter in TOML is not read", 1, "write it as YAML between --- lines", 1
            )
        return None
    closing = _CLOSING.search(text, opening.end())
    if not closing:
        raise SyntaxProblem("the front matter is not closed", 1, "put a line --- below it", 1)
    a, b, c = opening.end(), closing.start(), closing.end()
    return text[:a], text[a:b], text[b:c], text[c:]


def newline_of(text: str) -> str:
    """How a text ends its lines, told by the first one."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def _trim(body: str, newline: str) -> str:
    for lead in ("\r\n", "\n"):
        if body.startswith(lead):
            body = body.removeprefix(lead)
            break
    # Where lines end with \n alone, a \r before the last one is text.
    return body.removesuffix(newline) if body.endswith(newline) else body.removesuffix("\n")


def load(matter: str, positions: Positions | None = None) -> dict[str, Tree]:
    """Front matter → its mapping; positions count from the file's first. Raises SyntaxProblem."""
    try:
        data = read_yaml(matter, positions)
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
