"""Benchmark of a worker process's memory, by the size of the content and after many queries."""

from collections.abc import Mapping
from itertools import permutations
from pathlib import Path

from bench.effort import scaled
from bench.read_requests import cases
from bench.serving import bifolio, fetch
from bench.sites import Sizes, content_bytes
from bench.tables import count, ratio, show, size
from server.api import response_cache
from server.index import fragments, orders

FLOOD = scaled(20_000, 20)  # number of different queries
LONG = 32_000  # number of characters in each query (the limit is 32,768)
_ORDERS = [",".join(names) for names in permutations(("title", "slug", "summary", "publishedOn", "featured"))]


def measure(sites: Mapping[int, Path]) -> None:
    # The first site is empty, to measure the memory of the process itself.
    rows, bare = [], 0
    for articles, root in sites.items():
        with bifolio(root) as serving:
            for case in cases(Sizes(articles)) if articles else ():
                for path in case.paths[:40]:
                    serving.get(path)
            used = serving.memory()
        bare = bare or used
        content = content_bytes(root)
        grown = ratio((used - bare) / content) if articles else ""
        rows.append([f"{articles:,} articles", size(content), size(used), size(used - bare), grown])
    head = ["site", "content", "resident", "more than the empty site", "per byte of content"]
    show("Memory of the largest worker, after 280 requests to all workers", head, rows)


def measure_flood(root: Path, articles: int) -> None:
    """Print a worker's memory after many long and different queries."""
    with bifolio(root, workers=1) as serving:
        connection = serving.connect()
        for i in range(60):
            fetch(connection, _query(i))
        before = serving.memory()
        for i in range(60, 60 + FLOOD):
            fetch(connection, _query(i))
        grown = serving.memory() - before
        connection.close()
    bounds = [size(response_cache.MAX_BYTES), size(2 * fragments.MAX_BYTES), size(orders.MAX_BYTES)]
    cells = [size(FLOOD * LONG), size(before), size(grown), *bounds]
    head = [
        "sent",
        "memory before",
        "increase",
        "limit for responses",
        "for rendered documents",
        "for orders",
    ]
    title = f"Memory after {count(FLOOD)} different queries of {size(LONG)}, {count(articles)} articles"
    show(title, head, [cells])


def _query(i: int) -> str:
    long, names = f"{i:08}" * (LONG // 8), _ORDERS[i // 6 % len(_ORDERS)]
    kinds = (
        f"_q={long}",
        f"filters[title][$ne]={long}&fields=title",
        f"populate[author][filters][name][$ne]={long}",
        f"fields={names}&populate[author][filters][name][$containsi]={long}",
        f"sort=author.name,{names}&fields=title&unknown={long}",
        f"filters[author][name][$ne]={long}&fields=title&sort={names}",
    )
    return f"/api/articles?{kinds[i % len(kinds)]}"
