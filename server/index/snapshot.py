"""Immutable snapshot of all documents. It can be read without a lock."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from immutables import Map

from server.config.model import Settings
from server.documents.document import Document, default_sort_key
from server.index.budget import UNLIMITED, Budget
from server.index.claims import Claims, is_indexed
from server.index.effective_version import (
    EVERY_LOCALE,
    effective_locales,
    effective_status,
    effective_version,
)
from server.index.fragments import Fragments
from server.index.inverse_relations import (
    NO_DOCUMENTS,
    Difference,
    Resolver,
    Target,
    holder_resolver,
    inverse_resolver,
)
from server.index.media_usage import MediaUsage, Uses
from server.index.ordering import Order, order_of
from server.index.orders import ColumnKey, JoinedOrders, Orders
from server.index.text_search import SearchResults
from server.index.type_table import (
    NO_SLOTS,
    Localization,
    Slots,
    Table,
    Version,
    VersionKey,
    apply_table,
    build_table,
)
from server.schema.model import UPLOAD, Attribute, Schema, Type
from server.storage.media import media_key

Documents = list[Document]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Index of all documents at one moment. Each new snapshot has a higher `number`.

    `rendered` caches items that are rendered with relations, and `fragments` caches items without relations.
    `users` is the version number of the users, or None if the snapshot contains no users.
    """

    schema: Schema
    tables: Mapping[str, Table]
    media: Map[str, Document] = field(default_factory=Map)
    claims: Claims = field(default_factory=Claims)
    number: int = 0
    fragments: Fragments = field(default_factory=Fragments)
    rendered: Fragments = field(default_factory=Fragments)
    search_results: SearchResults = field(default_factory=SearchResults)
    orders: Orders = field(default_factory=Orders)
    usage: MediaUsage = field(default_factory=MediaUsage)
    users: int | None = None

    def with_users(self, tables: Mapping[str, Table], orders: Orders, users: int) -> "Snapshot":
        joined_orders = JoinedOrders(self.orders, orders, tables.keys())
        joined_tables = {**self.tables, **tables}
        return replace(
            self,
            tables=joined_tables,
            rendered=Fragments(),
            search_results=SearchResults(),
            orders=joined_orders,
            users=users,
        )

    def get(self, type_: Type, document_id: str, locale: str, status: str) -> Document | None:
        return self.tables[type_.uid].versions.get((document_id, locale, status))

    def list(self, type_: Type, locale: str, status: str) -> Order:
        return self.tables[type_.uid].order.get((locale, status), NO_DOCUMENTS)

    def ordered(self, key: ColumnKey, budget: Budget) -> Order:
        def make() -> Order:
            default = self.tables[key.uid].order.get((key.locale, key.status), NO_DOCUMENTS)
            budget.spend(len(default) * len(key.columns))
            return order_of(list(default), key.columns)

        return self.orders.get(key, make)

    def members(self, type_: Type, locale: str, status: str, bits: int) -> Documents:
        """Return the documents in a bit set, in the default order. This is fast only for small sets."""
        return sorted(self.slots(type_, locale, status).members(bits), key=default_sort_key)

    def slots(self, type_: Type, locale: str, status: str) -> Slots:
        return self.tables[type_.uid].slots.get((locale, status), NO_SLOTS)

    def linking(self, type_: Type, relation: str, target: Target, locale: str, status: str) -> Order:
        edges = self.tables[type_.uid].linking(type_.attributes[relation], type_.position[relation])
        return edges.get((target, locale, status), NO_DOCUMENTS)

    @property
    def media_uses(self) -> Uses:
        return self.usage.get(
            document for table in self.tables.values() for document in table.versions.values()
        )


def empty(schema: Schema) -> Snapshot:
    return Snapshot(schema, {t.uid: Table() for t in schema.types.values() if t.kind != "component"})


def build(schema: Schema, documents: Iterable[Document]) -> Snapshot:
    """Create a snapshot. This is faster than adding the documents with `apply`."""
    claimed: dict[str, dict[Version, Document]] = defaultdict(dict)
    others: dict[VersionKey, tuple[Document, ...]] = {}
    for document in documents:
        _, document_id, locale = document.key
        first = claimed[document.type.uid].setdefault((document_id, locale, document.status), document)
        if first is not document:
            key = _key(document)
            others[key] = tuple(sorted((*others.get(key, (first,)), document), key=_path))
        elif not is_indexed(document.type, document.status):
            others[_key(document)] = (document,)
    for key, documents in others.items():
        claimed[key[0]][key[1:]] = documents[0]
    empty_snapshot = empty(schema)
    tables = {uid: build_table(schema.types[uid], versions) for uid, versions in claimed.items()}
    tables = {**empty_snapshot.tables, **tables}
    media = [others.get((UPLOAD, *key), (file,))[-1] for key, file in claimed[UPLOAD].items()]
    return replace(
        empty_snapshot,
        tables=tables,
        media=_apply_media(empty_snapshot.media, [], media, Table()),
        claims=Claims(tables, Map(others)),
        number=1,
    )


