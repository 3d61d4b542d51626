"""Planned queries and cached sort orders return the same results as a scan of all documents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.config.model import DEFAULTS, with_values
from server.documents.document import Document, make_version
from server.index import sorted_chunks
from server.index.find import candidates, find
from server.index.predicates import compile_filter
from server.index.snapshot import Snapshot, View, apply, build
from server.index.sort import sorter
from server.query.ast import And
from server.query.parse import read_query
from server.schema.load import read_content_types
from server.schema.model import Schema

SETTINGS = with_values(DEFAULTS, {"api.page_size.max": 1000})
WRITER = {
    "name": {"type": "string"},
    "books": {"type": "relation", "relation": "manyToMany", "target": "api::book.book", "mappedBy": "others"},
}
BOOK = {
    "title": {"type": "string"},
    "year": {"type": "integer"},
    "out": {"type": "boolean"},
    "writer": {"type": "relation", "relation": "manyToOne", "target": "api::writer.writer"},
    "others": {
        "type": "relation",
        "relation": "manyToMany",
        "target": "api::writer.writer",
        "inversedBy": "books",
    },
}


@pytest.fixture(autouse=True, scope="module")
def _small_chunks() -> Iterator[None]:
    """Reduce the chunk size to four, so that a few documents fill several chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_chunks, "CHUNK_ITEMS", 4)
        yield


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    root: Path = tmp_path_factory.mktemp("schema")
    folder = root / "content-types"
    folder.mkdir()
    for name, attributes in (("writer", WRITER), ("book", BOOK)):
        info = {"singularName": name, "pluralName": f"{name}s", "displayName": name}
        data = {"kind": "collectionType", "info": info, "attributes": attributes}
        (folder / f"{name}.json").write_text(json.dumps(data))
    return read_content_types(root)


writers = st.lists(st.sampled_from(["w0", "w1", "w2", "gone"]), max_size=2, unique=True).map(tuple)
rows = st.tuples(
    st.sampled_from([None, "a", "B", "b", "é"]),
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from([None, True, False]),
    writers.map(lambda w: w[:1]),
    writers,
    st.integers(0, 3),
)
books = st.lists(rows, max_size=25)
filters: Any = st.sampled_from(
    [
        {"title": "b"},
        {"title": {"$in": ["a", "b", "x"]}},
        {"title": {"$eqi": "B"}, "year": {"$gt": "0"}},
        {"year": "1", "out": "true"},
        {"writer": {"name": "Ann"}},
        {"writer": {"documentId": "w1"}, "title": {"$ne": "a"}},
        {"others": {"name": {"$in": ["Ann", "Ben"]}}},
        {"$or": [{"title": "a"}, {"year": "2"}]},
        {"$not": {"title": "a"}},
        {"documentId": {"$in": ["b1", "b2", "zz"]}},
        {"writer": {"$null": "true"}},
        {"title": {"$containsi": "B"}},
        {"title": {"$notContainsi": "b", "$contains": "a"}},
        {"title": {"$startsWith": "b"}},
        {"$not": {"title": {"$startsWith": "b"}}},
        {"title": {"$startsWithi": "B"}},
        {"title": {"$endsWith": "é"}},
        {"title": {"$null": "true"}},
        {"title": {"$notNull": "true"}, "year": {"$lt": "2"}},
        {"year": {"$gte": "1", "$lte": "1"}},
        {"year": {"$gt": "0"}, "out": {"$ne": "true"}},
        {"year": {"$between": ["0", "1"]}},
        {"year": {"$notIn": ["0", "2"]}},
        {"year": {"$contains": "1"}},
        {"year": {"$notContainsi": "1"}, "out": {"$endsWith": "e"}},
        {"$not": {"year": {"$between": ["1", "0"]}}},
        {"$or": [{"title": {"$contains": "b"}}, {"writer": {"name": "Ann"}}]},
        {"others": {"books": {"year": "1"}}},
        {"locale": "en", "year": "1"},
        {"locale": "fr"},
        {"writer": {"name": {"$ne": "Ann"}}},
        {},
    ]
)
sorts = st.sampled_from(
    ["", "title", "title:desc", "year:desc", "out", "year,title:desc", "writer.name", "id"]
)
pages = st.just((0, 1000)) | st.tuples(st.integers(0, 12), st.integers(1, 12))


def book(schema: Schema, i: int, row: Any) -> Document:
    *values, minute = row
    timestamp = f"2024-01-01T00:0{minute}:00.000Z"
    return make_version(
        schema.types["api::book.book"], f"b{i}", list(values), (timestamp,) * 3, "en", f"b{i}.md"
    )


def site(schema: Schema, documents: list[Document]) -> Snapshot:
    people = [("w0", "Ann"), ("w1", "Ben"), ("w2", None)]
    timestamps = ("2024-01-01T00:00:00.000Z",) * 3
    type_ = schema.types["api::writer.writer"]
    return build(
        schema, [*documents, *(make_version(type_, i, [n, ()], timestamps, "en", i) for i, n in people)]
    )


def ids(documents: Any) -> list[str]:
    return [d.document_id for d in documents]


def check(
    schema: Schema, snapshot: Snapshot, wanted: dict[str, Any], sort: str, page: tuple[int, int]
) -> None:
    view = View(snapshot, SETTINGS)
    start, limit = page
    params = {"filters": wanted, "sort": sort, "pagination": {"start": str(start), "limit": str(limit)}}
    query = read_query(schema, SETTINGS, schema.types["api::book.book"], params, many=True)
    everything = list(candidates(view, query))
    if query.selection.filter != And(()):
        test = compile_filter(view, query.selection.filter)
        everything = [d for d in everything if test(d.row, d, d.locale)]
    with pytest.MonkeyPatch.context() as patch:
        for few in (0, 100):  # first by reading a cached order, then by looking up single documents
            patch.setattr("server.index.find.MAX_DIRECT_SORT_DOCUMENTS", few)
            patch.setattr("server.index.planner.MAX_TESTED_CANDIDATES", few)
            listing = find(view, query)
            expected = sorter(view, query.selection.sort)(everything)
            assert ids(listing.documents) == ids(expected[start : start + limit])
            assert listing.total == len(everything)


@given(books=books, wanted=filters, sort=sorts, page=pages)
def test_a_plan_finds_what_a_scan_finds(
    schema: Schema, books: Any, wanted: Any, sort: str, page: tuple[int, int]
) -> None:
    check(schema, site(schema, [book(schema, i, row) for i, row in enumerate(books)]), wanted, sort, page)


@given(books=books, others=books, wanted=filters, sort=sorts, page=pages)
def test_orders_are_updated_when_documents_change(
    schema: Schema, books: Any, others: Any, wanted: Any, sort: str, page: tuple[int, int]
) -> None:
    before = [book(schema, i, row) for i, row in enumerate(books)]
    snapshot = site(schema, before)
    check(schema, snapshot, wanted, sort, page)  # caches the orders that the change must update
    after = [book(schema, i, row) for i, row in enumerate(others)]
    check(schema, apply(snapshot, before, after), wanted, sort, page)
    check(schema, snapshot, wanted, sort, page)
