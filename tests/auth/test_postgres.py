"""Tests of accounts in PostgreSQL, which must behave as in SQLite. They need a PostgreSQL server."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from server.auth.accounts import Accounts
from server.auth.directory import differs_from_last
from server.auth.logins import Logins
from server.auth.users import Users
from server.database.postgres import connect_to
from server.errors import DuplicateUserError, SetupError, UnavailableError
from tests.postgres import Postgres, postgres
from tests.waiting import until


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.fixture
def url(database: Postgres) -> str:
    return database.url


def test_tokens_and_users_live_there(url: str, tmp_path: Path) -> None:
    here, there = Accounts(tmp_path, url), Accounts(tmp_path, url)
    token = here.create_token("one", "custom", ["note.find"])
    found = there.find_token(token)
    assert found is not None
    assert found.actor().may("note", "find")
    assert not (tmp_path / ".bifolio" / "accounts.db").exists()
    with pytest.raises(SetupError, match='a token named "one" already exists'):
        there.create_token("one", "read-only")
    assert here.revoke_token("one")
    until(lambda: there.find_token(token) is None, 1)
    user = Users(here).create("ann", "ann@example.org", "secret12", role="authenticated", confirmed=True)
    assert Users(there).authenticate("ann", "secret12") == user
    assert Users(there).update(user.id, {"password": "secret34"}) is not None
    assert Users(here).authenticate("ann", "secret12") is None
    for _ in range(2):
        here.last_uses.note_user(user.id)
        here.last_uses.save()
    assert there.last_uses.all() == here.last_uses.all() != {}
    assert Users(there).count_by_role() == {"authenticated": 1}
    assert Users(there).ids_without_password() == set()
    session = timedelta(days=1)
    Logins(here).begin(Users(here).get(user.id) or user, session, session, None, None)
    assert Logins(there).count_by_user() == {user.id: 1}
    Users(here).end_sessions(user.id)
    assert Logins(there).count_by_user() == {}
    here.close()
    there.close()


def test_users_do_not_change_while_they_are_locked(url: str, tmp_path: Path) -> None:
    here, there = Accounts(tmp_path, url), Accounts(tmp_path, url)
    with Users(here).locked() as users:
        assert users == Users(there).count_by_role()
        with pytest.raises(UnavailableError), there.engine.writing(timeout_s=0.1) as connection:
            connection.execute("UPDATE versions SET number = number + 1 WHERE name = 'users'")
    for each in (here, there):
        each.close()


def test_a_database_of_any_encoding_keeps_texts(url: str, tmp_path: Path) -> None:
    """A PostgreSQL server that was set up without a locale uses the encoding SQL_ASCII."""
    with connect_to(url) as connection:
        connection.execute("DROP DATABASE IF EXISTS plain")
        connection.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'")
    accounts = Accounts(tmp_path, url.replace("/postgres?", "/plain?"))
    user = Users(accounts).create("zoë", "zoe@example.org", "secret12", role="authenticated", confirmed=True)
    assert Users(accounts).authenticate("zoë", "secret12") == user
    assert accounts.find_token(accounts.create_token("one", "read-only")) is not None
    accounts.close()


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="the accounts database can't be used") as caught:
        Accounts(tmp_path, "postgresql://nobody@127.0.0.1:1/none")
    assert "\n" not in str(caught.value)


def test_names_are_one_and_changes_are_counted_there_too(url: str, tmp_path: Path) -> None:
    here, there = Accounts(tmp_path, url), Accounts(tmp_path, url)
    before = Users(there).version
    Users(here).create("zoë", "zoe@example.org", "secret12", role="authenticated", confirmed=True)
    assert Users(here).version > before
    until(lambda: Users(there).version == Users(here).version, 1)
    with pytest.raises(DuplicateUserError):
        Users(there).create("ZOË", "other@example.org", "secret12", role="authenticated", confirmed=True)
    here.close()
    there.close()


def test_a_server_that_stands_still_is_given_up_and_asked_again_when_it_goes_on(
    database: Postgres, tmp_path: Path
) -> None:
    accounts = Accounts(tmp_path, database.url)
    token = accounts.create_token("still", "read-only")
    with database.stopped():
        began = time.monotonic()
        with pytest.raises(UnavailableError):
            accounts.find_token(token)
        given_up = time.monotonic()
        assert given_up - began < 10
        with pytest.raises(UnavailableError):
            Users(accounts).get(1)
        assert time.monotonic() - given_up < 1

    def is_known() -> bool:
        try:
            return accounts.find_token(token) is not None
        except UnavailableError:
            return False

    until(is_known, 5)
    accounts.close()


def test_a_server_that_was_started_again_is_asked_at_once(database: Postgres, tmp_path: Path) -> None:
    accounts = Accounts(tmp_path, database.url)
    token = accounts.create_token("again", "read-only")
    assert accounts.find_token(token)
    database.start_again()
    assert accounts.find_token(token)
    accounts.close()


def test_machines_with_different_keys_of_sessions_are_told(url: str, tmp_path: Path) -> None:
    accounts = Accounts(tmp_path, url)
    found = [differs_from_last(accounts, key * 32) for key in "aaabba"]
    assert found[1:] == [False, False, True, False, True]
    accounts.close()
