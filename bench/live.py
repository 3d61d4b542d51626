"""Benchmark of the time from a change on disk until the server returns the new content."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench.effort import scaled
from bench.serving import Serving, bifolio, fetch
from bench.sites import Sizes, article_id, article_path, git
from bench.tables import count, ratio, show

EDITS = scaled(41)
CHECKOUTS = (scaled(2000, 10), scaled(20_000, 20))  # numbers of files that are different on the other branch
WAIT_S = 60.0
_COUNTED = "/api/articles?filters[summary][$startsWith]=Changed&pagination[pageSize]=1&fields[0]=slug"


def measure(root: Path, sizes: Sizes) -> list[list[str]]:
    """Return the rows for one site: edits in place, edits by rename, and git checkouts."""
    with bifolio(root) as serving:
        rows = []
        for name, write in (("edit in place", _in_place), ("edit by renaming", _renamed)):
            taken = sorted(_edit(serving, root, i, write) for i in range(EDITS))
            shown = f"{median(taken) * 1000:.0f} ms", f"{taken[-1] * 1000:.0f} ms"
            rows.append([f"{name}, {sizes.articles:,} articles", *shown, ""])
        git(root, "checkout", "--quiet", "--", ".")
        counts = sorted({min(count, sizes.articles) for count in CHECKOUTS})
        return [*rows, *(_checkout(serving, root, sizes, changed) for changed in counts)]


def print_table(rows: list[list[str]]) -> None:
    note = "For a checkout, the ratio compares this time with the time of the git command itself."
    show("Live: until a change on disk is served", ["change", "median", "longest", "ratio"], rows, note)


def _edit(serving: Serving, root: Path, i: int, write: Callable[[Path, str], None]) -> float:
    """Return how many seconds it takes until a response contains an edit."""
    title = f"Edited {i} by {write.__name__}"
    path = root / article_path(i)
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[1] = f"title: {title}"
    time.sleep(0.1)  # Wait until the previous edit has been processed completely.
    began = time.perf_counter()
    write(path, "\n".join(lines))
    target = f"/api/articles/{article_id(i)}?fields[0]=title"

    def arrived(answer: Any) -> bool:
        return bool(answer["data"]["title"] == title)

    _poll(serving, target, arrived)
    return time.perf_counter() - began


def _in_place(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _renamed(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _checkout(serving: Serving, root: Path, sizes: Sizes, changed: int) -> list[str]:
    """Measure `git checkout` of a branch on which many files are different."""
    _make_branch(root, changed)
    time.sleep(2.0)  # Wait until the server has detected the new branch.
    states: set[int] = set()

    def arrived(answer: Any) -> bool:
        states.add(answer["meta"]["pagination"]["total"])
        return max(states) == changed

    took: list[float] = []
    command = threading.Thread(target=lambda: took.append(_timed_checkout(root)))
    began = time.perf_counter()
    command.start()
    _poll(serving, _COUNTED, arrived)
    served = time.perf_counter() - began
    command.join()
    git(root, "checkout", "--quiet", "main")
    git(root, "branch", "--quiet", "-D", "changed")
    seen = "all or nothing" if states <= {0, changed} else f"{len(states)} states"
    name = f"git checkout of {count(changed)} changed files, of {count(sizes.articles)} ({seen} seen)"
    return [name, f"{served * 1000:.0f} ms", "", ratio(served / took[0])]


def _timed_checkout(root: Path) -> float:
    began = time.perf_counter()
    git(root, "checkout", "--quiet", "changed")
    return time.perf_counter() - began


def _make_branch(root: Path, changed: int) -> None:
    git(root, "checkout", "--quiet", "-b", "changed")
    for i in range(changed):
        path = root / article_path(i)
        text = path.read_text(encoding="utf-8").replace("\nsummary: ", "\nsummary: Changed. ", 1)
        path.write_text(text, encoding="utf-8")
    git(root, "commit", "--quiet", "--all", "--message", "changed")
    git(root, "checkout", "--quiet", "main")


def _poll(
    serving: Serving, path: str, arrived: Callable[[dict[str, dict[str, dict[str, int]]]], bool]
) -> None:
    """Repeat a request until `arrived` accepts the response. Raises RuntimeError after a timeout."""
    connection = serving.connect()
    deadline = time.monotonic() + WAIT_S
    while not arrived(json.loads(fetch(connection, path))):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{path} has not changed after {WAIT_S:.0f} s")
        time.sleep(0.001)
    connection.close()
