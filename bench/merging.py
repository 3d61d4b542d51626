"""Benchmark of git's merge driver, and of `git merge` with and without it."""

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from statistics import median

from bench.effort import scaled
from bench.sites import article_path, git, make_site
from bench.tables import ratio, show
from server.tools.merge_driver.install import install

ARTICLES = scaled(250, 40)
MERGED = (1, scaled(20, 2), scaled(200, 3))  # numbers of articles that both branches changed
ROUNDS = scaled(3, 1)


def measure(folder: Path) -> None:
    """Print the median times of merges, in seconds."""
    make_site(folder, ARTICLES)
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    rows = []
    for count in MERGED:
        _change(folder, count)
        taken: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(ROUNDS):
            for driver in taken:
                taken[driver].append(_merge(folder, driver=driver))
        lines, documents = (median(taken[driver]) for driver in (False, True))
        each = (documents - lines) / count * 1000
        cells = [
            f"{lines * 1000:.0f} ms",
            f"{documents * 1000:.0f} ms",
            ratio(documents / lines),
            f"{each:.0f} ms",
        ]
        rows.append([f"{count} files", *cells])
    head = ["git merge", "by lines", "by attributes", "ratio", "per file"]
    show("Merge driver", head, rows, "git starts the driver once for each file that both branches changed.")


def _change(folder: Path, count: int) -> None:
    """On two branches, change the same articles: the start on one branch, and the end on the other."""
    (folder / ".gitattributes").unlink(missing_ok=True)
    git(folder, "checkout", "-qf", "-B", "ours")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "base")
    git(folder, "checkout", "-q", "-B", "theirs")
    for branch in ("theirs", "ours"):
        git(folder, "checkout", "-q", branch)
        for number in range(count):
            path = folder / article_path(number)
            text = path.read_text()
            changed = (
                f"{text}\nThe end.\n" if branch == "theirs" else text.replace("title: ", "title: New ", 1)
            )
            path.write_text(changed)
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", branch)


def _merge(folder: Path, *, driver: bool) -> float:
    """Merge the branches, undo the merge, and return how many seconds the merge took."""
    attributes = folder / ".git/info/attributes"
    if driver:
        install(folder)
        attributes.parent.mkdir(exist_ok=True)
        shutil.move(folder / ".gitattributes", attributes)
    else:
        attributes.unlink(missing_ok=True)
    began = time.perf_counter()
    subprocess.run(
        shlex.split("git -c user.name=B -c user.email=b@example.org merge -q theirs"),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    taken = time.perf_counter() - began
    git(folder, "reset", "-q", "--hard", "HEAD~1")
    return taken
