"""Term statistics and scores that do not depend on hidden versions."""

import heapq
from collections.abc import Callable, Iterable, Mapping
from math import log
from typing import Any

from whoosh import scoring

from server.index.budget import Budget

_LOG2_POSTINGS_PER_STEP = 3  # Reading the postings of 8 documents costs one step.


class Statistics:
    """Frequencies of terms in the visible groups of versions.

    `documents` maps each language to its number of visible versions.
    """

    def __init__(
        self,
        searcher: Any,
        is_visible_group: Callable[[str], bool],
        documents: Mapping[str, int],
        budget: Budget,
    ) -> None:
        self._searcher, self._counted, self.documents, self._budget = (
            searcher,
            is_visible_group,
            documents,
            budget,
        )
        self._total = max(sum(documents.values()), 1)
        # whether each group is visible; lists of words have no group and are never visible
        self._visible: dict[bytes, bool] = {b"": False}
        self._known: dict[tuple[str, str], tuple[int, float]] = {}

    def is_visible(self, group: bytes) -> bool:
        if group not in self._visible:
            self._visible[group] = self._counted(group.decode())
        return self._visible[group]

    def frequency(self, field: str, term: str) -> int:
        return self._of(field, term)[0]

    def most_frequent(self, field: str, terms: Iterable[str], limit: int) -> list[str]:
        reader, best = self._searcher.reader(), list[int]()
        counts: dict[str, int] = {}
        # A term's frequency in the whole index is an upper bound, so counting can stop early.
        for bound, term in sorted(((reader.doc_frequency(field, t), t) for t in terms), reverse=True):
            if len(best) == limit and bound < best[0]:
                break
            if count := self.frequency(field, term):
                counts[term] = count
                (heapq.heappush if len(best) < limit else heapq.heappushpop)(best, count)
        return sorted(counts, key=lambda term: (-counts[term], term))[:limit]

    def idf(self, field: str, term: str) -> float:
        return log(self._total / (self.frequency(field, term) + 1)) + 1

    def average_length(self, field: str, term: str) -> float:
        return self._of(field, term)[1]

    def _of(self, field: str, term: str) -> tuple[int, float]:
        key = field, term
        if key not in self._known:
            self._known[key] = self._count(field, term)
        return self._known[key]

    def _count(self, field: str, term: str) -> tuple[int, float]:
        count = length = 0
        for leaf, _ in self._searcher.leaf_searchers():
            reader, encoded = leaf.reader(), term.encode()
            if (field, encoded) not in reader:
                continue
            groups, scored = reader.column_reader("group"), reader.schema[field].scorable
            for number in reader.postings(field, encoded).all_ids():
                if self.is_visible(groups[number]):
                    count += 1
                    length += reader.doc_field_length(number, field) if scored else 1
        self._budget.spend(1 + (count >> _LOG2_POSTINGS_PER_STEP))
        return count, length / count if count else 1.0


class VisibleBM25(scoring.BM25F):  # type: ignore[misc]
    """BM25 scoring that counts only visible versions."""

    def __init__(self, statistics: Statistics, length_weight: float, repetition_weight: float) -> None:
        super().__init__(B=length_weight, K1=repetition_weight)
        self.statistics = statistics

    def scorer(self, searcher: Any, fieldname: str, text: Any, qf: int = 1) -> Any:
        made = super().scorer(searcher, fieldname, text, qf)
        if isinstance(made, scoring.BM25FScorer):
            term = text.decode() if isinstance(text, bytes) else text
            made.idf = self.statistics.idf(fieldname, term)
            made.avgfl = self.statistics.average_length(fieldname, term)
            made.setup(searcher, fieldname, text)
        return made
