"""Rendered parts of documents, kept within a bound: what many answers show is written once."""

from collections.abc import Callable, Hashable
from typing import Any

MAX_BYTES = 16 * 1024 * 1024
_ENTRY = 200  # about what an entry takes beside its bytes


class Fragments:
    """The bytes of documents and components, by what is shown of them.

    An entry is right for as long as its document lives, since documents never change; it keeps the
    document, so that no other can have its identity. Where the bound is reached, all are dropped.
    """

    __slots__ = ("_kept", "_left", "most")

    def __init__(self, most: int = MAX_BYTES) -> None:
        self.most = self._left = most
        self._kept: dict[Hashable, dict[int, tuple[Any, bytes]]] = {}

    def of(self, shown: Hashable) -> Callable[[Any, Callable[[Any], bytes]], bytes]:
        """What gives the bytes of a document or component: kept, or what its second argument makes now."""
        kept = self._kept.setdefault(shown, {})

        def get(item: Any, make: Callable[[Any], bytes]) -> bytes:
            found = kept.get(id(item))
            if found is not None:
                return found[1]
            made = make(item)
            self._left -= len(made) + _ENTRY
            if self._left < 0:
                self._drop()
            kept[id(item)] = (item, made)
            return made

        return get

    def _drop(self) -> None:
        for kept in list(self._kept.values()):
            kept.clear()
        self._kept.clear()
        self._left = self.most
