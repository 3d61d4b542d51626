"""A scanner for the studio's JavaScript modules: it finds string literals, template literals, and the markup
in htm templates.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'')
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_BEFORE_REGEX = re.compile(r"(?:^|[(,=:\[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case))\s*$")
_TAG = re.compile(r"([\w$.]+)$")


@dataclass(frozen=True)
class Literal:
    """A string or template literal. `code` is the module's text."""

    code: str
    start: int
    end: int
    tag: str = ""  # the name of the function before a template literal
    pieces: list[tuple[int, int]] = field(default_factory=list)  # start and end of each fixed text
    holes: list["Hole"] = field(default_factory=list)  # the expressions in a template literal, in order

    @property
    def is_template(self) -> bool:
        return self.code[self.start] == "`"

    @property
    def texts(self) -> list[str]:
        """The fixed texts, with escape sequences replaced."""
        return [
            re.sub(r"\\(u\{?([0-9a-fA-F]{4})\}?|.)", _unescape, self.code[start:end])
            for start, end in self.pieces
        ]

    @property
    def before(self) -> str:
        """The code on the same line and the line before, up to the literal."""
        return self.code[max(0, self.start - 160) : self.start - len(self.tag)]


@dataclass(frozen=True)
class Hole:
    """An expression in a template literal."""

    start: int
    end: int
    literals: list[Literal]


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[2], 16)) if found[2] else {"n": "\n", "t": "\t"}.get(found[1], found[1])


def literals_in(code: str) -> list[Literal]:
    """Return the literals of a module, without those inside other literals."""
    return _scan(code, 0)[0]


def all_literals(literals: list[Literal]) -> Iterator[Literal]:
    """Return literals, and all literals inside them."""
    for literal in literals:
        yield literal
        for hole in literal.holes:
            yield from all_literals(hole.literals)


def _scan(code: str, at: int) -> tuple[list[Literal], int]:
    """Return the literals up to the end of the code, or to a closing brace without an opening one."""
    found, depth = list[Literal](), 0
    while at < len(code):
        char = code[at]
        if comment := _COMMENT.match(code, at):
            at = comment.end()
        elif string := _STRING.match(code, at):
            found.append(Literal(code, at, string.end(), pieces=[(at + 1, string.end() - 1)]))
            at = string.end()
        elif char == "`":
            found.append(_template(code, at))
            at = found[-1].end
        elif char == "/" and _BEFORE_REGEX.search(code[:at]) and (regex := _REGEX.match(code, at)):
            at = regex.end()
        elif char == "}" and depth == 0:
            return found, at
        else:
            depth += {"{": 1, "}": -1}.get(char, 0)
            at += 1
    return found, at


def _template(code: str, start: int) -> Literal:
    tag = _TAG.search(code[max(0, start - 40) : start])
    pieces, holes = list[tuple[int, int]](), list[Hole]()
    at = first = start + 1
    while code[at] != "`":
        if code[at] == "\\":
            at += 2
        elif code.startswith("${", at):
            pieces.append((first, at))
            inner, end = _scan(code, at + 2)
            holes.append(Hole(at + 2, end, inner))
            at = first = end + 1
        else:
            at += 1
    pieces.append((first, at))
    return Literal(code, start, at + 1, tag[1] if tag else "", pieces, holes)


@dataclass(frozen=True)
class Part:
    """A part of an htm template: a text, the value of an attribute, or an expression in either place."""

    start: int
    end: int
    element: str  # the name of the element that contains a text or has an attribute; "" for a component
    attribute: str = ""  # "" for content
    hole: Hole | None = None


_MARKUP = re.compile(
    r"""(?P<comment><!--.*?-->)
      | (?P<close></(?:[\w-]+|/|\0\d+\0)?>|<//>)
      | <(?P<open>[\w-]+|\0\d+\0)
      | (?P<text>[^<]+)""",
    re.VERBOSE | re.DOTALL,
)
_ATTRIBUTE = re.compile(
    r"""\s+|(?P<end>/?>)|\.\.\.(?P<spread>\0\d+\0)
      | (?P<name>[\w:-]+)(?:=(?:"(?P<value>[^"]*)"|(?P<bare>(?:\0\d+\0|[^\s>/\0])+)))?""",
    re.VERBOSE,
)
_HOLE = re.compile(r"\0(\d+)\0")


def parts_of(template: Literal) -> Iterator[Part]:
    """Return the texts, attributes and expressions of an htm template."""
    # Each expression becomes a mark of the same length, so that positions stay the same.
    text, offset = "", template.start + 1
    for index, (start, end) in enumerate(template.pieces):
        text += template.code[start:end]
        if index < len(template.holes):
            hole = template.holes[index]
            width = hole.end + 1 - end
            text += f"\0{index:0{width - 2}d}\0"
    at, path = 0, list[str]()
    while found := _MARKUP.match(text, at):
        at = found.end()
        if found["open"]:
            element = "" if found["open"][0] == "\0" else found["open"]
            at, is_closed = yield from _attributes(template, text, at, element, offset)
            if not is_closed:
                path.append(element)
        elif found["close"] and path:
            path.pop()
        elif found["text"]:
            yield from _pieces(
                template, found.start(), text[found.start() : at], path[-1] if path else "", offset
            )


def _attributes(template: Literal, text: str, at: int, element: str, offset: int) -> Iterator[Part]:
    while found := _ATTRIBUTE.match(text, at):
        at = found.end()
        if found["end"]:
            return at, found["end"] == "/>"
        for name in ("value", "bare"):
            if found[name]:
                yield from _pieces(template, found.start(name), found[name], element, offset, found["name"])
        if found["spread"]:
            yield from _pieces(template, found.start("spread"), found["spread"], element, offset, "...")
    raise AssertionError(f"unexpected markup: {text[at : at + 40]!r}")


def _pieces(
    template: Literal, at: int, text: str, element: str, offset: int, attribute: str = ""
) -> Iterator[Part]:
    """Split a text into fixed texts and expressions."""
    last = 0
    for found in _HOLE.finditer(text):
        if last < found.start():
            yield Part(offset + at + last, offset + at + found.start(), element, attribute)
        hole = template.holes[int(found[1])]
        yield Part(offset + at + found.start(), offset + at + found.end(), element, attribute, hole)
        last = found.end()
    if last < len(text):
        yield Part(offset + at + last, offset + at + len(text), element, attribute)
