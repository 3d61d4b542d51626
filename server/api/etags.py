"""Entity tags: which version of a document an answer shows, and how it shows it.

A document's tag is `"VERSION.FORM"`: the first part stands for the document's values, whatever was
asked of them, the second for the bytes of the answer. `If-Match` compares the first part alone, so
that a client may read with `populate` and write with what it got.
"""

from xxhash import xxh3_64_hexdigest, xxh3_128_hexdigest

from server.documents.document import Document
from server.documents.version import version_of


def tag_of(document: Document, body: bytes) -> str:
    """The entity tag of an answer that shows a document."""
    return f'"{version_of(document)}.{xxh3_64_hexdigest(body)}"'


def tag_of_list(body: bytes) -> str:
    """The entity tag of an answer that shows several documents."""
    return f'"{xxh3_128_hexdigest(body)}"'
