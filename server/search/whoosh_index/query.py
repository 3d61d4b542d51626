"""Compiler that converts parsed searches to Whoosh queries."""

from collections.abc import Sequence
from typing import Any

from whoosh import query
from whoosh.lang import stopwords
from whoosh.matching import binary, mcore, wrappers
from whoosh.util import make_binary_tree

from server.index.budget import Budget
from server.search.question import Clause, Question, required_matches
from server.search.whoosh_index.schema import ATTRIBUTE_POSITIONS
from server.search.whoosh_index.scoring import Statistics
from server.search.words import fold, terms

# --- matching -------------------------------------------------------------------------------------

_LOG2_POSITIONS_PER_STEP = 4  # Reading 16 positions costs one step.


class AtLeast(query.Query):  # type: ignore[misc]
    """Query for documents that match at least `min_matches` of the queries in `parts`.

    More matches give a higher score.
    """

    def __init__(self, parts: Sequence[Any], min_matches: int) -> None:
        self.parts, self.min_matches = parts, min_matches

    def matcher(self, searcher: Any, context: Any = None) -> Any:
        found = [part.matcher(searcher, context) for part in self.parts if part is not None]
        return _AtLeastMatcher(found, self.min_matches, len(self.parts))

    def estimate_size(self, reader: Any) -> int:
        return sum(part.estimate_size(reader) for part in self.parts if part is not None)


class _AtLeastMatcher(mcore.Matcher):  # type: ignore[misc]
    def __init__(self, matchers: list[Any], min_matches: int, of: int) -> None:
        self.min_matches, self.of = min_matches, of
        self.left = matchers
        self.here: list[Any] = []
        self._find()

    def _find(self) -> None:
        while True:
            self.left = [m for m in self.left if m.is_active()]
            if len(self.left) < self.min_matches:
                self.here = []
                return
            ids = sorted(m.id() for m in self.left)
            # Skip earlier documents, because fewer than `min_matches` matchers can match them.
            at = ids[self.min_matches - 1]
            self.here = [m for m in self.left if m.id() == at]
            if len(self.here) >= self.min_matches:
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
    """Query for consecutive words. Each word is given as a list of alternative terms.

    If `start` is set, the phrase must be in the attribute whose range of index positions begins at `start`.
    """

    def __init__(self, words: Sequence[Sequence[Any]], start: int | None, budget: Budget) -> None:
        self.words, self.start, self.budget = [tuple(word) for word in words], start, budget

    def matcher(self, searcher: Any, context: Any = None) -> Any:
        found = {word: [term.matcher(searcher, context) for term in word] for word in self.words}
        any_term = [make_binary_tree(binary.DisjunctionMaxMatcher, matchers) for matchers in found.values()]
        every_word = make_binary_tree(binary.IntersectionMatcher, any_term)
        return _PhraseMatcher(every_word, [found[word] for word in self.words], self.start, self.budget)

    def estimate_size(self, reader: Any) -> int:
        return min(sum(int(term.estimate_size(reader)) for term in word) for word in self.words)


class _PhraseMatcher(wrappers.WrappingMatcher):  # type: ignore[misc]
    def __init__(self, child: Any, words: list[list[Any]], start: int | None, budget: Budget) -> None:
        super().__init__(child)
        self.words, self.start, self.budget = words, start, budget
        self._find()

    def _find(self) -> None:
        while self.child.is_active() and not self._matches_here():
            self.child.next()

    def _matches_here(self) -> bool:
        """Return whether the current document contains the phrase, in time linear in its word positions."""
        known: dict[int, set[int]] = {}
        begins: set[int] = set()
        for i, word in enumerate(self.words):
            if id(word) not in known:
                known[id(word)] = self._positions(word)
            at = known[id(word)]
            self.budget.spend(1 + (len(at) + len(begins) >> _LOG2_POSITIONS_PER_STEP))
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
        return (
            at
            if low is None
            else {position for position in at if low <= position < low + ATTRIBUTE_POSITIONS}
        )

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


# --- query ----------------------------------------------------------------------------------------

MAX_EXPANSIONS = 16  # maximum number of terms for one prefix
MIN_STEM_CHARS = 4  # A prefix of at least this length can be longer than the stem of a matching word.
# A word is optional if more than this share of the documents contain it. This applies only to languages with
# more than this number of documents.
MIN_COMMON_SHARE, MIN_COMMON_DOCUMENTS = 0.5, 10
# weights of an incomplete word's terms, and of a word's second term
PREFIX_WEIGHT, VARIANT_WEIGHT = 0.4, 0.6
HEADING_WEIGHT = 1.0  # additional weight of a word in a heading


