"""Benchmark of the first read of each document, before any of it has been rendered."""

import time
from collections.abc import Sequence
from itertools import count as counting
from pathlib import Path
from statistics import median

from bench.effort import scaled
from bench.read_requests import cases
from bench.serving import Serving, bifolio, fetch
from bench.sites import Sizes, article_id
from bench.tables import ratio, show
from bench.writing import send, writing_token

# number of requests of each kind, whose documents all fit into the caches
REQUESTS = scaled(60)
KINDS = ("one document", "list of 25", "list of 25, populate=*", "list of 25, nested populate")
_numbers = counting()


def measure(root: Path, sizes: Sizes) -> None:
    """Print how long it takes to read documents that were never rendered, were rendered before, or have just
    changed.
    """
    rows = []
    for case in cases(sizes):
        if case.name in KINDS:
            with bifolio(root, workers=1) as serving:
                # This warm-up request loads everything that a first request needs.
                fetch(connection := serving.connect(), "/api/tags?")
                connection.close()
                paths = case.paths[:REQUESTS]
                never, before = _median_ms(serving, paths), _median_ms(serving, paths)
                after = _median_ms(serving, paths, writing_token(root), sizes)
            rows.append(
                [case.name, *(f"{ms:.2f} ms" for ms in (never, before, after)), ratio(never / before)]
            )
    head = ["request", "never rendered", "rendered before", "right after a write", "never to before"]
    show(f"What is rendered for the first time, {sizes.articles:,} articles", head, rows)


def _median_ms(
    serving: Serving, paths: Sequence[str], writer: str | None = None, sizes: Sizes | None = None
) -> float:
    """Return the median duration of different requests in ms. With the token `writer`, an article is changed
    before each request.
    """
    connection, taken = serving.connect(), []
    for i, path in enumerate(paths):
        if writer and sizes:
            changed = f"/api/articles/{article_id(sizes.articles - 1 - i)}?fields=slug"
            send(connection, writer, "PUT", changed, {"title": f"Changed {next(_numbers)}"})
        began = time.perf_counter()
        fetch(connection, f"{path}&unlike={next(_numbers)}")
        taken.append(time.perf_counter() - began)
    connection.close()
    return median(taken) * 1000
