"""Asks both servers the same and says whether they agree, differ as they are known to, or disagree."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bench.differential.compare import Comparison, Difference
from bench.differential.deviations import Deviation, explain
from bench.differential.model import Model
from bench.differential.pair import Pair
from bench.differential.request import Answer, Request
from bench.differential.shapes import Shapes

_REFERENCE = re.compile(r"«(doc:[^»]+)»")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Two answers to a request: the deviations that they show, and what is left that none explains."""

    request: Request
    theirs: Answer
    ours: Answer
    deviations: Sequence[str]
    left: Sequence[Difference]

    @property
    def same(self) -> bool:
        """Whether the answers say the same."""
        return not self.left and not self.deviations

    @property
    def took(self) -> bool:
        """Whether both servers did what the request says."""
        return self.theirs.status < 300 and self.ours.status < 300


class Judge:
    """Compares the answers of one pair of servers."""

    def __init__(self, pair: Pair, model: Model, deviations: Sequence[Deviation]) -> None:
        self.pair, self.shapes, self._deviations = pair, Shapes(model), deviations
        self.lasting = {deviation.name for deviation in deviations if deviation.lasting}

    def ask(self, request: Request) -> Verdict:
        """Send a request to both."""
        return self.compare(request, *self.pair.ask(request))

    def look(self, request: Request, write: Request | None = None) -> Verdict:
        """Ask both what documents hold, after a write; the order of the list that answers means nothing."""
        return self.compare(request, *self.pair.ask(request), write=write, unordered=True)

    def compare(
        self,
        request: Request,
        theirs: Answer,
        ours: Answer,
        *,
        write: Request | None = None,
        unordered: bool = False,
    ) -> Verdict:
        """What two answers to a request come to."""
        written = _REFERENCE.search(write.path) if write else None
        names = self.pair.theirs.names, self.pair.ours.names
        comparison = Comparison(*names, written[1] if written else "")
        found = comparison.differences(theirs, ours, unordered=unordered)
        if not found:
            return Verdict(request, theirs, ours, (), ())

        def same(other: Request) -> bool:
            if request.method != "GET":
                return False
            left = comparison.differences(theirs, self.pair.ours.ask(other), unordered=unordered)
            return not explain(self._deviations, [other], left, self.shapes, lambda _: False)[1]

        requests = [write, request] if write else [request]
        explained, left = explain(self._deviations, requests, found, self.shapes, same)
        return Verdict(request, theirs, ours, explained, left)
