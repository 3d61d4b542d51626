"""Passwords are kept as argon2 hashes and never shown."""

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

_HASHER = PasswordHasher()

# A password is compared with this where there is no user, so that the answer takes as long. It is the hash
# of some random bytes, made with the parameters of _HASHER.
_NOBODY = "$argon2id$v=19$m=65536,t=3,p=4$ifB4o+P2A2EaxgtFvZkVrA$ZnSv12GIpNjyQupIM66pa92IrGlpu5TdjhX2svbvyCY"


def hash_password(text: str) -> str:
    """The hash that is kept in place of a password."""
    return _HASHER.hash(text)


def check_password(kept: str | None, text: str) -> bool:
    """Whether a password is the one whose hash was kept; takes as long where none was."""
    try:
        return _HASHER.verify(kept or _NOBODY, text) and kept is not None
    except (VerificationError, InvalidHashError):
        return False
