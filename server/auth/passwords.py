"""Passwords are kept as argon2 hashes and never shown.

To make or check a hash takes a tenth of a second and 64 MB, in one thread. Only one request of a process
does so at a time, so that there is time for all others.
"""

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from server.bounded import BoundedMutex

_HASHER = PasswordHasher(parallelism=1)
_TURNS = BoundedMutex("have passwords", waiting=5, longest=5.0)

# A password is compared with this where there is no user, so that the answer takes as long. It is the hash
# of some random bytes, made with the parameters of _HASHER.
_NOBODY = "$argon2id$v=19$m=65536,t=3,p=1$+ojMNBqQdwkq0J9omDSDHw$dN3ssMB5BfIAW2W4GCdKqMlUlShaypOJz24ConMfsbs"


def hash_password(text: str) -> str:
    """The hash that is kept in place of a password. Raises BusyError where too many are asked for."""
    with _TURNS:
        return _HASHER.hash(text)


def check_password(kept: str | None, text: str) -> bool:
    """Whether a password is the one whose hash was kept; takes as long where none was. Raises BusyError."""
    try:
        with _TURNS:
            return _HASHER.verify(kept or _NOBODY, text) and kept is not None
    except (VerificationError, InvalidHashError):
        return False


def is_outdated(kept: str) -> bool:
    """Whether a hash was made with other parameters than hashes are now, by an older release."""
    return _HASHER.check_needs_rehash(kept)
