"""Password hashing with argon2. Each process hashes one password at a time."""
# Hashing takes a tenth of a second and 64 MB of memory.

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from server.bounded import BoundedMutex

_HASHER = PasswordHasher(parallelism=1)
_TURNS = BoundedMutex("have passwords", max_waiting=5, max_wait_s=5.0)

# If a user is unknown, the password is checked against this hash of random bytes. The response then takes as
# long as for a known user. The hash has the same parameters as _HASHER.
_NOBODY = "$argon2id$v=19$m=65536,t=3,p=1$+ojMNBqQdwkq0J9omDSDHw$dN3ssMB5BfIAW2W4GCdKqMlUlShaypOJz24ConMfsbs"


def hash_password(text: str) -> str:
    """Return a password's hash. Raises BusyError if too many requests are waiting."""
    with _TURNS:
        return _HASHER.hash(text)


def check_password(stored_hash: str | None, text: str) -> bool:
    """Return whether a password matches a stored hash. If the hash is None, return False.

    Raises BusyError if too many requests are waiting.
    """
    try:
        with _TURNS:
            return _HASHER.verify(stored_hash or _NOBODY, text) and stored_hash is not None
    except (VerificationError, InvalidHashError):
        return False


def is_outdated(stored_hash: str) -> bool:
    # Older releases hashed with other parameters.
    return _HASHER.check_needs_rehash(stored_hash)
