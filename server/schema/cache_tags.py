"""Cache tags: names for types and documents by which caches drop the answers that a change makes old.

A change of a document has the tags of its type and of the document. An answer has those of all that may
change it: a list those of types, one document its own and those of the documents that are shown with it.
"""

from collections.abc import Iterable
from urllib.parse import quote

from server.schema.model import UPLOAD

SITE = "_site"  # the tag of every answer; no API id has an underscore
MOST_BYTES = 4096  # of the header, which may not be much larger for proxies to take it


def type_tag(uid: str) -> str:
    """The tag of everything of a content type: its singular API id, `upload` for media files."""
    return "upload" if uid == UPLOAD else uid.rpartition(".")[2]


def document_tag(uid: str, document_id: str) -> str:
    """The tag of one document in all its locales, as draft and published: `article:ID`.

    The id is as in a URL, since a header can't have every character, and commas and spaces separate tags.
    """
    return f"{type_tag(uid)}:{quote(document_id, safe='')}"


def header_value(tags: Iterable[str]) -> str:
    """The tags of an answer and SITE, with commas between; those of types alone where all are above 4 kB.

    A document whose type is there as well is left out, since each change of it has the tag of its type.
    """
    known = {*tags, SITE}
    value = _joined({tag for tag in known if ":" not in tag or _type_of(tag) not in known})
    return value if len(value) <= MOST_BYTES else _joined({_type_of(tag) for tag in known})


def _type_of(tag: str) -> str:
    return tag.partition(":")[0]


def _joined(tags: Iterable[str]) -> str:
    return ", ".join(sorted(tags))
