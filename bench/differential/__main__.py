"""`python -m bench.differential` (`make peer-diff`): the same random requests to Quire and to Strapi.

Both get the same content types and the same documents, then random reads, then random writes in short
conversations that each start from that state; after each write, what the documents now hold is
compared as well. Every request is made from the seed and its number alone. It prints how often the
answers agree, by area, and each cause of disagreement once. The first run takes minutes, since npm
installs; what it installs is kept in a cache folder.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.differential import report
from bench.differential.causes import Findings
from bench.differential.content import fill, learn
from bench.differential.deviations import read_deviations
from bench.differential.filing import AREAS as UPLOAD_AREAS
from bench.differential.filing import Filing
from bench.differential.judging import Judge
from bench.differential.looking import settle
from bench.differential.model import read_model
from bench.differential.pair import Pair
from bench.differential.people import AREAS as PEOPLE_AREAS
from bench.differential.people import People
from bench.differential.reading import Reading, note
from bench.differential.reads import AREAS
from bench.differential.sites import DEFAULT, SITES, make_types
from bench.differential.world import World
from bench.differential.writes import AREAS as WRITE_AREAS
from bench.differential.writes import Writes
from bench.differential.writing import Make, Writing
from bench.peer.install import install_strapi, node

BEGAN = time.perf_counter()
FLOORS = Path(__file__).parent / "floors.json"


def main() -> int:
    """Run what the command line asks for; the exit status."""
    options = _parser().parse_args()
    if not node():
        print("peer-diff: SKIPPED, there is no Node.js with npm on this machine")
        return 0
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="quire-differential-") as folder:
        for name in options.site or DEFAULT:
            _run(Path(folder), name, options, findings)
    return _report(options, findings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.differential", description=__doc__)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--reads", type=int, default=1000, help="how many, over all sites")
    parser.add_argument("--writes", type=int, default=300, help="how many, over all sites")
    parser.add_argument("--documents", type=int, default=10, help="of each content type")
    parser.add_argument("--area", action="append", help="these areas alone, by a word of their name")
    parser.add_argument("--site", action="append", help=f"these sites alone: {', '.join(SITES)}, random-N")
    parser.add_argument("--case", type=int, action="append", help="the requests of these numbers alone")
    parser.add_argument("--causes", type=Path, help="a file to append the causes to, as Markdown")
    parser.add_argument("--most", type=int, default=30, help="how many causes to print")
    return parser


def _run(folder: Path, name: str, options: argparse.Namespace, findings: Findings) -> None:
    """Fill one site, and send it its share of the requests."""
    types = make_types(folder / f"{name}-types", name)
    model, seed = read_model(types), f"{options.seed}/{name}"
    world = World(model)
    pair = Pair(install_strapi(), types, model, folder / name)
    try:
        pair.start()
        _say(f"{name}: filling")
        judge = Judge(pair, model, read_deviations())
        _fill(judge, world, seed, options.documents, findings)
        _say(f"{name}: {len(world.documents)} documents")
        pair.keep()
        share = len(options.site or DEFAULT)
        reads = [area for area in AREAS if _chosen(f"read {area}", options.area)]
        numbers = options.case or range(options.reads // share if reads else 0)
        _say(f"{name}: {len(numbers)} reads")
        Reading(judge, world, findings).run(seed, numbers, reads)
        _converse(Writing(judge, world, findings), seed, options, options.writes // share)
    finally:
        pair.stop()


def _converse(writing: Writing, seed: str, options: argparse.Namespace, writes: int) -> None:
    """Hold the conversations of one site: so many requests in all, by the weights of the areas."""
    makers: list[tuple[str, Make, Mapping[str, int]]] = [
        ("write", Writes, WRITE_AREAS),
        ("people", People, PEOPLE_AREAS),
        ("upload", Filing, UPLOAD_AREAS),
    ]
    chosen = [
        (kind, make, {area: weight for area, weight in areas.items() if _chosen(area, options.area)})
        for kind, make, areas in makers
    ]
    total = sum(weight for _, _, areas in chosen for weight in areas.values())
    for kind, make, areas in chosen:
        steps = writes * sum(areas.values()) // max(total, 1)
        if steps or (areas and options.case):
            _say(f"{seed}: {steps} steps of {kind}")
            writing.run(f"{seed}/{kind}", steps, make, areas, options.case or ())


def _chosen(area: str, asked: Sequence[str] | None) -> bool:
    """Whether an area is one of those that were asked for, by its name or a word of it."""
    return not asked or area in asked or any(word in asked for word in area.split())


def _fill(judge: Judge, world: World, seed: str, documents: int, findings: Findings) -> None:
    """Make the documents of a site; the answers to that count as an area of their own."""
    pair, area = judge.pair, "fill"
    for number, (request, theirs, ours) in enumerate(
        fill(pair, world, random.Random(f"{seed}/fill"), documents)
    ):
        note(findings, area, f"{seed}/fill/{number}", judge, judge.compare(request, theirs, ours))
    for verdict in settle(judge, world):
        note(findings, area, f"{seed}/fill", judge, verdict)
    learn(pair, world)


def _report(options: argparse.Namespace, findings: Findings) -> int:
    """Print everything; the exit status."""
    floors = json.loads(FLOORS.read_bytes())
    causes = report.ranked(findings)
    for number, cause in enumerate(causes[: options.most], 1):
        print(report.cause_text(cause, number))
    if options.causes:
        with options.causes.open("a", encoding="utf-8") as file:
            file.write(f"# Seed {options.seed}, {time.strftime('%H:%M')}\n\n")
            file.writelines(f"{report.cause_text(cause, n)}\n" for n, cause in enumerate(causes, 1))
    report.print_agreement(findings, floors)
    report.print_deviations(findings)
    few = report.below(findings, floors)
    if few:
        print(f"peer-diff: below what is asked: {', '.join(few)}")
    return 1 if few else 0


def _say(what: str) -> None:
    """Tell whoever looks on; the report alone goes to standard output."""
    print(f"{time.perf_counter() - BEGAN:4.0f} s  {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
