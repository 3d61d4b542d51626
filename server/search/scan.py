"""Searches without an index, by looking at every document: slow for many, and always up to date.

A word is found where a word of the text begins with its stem. Results are ranked by the attributes
that the words are in.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable

from server.config.model import Settings
from server.documents.document import Document
from server.index.budget import Budget
from server.search.catalog import Group, IndexedVersion
from server.search.question import Clause, Question, enough
from server.search.texts import Text, texts
from server.search.words import fold, language_of, terms

Ranked = list[tuple[float, Document]]  # with their scores, best first
_SPACE = re.compile(r"\s+")
_STEPS = 20  # that it takes to read the texts of a version
_READ_IN_A_STEP = 6  # as a power of two: that many characters, to fold them and for each clause


def scan(
    question: Question,
    versions: Iterable[IndexedVersion],
    settings: Settings,
    wanted: Callable[[Group], bool],
    budget: Budget,
) -> tuple[Ranked, Counter[Group]]:
    """The versions that have enough of the words, or any of them if none has; and all counts by group.

    Those with the same score are in the order of their types and ids.
    """
    tests: dict[str, list[_Needle]] = {}
    out: dict[str, list[_Needle]] = {}
    rated: list[tuple[bool, float, IndexedVersion]] = []
    clauses = len(question.wanted) + len(question.unwanted)
    for version in versions:
        language = language_of(version.group.locale)
        if language not in tests:
            tests[language] = [_Needle(clause, language) for clause in question.wanted]
            out[language] = [_Needle(clause, language) for clause in question.unwanted]
        folded = [(text, _folded(text)) for text in texts(version.document, settings)]
        budget.spend(_STEPS + ((clauses + 1) * sum(len(said) for _, said in folded) >> _READ_IN_A_STEP))
        if any(needle.rate(folded) for needle in out[language]):
            continue
        rates = [needle.rate(folded) for needle in tests[language]]
        if any(rates):
            rated.append((_is_enough(question, rates), sum(rates) * sum(map(bool, rates)), version))
    every = [item for item in rated if item[0]] or rated
    every.sort(key=lambda item: (-item[1], _place(item[2])))
    counts = Counter(version.group for _, _, version in every)
    return [(rate, v.document) for _, rate, v in every if wanted(v.group)], counts


def _place(version: IndexedVersion) -> tuple[str, str, str]:
    return version.group.uid, version.document.document_id, version.group.locale


def _is_enough(question: Question, rates: list[float]) -> bool:
    """Whether a document has all strict clauses and enough of the words."""
    words = [rate for clause, rate in zip(question.wanted, rates, strict=True) if not clause.strict]
    strict = [rate for clause, rate in zip(question.wanted, rates, strict=True) if clause.strict]
    return all(strict) and sum(map(bool, words)) >= enough(len(words))


class _Needle:
    """A clause as a pattern to look for in texts of one language."""

    def __init__(self, clause: Clause, language: str) -> None:
        self.field, self.phrase = clause.field, len(clause.words) > 1
        last = clause.words[-1]
        starts = [fold(last)] if clause.open else [_start(last, language)]
        words = [re.escape(fold(word)) for word in clause.words[:-1]]
        self.start = fold(clause.words[0]) if self.phrase else starts[0]
        self.pattern = re.compile(r"(?<![^\W_])" + r"[\W_]+".join([*words, re.escape(starts[0])]))

    def rate(self, folded: list[tuple[Text, str]]) -> float:
        """The score of a document for this clause; 0 if it does not have it."""
        best = total = 0.0
        for text, said in folded:
            if (self.field is None or text.attribute == self.field) and self.start in said:
                times = len(self.pattern.findall(said))
                if times:
                    best = max(best, text.weight)
                    total += text.weight * times / (times + 2)
        return best and best + total


def _start(word: str, language: str) -> str:
    folded, stem = fold(word), terms(word, language)[0]
    return stem if folded.startswith(stem) else folded


def _folded(text: Text) -> str:
    value = text.value if isinstance(text.value, str) else "\n".join(text.read())
    return value.lower() if value.isascii() else " ".join(fold(part) for part in _SPACE.split(value))
