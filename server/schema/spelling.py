"""Did you mean: suggests the known word that is most like a mistyped one."""

import math
import re
import time
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import lru_cache
from unicodedata import combining, normalize

LIKENESS = 0.6
LONGEST_S = 1.0  # of processor time, for all suggestions of one report
_COMPARED = 100  # words between two looks at the clock


def suggestion(word: str, known: Iterable[str], likeness: float = LIKENESS) -> str:
    """`did you mean "title"?`, or "" if no known word is similar.

    `likeness` is how like it has to be: from 0, which all words are, to 1 for the word itself.
    """
    return Suggestions(math.inf).of(word, known, likeness)


class Suggestions:
    """The suggestions of one report, which may have thousands of mistyped words, each like any of thousands.

    They take a bounded time in all: the first words get one, those after them none.
    """

    def __init__(self, seconds: float = LONGEST_S) -> None:
        self._left = seconds

    def of(self, word: str, known: Iterable[str], likeness: float = LIKENESS) -> str:
        """What `suggestion` says, or "" once the time is over."""
        if self._left <= 0:
            return ""
        began = time.thread_time()
        near = _nearest(word, known, likeness, began + self._left)
        self._left -= time.thread_time() - began
        return f'did you mean "{near}"?' if near else ""


def _nearest(word: str, known: Iterable[str], likeness: float, until: float) -> str:
    """The known word that is most like another, "" where none is like it enough or the time is over."""
    matcher = SequenceMatcher()
    matcher.set_seq2(word)
    best = likeness, ""
    for number, other in enumerate(known):
        if number % _COMPARED == 0 and time.thread_time() > until:
            return ""
        matcher.set_seq1(other)
        # Each of these is an upper bound of the next, which takes longer.
        if matcher.real_quick_ratio() >= best[0] and matcher.quick_ratio() >= best[0]:
            best = max(best, (matcher.ratio(), other))
    return best[1]


def certain_suggestion(word: str, known: Iterable[str]) -> str | None:
    """The one known word that a mistyped one certainly stands for, or None.

    It differs in case, accents and separators alone, or else in two neighbouring letters that changed places.
    """
    words = list(known)
    found = [other for other in words if _folded(word) == _folded(other)]
    found = found or [other for other in words if _is_swapped(word, other)]
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=20_000)
def _folded(word: str) -> str:
    """A word without what people write now in one form and then in another."""
    plain = "".join(c for c in normalize("NFKD", word) if not combining(c))
    return re.sub(r"[\s_./-]+", "-", plain.casefold()).strip("-")


def _is_swapped(word: str, other: str) -> bool:
    """Whether two words differ in the order of two neighbouring letters."""
    if len(word) != len(other):
        return False
    different = [i for i, (a, b) in enumerate(zip(word, other, strict=True)) if a != b]
    if len(different) != 2 or different[1] != different[0] + 1:
        return False
    first, second = different
    letters = word[first].isalpha() and word[second].isalpha()
    return letters and (word[first], word[second]) == (other[second], other[first])
