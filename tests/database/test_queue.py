"""Tests of the queue of machines in PostgreSQL: machines take turns, and none waits for a machine that is
gone.
"""

import threading
import time

import psycopg

from server.database.queue import PushTurnQueue
from tests.postgres import Postgres
from tests.waiting import until


def test_machines_wait_for_one_another_in_turn(database: Postgres) -> None:
    first, others, came = (
        PushTurnQueue(database.url),
        [PushTurnQueue(database.url) for _ in range(3)],
        list[int](),
    )

    def wait(number: int) -> None:
        with others[number].turn(5.0) as waited:
            assert waited
            came.append(number)
            time.sleep(0.02)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(3)]
    with first.turn(5.0) as waited:
        assert not waited
        for number, thread in enumerate(threads):
            thread.start()
            until(lambda number=number: waiting(database) == number + 1)  # type: ignore[misc]
        assert came == []
    for thread in threads:
        thread.join()
    assert came == [0, 1, 2]
    with first.turn(5.0) as waited:
        assert not waited


def waiting(database: Postgres) -> int:
    """Return how many processes are waiting for a lock."""
    asked = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with psycopg.connect(database.url) as connection:
        (count,) = connection.execute(asked).fetchone() or (0,)
        return int(count)


def test_who_leaves_early_lets_others_in(database: Postgres) -> None:
    first, second = PushTurnQueue(database.url), PushTurnQueue(database.url)
    with first.turn(5.0):
        first.leave()
        with second.turn(5.0) as waited:
            assert not waited


def test_nobody_waits_for_long(database: Postgres) -> None:
    first, second = PushTurnQueue(database.url), PushTurnQueue(database.url)
    with first.turn(5.0):
        began = time.monotonic()
        with second.turn(0.2) as waited:
            assert waited
        with second.turn(5.0) as waited:  # For a while, it continues without waiting for a turn.
            assert not waited
        assert time.monotonic() - began < 3


def test_who_is_gone_is_first_no_more(database: Postgres) -> None:
    first, second = PushTurnQueue(database.url), PushTurnQueue(database.url)
    with first.turn(5.0):
        with psycopg.connect(database.url) as connection:
            held = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            connection.execute(held)
        with second.turn(5.0):
            assert waiting(database) == 0
    with first.turn(5.0) as waited:
        assert not waited


def test_without_a_database_nobody_waits() -> None:
    away = "postgresql://bifolio@127.0.0.1:9/none"
    for queue in (PushTurnQueue(), PushTurnQueue("users.db"), PushTurnQueue(away)):
        began = time.monotonic()
        with queue.turn(5.0) as waited:
            assert not waited
        assert time.monotonic() - began < 3
