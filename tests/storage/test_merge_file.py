"""Merging of texts, line by line."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.storage.git import tree as merge_file
from server.storage.git.tree import merge_text


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"),
        ("a\nb\nc", "A\nb\nc", "a\nb\nC", "A\nb\nC"),  # no newline at the end
        ("a\nb\nc", "A\nb\nc\n", "a\nb\nC", "A\nb\nC\n"),  # one side added the newline
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC", "A\nb\nC"),  # one side removed the newline
        ("a\n\nb", "a\n\nb\n\nc", "x\n\na\n\nb", "x\n\na\n\nb\n\nc"),
        ("a\nb\nc\n", "A\nb\nc\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nC\r\n"),  # saved on Windows
        ("a\r\nb\r\nc", "A\r\nb\r\nc", "a\r\nb\r\nC", "A\r\nb\r\nC"),
        ("a\r\nb\r\nc", "A\nb\nc", "a\r\nb\r\nC", "A\nb\nC"),
        ("a\nb", "a\r\nb", "a\nx", "a\r\nx"),
        ("a\nb\nc\n", "x\nb\nc\n", "x\nb\nC\n", "x\nb\nC\n"),  # the same change on both sides
        ("é\n\nü", "É\n\nü", "é\n\nÜ", "É\n\nÜ"),
        ("a\n", "b\n", "c\n", None),
        ("a\nb\n", "A\nb\n", "a\nB\n", None),  # adjacent lines
        ("", "a", "b", None),
        ("a\nb\nc", "", "a\nb\nC", None),
        ("a\nb\nc", "\ud800\nb\nc", "a\nb\nC", None),  # a text that can't be saved in a file
        ("a\nb\nc", "\0\nb\nc", "a\nb\nC", None),
    ],
)
def test_a_text_has_the_lines_that_either_changed(
    base: str, ours: str, theirs: str, merged: str | None
) -> None:
    assert merge_text(base, ours, theirs) == merged


def test_without_git_what_both_have_changed_is_not_merged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    assert merge_text("a\nb\nc", "A\nb\nc", "a\nb\nC") is None
    assert merge_text("a\nb\nc", "A\nb\nc", "a\nb\nc") == "A\nb\nc"


LINES = st.lists(st.sampled_from(["", "x", "y"]), max_size=3)


@given(LINES, LINES, st.sampled_from(["", "\n", "\r\n"]))
def test_changes_that_stand_apart_are_both_there(ours: list[str], theirs: list[str], end: str) -> None:
    def text(first: list[str], last: list[str]) -> str:
        return "\n".join([*first, "one", "two", "three", *last]) + end

    before, after = ["a", "b"], ["c", "d"]
    merged = merge_text(text(before, after), text(ours, after), text(before, theirs))
    assert merged is not None
    assert merged.split() == text(ours, theirs).split()


def test_lines_that_take_too_long_to_compare_are_not_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = "a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n"
    assert merge_text(*texts) == "A\nb\nC\n"
    monkeypatch.setattr(merge_file, "MERGE_TIMEOUT_S", 0.00001)
    assert merge_text(*texts) is None
