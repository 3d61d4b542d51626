"""Tolerant scanner: the keys of complete texts are those of the parsers, and the cursor's place is found in
incomplete texts.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.formats.text_positions import Positions
from server.formats.tree import MAX_DEPTH
from server.formats.yaml.reader import read_yaml
from server.lsp.keys import Cursor, cursor_at, scan_nodes


def at(path: str, text: str) -> Cursor | None:
    """Return the cursor at the character | of a text."""
    return cursor_at(path, text.replace("|", "", 1), text.index("|"))


PLACES = {
    "a new key": ("a.yaml", "title: A\nau|", "key", (), "au"),
    "an empty line": ("a.yaml", "title: A\n|\nslug: a\n", "key", (), ""),
    "a value": ("a.yaml", "title: A\nauthor: an|\nslug: a\n", "value", ("author",), "an"),
    "no value yet": ("a.yaml", "author: |\n", "value", ("author",), ""),
    "quotes": ("a.yaml", "author: 'an|\n", "value", ("author",), "an"),
    "a list": ("a.yaml", "tags:\n  - fog\n  - ni|\n", "item", ("tags", 1), "ni"),
    "a list that is not indented": ("a.yaml", "tags:\n- fog\n- |\n", "item", ("tags", 1), ""),
    "brackets": ("a.yaml", "tags: [fog, ni|]\n", "value", ("tags", 1), "ni"),
    "open brackets": ("a.yaml", "tags: [fog, ni|\nslug: a\n", "value", ("tags", 1), "ni"),
    "brackets of several lines": ("a.yaml", "tags: [\n  fog,\n  ni|\n]\n", "value", ("tags", 1), "ni"),
    "braces": ("a.yaml", "seo: {metaTitle: a, me|}\n", "key", ("seo",), "me"),
    "a component": ("a.yaml", "seo:\n  metaTitle: a\n  me|\n", "key", ("seo",), "me"),
    "an empty component": ("a.yaml", "seo:\n  |\nslug: a\n", "key", ("seo",), ""),
    "a zone": ("a.yaml", "p:\n  - __component: a.q|\n", "value", ("p", 0, "__component"), "a.q"),
    "the second key of an item": ("a.yaml", "p:\n  - __component: a\n    bo|\n", "key", ("p", 0), "bo"),
    "front matter": ("a.md", "---\ntitle: A\nau|\n---\nText\n", "key", (), "au"),
    "front matter without an end": ("a.md", "---\ntitle: A\nau|", "key", (), "au"),
    "a body": ("a.md", "---\ntitle: A\n---\nText | text\n", "body", (), ""),
    "a body without front matter": ("a.md", "Text |\n", "body", (), ""),
    "after a block of text": ("a.yaml", "text: >-\n  a: b\n\n  c\nau|\n", "key", (), "au"),
    "TOML": ("a.toml", "title = 'A'\nau|\n", "key", (), "au"),
    "a value in TOML": ("a.md", "+++\nauthor = \"an|\n+++\n", "value", ("author",), "an"),
    "a table in TOML": ("a.toml", "[seo]\nme|\n", "key", ("seo",), "me"),
    "a list of tables": ("a.toml", "[[parts]]\na = 1\n[[parts]]\nb|\n", "key", ("parts", 1), "b"),
    "a key in JSON": ("a.json", '{"title": "A", "au|"}', "key", (), "au"),
    "a value in JSON": ("a.json", '{"title": "A",\n  "author": "an|\n}', "value", ("author",), "an"),
    "no comma in JSON": ("a.json", '{"title": "A"\n  "au|"\n}', "key", (), "au"),
    "a list in JSON": ("a.json", '{"tags": ["fog", |]}', "value", ("tags", 1), ""),
    "a word in JSON": ("a.json", '{"draft": tr|}', "value", ("draft",), "tr"),
    "a component in JSON": ("a.json", '{"seo": {"a": [1, {}], "|"}}', "key", ("seo",), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_the_place_of_the_cursor(name: str) -> None:
    path, text, role, keys, prefix = PLACES[name]
    found = at(path, text)
    assert found is not None
    assert (found.role, found.path, found.prefix) == (role, keys, prefix)


@pytest.mark.parametrize("text", ["text: |x\n  a|\n".replace("|x", ">"), "# a|\n", "a: b # c|\n"])
def test_nothing_is_completed_in_text_and_comments(text: str) -> None:
    assert at("a.yaml", text) is None


VALUES = st.recursive(
    st.text("ab: #-'é", max_size=5) | st.integers() | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)
MAPPINGS = st.dictionaries(st.text("abc", min_size=1, max_size=3), VALUES, max_size=4)


@given(MAPPINGS, st.sampled_from([None, 1, 2]))
def test_the_keys_of_json_are_those_that_the_parser_finds(tree: object, indent: int | None) -> None:
    text = json.dumps(tree, indent=indent)
    positions: Positions = {}
    read_yaml(text, positions)
    assert {node.path for node in scan_nodes("a.json", text)} == set(positions)


@given(MAPPINGS)
def test_the_keys_of_yaml_are_those_that_the_parser_finds(tree: object) -> None:
    from server.formats.yaml.writer import yaml_mapping  # noqa: PLC0415

    text = yaml_mapping(tree)  # type: ignore[arg-type]
    positions: Positions = {}
    read_yaml(text, positions)
    found = {node.path: text.count("\n", 0, node.key[0]) + 1 for node in scan_nodes("a.yaml", text)}
    assert found == {at: position.line for at, position in positions.items()}


@given(
    st.text("ab:-#[]{}'\"|> \n,=\t", max_size=60),
    st.integers(0, 60),
    st.sampled_from(["a.yaml", "a.json", "a.toml", "a.md"]),
)
def test_any_text_can_be_scanned(text: str, index: int, path: str) -> None:
    for node in scan_nodes(path, text):
        assert 0 <= node.key[0] <= node.key[1] <= len(text)
    found = cursor_at(path, text, min(index, len(text)))
    assert found is None or found.span[0] <= min(index, len(text)) <= found.span[1]


def nested(levels: int) -> dict[str, tuple[str, str]]:
    """Return texts with so many nested levels: the paths of their files, and the texts up to the cursor."""
    return {
        "brackets": ("a.md", "---\ntitle: " + "[" * (levels - 1)),
        "braces": ("a.yaml", "a: " + "{b: " * (levels - 1)),
        "dashes": ("a.yaml", "- " * levels),
        "dashes above the cursor": ("a.yaml", "- " * levels + "\nb"),
        "keys": ("a.yaml", "".join(f"{' ' * level}a:\n" for level in range(min(levels, 1_000)))),
        "brackets in brackets": ("a.yaml", "- [\n  - [\n" + "[" * (levels - 4) + "\n- [b, "),
        "JSON": ("a.json", '{"a": ' * levels),
        "JSON in Markdown": ("a.md", '{"a": ' + "[" * (levels - 1)),
        "TOML": ("a.toml", "a = " + "[" * (levels - 1)),
        "names in TOML": ("a.toml", ".".join("a" * levels) + " = 1\n"),
        "a table in TOML": ("a.toml", "[" + ".".join("a" * levels) + "]\n"),
    }


@pytest.mark.parametrize("name", nested(MAX_DEPTH))
def test_there_are_no_keys_if_the_levels_are_too_deep(name: str) -> None:
    path, text = nested(MAX_DEPTH)[name]
    assert scan_nodes(path, text)
    assert cursor_at(path, text, len(text)) is not None
    for levels in (MAX_DEPTH + 2, 50_000):
        path, text = nested(levels)[name]
        assert scan_nodes(path, text) == []
        found = cursor_at(path, text, len(text))
        assert found is None or found.role == "body"


def test_brackets_that_are_not_closed_end_before_the_next_item() -> None:
    text = "tags:\n- [fog,\n  sea\n- [x]\n- y\n"
    assert [node.path for node in scan_nodes("a.yaml", text)] == [
        ("tags",),
        ("tags", 0),
        ("tags", 0, 0),
        ("tags", 0, 1),
        ("tags", 1),
        ("tags", 1, 0),
        ("tags", 2),
    ]


def test_lists_of_a_repeated_key_are_counted_again() -> None:
    text = "a:\n  b:\n  - 1\n  - 2\na:\n  b:\n  - 3\n"
    assert [node.path for node in scan_nodes("a.yaml", text) if node.path[2:]] == [
        ("a", "b", 0),
        ("a", "b", 1),
        ("a", "b", 0),
    ]


@pytest.mark.parametrize(
    ("path", "line"),
    [("a.yaml", "title{}x"), ("a.yaml", "-a{}x"), ("a.toml", "[a{}x] y"), ("a.toml", "[{}x] y")],
)
def test_a_line_of_many_spaces_has_no_key(path: str, line: str) -> None:
    # Each space was once the start of another search to the end of the line.
    text = line.format(" " * 400_000) + "\n"
    assert scan_nodes(path, text) == []
