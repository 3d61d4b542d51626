"""argon2 hashes of passwords.

Making or checking a hash takes a tenth of a second and 64 MB in one thread, so each process hashes for one
request at a time.
"""

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from server.bounded import BoundedMutex

_HASHER = PasswordHasher(parallelism=1)
_TURNS = BoundedMutex("have passwords", waiting=5, longest=5.0)

# Unknown users are checked against this hash of random bytes, so their response takes as long. Its parameters
# are those of _HASHER.
_NOBODY = "$argon2id$v=19$m=65536,t=3,p=1$+ojMNBqQdwkq0J9omDSDHw$dN3ssMB5BfIAW2W4GCdKqMlUlShaypOJz24ConMfsbs"


def hash_password(text: str) -> str:
    """Return the hash of a password. Raises BusyError if too many requests are waiting."""
    with _TURNS:
        return _HASHER.hash(text)


def check_password(kept: str | None, text: str) -> bool:
    """Whether a password matches a stored hash. Takes as long if `kept` is None. Raises BusyError."""
    try:
        with _TURNS:
            return _HASHER.verify(kept or _NOBODY, text) and kept is not None
    except (VerificationError, InvalidHashError):
        return False


def is_outdated(kept: str) -> bool:
    """Whether an older release made the hash, with other parameters."""
    return _HASHER.check_needs_rehash(kept)
