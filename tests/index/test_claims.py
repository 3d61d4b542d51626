"""A snapshot knows the documents of all files, including those that it does not serve."""

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.documents.document import Document, make_version
from server.index.snapshot import Snapshot, apply, build, empty
from server.schema.load import read_content_types
from server.schema.model import Schema
from tests.sites import collection, write

TIME = "2024-01-01T00:00:00.000Z"
Paths = dict[tuple[str, str, str, str], list[str]]
# a file: singular name of the content type, documentId, whether it is a draft, and a part of its path
files = st.sets(
    st.tuples(st.sampled_from(["post", "note"]), st.sampled_from("ab"), st.booleans(), st.sampled_from("xyz"))
)


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    root: Path = tmp_path_factory.mktemp("schema")
    write(root, collection("post", {"title": {"type": "string"}}, drafts=True))
    write(root, collection("note", {"title": {"type": "string"}}))
    return read_content_types(root)


def document_in(schema: Schema, file: tuple[str, str, bool, str]) -> Document:
    name, document_id, is_draft, part = file
    path = f"{part}/{name}-{document_id}{'.draft' if is_draft else ''}.md"
    times = (TIME, TIME, None if is_draft else TIME)
    return make_version(schema.subjects[name], document_id, ("Title",), times, "en", path)


def claimed_paths(snapshot: Snapshot) -> Paths:
    assert len(snapshot.claims) == len(list(snapshot.claims))
    assert all(snapshot.claims[key] == documents for key, documents in snapshot.claims.items())
    return {key: [d.path for d in documents] for key, documents in snapshot.claims.items()}


def served_paths(snapshot: Snapshot) -> dict[tuple[str, ...], str]:
    return {
        (uid, *key): document.path
        for uid, table in snapshot.tables.items()
        for key, document in table.versions.items()
    }


@given(steps=st.lists(files, min_size=1, max_size=4))
def test_the_claims_contain_every_file(schema: Schema, steps: list[set[tuple[str, str, bool, str]]]) -> None:
    snapshot, documents = empty(schema), dict[tuple[str, str, bool, str], Document]()
    for wanted in steps:
        removed = [documents.pop(file) for file in documents.keys() - wanted]
        added = {file: document_in(schema, file) for file in wanted - documents.keys()}
        documents |= added
        snapshot = apply(snapshot, removed, added.values())
        expected: Paths = defaultdict(list)
        for one in sorted(documents.values(), key=lambda document: document.path):
            expected[one.type.uid, one.document_id, one.locale, one.status].append(one.path)
        built = build(schema, [document.copy() for document in documents.values()])
        assert claimed_paths(snapshot) == claimed_paths(built) == expected
        assert served_paths(snapshot) == served_paths(built)
        duplicates = {key for key, paths in expected.items() if len(paths) > 1}
        assert {*snapshot.claims.duplicate_keys} == {*built.claims.duplicate_keys} == duplicates
