"""Benchmark of loading files into an index, compared with a baseline."""

import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import frontmatter

from bench.tables import count, ratio, show
from server.config.reader import read_settings
from server.documents.document import Document
from server.index.snapshot import build
from server.schema.load import read_content_types
from server.service.opening import Mode, open_site
from server.site.check.survey import survey
from server.site.site import Site
from server.storage.files import walk
from server.storage.git.times import read_times
from server.storage.store import Store

CHUNK = 250  # number of documents after which it is the other reader's turn


@dataclass(frozen=True)
class Step:
    """One step of loading, with the rates of Bifolio and the baseline in documents per second."""

    name: str
    rate: float
    baseline: str = ""
    baseline_rate: float = 0.0


def measure(root: Path) -> list[Step]:
    """Return the steps of loading one site, each timed separately."""
    store = _store(root)
    files = sorted(walk(root, store.layout.roots).files)
    n = len(files)
    reading, plain, documents = _read_side_by_side(root, store, files)
    walking = _seconds(lambda: walk(root, store.layout.roots))
    log = _seconds(lambda: subprocess.run(_LOG, cwd=root, capture_output=True, check=True))
    history = _seconds(lambda: read_times(root))
    building = _seconds(lambda: build(store.schema, documents))
    state = root / ".bifolio"
    fresh = _seconds(lambda: Site(root).load(), before=lambda: shutil.rmtree(state, ignore_errors=True))
    again = _seconds(lambda: Site(root).load())
    checking = _seconds(lambda: survey(root, lambda: open_site(root, Mode.READ).site))
    stats = _seconds(lambda: [path.stat() for path in root.joinpath("content").rglob("*")])
    return [
        Step("read documents (one core)", n / reading, "python-frontmatter with libyaml", n / plain),
        Step("walk", n / walking, "pathlib rglob and stat", n / stats),
        Step("git history", n / history, "git log alone", n / log),
        Step("build the index", n / building),
        Step("whole load, nothing cached", n / fresh),
        Step("whole load, all cached", n / again),
        Step("bifolio check", n / checking),
    ]


_LOG = ["git", "log", "-c", "--no-renames", "-z", "--name-only", "--format=%ct", "HEAD"]


def print_table(measured: dict[int, list[Step]]) -> None:
    """Print a table for each size of site, and one that shows how the rates change with the size."""
    first = next(iter(measured.values()))
    for articles, steps in measured.items():
        rows = []
        for step, small in zip(steps, first, strict=True):
            compared = ""
            if step.baseline:
                compared = (
                    f"{ratio(step.rate / step.baseline_rate)} {step.baseline} ({count(step.baseline_rate)})"
                )
            rows.append([step.name, count(step.rate), ratio(step.rate / small.rate), compared])
        head = ["step", "documents/s", "ratio to the smallest site", "ratio to a simpler alternative"]
        show(f"Loading, {articles:,} articles", head, rows)


def _store(root: Path) -> Store:
    history = read_times(root)
    return Store(root, read_content_types(root), read_settings(root), history.timestamps)


def _read_side_by_side(root: Path, store: Store, files: list[str]) -> tuple[float, float, list[Document]]:
    """Read the same files alternately with Bifolio's reader and a plain reader. Return the seconds that each
    takes, and the documents.
    """
    ours = plain = 0.0
    documents = []
    for start in range(0, len(files), CHUNK):
        part = files[start : start + CHUNK]
        began = time.perf_counter()
        entries = [store.read(path) for path in part]
        between = time.perf_counter()
        for path in part:
            frontmatter.parse((root / path).read_text(encoding="utf-8"))
        plain += time.perf_counter() - between
        ours += between - began
        documents += [entry.document for entry in entries if entry and entry.document]
    return ours, plain, documents


def _seconds(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    # Repeat the run only if it is fast.
    taken: list[float] = []
    while len(taken) < 3 and sum(taken) < 1.5:
        before()
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return median(taken)
