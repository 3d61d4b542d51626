"""Passwords at rest: argon2 with the parameters that its library recommends, where there is no user too."""

import pytest
from argon2 import PasswordHasher, extract_parameters

from server.auth import passwords
from server.auth.passwords import check_password, hash_password

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
    recommended = extract_parameters(PasswordHasher().hash("x"))
    assert extract_parameters(hash_password("x")) == recommended
    assert extract_parameters(passwords._NOBODY) == recommended
