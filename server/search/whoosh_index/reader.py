"""Reader of the search index, which also suggests corrections of unknown words."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from whoosh import index, query, scoring

from server.index.budget import Budget
from server.search.question import Question
from server.search.whoosh_index.query import QueryCompiler
from server.search.whoosh_index.schema import EVERY_DOCUMENT_TERM, VERSION
from server.search.whoosh_index.scoring import Statistics, VisibleBM25
from server.search.words import fold, terms

__all__ = ["VERSION", "Hits", "IndexReader"]

# parameters of BM25: B reduces the scores of long documents, and K1 increases the score for repeated words
LENGTH_WEIGHT, REPETITION_WEIGHT = 0.3, 1.2


# Number of decimal places by which scores are compared. Whoosh adds scores in an order that depends on the
# index's segments, so the last digits of a sum vary.
SCORE_DECIMALS = 9


@dataclass(frozen=True, slots=True)
class Hits:
    """The best matches (score and key), and the number of matches in each group.

    `unknown` contains the searched words that are not in any visible version.
    """

    best: list[tuple[float, str]]
    counts: Counter[str]
    unknown: tuple[str, ...] = ()


class _BestMatches:
    """Collection that keeps only the `limit` best matches.

    Matches with equal scores are sorted by key, so that repeated searches return the same pages.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: list[tuple[float, bytes]] = []  # (negated score, key); at most 2 × limit
        self._worst = -inf  # Matches with a lower score can't be among the best.

    def add(self, score: float, keys: Any, number: int) -> None:
        if score < self._worst:
            return
        self._found.append((-round(score, SCORE_DECIMALS), keys[number]))
        if len(self._found) >= 2 * self._limit:
            self._drop_worst()

    def _drop_worst(self) -> None:
        self._found.sort()
        del self._found[self._limit :]
        if len(self._found) == self._limit:
            self._worst = -self._found[-1][0] - 10**-SCORE_DECIMALS

    def hits(self) -> list[tuple[float, str]]:
        self._drop_worst()
        return [(-score, key.decode()) for score, key in self._found]


class IndexReader:
    """Reader of the index. It does not see changes committed after it was opened. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        # After whoosh's `refresh`, searches would also return versions that have been replaced
        # (docs/search.md), so a new reader must be created after each commit. If the index is damaged, whoosh
        # can raise any exception.
        self._searcher = index.open_dir(str(folder)).searcher(
            weighting=scoring.BM25F(B=LENGTH_WEIGHT, K1=REPETITION_WEIGHT)
        )

    def close(self) -> None:
        self._searcher.close()

    @cached_property
    def _leaves(self) -> list[tuple[Any, Any]]:
        # The columns are opened once, because opening a column of keys takes time in proportion to the number
        # of documents.
        leaves = (leaf for leaf, _ in self._searcher.leaf_searchers())
        return [(leaf, leaf.reader().column_reader("key", translate=False)) for leaf in leaves]

    def search(
        self,
        question: Question,
        languages: Iterable[str],
        numbers: dict[str, int],
        is_visible_group: Callable[[str], bool],
        is_requested_group: Callable[[str], bool],
        limit: int,
        documents: Mapping[str, int],
        budget: Budget,
    ) -> Hits:
        """Return the `limit` best versions in requested groups, and count the matches in all visible groups.

        `numbers` maps attributes to their numbers in the index. `documents` maps each language to its number
        of visible versions. Raises LimitError if the search exceeds the budget.
        """
        languages = list(languages)
        hits = Hits([], Counter())
        statistics = Statistics(self._searcher, is_visible_group, documents, budget)
        compiler = QueryCompiler(self._searcher.reader(), numbers, statistics, budget)
        for require_all in (True, False) if len(question.required) > 1 else (True,):
            parts = [compiler.query(question, language, require_all=require_all) for language in languages]
            queries = [part for part in parts if part is not None]
            if queries:
                whole = query.Or(queries) if len(queries) > 1 else queries[0]
                hits = self._run_query(whole, statistics, is_requested_group, limit, budget)
            if hits.counts:
                break
        return Hits(
            hits.best, hits.counts, self._unknown_words(compiler, question, languages, is_visible_group)
        )

    def suggest(
        self, word: str, languages: Iterable[str], is_visible_group: Callable[[str], bool], budget: Budget
    ) -> str | None:
        """Return the best correction of a word, or None if there is no similar word.

        Only words in visible versions are suggested.
        """
        folded, reader = fold(word), self._searcher.reader()
        statistics = Statistics(self._searcher, is_visible_group, {}, budget)
        similar: list[tuple[int, int, str]] = []
        for language in languages:
            for distance in range(1, 2 if len(folded) < 5 else 3):
                near = set(reader.terms_within(f"word_{language}", folded, distance, prefix=1))
                for other in near - {folded, EVERY_DOCUMENT_TERM}:
                    counts = [statistics.frequency(f"text_{language}", t) for t in terms(other, language)]
                    if any(counts):  # Suggestions must not reveal words from hidden groups.
                        similar.append((distance, -counts[0], other))
                if similar:
                    break
        return min(similar)[2] if similar else None

    def _is_visible_term(self, field: str, term: str, is_visible_group: Callable[[str], bool]) -> bool:
        for leaf, _ in self._leaves:
            groups, reader = leaf.reader().column_reader("group"), leaf.reader()
            if (field, term.encode()) in reader:
                ids = reader.postings(field, term.encode()).all_ids()
                if any(is_visible_group(groups[number].decode()) for number in ids):
                    return True
        return False

    def _run_query(
        self,
        whole: Any,
        statistics: Statistics,
        is_requested_group: Callable[[str], bool],
        limit: int,
        budget: Budget,
    ) -> Hits:
        counts: Counter[str] = Counter()
        best = _BestMatches(limit)
        # by a group's encoded name: (name, whether it is visible, whether it is requested)
        groups_seen: dict[bytes, tuple[str, bool, bool]] = {}
        weighting = VisibleBM25(statistics, LENGTH_WEIGHT, REPETITION_WEIGHT)
        context = self._searcher.context(weighting=weighting)
        for leaf, keys in self._leaves:
            groups = leaf.reader().column_reader("group")
            matcher = whole.matcher(leaf, context)
            while matcher.is_active():
                budget.spend(1)
                number = matcher.id()
                group = groups[number]
                seen = groups_seen.get(group)
                if seen is None:
                    name = group.decode()
                    seen = groups_seen[group] = (name, statistics.is_visible(group), is_requested_group(name))
                if seen[1]:
                    counts[seen[0]] += 1
                if seen[2]:
                    best.add(matcher.score(), keys, number)
                matcher.next()
        return Hits(best.hits(), counts)

    def _unknown_words(
        self,
        compiler: QueryCompiler,
        question: Question,
        languages: list[str],
        is_visible_group: Callable[[str], bool],
    ) -> tuple[str, ...]:
        found = []
        for clause in question.required:
            for i, word in enumerate(clause.words):
                is_prefix = clause.is_prefix and i == len(clause.words) - 1
                there = (
                    self._is_visible_term(f"text_{language}", term, is_visible_group)
                    for language in languages
                    for term in compiler.terms(word, language, is_prefix=is_prefix)
                )
                if not any(there):
                    found.append(word)
        return tuple(found)
