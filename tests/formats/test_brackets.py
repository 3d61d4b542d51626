"""Tests of changes inside brackets: unchanged items keep their bytes and comments in YAML, TOML and JSON."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.storage.document_text import change_text, parse
from tests.formats.test_yaml_edit import rearranged

TAGS = """tags: [ # all
  sea,   # the first
  # about fog
  'fog', # grey
  mist   # thin
]  # end
x: 1
"""


@pytest.mark.parametrize(
    ("new", "line", "instead"),
    [
        (["sea", "fog", "mist", "a, b"], "  mist   # thin\n", "  mist,   # thin\n  'a, b'\n"),
        (["sea", "salt", "fog", "mist"], "  # about fog\n", "  salt,\n  # about fog\n"),
        (["salt", "sea", "fog", "mist"], "  sea,", "  salt,\n  sea,"),
        (["sea", "FOG", "mist"], "'fog'", "'FOG'"),
        (["sea", "mist"], "  'fog', # grey\n", ""),
        (["fog", "mist"], "  sea,   # the first\n", ""),
        (["sea", "fog"], "  mist   # thin\n", ""),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_list_changes_item_by_item(new: list[str], line: str, instead: str, newline: str) -> None:
    made = change_text("a.yaml", TAGS.replace("\n", newline), None, {"tags": new})
    assert made == TAGS.replace(line, instead).replace("\n", newline)


def test_an_item_moves_with_its_comments() -> None:
    made = change_text("a.yaml", TAGS, None, {"tags": ["fog", "mist", "sea"]})
    lines = "  # about fog\n  'fog', # grey\n  mist,   # thin\n  sea,   # the first\n"
    assert made == f"tags: [ # all\n{lines}]  # end\nx: 1\n"


MEMBERS = """place: {
  # the name
  "name": sea, # wide
  at: {x: 1, y: 2}, # on the map
  empty: , # nothing
}
"""


@pytest.mark.parametrize(
    ("change", "line", "instead"),
    [
        ({"name": "lake"}, "sea", "lake"),
        ({"at": {"x": 1, "y": 3}}, "y: 2", "y: 3"),
        ({"at": {"y": 2}}, "x: 1, ", ""),
        ({"at": {"x": 1, "y": 2, "z": 3}}, "y: 2", "y: 2, z: 3"),
        ({"deep": [1, {"a": "b"}]}, "# nothing\n", "# nothing\n  deep: [1, {a: b}],\n"),
    ],
)
def test_a_mapping_changes_member_by_member(change: dict[str, Any], line: str, instead: str) -> None:
    value = {"name": "sea", "at": {"x": 1, "y": 2}, "empty": None, **change}
    assert change_text("a.yaml", MEMBERS, None, {"place": value}) == MEMBERS.replace(line, instead)


def test_a_flow_item_of_a_block_list_changes_in_place() -> None:
    text = "rows:\n  - {a: 1, b: 'x'} # one\n  - [\n      1, # first\n    ]\n"
    made = change_text("a.yaml", text, None, {"rows": [{"a": 2, "b": "x"}, [1, 2]]})
    assert made == text.replace("a: 1", "a: 2").replace("# first\n", "# first\n      2,\n")


def test_a_file_that_is_one_flow_mapping_keeps_its_comments() -> None:
    text = "{\n  a: 1, # one\n  b: 2 # two\n}\n"
    assert change_text("a.yaml", text, None, {"a": 3, "c": "x"}) == (
        "{\n  a: 3, # one\n  b: 2, # two\n  c: x\n}\n"
    )


ALIGNED = "tags: [sea, # wide\n       fog, # grey\n       mist] # thin\n"
COMMAS_FIRST = "tags: [ sea # wide\n      , fog # grey\n      , mist # thin\n      ]\n"


@pytest.mark.parametrize(
    ("text", "new", "made"),
    [
        (ALIGNED, ["fog", "mist"], "tags: [fog, # grey\n       mist] # thin\n"),
        (ALIGNED, ["sea", "fog"], "tags: [sea, # wide\n       fog # grey\n] # thin\n"),
        (ALIGNED, ["sea", "fog", "mist", "ice"], ALIGNED.replace("mist]", "mist,\n       ice]")),
        (ALIGNED, ["ice", "sea", "fog", "mist"], ALIGNED.replace("[sea", "[ice,\n       sea")),
        (COMMAS_FIRST, ["fog", "mist"], COMMAS_FIRST.replace("sea # wide\n      , ", "")),
        (COMMAS_FIRST, ["sea", "fog"], COMMAS_FIRST.replace("      , mist # thin\n", "")),
    ],
)
def test_the_style_of_a_list_stays(text: str, new: list[str], made: str) -> None:
    assert change_text("a.yaml", text, None, {"tags": new}) == made


LAYOUTS = {
    "lines": ("[\n", "  # above {0}\n  {1}{2} # behind {0}\n", "\n", "]"),
    "close": ("[ # all\n", "  {1}{2}# behind {0}\n", "\n\n", "  # end\n]"),
    "aligned": ("[", "{1}{2} # behind {0}\n", "       ", "  ]"),
}


@given(
    rearranged(),
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from(["a.yaml", "a.toml"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_what_stays_of_a_list_keeps_its_comments(
    items: tuple[list[str], list[str]], layout: str, path: str, newline: str, closed: bool
) -> None:
    old, new = items
    opening, line, between, closing = LAYOUTS[layout]
    written = [line.format(name, json.dumps(name), "," if closed or name != old[-1] else " ") for name in old]
    sign = " = " if path == "a.toml" else ": "
    before, after = f"# first\nx{sign}1\nlist{sign}", " # last\ny" + sign + "2\n"
    text = before + opening + between.join(written) + closing + after
    made = change_text(path, text.replace("\n", newline), None, {"list": new})
    assert made.count("\r\n") == (made.count("\n") if newline == "\r\n" else 0)
    made = made.replace("\r\n", "\n")
    assert parse(path, made, None)["list"] == new
    assert made.startswith(before)
    assert made.endswith(after)
    for name in [name for name in old if name in new]:
        found = re.search(rf'( *# above {name}\n *)?"{name}"[ ,]*# behind {name}\n', made)
        assert found
        assert bool(found[1]) == (layout == "lines")
    in_place = [name for name in old[:-1] if name in new[:-1]]
    if layout == "lines" and new == [name for name in old if name in new]:
        assert all(written[old.index(name)] in made for name in in_place)


@given(rearranged(), st.sampled_from(["[{}]", "[ {} ]"]), st.sampled_from([", ", ","]))
def test_one_line_stays_one_line(items: tuple[list[str], list[str]], style: str, comma: str) -> None:
    old, new = items
    if len(old) == 1:
        comma = ", "
    write = json.dumps
    text = f"a = 1\nlist = {style.format(comma.join(map(write, old)))} # last\n"
    made = change_text("a.toml", text, None, {"list": new})
    inner = style.format(comma.join(map(write, new))) if new else "[]"
    assert made == f"a = 1\nlist = {inner} # last\n"


words = st.sampled_from(["a", "b c", "", "1", "no", "#", " #x", ": ", ", ", "]", '"', "'", "\\", "é", "a\nb"])
trees = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)
STYLES: list[dict[str, Any]] = [{"indent": 2}, {"indent": "\t"}, {}, {"separators": (",", ":")}]


@given(trees, trees, st.sampled_from(STYLES), st.sampled_from(["\n", "\r\n"]))
def test_json_keeps_its_style(tree: Any, new: Any, style: dict[str, Any], newline: str) -> None:
    """After any change, the text must look as if the program that wrote the file had written the
    new values.
    """

    def written(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, **style).replace("\n", newline)

    made = change_text("a.json", written({"x": 1, "y": tree}), None, {"y": new})
    assert json.loads(made) == {"x": 1, "y": new}
    assert made == written(json.loads(made))


@given(trees, trees, st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_flow_collections_in_yaml_say_what_they_should(
    tree: Any, new: Any, commented: bool, newline: str
) -> None:
    """JSON is also valid YAML in flow style. Comments at the ends of its lines require that the lines are
    kept.
    """
    text = "x: 1\ny: " + json.dumps(tree, indent=4 if commented else None) + "\nz: 2\n"
    if commented:
        text = text.replace(",\n", ", # behind\n").replace("[\n", "[ # above\n")
    made = change_text("a.yaml", text.replace("\n", newline), None, {"y": new})
    assert parse("a.yaml", made, None).keys() == {"x", "y", "z"}
    again = change_text("a.yaml", made, None, {"y": new})
    assert again == made
