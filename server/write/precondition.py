"""Hashes of document versions, with which the `If-Match` header is checked.

Each is a keyed hash of a document's values, including private values. Because of the key, clients can't test
a guessed private value against the hash. The key is derived from the session secret with a slow function, in
case the secret is weak.
"""

import secrets
from functools import lru_cache
from hashlib import blake2b, scrypt

from server.documents.document import Document
from server.errors import PreconditionError, ValidationError

# Makes this key different from other keys that are derived from the session secret.
_SALT = b"bifolio versions"
_SCRYPT_COST = {"n": 2**14, "r": 8, "p": 1}  # Deriving the key needs 40 ms and 16 MB.
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

    This happens at the first use of the key, so it does not delay the start of the server.
    """
    return scrypt(secret.encode(), salt=_SALT, dklen=32, **_SCRYPT_COST)


def version_of(document: Document) -> str:
    """Return the hash of a document's values, which is the first part of its entity tag (before the dot)."""
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
    """Whether the `If-Match` header contains the version of `document`. `*` matches every version.

    Raises ValidationError if the header is too long.
    """
    if if_match.strip() == "*":
        return True
    return version_of(document) in _versions_of(if_match)


# Saves 0.6 of 14 µs for each version that a merge compares, and 47 of 60 µs with the longest header.
@lru_cache(maxsize=64)
def _versions_of(if_match: str) -> frozenset[str]:
    if len(if_match) > MAX_IF_MATCH_CHARS:
        limit = f"{MAX_IF_MATCH_CHARS:,} characters"
        raise ValidationError(f"The If-Match header has more than {limit}; send a single entity tag")
    # Weak entity tags (W/"…") match no version, because the W/ is not removed.
    return frozenset(tag.strip().strip('"').partition(".")[0] for tag in if_match.split(","))
