"""Cached sort orders: their memory is limited, changes update them, and a write updates only a few."""

from itertools import permutations

from server.documents.document import Document, make_version
from server.index.ordering import Column, Order, order_of
from server.index.orders import ColumnKey, Orders, PathKey
from server.schema.model import Attribute, Type

NAMES = ("a", "b", "c", "d", "e")
ATTRIBUTES = {name: Attribute(name, "integer") for name in NAMES}
TYPE = Type("api::row.row", "collectionType", "row", "rows", "Row", ATTRIBUTES)


def row(i: int) -> Document:
    values = [(i * step) % 7 for step in range(1, 6)]
    return make_version(TYPE, f"r{i:03}", values, (f"2024-01-01T00:00:00.{i:03}Z",) * 3, "en", f"r{i}.md")


def key(names: tuple[str, ...]) -> ColumnKey:
    columns = tuple(Column(TYPE.attributes[name], TYPE.position[name]) for name in names)
    return ColumnKey(TYPE.uid, columns, "en", "published")


def made(documents: list[Document], key: ColumnKey) -> Order:
    return order_of(documents, key.columns)


def test_an_order_is_made_once_and_updated_by_changes() -> None:
    documents, others = [row(i) for i in range(20)], [row(i) for i in range(20, 30)]
    orders, by = Orders(), key(("b", "d"))
    first = orders.get(by, lambda: made(documents, by))
    assert orders.get(by, lambda: made([], by)) is first
    changed = orders.with_changes({TYPE.uid: (documents[:5], others)}).get(by, lambda: made([], by))
    assert [*changed] == [*made([*documents[5:], *others], by)]
    assert [*orders.get(by, lambda: made([], by))] == [*made(documents, by)]


def test_an_order_by_other_documents_is_dropped_by_any_change() -> None:
    orders, by = Orders(), PathKey(TYPE.uid, (((3, 2), False),), "en", frozenset())
    orders.get(by, lambda: made([row(0)], key(("a",))))
    assert len(orders.with_changes({}).get(by, lambda: made([], key(("a",))))) == 0


def test_the_number_of_orders_to_update_is_bounded() -> None:
    documents, orders = [row(i) for i in range(10)], Orders()
    for names in permutations(NAMES):
        orders.get(key(names), lambda names=names: made(documents, key(names)))  # type: ignore[misc]
    assert len(orders.cache) == 64


def test_orders_of_many_documents_stay_within_the_bound() -> None:
    documents = [row(i) for i in range(5000)]
    orders = Orders(10_000_000)
    for names in permutations(NAMES, 2):
        orders.get(key(names), lambda names=names: made(documents, key(names)))  # type: ignore[misc]
    assert orders.cache.bytes <= 10_000_000
    assert len(orders.cache) == 2
