"""Queries that whoosh does not have: some of several, and in the positions of one attribute."""

from collections.abc import Sequence
from typing import Any

from whoosh import query
from whoosh.matching import mcore, wrappers

from server.search.whoosh_index.schema import REGION


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


class Within(query.WrappingQuery):  # type: ignore[misc]
    """Documents that another query finds in the positions of one attribute."""

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
