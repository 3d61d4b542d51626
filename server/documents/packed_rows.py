"""Serialized rows of documents, which save memory and can be shared by forked processes."""

import io
import pickle
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import Any, Self

from server.documents.values import Component
from server.problems import Problem
from server.schema.model import Attribute, Type

Row = tuple[Any, ...]
Texts = tuple[int, bytes, frozenset[int]]  # size in bytes, offsets, positions of nulls
# lengths of rows, texts by column, packed short columns, values of constant columns
PackedLayout = tuple[bytes, dict[int, Texts], dict[int, bytes], dict[int, Any]]

# The only classes that can be unpickled. They contain only data.
_CLASSES = {(c.__module__, c.__qualname__): c for c in (Component, Decimal, Problem)}
_UNORDERED_TYPES = frozenset({"json", "array", "blocks"})
SEPARATOR = b"\0"  # No document contains this byte, because it is not allowed in text files.


class PackedTexts:
    """A column of strings, stored as one UTF-8 text. Each string is followed by SEPARATOR."""

    __slots__ = ("_data", "_nulls", "_starts")

    def __init__(self, data: memoryview, starts: bytes, nulls: Collection[int]) -> None:
        self._data, self._starts, self._nulls = data, array("I", starts), nulls

    def between(self, first: int, last: int) -> memoryview:
        # Each text is followed by SEPARATOR.
        return self._data[self._starts[first] : self._starts[last]]

    def starts(self, start: int, end: int, offset: int) -> list[int]:
        """Return the byte offsets of the strings from `start` to `end` (exclusive).

        The offsets are shifted so that the first one is `offset`.
        """
        offset -= self._starts[start]
        return [start + offset for start in self._starts[start:end]]

    def text(self, i: int) -> str | None:
        if i in self._nulls:
            return None
        return str(self._data[self._starts[i] : self._starts[i + 1] - 1], "utf-8", "surrogatepass")

    @classmethod
    def repeated(cls, text: str | None, count: int) -> Self:
        one = (text or "").encode("utf-8", "surrogatepass") + SEPARATOR
        starts = array("I", range(0, len(one) * (count + 1), len(one)))
        return cls(memoryview(one * count), starts.tobytes(), range(count) if text is None else ())


class PackedRows:
    """Serialized rows of documents of one content type."""

    __slots__ = ("_apart", "_columns", "_constants", "_data", "_layout", "_starts", "_texts", "_types")

    def __init__(self, layout: PackedLayout, data: memoryview, types: Mapping[str, Type]) -> None:
        # Other data can follow these rows.
        lengths, texts, self._columns, self._constants = layout
        self._starts = array("I", accumulate(array("i", lengths), initial=0))
        self._texts: dict[int, Any] = {}
        end = self._starts[-1]
        for at, (size, begins, nulls) in texts.items():
            self._texts[at] = (data[end : end + size], begins, nulls)
            end += size
        self._apart = sorted({*texts, *self._constants})  # columns that are not stored in the rows
        self._layout, self._data, self._types = layout, data[:end], types

    @classmethod
    def read(
        cls, layout: PackedLayout, data: memoryview, types: Mapping[str, Type]
    ) -> tuple[Self, memoryview]:
        rows = cls(layout, data, types)
        return rows, data[len(rows._data) :]

    def packed(self) -> tuple[PackedLayout, list[memoryview]]:
        return self._layout, [self._data]

    def __len__(self) -> int:
        return len(self._starts) - 1

    def row(self, i: int) -> Row:
        values: list[Any] = load(self._data[self._starts[i] : self._starts[i + 1]], self._types)
        for at in self._apart:
            constant = at in self._constants
            values.insert(at, self._constants[at] if constant else self._text_column(at).text(i))
        return tuple(values)

    def column(self, at: int) -> Sequence[Any]:
        positions = range(len(self))
        if at in self._constants:
            return [self._constants[at]] * len(self)
        texts = self.texts(at)
        if texts is not None:
            return [texts.text(i) for i in positions]
        packed = self._columns.get(at)
        column: Sequence[Any] = load(packed, self._types) if packed else [self.row(i)[at] for i in positions]
        return column

    def texts(self, index: int) -> PackedTexts | None:
        constant = self._constants.get(index)
        if index in self._constants and (constant is None or isinstance(constant, str)):
            return PackedTexts.repeated(constant, len(self))
        return self._text_column(index) if index in self._texts else None

    def _text_column(self, at: int) -> PackedTexts:
        found = self._texts[at]
        if not isinstance(found, PackedTexts):
            found = self._texts[at] = PackedTexts(*found)
        return found


