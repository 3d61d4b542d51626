"""Benchmark of the language server: first diagnostics, completions during a check, and memory."""

import os
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
PAUSE_S = 0.05  # pause between two keystrokes of somebody who types fast
LONG_PAUSE_S = 1.0  # pause after every 20 keystrokes, during which the server begins to check the site


def measure(sites: dict[int, Path]) -> None:
    """Print the measurements of each site."""
    starts, completions = [], []
    for articles, root in sites.items():
        shutil.rmtree(root / ".bifolio", ignore_errors=True)
        cold = _start(root, articles)
        warm = [_start(root, articles) for _ in range(STARTS)]
        site = f"{count(articles)} articles"
        wall, cpu = (median(times) for times in zip(*warm, strict=True))
        starts.append([site, f"{cold[0]:.2f} s", f"{wall:.2f} s", f"{cpu:.2f} s"])
        typed, empty, megabytes = _type(root, articles)
        times = (*_percentiles(typed), *_percentiles(empty))
        completions.append([site, *(f"{seconds * 1000:.1f} ms" for seconds in times), f"{megabytes:.0f} MB"])
    note = (
        "From the start of the process until the first diagnostics of an open file: without caches, with "
        "caches, and the processor time of the latter."
    )
    show("Language server: start", ["site", "first start", "start", "processor time"], starts, note)
    note = (
        f"After each of {KEYSTROKES} keystrokes, a completion of a relation and a request that does nothing, "
        "whose times are those of the machine. In between, the server checks the whole site."
    )
    head = ["site", "completion", "99 %", "nothing", "99 %", "memory"]
    show("Language server: completion", head, completions, note)


def _percentiles(taken: list[float]) -> tuple[float, float]:
    taken = sorted(taken)
    return median(taken), taken[min(int(len(taken) * 0.99), len(taken) - 1)]


def _start(root: Path, articles: int) -> tuple[float, float]:
    """Return how long it takes to start the server, and how much processor time, in seconds."""
    began = time.perf_counter()
    with language_server(root) as client:
        client.start()
        client.open(article_path(articles // 2))
        taken, cpu = time.perf_counter() - began, _processor_time(client)
        client.stop()
    return taken, cpu


def _type(root: Path, articles: int) -> tuple[list[float], list[float], float]:
    """Return the durations of all completions and all empty requests in seconds, and the memory in MB."""
    path = article_path(Sizes(articles).articles // 2)
    before, _, after = (root / path).read_text().partition("related:\n")
    line = before.count("\n") + 1
    taken, empty = [], []
    with language_server(root) as client:
        client.start()
        client.open(path)
        for i in range(KEYSTROKES):
            typed = ("  - ", "  - a", "  - ar", "  - 20", "  - 201", "  - tide")[i % 6]
            client.change(path, f"{before}related:\n{typed}\n{after}")
            began = time.perf_counter()
            client.ask("textDocument/completion", client.at(path, line, len(typed)))
            between = time.perf_counter()
            client.ask("textDocument/hover", client.at("elsewhere.md", 0, 0))
            taken.append(between - began)
            empty.append(time.perf_counter() - between)
            time.sleep(PAUSE_S if i % 20 else LONG_PAUSE_S)
        megabytes = _memory(client)
        client.stop()
    return taken, empty, megabytes


def _processor_time(client: Client) -> float:
    fields = Path(f"/proc/{client.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(client: Client) -> float:
    status = Path(f"/proc/{client.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1000
