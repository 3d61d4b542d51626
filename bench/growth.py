"""Benchmark of requests by the size of the site."""

import time
from collections.abc import Callable, Mapping
from itertools import count as counting
from pathlib import Path
from statistics import median
from urllib.parse import quote

from bench.effort import scaled
from bench.read_requests import NESTED
from bench.serving import Serving, bifolio, fetch
from bench.sites import WORDS, Sizes, article_id
from bench.tables import count, ratio, show

REQUESTS = scaled(60)  # number of requests of each kind, after a warm-up request
_OFTEN = 7919  # a prime number, which spreads the requests over the site

Ask = Callable[[Sizes, int], Mapping[str, str] | str]
# The request for each row of the table: the path of a document, or the parameters for a list.
KINDS: Mapping[str, Ask] = {
    "one document by its id": lambda s, i: f"/api/articles/{article_id(i * _OFTEN % s.articles)}?",
    "a page of 25": lambda s, i: {"pagination[page]": str(1 + i * _OFTEN % (s.articles // 25))},
    "filter on a scalar": lambda s, i: {"filters[slug][$eq]": f"article-{i * _OFTEN % s.articles:05d}"},
    "filter on a range": lambda s, i: {
        "filters[publishedOn][$gte]": f"20{i % 20:02d}-01-05",
        "filters[publishedOn][$lt]": f"2020-0{1 + i % 9}-01",
    },
    "filter through a relation": lambda s, i: {
        "filters[author][slug][$eq]": f"author-{i * _OFTEN % s.authors:04d}"
    },
    "sort by a text, at four fifths": lambda s, i: _far(s, i, "title"),
    "sort by a number, at four fifths": lambda s, i: _far(s, i, "readingMinutes:desc"),
    "sort by two attributes, at four fifths": lambda s, i: _far(s, i, "publishedOn:desc,title"),
    "a page of 25, deeply populated": lambda s, i: {
        **NESTED,
        "pagination[page]": str(1 + i * _OFTEN % (s.articles // 25)),
    },
    "$containsi in the body": lambda s, i: {
        "filters[body][$containsi]": f"{WORDS[i % len(WORDS)]} {WORDS[i * 7 % len(WORDS)]}"
    },
}


def measure(sites: Mapping[int, Path]) -> dict[str, dict[int, float]]:
    """Print and return the median duration of each kind of request by size of the site, in ms."""
    found: dict[str, dict[int, float]] = {name: {} for name in KINDS}
    for articles, root in sites.items():
        with bifolio(root, workers=1) as serving:
            for name, ask in KINDS.items():
                found[name][articles] = _median_ms(serving, ask, Sizes(articles))
    smallest, largest = min(sites), max(sites)
    rows = [
        [name, *(f"{taken[n]:.2f} ms" for n in sites), ratio(taken[largest] / taken[smallest])]
        for name, taken in found.items()
    ]
    head = ["request", *(f"{count(n)} articles" for n in sites), "ratio of largest to smallest"]
    show("Growth: median time of new requests, sent one after another", head, rows)
    return found


def _far(sizes: Sizes, i: int, sort: str) -> Mapping[str, str]:
    # This page is four fifths of the way through a sorted list.
    pages = max(1, sizes.articles // 100)
    return {
        "sort": sort,
        "fields": "title",
        "pagination[pageSize]": "100",
        "pagination[page]": str(max(1, pages * 4 // 5 - i % 5)),
    }


_numbers = counting()


def _median_ms(serving: Serving, ask: Ask, sizes: Sizes) -> float:
    connection, taken = serving.connect(), []
    for i in range(REQUESTS + 1):
        asked = ask(sizes, i)
        if not isinstance(asked, str):
            asked = "/api/articles?" + "&".join(f"{quote(k)}={quote(v)}" for k, v in asked.items())
        path = f"{asked}&unlike={next(_numbers)}"
        began = time.perf_counter()
        fetch(connection, path)
        taken.append(time.perf_counter() - began)
    connection.close()
    return median(taken[1:]) * 1000
