"""The cache tags of an answer: of everything whose change may change the answer.

A change has the tags of its type and of its document (`server.schema.model`). So a list has the tags of
the types that it is about, since a document that it does not show may belong to it after a change. What
shows one document has the tag of that, of each document that a relation of it names, and of the types
whose documents may come to be related to it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from xxhash import xxh3_64_hexdigest, xxh3_128_hexdigest

from server.documents.document import Document
from server.documents.ids import id_of_name
from server.documents.values import components_in
from server.index.effective_version import locale_inside
from server.index.snapshot import Snapshot, View
from server.query.ast import Node, Query, Selection
from server.query.mentioned_types import conditions, mentioned_types
from server.schema.model import ACCOUNT_UIDS, UPLOAD, Schema, document_tag, type_tag
from server.storage.images.formats import format_of


def tags_of_list(query: Query, schema: Schema) -> Iterator[str]:
    """The tags of a list."""
    return tags_of_types(mentioned_types(query), schema)


def tags_of_types(uids: Iterable[str], schema: Schema) -> Iterator[str]:
    """The tags of content types and media; components belong to documents, and users have no tags."""
    for uid in uids:
        type_ = schema.types[uid]
        if type_.kind != "component" and uid not in ACCOUNT_UIDS:
            yield type_tag(uid)


def tags_of_document(view: View, document: Document, selection: Selection) -> set[str]:
    """The tags of an answer that shows a document; of a single type, that of the type."""
    collector = _Collector(view)
    if document.type.kind == "singleType":
        collector.add_types([document.type.uid])
    collector.add(document, selection)
    return collector.tags


def tags_of_file(snapshot: Snapshot, key: str) -> list[str]:
    """The tag of the media file with a key, or of the picture of which that is a format."""
    of_picture = format_of(key)
    files = (snapshot.media.get(name) for name in (key, of_picture[1] if of_picture else ""))
    ids = [file.document_id for file in files if file is not None] or [id_of_name(key)]
    return [document_tag(UPLOAD, document_id) for document_id in ids]


@dataclass(frozen=True, slots=True)
class _Collector:
    """Collects tags along what is populated; it looks at a document once for each selection."""

    view: View
    tags: set[str] = field(default_factory=set)
    seen: set[tuple[int, int]] = field(default_factory=set)

    def add(self, document: Document, selection: Selection) -> None:
        """Add the tag of a document and those of what is shown with it."""
        key = (id(document), id(selection))
        if key in self.seen or document.type.uid in ACCOUNT_UIDS:
            return
        self.seen.add(key)
        self.view.budget.spend(1)
        if type_tag(document.type.uid) not in self.tags:
            self.tags.add(document_tag(document.type.uid, document.document_id))
        self._add_members(document.row, document, locale_inside(document), selection)

    def add_types(self, uids: Iterable[str]) -> None:
        """Add the tags of types."""
        self.tags.update(tags_of_types(uids, self.view.snapshot.schema))

    def _add_members(
        self, row: tuple[Any, ...], owner: Document | None, locale: str, selection: Selection
    ) -> None:
        self.add_types(conditions(selection))
        for node in selection.populate:
            if node.attribute is None:
                self._add_shown(self.view.localizations(owner) if owner else (), node)
            elif node.attribute.holds_components:
                for component in components_in(row[node.at]):
                    inner = node.selections.get(component.type.uid)
                    if inner is not None:
                        self._add_members(component.row, None, locale, inner)
            else:
                self._add_related(row[node.at] or (), owner, locale, node)

    def _add_related(self, held: Any, owner: Document | None, locale: str, node: Node) -> None:
        """Add the tags of a relation or of media.

        What is derived changes with any document of the other side. A target that is not found may be a
        draft, whose id is not to be told, so that the tag of its type stands for it.
        """
        assert node.attribute is not None
        documents = self.view.resolver(node.attribute)(held, owner, locale)
        if node.attribute.derived or len(documents) < len(held):
            self.add_types(node.selections)
        self._add_shown(documents, node)

    def _add_shown(self, documents: Iterable[Document], node: Node) -> None:
        for document in documents:
            inner = node.selections.get(document.type.uid)
            if inner is not None:
                self.add(document, inner)


# --- entity tags ----------------------------------------------------------------------------------


def tag_of(version: str, body: bytes) -> str:
    """The entity tag of an answer that shows a version of a document to somebody who may change it."""
    return f'"{version}.{xxh3_64_hexdigest(body)}"'


def tag_of_bytes(body: bytes) -> str:
    """The entity tag of an answer whose version nobody needs to name: it stands for the bytes alone."""
    return f'"{xxh3_128_hexdigest(body)}"'
