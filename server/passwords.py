"""Passwords are kept as argon2 hashes and never shown."""

from argon2 import PasswordHasher

_HASHER = PasswordHasher()


def hash_password(text: str) -> str:
    """The hash that is kept in place of a password."""
    return _HASHER.hash(text)
