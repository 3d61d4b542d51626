"""Tests of packing documents' rows into bytes: unpacking returns the same rows and columns."""

import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.documents.document import (
    DRAFT,
    PUBLISHED,
    Document,
    column_of,
    find_runs,
    make_version,
    packed_rows_of,
)
from server.documents.packed_rows import PackedRows, dump, load, pack_rows
from server.documents.readers import READERS, InvalidValue
from server.documents.values import Component
from server.formats.tree import Plain, Tree
from server.schema.model import MORPH, Attribute, Type
from tests.examples import examples

PART = Type("shared.part", "component", "part", "parts", "Part", {"name": Attribute("name", "string")})
KINDS = {
    "title": "string",
    "body": "richtext",
    "price": "decimal",
    "count": "integer",
    "data": "json",
    "part": "component",
}
NOTE = Type(
    "api::note.note",
    "collectionType",
    "note",
    "notes",
    "Note",
    {name: Attribute(name, kind) for name, kind in KINDS.items()},
    draft_publish=True,
)
TYPES = {type_.uid: type_ for type_ in (PART, NOTE)}

TEXT = st.none() | st.text("aZé漢𝄞\ud800\0\n", max_size=8)
VALUES = st.tuples(
    TEXT,
    TEXT,
    st.none() | st.decimals(allow_nan=False, allow_infinity=False),
    st.none() | st.integers(),
    st.none() | st.dictionaries(st.text(max_size=3), st.lists(st.integers() | st.booleans(), max_size=3)),
    st.none() | st.builds(lambda i, name: Component(PART, (i, name)), st.integers(), TEXT),
)


def notes(values: list[tuple[Any, ...]], published: bool = True) -> list[Document]:
    at = "2024-01-01T00:00:00.000Z"
    times = (at, at, at if published else None)
    return [make_version(NOTE, f"n{i}", each, times, "en", f"n{i}.md") for i, each in enumerate(values)]


def unread(documents: list[Document]) -> list[Document]:
    """Return the same documents with packed rows."""
    facts, data = pack_rows(NOTE, [d.row for d in documents])
    rows, rest = PackedRows.read(facts, memoryview(b"".join(data) + b"more"), TYPES)
    assert bytes(rest) == b"more"
    return [Document.unread(NOTE, d.key, d.status, d.path, rows, i) for i, d in enumerate(documents)]


@given(st.lists(VALUES, max_size=4))
def test_rows_and_columns_are_read_as_they_were_packed(values: list[tuple[Any, ...]]) -> None:
    documents = notes(values)
    for at in range(len(NOTE.columns)):
        assert column_of(unread(documents), at) == [d.row[at] for d in documents]
    again = unread(documents)
    assert [repr(d.read_row()) for d in again] == [repr(d.row) for d in documents]
    assert not any(d.is_read for d in again)
    assert [repr(d.row) for d in again] == [repr(d.row) for d in documents]
    assert all(d.is_read for d in again)


@given(st.lists(VALUES, min_size=2, max_size=4))
def test_packed_rows_are_packed_again_as_they_are(values: list[tuple[Any, ...]]) -> None:
    facts, data = pack_rows(NOTE, [d.row for d in notes(values)])
    packed = unread(notes(values))
    rows = packed_rows_of(packed)
    assert rows is packed[0].packed
    assert rows is not None
    assert rows.packed()[0] == facts
    assert b"".join(rows.packed()[1]) == b"".join(data)
    others = [packed[1:], packed[::-1], [*notes(values[:1]), *packed[1:]], [*packed, *unread(notes(values))]]
    assert [packed_rows_of(documents) for documents in others] == [None] * 4


def test_what_is_shown_as_a_draft_has_no_time_of_publication() -> None:
    [document] = notes([("T", "B", Decimal("1.50"), 1, None, None)])
    [packed] = unread([document])
    draft, at = packed.as_draft(), NOTE.position["publishedAt"]
    assert column_of([draft, packed], at) == [None, document.published_at]
    assert (draft.status, draft.published_at, draft.row) == (DRAFT, None, document.as_draft().row)
    assert (packed.status, packed.published_at) == (PUBLISHED, document.published_at)
    assert packed.copy().has_row_of(packed)
    assert not draft.has_row_of(packed)
    assert not document.has_row_of(packed)


def test_runs_are_of_rows_that_are_packed_one_behind_the_other() -> None:
    values: list[tuple[Any, ...]] = [("T", None, None, i, None, None) for i in range(4)]
    [own], packed = notes(values[:1]), unread(notes(values))
    other = unread(notes(values[:2]))
    runs = find_runs([*packed[1:3], own, None, *other, packed[3], packed[0]])
    assert [run[1:] for run in runs] == [(1, 3), (2, 4), (0, 2), (3, 4), (0, 1)]
    assert [run[0] is None for run in runs] == [False, True, False, False, False]


def test_only_values_are_read_from_bytes() -> None:
    for data in (pickle.dumps(print), b"", b"\x80\x05x"):
        with pytest.raises(ValueError, match="damaged"):
            load(data, TYPES)


TEMPORAL = {
    "date": "2024-02-29",
    "time": "12:30",
    "datetime": "2024-02-29T10:20:30Z",
    "timestamp": "2024-02-29",
}
NUMERIC = dict.fromkeys(("integer", "biginteger", "float", "decimal"), "1")
VALID = {**TEMPORAL, **NUMERIC, "boolean": "true"}  # values for types that few random values are valid for
SCALARS = st.sampled_from(
    ["", "a", "é", "e\u0301", "null", "true", "no", "1", "-7", "2.50", "1e3", *TEMPORAL.values()]
) | st.text("aé漢𝄞\0", max_size=4)
LEAVES = st.none() | st.booleans() | st.integers() | SCALARS | st.builds(Plain, SCALARS)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(SCALARS, inner, max_size=3)
        | st.fixed_dictionaries({"__type": LEAVES, "documentId": LEAVES})
        | st.fixed_dictionaries({"type": LEAVES, "children": st.lists(inner, max_size=2)})
    ),
    max_leaves=6,
)
ATTRIBUTES = [
    *(Attribute("value", kind, enum=("a", "1", "no")) for kind in READERS if kind != "relation"),
    *(Attribute("value", "media", multiple=True),),
    *(
        Attribute("value", "relation", relation=relation, target="api::note.note")
        for relation in sorted(MORPH)
    ),
    Attribute("value", "relation", relation="manyToMany", target="api::note.note"),
]


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda a: a.relation or a.type)
def test_what_is_read_under_any_attribute_is_packed_and_unpacked(attribute: Attribute) -> None:
    """Another process must be able to unpack the rows without the classes of the files' syntax trees."""
    read = 0

    @settings(derandomize=True, max_examples=examples(300), deadline=None, database=None)
    @given(TREES | st.builds(Plain, st.just(VALID.get(attribute.type, "a"))))
    def check(tree: Tree) -> None:
        nonlocal read
        try:
            value = READERS[attribute.type](tree, attribute)
        except InvalidValue:
            return
        read += 1
        assert repr(load(dump([value])[0], TYPES)) == repr(value)

    check()
    assert read
