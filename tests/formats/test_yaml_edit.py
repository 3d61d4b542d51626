"""Tests of changes to lists and mappings in YAML: items that stay or move keep their lines and comments."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from server.storage.document_text import change_text

ROWS = """rows:
  # above 1
  - a: 1 # one
    b: x # ex
  - a: 2 # two
  # above 3
  - a: 3 # three
"""
ONE = "  # above 1\n  - a: 1 # one\n    b: x # ex\n"
TWO = "  - a: 2 # two\n"
THREE = "  # above 3\n  - a: 3 # three\n"
NEW = "  - a: 9\n"


def row(n: int) -> dict[str, Any]:
    return {"a": n, "b": "x"} if n == 1 else {"a": n}


@pytest.mark.parametrize(
    ("new", "lines"),
    [
        ([row(2), row(3), row(9)], "  # above 1\n" + TWO + THREE + NEW),
        ([row(9), row(1), row(2)], NEW + ONE + TWO + "  # above 3\n"),
        ([row(3), row(2), row(1)], THREE + TWO + ONE),
        ([row(2), row(1), row(3)], TWO + ONE + THREE),
        ([row(1), row(3), row(9), row(2)], ONE + THREE + NEW + TWO),
        ([{"a": 1, "b": "z"}, row(3)], ONE.replace("x # ex", "z # ex") + THREE),
        ([row(1), row(8), row(3)], ONE + TWO.replace("2 #", "8 #") + THREE),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["# last\n", ""])
def test_a_comment_moves_with_its_item(new: list[Any], lines: str, newline: str, end: str) -> None:
    text = (ROWS + end).replace("\n", newline)
    assert change_text("a.yaml", text, None, {"rows": new}) == f"rows:\n{lines}{end}".replace("\n", newline)
    if not end:
        made = change_text("a.yaml", text.removesuffix(newline), None, {"rows": new})
        assert made == f"rows:\n{lines}".replace("\n", newline).removesuffix(newline)


def test_a_changed_text_keeps_its_comment() -> None:
    text = "tags:\n- fog # f\n- 'sea' # s\n- # nothing\n- |\n  long\n- a-b # - dash\n"
    made = change_text("a.yaml", text, None, {"tags": ["mist", "salt", None, "long\n", "a-c"]})
    assert made == text.replace("fog", "mist").replace("sea", "salt").replace("a-b", "a-c")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_can_be_added_to_a_file_without_a_last_newline(newline: str) -> None:
    made = change_text("a.yaml", f"x: 0{newline}a: 1 # one", None, {"b": "two\nlines\n"})
    assert made == "x: 0\na: 1 # one\nb: |\n  two\n  lines\n".replace("\n", newline)


names = st.lists(st.text("abcdefgh", min_size=1, max_size=2), unique=True, min_size=1, max_size=6)


@st.composite
def rearranged(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Generate a list, and a second list that lacks some items, has a different order, and contains new
    items.
    """
    old = draw(names)
    new = draw(st.permutations([item for item in old if draw(st.booleans())]))
    for i in range(draw(st.integers(0, 3))):
        new.insert(draw(st.integers(0, len(new))), f"new{i}")
    return old, new


BLOCKS = {
    "texts": "  # above {0}\n  - K{0} # behind {0}\n",
    "mappings": "\n  # above {0}\n  - # beside {0}\n    name: K{0} # behind {0}\n    in: [{0}] # i\n",
    "kept newlines": "  - |+ # beside {0}\n    K{0}\n\n    # text\n\n\n",
    "folded": '  - "K{0}\n\n    # text"  # behind {0}\n',
}


@given(rearranged(), st.sampled_from(sorted(BLOCKS)), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_stays_of_a_block_list_keeps_its_lines(
    items: tuple[list[str], list[str]], kind: str, newline: str, closed: bool
) -> None:
    old, new = items
    block = BLOCKS[kind]
    values = {name: yaml.safe_load(block.format(name))[0] for name in old}
    wanted = [values.get(name, name) for name in new]
    text = "# first\nx: 1 # one\nlist: # all\n" + "".join(map(block.format, old))
    end = "# last\ny: 2\n" if closed or kind == "kept newlines" else ""
    text = (text + end).replace("\n", newline) if end else text.replace("\n", newline).removesuffix(newline)
    made = change_text("a.yaml", text, None, {"list": wanted})
    assert made.count("\r\n") == (made.count("\n") if newline == "\r\n" else 0)
    made = made.replace("\r\n", "\n")
    assert yaml.safe_load(made)["list"] == wanted
    assert made.startswith("# first\nx: 1 # one\nlist:")
    assert made.endswith(end)
    assert end or kind == "mappings" or not made.endswith("\n")
    lines = block.lstrip("\n")  # a blank line stays in its place and does not move with the item
    assert not new or all(lines.format(name) in made + "\n" for name in old if name in new)
