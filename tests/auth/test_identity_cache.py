"""Tests of the cache of callers: its content, its expiry, and its use while the database is unavailable."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest

from server.auth import identity_cache
from server.auth.accounts import Accounts
from server.auth.logins import Logins
from server.auth.users import Users
from server.errors import NeedsThreadPool, UnavailableError
from tests.postgres import Postgres
from tests.waiting import until

HOUR = timedelta(hours=1)
REVOKE = "DELETE FROM tokens WHERE name = 'one'"


@pytest.fixture
def accounts(database: Postgres, tmp_path: Path) -> Iterator[Accounts]:
    database.empty()
    opened = Accounts(tmp_path, database.url)
    yield opened
    opened.close()


def written(database: Postgres, statement: str) -> None:
    """Change the database directly, without the knowledge of the processes that have it open."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[call-overload]


@contextmanager
def read_only(database: Postgres) -> Iterator[None]:
    """Context manager: make the database server read-only, like a PostgreSQL standby server."""
    change = "ALTER SYSTEM SET default_transaction_read_only = {}"
    try:
        for statement in (change.format("on"), "SELECT pg_reload_conf()"):
            written(database, statement)
        yield
    finally:
        with psycopg.connect(database.url, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(change.format("off"))  # type: ignore[call-overload]
            connection.execute("SELECT pg_reload_conf()")


def test_a_change_that_nobody_tells_of_counts_after_a_moment(accounts: Accounts, database: Postgres) -> None:
    token = accounts.create_token("one", "read-only")
    assert accounts.find_token(token)
    written(database, REVOKE)
    until(lambda: accounts.find_token(token) is None, identity_cache.CACHE_TTL_S + 5)


def test_who_was_asked_about_lately_is_known_without_waiting(accounts: Accounts) -> None:
    token = accounts.create_token("one", "read-only")
    with pytest.raises(NeedsThreadPool):
        accounts.find_token(token, waits=False)
    assert accounts.find_token(token)
    assert accounts.find_token(token, waits=False)
    accounts.known.forget(*(key for key, _ in accounts.known._kept.items()))
    with pytest.raises(NeedsThreadPool):
        accounts.find_token(token, waits=False)


def test_a_token_that_was_made_just_now_is_taken_although_it_was_refused_before(
    accounts: Accounts, database: Postgres
) -> None:
    token = accounts.create_token("one", "read-only")
    accounts.revoke_token("one")
    assert accounts.find_token(token) is None
    hashed = sha256(token.encode()).hexdigest()
    written(database, f"INSERT INTO tokens VALUES ('{hashed}', 'two', 'read-only', '', '2026', NULL)")
    assert accounts.find_token(token)


def test_a_login_that_was_ended_is_not_known(accounts: Accounts) -> None:
    users, logins = Users(accounts), Logins(accounts)
    user = users.create("ann", "ann@example.org", "secret12", role="authenticated", confirmed=True)
    login = logins.begin(user, HOUR, HOUR, None, None)
    assert logins.get_cached(login.id) == login
    logins.end(user.id, login.id)
    assert logins.get_cached(login.id) is None


def test_while_the_database_is_away_who_was_known_is_believed_for_a_while_and_the_log_says_it_once(
    accounts: Accounts, database: Postgres, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(identity_cache, "OUTAGE_TTL_S", 6.0)
    users = Users(accounts)
    user = users.create("ann", "ann@example.org", "secret12", role="authenticated", confirmed=True)
    token, unseen = accounts.create_token("one", "read-only"), accounts.create_token("two", "read-only")
    assert accounts.find_token(token)
    assert users.get_cached(user.id) == user
    version = users.version
    with caplog.at_level(logging.INFO, "bifolio"):
        with database.stopped():
            time.sleep(identity_cache.CACHE_TTL_S)
            assert accounts.find_token(token)
            began = time.monotonic()
            assert users.get_cached(user.id) == user
            assert users.version == version
            for _ in range(20):
                with pytest.raises(UnavailableError):
                    accounts.find_token(unseen)
            assert time.monotonic() - began < 3  # the waits don't add up
            until(lambda: not is_believed(accounts, token), 6)
        until(lambda: is_believed(accounts, unseen), 5)
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("ERROR", "the accounts database can't be used: no response within 3 s"),
        ("INFO", "the accounts database is available again"),
    ]


def is_believed(accounts: Accounts, token: str) -> bool:
    with suppress(UnavailableError):
        return accounts.find_token(token) is not None
    return False


def test_a_database_that_refuses_to_write_is_read_and_written_again_when_it_lets(
    accounts: Accounts, database: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    token = accounts.create_token("one", "read-only")
    with caplog.at_level(logging.INFO, "bifolio"):
        with read_only(database):
            until(lambda: not is_written(accounts))
            assert not is_written(accounts)
            assert accounts.is_read_only
            assert accounts.find_token(token)
        until(lambda: not accounts.is_read_only, 5)
        assert is_written(accounts)
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "the accounts database can't be written",
        "the accounts database is available again",
    ]


def is_written(accounts: Accounts) -> bool:
    with suppress(UnavailableError):
        accounts.revoke_token("nobody")
        return True
    return False
