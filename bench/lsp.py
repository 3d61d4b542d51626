"""The language server: time until the first diagnostics, latency of completions while the site is being
checked, and memory.
"""

import shutil
import time
from pathlib import Path
from statistics import median

from bench.effort import scaled
from bench.sites import Sizes, article_path
from bench.tables import count, show
from tests.lsp.client import Client, language_server

STARTS = scaled(5, 1)
KEYSTROKES = scaled(300, 10)
PAUSE_S = 0.05  # between two keystrokes of somebody who types fast


def measure(sites: dict[int, Path]) -> None:
    """Print the measurements of each site."""
    rows = []
    for articles, root in sites.items():
        shutil.rmtree(root / ".bifolio", ignore_errors=True)
        cold = _start(root, articles)
        warm = median(_start(root, articles) for _ in range(STARTS))
        taken, megabytes = _type(root, articles)
        taken.sort()
        p99 = taken[min(int(len(taken) * 0.99), len(taken) - 1)]
        times = (f"{cold:.2f} s", f"{warm:.2f} s", f"{median(taken) * 1000:.1f} ms", f"{p99 * 1000:.1f} ms")
        rows.append([f"{count(articles)} articles", *times, f"{megabytes:.0f} MB"])
    note = (
        "From the start of the process until the first diagnostics of an open file, without and with caches; "
        f"completions of a relation after each of {KEYSTROKES} keystrokes, while the site is checked again; "
        "memory after that."
    )
    head = ["site", "first start", "start", "completion", "99th percentile", "memory"]
    show("Language server", head, rows, note)


def _start(root: Path, articles: int) -> float:
    began = time.perf_counter()
    with language_server(root) as client:
        client.start()
        client.open(article_path(articles // 2))
        taken = time.perf_counter() - began
        client.stop()
    return taken


def _type(root: Path, articles: int) -> tuple[list[float], float]:
    """Return how long each completion took, in seconds, and the memory of the server in MB."""
    path = article_path(Sizes(articles).articles // 2)
    before, _, after = (root / path).read_text().partition("related:\n")
    taken = []
    with language_server(root) as client:
        client.start()
        client.open(path)
        for i in range(KEYSTROKES):
            typed = f"  - 20{'0123456789'[i % 10]}"[: 5 + i % 3]
            client.change(path, f"{before}related:\n{typed}\n{after}")
            line = before.count("\n") + 1
            began = time.perf_counter()
            found = client.ask("textDocument/completion", client.at(path, line, len(typed)))
            taken.append(time.perf_counter() - began)
            assert found["items"], typed
            time.sleep(PAUSE_S)
        time.sleep(2 * PAUSE_S)
        megabytes = _memory(client)
        client.stop()
    return taken, megabytes


def _memory(client: Client) -> float:
    status = Path(f"/proc/{client.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1000
