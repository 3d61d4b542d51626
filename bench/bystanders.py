"""Benchmark of other clients' requests, with and without an attack on the server."""

import itertools
import json
import multiprocessing
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

from bench.attack_site import NAME, PASSWORD, AttackSite, as_json, make_attack_site
from bench.attacks import ATTACKS, Attack, Request, run, status_of
from bench.effort import SHARE, scaled_seconds
from bench.events import server_memory
from bench.host import HOST
from bench.serving import Serving, bifolio
from bench.sites import article_id
from bench.tables import median_and_p99, ratio, show, size

SOURCE = "127.0.0.2"  # IP address of the other clients
QUIET_S, ATTACKED_S, TURNS = scaled_seconds(2), scaled_seconds(4), 2
PAUSE_S = 0.01
INDEX_S = 120.0
_SMOKE_STEP = 32  # If BENCH_SHARE is below 1, only two attacks are run.
KEPT_COMMITS = 3  # past commits that the other clients read


def _article(site: AttackSite, number: int) -> str:
    return article_id(number * 7919 % site.sizes.articles)


KINDS: dict[str, Callable[[AttackSite, int], Request]] = {
    "document": lambda site, n: Request(f"/api/articles/{_article(site, n)}?populate=author&n={n}"),
    "file": lambda _, n: Request(f"/uploads/picture-{n % 5}.jpg"),
    "past": lambda site, n: Request(
        f"/api/articles/{_article(site, n)}?at={site.commits[-1 - n % KEPT_COMMITS]}&n={n}"
    ),
    "history": lambda site, n: Request(f"/history/articles/{_article(site, n)}"),
    "search": lambda _, n: Request(f"/search?q=harbour&n={n}"),
    "login": lambda *_: Request(
        "/api/auth/local",
        "POST",
        as_json({"identifier": NAME, "password": PASSWORD}),
        {"Content-Type": "application/json"},
    ),
}
_PAUSES = {"login": 1.0, "history": 0.1, "search": 0.1, "file": 0.05, "past": 0.05}


@dataclass
class Latencies:
    """The latencies of one kind of request in seconds, and the number of failures by status."""

    seconds: list[float] = field(default_factory=list)
    failed: "Counter[int]" = field(default_factory=Counter)


@dataclass
class Outcome:
    """The measurements for one attack."""

    attack: Attack
    quiet: dict[str, Latencies]
    attacked: dict[str, Latencies]
    memory: tuple[int, int]  # memory before the attack, and the maximum during it
    disk: int  # growth of the site on disk, in bytes
    statuses: "Counter[int]"


def measure(root: Path, articles: int, commits: int) -> None:
    """Print how each attack affects the requests of other clients."""
    site = make_attack_site(root, articles, commits)
    attacks = ATTACKS if SHARE >= 1 else ATTACKS[::_SMOKE_STEP]
    outcomes = [_measure(site, attack) for attack in attacks]
    head = [
        "attack", "document: p50, p99", "attacked", "the past: p99", "attacked", "refused", "memory", "disk",
        "what the attack gets",
    ]  # fmt: skip
    show("Others while one client attacks, two workers", head, list(map(_row, outcomes)), NOTE)


NOTE = "Refused: how many requests of others got a status of 500 or above, or none, while attacked."


def _row(one: Outcome) -> list[str]:
    document, past = (
        [_p50_p99(taken[kind]) for taken in (one.quiet, one.attacked)] for kind in ("document", "past")
    )
    refused = sum(sum(taken.failed.values()) for taken in one.attacked.values())
    before, most = one.memory
    return [
        one.attack.name,
        *(f"{p50:,.0f}, {p99:,.0f} ms" for p50, p99 in document),
        *(f"{p99:,.0f} ms" for _, p99 in past),
        str(refused),
        ratio(most / before),
        size(max(0, one.disk)),
        " ".join(f"{n} × {status}" for status, n in sorted(one.statuses.items())),
    ]


def _p50_p99(taken: Latencies) -> tuple[float, float]:
    p50, p99 = median_and_p99(taken.seconds) if taken.seconds else (0.0, 0.0)
    return p50 * 1000, p99 * 1000


def _measure(site: AttackSite, attack: Attack) -> Outcome:
    with bifolio(site.root, workers=2) as serving:
        _wait_for_index(serving)
        # As a warm-up, both workers import modules that are loaded on first use, and load the states of past
        # commits.
        for number in range(KEPT_COMMITS * 6):
            for make in KINDS.values():
                request = make(site, number)
                if request.method == "GET":
                    serving.get(request.path)
        before, disk = server_memory(serving), _disk(site.root)
        one = Outcome(attack, {}, {}, (before, before), 0, Counter())
        first = itertools.count(1, 1_000_000)
        for _ in range(TURNS):
            _add(one.quiet, _observe(serving, site, QUIET_S))
            found, statuses, most = _observe_attack(serving, site, attack, next(first))
            _add(one.attacked, found)
            one.statuses += statuses
            one.memory = before, max(one.memory[1], most)
        one.disk = _disk(site.root) - disk
    return one


def _wait_for_index(serving: Serving) -> None:
    """Wait until both workers use the search index."""
    end = time.monotonic() + INDEX_S
    while time.monotonic() < end:
        answers = [json.loads(serving.get(f"/search?q=harbour&n={n}")) for n in range(8)]
        if all(answer["meta"]["index"]["used"] for answer in answers):
            return
        time.sleep(0.1)
    raise RuntimeError(f"the search index is not ready after {INDEX_S:.0f} s")


def _observe_attack(
    serving: Serving, site: AttackSite, attack: Attack, first: int
) -> "tuple[dict[str, Latencies], Counter[int], int]":
    """Run an attack. Return the latencies of the other clients, the statuses that the attacker received, and
    the peak memory in bytes.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def act() -> None:
        theirs.send(run(attack, site, serving.port, ATTACKED_S, first))

    process = context.Process(target=act)
    process.start()
    most, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.25):
            most[0] = max(most[0], server_memory(serving))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        found = _observe(serving, site, ATTACKED_S)
        statuses = ours.recv() if ours.poll(90) else Counter()
    finally:
        ended.set()
        watching.join()
        process.terminate()
        process.join()
    return found, statuses, max(most[0], server_memory(serving))


def _observe(serving: Serving, site: AttackSite, seconds: float) -> dict[str, Latencies]:
    # Each kind of request has its own connection.
    found = {kind: Latencies() for kind in KINDS}
    threads = [
        threading.Thread(target=_send, args=(serving.port, site, kind, seconds, taken))
        for kind, taken in found.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _send(port: int, site: AttackSite, kind: str, seconds: float, taken: Latencies) -> None:
    connection = HTTPConnection(HOST, port, timeout=60, source_address=(SOURCE, 0))
    end, numbers = time.monotonic() + seconds, itertools.count(time.monotonic_ns() % 1_000_000)
    while time.monotonic() < end:
        request, began = KINDS[kind](site, next(numbers)), time.perf_counter()
        status = status_of(connection, request)
        taken.seconds.append(time.perf_counter() - began)
        if status >= 500 or status == 0:
            taken.failed[status] += 1
        time.sleep(_PAUSES.get(kind, PAUSE_S))
    connection.close()


def _add(into: dict[str, Latencies], found: dict[str, Latencies]) -> None:
    for kind, taken in found.items():
        one = into.setdefault(kind, Latencies())
        one.seconds += taken.seconds
        one.failed += taken.failed


def _disk(root: Path) -> int:
    listed = subprocess.run(["du", "-sb", str(root)], capture_output=True, text=True, check=False)
    return int(listed.stdout.split()[0])
