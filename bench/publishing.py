"""Benchmark of feeds, the sitemap and redirects, next to lists of the same documents.

Each write is a commit, so the redirects must look at the history again after each write.
"""

import http.client
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from urllib.parse import quote

from bench.effort import scaled
from bench.serving import bifolio
from bench.sites import article_id, article_path, git, make_site
from bench.tables import ratio, show, size
from bench.writing import writing_token

ROUNDS = scaled(9, 2)
COMMITS = 10  # number of commits that change the slugs of all articles
SHORT, LONG = scaled(20, 2), scaled(500, 5)  # numbers of documents in the two feeds
_NAMES = ("article", "author", "category", "tag")
_STATES = ("after a change", "again", "not modified")


def measure(root: Path, articles: int) -> None:
    """Create a site in which every article has a redirect, and print the times of requests."""
    make_site(root, articles)
    (root / "site.yaml").write_text(_settings(articles))
    git(root, "commit", "-qam", "settings")
    _rename(root, articles)
    token = writing_token(root)
    with bifolio(root, workers=1) as serving:
        client = _Client(serving.connect(), token)
        rows = [row for group in _requests(articles) for row in _rows(client, group, articles)]
    head = ["request", "answer", *(cell for state in _STATES for cell in (state, "next to the list"))]
    show(f"Feeds, sitemap and redirects, {articles:,} articles", head, rows)


def _settings(articles: int) -> str:
    grants = "".join(f"    {name}: [find, findOne]\n" for name in _NAMES)
    feeds = "".join(f"  of{limit}: {{type: article, limit: {limit}}}\n" for limit in (SHORT, LONG))
    return (
        f"api:\n  populate_with_pagination: allow\n  page_size: {{max: {max(articles, LONG)}}}\n"
        f"search: {{index: false}}\ngit: {{commit: each}}\nroles:\n  public:\n{grants}"
        f"urls: {{article: 'https://example.org/{{slug}}'}}\nfeeds:\n{feeds}"
    )


def _rename(root: Path, articles: int) -> None:
    """Change the slugs of all articles, in several commits."""
    for number in range(COMMITS):
        for i in range(number, articles, COMMITS):
            path = root / article_path(i)
            path.write_text(path.read_text().replace("\nslug: article", "\nslug: renamed", 1))
        git(root, "commit", "-qam", f"rename {number}", when=1_750_000_000 + number)


def _requests(articles: int) -> list[Mapping[str, str]]:
    """Return groups of requests. The first of each group is a list of the same documents."""

    def listed(count: int, **more: str) -> str:
        parameters = {"sort": "publishedOn:desc", "pagination[pageSize]": str(count), **more}
        return "/api/articles?" + "&".join(f"{quote(k)}={quote(v)}" for k, v in parameters.items())

    feeds = [
        {f"list of {n}, with authors": listed(n, populate="author"), f"feed of {n}": f"/feeds/of{n}.rss"}
        for n in (SHORT, LONG)
    ]
    everything = {
        f"list of {articles:,}, only the slug": listed(articles, fields="slug"),
        "/sitemap.xml": "/sitemap.xml",
        "/redirects": "/redirects",
    }
    return [*feeds, everything]


def _rows(client: "_Client", group: Mapping[str, str], articles: int) -> list[list[str]]:
    taken: dict[str, list[Sequence[float]]] = {name: [] for name in group}
    sizes: dict[str, int] = {}
    for turn in range(-1, ROUNDS):  # The first turn is a warm-up.
        for name, path in group.items():
            client.change(f"/api/articles/{article_id((turn + 1) % articles)}", turn)
            times, sizes[name] = client.times(path)
            if turn >= 0:
                taken[name].append(times)
    medians = {name: [median(column) for column in zip(*rows, strict=True)] for name, rows in taken.items()}
    first = next(iter(medians.values()))
    rows = []
    for name, found in medians.items():
        pairs = [
            (f"{ours * 1000:.1f} ms", "" if found is first else ratio(ours / theirs))
            for ours, theirs in zip(found, first, strict=True)
        ]
        rows.append([name, size(sizes[name]), *(cell for pair in pairs for cell in pair)])
    return rows


class _Client:
    """Connection to a server. All requests contain a token."""

    def __init__(self, connection: http.client.HTTPConnection, token: str) -> None:
        self._connection = connection
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def change(self, path: str, number: int) -> None:
        body = f'{{"data": {{"summary": "Changed {number} {time.time_ns()}"}}}}'
        self._send("PUT", path, 200, body=body)

    def times(self, path: str) -> tuple[tuple[float, float, float], int]:
        """Send a request, repeat it, and repeat it with `If-None-Match`. Return the three durations in
        seconds, and the size of the response.
        """
        first, _, length = self._send("GET", path, 200)
        again, etag, _ = self._send("GET", path, 200)
        unchanged, _, _ = self._send("GET", path, 304, **{"If-None-Match": etag})
        return (first, again, unchanged), length

    def _send(
        self, method: str, path: str, status: int, body: str | None = None, **headers: str
    ) -> tuple[float, str, int]:
        began = time.perf_counter()
        self._connection.request(method, path, body, self._headers | headers)
        answer = self._connection.getresponse()
        said = answer.read()
        taken = time.perf_counter() - began
        if answer.status != status:
            raise RuntimeError(f"{method} {path}: {answer.status} {said[:300]!r}")
        return taken, answer.headers.get("ETag", ""), len(said)
