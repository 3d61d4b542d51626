"""Tests of parsing YAML into a tree: the tree preserves how values were written, and no text can do harm."""

import io
import time
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from server.formats.json import read_json
from server.formats.text_positions import Positions
from server.formats.tree import MAX_DEPTH, MAX_NODES, Plain, SyntaxProblem, is_null
from server.formats.yaml.reader import read_yaml

CHARACTERS = st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\ufeff\ufffe\uffff")
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=12),
    st.sampled_from(["NO", "1.10", "01234", "12:30", "~", "null", "", "a: b", "# c", "- x", "a\nb", "  x\n"]),
)
DOCUMENTS = st.recursive(
    TEXTS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=15,
)


def as_text(tree: Any) -> Any:
    """Return a tree with every scalar as a plain string."""
    if isinstance(tree, dict):
        return {str(key): as_text(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [as_text(value) for value in tree]
    return "" if tree is None else str(tree)


@given(
    data=DOCUMENTS,
    flow=st.sampled_from([None, True, False]),
    style=st.sampled_from([None, "'", '"', "|", ">"]),
    width=st.sampled_from([20, 80, 1000]),
    unicode=st.booleans(),
)
def test_what_dumpers_write_is_read_as_the_text_it_is(
    data: Any, flow: bool | None, style: str | None, width: int, unicode: bool
) -> None:
    text = yaml.safe_dump(
        data, default_flow_style=flow, default_style=style, width=width, allow_unicode=unicode
    )
    assert as_text(read_yaml(text)) == yaml.load(text, yaml.BaseLoader)


@given(data=DOCUMENTS, indent=st.sampled_from([2, 4, 6]))
def test_what_ruamel_writes_reads_back(data: Any, indent: int) -> None:
    dumper, out = YAML(), io.StringIO()
    dumper.indent(mapping=indent, sequence=indent, offset=indent - 2)
    dumper.dump({"k": data}, out)
    assert as_text(read_yaml(out.getvalue())) == {"k": data}


PIECES = [
    *(
        "a",
        "b: ",
        ": ",
        "- ",
        "? ",
        "\n",
        "\n  ",
        "\n    ",
        "'",
        '"',
        "[",
        "]",
        "{",
        "}",
        ", ",
        "# c",
        "&x ",
        "*x",
    ),
    *("|\n", ">-\n", "---\n", "...\n", "!!str ", "%", "@", "\t", "\\n", "é", "~", "12", "\r\n"),
]


def outcome(text: str, read: Any) -> Any:
    """Return the tree of a text, or the error."""
    try:
        return as_text(read(text))
    except SyntaxProblem as problem:
        return problem


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("a: *x")
@example("? [a]\n: b")
@example("- &x [*x]")
def test_any_text_is_read_as_libyaml_reads_it_or_refused(text: str) -> None:
    found = outcome(text, read_yaml)
    try:
        expected = as_text(yaml.load(text, yaml.CBaseLoader))
    except yaml.YAMLError as error:
        if "duplicate anchor" in str(error):  # YAML allows duplicate anchors
            return
        assert isinstance(found, SyntaxProblem)
        assert found.line is None or 1 <= found.line <= text.count("\n") + 2
        return
    except RecursionError:
        expected = None
    # YAML allows these, but documents do not.
    refused = isinstance(found, SyntaxProblem) and (
        "occurs twice" in found.message or "is used inside its own anchor" in found.message
    )
    assert refused or found == expected


@given(st.text(st.characters(blacklist_categories=("Cs",)), max_size=60))
def test_no_text_does_any_harm(text: str) -> None:
    for read in (read_yaml, read_json):
        outcome(text, read)  # any exception except SyntaxProblem fails the test


def test_text_without_quotes_is_told_from_text_with() -> None:
    tree = read_yaml("a: NO\nb: 'NO'\nc: \"NO\"\nd: |-\n  NO\ne: !!str NO\nf:\n")
    assert {key: type(value) is Plain for key, value in tree.items()} == {
        "a": True, "b": False, "c": False, "d": False, "e": False, "f": True,
    }  # fmt: skip


@given(data=st.dictionaries(st.uuids().map(str), DOCUMENTS, min_size=1, max_size=4))
def test_lines_are_those_of_the_keys(data: dict[str, Any]) -> None:
    keys: list[str] = []

    def renamed(tree: Any) -> Any:
        """Return the same tree with keys that occur only once."""
        if isinstance(tree, list):
            return [renamed(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        made = {}
        for value in tree.values():
            key = f"key{len(keys)}key"
            keys.append(key)
            made[key] = renamed(value)
        return made

    text = yaml.safe_dump(renamed(data), default_flow_style=False, sort_keys=False)
    lines: Positions = {}
    read_yaml(text, lines)
    rows = text.split("\n")
    found = {
        path[-1]: (position.line, position.column)
        for path, position in lines.items()
        if isinstance(path[-1], str)
    }
    expected = {key: next(i for i, row in enumerate(rows, 1) if f"{key}:" in row) for key in keys}
    assert found == {key: (line, rows[line - 1].index(key) + 1) for key, line in expected.items()}


def test_lines_of_items_and_of_keys_that_override_merged_ones() -> None:
    lines: Positions = {}
    read_yaml("base: &b {x: {p: 1}, y: 2}\nd:\n  <<: *b\n  x:\n    q: 3\nlist:\n- a\n-\n  k: v\n", lines)
    assert lines[("d", "x", "q")] == (5, 5, 8)
    assert lines[("list", 0)] == (7, 3, 0)
    assert lines[("list", 1, "k")] == (9, 3, 6)


def test_columns_count_characters_and_values_stand_on_the_line_of_their_key() -> None:
    lines: Positions = {}
    read_yaml('äöü: {naïve: "x", b: [c, 𝄞d, e]}\nlong: >-\n  text\nbelow:\n  text\n', lines)
    assert lines[("äöü", "naïve")] == (1, 7, 14)
    assert lines[("äöü", "b", 2)] == (1, 30, 0)
    assert lines[("long",)] == (2, 1, 7)
    assert lines[("below",)] == (4, 1, 0)


MERGES = {
    "one": ("<<: *a\nz: 3", {"x": "1", "y": "1", "z": "3"}),
    "a list, the first wins": ("<<: [*b, *a]", {"x": "1", "y": "2"}),
    "written in place": ("<<: {x: 7}\nz: 3", {"x": "7", "z": "3"}),
    "a list written in place": ("<<: [{x: 7}, *a]", {"x": "7", "y": "1"}),
    "below what it would give": ("x: 9\n<<: *a", {"x": "9", "y": "1"}),
    "above what overrides it": ("<<: *a\nx: 9", {"x": "9", "y": "1"}),
    "twice": ("<<: *a\n<<: *b", {"x": "1", "y": "1"}),
    "in quotes it is a key": ('"<<": *a', {"<<": {"x": "1", "y": "1"}}),
}


@pytest.mark.parametrize("name", MERGES)
def test_merge_keys(name: str) -> None:
    text, expected = MERGES[name]
    made = "a: &a {x: 1, y: 1}\nb: &b {y: 2}\nmade:\n" + "".join(f"  {line}\n" for line in text.split("\n"))
    assert as_text(read_yaml(made)["made"]) == expected


REFUSED = {
    "a colon in text": ("title: a: b\n", "mapping values are not allowed", 1, "put strings that contain"),
    "a tab": ("a:\n\tb: 1\n", "cannot start any token", 2, "indent with spaces, not tabs"),
    "an unclosed list": ("x: 1\na: [1, 2\nb: 3\n", "bracket that opens here", 2, "close the"),
    "an unclosed mapping": ("a: {b: 1,\nc: 2\n", "bracket that opens here", 1, "close the"),
    "a comma that lacks": ('a: ["x" "y"]\n', "did not find expected", 1, "check the quotes"),
    "an unclosed quote": ("a: 1\nb: 'x\nc: 3\n", "quote that opens here", 2, "close the quote on this line"),
    "a quote that a later one closes": ('a: 1\nb: "x\nc: "y"\nd: 1\n', "quote that opens", 2, "close the"),
    "a quote in a list": ("a:\n- 'x\n- 'y'\n", "quote that opens here", 2, "close the quote on this line"),
    "lines in quotes before it": ('a: "x\n  y"\nb: c: d\n', "mapping values are not", 3, "put strings"),
    "an @": ("a: b\nc: @d\n", "cannot start any token", 2, "put strings that begin with this character"),
    "an unknown alias": ("a: b\nc: *d\n", "no anchor &d", 2, "put strings that begin with * in quotes"),
    "an alias inside of itself": ("a: &x\n  b: *x\n", "used inside its own anchor", 2, "replace the alias"),
    "a key twice": ("a: 1\nb: 2\na: 3\n", 'the key "a" occurs twice', 3, "remove one of the two"),
    "a list as key": ("a: 1\n? [b]\n: c\n", "a key must be a string", 2, "put the key in quotes"),
    "two documents": ("a: 1\n---\nb: 2\n", "a second YAML document", 2, "keep only one YAML document in"),
    "a merge of text": ("a: 1\n<<: b\n", "<< must refer to a mapping", 2, "refer to the anchor of a mapping"),
    "an unknown tag": ("a: 1\nb: !python/object x\n", "tag !python/object is unknown", 2, "remove the tag"),
    "an unknown tag on quotes": ("a: 1\nb: !x 'x'\n", "the tag !x is unknown", 2, "remove the tag"),
    "an unknown tag on a mapping": ("a: 1\nb: !x {}\n", "the tag !x is unknown", 2, "remove the tag"),
    "a control character": ("a: 1\nb: \x07\n", "not allowed", 2, "remove the invalid character"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_yaml_is_refused_with_line_and_fix(name: str) -> None:
    text, message, line, fix = REFUSED[name]
    with pytest.raises(SyntaxProblem) as caught:
        read_yaml(text)
    assert message in caught.value.message
    assert caught.value.line == line
    rows = [*text.split("\n"), ""]
    assert caught.value.column
    assert caught.value.column <= len(rows[line - 1]) + 1
    assert caught.value.fix.startswith(fix)


def bomb(merge: bool) -> str:
    """Return anchors that each contain the previous anchor nine times: a billion values in a few lines."""
    one, many = ("<<: [{}]", "k{i}: {}") if merge else ("[{}]", "{}")
    lines = [
        f"a: &a {{{', '.join(f'k{i}: 1' for i in range(9))}}}"
        if merge
        else "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]"
    ]
    for before, name in zip("abcdefghi", "bcdefghij", strict=True):
        items = ", ".join(many.format(f"*{before}", i=i) for i in range(9))
        lines.append(f"{name}: &{name} " + (f"{{{items}}}" if merge else one.format(items)))
    return "\n".join(lines)


def deep_by_aliases() -> str:
    """Return lists that are nested at most thirty levels deep in the text, but thousands deep once aliases
    are resolved.
    """
    lines = ["a0: &a0 [1]"]
    for i in range(60):
        lines.append(f"a{i + 1}: &a{i + 1} {'[' * 30}*a{i}{']' * 30}")
    return "\n".join(lines)


BOMBS = {
    "aliases": (bomb(False), "more than 200000 values"),
    "aliases in mappings": (bomb(True), "more than 200000 values"),
    "depth by aliases": (deep_by_aliases(), "nested more than 64 levels deep"),
    "brackets": ("[" * 100_000, "nested more than 64 levels deep"),
    "braces": ("{a: " * 100_000, "nested more than 64 levels deep"),
    "dashes": ("- " * 100_000, "nested more than 64 levels deep"),
    "many values": ("- a\n" * (MAX_NODES + 1), "more than 200000 values"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_yaml_takes_long_or_too_much(name: str) -> None:
    text, message = BOMBS[name]
    began = time.perf_counter()
    with pytest.raises(SyntaxProblem, match=message):
        read_yaml(text)
    assert time.perf_counter() - began < 10


@pytest.mark.parametrize(
    "text", ["[" * MAX_DEPTH + "]" * MAX_DEPTH, '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH]
)
def test_the_limit_of_depth_is_the_same_for_both(text: str) -> None:
    assert as_text(read_json(text)) == as_text(read_yaml(text))
    for read in (read_json, read_yaml):
        with pytest.raises(SyntaxProblem, match="nested more than 64 levels deep"):
            read(f"[{text}]")


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "---\n...\n"])
def test_a_text_without_values_is_null(text: str) -> None:
    assert is_null(read_yaml(text))
