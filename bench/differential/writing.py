"""Conversations: short sequences of writes to both servers, after which the documents are compared."""
# A conversation ends at its first difference, because that would cause further differences.

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.differential.causes import Example, Findings
from bench.differential.judging import Judge, Verdict
from bench.differential.looking import look
from bench.differential.reading import shape_of
from bench.differential.request import Answer, Request, curl
from bench.differential.shrink import shrink
from bench.differential.steps import Maker, Step
from bench.differential.values import Chance
from bench.differential.world import World
from tests.conformance.compare import dig

_STEPS = 8  # maximum number of steps in one conversation
_ATTEMPTS = 12  # maximum number of attempts to make a step smaller
Make = Callable[[World, Chance, str], Maker]


@dataclass(frozen=True, slots=True)
class SentStep:
    """A step that was sent, with the verdict on its response or on the reads after it."""

    step: Step
    verdict: Verdict
    # the read request that reveals the difference, if the response to the step does not
    shown: Request | None = None
    lasting: bool = False  # whether stored documents differ from now on

    @property
    def agreed(self) -> bool:
        same = self.verdict.theirs.status == self.verdict.ours.status
        return same and not self.verdict.unexplained and not self.lasting


class Writing:
    """Conversations (short sequences of writes) about one site."""

    def __init__(self, judge: Judge, world: World, findings: Findings, *, shrinking: bool = True) -> None:
        self._judge, self._base, self._findings = judge, world, findings
        self._shrinking = shrinking
        # differences that existed before, and are therefore not effects of a write
        self._before = {
            (verdict.request, *found.key()) for verdict in look(judge, world) for found in verdict.found
        }

    def run(
        self, seed: str, steps: int, make: Make, areas: Mapping[str, int], only: Sequence[int] = ()
    ) -> None:
        """Run conversations until `steps` steps have been sent, or only the conversations whose numbers are
        in `only`.
        """
        sent, number = 0, 0
        while number < len(only) if only else sent < steps:
            sent += self._converse(f"{seed}/{only[number] if only else number}", make, areas)
            number += 1

    def _converse(self, case: str, make: Make, areas: Mapping[str, int]) -> int:
        """Run one conversation and return the number of steps."""
        self._judge.pair.reset(case)
        maker = make(self._base.copy(), random.Random(case), f"c{case.rsplit('/', 1)[1]}-")
        sent: list[SentStep] = []
        for _ in range(_STEPS):
            step = maker.step(areas)
            if step is None:
                continue
            sent.append(self._send(step))
            last = sent[-1]
            self._note(step.area, case, sent)
            if not last.agreed:
                break
            if last.verdict.took:
                step.done()
        return max(len(sent), 1)

    def _send(self, step: Step) -> SentStep:
        """Send one step, and then read the documents that the step changed."""
        judge = self._judge
        verdict = judge.ask(step.request)
        if verdict.took:
            for name, where in step.captures.items():
                self._learn(name, where, verdict.theirs, verdict.ours)
            for request, name, where in step.learns:
                self._learn(name, where, *judge.pair.ask(request))
        if verdict.unexplained or verdict.theirs.status != verdict.ours.status:
            return SentStep(step, verdict)
        deviations = set(verdict.deviations)
        for look_at in step.looks:
            seen = judge.look(look_at, step.request)
            new = [d for d in seen.found if (look_at, *d.key()) not in self._before]
            left = [d for d in seen.unexplained if d in new]
            if left:
                return SentStep(step, replace(seen, unexplained=left), look_at)
            deviations |= set(seen.deviations if new else ())
        lasting = bool(deviations & judge.permanent_deviations)
        return SentStep(step, replace(verdict, deviations=sorted(deviations)), None, lasting)

    def _learn(self, name: str, where: str, theirs: Answer, ours: Answer) -> None:
        pair = self._judge.pair
        for server, answer in ((pair.theirs, theirs), (pair.ours, ours)):
            value = dig(answer.body, where, None)
            if value is not None:
                server.names[name] = value

    def _replay(self, steps: Sequence[Step], last: Step) -> SentStep:
        self._judge.pair.reset("shrinking")
        for step in steps:
            self._send(step)
        return self._send(last)

    def _note(self, area: str, case: str, sent: Sequence[SentStep]) -> None:
        # A new difference is reduced to the steps that reproduce it.
        before, last = [one.step for one in sent[:-1]], sent[-1]
        if self._shrinking and last.verdict.unexplained and self._shape(last) not in self._findings.causes:
            before, last = self._shrink(before, last)
        names = self._judge.pair.ours.names
        commands = [curl(step.request, names) for step in (*before, last.step)]
        commands += [curl(last.shown, names)] if last.shown else []
        self._findings.note(area, self._shape(last), Example(case, commands, last.verdict))

    def _shape(self, sent: SentStep) -> str:
        return shape_of(self._judge, sent.verdict, sent.step.request if sent.shown else None)

    def _shrink(self, before: list[Step], last: SentStep) -> tuple[list[Step], SentStep]:
        """Remove steps, and parts of the last step, as long as the difference remains."""
        first = last

        def again(steps: Sequence[Step], step: Step) -> SentStep | None:
            sent = self._replay(steps, step)
            same = bool(sent.shown) == bool(first.shown) and self._told(sent) == self._told(first)
            return sent if same else None

        for fewer in ([], *([s for s in before if s is not one] for one in reversed(before))):
            found = again(fewer, last.step) if len(fewer) < len(before) else None
            if found:
                before, last = list(fewer), found
                if not before:
                    break

        def shows(request: Request) -> bool:
            nonlocal last
            found = again(before, replace(last.step, request=request))
            last = found or last
            return found is not None

        shrink(last.step.request, shows, _ATTEMPTS)
        return before, last

    def _told(self, sent: SentStep) -> str:
        left, request = sent.verdict.unexplained, sent.verdict.request
        return self._judge.shapes.difference(left[0], request) if left else ""
