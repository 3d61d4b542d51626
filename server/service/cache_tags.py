"""Cache tags and entity tags of responses.

When a document changes, all responses tagged with its content type or its id become invalid.
"""

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
from server.storage.images.variants import split_variant_path


def tags_of_list(query: Query, schema: Schema) -> Iterator[str]:
    return tags_of_types(mentioned_types(query), schema)


def tags_of_types(uids: Iterable[str], schema: Schema) -> Iterator[str]:
    for uid in uids:
        type_ = schema.types[uid]
        if type_.kind != "component" and uid not in ACCOUNT_UIDS:
            yield type_tag(uid)


def tags_of_document(view: View, document: Document, selection: Selection) -> set[str]:
    collector = _Collector(view)
    if document.type.kind == "singleType":
        collector.add_types([document.type.uid])
    collector.add(document, selection)
    return collector.tags


def tags_of_file(snapshot: Snapshot, key: str) -> list[str]:
    format_name = split_variant_path(key)
    files = (snapshot.media.get(name) for name in (key, format_name[1] if format_name else ""))
    ids = [file.document_id for file in files if file is not None] or [id_of_name(key)]
    return [document_tag(UPLOAD, document_id) for document_id in ids]


@dataclass(frozen=True, slots=True)
class _Collector:
    view: View
    tags: set[str] = field(default_factory=set)
    seen: set[tuple[int, int]] = field(default_factory=set)

    def add(self, document: Document, selection: Selection) -> None:
        key = (id(document), id(selection))
        if key in self.seen or document.type.uid in ACCOUNT_UIDS:
            return
        self.seen.add(key)
        self.view.budget.spend(1)
        if type_tag(document.type.uid) not in self.tags:
            self.tags.add(document_tag(document.type.uid, document.document_id))
        self._add_members(document.row, document, locale_inside(document), selection)

    def add_types(self, uids: Iterable[str]) -> None:
        self.tags.update(tags_of_types(uids, self.view.snapshot.schema))

    def _add_members(
        self, row: tuple[Any, ...], owner: Document | None, locale: str, selection: Selection
    ) -> None:
        self.add_types(conditions(selection))
        for node in selection.populate:
            if node.attribute is None:
                self._add_shown(self.view.localizations(owner) if owner else (), node)
            elif node.attribute.holds_components:
                for component in components_in(row[node.column_index]):
                    inner = node.selections.get(component.type.uid)
                    if inner is not None:
                        self._add_members(component.row, None, locale, inner)
            else:
                self._add_related(row[node.column_index] or (), owner, locale, node)

    def _add_related(self, targets: Any, owner: Document | None, locale: str, node: Node) -> None:
        # The tags of the target types are needed in two cases. Any document of a target type can change an
        # inverse relation. A target that can't be found might be a draft, so its id must not be revealed.
        assert node.attribute is not None
        documents = self.view.resolver(node.attribute)(targets, owner, locale)
        if node.attribute.derived or len(documents) < len(targets):
            self.add_types(node.selections)
        self._add_shown(documents, node)

    def _add_shown(self, documents: Iterable[Document], node: Node) -> None:
        for document in documents:
            inner = node.selections.get(document.type.uid)
            if inner is not None:
                self.add(document, inner)


# --- entity tags ----------------------------------------------------------------------------------


def tag_of(version: str, body: bytes) -> str:
    # tag for callers who are allowed to change the document; other callers get `tag_of_bytes`
    return f'"{version}.{xxh3_64_hexdigest(body)}"'


def tag_of_bytes(body: bytes) -> str:
    return f'"{xxh3_128_hexdigest(body)}"'
