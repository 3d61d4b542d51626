"""`python -m bench.differential` (`make peer-diff`): sends the same random requests to Bifolio and Strapi.

1. Both servers get the same content types and documents.
2. Random reads are sent, and the responses are compared.
3. Random writes are sent in short conversations. Each conversation starts from the initial state. After each
   write, the stored documents are compared, too.

The output shows how often the responses are equal in each area, and lists each cause of a difference once.
Each request depends only on the seed and the request's number. The first run takes minutes, because npm has
to install Strapi in a cache folder.
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
from bench.differential.deviations import Deviation, read_deviations, read_rows
from bench.differential.filing import AREAS as UPLOAD_AREAS
from bench.differential.filing import Filing
from bench.differential.granting import grants
from bench.differential.judging import Judge
from bench.differential.looking import settle
from bench.differential.model import read_model
from bench.differential.pair import Pair
from bench.differential.peers import Peer, Recorded, Strapi
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
from bench.peer.recording import Recording

BEGAN = time.perf_counter()
# After changes to Bifolio, this many requests may be missing from the recording.
MOST_UNRECORDED = 20
FLOORS = Path(__file__).parent / "floors.json"


def main() -> int:
    """Run the command and return its exit status."""
    options = _parser().parse_args()
    if not options.replay and not node():
        print("peer-diff: SKIPPED, there is no Node.js with npm on this machine")
        return 0
    findings, deviations = Findings(), read_deviations()
    with tempfile.TemporaryDirectory(prefix="bifolio-differential-") as folder:
        for name in options.site or DEFAULT:
            _run(Path(folder), name, options, findings, deviations)
            if options.causes:  # The report is written after each site, because a run takes a long time.
                options.causes.write_text(report.causes_text(findings), encoding="utf-8")
    return _report(options, findings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.differential", description=__doc__)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--reads", type=int, default=1000, help="number of reads on all sites together")
    parser.add_argument("--writes", type=int, default=300, help="number of writes on all sites together")
    parser.add_argument("--documents", type=int, default=10, help="number of documents per content type")
    parser.add_argument(
        "--area", action="append", help="test only areas with this name or word (can be repeated)"
    )
    parser.add_argument("--site", action="append", help=f"test only this site: {', '.join(SITES)}, random-N")
    parser.add_argument(
        "--case", type=int, action="append", help="run only the read or conversation with this number"
    )
    parser.add_argument(
        "--causes", type=Path, help="write an example of each difference, declared or not, to this file"
    )
    parser.add_argument(
        "--replay", type=Path, help="use the recorded responses in this file instead of running Strapi"
    )
    parser.add_argument("--record", type=Path, help="write Strapi's responses for one site to this file")
    parser.add_argument("--most", type=int, default=30, help="maximum number of causes to print")
    return parser


def _run(
    folder: Path,
    name: str,
    options: argparse.Namespace,
    findings: Findings,
    deviations: Sequence[Deviation],
) -> None:
    """Fill both servers with the documents of one site, and send its requests."""
    types = make_types(folder / f"{name}-types", name)
    model, seed = read_model(types), f"{options.seed}/{name}"
    world = World(model)
    given, recording = grants(model, name), Recording() if options.record else None
    work = folder / name
    peer: Peer
    if options.replay:
        peer = Recorded(options.replay, given)
    else:
        peer = Strapi(install_strapi(), types, given, work, recording)
    pair = Pair(peer, types, model, given, work)
    try:
        pair.start()
        _say(f"{name}: filling")
        judge = Judge(pair, world, deviations)
        _fill(judge, world, seed, options.documents, findings)
        _say(f"{name}: {len(world.documents)} documents")
        pair.keep()
        share, shrinking = len(options.site or DEFAULT), not (options.record or options.replay)
        reads = [area for area in AREAS if _chosen(f"read {area}", options.area)]
        numbers = options.case or range(options.reads // share if reads else 0)
        _say(f"{name}: {len(numbers)} reads")
        Reading(judge, world, findings, shrinking=shrinking).run(seed, numbers, reads)
        _converse(
            Writing(judge, world, findings, shrinking=shrinking), seed, options, options.writes // share
        )
    finally:
        pair.stop()
    if recording is not None:
        recording.write(options.record)


def _converse(writing: Writing, seed: str, options: argparse.Namespace, writes: int) -> None:
    """Send conversations of writes until enough requests have been sent."""
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
    return not asked or area in asked or any(word in asked for word in area.split())


def _fill(judge: Judge, world: World, seed: str, documents: int, findings: Findings) -> None:
    """Create the documents of a site. The report lists these writes as a separate area."""
    pair, area = judge.pair, "fill"
    for number, (request, theirs, ours) in enumerate(
        fill(pair, world, random.Random(f"{seed}/fill"), documents)
    ):
        note(findings, area, f"{seed}/fill/{number}", judge, judge.compare(request, theirs, ours))
    for verdict in settle(judge, world):
        note(findings, area, f"{seed}/fill", judge, verdict)
    learn(pair, world)


def _report(options: argparse.Namespace, findings: Findings) -> int:
    """Print the report and return the exit status."""
    floors = json.loads(FLOORS.read_bytes())
    for number, cause in enumerate(report.ranked(findings.causes)[: options.most], 1):
        print(report.cause_text(cause, number))
    print("Errors that differ only in wording (Strapi ≠ Bifolio):")
    print("\n".join(report.wording_lines(findings, options.most)))
    report.print_rows(findings, read_rows())
    report.print_outcomes(findings, floors)
    few = report.below(findings, floors)
    if findings.unrecorded > MOST_UNRECORDED:
        print("peer-diff: the recording has no answers to these requests: record it again (--record)")
        return 1
    if few:
        print(
            f"peer-diff: FAILED: too few equal responses: {', '.join(few)} "
            "(minimums: bench/differential/floors.json)"
        )
    return 1 if few else 0


def _say(what: str) -> None:
    print(f"{time.perf_counter() - BEGAN:4.0f} s  {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
