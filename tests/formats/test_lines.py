"""Tests of the positions at which lines begin and end."""

import pytest

from server.formats.text_positions import line_end, line_start, newline_of, next_line


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_index_of_a_line_finds_its_ends(newline: str) -> None:
    text = newline.join(["first", "", "third"])
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:i])) for i in range(len(lines))]
    for start, line in zip(starts, lines, strict=True):
        for at in range(start, start + len(line.rstrip("\r\n"))):
            assert line_start(text, at) == start
            assert text[start : line_end(text, at)] == line.rstrip("\r\n")
            assert next_line(text, at) == start + len(line)


@pytest.mark.parametrize(
    ("text", "end"), [("a\nb\r\n", "\n"), ("a\r\nb\n", "\r\n"), ("a", "\n"), ("", "\n"), ("\n\r\n", "\n")]
)
def test_the_first_line_tells_how_lines_end(text: str, end: str) -> None:
    assert newline_of(text) == end
