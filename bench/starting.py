"""Benchmark of the time from the start command to the first response, with and without caches."""

import shutil
import sys
import time
from pathlib import Path
from statistics import median

from bench.effort import scaled
from bench.serving import fetch, free_port, running
from bench.sites import Sizes, article_id
from bench.tables import count, show

STARTS = scaled(3, 1)


def measure(sites: dict[int, Path]) -> None:
    """Print the median duration of cold and warm starts."""
    rows = []
    for articles, root in sites.items():
        cold, warm = [], []
        for _ in range(STARTS):
            shutil.rmtree(root / ".bifolio", ignore_errors=True)
            cold.append(_start(root, articles))
            warm.append(_start(root, articles))
        rows.append([f"{count(articles)} articles", *(f"{median(taken):.2f} s" for taken in (cold, warm))])
    note = "Time until the first response. Disk reads are excluded, because the files were already cached."
    show("Starting", ["site", "cold", "warm"], rows, note)


def _start(root: Path, articles: int) -> float:
    port = free_port()
    command = [sys.executable, "-m", "server", "serve", "--site", str(root), "--port", str(port)]
    began = time.perf_counter()
    with running(command, port) as serving:
        connection = serving.connect()
        fetch(connection, f"/api/articles/{article_id(Sizes(articles).articles // 2)}")
        taken = time.perf_counter() - began
        connection.close()
    return taken
