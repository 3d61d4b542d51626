"""Tests of the line and column of a character."""

from hypothesis import given
from hypothesis import strategies as st

from server.formats.text_positions import position_at


@given(text=st.text(alphabet="aä\n\r", max_size=20), data=st.data())
def test_a_position_has_one_place(text: str, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(text)))
    position = position_at(text, index)
    rows = text.split("\n")
    assert sum(len(row) + 1 for row in rows[: position.line - 1]) + position.column - 1 == index
