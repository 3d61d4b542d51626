"""The words of some texts and where each stands: finds a text in many without going through them.

A text contains another exactly where it has the other's words one after another, the first of them
perhaps as the end of a longer word and the last as the beginning of one, and between them the same
signs. Words narrow it down to few texts; the signs are for the caller to compare.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

MOST_KNOWN = 200  # words whose places are kept as sets
FEW = 50  # so many places are looked up one by one
_WORD = re.compile(r"\w+")
_SOME = bytes([0, *[1] * 255])  # what is not 0 → 1
_BITS = tuple(1 << i for i in range(8))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A text to look for, and its words, between line ends but where they may be part of a longer one.

    `exact` is whether the words say all of it.
    """

    text: str
    words: tuple[str, ...]
    exact: bool


def wanted(text: str) -> Wanted:
    """What to look for, given a text."""
    words = []
    for found in _WORD.finditer(text):
        opening = "\n" if found.start() else ""
        closing = "\n" if found.end() < len(text) else ""
        words.append(f"{opening}{found[0]}{closing}")
    return Wanted(text, tuple(words), _WORD.fullmatch(text) is not None)


class Vocabulary:
    """The words of several texts, which are given joined; `starts` is where each text begins.

    Words are counted through all texts; that number is where a word stands.
    """

    def __init__(self, text: str, starts: list[int]) -> None:
        places: dict[str, list[int]] = {}
        begins: list[int] = []
        number = 0
        for start, end in pairwise([*starts, len(text)]):
            number += -number % 8  # each text begins with a byte of its own in a set of places
            begins.append(number >> 3)
            for word in _WORD.findall(text, start, end):
                places.setdefault(word, []).append(number)
                number += 1
        words = sorted(places)
        self._size = (number >> 3) + 1
        self._spans = list(pairwise([*begins, self._size]))
        self._texts_of = array("I", (i for i, (a, b) in enumerate(self._spans) for _ in range(a, b)))
        self._words = "\n" + "\n".join(words) + "\n"
        self._starts = array("I", (found.start() for found in re.finditer("\n", self._words[:-1])))
        self._places = array("I", chain.from_iterable(places[word] for word in words))
        self._ends = array("I", accumulate(len(places[word]) for word in words))
        self._known: dict[int, int] = {}  # of words that were looked for: where they stand, as bits

    def texts_with(self, sought: Wanted) -> list[int]:
        """The numbers of the texts that have the words one after another; all of them for no words."""
        if not sought.words:
            return list(range(len(self._spans)))
        standing = -1
        for i, word in enumerate(sought.words):
            here = 0
            for found in self._matching(word):
                here |= self._bits(found)
            standing &= here >> i
            if not standing:
                return []
        return self._texts(standing)

    def _matching(self, word: str) -> Iterator[int]:
        """The numbers of the words that a word, open or closed at its sides, is or is in."""
        words, starts = self._words, self._starts
        at = words.find(word)
        while at >= 0:
            i = bisect_right(starts, at) - 1
            yield i
            at = words.find(word, starts[i + 1]) if i + 1 < len(starts) else -1

    def _bits(self, word: int) -> int:
        known = self._known.get(word)
        if known is None:
            first = self._ends[word - 1] if word else 0
            made = bytearray(self._size)
            for place in self._places[first : self._ends[word]]:
                made[place >> 3] |= _BITS[place & 7]
            known = int.from_bytes(made, "little")
            if len(self._known) < MOST_KNOWN:
                self._known[word] = known
        return known

    def _texts(self, standing: int) -> list[int]:
        """The texts in which a set has a place."""
        some = standing.to_bytes(self._size, "little").translate(_SOME)
        if standing.bit_count() >= FEW:
            return [i for i, (begin, end) in enumerate(self._spans) if some.find(1, begin, end) >= 0]
        found, spans, texts = list[int](), self._spans, self._texts_of
        at = some.find(1)
        while at >= 0:
            i = texts[at]
            found.append(i)
            at = some.find(1, spans[i][1])
        return found
