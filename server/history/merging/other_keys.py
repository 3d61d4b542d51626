"""The keys in the file of a document that are no attributes, and what changes of two sides come to in them.

Such are keys that its type does not have, and the service's own fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from server.documents.document import Document
from server.documents.keys import gather
from server.formats.edits import REMOVE, same
from server.formats.tree import Tree
from server.schema.model import FILE_FIELDS
from server.storage.read import parse


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a document as one side has it."""

    document: Document
    data: bytes

    @property
    def path(self) -> str:
        """The file that it is in."""
        return self.document.path


def merge_other_keys(
    base: Version | None, ours: Version, theirs: Version
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What theirs alone has changed, by key, and what both have, as theirs has it.

    REMOVE is what is not there. Of the service's own fields that both have changed, ours are kept.
    """
    alone, both = dict[str, Any](), dict[str, Any]()
    before, mine, other = (_other_keys(version) for version in (base, ours, theirs))
    for key in dict.fromkeys((*before, *mine, *other)):
        old, one, two = (side.get(key, REMOVE) for side in (before, mine, other))
        if _equal(two, old) or _equal(two, one):
            continue
        if _equal(one, old):
            alone[key] = two
        elif key not in FILE_FIELDS:
            both[key] = two
    return alone, both


def changes_other_keys(base: Version, other: Version) -> bool:
    """Whether a version says something otherwise in a key that is no attribute."""
    alone, _ = merge_other_keys(base, base, other)
    return bool(alone.keys() - set(FILE_FIELDS))


def _other_keys(version: Version | None) -> Mapping[str, Tree]:
    if version is None:
        return {}
    document, type_ = version.document, version.document.type
    tree = gather(type_, parse(document.path, version.data.decode(), type_.body))
    return {key: tree[key] for key in tree if key not in type_.attributes and key != "updatedAt"}


def _equal(one: Any, other: Any) -> bool:
    return one is other or (one is not REMOVE and other is not REMOVE and same(one, other))
