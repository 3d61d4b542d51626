"""The index: one immutable Snapshot of everything that can be asked for.

It is built once and then changed by `apply`, which makes a new snapshot that shares what did not
change. A request takes one snapshot and keeps it; a reader needs no lock and sees nothing half-done.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from immutables import Map

from server.documents import DRAFT, PUBLISHED, Document, default_order
from server.fragments import Fragments
from server.media import upload_path
from server.options import has_unique, unique_values
from server.ordering import Order, OrderKey, order_of
from server.schema import UPLOAD, Attribute, Schema, Type
from server.settings import Settings
from server.values import Path

Key = tuple[str, str, str, str]  # uid, documentId, locale, status
Place = tuple[str, str]  # locale, status
Target = str | tuple[str, str]  # a documentId, or (uid, documentId) of a morph relation

# (value of the row, document it belongs to, locale of the walk) → what it leads to
Resolver = Callable[[Any, Document | None, str], list[Document]]

_NOTHING = Order(default_order)
MOST_ORDERS = 64  # of one type; where more are asked for, the oldest is dropped


@dataclass(frozen=True, slots=True)
class Slots:
    """Which slots the documents of one type, locale and status may have: `next`, and those let go of."""

    next: int = 0
    free: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """The versions of one type: by id, in default order, and by what they point at.

    `versions` is keyed by (documentId, locale, status), `order` and `slots` by (locale, status),
    `links`, the reverse edges, by (relation, target, locale, status), and `unique` by (path, value,
    locale). `orders`, by columns, are made when a query first asks for them.
    """

    versions: Map[tuple[str, str, str], Document] = field(default_factory=Map)
    order: Mapping[Place, Order] = field(default_factory=dict)
    slots: Mapping[Place, Slots] = field(default_factory=dict)
    links: Map[tuple[str, Target, str, str], Order] = field(default_factory=Map)
    unique: Map[tuple[str, Any, str], tuple[Document, ...]] = field(default_factory=Map)
    orders: dict[OrderKey, Order] = field(default_factory=dict)

    def ordered(self, key: OrderKey) -> Order:
        """The versions in the order of some columns; made on first use, then kept up to date."""
        found = self.orders.get(key)
        if found is None:
            documents = list(self.order.get((key.locale, key.status), _NOTHING))
            found = order_of(documents, key.columns)
            if len(self.orders) >= MOST_ORDERS:
                self.orders.pop(next(iter(self.orders)), None)
            self.orders[key] = found
        return found


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All documents of a site at one moment. `number` grows with every snapshot of a process.

    `fragments` outlives a snapshot, since it is about documents; `walked`, the orders by values that
    stand in other documents, does not.
    """

    schema: Schema
    tables: Mapping[str, Table]
    media: Map[str, Document] = field(default_factory=Map)
    claims: Map[Key, tuple[Document, ...]] = field(default_factory=Map)
    contested: frozenset[Key] = frozenset()
    number: int = 0
    fragments: Fragments = field(default_factory=Fragments)
    walked: dict[Any, Order] = field(default_factory=dict)

    def get(self, type_: Type, document_id: str, locale: str, status: str) -> Document | None:
        """One version, or None."""
        return self.tables[type_.uid].versions.get((document_id, locale, status))

    def list(self, type_: Type, locale: str, status: str) -> Order:
        """The versions of a type in a locale and status, in default order."""
        return self.tables[type_.uid].order.get((locale, status), _NOTHING)

    def linking(self, type_: Type, relation: str, target: Target, locale: str, status: str) -> Order:
        """The versions of a type whose `relation` points at `target`, in default order."""
        return self.tables[type_.uid].links.get((relation, target, locale, status), _NOTHING)

    def having(self, type_: Type, path: Path, value: Any, locale: str) -> tuple[Document, ...]:
        """The versions of a type that have a value in the unique attribute at a path."""
        return self.tables[type_.uid].unique.get((_place(path), value, locale), ())


def empty(schema: Schema) -> Snapshot:
    """A snapshot without documents."""
    return Snapshot(schema, {t.uid: Table() for t in schema.types.values() if t.kind != "component"})


def build(schema: Schema, documents: Iterable[Document]) -> Snapshot:
    """The snapshot of all documents of a site."""
    return apply(empty(schema), (), documents)


def apply(snapshot: Snapshot, removed: Iterable[Document], added: Iterable[Document]) -> Snapshot:
    """The snapshot after some documents went and others came; its cost depends on those alone.

    Where several files claim one id, locale and status, the first by path is the one that counts.
    """
    removed, added = list(removed), list(added)
    claims, touched, contested = _apply_claims(snapshot, removed, added)
    tables = dict(snapshot.tables)
    by_type: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for uid, document_id, locale in sorted(touched):
        by_type[uid].append((document_id, locale))
    for uid, places in by_type.items():
        type_ = snapshot.schema.types[uid]
        unique = has_unique(type_, snapshot.schema.types)
        tables[uid] = _apply_table(type_, tables[uid], claims, places, unique=unique)
    return replace(
        snapshot,
        tables=tables,
        media=_apply_media(snapshot.media, removed, added),
        claims=claims,
        contested=contested,
        number=snapshot.number + 1,
        walked={},
    )


