"""Index of the documents that use each media file, in a media attribute or as a link in a text."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from immutables import Map

from server.documents.document import DRAFT, PUBLISHED, VALUES, Document, default_sort_key
from server.documents.ids import to_nfc
from server.documents.values import components_at
from server.index.inverse_relations import Difference, group_by
from server.index.ordering import Order
from server.schema.model import ACCOUNT_UIDS, UPLOAD, Attribute, Type
from server.storage.images.variants import split_variant_path

Uses = Map[str, Order]  # documents by the media key of a file that they use
Place = tuple[Attribute, ...]  # an attribute, within the attributes that hold its component

# The types of attributes whose texts may contain links to files.
_TEXT_TYPES = frozenset({"string", "text", "richtext", "blocks", "json", "array"})
# A file in a URL or a relative link: `/uploads/a.png`, `../uploads/a(1).png`. In `<…>`, spaces are allowed.
_LINK = re.compile(r"""<[^<>\n]*?uploads/([^<>\n"'#?]+)>|uploads/((?:[^\s()<>"'#?\\\]]|\([^\s()]*\))+)""")
_MARK = "uploads/"


class MediaUsage:
    """Index of the documents that use each media file in one snapshot.

    It is built when it is first needed, and then updated by each write.
    """

    __slots__ = ("_uses",)

    def __init__(self, uses: Uses | None = None) -> None:
        self._uses = uses

    def get(self, documents: Iterable[Document]) -> Uses:
        if self._uses is None:
            self._uses = _apply(Map(), [], [d for d in documents if d.type.uid not in _UNREAD])
        return self._uses

    def with_changes(self, changes: Mapping[str, Difference]) -> "MediaUsage":
        """Return the next snapshot's index. `changes` contains each content type's removed and added
        versions.
        """
        if self._uses is None:
            return MediaUsage()
        uses = self._uses
        for uid, (removed, added) in changes.items():
            if uid not in _UNREAD:
                uses = _apply(uses, removed, added)
        return MediaUsage(uses)


_UNREAD = frozenset({UPLOAD, *ACCOUNT_UIDS})


def places_in(document: Document, key: str) -> list[Place]:
    found = _references(document.type, document.read_row()[VALUES], ())
    return list(dict.fromkeys(place for place, used in found if used == key))


def without_copies(documents: Iterable[Document]) -> list[Document]:
    """Return the documents, except drafts that are only copies of the published version."""
    documents = list(documents)
    published = {(d.type.uid, d.path) for d in documents if d.status == PUBLISHED}
    return [d for d in documents if d.status != DRAFT or (d.type.uid, d.path) not in published]


def _apply(uses: Uses, removed: list[Document], added: list[Document]) -> Uses:
    changed = uses.mutate()
    for key, (out, in_) in group_by(removed, added, _keys).items():
        order = changed.get(key, _NO_USES).with_changes(out, in_)
        if len(order):
            changed[key] = order
        else:
            changed.pop(key, None)
    return changed.finish()


def _order(document: Document) -> Any:
    return (document.type.uid, default_sort_key(document), document.status)


_NO_USES = Order(_order)


def _keys(document: Document) -> set[str]:
    return {key for _, key in _references(document.type, document.read_row()[VALUES], ())}


def _references(type_: Type, values: Any, outer: Place) -> Iterator[tuple[Place, str]]:
    for attribute, value in zip(type_.attributes.values(), values, strict=False):
        if not value:
            continue
        place = (*outer, attribute)
        if attribute.type == "media":
            for key in value:
                yield place, key
        elif attribute.type in _TEXT_TYPES:
            for text in _texts(value):
                for key in _links(text):
                    yield place, key
        elif attribute.holds_components:
            for _, component in components_at(attribute, value, ()):
                yield from _references(component.type, component.values, place)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if _MARK in value:
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _links(text: str) -> Iterator[str]:
    for in_brackets, plain in _LINK.findall(text):
        key = to_nfc(unquote(in_brackets or plain).rstrip(".,;:!"))
        yield key
        # A link to a smaller copy of an image, such as thumbnail_bay.png, uses the image too.
        if of_picture := split_variant_path(key):
            yield of_picture[1]
