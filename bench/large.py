"""A large site as a whole: starts, memory of all processes, new searches, and a content type that changes.

Two workers. Memory is the proportional set (PSS): what processes share counts once. It is read from
/proc, as the processor time is, so that this runs on Linux alone.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from urllib.parse import quote

from bench.effort import scaled, scaled_seconds
from bench.serving import Serving, quire
from bench.sites import WORDS
from bench.tables import count, ratio, show, size

WORKERS = 2
SEARCHES = scaled(12)  # of each kind, after one that looks at every document for the first time
QUIET_S = scaled_seconds(4)  # until what a server does after a start or a change is over
LONGEST_CHANGE_S = 300.0
TICKS = os.sysconf("SC_CLK_TCK")
LIST = "/api/articles?fields=title"

Row = list[str]


def measure(root: Path, articles: int) -> None:
    """Print everything of one site. Its parse cache is removed, and the type of its articles changed."""
    shutil.rmtree(root / ".quire", ignore_errors=True)
    starts = [_start(root, kind) for kind in ("cold", "warm")]
    show(f"Starting, {count(articles)} articles", ["start", "until it answers", "processor time"], starts)
    with quire(root, workers=WORKERS) as serving:
        searches, memory = _use(serving)
        change, after = _change(serving, root / "content-types/article.json")
    head = ["what nobody has asked before", "median", "longest"]
    show(f"Searching {count(articles)} articles, processor time", head, searches)
    show("Memory of all processes", ["after", "PSS", "the largest worker, resident"], [*memory, after])
    head = ["until", "time", "processor time of all", "PSS after it, of that before"]
    show("A content type that changes", head, [change])


def _start(root: Path, kind: str) -> Row:
    began = time.perf_counter()
    with quire(root, workers=WORKERS) as serving:
        serving.get(LIST)
        return [kind, f"{time.perf_counter() - began:.1f} s", f"{_cpu(serving.pid):.1f} s"]


def _use(serving: Serving) -> tuple[list[Row], list[Row]]:
    _rest(serving)
    memory = [["the start", *_memory(serving)]]
    for query in ("filters[body][$contains]=glass%20gauge", "_q=sand%20sway", "sort=title"):
        serving.get(f"{LIST}&{query}")
    memory.append(["one `$contains`, one `_q` and one sort by title", *_memory(serving)])
    pairs = [f"{one} {other}" for one, other in zip(WORDS, WORDS[7:], strict=False)]
    kinds: dict[str, tuple[str, Iterable[str]]] = {
        "`$contains` in the body, two words": ("filters[body][$contains]", reversed(pairs)),
        "`$containsi` in the body, two words": ("filters[body][$containsi]", pairs),
        "`_q`, two words": ("_q", pairs),
        "`_q`, one word": ("_q", WORDS),
        "`_q`, found nowhere": ("_q", (f"{word} {word}x" for word in WORDS)),
    }
    searches = []
    for name, (parameter, texts) in kinds.items():
        asked = [f"{LIST}&{quote(parameter)}={quote(text)}" for text in texts][: SEARCHES + 1]
        taken = [_cpu_of(serving, lambda: serving.get(path)) for path in asked][1:]  # noqa: B023
        searches.append([name, *(f"{seconds * 1000:.0f} ms" for seconds in (median(taken), max(taken)))])
    memory.append([f"{count(len(kinds) * (SEARCHES + 1))} searches", *_memory(serving)])
    return searches, memory


def _change(serving: Serving, path: Path) -> tuple[Row, Row]:
    """Add an attribute to the type of articles, and wait until all workers show it."""
    text = path.read_text()
    changed = json.loads(text)
    changed["attributes"]["added"] = {"type": "string"}
    had, used, began = _pss(serving), _cpu(serving.pid), time.perf_counter()
    path.write_text(json.dumps(changed))
    try:
        while not all(b'"added"' in serving.get("/api/articles?pagination[pageSize]=1") for _ in range(20)):
            if time.perf_counter() - began > LONGEST_CHANGE_S:
                raise RuntimeError("the change of a content type was not taken over")
            time.sleep(0.1)
        seconds = time.perf_counter() - began
        _rest(serving)
        row = ["all workers show it", f"{seconds:.1f} s", f"{_cpu(serving.pid) - used:.1f} s"]
        return [*row, ratio(_pss(serving) / had)], ["a content type has changed", *_memory(serving)]
    finally:
        path.write_text(text)


def _rest(serving: Serving) -> None:
    """Wait until what a server does beside its answers is over, for which it has other processes."""
    time.sleep(QUIET_S)
    while len(_processes(serving.pid)) > 2 + WORKERS:
        time.sleep(0.1)


def _memory(serving: Serving) -> list[str]:
    largest = max(_numbers(f"/proc/{pid}/smaps_rollup")["Rss"] for pid in _processes(serving.pid))
    return [size(_pss(serving)), size(largest * 1024)]


def _pss(serving: Serving) -> int:
    """The bytes of all processes, in which those that several share count once."""
    return sum(_numbers(f"/proc/{pid}/smaps_rollup")["Pss"] for pid in _processes(serving.pid)) * 1024


def _numbers(path: str) -> dict[str, int]:
    lines = Path(path).read_text().splitlines()[1:]
    return {name: int(rest.split()[0]) for name, rest in (line.split(":") for line in lines)}


def _processes(pid: int) -> list[int]:
    """A process and those below it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(other for child in children for other in _processes(int(child)))]


def _cpu(pid: int) -> float:
    """The processor seconds of a process and those below it, with those that have ended."""
    return sum(sum(_ticks(one)) for one in _processes(pid)) / TICKS


def _ticks(pid: int) -> list[int]:
    """What a process has used in itself and in the system, and what its children have that have ended."""
    return [int(field) for field in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]]


def _cpu_of(serving: Serving, work: Callable[[], object]) -> float:
    """The processor seconds of the threads of a server while some work is done."""

    def used() -> int:
        """Nanoseconds, which /proc has of each thread."""
        found = 0
        for pid in _processes(serving.pid):
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += int((task / "schedstat").read_text().split()[0])
        return found

    before = used()
    work()
    return (used() - before) / 1e9
