"""Hashes of document versions, against which the `If-Match` header is checked.

The hash of a version is computed from all of the document's values, including private ones, and from a secret
key. Without the key, clients can't check whether they have guessed a private value. The key is derived from
the session secret with a slow function, so that even a weak secret is hard to guess.
"""

import secrets
from functools import lru_cache
from hashlib import blake2b, scrypt

from server.documents.document import Document
from server.errors import PreconditionError, ValidationError

# With this salt, the key is different from all other keys that are derived from the session secret.
_SALT = b"bifolio versions"
# With this cost, deriving the key takes 40 ms and 16 MB of memory.
_SCRYPT_COST = {"n": 2**14, "r": 8, "p": 1}
MAX_IF_MATCH_CHARS = 8192  # Longer headers are rejected, to limit the time for comparisons.
_secret = secrets.token_hex(32)  # random for this process, unless `use_key` sets it


def use_key(secret: str) -> None:
    """Set the session secret from which the key for the hashes is derived.

    All processes with the same secret compute the same hashes.
    """
    global _secret
    _secret = secret


# The cache saves 45 of 50 ms in a write.
@lru_cache(maxsize=1)
def _key_of(secret: str) -> bytes:
    """Derive the key for the hashes from the session secret.

    The key is derived when it is first used, so that the server starts without this delay.
    """
    return scrypt(secret.encode(), salt=_SALT, dklen=32, **_SCRYPT_COST)


def version_of(document: Document) -> str:
    """Return the hash of a document's values. It is the part of the document's entity tag before the dot."""
    values = repr(document.row).encode(errors="surrogatepass")
    return blake2b(values, digest_size=16, key=_key_of(_secret)).hexdigest()


def require_match(if_match: str | None, document: Document | None, *, tell: bool = True) -> None:
    """Raise PreconditionError if the `If-Match` header does not contain the current version of the document.

    If `tell` is set, the error includes the current version.
    """
    if if_match is None:
        return
    if document is None:
        raise PreconditionError("The document no longer exists", {"version": None} if tell else {})
    if not is_named(if_match, document):
        raise PreconditionError(details={"version": version_of(document)} if tell else {})


def is_named(if_match: str, document: Document) -> bool:
    """Whether the `If-Match` header contains the version of `document`. The header `*` matches every version.

    Raises ValidationError if the header is too long.
    """
    if if_match.strip() == "*":
        return True
    return version_of(document) in _versions_of(if_match)


# The cache saves 0.6 of 14 µs for each version that a merge compares, and 47 of 60 µs with the longest
# header.
@lru_cache(maxsize=64)
def _versions_of(if_match: str) -> frozenset[str]:
    if len(if_match) > MAX_IF_MATCH_CHARS:
        limit = f"{MAX_IF_MATCH_CHARS:,} characters"
        raise ValidationError(f"The If-Match header has more than {limit}; send a single entity tag")
    # Weak entity tags (W/"…") match no version, because the W/ is not removed.
    return frozenset(tag.strip().strip('"').partition(".")[0] for tag in if_match.split(","))
