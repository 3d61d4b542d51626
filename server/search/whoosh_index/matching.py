"""Queries that whoosh does not have: some of several, and words in order, or in one attribute."""

from collections.abc import Sequence
from typing import Any

from whoosh import query
from whoosh.matching import binary, mcore, wrappers
from whoosh.util import make_binary_tree

from server.index.budget import Budget
from server.search.whoosh_index.schema import REGION

_POSITIONS_IN_A_STEP = 4  # as a power of two: that many positions are looked at in a step


class Most(query.Query):  # type: ignore[misc]
    """Documents that at least `least` of some queries find; more of them make a higher score.

    None stands for a query that finds nothing.
    """

    def __init__(self, parts: Sequence[Any], least: int) -> None:
        self.parts, self.least = parts, least

    def matcher(self, searcher: Any, context: Any = None) -> Any:
        """The matcher of one segment."""
        found = [part.matcher(searcher, context) for part in self.parts if part is not None]
        return _MostMatcher(found, self.least, len(self.parts))

    def estimate_size(self, reader: Any) -> int:
        """The largest number of documents that it can find."""
        return sum(part.estimate_size(reader) for part in self.parts if part is not None)


class _MostMatcher(mcore.Matcher):  # type: ignore[misc]
    def __init__(self, matchers: list[Any], least: int, of: int) -> None:
        self.least, self.of = least, of
        self.left = matchers
        self.here: list[Any] = []
        self._find()

    def _find(self) -> None:
        """Move to the next document at which enough matchers are."""
        while True:
            self.left = [m for m in self.left if m.is_active()]
            if len(self.left) < self.least:
                self.here = []
                return
            ids = sorted(m.id() for m in self.left)
            at = ids[self.least - 1]  # No document before this one can have enough.
            self.here = [m for m in self.left if m.id() == at]
            if len(self.here) >= self.least:
                return
            for matcher in self.left:
                if matcher.id() < at:
                    matcher.skip_to(at)

    def is_active(self) -> bool:
        return bool(self.here)

    def id(self) -> int:
        return int(self.here[0].id())

    def next(self) -> None:
        for matcher in self.here:
            matcher.next()
        self._find()

    def skip_to(self, id: int) -> None:
        for matcher in self.left:
            if matcher.is_active() and matcher.id() < id:
                matcher.skip_to(id)
        self._find()

    def score(self) -> float:
        return float(sum(m.score() for m in self.here)) * len(self.here) / self.of

    def weight(self) -> float:
        return float(sum(m.weight() for m in self.here))

    def supports_block_quality(self) -> bool:
        return False


class Phrase(query.Query):  # type: ignore[misc]
    """Documents that have some words in order, one after the other; or one, in the positions of an attribute.

    Each word is given by its terms. The time that it takes grows with the number of positions and words, not
    with how often these repeat each other. `start` is where the positions of the attribute begin.
    """

    def __init__(self, words: Sequence[Sequence[Any]], start: int | None, budget: Budget) -> None:
        self.words, self.start, self.budget = [tuple(word) for word in words], start, budget

    def matcher(self, searcher: Any, context: Any = None) -> Any:
        """The matcher of one segment."""
        found = {word: [term.matcher(searcher, context) for term in word] for word in self.words}
        any_term = [make_binary_tree(binary.DisjunctionMaxMatcher, terms) for terms in found.values()]
        every_word = make_binary_tree(binary.IntersectionMatcher, any_term)
        return _PhraseMatcher(every_word, [found[word] for word in self.words], self.start, self.budget)

    def estimate_size(self, reader: Any) -> int:
        """The largest number of documents that it can find."""
        return min(sum(int(term.estimate_size(reader)) for term in word) for word in self.words)


class _PhraseMatcher(wrappers.WrappingMatcher):  # type: ignore[misc]
    def __init__(self, child: Any, words: list[list[Any]], start: int | None, budget: Budget) -> None:
        super().__init__(child)
        self.words, self.start, self.budget = words, start, budget
        self._find()

    def _find(self) -> None:
        while self.child.is_active() and not self._is_here():
            self.child.next()

    def _is_here(self) -> bool:
        """Whether the words are one after the other in the document at which the child is."""
        known: dict[int, set[int]] = {}
        begins: set[int] = set()
        for i, terms in enumerate(self.words):
            if id(terms) not in known:
                known[id(terms)] = self._positions(terms)
            at = known[id(terms)]
            self.budget.spend(1 + (len(at) + len(begins) >> _POSITIONS_IN_A_STEP))
            begins = {begin for begin in begins if begin + i in at} if i else self._in_attribute(at)
            if not begins:
                return False
        return True

    def _positions(self, terms: list[Any]) -> set[int]:
        here = self.child.id()
        there = (term for term in terms if term.is_active() and term.id() == here)
        return {position for term in there for position in term.value_as("positions")}

    def _in_attribute(self, at: set[int]) -> set[int]:
        low = self.start
        return at if low is None else {position for position in at if low <= position < low + REGION}

    def replace(self, minquality: float = 0) -> Any:
        return self if self.is_active() else mcore.NullMatcher()

    def supports_block_quality(self) -> bool:
        return False

    def next(self) -> None:
        self.child.next()
        self._find()

    def skip_to(self, id: int) -> None:
        self.child.skip_to(id)
        self._find()
