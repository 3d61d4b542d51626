"""Did you mean: suggests the known word that is most like a mistyped one."""

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import pairwise
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
    """The one known word that a mistyped one certainly stands for, or None; see `KnownWords`."""
    return KnownWords(known).meant(word)


class KnownWords:
    """Words that others may stand for. To find one takes no longer where there are many of them."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = frozenset(known)

    def meant(self, word: str) -> str | None:
        """The one known word that a mistyped one certainly stands for, or None.

        It differs in case, accents and separators alone, or else in two neighbouring letters that changed
        places.
        """
        found = self._by_fold.get(_folded(word), [])
        if not found and len(word) <= self._longest:
            found = [other for other in _swapped(word) if other in self._known]
        return found[0] if len(found) == 1 else None

    @cached_property
    def _by_fold(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for word in self._known:
            found.setdefault(_folded(word), []).append(word)
        return found

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._known), default=0)


@lru_cache(maxsize=20_000)
def _folded(word: str) -> str:
    """A word without what people write now in one form and then in another."""
    plain = "".join(c for c in normalize("NFKD", word) if not combining(c))
    return re.sub(r"[\s_./-]+", "-", plain.casefold()).strip("-")


def _swapped(word: str) -> Iterator[str]:
    """What a word becomes where two neighbouring letters of it change places."""
    for i, (first, second) in enumerate(pairwise(word)):
        if first != second and first.isalpha() and second.isalpha():
            yield f"{word[:i]}{second}{first}{word[i + 2 :]}"
