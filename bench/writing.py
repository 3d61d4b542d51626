"""Benchmark of writes through the API, flushed to disk."""

import http.client
import json
import os
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.effort import scaled, scaled_seconds
from bench.serving import Serving, bifolio, fetch
from bench.sites import Sizes, article_id
from bench.tables import count, median_and_p99, ratio, show
from server.auth.accounts import Accounts

WRITES = scaled(60)
READ_S = scaled_seconds(3)
WRITES_PER_S = 20


def measure(sites: dict[int, Path]) -> None:
    """Print the duration of writes by the size of the site, and how they affect readers."""
    rows: list[list[str]] = []
    first: dict[str, float] = {}
    for articles, root in sites.items():
        token = writing_token(root)
        with bifolio(root) as serving:
            sync = median(_sync_duration_s(root) for _ in range(WRITES))
            for name, took in _writes(serving, token, Sizes(articles)).items():
                typical = median(took)
                first.setdefault(name, typical)
                cells = f"{typical * 1000:.1f} ms", f"{max(took) * 1000:.1f} ms", count(1 / typical)
                grown = ratio(typical / first[name])
                rows.append([f"{name}, {count(articles)} articles", *cells, grown, ratio(typical / sync)])
    head = ["write", "median", "longest", "writes/s", "ratio to the smallest site", "ratio to one fsync"]
    show(
        "Writing, one client",
        head,
        rows,
        "The last column compares the write with writing a 2 kB file and calling fsync once.",
    )
    root = list(sites.values())[-1]
    _measure_commits(root, Sizes(list(sites)[-1]))
    _measure_readers(root, writing_token(root), Sizes(list(sites)[-1]))


def _measure_commits(root: Path, sizes: Sizes) -> None:
    """Print the duration of writes with and without commits."""
    rows = []
    settings = root / "site.yaml"
    before = settings.read_text()
    for name, more in (("off", ""), ("each", "\ngit: {commit: each}\n")):
        settings.write_text(before + more)
        token = writing_token(root)
        with bifolio(root) as serving:
            for write, took in _writes(serving, token, sizes).items():
                cells = [
                    f"{median(took) * 1000:.1f} ms",
                    f"{max(took) * 1000:.1f} ms",
                    count(1 / median(took)),
                ]
                rows.append([f"{write}, git.commit: {name}", *cells])
    settings.write_text(before)
    note = "A commit is made beside the write lock; the answer waits for it."
    show("Writing with a commit per write", ["write", "median", "longest", "writes/s"], rows, note)


def writing_token(root: Path) -> str:
    accounts = Accounts(root)
    accounts.revoke_token("bench")
    return accounts.create_token("bench", "full-access")


def _sync_duration_s(root: Path) -> float:
    """Write one small file to the disk, and return how many seconds this takes."""
    path = root / "synced.tmp"
    began = time.perf_counter()
    with path.open("wb") as file:
        file.write(b"x" * 2000)
        file.flush()
        os.fsync(file.fileno())
    taken = time.perf_counter() - began
    path.unlink()
    return taken


def _writes(serving: Serving, token: str, sizes: Sizes) -> dict[str, list[float]]:
    connection = serving.connect()
    send(connection, token, "POST", "/api/tags", {"name": "Warm", "slug": f"warm-{time.time_ns()}"})
    created = [
        send(
            connection,
            token,
            "POST",
            "/api/articles?fields=slug",
            {"title": f"Made {i}", "slug": f"made-{time.time_ns()}", "body": "A tide. " * 200},
        )
        for i in range(WRITES)
    ]
    updated = [
        send(connection, token, "PUT", _path(i, sizes), {"title": f"Changed {i} {time.time_ns()}"})
        for i in range(WRITES)
    ]
    connection.close()
    return {"create": created, "update": updated}


def _path(i: int, sizes: Sizes) -> str:
    return f"/api/articles/{article_id(i % sizes.articles)}?fields=slug"


def send(
    connection: http.client.HTTPConnection, token: str, method: str, path: str, data: dict[str, Any]
) -> float:
    """Send one write and return its duration in seconds. Raises RuntimeError if it is rejected."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    began = time.perf_counter()
    connection.request(method, path, json.dumps({"data": data}), headers)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status not in (200, 201):
        raise RuntimeError(f"{method} {path}: {answer.status} {body[:300]!r}")
    return time.perf_counter() - began


def _measure_readers(root: Path, token: str, sizes: Sizes) -> None:
    """Print the latency of reads, with and without writes."""
    with bifolio(root) as serving:
        alone = _reads(serving, sizes)
        stop = threading.Event()
        writer = threading.Thread(target=_write_on, args=(serving, token, sizes, stop))
        writer.start()
        beside = _reads(serving, sizes)
        stop.set()
        writer.join()
    rows = [
        [name, f"{median(t) * 1000:.2f} ms", f"{_p99(t) * 1000:.1f} ms", ratio(_p99(t) / _p99(alone))]
        for name, t in (("without writes", alone), (f"during {WRITES_PER_S} writes per second", beside))
    ]
    show(
        f"Reading beside writes, {count(sizes.articles)} articles",
        ["reads", "median", "p99", "p99 ratio"],
        rows,
    )


def _reads(serving: Serving, sizes: Sizes) -> list[float]:
    connection, taken = serving.connect(), []
    deadline, i = time.perf_counter() + READ_S, 0
    while time.perf_counter() < deadline:
        began = time.perf_counter()
        fetch(
            connection, f"/api/articles/{article_id(i * 7 % sizes.articles)}?fields=title&n={time.time_ns()}"
        )
        taken.append(time.perf_counter() - began)
        i += 1
    connection.close()
    return taken


def _p99(taken: list[float]) -> float:
    return median_and_p99(taken)[1]


def _write_on(serving: Serving, token: str, sizes: Sizes, stop: threading.Event) -> None:
    connection, i = serving.connect(), 0
    while not stop.wait(1 / WRITES_PER_S):
        send(connection, token, "PUT", _path(i, sizes), {"title": f"Beside {time.time_ns()}"})
        i += 1
    connection.close()
