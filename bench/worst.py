"""Search for the most expensive queries that a client can send (`python -m bench worst`)."""
# The search starts with random queries, and repeatedly changes the most expensive of them.

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from werkzeug.test import create_environ

from bench.effort import scaled, scaled_seconds
from bench.random_queries import Chance, Query
from bench.serving import Serving, bifolio
from bench.sites import Sizes, article_id
from bench.tables import count, median_and_p99, show, size
from server.api.app import create_app
from server.auth.accounts import Accounts
from server.service.opening import Mode, open_site

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

BEST = scaled(20)  # number of queries that are changed again in each round
RANDOM = scaled(150)  # number of random queries at the start
ATTACKERS, CROWD_S = 8, scaled_seconds(10)
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Cost(NamedTuple):
    """Cost of one query: processor time in seconds, peak memory and response size in bytes."""

    seconds: float
    memory: int
    status: str
    length: int


class CostMeter:
    """Meter for the cost of queries in this process, with empty caches."""

    def __init__(self, root: Path) -> None:
        self.site = open_site(root, Mode.SERVER, records=False).site
        self.app = create_app(self.site, Accounts(root))
        # This joins the texts for searching, which otherwise happens when they are first needed.
        for column in ("title", "slug", "summary", "body"):
            self.of(Query("articles", (f"filters[{column}][$contains]=x",)))

    def of(self, query: Query) -> Cost:
        """Return the cost of a query."""
        snapshot, statuses = self.site.state.snapshot, list[str]()
        for cache in (snapshot.rendered.cache, snapshot.orders.cache, snapshot.fragments.cache):
            cache.clear()
        environ = create_environ(query.path, query_string=f"{query.string}&n={time.monotonic_ns()}")
        RESET.write_text("5")  # This resets the peak memory.
        before, began = _memory("VmRSS"), time.thread_time()
        body = b"".join(self.app.wsgi_app(environ, _told(statuses)))
        seconds = time.thread_time() - began
        return Cost(seconds, max(0, _memory("VmHWM") - before), statuses[0][:3], len(body))


def _told(statuses: list[str]) -> "StartResponse":

    def start(status: str, headers: object, failure: object = None) -> Callable[[bytes], None]:
        statuses.append(status)
        return lambda _: None

    return start


def measure(root: Path, articles: int, *, queries: int) -> None:
    """Print the worst queries, and how long other clients have to wait while these run."""
    worst = search(CostMeter(root), queries)
    rows = [
        [
            f"`{query.path}?{query.string[:50]}…` ({len(query.string):,} characters)",
            f"{cost.seconds * 1000:,.0f} ms",
            size(cost.memory),
            cost.status,
            size(cost.length),
        ]
        for query, cost in worst[:10]
    ]
    head = ["query", "processor time", "memory", "status", "answer"]
    show(f"The worst of {count(queries)} queries, {count(articles)} articles", head, rows)
    _measure_bystanders(root, articles, [query for query, _ in worst])


def search(costs: CostMeter, queries: int) -> list[tuple[Query, Cost]]:
    """Return the slowest queries, alternating with those that use the most memory."""
    chance, known = Chance(1), dict[Query, Cost]()
    while len(known) < queries:
        query = chance.query() if len(known) < RANDOM else chance.changed(chance.pick(_worst(known))[0])
        if query not in known:
            known[query] = costs.of(query)
    return _worst(known)


def _worst(known: dict[Query, Cost]) -> list[tuple[Query, Cost]]:
    by_time = sorted(known.items(), key=lambda item: -item[1].seconds)[:BEST]
    by_memory = sorted(known.items(), key=lambda item: -item[1].memory)[: BEST // 2]
    return list(dict.fromkeys([*by_time[:5], *by_memory[:5], *by_time, *by_memory]))


def _memory(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


# --- eight at once -------------------------------------------------------------------------------


def _measure_bystanders(root: Path, articles: int, queries: list[Query]) -> None:
    """Print the latency of simple requests, alone and while eight clients send the worst queries."""
    with bifolio(root, workers=2) as serving:
        ended = threading.Event()
        alone = _measure_latency(serving, Sizes(articles))
        statuses: list[int] = []
        crowd = [
            threading.Thread(target=_attack, args=(serving, queries[i:] + queries[:i], ended, statuses))
            for i in range(ATTACKERS)
        ]
        for thread in crowd:
            thread.start()
        beside = _measure_latency(serving, Sizes(articles))
        ended.set()
        for thread in crowd:
            thread.join()
    told = ", ".join(f"{statuses.count(status)} × {status}" for status in sorted(set(statuses)))
    rows = [
        ["nobody else", *(f"{value * 1000:.1f} ms" for value in alone)],
        ["eight at once", *(f"{value * 1000:.1f} ms" for value in beside)],
    ]
    head = ["beside", "median", "99 of 100", "longest"]
    show("How long another waits for a document, two workers", head, rows, f"The eight were answered {told}.")


def _measure_latency(serving: Serving, sizes: Sizes) -> tuple[float, float, float]:
    """Return the median, 99th percentile and maximum latency on one connection, in seconds."""
    taken, end, number = [], time.monotonic() + CROWD_S, 0
    while time.monotonic() < end:
        number += 1
        began = time.perf_counter()
        serving.get(f"/api/articles/{article_id(number * 7919 % sizes.articles)}?populate=author&n={number}")
        taken.append(time.perf_counter() - began)
        time.sleep(0.01)
    return *median_and_p99(taken), max(taken)


def _attack(serving: Serving, queries: list[Query], ended: threading.Event, statuses: list[int]) -> None:
    number = 0
    while not ended.is_set():
        query = queries[number % len(queries)]
        number += 1
        connection = serving.connect()
        connection.request("GET", f"{query.path}?{query.string}&n={time.monotonic_ns()}")
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
        connection.close()
