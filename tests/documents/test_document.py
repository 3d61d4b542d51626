"""Tests of documents, which find their own columns by name, whatever attributes their type has."""

import pytest

from server.documents.document import DRAFT, PUBLISHED, Document, default_sort_key, make_version
from server.schema.model import Attribute, Type

TIMES = ("2024-01-01T00:00:00.000Z", "2024-01-02T00:00:00.000Z", "2024-01-03T00:00:00.000Z")


def type_with(*names: str) -> Type:
    attributes = {name: Attribute(name, "string") for name in names}
    return Type("api::note.note", "collectionType", "note", "notes", "Note", attributes)


def document(*names: str) -> Document:
    return make_version(
        type_with(*names), "n1", [f"the {name}" for name in names], TIMES, "fr", "content/notes/n1.md"
    )


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b", "c")])
def test_columns_have_names(names: tuple[str, ...]) -> None:
    made = document(*names)
    assert (made.document_id, made.locale, made.path) == ("n1", "fr", "content/notes/n1.md")
    assert (made.created_at, made.updated_at, made.published_at) == TIMES
    assert made.values == tuple(f"the {name}" for name in names)
    for column in made.type.columns:
        assert made.get(column) == made.row[list(made.type.columns).index(column)]
    assert made.get("id") == made.id
    assert made.get("locale") == made.locale


def test_a_version_without_a_time_of_publication_is_a_draft() -> None:
    made = document("a")
    assert made.status == PUBLISHED
    draft = made.as_draft()
    assert (draft.status, draft.published_at) == (DRAFT, None)
    assert (draft.values, draft.locale, draft.updated_at) == (made.values, "fr", TIMES[1])
    assert make_version(made.type, "n1", ["x"], (*TIMES[:2], None), "fr", "").status == DRAFT


def test_other_values_by_name_leave_the_rest() -> None:
    made = document("a", "b")
    changed = made.with_values({"b": "other"})
    assert changed.values == ("the a", "other")
    assert (changed.id, changed.locale, changed.created_at) == (made.id, "fr", TIMES[0])
    assert made.values == ("the a", "the b")


def test_the_id_follows_from_type_document_and_locale_alone() -> None:
    made = document("a")
    assert made.id == document("a", "b").id
    assert 0 < made.id < 2**53
    assert make_version(made.type, "n1", ["x"], TIMES, "en", "").id != made.id
    assert make_version(made.type, "n1", ["x"], TIMES, "en", "", number=7).id == 7


def test_the_default_order_is_by_creation_then_id_then_locale() -> None:
    first, second = document("a"), document("a").with_values({"createdAt": "2024-05-01T00:00:00.000Z"})
    third = second.with_values({"documentId": "n2"})
    fourth = third.with_values({"locale": "pt"})
    assert sorted([fourth, third, second, first], key=default_sort_key) == [first, second, third, fourth]
