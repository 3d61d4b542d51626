"""Tests of rate limits: requests are counted across all workers and all machines."""

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from server.api.limiting.count_table import SETS, WAYS, CountTable, client_id
from server.api.limiting.limiter import Limiter
from server.api.limiting.shared_stores import PostgresStore, RedisStore, Store
from server.api.limiting.sharing import BATCH_CLIENTS, CountSharingJob, check_store, exchange_counts
from server.config.model import DEFAULTS, with_values
from server.errors import SetupError
from server.jobs.job import Timing
from server.jobs.runner import Runner
from tests.conftest import MakeApi
from tests.postgres import Postgres
from tests.redis_server import Redis, redis_server
from tests.servers import free_port, get, serving
from tests.sites import schema, write
from tests.waiting import until

RATE = "32 per minute"
WINDOW_S = 60
FILES = {
    "content-types/note.json": schema("note", {"title": "string"}),
    "content/notes/one.md": "---\ntitle: first\n---\n",
}


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with redis_server() as running:
        yield running


@pytest.fixture(params=["postgres", "redis"])
def store(request: pytest.FixtureRequest) -> Iterator[Callable[[], Store]]:
    """Return a function that creates the rate-limit store of another machine."""
    if request.param == "redis":
        running: Redis = request.getfixturevalue("redis")
        until(lambda: RedisStore(running.url, "wait").add([], WINDOW_S) == {})
        yield lambda: RedisStore(running.url, "bifolio/test")
    else:
        database: Postgres = request.getfixturevalue("database")
        database.empty()
        yield lambda: _postgres(database)


def _postgres(database: Postgres) -> Store:
    return PostgresStore(import_module("server.database.postgres"), database.url)


def test_all_workers_count_together(tmp_path: Path) -> None:
    site = f"api: {{rate_limit: {RATE}}}\nroles: {{public: {{note: [find]}}}}\nsearch: {{index: false}}\n"
    write(tmp_path, {**FILES, "site.yaml": site})
    port = free_port()
    with serving(tmp_path, port, "--workers=3"), ThreadPoolExecutor(8) as clients:
        found = list(clients.map(lambda _: get(port, "/api/notes")[0], range(80)))
    # Health checks, with which the test waits for the server, are not counted.
    assert set(found) == {200, 429}
    assert found.count(200) == 32


def test_the_addresses_of_one_customer_are_one_client() -> None:
    limiter = Limiter("2 per minute", CountTable())
    asked = (
        "2001:db8::1",
        "2001:db8::2",
        "2001:db8::ffff:3",
        "2001:db8:0:1::1",
        "::ffff:192.0.2.1",
        "192.0.2.1",
    )
    assert [limiter.count(address)[0] for address in asked] == [True, True, False, True, True, True]
    assert not limiter.count("192.0.2.1")[0]


def test_each_of_many_at_once_is_told_what_its_own_request_has_left() -> None:
    limiter = Limiter("400 per minute", CountTable())
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: dict(limiter.count("a")[1]), range(400)))
    left = [int(headers["X-RateLimit-Remaining"]) for headers in answers]
    assert sorted(left) == list(range(400))


def test_a_window_ends() -> None:
    limiter = Limiter("2 per 1 second", CountTable())
    assert [limiter.count("a")[0] for _ in range(3)] == [True, True, False]
    until(lambda: limiter.count("a")[0], 3)


def test_whoever_asks_most_is_forgotten_last() -> None:
    table, many = CountTable(), [client_id(f"attacker {number}") for number in range(3 * SETS * WAYS)]
    client = client_id("client")
    table.add(client, WINDOW_S, 50)
    for other in many:
        table.add(other, WINDOW_S)
    assert table.add(client, WINDOW_S, 0)[0] == 50


def test_machines_count_together(store: Callable[[], Store]) -> None:
    here, there = CountTable(), CountTable()
    client = client_id(f"client {time.time_ns()}")
    stores = store(), store()
    assert here.add(client, WINDOW_S, 30)[0] == 30
    exchange_counts(here, stores[0], 2, WINDOW_S)
    assert there.add(client, WINDOW_S)[0] == 1
    exchange_counts(there, stores[1], 2, WINDOW_S)
    # A machine learns of other machines' requests only after it has counted part of the limit.
    assert there.add(client, WINDOW_S, 0)[0] == 1
    assert there.add(client, WINDOW_S)[0] == 2
    exchange_counts(there, stores[1], 2, WINDOW_S)
    total, ends = there.add(client, WINDOW_S, 0)
    assert total == 32
    assert abs(ends - here.add(client, WINDOW_S, 0)[1]) < 2
    here.add(client, WINDOW_S, 2)
    exchange_counts(here, stores[0], 2, WINDOW_S)
    assert here.add(client, WINDOW_S, 0)[0] == 34
    for one in stores:
        one.close()


def test_a_window_at_a_store_ends(store: Callable[[], Store]) -> None:
    table, one, client = CountTable(), store(), client_id(f"short {time.time_ns()}")
    table.add(client, 1, 5)
    exchange_counts(table, one, 1, 1)
    time.sleep(2.1)
    assert table.add(client, 1)[0] == 1
    exchange_counts(table, one, 1, 1)
    assert table.add(client, WINDOW_S, 0)[0] == 1
    one.close()


def test_no_more_is_told_at_once_than_a_store_takes(store: Callable[[], Store]) -> None:
    table, one = CountTable(), store()
    for number in range(BATCH_CLIENTS + 100):
        table.add(client_id(f"one of {number}"), WINDOW_S)
    exchange_counts(table, one, 1, WINDOW_S)
    assert 0 < len(table.unsent(1, BATCH_CLIENTS)) <= 100
    one.close()


def test_a_store_that_is_away_is_said_once_and_what_was_counted_is_told_later(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    timing = replace(Timing(), share_limits_retry_s=0.1)
    settings = with_values(DEFAULTS, {"api.rate_limit": RATE, "api.rate_store": redis.url})
    table, client = CountTable(), client_id(f"away {time.time_ns()}")
    redis.stop()
    with caplog.at_level(logging.INFO, "bifolio"):
        runner = Runner([CountSharingJob(table, settings, timing)])
        runner.start()
        try:
            assert table.add(client, WINDOW_S, 20)[0] == 20
            until(lambda: bool(caplog.records))
            time.sleep(0.5)
            assert table.add(client, WINDOW_S, 2)[0] == 22
            redis.start()
            until(lambda: not table.unsent(1, 1))
        finally:
            runner.stop()
    assert table.add(client, WINDOW_S, 0)[0] == 22
    assert [(record.levelname, record.message.partition(":")[0]) for record in caplog.records] == [
        ("ERROR", "the store for rate limits can't be used, so each machine counts its own requests"),
        (
            "INFO",
            "the store for rate limits is available again, so requests to all machines are counted together",
        ),
    ]


def test_a_store_without_an_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = with_values(DEFAULTS, {"api.rate_limit": RATE, "api.rate_store": "env:RATES"})
    monkeypatch.delenv("RATES", raising=False)
    with pytest.raises(SetupError, match="RATES"):
        check_store(settings)
    monkeypatch.setenv("RATES", "redis://127.0.0.1/0")
    check_store(settings)


@pytest.mark.parametrize("store", ["nowhere", "memcached://x", "redis://"])
def test_what_is_no_store_is_a_problem_of_the_settings(make_api: MakeApi, store: str) -> None:
    with pytest.raises(SetupError, match=r"api\.rate_store"):
        make_api({**FILES, "site.yaml": f"api: {{rate_store: '{store}'}}\n"})