class QueryCompiler:
    """Compiler that converts parsed searches to Whoosh queries."""

    def __init__(self, reader: Any, numbers: dict[str, int], statistics: Statistics, budget: Budget) -> None:
        self.reader, self.numbers, self.statistics, self.budget = reader, numbers, statistics, budget

    def query(self, question: Question, language: str, *, require_all: bool) -> Any | None:
        """Return the Whoosh query for a search, or None if no version can match.

        If `require_all` is False, a version has to match only one of the required clauses.
        """
        strict: list[Any] = []
        words: list[Any] = []
        common: list[Any] = []
        for clause in question.required:
            part = self._clause(clause, language)
            if part is None and clause.strict and require_all:
                return None
            parts = strict if clause.strict else common if self._is_common(clause, language) else words
            parts.append(part)
        if not strict and not words:
            words, common = common, []
        min_matches = required_matches(len(words)) if require_all else 1
        if not require_all:
            words, strict, common = words + strict + common, [], []
        if len(words) == 1 and words[0] is not None:
            strict, words = [*strict, words[0]], []
        required = [*strict, *([AtLeast(words, min_matches)] if words else [])]
        found = required[0] if len(required) == 1 else query.And(required)
        extra = [*(part for part in common if part is not None), *self._heading_queries(question, language)]
        if extra:
            found = query.AndMaybe(found, query.Or(extra))
        out = [c for c in (self._clause(c, language) for c in question.excluded) if c is not None]
        return query.AndNot(found, query.Or(out)) if out else found

    def _heading_queries(self, question: Question, language: str) -> list[Any]:
        reader, field = self.reader, f"head_{language}"
        words = (word for clause in question.required if clause.field is None for word in clause.words)
        found = dict.fromkeys(term for word in words for term in terms(word, language))
        return [query.Term(field, t, boost=HEADING_WEIGHT) for t in found if (field, t.encode()) in reader]

    def _clause(self, clause: Clause, language: str) -> Any | None:
        if clause.field is not None and clause.field not in self.numbers:
            return None
        last = len(clause.words) - 1
        parts = [
            self._word(word, language, is_prefix=clause.is_prefix and i == last)
            for i, word in enumerate(clause.words)
        ]
        if not all(parts):
            return None
        if last == 0 and clause.field is None:
            return query.DisjunctionMax(parts[0]) if len(parts[0]) > 1 else parts[0][0]
        start = None if clause.field is None else self.numbers[clause.field] * ATTRIBUTE_POSITIONS
        return Phrase(parts, start, self.budget)

    def _word(self, word: str, language: str, *, is_prefix: bool) -> list[Any]:
        field, reader = f"text_{language}", self.reader
        found = self.terms(word, language, is_prefix=is_prefix).items()
        return [query.Term(field, t, boost=b) for t, b in found if (field, t.encode()) in reader]

    def terms(self, word: str, language: str, *, is_prefix: bool) -> dict[str, float]:
        found = {term: (1.0 if i == 0 else VARIANT_WEIGHT) for i, term in enumerate(terms(word, language))}
        if is_prefix:
            for term in self._terms_with_prefix(fold(word), language):
                found.setdefault(term, PREFIX_WEIGHT)
        return found

    def _terms_with_prefix(self, prefix: str, language: str) -> list[str]:
        reader, field = self.reader, f"text_{language}"
        if len(prefix) < 2:
            return []
        found = {term.decode() for term in reader.expand_prefix(field, prefix)}
        if len(prefix) >= MIN_STEM_CHARS:
            longer = (word.decode() for word in reader.expand_prefix(f"word_{language}", prefix))
            found.update(term for word in longer for term in terms(word, language))
        return self.statistics.most_frequent(field, found, MAX_EXPANSIONS)

    def _is_common(self, clause: Clause, language: str) -> bool:
        word = clause.words[0]
        if fold(word) in map(fold, stopwords.stoplists.get(language, ())):
            return True
        having = self.statistics.frequency(f"text_{language}", terms(word, language)[0])
        every = self.statistics.documents.get(language, 0)
        return every > MIN_COMMON_DOCUMENTS and having > MIN_COMMON_SHARE * every
