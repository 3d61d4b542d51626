"""Tests of TOML: values, their positions, and changes that affect only their own lines."""

import difflib
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.formats.edits import REMOVE, is_same_value
from server.formats.text_positions import Positions
from server.formats.toml.edit import edit_toml
from server.formats.toml.reader import NullError, read_toml, toml_mapping
from server.formats.toml.statements import toml_positions
from server.formats.tree import Plain, SyntaxProblem, Tree, resolve_plain_values
from server.storage.document_text import change_text

DATES = {
    "2024-01-02T03:04:05Z": "2024-01-02T03:04:05.000Z",
    "2024-01-02 03:04:05.678+00:00": "2024-01-02T03:04:05.678Z",
    "2024-01-02T03:04:05-07:30": "2024-01-02T03:04:05.000-07:30",
    "2024-01-02T03:04:05": "2024-01-02T03:04:05.000",
    "2024-01-02": "2024-01-02",
    "03:04:05": "03:04:05.000",
    "03:04:05.123456": "03:04:05.123456",
}


@pytest.mark.parametrize("written", DATES)
def test_dates_and_times_are_text_that_an_attribute_reads(written: str) -> None:
    found = read_toml(f"at = {written}\n")["at"]
    assert type(found) is Plain
    assert found == DATES[written]
    made = edit_toml("", {}, {"at": found})
    assert tomllib.loads(made) == tomllib.loads(f"at = {written}\n")


def test_numbers_keep_their_digits() -> None:
    tree = read_toml("a = 1.10\nb = 1_000\nc = 0xff\nd = 1_0.5\ne = -inf\nf = nan\n")
    assert tree == {"a": "1.10", "b": 1000, "c": 255, "d": "10.5", "e": "-.inf", "f": ".nan"}
    assert type(tree["a"]) is Plain
    with pytest.raises(ValueError, match="be written in JSON"):
        resolve_plain_values(tree["f"])


TEXT = """# Comment
title = "x"
site.name = 'y'

[extra]
list = [
  "a",
  { b = 1 },
]
[[people]]
name = "Ida"
  [people.home]
  town = "X"
[[people]]
name = "Nell"
"""


def test_everything_has_its_position() -> None:
    positions: Positions = {}
    read_toml(TEXT, positions)
    assert positions == {
        ("title",): (2, 1, 9),
        ("site",): (3, 1, 0),
        ("site", "name"): (3, 1, 13),
        ("extra",): (5, 1, 0),
        ("extra", "list"): (6, 1, 0),
        ("extra", "list", 0): (7, 3, 0),
        ("extra", "list", 1): (8, 3, 0),
        ("extra", "list", 1, "b"): (8, 5, 9),
        ("people",): (10, 1, 0),
        ("people", 0): (10, 1, 0),
        ("people", 0, "name"): (11, 1, 8),
        ("people", 0, "home"): (12, 3, 0),
        ("people", 0, "home", "town"): (13, 3, 10),
        ("people", 1): (14, 1, 0),
        ("people", 1, "name"): (15, 1, 8),
    }


