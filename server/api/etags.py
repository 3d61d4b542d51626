"""Entity tags: which version of a document an answer shows, and how it shows it.

A document's tag is `"VERSION.FORM"`: the first part stands for the document's values, whatever was
asked of them, the second for the bytes of the answer. `If-Match` compares the first part alone, so
that a client may read with `populate` and write with what it got.
"""

from xxhash import xxh3_64_hexdigest, xxh3_128_hexdigest

from server.documents.document import Document
from server.errors import PreconditionError


def version_of(document: Document) -> str:
    """The part of a tag that changes whenever the document does."""
    return xxh3_128_hexdigest(repr(document.row).encode(errors="surrogatepass"))


def tag_of(document: Document, body: bytes) -> str:
    """The entity tag of an answer that shows a document."""
    return f'"{version_of(document)}.{xxh3_64_hexdigest(body)}"'


def tag_of_list(body: bytes) -> str:
    """The entity tag of an answer that shows several documents."""
    return f'"{xxh3_128_hexdigest(body)}"'


def require_match(wanted: str | None, document: Document | None) -> None:
    """Raise PreconditionError where `If-Match` names other versions than the current one."""
    if wanted is None:
        return
    if document is None:
        raise PreconditionError("There is no such document any more", {"version": None})
    current = version_of(document)
    if wanted.strip() == "*":
        return
    named = (
        tag.strip().strip('"').partition(".")[0]
        for tag in wanted.split(",")
        if not tag.strip().startswith("W/")
    )
    if current not in named:
        raise PreconditionError(details={"version": current})
