"""Sends random writes to both servers, in short conversations, and compares what documents hold after each.

A conversation starts from the state that was kept and ends at the first disagreement: what comes after
that would differ because of it. Each new disagreement is shown by as few steps as do show it.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.differential.causes import Example, Findings
from bench.differential.content import learn_one
from bench.differential.judging import Judge, Verdict
from bench.differential.looking import look
from bench.differential.model import LOCALES, Type
from bench.differential.request import Request, curl
from bench.differential.shrink import shrink
from bench.differential.world import World
from bench.differential.writes import AREAS, Write, Writes

_STEPS = 8  # of a conversation, at most
_ATTEMPTS = 12  # to make a write that shows a disagreement smaller


@dataclass(frozen=True, slots=True)
class Step:
    """A write that was sent, what its answers came to, and the reads that show what it changed."""

    write: Write
    verdict: Verdict
    shown: Request | None  # the read that shows the disagreement, where it is not the answer itself
    made: str | None  # the name of the document that it made
    lasting: bool = False  # whether documents hold something else from now on, as they are known to

    @property
    def agreed(self) -> bool:
        """Whether the next write starts from one state."""
        same = self.verdict.theirs.status == self.verdict.ours.status
        return same and not self.verdict.left and not self.lasting


class Writing:
    """The writes of one site."""

    def __init__(self, judge: Judge, world: World, findings: Findings) -> None:
        self._judge, self._base, self._findings = judge, world, findings
        shapes, seen = judge.shapes, look(judge, world, world.model.types.values())
        # What is derived from other documents may differ before anything was written.
        self._before = {shapes.difference(found) for verdict in seen for found in verdict.left}

    def run(self, seed: str, writes: int, areas: Sequence[str], only: Sequence[int] = ()) -> None:
        """Hold conversations until so many writes were sent, or those of some numbers alone."""
        sent, number = 0, 0
        weights = {area: AREAS[area] for area in areas}
        while number < len(only) if only else sent < writes:
            sent += self._converse(f"{seed}/write/{only[number] if only else number}", weights)
            number += 1

    def _converse(self, case: str, areas: Mapping[str, int]) -> int:
        """Hold one conversation; how many writes were sent."""
        self._judge.pair.reset()
        chance, world, steps = random.Random(case), self._base.copy(), list[Step]()
        writes = Writes(world, chance, f"c{case.rsplit('/', 1)[1]}-")
        for _ in range(_STEPS):
            write = writes.write(areas)
            if write is None:
                continue
            steps.append(self._send(world, write))
            step = steps[-1]
            area = f"write {write.area}"
            if step.verdict.left:
                self._note(area, case, steps)
            elif step.verdict.deviations:
                self._findings.deviate(area, step.verdict.deviations)
            else:
                self._findings.agree(area)
            if not step.agreed:
                break
        return max(len(steps), 1)

    def _send(self, world: World, write: Write, name: str | None = None) -> Step:
        """Send one write and look at what it changed; `name` is that of the document that it makes."""
        judge = self._judge
        verdict, made = judge.ask(write.request), None
        if not verdict.left and verdict.took:
            made = _took(judge, world, write, verdict, name)
        if verdict.left or verdict.theirs.status != verdict.ours.status:
            return Step(write, verdict, None, made)
        deviations = set(verdict.deviations)
        for seen in look(judge, world, _touched(world, write), write.request):
            left = [d for d in seen.left if judge.shapes.difference(d) not in self._before]
            if left:
                return Step(write, replace(seen, left=left), seen.request, made)
            deviations |= set(seen.deviations)
        lasting = bool(deviations & judge.lasting)
        return Step(write, replace(verdict, deviations=sorted(deviations)), None, made, lasting)

    def _replay(self, steps: Sequence[Step], last: Write) -> Step:
        """Send some steps again from the state that was kept, and then a write."""
        self._judge.pair.reset()
        world = self._base.copy()
        for step in steps:
            self._send(world, step.write, step.made)
        return self._send(world, last)

    def _note(self, area: str, case: str, steps: Sequence[Step]) -> None:
        """Note the disagreement that the last of some steps shows, with no more steps than needed."""
        *before, last = steps
        shape = self._shape(last)
        if shape not in self._findings.causes:
            before, last = self._shrink(before, last)
            shape = self._shape(last)
        names = self._judge.pair.ours.names
        commands = [curl(step.write.request, names) for step in (*before, last)]
        commands += [curl(last.shown, names)] if last.shown else []
        self._findings.disagree(area, shape, Example(case, commands, last.verdict))

    def _shape(self, step: Step) -> str:
        shapes = self._judge.shapes
        then = " then read" if step.shown else ""
        return f"{shapes.request(step.write.request)}{then} → {shapes.differences(step.verdict.left)}"

    def _shrink(self, before: list[Step], last: Step) -> tuple[list[Step], Step]:
        """Leave out steps, then parts of the last write, for as long as the same difference shows."""
        first = last.verdict.left[0]

        def again(steps: Sequence[Step], write: Write) -> Step | None:
            step = self._replay(steps, write)
            same = step.verdict.left and self._alike(step.verdict.left[0], first)
            return step if same and bool(step.shown) == bool(last.shown) else None

        for fewer in ([], *([s for s in before if s is not one] for one in reversed(before))):
            found = again(fewer, last.write) if len(fewer) < len(before) else None
            if found:
                before, last = list(fewer), found
                if not before:
                    break

        def shows(request: Request) -> bool:
            nonlocal last
            body = request.body.get("data", {}) if isinstance(request.body, dict) else {}
            smaller = replace(last.write, request=request, body=body if isinstance(body, dict) else {})
            found = again(before, smaller)
            last = found or last
            return found is not None

        shrink(last.write.request, shows, _ATTEMPTS)
        return before, last

    def _alike(self, one: object, other: object) -> bool:
        difference = self._judge.shapes.difference
        return difference(one) == difference(other)  # type: ignore[arg-type]


def _took(judge: Judge, world: World, write: Write, verdict: Verdict, name: str | None) -> str | None:
    """Take over what a write that both took has changed; the name of the document that it made."""
    if write.request.method == "DELETE":
        return None
    document = write.document or next(iter(world.of(write.type.uid) if write.type.single else []), None)
    made = None
    if document is None:
        document = world.add(write.type.uid, name)
        made = document.name
        judge.pair.theirs.names[f"doc:{made}"] = verdict.theirs.data["documentId"]
        judge.pair.ours.names[f"doc:{made}"] = verdict.ours.data["documentId"]
    query = dict(write.request.query)
    document.versions.add((query.get("locale", LOCALES[0]), query.get("status", "published")))
    document.said |= {
        name: value for name, value in write.body.items() if isinstance(value, str | int | float)
    }
    learn_one(judge.pair, write.type, document)
    return made


def _touched(world: World, write: Write) -> list[Type]:
    """The types whose documents a write may have changed."""
    types = {write.type.uid: write.type}
    for name, attribute in write.type.attributes.items():
        target = world.model.types.get(attribute.get("target", ""))
        if target and (name in write.body or write.request.method == "DELETE"):
            types[target.uid] = target
    return list(types.values())
