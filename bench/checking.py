"""Benchmark of `bifolio check`, and of `bifolio check --changed main` on a branch."""
# Each run is a new process, as in a pre-commit hook. The commands alternate, so the ratio is reliable even on
# a busy machine.

import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bench.sites import article_path, git, make_site
from bench.tables import ratio, show

CHANGED_DOCUMENTS = 20
_COMMANDS = {
    "check": [],
    "check --changed main": ["--changed", "main"],
}
_EMPTY_CACHE = "check --changed main, nothing cached"


def measure(root: Path, articles: int, rounds: int) -> None:
    """Create a site with a branch, and print the duration of each command."""
    make_site(root, articles)
    _make_branch(root, articles)
    _run(root, [])  # This fills the parse cache.
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in (*_COMMANDS, _EMPTY_CACHE)}
    for _ in range(rounds):
        for name, options in _COMMANDS.items():
            taken[name].append(_run(root, options))
    for _ in range(max(1, rounds // 3)):
        shutil.rmtree(root / ".bifolio", ignore_errors=True)
        taken[_EMPTY_CACHE].append(_run(root, ["--changed", "main"]))
    whole = median(wall for wall, _ in taken["check"])
    rows = []
    for name, times in taken.items():
        wall, cpu = (median(one[i] for one in times) for i in (0, 1))
        rows.append([name, f"{wall:.2f} s", f"{cpu:.2f} s", ratio(wall / whole)])
    title = f"Checking {articles:,} articles; a branch changes {CHANGED_DOCUMENTS} of them"
    show(title, ["command", "time", "processor time", "of a whole check"], rows)


def _make_branch(root: Path, articles: int) -> None:
    """Change, rename and delete articles on a branch."""
    git(root, "checkout", "-q", "-b", "topic")
    for i in range(min(CHANGED_DOCUMENTS, articles - 2)):
        path = root / article_path(i)
        target = os.path.relpath(root / article_path(i + 1), path.parent)
        path.write_text(f"{path.read_text()}\nSee [the next]({target}) and [a lost one](lost-{i}.md).\n")
    last = root / article_path(articles - 1)
    last.rename(last.with_name("renamed.md"))
    (root / article_path(articles - 2)).unlink()
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "topic")


def _run(root: Path, options: list[str]) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "server", "check", "--site", str(root), "--format", "json", *options]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
