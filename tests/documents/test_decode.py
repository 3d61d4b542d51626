"""Tests of reading values from files: whether an empty string is a value depends on the attribute's type."""

import pytest

from server.documents.encode import Reading, read_value
from server.documents.values import empty_value
from server.schema.model import Attribute
from tests.conftest import MakeApi
from tests.sites import STRING, collection, relation

NO_TEXT = ("integer", "biginteger", "float", "decimal", "boolean", "date", "time", "datetime", "media")


@pytest.mark.parametrize("kind", NO_TEXT)
def test_an_empty_text_is_no_value_where_text_can_be_none(kind: str) -> None:
    reading, attribute = Reading({}), Attribute("x", kind)
    assert read_value(attribute, "", ("x",), reading) == empty_value(attribute)
    assert reading.mismatches == []


@pytest.mark.parametrize("kind", ["string", "text", "richtext"])
def test_an_empty_text_is_one(kind: str) -> None:
    assert read_value(Attribute("x", kind), "", ("x",), Reading({})) == ""


def test_a_field_that_an_editor_cleared_is_served_as_null(make_api: MakeApi) -> None:
    attributes = {
        "title": STRING,
        "day": "date",
        "mood": {"type": "enumeration", "enum": ["calm"]},
        "other": relation("oneToOne", "note"),
    }
    cleared = '---\ntitle: ""\nday: ""\nmood: ""\nother: ""\n---\n'
    api = make_api({**collection("note", attributes), "content/notes/a.md": cleared})
    note = api.get("/api/notes/a?populate=*").data
    assert (note["title"], note["day"], note["mood"], note["other"]) == ("", None, None, None)
    assert api.site.problems == ()
