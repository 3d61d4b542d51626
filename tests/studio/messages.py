"""The texts in the studio's modules: those that are translated, and those that should be."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.studio.javascript import Literal, all_literals, literals_in, parts_of

# Attributes whose values nobody sees. Values of all others are text if they look like words.
HIDDEN_ATTRIBUTES = re.compile(
    r"on[A-Z]\w+|aria-(?:autocomplete|busy|controls|current|describedby|expanded|haspopup|hidden|invalid|keyshortcuts"
    r"|labelledby|live|selected|sort)|data-\w+|stroke-\w+|text-anchor|[xy][12]?|c[xy]"
    r"|accept|action|autocapitalize|autocomplete|class|d|datetime|dir|enctype|fill|for|height|hidden|href|how|icon"
    r"|id|inputmode|key|kind|lang|loading|max|method|min|name|pattern|place|points|rel|role|rows|sandbox|scope|size"
    r"|src|step|stroke|style|tabindex|target|to|transform|type|value|viewBox|width|wrap|xmlns"
)
VISIBLE_ATTRIBUTES = re.compile(
    r"aria-(?:description|label|roledescription|valuetext)|alt|label|placeholder|title"
)
VISIBLE_PROPERTIES = "done|emptyText|heading|hint|label|legend|many|note|one|placeholder|title"
CODE_ELEMENTS = ("code", "kbd", "pre", "samp")
# Not words: names of keys, of headers and of components. "" in a table of names is not shown either.
NOT_WORDS = re.compile(
    r"(?:Mod|Alt|Shift|Ctrl|Control|Meta|Escape|Tab|Enter)(?:[-+]\S*)*|[A-Z][a-z]+(?:-[A-Z][a-z]+)+|(?:[A-Z][a-z]+){2,}"
    r"|noopener noreferrer| ?and ?|allow-scripts .*|Desktop|null|API|URL|JSON|Markdown|PDF|English|Deutsch"
    r"|site\.yaml|bifolio\b.*|[a-z]+(?:, [a-z]+|\[\S+\]|, \[.+\])+"
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_CAPITAL = re.compile(r"[A-Z][a-z]")
_PHRASE = re.compile(r"^\d* [a-z]{3}|[A-Za-z’']{2,},? [A-Za-z]|[a-z]{2}\.( |$)")
_COMPARED = re.compile(r"(?:[=!]==?|\bcase|\bin)\s*$")
_VISIBLE_PROPERTY = re.compile(rf"\b(?:{VISIBLE_PROPERTIES}):\s*$")
_NOT_SHOWN_BEFORE = re.compile(
    r"""(?:\b(?:from|import|closest|querySelector|querySelectorAll|matches|later|loadPart|keyOf|createElement
      |addEventListener|getAttribute|setAttribute|has|get|set|delete|startsWith|endsWith|includes|split|join|useId
      |keyName|class|className|attrs:\s*\{\s*class)[(:]?\s*|\bimport\s|\bkey:\s*|\bSymbol\(|\blater\("[^"]+",\s*)$""",
    re.VERBOSE,
)
_PLURAL = re.compile(r"\bplural\(")
_FORM = re.compile(r'\s*(?P<name>zero|one|two|few|many|other):\s*(?P<text>"(?:[^"\\\n]|\\.)*"),?')


@dataclass(frozen=True)
class Message:
    """A text that is translated. `forms` has the English texts by plural category, or only "" for a text
    without a number.
    """

    forms: dict[str, str]

    @property
    def id(self) -> str:
        return self.forms.get("", self.forms.get("other", ""))


def messages_in(code: str) -> Iterator[Message]:
    """Return the messages that a module translates with t`…` and plural(…)."""
    literals = literals_in(code)
    for literal in all_literals(literals):
        if literal.is_template and literal.tag == "t":
            yield Message({"": id_of(literal)})
    for _, _, forms in _plurals(code):
        yield Message(forms)


def id_of(literal: Literal) -> str:
    first, *rest = literal.texts
    text = first + "".join(f"{{{number}}}{part}" for number, part in enumerate(rest))
    return re.sub(r"\s*\n\s*", " ", text)


def _plurals(code: str) -> Iterator[tuple[int, int, dict[str, str]]]:
    """Return where the forms of each plural(…) start and end, and the forms."""
    for call in _PLURAL.finditer(code):
        line = code[code.rfind("\n", 0, call.start()) + 1 : call.start()]
        if line.endswith("function ") or re.match(r"\s*(?:\*|/[/*])", line):
            continue
        start = _second_argument(code, call.end())
        forms, at = dict[str, str](), start + 1
        while found := _FORM.match(code, at):
            pieces = [(found.start("text") + 1, found.end("text") - 1)]
            literal = Literal(code, found.start("text"), found.end("text"), pieces=pieces)
            forms[found["name"]] = literal.texts[0]
            at = found.end()
        end = re.compile(r"\s*\}").match(code, at)
        if code[start] != "{" or not end or "other" not in forms:
            number = code.count("\n", 0, call.start()) + 1
            raise ValueError(f"line {number}: plural() needs its forms as literal strings, with `other`")
        yield start, end.end(), forms


def _second_argument(code: str, at: int) -> int:
    depth = 0
    while depth or code[at] != ",":
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(code[at], 0)
        at += 1
    return at + 1 + len(code[at + 1 :]) - len(code[at + 1 :].lstrip())


@dataclass(frozen=True)
class Unwrapped:
    """A text that a user would see in English in all languages."""

    start: int
    end: int
    kind: str  # "content", "attribute" or "literal"
    text: str


def unwrapped_in(code: str) -> Iterator[Unwrapped]:
    """Return texts that look as if they were shown to users, but are not translated."""
    plurals = [(start, end) for start, end, _ in _plurals(code)]
    for found in _unwrapped(code, literals_in(code), "code"):
        if not any(start < found.start < end for start, end in plurals):
            yield found


def _unwrapped(code: str, literals: list[Literal], place: str) -> Iterator[Unwrapped]:
    """`place` says where the literals are: in code, or in an expression whose value is shown."""
    for literal in literals:
        if literal.tag == "html":
            yield from _in_markup(literal)
            continue
        if literal.tag != "t" and _is_shown(literal, place):
            yield Unwrapped(literal.start, literal.end, "literal", code[literal.start : literal.end])
        for hole in literal.holes:
            yield from _unwrapped(code, hole.literals, "code")


def _in_markup(template: Literal) -> Iterator[Unwrapped]:
    code = template.code
    for part in parts_of(template):
        text = code[part.start : part.end]
        is_words = _LETTERS.search(text) and not NOT_WORDS.fullmatch(text.strip())
        if part.hole:
            is_shown = not part.attribute or VISIBLE_ATTRIBUTES.fullmatch(part.attribute)
            is_hidden = HIDDEN_ATTRIBUTES.fullmatch(part.attribute)
            place = "shown" if is_shown else "hidden" if is_hidden else "code"
            yield from _unwrapped(code, part.hole.literals, place)
        elif part.attribute:
            is_visible = VISIBLE_ATTRIBUTES.fullmatch(part.attribute)
            if is_words and (is_visible or _looks_shown(part.attribute, text)):
                yield Unwrapped(part.start, part.end, "attribute", text)
        elif is_words and part.element not in CODE_ELEMENTS:
            yield Unwrapped(part.start, part.end, "content", text)


def _looks_shown(attribute: str, text: str) -> bool:
    return not HIDDEN_ATTRIBUTES.fullmatch(attribute) and bool(_CAPITAL.match(text) or _PHRASE.search(text))


def _is_shown(literal: Literal, place: str) -> bool:
    text = " ".join(literal.texts)
    if not _LETTERS.search(text) or NOT_WORDS.fullmatch(text.strip()):
        return False
    if _COMPARED.search(literal.before):
        return False
    if _VISIBLE_PROPERTY.search(literal.before):
        return True
    if place == "hidden":
        return False
    if _NOT_SHOWN_BEFORE.search(literal.before) or literal.code.startswith(".split(", literal.end):
        return False
    if place == "shown" and re.search(r"(?:[?:&|]|\$\{)\s*$", literal.before):
        return True
    return bool(_CAPITAL.match(text) or _PHRASE.search(text))
