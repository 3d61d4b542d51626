"""Tests of users in the database: equal names, versions, and databases created by older releases."""

import re
import sqlite3
import sys
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from server.auth.accounts import Accounts
from server.auth.user import INVISIBLE_CHARS, MAX_CHARS, User, name_key, plain_name, violated_rule
from server.auth.users import Users
from server.errors import DuplicateUserError


@pytest.fixture
def users(tmp_path: Path) -> Iterator[Users]:
    accounts = Accounts(tmp_path)
    yield Users(accounts)
    accounts.close()


def create(users: Users, username: str, email: str = "") -> User:
    return users.create(
        username, email or f"{username.strip()}@example.org", "secret12", role="authenticated", confirmed=True
    )


@pytest.mark.parametrize("other", ["ann", "Ann", "ANN", " ann", "ann\u2003", "ａｎｎ", "aⁿn"])
def test_two_names_that_nobody_can_tell_apart_are_one(users: Users, other: str) -> None:
    create(users, "ann")
    with pytest.raises(DuplicateUserError, match="Username already taken"):
        create(users, other, "other@example.org")
    bob = create(users, "bob")
    with pytest.raises(DuplicateUserError):
        users.update(bob.id, {"username": other})
    with pytest.raises(DuplicateUserError, match="Email or Username are already taken"):
        users.register(other, "other@example.org", "secret12", confirmed=True)


@pytest.mark.parametrize("other", ["ann@example.org", "ANN@example.org", " ann@example.org"])
def test_an_address_belongs_to_one_user(users: Users, other: str) -> None:
    create(users, "ann")
    with pytest.raises(DuplicateUserError, match="Email already taken"):
        create(users, "bob", other)
    with pytest.raises(DuplicateUserError):
        create(users, other, "other@example.org")  # as a name, because users can also log in by name
    bob = create(users, "bob")
    with pytest.raises(DuplicateUserError):
        users.update(bob.id, {"email": other})


def test_a_user_may_keep_and_change_the_spelling_of_a_name(users: Users) -> None:
    ann = create(users, "ann")
    changed = users.update(ann.id, {"username": " Ann ", "email": "ANN@example.org"})
    assert changed is not None
    assert (changed.username, changed.email) == ("Ann", "ann@example.org")


def test_one_logs_in_by_the_name_or_by_the_address_in_any_case(users: Users) -> None:
    create(users, "Zoe\u0308", "zoe@example.org")
    for identifier in ("Zoë", " Zoë ", "Zoe\u0308", "zoe@example.org", " ZOE@Example.org"):
        assert users.authenticate(identifier, "secret12") is not None, identifier
    for identifier in ("Zoe", "Zo", "zoë", "ZOË", ""):
        assert users.authenticate(identifier, "secret12") is None, identifier


def test_the_hash_of_an_older_release_is_renewed_at_the_next_login(users: Users) -> None:
    """The user's sessions and timestamps must not change."""
    ann = create(users, "ann")
    older = PasswordHasher(time_cost=2, memory_cost=16, parallelism=2).hash("secret12")
    with users.engine.writing() as connection:
        connection.execute("UPDATE users SET password = ? WHERE id = ?", (older, ann.id))

    def kept() -> str:
        with users.engine.reading() as connection:
            return str(connection.execute("SELECT password FROM users").fetchone()[0])

    assert users.authenticate("ann", "wrong") is None
    assert kept() == older
    assert users.authenticate("ann", "secret12") == ann
    renewed = kept()
    assert renewed != older
    assert users.authenticate("ann", "secret12") == ann
    assert kept() == renewed


def test_names_are_measured_as_they_are_kept() -> None:
    assert violated_rule("username", "  a  ", 3)
    assert not violated_rule("username", " abc ", 3)
    assert violated_rule("username", "\ufdfa" * 100)  # a letter that expands to eighteen letters
    assert len(name_key("ß" * (MAX_CHARS["username"] // 2))) == MAX_CHARS["username"]
    assert plain_name(" Zoe\u0308 ") == "Zoë"


def test_the_version_grows_with_what_can_be_seen_of_users(tmp_path: Path) -> None:
    here, there = Accounts(tmp_path), Accounts(tmp_path)
    users, others = Users(here), Users(there)
    seen = [others.version]

    def grows() -> bool:
        seen.append(others.version)
        return seen[-1] > seen[-2] and seen[-1] == users.version

    ann = create(users, "ann")
    assert grows()
    users.update(ann.id, {"blocked": True})
    assert grows()
    code, reset = users.confirm_code(ann), users.reset_code(ann)
    users.authenticate("ann", "secret12")
    users.spend_confirm_code("nothing")
    here.create_token("one", "read-only")
    assert not grows()
    users.spend_confirm_code(code)
    assert grows()
    users.spend_reset_code(reset)
    users.delete(ann.id)
    assert grows()
    users.delete(ann.id)
    assert not grows()
    here.close()
    there.close()


def test_of_many_who_want_a_name_at_once_one_gets_it(tmp_path: Path) -> None:
    accounts = [Accounts(tmp_path) for _ in range(4)]
    made: list[User] = []

    def try_to(users: Users, name: str) -> None:
        with suppress(DuplicateUserError):
            made.append(create(users, name, f"{len(name)}@example.org"))

    names = ("ann", "ANN ", " aNN  ", "Ann   ")
    threads = [
        threading.Thread(target=try_to, args=(Users(each), name))
        for each, name in zip(accounts, names, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == len(Users(accounts[0]).all()) == 1
    for each in accounts:
        each.close()


OLD = """
CREATE TABLE users (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, document_id VARCHAR(24) NOT NULL UNIQUE,
    username VARCHAR(200) NOT NULL UNIQUE, email VARCHAR(320) NOT NULL UNIQUE, password VARCHAR(200),
    provider VARCHAR(40) NOT NULL, confirmed BOOLEAN NOT NULL, blocked BOOLEAN NOT NULL,
    role VARCHAR(100) NOT NULL, sessions INTEGER NOT NULL, reset_hash VARCHAR(64),
    confirm_hash VARCHAR(64), created_at VARCHAR(24) NOT NULL, updated_at VARCHAR(24) NOT NULL
)
"""


def test_a_database_of_an_older_release_is_brought_up_to_date(tmp_path: Path) -> None:
    (tmp_path / ".bifolio").mkdir()
    row = "'local', 1, 0, 'editor', 0, NULL, NULL, '2024-01-01T00:00:00.000Z', '2024-01-01T00:00:00.000Z'"
    with sqlite3.connect(tmp_path / ".bifolio/accounts.db") as database:
        database.execute(OLD)
        for i, name in enumerate(("ann", "Ann", "bob"), 1):
            database.execute(f"INSERT INTO users VALUES ({i}, 'd{i}', '{name}', '{i}@x.org', NULL, {row})")
    database.close()
    for _ in range(2):
        accounts = Accounts(tmp_path)
        users = Users(accounts)
        assert [user.username for user in users.all()] == ["ann", "Ann", "bob"]
        for taken in ("ANN", "Ann", "BOB", "1@x.org"):
            with pytest.raises(DuplicateUserError):
                create(users, taken, "new@example.org")
        assert users.update(2, {"blocked": True}) is not None
        accounts.close()


def test_every_invisible_character_is_known() -> None:
    """This checks this Python's version of Unicode. A newer version may contain more invisible characters."""
    invisible = re.compile(f"[{INVISIBLE_CHARS}]")
    for char in map(chr, {*range(sys.maxunicode + 1)} - {*range(0xD800, 0xE000)}):
        if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp"):
            assert invisible.fullmatch(char), hex(ord(char))
