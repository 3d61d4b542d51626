"""Values in file names (`options.fileName`)."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from server.documents.file_keys import FIELD, read_file_name
from server.formats.tree import Plain
from tests.growth import is_linear

DATES = frozenset({"day", "until"})
FIELDS = ["{a}", "{b}", "{c}", "{day}", "{until}"]
LITERALS = ["", "", "-", "--", "_", "a", "2024", "-1"]


@st.composite
def patterns(draw: st.DrawFn) -> str:
    fields = draw(st.lists(st.sampled_from(FIELDS), min_size=1, unique=True))
    return "".join(draw(st.sampled_from(LITERALS)) + field for field in fields) + draw(
        st.sampled_from(LITERALS)
    )


NAMES = st.lists(st.sampled_from(["a", "-", "_", "--", "2024-05-06", "2024", "-1", "\n"]), max_size=9).map(
    "".join
)


@settings(max_examples=500)
@given(patterns(), NAMES)
def test_each_value_is_as_short_as_possible(pattern: str, name: str) -> None:
    texts = [re.escape(text) for text in FIELD.split(pattern)]
    texts[1::2] = [f"(?P<{n}>{r'[0-9]{4}-[0-9]{2}-[0-9]{2}' if n in DATES else '.+?'})" for n in texts[1::2]]
    found = re.fullmatch("".join(texts), name)
    expected = {key: Plain(text) for key, text in found.groupdict().items()} if found else {}
    assert read_file_name(pattern, frozenset(FIELD.findall(pattern)) & DATES, name) == expected


def test_many_values_take_linear_time() -> None:
    pattern = "{a}-{b}-{c}-{day}"
    assert is_linear(lambda size: read_file_name(pattern, DATES - {"until"}, "a-" * size + "x"), 25)
    assert read_file_name(pattern, DATES - {"until"}, "a-b-c-d-2024-05-06")["c"] == "c-d"
    names = [f"a{i}" for i in range(60)]
    assert (
        list(read_file_name("-".join(f"{{{name}}}" for name in names), frozenset(), "-".join(names))) == names
    )
