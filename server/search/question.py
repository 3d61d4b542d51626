"""Parser that converts search input to an immutable Question.

    tide tables          both words, in any form; the last one can be incomplete
    "slack water"        both words in this order
    title:tide           the word in this attribute
    -ferry               without this word
    light*               words that start with these letters

All other input is treated as words, so no input is invalid.
"""

import re
from collections.abc import Container
from dataclasses import dataclass, replace

from server.search.words import spans

MAX_QUESTION_CHARS = 500
MAX_WORDS = 32
_PART = re.compile(
    r'(?P<out>-?)(?:(?P<field>[A-Za-z_]\w*):(?=\S))?(?:"(?P<quoted>[^"]*)(?P<end>"?)|(?P<bare>\S+))'
)


@dataclass(frozen=True, slots=True)
class Clause:
    """Word or phrase to search for in the attribute `field`. If `field` is None, all attributes are searched.

    If `is_prefix` is set, longer words that begin with the last word match too.
    """

    words: tuple[str, ...]
    field: str | None = None
    is_prefix: bool = False

    @property
    def strict(self) -> bool:
        return self.field is not None or len(self.words) > 1


@dataclass(frozen=True, slots=True)
class Question:
    """Parsed search input.

    A document matches if it contains most of the `required` clauses (see `required_matches`) and none of the
    `excluded` clauses.
    """

    text: str
    required: tuple[Clause, ...]
    excluded: tuple[Clause, ...] = ()


def required_matches(words: int) -> int:
    """Return how many of the searched words a document must contain: for example, 2 of 3 or 4 of 5."""
    return words - words // 3


def read_question(text: str, fields: Container[str], *, is_incomplete: bool = True) -> Question:
    """Parse search input. A word can be limited to an attribute in `fields`, as in `title:tide`.

    If `is_incomplete` is set, the last word may be unfinished, so longer words that begin with it match too.
    """
    found: list[tuple[bool, Clause]] = []
    remaining_words = MAX_WORDS
    for part in _PART.finditer(text):
        out, clause = _clause(part, fields)
        clause = replace(clause, words=clause.words[:remaining_words])
        if not clause.words:
            continue
        remaining_words -= len(clause.words)
        if part.end() == len(text) and is_incomplete and part["end"] != '"' and not out:
            clause = replace(clause, is_prefix=True)
        found.append((out, clause))
    required = tuple(dict.fromkeys(clause for out, clause in found if not out))
    return Question(text, required, tuple(clause for out, clause in found if out))


def _clause(part: re.Match[str], fields: Container[str]) -> tuple[bool, Clause]:
    field = part["field"] if part["field"] in fields else None
    said = part["quoted"] if part["quoted"] is not None else part["bare"]
    if part["field"] and field is None:
        said = f"{part['field']} {said}"
    words = tuple(word[0] for word in spans(said))
    star = part["quoted"] is None and said.endswith("*")
    return bool(part["out"]), Clause(words, field, star)


def apply_corrections(question: Question, corrections: dict[str, str]) -> str:
    text = question.text
    for found in reversed(list(spans(text))):
        if found[0] in corrections:
            text = text[: found.start()] + corrections[found[0]] + text[found.end() :]
    return text
