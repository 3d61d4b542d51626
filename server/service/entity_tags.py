"""Entity tags: which version of a document an answer shows, and how it shows it.

For those who may change a document, its tag is `"VERSION.FORM"`: the first part stands for the document's
values, whatever was asked of them, the second for the bytes of the answer. `If-Match` compares the first part
alone, so that a client may read with `populate` and write with what it got. For all others, and of a list, a
tag stands for the bytes of the answer, so that it tells nothing but what is shown.
"""

from xxhash import xxh3_64_hexdigest, xxh3_128_hexdigest


def tag_of(version: str, body: bytes) -> str:
    """The entity tag of an answer that shows a version of a document to somebody who may change it."""
    return f'"{version}.{xxh3_64_hexdigest(body)}"'


def tag_of_bytes(body: bytes) -> str:
    """The entity tag of an answer whose version nobody needs to name: it stands for the bytes alone."""
    return f'"{xxh3_128_hexdigest(body)}"'