def _key(document: Document) -> Key:
    return (document.type.uid, document.document_id, document.locale, document.status)


def _apply_claims(
    snapshot: Snapshot, removed: list[Document], added: list[Document]
) -> tuple[Map[Key, tuple[Document, ...]], set[tuple[str, str, str]], frozenset[Key]]:
    touched = set()
    contested = set(snapshot.contested)
    claims = snapshot.claims.mutate()
    for document in removed:
        key = _key(document)
        touched.add(key[:3])
        left = tuple(d for d in claims.get(key, ()) if d.path != document.path)
        if left:
            claims[key] = left
        else:
            claims.pop(key, None)
        if len(left) < 2:
            contested.discard(key)
    for document in added:
        key = _key(document)
        touched.add(key[:3])
        others = claims.get(key, ())
        claims[key] = tuple(sorted((*others, document), key=lambda d: d.path)) if others else (document,)
        if others:
            contested.add(key)
    return claims.finish(), touched, frozenset(contested)


def _effective(
    type_: Type, claims: Map[Key, tuple[Document, ...]], document_id: str, locale: str
) -> list[Document]:
    """The versions that a document has in a locale: what is published, and the draft beside it."""
    published = claims.get((type_.uid, document_id, locale, PUBLISHED), ())[:1]
    if not type_.draft_publish:
        return list(published)
    draft = claims.get((type_.uid, document_id, locale, DRAFT), ())[:1]
    return [*published, *(draft or tuple(d.as_draft() for d in published))]


def _apply_table(
    type_: Type,
    table: Table,
    claims: Map[Key, tuple[Document, ...]],
    places: list[tuple[str, str]],
    *,
    unique: bool,
) -> Table:
    gone: list[Document] = []
    come: list[Document] = []
    versions = table.versions.mutate()
    for document_id, locale in places:
        after = {d.status: d for d in _effective(type_, claims, document_id, locale)}
        for status in (PUBLISHED, DRAFT):
            key, new = (document_id, locale, status), after.get(status)
            old = versions.get(key)
            if old is new:
                continue
            if old is not None:
                gone.append(old)
                del versions[key]
            if new is not None:
                come.append(new)
    come, slots = _apply_slots(table.slots, gone, come)
    for document in come:
        versions[(document.document_id, document.locale, document.status)] = document
    return Table(
        versions.finish(),
        _apply_order(table.order, gone, come),
        slots,
        _apply_links(type_, table, gone, come),
        _apply_unique(table.unique, gone, come) if unique else table.unique,
        _apply_orders(table.orders, gone, come),
    )


def _apply_slots(
    slots: Mapping[Place, Slots], gone: list[Document], come: list[Document]
) -> tuple[list[Document], Mapping[Place, Slots]]:
    """Give a slot to each document that comes; returns them, those that have a slot already copied."""
    placed: list[Document] = []
    changed = dict(slots)
    for key, (out, in_) in _grouped(gone, come, lambda d: [(d.locale, d.status)]).items():
        kept = changed.get(key, Slots())
        free, number = [*kept.free, *(d.slot for d in out)], kept.next
        for document in in_:
            new = document if document.slot < 0 else document.copy()
            if free:
                new.slot = free.pop()
            else:
                new.slot, number = number, number + 1
            placed.append(new)
        changed[key] = Slots(number, tuple(free))
    return placed, changed


def _apply_order(
    order: Mapping[Place, Order], gone: list[Document], come: list[Document]
) -> Mapping[Place, Order]:
    changed = dict(order)
    for key, (out, in_) in _grouped(gone, come, lambda d: [(d.locale, d.status)]).items():
        changed[key] = changed.get(key, _NOTHING).change(out, in_)
    return changed


def _apply_orders(
    orders: dict[OrderKey, Order], gone: list[Document], come: list[Document]
) -> dict[OrderKey, Order]:
    changed = {}
    for key, order in list(orders.items()):
        out = [d for d in gone if (d.locale, d.status) == (key.locale, key.status)]
        in_ = [d for d in come if (d.locale, d.status) == (key.locale, key.status)]
        changed[key] = order.change(out, in_) if out or in_ else order
    return changed


def _apply_links(
    type_: Type, table: Table, gone: list[Document], come: list[Document]
) -> Map[tuple[str, Target, str, str], Order]:
    if not type_.links:
        return table.links
    places = [(a.name, type_.position[a.name]) for a in type_.links]

    def keys(document: Document) -> list[tuple[str, Target, str, str]]:
        row, locale, status = document.row, document.locale, document.status
        return [(name, target, locale, status) for name, at in places for target in row[at]]

    links = table.links.mutate()
    for key, (out, in_) in _grouped(gone, come, keys).items():
        changed = links.get(key, _NOTHING).change(out, in_)
        if len(changed):
            links[key] = changed
        else:
            links.pop(key, None)
    return links.finish()