def pack_rows(type_: Type, rows: Sequence[Row]) -> tuple[PackedLayout, list[bytes]]:
    """Serialize rows, and return their layout and the data."""
    textual = [at for at, a in enumerate(type_.columns.values()) if a.group == "string"]
    textual = [at for at in textual if all(_is_text(row[at]) for row in rows)]
    others = [at for at in range(len(type_.columns)) if at not in textual]
    dumped = dump([row[at] for at in others] for row in rows)
    texts, data = {}, [*dumped]
    for at in textual:
        encoded = [(row[at] or "").encode("utf-8", "surrogatepass") for row in rows]
        starts = array("I", accumulate((len(one) + 1 for one in encoded), initial=0))
        nulls = frozenset(i for i, row in enumerate(rows) if row[at] is None)
        texts[at] = (starts[-1], starts.tobytes(), nulls)
        data.append(SEPARATOR.join((*encoded, b"")))
    short = [at for at in others if _is_short([*type_.columns.values()][at])]
    columns = dict(zip(short, dump_plain([row[at] for row in rows] for at in short), strict=True))
    return (array("i", map(len, dumped)).tobytes(), texts, columns, {}), data


def add_columns(layout: PackedLayout, values: Mapping[int, Any], width: int) -> PackedLayout:
    """Return the layout with added columns. An added column has the same value in all rows.

    `values` maps the positions of these columns to their values. `width` is the new number of columns.
    """
    if not values:
        return layout
    lengths, texts, columns, constants = layout
    new_positions = [at for at in range(width) if at not in values]  # new positions of the existing columns
    return (
        lengths,
        {new_positions[at]: text for at, text in texts.items()},
        {new_positions[at]: column for at, column in columns.items()},
        {**{new_positions[at]: value for at, value in constants.items()}, **values},
    )


def _is_text(value: Any) -> bool:
    return value is None or (type(value) is str and "\0" not in value)


def _is_short(attribute: Attribute) -> bool:
    return attribute.has_targets or (attribute.scalar and attribute.type not in _UNORDERED_TYPES)


def dump(values: Iterable[Any]) -> list[bytes]:
    return _dump(values, _Pickler)


def dump_plain(values: Iterable[Any]) -> list[bytes]:
    """Pickle values that contain no components. This takes a quarter less time than `dump`."""
    return _dump(values, pickle.Pickler)


def _dump(values: Iterable[Any], pickler_class: type[pickle.Pickler]) -> list[bytes]:
    out = io.BytesIO()
    pickler = pickler_class(out, protocol=5)
    ends = [0]
    for value in values:
        pickler.dump(value)
        pickler.clear_memo()
        ends.append(out.tell())
    data = out.getvalue()
    return [data[start:end] for start, end in pairwise(ends)]


def load(data: bytes | memoryview, types: Mapping[str, Type]) -> Any:
    try:
        return _Unpickler(data, types).load()
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError("the cached bytes are damaged") from error


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> str | None:
        return obj.uid if isinstance(obj, Type) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes | memoryview, types: Mapping[str, Type]) -> None:
        super().__init__(io.BytesIO(data))
        self.persistent_load = types.__getitem__  # type: ignore[method-assign]

    def find_class(self, module: str, name: str) -> Any:
        found = _CLASSES.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} does not belong here")
        return found
