"""Rendered parts of documents, kept within a bound: what many answers show is written once."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from server.bounded import Cache, size_of
from server.documents.document import Document
from server.documents.values import Component

MAX_BYTES = 16 * 1024 * 1024
_BLOCK = 32 * 1024  # a sheet is counted in blocks, so that not every entry has to be
_ENTRY = 200  # about what an entry takes beside its bytes

Item = Document | Component
# Gives the bytes of an item: those that are kept, or what the second argument makes of it now.
Kept = Callable[[Any, Callable[[Any], bytes]], bytes]


class Fragments:
    """The bytes of documents and components, by what is shown of them.

    All that are shown alike are on one sheet, and the cache is one of sheets: a list asks it once, and
    then looks into a plain dictionary for each document. An entry stays right, since documents never
    change; it holds the document, so that no other can have its identity, until that is forgotten.
    """

    __slots__ = ("_sheets",)

    def __init__(self, most: int = MAX_BYTES) -> None:
        self._sheets: Cache[Hashable, _Sheet] = Cache(most, _size)

    def of(self, shown: Hashable) -> Kept:
        """What gives the bytes of items of which that is shown."""
        sheet = self._sheets.get(shown)
        if sheet is None:
            sheet = _Sheet(size_of(shown))
            self._sheets.put(shown, sheet)
        entries = sheet.entries

        def get(item: Item, make: Callable[[Any], bytes]) -> bytes:
            entry = entries.get(id(item))
            if entry is not None:
                return entry[1]
            rendered = make(item)
            entries[id(item)] = (item, rendered)
            sheet.used += len(rendered) + _ENTRY
            if sheet.used > sheet.counted:
                sheet.counted = sheet.used + max(_BLOCK, sheet.used // 4)
                self._sheets.put(shown, sheet)
            return rendered

        return get

    def forget(self, documents: Iterable[Document]) -> None:
        """Drop what is kept of documents that are gone, which nothing else keeps in memory."""
        items = [item for document in documents for item in (document, *_components(document.row))]
        for _, sheet in self._sheets.items():
            for item in items:
                entry = sheet.entries.pop(id(item), None)
                if entry is not None:
                    sheet.used -= len(entry[1]) + _ENTRY

    @property
    def bytes(self) -> int:
        """About how many bytes are kept."""
        return self._sheets.bytes


class _Sheet:
    """The entries of items that are shown alike, by identity: `used` bytes, and somewhat more `counted`."""

    __slots__ = ("counted", "entries", "used")

    def __init__(self, used: int) -> None:
        self.entries: dict[int, tuple[Item, bytes]] = {}
        self.used, self.counted = used, used + _BLOCK


def _size(shown: Hashable, sheet: _Sheet) -> int:
    return sheet.counted


def _components(row: tuple[Any, ...]) -> Iterator[Component]:
    """The components in a row, and those inside of them."""
    for value in row:
        for held in value if isinstance(value, tuple) else (value,):
            if isinstance(held, Component):
                yield held
                yield from _components(held.row)
