"""Positions: what an editor counts in UTF-16 and Bifolio in characters is the same place of a text."""

from hypothesis import given
from hypothesis import strategies as st

from server.lsp.edits import text_edits
from server.lsp.positions import Text, apply_changes, path_from_uri
from tests.lsp.edits import apply_edits

TEXTS = st.text("ab\n\r é🌊", max_size=30)


@given(TEXTS, st.integers(0, 30))
def test_positions_lead_back(value: str, index: int) -> None:
    text = Text(value)
    index = min(index, len(value))
    if value[index - 1 : index + 1] != "\r\n" or not index:
        assert text.index_of_position(text.position(index)) == index


@given(TEXTS, st.integers(-5, 40), st.integers(-5, 40))
def test_any_position_is_in_the_text(value: str, line: int, character: int) -> None:
    assert 0 <= Text(value).index_of_position({"line": line, "character": character}) <= len(value)


@given(TEXTS, st.integers(1, 9), st.integers(1, 9))
def test_lines_and_columns_are_those_of_the_parsers(value: str, line: int, column: int) -> None:
    lines = value.split("\n")
    if line <= len(lines):
        expected = sum(len(one) + 1 for one in lines[: line - 1]) + min(column - 1, len(lines[line - 1]))
        assert Text(value).index_of_line(line, column) == expected


@given(TEXTS, TEXTS)
def test_edits_change_one_text_into_another(old: str, new: str) -> None:
    assert apply_edits(old, text_edits(old, new)) == new


@given(TEXTS, TEXTS, st.integers(0, 30), st.integers(0, 30))
def test_changes_are_applied_as_the_editor_makes_them(value: str, new: str, a: int, b: int) -> None:
    text = Text(value)
    start, end = (text.index_of_position(text.position(min(i, len(value)))) for i in sorted((a, b)))
    change = {"range": text.range((start, end)), "text": new}
    assert apply_changes(value, [change]) == value[:start] + new + value[end:]


def test_only_local_files_have_a_path() -> None:
    assert str(path_from_uri("file:///a%20b/c.md")) == "/a b/c.md"
    for uri in (
        "untitled:Untitled-1",
        "git:/a",
        "file://host/a",
        "file:a",
        "",
        None,
        3,
        "file:///%00",
        "http://[a",
    ):
        assert path_from_uri(uri) is None