def _place(path: Path) -> str:
    """A path without the positions in its lists: `rows.code` for `("rows", 3, "code")`."""
    return ".".join(part for part in path if isinstance(part, str))


def _apply_unique(
    unique: Map[tuple[str, Any, str], tuple[Document, ...]], gone: list[Document], come: list[Document]
) -> Map[tuple[str, Any, str], tuple[Document, ...]]:
    def keys(document: Document) -> set[tuple[str, Any, str]]:
        values = unique_values(document.type, document.row[2:-4])
        return {(_place(path), value, document.locale) for path, value in values}

    changed = unique.mutate()
    for key, (out, in_) in _grouped(gone, come, keys).items():
        left = tuple(d for d in changed.get(key, ()) if d not in out)
        if left or in_:
            changed[key] = (*left, *in_)
        else:
            changed.pop(key, None)
    return changed.finish()


def _grouped(gone: list[Document], come: list[Document], keys: Any) -> dict[Any, tuple[list[Any], list[Any]]]:
    groups: dict[Any, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
    for side, documents in enumerate((gone, come)):
        for document in documents:
            for key in keys(document):
                groups[key][side].append(document)
    return groups


def _apply_media(
    media: Map[str, Document], removed: list[Document], added: list[Document]
) -> Map[str, Document]:
    changed = media.mutate()
    for document in removed:
        if document.type.uid == UPLOAD:
            changed.pop(upload_path(document.path) or "", None)
    for document in added:
        if document.type.uid == UPLOAD:
            changed[upload_path(document.path) or ""] = document
    return changed.finish()


@dataclass(frozen=True, slots=True)
class View:
    """How one request sees a snapshot: of which types it sees the drafts."""

    snapshot: Snapshot
    settings: Settings
    drafts: frozenset[str] = frozenset()

    def status(self, type_: Type) -> str:
        """The status in which this view sees a type's documents."""
        return DRAFT if type_.uid in self.drafts else PUBLISHED

    def locale_of(self, type_: Type, locale: str) -> str:
        """The locale of a type's documents where the walk has come to be in `locale`."""
        return locale if type_.localized else self.settings.default_locale

    def related(
        self, attribute: Attribute, value: Any, owner: Document | None, locale: str
    ) -> list[Document]:
        """The documents or files that a relation or media attribute holds; see `resolver`."""
        return self.resolver(attribute)(value, owner, locale)

    def resolver(self, attribute: Attribute) -> Resolver:
        """What finds the documents or files that a relation or media attribute holds, in order.

        It takes the value that the row has; the document, which a derived relation needs; and the
        locale that the walk is in. What points to nothing is left out.
        """
        if attribute.type == "media":
            file = self.snapshot.media.get
            return lambda value, owner, locale: [f for path in value if (f := file(path)) is not None]
        if attribute.derived:
            return self._derived(attribute)
        if attribute.morph:
            return lambda value, owner, locale: [
                found for uid, i in value if (found := self._one(uid, i, locale)) is not None
            ]
        type_ = self.snapshot.schema.types[attribute.target or ""]
        table = self.snapshot.tables.get(type_.uid)
        if table is None:
            return lambda value, owner, locale: []
        one, status, fixed = table.versions.get, self.status(type_), self.locale_of(type_, "")
        return lambda value, owner, locale: [
            d for i in value if (d := one((i, fixed or locale, status))) is not None
        ]

    def _one(self, uid: str, document_id: str, locale: str) -> Document | None:
        type_ = self.snapshot.schema.types.get(uid)
        if type_ is None or type_.kind == "component":
            return None
        return self.snapshot.get(type_, document_id, self.locale_of(type_, locale), self.status(type_))

    def _derived(self, attribute: Attribute) -> Resolver:
        type_ = self.snapshot.schema.types[attribute.target or ""]
        other = type_.attributes[attribute.mapped_by or ""]
        status, many, name, linking = self.status(type_), attribute.to_many, other.name, self.snapshot.linking

        def resolve(value: Any, owner: Document | None, locale: str) -> list[Document]:
            if owner is None:
                return []
            target: Target = (owner.type.uid, owner.document_id) if other.morph else owner.document_id
            found = linking(type_, name, target, self.locale_of(type_, locale), status)
            return found.slice(0, len(found) if many else 1)

        return resolve

    def localizations(self, document: Document) -> list[Document]:
        """The same document in the other locales, in the site's order of locales."""
        found = (
            self.snapshot.get(document.type, document.document_id, locale, document.status)
            for locale in self.settings.locales
            if locale != document.locale
        )
        return [version for version in found if version is not None]
