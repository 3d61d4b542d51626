"""Inverse relations: the documents that refer to a document or file (spec.md 2)."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from immutables import Map

from server.config.model import LocaleSettings
from server.documents.document import PUBLISHED, Document, column_of, default_sort_key
from server.index.effective_version import effective_locales
from server.index.ordering import Order
from server.schema.model import Attribute, Schema, Type
from server.storage.media import media_key

Target = str | tuple[str, str]  # documentId, or (uid, documentId) for a morph relation
Edges = Map[tuple[Target, str, str], Order]  # referring documents by target, locale and status
Difference = tuple[list[Document], list[Document]]  # (removed versions, added versions)
# (type, relation, target, locale, status) → documents that refer to the target
Linking = Callable[[Type, str, Target, str, str], Order]
# (column value, document that contains it, locale for following relations) → related documents
Resolver = Callable[[Any, Document | None, str], list[Document]]

NO_DOCUMENTS = Order(default_sort_key)


def make_edges(orders: Iterable[Order], column: int) -> Edges:
    """Map each target of a relation, by locale and status, to the documents that refer to it.

    `column` is the relation's index in a row.
    """
    sources: dict[tuple[Target, str, str], list[Document]] = defaultdict(list)
    for order in orders:
        # The documents come in the default order, so each list has this order, too.
        for document, targets in zip(order, column_of(order, column), strict=True):
            locale, status = document.locale, document.status
            for target in targets:
                sources[target, locale, status].append(document)
    return Map({key: Order.presorted(documents, default_sort_key) for key, documents in sources.items()})


def apply_edges(edges: Edges, column: int, removed: list[Document], added: list[Document]) -> Edges:
    """Return a relation's edges (see `make_edges`) after documents were removed and added."""

    def keys(document: Document) -> list[tuple[Target, str, str]]:
        locale, status = document.locale, document.status
        return [(target, locale, status) for target in document.row[column]]

    changed = edges.mutate()
    for key, (out, in_) in group_by(removed, added, keys).items():
        order = changed.get(key, NO_DOCUMENTS).with_changes(out, in_)
        if len(order):
            changed[key] = order
        else:
            changed.pop(key, None)
    return changed.finish()


def group_by(removed: list[Document], added: list[Document], keys: Any) -> dict[Any, Difference]:
    groups: dict[Any, Difference] = defaultdict(lambda: ([], []))
    for side, documents in enumerate((removed, added)):
        for document in documents:
            for key in keys(document):
                groups[key][side].append(document)
    return groups


def inverse_resolver(
    attribute: Attribute, type_: Type, status: str, locales: LocaleSettings, linking: Linking
) -> Resolver:
    """Return a function that finds the documents of the type `type_` that refer to a document."""
    other = type_.attributes[attribute.mapped_by or ""]
    many, name = attribute.to_many, other.name

    def resolve(value: Any, owner: Document | None, locale: str) -> list[Document]:
        if owner is None:
            return []
        target: Target = (owner.type.uid, owner.document_id) if other.morph else owner.document_id
        inside = effective_locales(type_, locale, locales)
        orders = [linking(type_, name, target, at, status) for at in inside]
        related = [d for order in orders for d in order.slice(0, len(order) if many else 1)]
        if len(orders) > 1:
            related.sort(key=default_sort_key)
        return related

    return resolve


def holder_resolver(schema: Schema, locales: LocaleSettings, linking: Linking) -> Resolver:
    """Return a function that finds the published documents whose media attributes contain a given file."""
    attributes = [
        (type_, name, locale)
        for type_ in schema.content_types
        for name, attribute in type_.attributes.items()
        for locale in (locales.available if type_.localized else (locales.default,))
        if attribute.type == "media" and attribute.visible
    ]

    def resolve(value: Any, owner: Document | None, locale: str) -> list[Document]:
        path = media_key(owner.path) if owner else None
        orders = [linking(type_, name, path, at, PUBLISHED) for type_, name, at in attributes if path]
        return sorted({id(d): d for order in orders for d in order}.values(), key=default_sort_key)

    return resolve
