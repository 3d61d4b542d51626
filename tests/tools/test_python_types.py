"""`bifolio types --python`: its output. tests/clients/generated.py checks and runs it."""

import ast
import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.config.reader import read_settings
from server.schema.load import read_content_types
from server.tools.python_prelude import _error, _pairs
from server.tools.python_types import BODY_TYPES, RESPONSE_TYPES, string_literal, write_python_module
from server.tools.typescript import BODY_TYPES as TYPESCRIPT_BODIES
from server.tools.typescript import RESPONSE_TYPES as TYPESCRIPT_RESPONSES
from tests.sites import STRING, Files, collection, component, relation, schema, write


def module(root: Path, files: Files) -> str:
    write(root, files)
    return write_python_module(read_content_types(root), read_settings(root))


def test_media_have_placeholders_if_the_settings_say_so(tmp_path: Path) -> None:
    settings = {"site.yaml": "media: {placeholders: true}\n"}
    note = collection("note", {"title": STRING})
    assert "placeholder" not in module(tmp_path, note)
    added = '"placeholder": "str | None",\n        "color": "str | None",'
    assert added in module(tmp_path, {**note, **settings})


def loaded(root: Path, files: Files) -> dict[str, Any]:
    """Return the names in the generated module."""
    path = root / "made.py"
    path.write_text(module(root, files))
    return runpy.run_path(str(path))


def test_every_attribute_type_has_its_type() -> None:
    assert set(RESPONSE_TYPES) == set(TYPESCRIPT_RESPONSES)
    assert set(BODY_TYPES) == set(TYPESCRIPT_BODIES)


def test_any_name_is_a_key(tmp_path: Path) -> None:
    names = ("class", "a-b", "__proto__", "_x", "int", "Any", "print")
    attributes = {name: {**STRING, "required": True} for name in names}
    made = loaded(tmp_path, collection("note", attributes))
    assert set(names) <= made["Note"].__required_keys__
    assert set(names) == made["NoteInput"].__required_keys__
    assert made["NoteChanges"].__required_keys__ == frozenset()


def test_a_name_that_is_taken_is_not_given_twice(tmp_path: Path) -> None:
    taken = ("client", "page", "exception", "mapping", "decimal", "note", "note-draft", "true")
    made = loaded(tmp_path, {k: v for name in taken for k, v in collection(name, {}).items()})
    assert {"ClientType", "PageType", "ExceptionType", "MappingType", "NoteType"} <= set(made)
    assert made["Page"].__doc__.startswith("One page of a list.")


def test_the_client_has_an_attribute_for_each_type(tmp_path: Path) -> None:
    files = {
        **collection("news-item", {}),
        **collection("connectio", {}),
        "content-types/class.json": schema("class", {}, single=True),
        **collection("e", {"x": relation("oneToOne", "news-item")}),
    }
    made = loaded(tmp_path, files)
    assert set(vars(made["Client"]())) == {
        "news_items",
        "connectios",
        "class_",
        "es",
        "connection",
    }


def test_the_text_does_not_depend_on_the_order_of_files(tmp_path: Path) -> None:
    next_a = {"x": relation("oneToOne", "a")}
    files = {**collection("b", next_a), **collection("a", {}), **component("c.d", {})}
    assert module(tmp_path / "one", files) == module(tmp_path / "two", dict(reversed(files.items())))


def test_what_a_schema_says_can_not_leave_its_comment(tmp_path: Path) -> None:
    odd = {"type": "string", "regex": "a\u2028b\nimport os\x0c", "default": '"""\n\\'}
    text_ = module(tmp_path, collection("note", {"title": odd}))
    assert "\nimport os" not in text_
    ast.parse(text_)


@given(st.text())
def test_literals(value: str) -> None:
    made = string_literal(value)
    assert ast.literal_eval(made) == value
    assert made.isprintable()


@given(
    st.dictionaries(st.text(max_size=3), st.one_of(st.none(), st.booleans(), st.lists(st.text(max_size=2))))
)
def test_query_parameters(value: dict[str, Any]) -> None:
    found = dict(_pairs("filters", value))
    for key, inner in value.items():
        if isinstance(inner, bool):
            assert found[f"filters[{key}]"] == str(inner).lower()
        if isinstance(inner, list) and inner:
            assert found[f"filters[{key}][0]"] == inner[0]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": null}', b'{"error": {}}', b"\xff"])
def test_an_error_that_is_not_from_the_api(body: bytes) -> None:
    assert str(_error(502, body)).startswith("502 HTTPError: ")