REFUSED = {
    "text without quotes": ("a = 1\ntitle = x\n", 2, 9, "put strings in quotes"),
    "a key twice": ("a = 1\na = 2\n", 2, 6, "remove one of the two"),
    "an open quote": ('a = 1\nb = "x\nc = 2\n', 2, 5, "close the"),
    "an open literal": ("a = 'x' # it's\nb = 'x\nc = 2\n", 2, 5, "close the"),
    "open lines": ('a = 1\nb = """\nc = ""\n', 2, 5, "close the"),
    "an open bracket": ("a = 1\nb = [1,\n", 3, 1, "check the"),
    "a long number": (f"a = 1\nb = {'9' * 5000}\n", 2, None, "put the number in quotes"),
    "too deep": (f"a = {'[' * 80}{']' * 80}\n", None, None, "use fewer levels"),
    "much too deep": (f"a = {'[' * 5000}{']' * 5000}\n", None, None, "use fewer levels"),
    "deep by its keys": (f"{'.'.join('a' * 80)} = 1\n", None, None, "use fewer levels"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_read_is_refused_with_its_position(name: str) -> None:
    text, line, column, fix = REFUSED[name]
    with pytest.raises(SyntaxProblem) as caught:
        read_toml(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.fix.startswith(fix)


words = st.sampled_from(["a", "b c", "é", "", "1", "#", '"', "'", "\\", "a\nb", "+++", "=", "]", "}", ", "])
texts = words | st.text(max_size=8)
scalars = (
    st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
trees = st.dictionaries(texts, values, max_size=4)


@given(trees)
def test_what_is_written_reads_back(tree: dict[str, Any]) -> None:
    text = toml_mapping(tree)
    assert tomllib.loads(text) == tree
    assert is_same_value(read_toml(text), tree)
    assert set(toml_positions(text)) >= {(key,) for key in tree}
    assert set(paths_of(tree)) == set(toml_positions(text))


def paths_of(tree: Tree, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of all keys and list items in a tree."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path for key, value in inner for path in [(*above, key), *paths_of(value, (*above, key))]]


@given(trees, trees, st.sampled_from(["\n", "\r\n"]))
def test_a_change_says_what_it_should(tree: dict[str, Any], new: dict[str, Any], newline: str) -> None:
    text = toml_mapping(tree).replace("\n", newline)
    changes = {key: new.get(key, REMOVE) for key in tree | new}
    for expand in (False, True):
        made = edit_toml(text, read_toml(text), changes, expand=expand)
        assert is_same_value(read_toml(made), new)
        assert "\r" not in made.replace("\r\n", "") or newline == "\n"


@given(trees, texts, scalars)
def test_one_value_changes_its_own_lines(tree: dict[str, Any], key: str, value: Any) -> None:
    """Although there are comments above and at the end of every line, only the key's own lines change."""
    before = toml_mapping({key: "before", **{k: v for k, v in tree.items() if k != key}})
    made = edit_toml(before, read_toml(before), {key: value})
    lines, changed = before.split("\n"), made.split("\n")
    ops = difflib.SequenceMatcher(None, lines, changed, autojunk=False).get_opcodes()
    assert {tag for tag, *_ in ops} <= {"equal", "replace"}
    assert sum(i2 - i1 for tag, i1, i2, _, _ in ops if tag != "equal") <= 1


@pytest.mark.parametrize(
    ("changes", "line", "instead"),
    [
        ({"title": "y"}, 'title = "x"', 'title = "y"'),
        ({"site": {"name": "z"}}, "site.name = 'y'", "site.name = 'z'"),
        ({"site": {"name": "y", "url": "u"}}, "site.name = 'y'", "site.name = 'y'\nsite.url = \"u\""),
        ({"extra": {"list": ["c", {"b": 1}]}}, '  "a",', '  "c",'),
        ({"extra": {"list": ["a", {"b": 2}]}}, "  { b = 1 },", "  { b = 2 },"),
        ({"extra": {"list": ["a", {"b": 1}, "z"]}}, "  { b = 1 },", '  { b = 1 },\n  "z",'),
        ({"extra": {"list": [{"b": 1}]}}, '  "a",\n', ""),
        ({"extra": {"list": ["a", {"b": 1}], "n": 1}}, " },\n]\n", " },\n]\nn = 1\n"),
        ({"new": True}, "site.name = 'y'\n", "site.name = 'y'\nnew = true\n"),
        ({"new": {"a": 1}}, 'name = "Nell"\n', 'name = "Nell"\n\n[new]\na = 1\n'),
        (
            {"people": [{"name": "Ida", "home": {"town": "Y"}}, {"name": "Nell"}]},
            '  town = "X"',
            '  town = "Y"',
        ),
        ({"people": [{"name": "Nell"}]}, TEXT[TEXT.index("[[people") : TEXT.rindex("[[people")], ""),
        (
            {"people": [{"name": "Ida", "home": {"town": "X"}}, {"name": "Bo"}, {"name": "Nell"}]},
            '  town = "X"\n',
            '  town = "X"\n\n[[people]]\nname = "Bo"\n',
        ),
        ({"title": REMOVE}, 'title = "x"\n', ""),
        ({"title": None}, 'title = "x"\n', ""),
    ],
)
def test_a_change_is_made_where_it_belongs(changes: dict[str, Any], line: str, instead: str) -> None:
    assert TEXT.count(line) == 1
    assert edit_toml(TEXT, read_toml(TEXT), changes) == TEXT.replace(line, instead)


def test_a_null_inside_of_a_value_has_no_form() -> None:
    for value in ([None], {"a": None}):
        with pytest.raises(NullError):
            edit_toml("", {}, {"a": value})


ITEMS = """tags = [
  # about a
  "a", # behind a
  # about b
  "b", # behind b
  "c" # behind c
]
rows = [ "x", "y",
  "z" ]
"""


@pytest.mark.parametrize(
    ("new", "line", "instead"),
    [
        (["b", "c"], '  "a", # behind a\n', ""),
        (["a", "c"], '  "b", # behind b\n', ""),
        (["a", "b"], '  "c" # behind c\n', ""),
        (["z", "a", "b", "c"], "  # about a\n", '  "z",\n  # about a\n'),
        (["a", "z", "b", "c"], "  # about b\n", '  "z",\n  # about b\n'),
        (["a", "b", "c", "z"], '  "c" # behind c\n', '  "c", # behind c\n  "z"\n'),
        (["a", "B", "c"], '"b"', '"B"'),
    ],
)
def test_a_comment_stays_with_its_item(new: list[str], line: str, instead: str) -> None:
    assert edit_toml(ITEMS, read_toml(ITEMS), {"tags": new}) == ITEMS.replace(line, instead)


def test_items_that_share_a_line_change_on_it() -> None:
    for new, written in {
        ("y", "z"): '[ "y",\n  "z" ]',
        ("x", "z"): '[ "x",\n  "z" ]',
        ("x", "y"): '[ "x", "y" ]',
        ("x", "n", "y", "z"): '[ "x", "n", "y",\n  "z" ]',
        ("x", "y", "z", "n"): '[ "x", "y",\n  "z", "n" ]',
    }.items():
        made = edit_toml(ITEMS, read_toml(ITEMS), {"rows": list(new)})
        assert tomllib.loads(made)["rows"] == list(new)
        assert made == ITEMS.replace('[ "x", "y",\n  "z" ]', written)


def test_a_comment_stays_with_its_table() -> None:
    text = '# All\n\n# About a\n[[t]]\nname = "a"\n\n# About b\n[[t]]\nname = "b"\n'
    made = edit_toml(text, read_toml(text), {"t": [{"name": name} for name in "zayb"]})
    a, b = text.index("# About a"), text.index("# About b")
    added = '[[t]]\nname = "{}"\n\n'.format
    assert made == text[:a] + added("z") + text[a:b] + added("y") + text[b:]


def test_new_keys_above_tables_are_one_block() -> None:
    text = "# Head\n\n# About t\n[t]\na = 1\n"
    made = edit_toml(text, read_toml(text), {"x": 1, "y": "two", "z": [3]})
    assert made == text.replace("# About t", 'x = 1\ny = "two"\nz = [3]\n\n# About t')


names = st.lists(st.text("abcdefgh", min_size=1, max_size=2), unique=True, min_size=1, max_size=6)


@st.composite
def grown_or_shrunk(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Generate a list, and a second list in which some items are missing and some new items are inserted."""
    old = draw(names)
    new = [item for item in old if draw(st.booleans())]
    for i in range(draw(st.integers(0, 3))):
        new.insert(draw(st.integers(0, len(new))), f"new{i}")
    return old, new


def is_kept(items: tuple[list[str], list[str]], block: str, made: str) -> bool:
    return all(block.format(name) in made for name in items[0] if name in items[1])


@given(grown_or_shrunk(), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from(["", "\ufeff"]))
def test_what_stays_of_a_list_keeps_its_lines(
    items: tuple[list[str], list[str]], newline: str, closed: bool, bom: str
) -> None:
    old, new = items
    lines = "".join(f'  # above {name}\n  "{name}", # behind {name}\n' for name in old)
    text = f"# first\ntitle = 1 # one\ntags = [ # all\n{lines}]\n\n# last\n[end]\nx = 1\n"
    if not closed:
        text = text.replace(f'"{old[-1]}",', f'"{old[-1]}"')
    text = text.replace("\n", newline)
    made = change_text("a.toml", bom + text, None, {"tags": new}).replace("\r\n", "\n")
    assert tomllib.loads(made.removeprefix("\ufeff"))["tags"] == new
    assert made.startswith(f"{bom}# first\ntitle = 1 # one\ntags = [")
    assert made.endswith("]\n\n# last\n[end]\nx = 1\n")
    if new:
        assert all(f"  # above {name}\n" in made for name in old)
        kept = [name for name in old if name in new]
        assert all(f'  # above {name}\n  "{name}"' in made for name in kept)
        assert all(f" # behind {name}\n" in made.split(f'"{name}"')[1][:15] for name in kept)


@given(grown_or_shrunk(), st.sampled_from(["\n", "\r\n"]))
def test_what_stays_of_a_list_of_tables_keeps_its_lines(
    items: tuple[list[str], list[str]], newline: str
) -> None:
    old, new = items
    block = '\n# above {0}\n[[t]] # beside {0}\nname = "{0}" # behind {0}\n  [t.in]\n  deep = "{0}"\n'
    text = "x = 1 # one\n" + "".join(map(block.format, old)) + "\n# last\n[end]\ny = 1\n"
    made = change_text(
        "a.toml", text.replace("\n", newline), None, {"t": [{"name": n, "in": {"deep": n}} for n in new]}
    )
    assert made.count("\r\n") == (made.count("\n") if newline == "\r\n" else 0)
    made = made.replace("\r\n", "\n")
    assert [table["name"] for table in tomllib.loads(made).get("t", [])] == new
    assert made.startswith("x = 1 # one\n")
    assert "\n# last\n[end]\ny = 1\n" in made
    assert is_kept(items, block, made)


@given(trees, texts, values, st.sampled_from(["", "\ufeff"]))
def test_a_change_leaves_the_lines_of_all_other_keys(
    tree: dict[str, Any], key: str, value: Any, bom: str
) -> None:
    """With comments in between, all lines of other keys must be kept in their order."""
    others = {k: v for k, v in tree.items() if k != key and "\n" not in repr(v)}
    before = bom + "# first\n" + toml_mapping(others) + "\n# last\n"
    made = change_text("a.toml", before, None, {key: value})
    assert made.startswith(bom)
    text = made.removeprefix(bom)
    lines = difflib.SequenceMatcher(
        None, before.removeprefix(bom).split("\n"), text.split("\n"), autojunk=False
    )
    assert {tag for tag, *_ in lines.get_opcodes()} <= {"equal", "insert"}
    before, again = before.removeprefix(bom), change_text("a.toml", text, None, {key: REMOVE})
    assert [line for line in again.split("\n") if line] == [line for line in before.split("\n") if line]
