"""Tests of notices over PostgreSQL: recipients, repeated notices, and an unavailable database."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from server.database.notices import (
    COMMITS,
    EVENTS,
    HEARTBEAT_INTERVAL_S,
    MAX_QUEUED_NOTICES,
    NOTIFY,
    Notices,
    message,
)
from tests.postgres import Postgres
from tests.waiting import until


@contextmanager
def listening(url: str, *topics: str) -> Iterator[tuple[Notices, list[str]]]:
    """Context manager: listen to topics of a database. Yield the `Notices` and a list of the received
    notices.
    """
    notices, told = Notices(url), list[str]()
    for topic in topics:
        notices.listen(topic, told.append)
    notices.start()
    try:
        until(lambda: notices.connected and len(told) == len(topics))
        assert set(told) <= {""}
        told.clear()
        yield notices, told
    finally:
        notices.stop()


def test_all_who_listen_are_told_at_once(database: Postgres) -> None:
    with (
        listening(database.url, COMMITS) as (one, first),
        listening(database.url, COMMITS) as (_, second),
        listening(database.url, EVENTS) as (_, third),
    ):
        began = time.monotonic()
        one.notify(COMMITS, "abc")
        until(lambda: first == second == ["abc"])
        assert time.monotonic() - began < HEARTBEAT_INTERVAL_S
        one.notify(EVENTS, "7 of a log")
        until(lambda: third == ["7 of a log"])
        assert first == second == ["abc"]


def test_a_notice_in_a_transaction_is_told_when_that_is_done(database: Postgres) -> None:
    with listening(database.url, EVENTS) as (_, told), psycopg.connect(database.url) as connection:
        connection.execute(NOTIFY, (message(EVENTS, "1"),))
        connection.rollback()
        connection.execute(NOTIFY, (message(EVENTS, "2"),))
        connection.commit()
        until(lambda: told == ["2"])


def test_sites_in_schemas_of_their_own_tell_each_other_nothing(database: Postgres) -> None:
    with psycopg.connect(database.url) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS other")
    other = f"{database.url}&options=-csearch_path%3Dother"
    with listening(database.url, EVENTS) as (one, first), listening(other, EVENTS) as (two, second):
        two.notify(EVENTS, "theirs")
        one.notify(EVENTS, "ours")
        until(lambda: first == ["ours"] and second == ["theirs"])


def test_a_callback_that_fails_keeps_no_other_from_being_called(
    database: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(payload: str) -> None:
        raise ValueError(payload)

    notices, told = Notices(database.url), list[str]()
    notices.listen(EVENTS, fail)
    notices.listen(EVENTS, told.append)
    notices.start()
    try:
        until(lambda: told == [""])
        notices.notify(EVENTS, "1")
        until(lambda: told == ["", "1"])
    finally:
        notices.stop()


@pytest.mark.parametrize("away", ["frozen", "stopped"])
def test_a_database_that_is_away_is_told_once_and_heals_by_itself(
    database: Postgres, caplog: pytest.LogCaptureFixture, away: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.database.notices.HEARTBEAT_INTERVAL_S", 0.2)
    caplog.set_level(logging.INFO, "bifolio")
    with listening(database.url, COMMITS) as (one, first), listening(database.url, COMMITS) as (two, second):
        if away == "frozen":
            with database.stopped():
                until(lambda: not one.connected and not two.connected, 20)
                notify_many(one)
        else:
            database.control("stop", "-m", "fast")
            try:
                until(lambda: not one.connected and not two.connected, 20)
                notify_many(one)
                time.sleep(2)
            finally:
                database.start()
        until(lambda: "c199" in first, 30)
        # This listener may miss the notices, but is told that it may have missed some.
        until(lambda: "" in second, 30)
        assert "" in first
    for level, sentence in (
        ("ERROR", "notifications of changes on other machines don't arrive"),
        ("INFO", "notifications of changes on other machines work again"),
    ):
        said = [record.levelname for record in caplog.records if sentence in record.message]
        assert said == [level, level]  # one log line for each of the two `Notices`


def notify_many(notices: Notices) -> None:
    """Send many notices during an outage. The calls must not block, and the queue must stay limited."""
    began = time.monotonic()
    for number in range(2 * MAX_QUEUED_NOTICES):
        notices.notify(COMMITS, f"c{number}")
    assert time.monotonic() - began < 3


def test_without_postgresql_nothing_is_told() -> None:
    notices, told = Notices(""), list[str]()
    notices.listen(EVENTS, told.append)
    notices.start()
    notices.notify(EVENTS, "1")
    notices.stop()
    assert not told
    assert not notices.connected


def test_a_notice_that_is_too_long_is_refused() -> None:
    assert message(EVENTS, "1") == "events 1"
    with pytest.raises(ValueError, match="7999 bytes"):
        message(EVENTS, "x" * 8000)
