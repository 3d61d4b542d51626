"""Benchmark of whole sites of different sizes: starts, memory, searches, and a change to a content type."""
# How long libyaml takes shows how fast the machine is. Memory is the proportional set size (PSS). Everything
# is read from /proc, so this needs Linux.

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import median
from urllib.parse import quote

import yaml

from bench.effort import scaled, scaled_seconds
from bench.serving import Serving, bifolio
from bench.sites import WORDS
from bench.tables import show, size

WORKERS = 2
SEARCHES = scaled(12)  # number of searches of each kind, after a warm-up search
# If the server has used no processor time for this long, its background work is finished.
QUIET_S = scaled_seconds(4)
LONGEST_CHANGE_S = 300.0
TICKS = os.sysconf("SC_CLK_TCK")
LIST = "/api/articles?fields=title"

Cells = dict[str, str]  # measurements by name


def measure(sites: Mapping[int, Path]) -> None:
    columns = [_measure_site(root) for root in sites.values()]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    show("Sites of several sizes", ["articles", *(f"{articles:,}" for articles in sites)], rows)


def _measure_site(root: Path) -> Cells:
    shutil.rmtree(root / ".bifolio", ignore_errors=True)
    cells = {"libyaml loads the front matter, CPU time": f"{_load_front_matter(root):.2f} s"}
    for kind in ("cold", "warm"):
        seconds, used = _start(root)
        cells[f"a {kind} start, until the first response"] = f"{seconds:.1f} s"
        cells[f"a {kind} start, CPU time of all processes"] = f"{used:.1f} s"
    with bifolio(root, workers=WORKERS) as serving:
        return cells | _use(serving) | _change(serving, root / "content-types/article.json")


def _load_front_matter(root: Path) -> float:
    before = time.process_time()
    for path in (root / "content").rglob("*.md"):
        yaml.load(path.read_text().split("---\n", 2)[1], yaml.CSafeLoader)
    return time.process_time() - before


def _start(root: Path) -> tuple[float, float]:
    began = time.perf_counter()
    with bifolio(root, workers=WORKERS) as serving:
        serving.get(LIST)
        return time.perf_counter() - began, _cpu(serving.pid)


def _use(serving: Serving) -> Cells:
    _rest(serving)
    memory = {"memory of all processes after a warm start": _memory(serving)}
    for query in ("filters[body][$contains]=glass%20gauge", "_q=sand%20sway", "sort=title"):
        serving.get(f"{LIST}&{query}")
    memory["… after one `$contains`, one `_q` and one sort by title"] = _memory(serving)
    pairs = [f"{one} {other}" for one, other in zip(WORDS, WORDS[7:], strict=False)]
    kinds: dict[str, tuple[str, Iterable[str]]] = {
        "`$contains` in the body, two words": ("filters[body][$contains]", reversed(pairs)),
        "`$containsi` in the body, two words": ("filters[body][$containsi]", pairs),
        "`_q`, two words": ("_q", pairs),
        "`_q`, a word in nearly all articles": ("_q", WORDS),
        "`_q`, no matches": ("_q", (f"{word} {word}x" for word in WORDS)),
    }
    searches = {}
    for name, (parameter, texts) in kinds.items():
        asked = [f"{LIST}&{quote(parameter)}={quote(text)}" for text in texts][: SEARCHES + 1]
        taken = [_cpu_of(serving, lambda: serving.get(path)) for path in asked][1:]  # noqa: B023
        searches[name] = f"{median(taken) * 1000:.0f} ms"
    memory[f"… after {len(kinds) * (SEARCHES + 1)} searches"] = _memory(serving)
    return searches | memory


def _change(serving: Serving, path: Path) -> Cells:
    """Add an attribute to articles, and wait until all workers serve it."""
    text = path.read_text()
    changed = json.loads(text)
    changed["attributes"]["added"] = {"type": "string"}
    used, began = _cpu(serving.pid), time.perf_counter()
    path.write_text(json.dumps(changed))
    try:
        while not all(b'"added"' in serving.get("/api/articles?pagination[pageSize]=1") for _ in range(20)):
            if time.perf_counter() - began > LONGEST_CHANGE_S:
                raise RuntimeError("the change of a content type was not taken over")
            time.sleep(0.1)
        seconds = time.perf_counter() - began
        _rest(serving)
        return {
            "a content type changes, until all workers use it": f"{seconds:.1f} s",
            "… CPU time of all processes": f"{_cpu(serving.pid) - used:.1f} s",
            "… memory of all processes": _memory(serving),
        }
    finally:
        path.write_text(text)


def _rest(serving: Serving) -> None:
    time.sleep(QUIET_S)
    while len(_processes(serving.pid)) > 2 + WORKERS:
        time.sleep(0.1)


def _memory(serving: Serving) -> str:
    return size(sum(_numbers(f"/proc/{pid}/smaps_rollup")["Pss"] for pid in _processes(serving.pid)) * 1024)


def _numbers(path: str) -> dict[str, int]:
    lines = Path(path).read_text().splitlines()[1:]
    return {name: int(rest.split()[0]) for name, rest in (line.split(":") for line in lines)}


def _processes(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(other for child in children for other in _processes(int(child)))]


def _cpu(pid: int) -> float:
    return sum(sum(_ticks(one)) for one in _processes(pid)) / TICKS


def _ticks(pid: int) -> list[int]:
    return [int(field) for field in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]]


def _cpu_of(serving: Serving, work: Callable[[], object]) -> float:
    """Do some work, and return how many seconds of processor time the server's threads used for it."""

    def used() -> int:
        found = 0
        for pid in _processes(serving.pid):
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += int((task / "schedstat").read_text().split()[0])
        return found

    before = used()
    work()
    return (used() - before) / 1e9