def apply(snapshot: Snapshot, removed: Iterable[Document], added: Iterable[Document]) -> Snapshot:
    """Return a new snapshot in which documents are removed and added.

    If several files contain the same version, the file with the first path is served.
    """
    removed, added = list(removed), list(added)
    changed = _changed_claims(snapshot.claims, removed, added)
    tables = dict(snapshot.tables)

    def claimants(key: VersionKey) -> tuple[Document, ...]:
        return changed[key] if key in changed else snapshot.claims.get(key, ())

    changes: dict[str, Difference] = {}
    by_type: dict[str, list[Localization]] = defaultdict(list)
    for uid, document_id, locale in sorted({key[:3] for key in changed}):
        by_type[uid].append((document_id, locale))
    for uid, pairs in by_type.items():
        tables[uid], changes[uid] = apply_table(snapshot.schema.types[uid], tables[uid], claimants, pairs)
        snapshot.fragments.forget(changes[uid][0])
    return replace(
        snapshot,
        tables=tables,
        media=_apply_media(snapshot.media, removed, added, tables[UPLOAD]),
        claims=snapshot.claims.with_changes(tables, changed),
        number=snapshot.number + 1,
        rendered=Fragments(),
        search_results=SearchResults(),
        orders=snapshot.orders.with_changes(changes),
        usage=snapshot.usage.with_changes(changes),
    )


def _path(document: Document) -> str:
    return document.path


def _key(document: Document) -> VersionKey:
    _, document_id, locale = document.key
    return (document.type.uid, document_id, locale, document.status)


def _changed_claims(
    claims: Claims, removed: list[Document], added: list[Document]
) -> dict[VersionKey, tuple[Document, ...]]:
    """Map each version that has changed to the documents that claim it now."""
    changed: dict[VersionKey, tuple[Document, ...]] = {}
    for document in removed:
        key = _key(document)
        before = changed[key] if key in changed else claims.get(key, ())
        changed[key] = tuple(d for d in before if d.path != document.path)
    for document in added:
        key = _key(document)
        before = changed[key] if key in changed else claims.get(key, ())
        changed[key] = tuple(sorted((*before, document), key=_path))
    return changed


def _apply_media(
    media: Map[str, Document], removed: list[Document], added: list[Document], files: Table
) -> Map[str, Document]:
    # If two files have the same key, the file whose path sorts first wins.
    changed, freed = media.mutate(), set[str]()
    for document in removed:
        key = _media_key(document)
        if key and key in changed and changed[key].path == document.path:
            del changed[key]
            freed.add(key)
    others: Iterable[Document] = ()
    # Another file may have the same key, in a different Unicode form.
    if any(not key.isascii() for key in freed):
        others = (document for document in files.versions.values() if _media_key(document) in freed)
    for document in (*added, *others):
        key = _media_key(document)
        if key and (key not in changed or document.path <= changed[key].path):
            changed[key] = document
    return changed.finish()


def _media_key(document: Document) -> str | None:
    return media_key(document.path) if document.type.uid == UPLOAD else None


class View(NamedTuple):
    """A request's view of a snapshot. The request reads drafts of the content types in `drafts`."""

    snapshot: Snapshot
    settings: Settings
    drafts: frozenset[str] = frozenset()
    publication: str | None = None
    budget: Budget = UNLIMITED

    def version(self, type_: Type, document_id: str, locale: str) -> Document | None:
        versions = self.snapshot.tables[type_.uid].versions
        locales = effective_locales(type_, locale, self.settings.locales)
        return effective_version(versions, type_, document_id, locales, self.drafts)

    def resolver(self, attribute: Attribute) -> Resolver:
        """Return a function that finds the existing targets of a relation or media attribute.

        For an inverse to-one relation, it returns at most one target per locale.
        """
        if attribute.type == "media":
            file = self.snapshot.media.get
            return lambda value, owner, locale: [f for path in value if (f := file(path)) is not None]
        if attribute.derived:
            return self._inverse_resolver(attribute)
        if attribute.morph:
            return lambda value, owner, locale: [
                d for uid, i in value if (d := self._one(uid, i, locale)) is not None
            ]
        type_ = self.snapshot.schema.types[attribute.target or ""]
        table = self.snapshot.tables.get(type_.uid)
        if table is None:
            return lambda value, owner, locale: []
        one, status = table.versions.get, effective_status(type_, self.drafts)
        fixed = "" if type_.localized else self.settings.locales.default

        def resolve(value: Any, owner: Document | None, locale: str) -> list[Document]:
            at = fixed or locale
            if at == EVERY_LOCALE:
                return [d for i in value if (d := self.version(type_, i, at)) is not None]
            return [d for i in value if (d := one((i, at, status))) is not None]

        return resolve

    def _one(self, uid: str, document_id: str, locale: str) -> Document | None:
        type_ = self.snapshot.schema.types.get(uid)
        if type_ is None or type_.kind == "component":
            return None
        return self.version(type_, document_id, locale)

    def _inverse_resolver(self, attribute: Attribute) -> Resolver:
        schema, locales, linking = self.snapshot.schema, self.settings.locales, self.snapshot.linking
        if attribute.polymorphic:
            return holder_resolver(schema, locales, linking)
        type_ = schema.types[attribute.target or ""]
        return inverse_resolver(attribute, type_, effective_status(type_, self.drafts), locales, linking)

    def localizations(self, document: Document) -> list[Document]:
        versions = (
            self.snapshot.get(document.type, document.document_id, locale, document.status)
            for locale in self.settings.locales.available
            if locale != document.locale
        )
        return [version for version in versions if version is not None]
