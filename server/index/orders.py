"""Bounded cache of sorted documents.

An order by the documents' own columns is updated when documents change. An order by values in related
documents is discarded at any change.
"""

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

from server.bounded import Cache, size_of
from server.index.inverse_relations import Difference
from server.index.ordering import Column, Order

MAX_BYTES = 256 * 1024 * 1024
# Each write updates all cached orders. Charging at least this size per order limits
# their number to 64, even on small sites.
_MIN_ORDER_BYTES = 4 * 1024 * 1024


class ColumnKey(NamedTuple):
    """Cache key: an order by the documents' own columns, in one type, locale and status."""

    uid: str
    columns: tuple[Column, ...]
    locale: str
    status: str


class PathKey(NamedTuple):
    """Cache key: an order by values in related documents.

    Each path is a tuple of positions in rows, and whether the sort is descending.
    """

    uid: str
    paths: tuple[tuple[tuple[int, ...], bool], ...]
    locale: str
    drafts: frozenset[str]


class Orders:
    """Cache for the orders of one snapshot."""

    __slots__ = ("cache",)

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        # Saves 0.12 of 0.68 ms per query with filter and sort, with 2,000 articles.
        self.cache: Cache[ColumnKey | PathKey, Order] = Cache(max_bytes, _size)

    def get(self, key: ColumnKey | PathKey, make: Callable[[], Order]) -> Order:
        """Return the order for a key. On a cache miss, it is created with `make`."""
        order = self.cache.get(key)
        if order is None:
            order = make()
            self.cache.put(key, order)
        return order

    def changed(self, changes: Mapping[str, Difference]) -> "Orders":
        """Return a cache with the orders by own columns, updated by `changes` (differences by uid)."""
        orders = Orders(self.cache.most)
        for key, order in self.cache.items():
            if isinstance(key, ColumnKey):
                removed, added = (
                    [d for d in documents if (d.locale, d.status) == (key.locale, key.status)]
                    for documents in changes.get(key.uid, ([], []))
                )
                orders.cache.put(key, order.changed(removed, added) if removed or added else order)
        return orders


class JoinedOrders(Orders):
    """Cache for the orders of a snapshot joined with users.

    Orders by own columns are stored in the caches of the two original snapshots, so they outlive the join.
    """

    __slots__ = ("_base", "_other", "_uids")

    def __init__(self, base: Orders, other: Orders, uids: Set[str]) -> None:
        """Create the cache. `other` caches orders for the types in `uids`; `base` caches those for all other
        types.
        """
        super().__init__(base.cache.most)
        self._base, self._other, self._uids = base, other, uids

    def get(self, key: ColumnKey | PathKey, make: Callable[[], Order]) -> Order:
        """Return the order for a key. On a cache miss, it is created with `make`."""
        if isinstance(key, PathKey):
            return super().get(key, make)
        return (self._other if key.uid in self._uids else self._base).get(key, make)


def _size(key: ColumnKey | PathKey, order: Order) -> int:
    """Return an order's approximate size in bytes: a reference per document and a set per chunk."""
    count = len(order)
    return max(_MIN_ORDER_BYTES, size_of(key) + 8 * count + count * count // 2048)
