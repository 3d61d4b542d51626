"""(d) Memory of the process that answers, next to the bytes of content that it holds."""

from collections.abc import Mapping
from pathlib import Path

from bench.cases import cases
from bench.serving import quire
from bench.sites import Sizes, content_bytes
from bench.tables import ratio, show, size


def measure(sites: Mapping[int, Path]) -> None:
    """Print one row for each site; the first is empty, and what it takes is the process itself."""
    rows, bare = [], 0
    for articles, root in sites.items():
        with quire(root) as serving:
            for case in cases(Sizes(articles)) if articles else ():
                for path in case.paths[:40]:
                    serving.get(path)
            used = serving.memory()
        bare = bare or used
        content = content_bytes(root)
        grown = ratio((used - bare) / content) if articles else ""
        rows.append([f"{articles:,} articles", size(content), size(used), size(used - bare), grown])
    head = ["site", "content", "resident", "above the empty site", "per byte of content"]
    show("Memory of a worker, the largest, after 280 requests to all", head, rows)
