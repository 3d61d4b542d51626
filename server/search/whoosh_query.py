"""A question → what whoosh is to look for (part of `engine`, which alone imports this).

Words stand as they were typed; here they become terms, beginnings become the words that begin so,
and it is decided what must be there and what only adds to the score.
"""

import heapq
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from whoosh import query
from whoosh.lang import stopwords
from whoosh.matching import mcore, wrappers
from whoosh.query import spans

from server.search.question import Clause, Question, enough
from server.search.words import fold, terms

REGION = 1 << 20  # places that an attribute has
EXPANSIONS = 16  # terms that one beginning stands for, the most frequent ones
LONG = 4  # characters of a beginning that may be longer than the stem of its word
COMMON, FEW = 0.5, 10  # a word that more of a language's documents have is not required, if it has some
BEGUN, VARIANT = 0.4, 0.6  # what a word counts that was only begun, or found by its second term
HEAD = 1.0  # what a word counts in a heading, beside what it counts in the text
ALL = "\0"  # a word that every document of a language has


class Asker:
    """Makes queries of questions, for one state of the index."""

    def __init__(self, reader: Any, numbers: dict[str, int]) -> None:
        self.reader, self.numbers = reader, numbers

    def query(self, question: Question, language: str, *, every: bool) -> Any | None:
        """The question asked of one language; None where nothing can have it.

        `every`: what is strict must be there, and enough of the words; else some of it all.
        """
        strict: list[Any] = []
        words: list[Any] = []
        common: list[Any] = []
        for clause in question.wanted:
            part = self._clause(clause, language)
            if part is None and clause.strict and every:
                return None
            parts = strict if clause.strict else common if self._is_common(clause, language) else words
            parts.append(part)
        if not strict and not words:
            words, common = common, []
        least = enough(len(words)) if every else 1
        if not every:
            words, strict, common = words + strict + common, [], []
        if len(words) == 1 and words[0] is not None:
            strict, words = [*strict, words[0]], []
        required = [*strict, *([_Most(words, least)] if words else [])]
        found = required[0] if len(required) == 1 else query.And(required)
        extra = [*(part for part in common if part is not None), *self._heads(question, language)]
        if extra:
            found = query.AndMaybe(found, query.Or(extra))
        out = [c for c in (self._clause(c, language) for c in question.unwanted) if c is not None]
        return query.AndNot(found, query.Or(out)) if out else found

    def _heads(self, question: Question, language: str) -> list[Any]:
        """The words of a question in headings; they add to the score of what is found without them."""
        reader, field = self.reader, f"head_{language}"
        words = (word for clause in question.wanted if clause.field is None for word in clause.words)
        found = dict.fromkeys(term for word in words for term in terms(word, language))
        return [query.Term(field, t, boost=HEAD) for t in found if (field, t.encode()) in reader]

    def _clause(self, clause: Clause, language: str) -> Any | None:
        """A clause as a query; None where nothing can have it."""
        if clause.field is not None and clause.field not in self.numbers:
            return None
        last = len(clause.words) - 1
        parts = [
            self._word(word, language, begun=clause.open and i == last) for i, word in enumerate(clause.words)
        ]
        if any(part is None for part in parts):
            return None
        found = parts[0] if last == 0 else spans.SpanNear2(parts, slop=1, ordered=True)
        return found if clause.field is None else _Within(found, self.numbers[clause.field] * REGION)

    def _word(self, word: str, language: str, *, begun: bool) -> Any | None:
        """A word as a query; None where nothing has it."""
        field, reader = f"text_{language}", self.reader
        found = self.terms(word, language, begun=begun).items()
        parts = [query.Term(field, t, boost=b) for t, b in found if (field, t.encode()) in reader]
        return query.DisjunctionMax(parts) if len(parts) > 1 else parts[0] if parts else None

    def terms(self, word: str, language: str, *, begun: bool) -> dict[str, float]:
        """The terms that a word is found by, and what each counts."""
        found = {term: (1.0 if i == 0 else VARIANT) for i, term in enumerate(terms(word, language))}
        if begun:
            for term in self._beginning(fold(word), language):
                found.setdefault(term, BEGUN)
        return found

    def _beginning(self, start: str, language: str) -> list[str]:
        """The most frequent terms of words that begin so."""
        reader, field = self.reader, f"text_{language}"
        if len(start) < 2:
            return []
        found = {term.decode() for term in reader.expand_prefix(field, start)}
        if len(start) >= LONG:  # longer perhaps than the stem of what is being typed
            longer = (word.decode() for word in reader.expand_prefix(f"word_{language}", start))
            found.update(term for word in longer for term in terms(word, language))
        return heapq.nlargest(EXPANSIONS, found, key=lambda term: reader.doc_frequency(field, term))

    def _is_common(self, clause: Clause, language: str) -> bool:
        """Whether a word is in so many documents that none is to be left out for want of it."""
        word, reader = clause.words[0], self.reader
        if fold(word) in _stop_words(language):
            return True
        having = reader.doc_frequency(f"text_{language}", terms(word, language)[0])
        every = reader.doc_frequency(f"word_{language}", ALL)
        return bool(every > FEW and having > COMMON * every)


@lru_cache(maxsize=100)
def _stop_words(language: str) -> frozenset[str]:
    return frozenset(fold(word) for word in stopwords.stoplists.get(language, ()))


class _Most(query.Query):  # type: ignore[misc]
    """What at least so many of some queries find; who has more of them counts for more.

    One of them may be None, for what nothing has.
    """

    def __init__(self, parts: Sequence[Any], least: int) -> None:
        self.parts, self.least = parts, least

    def matcher(self, searcher: Any, context: Any = None) -> Any:
        """The matcher of one segment."""
        found = [part.matcher(searcher, context) for part in self.parts if part is not None]
        return _MostMatcher(found, self.least, len(self.parts))

    def estimate_size(self, reader: Any) -> int:
        """At most how many documents it finds."""
        return sum(part.estimate_size(reader) for part in self.parts if part is not None)


class _MostMatcher(mcore.Matcher):  # type: ignore[misc]
    def __init__(self, matchers: list[Any], least: int, of: int) -> None:
        self.least, self.of = least, of
        self.left = matchers
        self.here: list[Any] = []
        self._find()

    def _find(self) -> None:
        """Go on to the next document that enough of the matchers are at."""
        while True:
            self.left = [m for m in self.left if m.is_active()]
            if len(self.left) < self.least:
                self.here = []
                return
            ids = sorted(m.id() for m in self.left)
            at = ids[self.least - 1]  # no document before this one can have enough
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


class _Within(query.WrappingQuery):  # type: ignore[misc]
    """What another query finds in the places of one attribute."""

    def __init__(self, child: Any, start: int) -> None:
        super().__init__(child)
        self.start = start

    def matcher(self, searcher: Any, context: Any = None) -> Any:
        """The matcher of one segment."""
        return _WithinMatcher(self.child.matcher(searcher, context), self.start)


class _WithinMatcher(wrappers.WrappingMatcher):  # type: ignore[misc]
    def __init__(self, child: Any, start: int) -> None:
        super().__init__(child)
        self.start = start
        self._find()

    def _find(self) -> None:
        low, high = self.start, self.start + REGION
        while self.child.is_active() and not any(low <= s.start < high for s in self.child.spans()):
            self.child.next()

    def next(self) -> None:
        self.child.next()
        self._find()

    def skip_to(self, id: int) -> None:
        self.child.skip_to(id)
        self._find()
