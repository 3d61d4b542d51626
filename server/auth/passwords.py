"""Password hashing with argon2.

Hashing or checking a password takes a tenth of a second and 64 MB of memory. Therefore, each process hashes
or checks only one password at a time.
"""

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from server.bounded import BoundedMutex

_HASHER = PasswordHasher(parallelism=1)
_TURNS = BoundedMutex("have passwords", waiting=5, longest=5.0)

# If the user is unknown, the password is checked against this hash of random bytes, so that the response
# takes the same time. The hash was created with the parameters of _HASHER.
_NOBODY = "$argon2id$v=19$m=65536,t=3,p=1$+ojMNBqQdwkq0J9omDSDHw$dN3ssMB5BfIAW2W4GCdKqMlUlShaypOJz24ConMfsbs"


def hash_password(text: str) -> str:
    """Return the hash of a password. Raises BusyError if too many requests are waiting."""
    with _TURNS:
        return _HASHER.hash(text)


def check_password(kept: str | None, text: str) -> bool:
    """Whether a password matches a stored hash. If the hash is None, the result is False, but the check takes
    the same time as with a hash.

    Raises BusyError if too many requests are waiting.
    """
    try:
        with _TURNS:
            return _HASHER.verify(kept or _NOBODY, text) and kept is not None
    except (VerificationError, InvalidHashError):
        return False


def is_outdated(kept: str) -> bool:
    """Whether a hash was created with an older release's parameters, and should therefore be replaced."""
    return _HASHER.check_needs_rehash(kept)
