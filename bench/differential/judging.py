"""Comparison of both servers' responses to a request, with one of five outcomes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.differential.checks import Context
from bench.differential.compare import Comparison
from bench.differential.deviations import Deviation, Retry, explain
from bench.differential.difference import WORDING, Difference
from bench.differential.pair import Pair
from bench.differential.request import Answer, Request
from bench.differential.shapes import Shapes
from bench.differential.world import World
from bench.peer.recording import NOT_RECORDED

EQUAL, BUT_WORDING, DECLARED, UNDECLARED = "equal", "wording", "declared", "undeclared"
UNRECORDED = "unrecorded"  # The recording contains no response, so nothing was compared.
OUTCOMES = (EQUAL, BUT_WORDING, DECLARED, UNDECLARED)
_REFERENCE = re.compile(r"«(doc:[^»]+)»")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for one request: both responses, and the declared deviations between them.

    - `found`: all differences.
    - `unexplained`: differences that no deviation explains.
    - `wording`: errors that differ only in wording.
    - `ignored_keys`: keys that were not compared.
    """

    request: Request
    theirs: Answer
    ours: Answer
    deviations: Sequence[str] = ()
    unexplained: Sequence[Difference] = ()
    wording: Sequence[Difference] = ()
    ignored_keys: Sequence[str] = ()
    found: Sequence[Difference] = ()

    @property
    def outcome(self) -> str:
        if self.theirs.status == NOT_RECORDED:
            return UNRECORDED
        if self.unexplained:
            return UNDECLARED
        if self.deviations:
            return DECLARED
        return BUT_WORDING if self.wording else EQUAL

    @property
    def took(self) -> bool:
        return self.theirs.status < 300 and self.ours.status < 300


class Judge:
    """Sender of requests to both servers, which compares the two responses."""

    def __init__(self, pair: Pair, world: World, deviations: Sequence[Deviation]) -> None:
        self.pair, self.shapes, self._deviations = pair, Shapes(world.model), deviations
        self._world = world
        self.permanent_deviations = {deviation.name for deviation in deviations if deviation.is_permanent}

    def ask(self, request: Request) -> Verdict:
        return self.compare(request, *self.pair.ask(request))

    def look(self, request: Request, write: Request | None = None) -> Verdict:
        """Read documents after a write, and compare them, ignoring their order."""
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
        """Compare the two responses to a request."""
        written = _REFERENCE.search(write.path) if write else None
        names = self.pair.theirs.names, self.pair.ours.names
        comparison = Comparison(*names, written[1] if written else "")
        found = comparison.differences(
            theirs, ours, unordered=unordered, cross_origin="Origin" in dict(request.headers)
        )
        aside = sorted(comparison.ignored_keys)
        if not found:
            return Verdict(request, theirs, ours, ignored_keys=aside)

        there, here = comparison.names()
        requests = [write, request] if write else [request]
        context = Context(requests, theirs, ours, self.shapes, self._world, here, there)
        explained, left = explain(self._deviations, found, context, self._asked_again(comparison, context))
        wording = [d for d in left if d.kind == WORDING]
        return Verdict(
            request, theirs, ours, explained, [d for d in left if d.kind != WORDING], wording, aside, found
        )

    def _asked_again(self, comparison: Comparison, context: Context) -> Retry:
        """Return a function that sends a changed request and compares the responses again."""

        def again(other: Request, *, both: bool) -> tuple[list[Difference], Context]:
            theirs = self.pair.theirs.ask(other) if both else context.theirs
            ours = self.pair.ours.ask(other)
            seen = replace(context, requests=[other], theirs=theirs, ours=ours)
            return comparison.differences(theirs, ours), seen

        return again
