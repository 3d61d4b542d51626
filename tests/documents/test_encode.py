"""Tests of writing documents to files: only changed values are written again."""

import pytest

from server.documents.encode import changed_keys
from server.documents.values import Component, same_values
from server.formats.json import json_text
from server.formats.tree import Plain
from server.schema.model import Attribute, Type

ROW = Type("shared.row", "component", "row", "", "Row", {n: Attribute(n, "json") for n in ("a", "b")})
NOTE = Type(
    "api::note.note",
    "collectionType",
    "note",
    "notes",
    "Note",
    {"data": Attribute("data", "json"), "row": Attribute("row", "component", component="shared.row")},
)


CHANGES = [(0, False), (1, True), (1, 1.0), ([0], [False]), ({"a": 1}, {"a": True})]


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_a_value_of_another_type_is_another_value(old: object, new: object) -> None:
    assert not same_values(old, new)
    values = {"data": old, "row": None}
    assert changed_keys(NOTE, values, {"data": new, "row": None}, {"data": old}) == {"data": new}
    before, after = (Component(ROW, (1, value, "x")) for value in (old, new))
    told = changed_keys(
        NOTE, {"data": 1, "row": before}, {"data": 1, "row": after}, {"row": {"a": old, "b": "x"}}
    )
    assert told == {"row": {"a": new, "b": "x"}}
    assert type(told["row"]["a"]) is type(new)


def test_what_stays_is_not_said_again() -> None:
    component = Component(ROW, (1, 2, "x"))
    values = {"data": {"a": [1, None]}, "row": component}
    assert changed_keys(NOTE, values, {**values, "data": {"a": [1, None]}}, {}) == {}


def test_a_number_that_json_text_has_stays_one_in_a_component_that_changes() -> None:
    before, after = Component(ROW, (1, 1.5, "x")), Component(ROW, (1, 1.5, "y"))
    tree = {"row": {"a": Plain("1.50"), "b": "x"}}
    told = changed_keys(NOTE, {"data": 1, "row": before}, {"data": 1, "row": after}, tree)
    assert json_text(told["row"]) == '{"a": 1.50, "b": "y"}'
    assert json_text(Plain("2024-02-29")) == '"2024-02-29"'
