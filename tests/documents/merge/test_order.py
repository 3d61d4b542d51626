"""Tests of merging lists: items that one side added are in the result, and items that one side removed are
not.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.documents.three_way_merge import merge_order

ORDERS = st.lists(st.integers(0, 12), unique=True, max_size=9)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("abc", "abc", "abc", "abc"),
        ("abc", "abcx", "abc", "abcx"),
        ("abc", "abc", "xabc", "xabc"),
        ("abc", "abcx", "abcy", "abcyx"),  # both added at the end: theirs comes first
        ("abc", "xabc", "yabc", "yxabc"),
        ("abc", "axbc", "abyc", "axbyc"),
        ("abc", "ac", "abcx", "acx"),
        ("abc", "bxc", "aybc", "ybxc"),  # the item before it was removed
        ("abc", "cab", "abcx", "cabx"),  # one side moved the item after which the other side added
        ("abc", "abcx", "cab", "cabx"),
        ("abc", "cba", "cba", "cba"),
        ("abc", "cba", "ac", "ca"),
        ("abc", "abxc", "abxyc", "abxyc"),  # both added x
        ("abc", "", "abcx", "x"),
        ("abc", "bca", "cab", None),
        ("ab", "ba", "abx", "bax"),
        ("", "xy", "yx", "yx"),
    ],
)
def test_an_order_has_the_changes_of_both(base: str, ours: str, theirs: str, merged: str | None) -> None:
    assert merge_order(base, ours, theirs) == (None if merged is None else list(merged))


@given(ORDERS, ORDERS, ORDERS)
def test_nothing_that_was_added_is_lost_and_nothing_removed_is_back(
    base: list[int], ours: list[int], theirs: list[int]
) -> None:
    merged = merge_order(base, ours, theirs)
    if merged is None:
        assert merge_order(base, theirs, ours) is None
        return
    kept = set(base) & set(ours) & set(theirs)
    assert len(merged) == len(set(merged))
    assert set(merged) == kept | (set(ours) - set(base)) | (set(theirs) - set(base))
    stayed = [key for key in merged if key in kept]
    assert stayed in ([key for key in side if key in kept] for side in (ours, theirs))


@given(ORDERS, ORDERS)
def test_a_side_that_changed_nothing_says_nothing(base: list[int], changed: list[int]) -> None:
    assert merge_order(base, changed, base) == changed
    assert merge_order(base, base, changed) == changed
    assert merge_order(base, changed, changed) == changed
