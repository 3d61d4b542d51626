"""Benchmark of indexing and searching, compared with `_q` and SQLite FTS5 (`python -m bench search`)."""
# Each document has 300 words out of a vocabulary of 20,000, with the frequencies of natural language. The
# time of a search includes everything except the network.

import json
import os
import random
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

from flask.testing import FlaskClient

from bench import quality
from bench.effort import scaled
from bench.tables import count, ratio, show, size
from server.api.app import create_app
from server.auth.accounts import Accounts
from server.documents.document import PUBLISHED
from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.search.find import Scope, Search
from server.search.question import read_question
from server.search.sync import Sync
from server.service.opening import Mode, open_site
from server.site.site import Site

SIZES = (scaled(1000, 50), scaled(10_000, 60))
LARGEST = scaled(50_000, 70)  # number of articles in the largest site, with --full
WORDS = scaled(300, 20)
TURNS = scaled(15)
EDITS = scaled(20)
DOCS = "BIFOLIO_ASTRO_DOCS"
_TYPE = {
    "kind": "collectionType",
    "info": {"singularName": "page", "pluralName": "pages", "displayName": "Page"},
    "attributes": {"title": {"type": "string"}, "body": {"type": "richtext"}},
}
# The words of the vocabulary, beginning with the most frequent word.
Words = Sequence[str]
Asked = tuple[str, Callable[[Words], str], Callable[[Words], str]]  # (name, query, the same query for FTS5)
ASKED: Sequence[Asked] = (
    ("a rare word", lambda w: w[9000], lambda w: f'"{w[9000]}"'),
    ("an ordinary word", lambda w: w[400], lambda w: f'"{w[400]}"'),
    ("a frequent word", lambda w: w[10], lambda w: f'"{w[10]}"'),
    ("two ordinary words", lambda w: f"{w[400]} {w[500]}", lambda w: f'"{w[400]}" AND "{w[500]}"'),
    ("a phrase", lambda w: f'"{w[20]} {w[30]}"', lambda w: f'"{w[20]} {w[30]}"'),
    ("a word begun", lambda w: w[400][:4], lambda w: f"{w[400][:4]}*"),
    ("an unknown word", lambda w: f"{w[400]}qx", lambda w: f'"{w[400]}qx"'),
)


def measure(folder: Path, docs: str | None, *, full: bool) -> None:
    """Measure the speed at every size and, if the pages in `docs` are available, the quality."""
    sizes = (*SIZES, LARGEST) if full else SIZES
    words = _vocabulary()
    built, asked = [], []
    for documents in sizes:
        root = folder / f"search-{documents}"
        _make_site(root, documents, words)
        built_row, asked_rows = _measure(root, documents, words)
        built.append(built_row)
        asked += asked_rows
    head = [
        "documents",
        "first build",
        "per 1,000",
        "size",
        "again, unchanged",
        "an edit found after",
        "FTS5, first build",
        "size",
    ]
    show("Building the index", head, built)
    head = ["asked of", "/search", "`_q`", "FTS5", "found", "_q next to /search"]
    show(f"Median of {TURNS} answers", head, asked)
    where = docs or os.environ.get(DOCS)
    if where:
        with tempfile.TemporaryDirectory(prefix="bifolio-quality-") as other:
            quality.measure(Path(other), Path(where))
    else:
        print(f"\nNo ranking is measured: name the documentation with --docs or {DOCS}.")


