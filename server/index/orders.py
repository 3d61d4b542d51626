"""Size-limited cache for sorted documents."""

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

from server.bounded import Cache, size_of
from server.index.inverse_relations import Difference
from server.index.ordering import Column, Order

MAX_BYTES = 256 * 1024 * 1024
# Each write updates all cached orders. Charging at least this much per order limits their number to 64.
_MIN_ORDER_BYTES = 4 * 1024 * 1024


class ColumnKey(NamedTuple):
    """Cache key for documents that are sorted by their own columns."""

    uid: str
    columns: tuple[Column, ...]
    locale: str
    status: str


class PathKey(NamedTuple):
    """Cache key for documents that are sorted by values of related documents.

    For each sort key, `paths` contains the column indexes that lead to the value, and True for descending
    order.
    """

    uid: str
    paths: tuple[tuple[tuple[int, ...], bool], ...]
    locale: str
    drafts: frozenset[str]


class Orders:
    """Cache for one snapshot's sorted documents."""

    __slots__ = ("cache",)

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        # Saves 0.12 of 0.68 ms per query with a filter and a sort key, with 2,000 articles.
        self.cache: Cache[ColumnKey | PathKey, Order] = Cache(max_bytes, _size)

    def get(self, key: ColumnKey | PathKey, make: Callable[[], Order]) -> Order:
        order = self.cache.get(key)
        if order is None:
            order = make()
            self.cache.put(key, order)
        return order

    def with_changes(self, changes: Mapping[str, Difference]) -> "Orders":
        """Return the cache for the next snapshot, without orders by the values of related documents."""
        orders = Orders(self.cache.most)
        for key, order in self.cache.items():
            if isinstance(key, ColumnKey):
                removed, added = (
                    [d for d in documents if (d.locale, d.status) == (key.locale, key.status)]
                    for documents in changes.get(key.uid, ([], []))
                )
                orders.cache.put(key, order.with_changes(removed, added) if removed or added else order)
        return orders


class JoinedOrders(Orders):
    """Cache for a snapshot that contains content and users.

    Documents that are sorted by their own columns are cached in the two original snapshots.
    """

    __slots__ = ("_base", "_other", "_uids")

    def __init__(self, base: Orders, other: Orders, uids: Set[str]) -> None:
        # `other` stores the orders for content types in `uids`, and `base` stores the rest.
        super().__init__(base.cache.most)
        self._base, self._other, self._uids = base, other, uids

    def get(self, key: ColumnKey | PathKey, make: Callable[[], Order]) -> Order:
        if isinstance(key, PathKey):
            return super().get(key, make)
        return (self._other if key.uid in self._uids else self._base).get(key, make)


def _size(key: ColumnKey | PathKey, order: Order) -> int:
    # An order contains a reference for each document, and a bit set for each chunk.
    count = len(order)
    return max(_MIN_ORDER_BYTES, size_of(key) + 8 * count + count * count // 2048)
