"""The quick reading of single keys, which must find the same values as reading the whole file."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.formats.tree import SyntaxProblem
from server.formats.yaml.reader import read_yaml
from server.history.former_addresses import key_lines
from server.storage.read import parse
from tests.examples import examples
from tests.growth import is_linear

NAMES = ("slug", "draft")
PIECES = st.sampled_from(
    [
        "slug: a\n", 'slug: "b\\n"\n', "slug: a # c\n", "slug: 'it''s'\n", "slug:\n", "slug: a\n  b\n",
        "slug: |\n  x\n", "slug: a\n\n  b\n", "slug: [a]\n", "slug: &x a\n", "other: *x\n",
        "draft: true\n", "draft: false\r\n", "slug : q\n", "x:\n  slug: in\n", '"slug": quoted\n',
        "? slug\n: c\n", "{slug: flow}\n", "---\n", "...\n", "\n", "# slug: no\n", "y: |\n slug: text\n",
        'z: "\n\n  slug: text"\n', "text slug: a\n", "slug: a\n- b\n", "slug: a: b\n", "slug: 'a\n",
        "slug: -\n", "slug: é\n", "\tslug: a\n", "x: [\nslug: a\n]\n", "x: 'a\nslug: b\n'\n", "x: a\n",
        "slug: ~\n", "x: [\rslug: a\r]\n", "x: [a, [b] # c]\n", "x:\n- [a\n]\n", "x: [ # ]\nslug: c\n]\n",
        "x: [[a]\n,\nslug: b\n]\n", 'x: [ "]\nslug: c\n"]\n', "x: [ ']\nslug: c\n']\n", "x: ['a#', {b: c}]\n",
        "x: !t [\nslug: a\n]\n",
    ]
)  # fmt: skip


@settings(max_examples=examples(300))
@given(st.lists(PIECES, max_size=6).map("".join), st.sampled_from(["a.md", "a.yaml"]))
def test_lines_of_keys_have_the_same_values_as_the_file(text: str, path: str) -> None:
    text = f"---\n{text}---\nslug: body\n" if path == "a.md" else text
    lines = key_lines(path, text.encode(), NAMES)
    try:
        tree = parse(path, text, None)
    except SyntaxProblem:
        return
    if lines is None:
        return
    quick = read_yaml(lines) or {}
    assert {name: quick.get(name) for name in NAMES} == {name: tree.get(name) for name in NAMES}


@pytest.mark.parametrize("piece", ["- [", "- [ ]", "- [ #", "- [ # ] ", ': "', ",'", ",''", "- [\r", "] # "])
def test_the_quick_reading_takes_linear_time(piece: str) -> None:
    assert is_linear(lambda size: key_lines("a.yaml", f"x: {piece * size} #\nslug: a\n".encode(), NAMES), 500)
