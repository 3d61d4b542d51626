"""Which version of a document somebody means: a hash of its values, which `If-Match` is compared with."""

from xxhash import xxh3_128_hexdigest

from server.documents.document import Document
from server.errors import PreconditionError


def version_of(document: Document) -> str:
    """What changes whenever a document does: the part of an entity tag before the dot."""
    return xxh3_128_hexdigest(repr(document.row).encode(errors="surrogatepass"))


def require_match(wanted: str | None, document: Document | None) -> None:
    """Raise PreconditionError where `If-Match` names other versions than the current one."""
    if wanted is None:
        return
    if document is None:
        raise PreconditionError("There is no such document any more", {"version": None})
    current = version_of(document)
    if wanted.strip() == "*":
        return
    # A weak tag, W/"…", keeps what stands before its quote, so that it names no version.
    named = (tag.strip().strip('"').partition(".")[0] for tag in wanted.split(","))
    if current not in named:
        raise PreconditionError(details={"version": current})
