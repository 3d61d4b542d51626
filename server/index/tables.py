"""The documents of one type in the index: by id, in order, by what they point at and by unique values.

A table never changes: `changed` makes another that shares what did not change.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from immutables import Map

from server.documents.constraints import unique_values
from server.documents.document import DRAFT, PUBLISHED, Document, default_order
from server.formats.positions import KeyPath
from server.index.ordering import Order, slots_of
from server.schema.model import Attribute, Type

Key = tuple[str, str, str, str]  # uid, documentId, locale, status
Place = tuple[str, str]  # locale, status
Target = str | tuple[str, str]  # a documentId, or (uid, documentId) of a morph relation

Edges = Map[tuple[Target, str, str], Order]
Taken = Map[tuple[str, Any, str], tuple[Document, ...]]

NOTHING = Order(default_order)
UNIQUE = "unique"
_SHIFT = 8  # 256 slots to a page
_MASK = (1 << _SHIFT) - 1


@dataclass(frozen=True, slots=True)
class Slots:
    """The documents of one type, locale and status by their slots, in pages; and the slots that are free."""

    pages: tuple[tuple[Document | None, ...], ...] = ()
    free: tuple[int, ...] = ()

    def members(self, bits: int) -> list[Document]:
        """The documents of a set, in any order."""
        pages = self.pages
        found = [pages[slot >> _SHIFT][slot & _MASK] for slot in slots_of(bits)]
        return [document for document in found if document is not None]

    def changed(self, gone: list[Document], come: list[Document]) -> "Slots":
        """The slots after some documents went and others, given their slots here, came."""
        pages = {slot >> _SHIFT for d in gone for slot in [d.slot]}
        free = [*self.free, *(d.slot for d in gone)]
        held: dict[int, list[Document | None]] = {i: list(self.pages[i]) for i in pages}
        for document in gone:
            held[document.slot >> _SHIFT][document.slot & _MASK] = None
        count = len(self.pages)
        for document in come:
            if not free:
                held[count] = [None] * (1 << _SHIFT)
                free.extend(range((count + 1 << _SHIFT) - 1, (count << _SHIFT) - 1, -1))
                count += 1
            slot = document.slot = free.pop()
            page = held.get(slot >> _SHIFT)
            if page is None:
                page = held[slot >> _SHIFT] = list(self.pages[slot >> _SHIFT])
            page[slot & _MASK] = document
        made = [tuple(held[i]) if i in held else self.pages[i] for i in range(count)]
        return Slots(tuple(made), tuple(free))


NO_SLOTS = Slots()


@dataclass(frozen=True, slots=True)
class Table:
    """The versions of one type: by id, in default order, and by what they point at.

    `versions` is keyed by (documentId, locale, status), `order` and `slots` by (locale, status). What
    not every site needs is made when it is first asked for, and then kept up to date: `edges` (by
    relation: by target, locale and status, who points there), and `taken` (under UNIQUE: by path, value
    and locale, who has that value in a unique attribute).
    """

    versions: Map[tuple[str, str, str], Document] = field(default_factory=Map)
    order: Mapping[Place, Order] = field(default_factory=dict)
    slots: Mapping[Place, Slots] = field(default_factory=dict)
    edges: dict[str, Edges] = field(default_factory=dict)
    taken: dict[str, Taken] = field(default_factory=dict)

    def linking(self, attribute: Attribute, at: int) -> Edges:
        """Who points where by a relation, which stands at a position of the rows."""
        found = self.edges.get(attribute.name)
        if found is None:
            found = self.edges[attribute.name] = _make_edges(self.order.values(), at)
        return found

    @property
    def unique(self) -> Taken:
        """Who has which value of a unique attribute."""
        found = self.taken.get(UNIQUE)
        if found is None:
            everything = [d for order in self.order.values() for d in order]
            found = self.taken[UNIQUE] = _apply_unique(Map(), [], everything)
        return found


def build_table(
    type_: Type, claims: Map[Key, tuple[Document, ...]], places: Iterable[tuple[str, str]]
) -> Table:
    """The table of the documents (id, locale) at some places; what `apply_table` would make, sooner."""
    found: dict[Place, list[Document]] = defaultdict(list)
    for document_id, locale in places:
        for version in _effective(type_, claims, document_id, locale):
            found[locale, version.status].append(version if version.slot < 0 else version.copy())
    versions, order, slots = {}, {}, {}
    for place, listed in found.items():
        listed.sort(key=default_order)
        for document in listed:
            versions[(document.row[1], *place)] = document
        order[place], slots[place] = Order.presorted(listed, default_order), Slots().changed([], listed)
    return Table(Map(versions), order, slots)


def _effective(
    type_: Type, claims: Map[Key, tuple[Document, ...]], document_id: str, locale: str
) -> list[Document]:
    """The versions that a document has in a locale: what is published, and the draft beside it."""
    published = claims.get((type_.uid, document_id, locale, PUBLISHED), ())[:1]
    if not type_.draft_publish:
        return list(published)
    draft = claims.get((type_.uid, document_id, locale, DRAFT), ())[:1]
    return [*published, *(draft or tuple(d.as_draft() for d in published))]


def apply_table(
    type_: Type,
    table: Table,
    claims: Map[Key, tuple[Document, ...]],
    places: list[tuple[str, str]],
) -> tuple[Table, list[Document], list[Document]]:
    """The table after the claims to some places (documentId, locale) have changed.

    Returns the versions that went and those that came as well.
    """
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
    changed = Table(
        versions.finish(),
        _apply_order(table.order, gone, come),
        slots,
        {name: _apply_edges(e, type_.position[name], gone, come) for name, e in list(table.edges.items())},
        {name: _apply_unique(taken, gone, come) for name, taken in list(table.taken.items())},
    )
    return changed, gone, come


def _apply_slots(
    slots: Mapping[Place, Slots], gone: list[Document], come: list[Document]
) -> tuple[list[Document], Mapping[Place, Slots]]:
    """Give a slot to each document that comes; returns them, those that have a slot already copied."""
    placed: list[Document] = []
    changed = dict(slots)
    for key, (out, in_) in _grouped(gone, come, lambda d: [(d.locale, d.status)]).items():
        new = [document if document.slot < 0 else document.copy() for document in in_]
        changed[key] = changed.get(key, NO_SLOTS).changed(out, new)
        placed.extend(new)
    return placed, changed


def _apply_order(
    order: Mapping[Place, Order], gone: list[Document], come: list[Document]
) -> Mapping[Place, Order]:
    changed = dict(order)
    for key, (out, in_) in _grouped(gone, come, lambda d: [(d.locale, d.status)]).items():
        changed[key] = changed.get(key, NOTHING).change(out, in_)
    return changed


def _make_edges(orders: Iterable[Order], at: int) -> Edges:
    """The reverse edges of the relation at a position of the rows."""
    found: dict[tuple[Target, str, str], list[Document]] = defaultdict(list)
    for order in orders:
        for document in order:  # in default order, in which they are to stand
            locale, status = document.row[-1], document.status
            for target in document.row[at]:
                found[target, locale, status].append(document)
    return Map({key: Order.presorted(listed, default_order) for key, listed in found.items()})


def _apply_edges(edges: Edges, at: int, gone: list[Document], come: list[Document]) -> Edges:
    def keys(document: Document) -> list[tuple[Target, str, str]]:
        locale, status = document.locale, document.status
        return [(target, locale, status) for target in document.row[at]]

    changed = edges.mutate()
    for key, (out, in_) in _grouped(gone, come, keys).items():
        order = changed.get(key, NOTHING).change(out, in_)
        if len(order):
            changed[key] = order
        else:
            changed.pop(key, None)
    return changed.finish()


def place_of(path: KeyPath) -> str:
    """A path without the positions in its lists: `rows.code` for `("rows", 3, "code")`."""
    return ".".join(part for part in path if isinstance(part, str))


def _apply_unique(unique: Taken, gone: list[Document], come: list[Document]) -> Taken:
    def keys(document: Document) -> set[tuple[str, Any, str]]:
        values = unique_values(document.type, document.row[2:-4])
        return {(place_of(path), value, document.locale) for path, value in values}

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
