"""The function that finds the lines that two texts have in common."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.history.differences import LineMatcher, diff_lines
from tests.waiting import computing_less_than

LINES = st.lists(st.sampled_from(["", "a", "b", "c", "d", "e"]), max_size=60)


@given(LINES, LINES)
def test_blocks_are_of_the_same_lines_and_in_order(before: list[str], after: list[str]) -> None:
    *blocks, last = LineMatcher(before, after).get_matching_blocks()
    assert last == (len(before), len(after), 0)
    place = new = 0
    for start, other, size in blocks:
        assert size
        assert start >= place
        assert other >= new
        assert before[start : start + size] == after[other : other + size]
        place, new = start + size, other + size


@given(LINES, LINES)
def test_a_diff_has_all_that_differs(before: list[str], after: list[str]) -> None:
    lines = diff_lines(before, after)
    gone, added = (sum(line.startswith(sign) for line in lines) for sign in "-+")
    assert len(before) - gone == len(after) - added
    assert bool(lines) == (before != after)


def test_a_diff_is_written_as_difflib_does() -> None:
    before = [f"line {n}" for n in range(40)]
    after = ["new", *before[:10], "other", *before[11:30], *before[32:]]
    assert diff_lines(before, after) == [*difflib.unified_diff(before, after, lineterm="")][2:]
    assert diff_lines([], ["a"]) == ["@@ -0,0 +1 @@", "+a"]


def test_frequent_lines_keep_their_positions() -> None:
    before = ["", *(text for n in range(100) for text in (f"{n}", "")), "{", "}"]
    after = [text if text != "50" else "fifty" for text in before]
    assert LineMatcher(before, after).get_matching_blocks()[:2] == [(0, 0, 101), (102, 102, 101)]


@pytest.mark.parametrize("common", ["", "%d"])
def test_long_texts_are_compared_quickly(common: str) -> None:
    before = [f"old {n}" if n % 2 else common.replace("%d", str(n % 97)) for n in range(20_000)]
    after = [f"new {n}" if n % 2 else common.replace("%d", str(n % 97)) for n in range(20_000)]
    with computing_less_than(5):
        LineMatcher(before, after).get_matching_blocks()
        diff_lines(before, ["", *after])