def _vocabulary() -> list[str]:
    chance = random.Random(7)
    syllables = [a + b for a in "bdfgklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "in", "or")]
    found: dict[str, None] = {}
    while len(found) < 20_000:
        found["".join(chance.choices(syllables, k=chance.choice((2, 2, 3, 3, 4))))] = None
    return list(found)


def _make_site(root: Path, documents: int, words: Sequence[str]) -> None:
    chance = random.Random(documents)
    weights = list(accumulate(1 / (rank + 2) for rank in range(len(words))))
    (root / "content-types").mkdir(parents=True)
    (root / "content-types" / "page.json").write_text(json.dumps(_TYPE))
    (root / "site.yaml").write_text("roles: {public: {page: [find]}}\n")
    for i in range(documents):
        title, *body = (
            " ".join(chance.choices(words, cum_weights=weights, k=k)) for k in (5, *[WORDS // 5] * 5)
        )
        path = root / "content" / "pages" / f"{i // 1000:03d}" / f"page-{i:05d}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\ntitle: {title}\ncreatedAt: 2024-01-01\n---\n\n" + "\n\n".join(body) + "\n")


def _measure(root: Path, documents: int, words: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    site = open_site(root, Mode.SERVER, records=False).site
    (build, used), (again, _) = _feed(site), _feed(site)
    index = sum(path.stat().st_size for path in (root / ".bifolio" / "search").iterdir())
    began = time.perf_counter()
    database = quality.fts5(site, root / "fts5.db")
    theirs = time.perf_counter() - began
    built = [f"{documents:,}", f"{build:.1f} s", f"{used / documents * 1000:.2f} s", size(index)]
    fresh = _freshness(site, root)
    built += [f"{again:.1f} s", fresh, f"{theirs:.1f} s", size((root / "fts5.db").stat().st_size)]
    accounts = Accounts(root, "")
    client = create_app(site, accounts).test_client()
    rows = [_row(client, database, documents, ask, words) for ask in ASKED]
    accounts.close()
    database.close()
    return built, rows


def _feed(site: Site) -> tuple[float, float]:
    """Update the index. Return the elapsed time and the processor time in seconds."""
    began, used = time.perf_counter(), _used()
    sync = Sync(site, Timing())
    runner = Runner([sync])
    runner.start()
    sync.done.wait()
    seconds = time.perf_counter() - began
    runner.stop()
    return seconds, _used() - used


def _used() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _freshness(site: Site, root: Path) -> str:
    """Return how long it takes until an edit is indexed: the median and maximum in seconds."""
    engine, scope, taken = Search(root), Scope({"api::page.page": PUBLISHED}), []
    sync = Sync(site, Timing())
    runner = Runner([sync])
    runner.start()
    sync.done.wait()
    for i in range(EDITS):
        path = f"content/pages/000/page-{i:05d}.md"
        began = time.perf_counter()
        (root / path).write_text(f"---\ntitle: Edited zq{i}x\ncreatedAt: 2024-01-01\n---\n")
        site.refresh([path])
        question = read_question(f"zq{i}x", (), is_incomplete=False)
        while not engine.find(site.state, question, scope, 0, 1).documents:
            time.sleep(0.01)
        taken.append(time.perf_counter() - began)
    runner.stop()
    return f"{statistics.median(taken):.2f} s, {max(taken):.2f} s"


def _row(
    client: FlaskClient, database: sqlite3.Connection, documents: int, asked: Asked, words: Sequence[str]
) -> list[str]:
    name, ours, theirs = asked
    text, match = ours(words), theirs(words)
    whole = "" if "begun" in name else "&prefix=false"
    found = client.get("/search", query_string=f"q={text}{whole}").get_json()
    assert found["meta"]["index"]["used"]
    bifolio = _time(lambda i: client.get("/search", query_string=f"q={text}{whole}&n={i}"))
    plain = text.strip('"')
    scan = _time(lambda i: client.get("/api/pages", query_string=f"_q={plain}&n={i}"))
    fts5 = _time(lambda i: _ask(database, match))
    total = found["meta"]["pagination"]["total"]
    shown = [f"{seconds * 1000:.1f} ms" for seconds in (bifolio, scan, fts5)]
    return [
        f"{documents:,}: {name}",
        *shown,
        count(total) if total >= 100 else str(total),
        ratio(scan / bifolio),
    ]


def _ask(database: sqlite3.Connection, match: str) -> None:
    sql = (
        "SELECT key, bm25(pages, 0, 0, 6.0, 1.0) AS score, snippet(pages, 3, '<mark>', '</mark>', '…', 24)"
        " FROM pages WHERE pages MATCH ? ORDER BY score LIMIT 25"
    )
    database.execute("SELECT count(*) FROM pages WHERE pages MATCH ?", (match,)).fetchone()
    database.execute(sql, (match,)).fetchall()


def _time(ask: Callable[[int], object]) -> float:
    taken = []
    for i in range(TURNS):
        began = time.perf_counter()
        ask(i)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)
