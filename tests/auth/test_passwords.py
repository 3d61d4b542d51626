"""Tests of password hashes: argon2 with its library's recommended parameters, also for names
without a user.
"""

import threading

import pytest
from argon2 import PasswordHasher, extract_parameters

from server.auth import passwords
from server.auth.passwords import check_password, hash_password, is_outdated
from server.bounded import BoundedMutex
from server.errors import BusyError

pytestmark = pytest.mark.usefixtures("real_passwords")


def test_a_password_is_checked_against_its_hash() -> None:
    kept = hash_password("secret12")
    assert kept.startswith("$argon2id$")
    assert "secret12" not in kept
    assert hash_password("secret12") != kept
    assert check_password(kept, "secret12")
    assert not check_password(kept, "secret13")
    assert not check_password(None, "secret12")
    assert not check_password("no hash", "secret12")


def test_the_hash_of_nobody_costs_as_much_as_that_of_a_user() -> None:
    recommended = extract_parameters(PasswordHasher(parallelism=1).hash("x"))
    assert extract_parameters(hash_password("x")) == recommended
    assert extract_parameters(passwords._NOBODY) == recommended


def test_a_hash_of_an_older_release_is_good_and_outdated() -> None:
    older = PasswordHasher(parallelism=4).hash("secret12")
    assert check_password(older, "secret12")
    assert not check_password(older, "secret13")
    assert is_outdated(older)
    assert not is_outdated(hash_password("secret12"))


def test_more_at_once_than_may_wait_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_TURNS", BoundedMutex("have passwords", max_waiting=1, max_wait_s=10))
    kept, refused, checked = hash_password("secret12"), [], []

    def check() -> None:
        try:
            checked.append(check_password(kept, "secret12"))
        except BusyError as error:
            refused.append(error.message)

    threads = [threading.Thread(target=check) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert set(checked) == {True}
    assert set(refused) == {"Too many requests that have passwords are being processed; try again"}
