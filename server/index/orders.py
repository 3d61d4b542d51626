"""Size-limited cache for orders (sorted documents).

When documents change, an order that uses only the documents' own columns is updated. An order that uses
values in related documents is discarded.
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
    """Cache key for an order that uses only the documents' own columns, in one content type, locale and
    status.
    """

    uid: str
    columns: tuple[Column, ...]
    locale: str
    status: str


class PathKey(NamedTuple):
    """Cache key for an order that uses values in related documents.

    `paths` contains two values for each sort key: the path to the value, as a tuple of positions in rows, and
    whether the sort is descending.
    """

    uid: str
    paths: tuple[tuple[tuple[int, ...], bool], ...]
    locale: str
    drafts: frozenset[str]


class Orders:
    """Cache for the orders in one snapshot."""

    __slots__ = ("cache",)

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        # Saves 0.12 of 0.68 ms per query with filter and sort, with 2,000 articles.
        self.cache: Cache[ColumnKey | PathKey, Order] = Cache(max_bytes, _size)

    def get(self, key: ColumnKey | PathKey, make: Callable[[], Order]) -> Order:
        """Return the order for a key. If the cache does not contain the order, create it with `make`."""
        order = self.cache.get(key)
        if order is None:
            order = make()
            self.cache.put(key, order)
        return order

    def changed(self, changes: Mapping[str, Difference]) -> "Orders":
        """Return a cache for the next snapshot. It contains the orders that use only the documents' own
        columns, updated with `changes`.

        `changes` maps the uids of content types to the removed and added documents.
        """
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
    """Cache for the orders in a joined snapshot, which contains both content and users.

    An order that uses only the documents' own columns is stored in the cache of the original snapshot, so the
    order remains available when the joined snapshot is discarded.
    """

    __slots__ = ("_base", "_other", "_uids")

    def __init__(self, base: Orders, other: Orders, uids: Set[str]) -> None:
        """Create the cache for a joined snapshot.

        Orders for the content types in `uids` are stored in `other`. Orders for all remaining content types
        are stored in `base`.
        """
        super().__init__(base.cache.most)
        self._base, self._other, self._uids = base, other, uids

    def get(self, key: ColumnKey | PathKey, make: Callable[[], Order]) -> Order:
        """Return the order for a key. If the cache does not contain the order, create it with `make`."""
        if isinstance(key, PathKey):
            return super().get(key, make)
        return (self._other if key.uid in self._uids else self._base).get(key, make)


def _size(key: ColumnKey | PathKey, order: Order) -> int:
    """Return the approximate size of an order in bytes: the size of the key, of one reference per document,
    and of one set per chunk.
    """
    count = len(order)
    return max(_MIN_ORDER_BYTES, size_of(key) + 8 * count + count * count // 2048)
