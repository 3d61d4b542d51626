"""What a mistyped word stands for."""

import pytest

from server.spelling import certain_suggestion


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("Nell_Trevanion", ["nell-trevanion", "ida"], "nell-trevanion"),
        ("été 2024", ["ete-2024"], "ete-2024"),
        ("nell-trevanoin", ["nell-trevanion", "nell"], "nell-trevanion"),
        ("nell-trevanio", ["nell-trevanion"], None),  # Perhaps it is somebody else.
        ("post-12", ["post-21"], None),
        ("post-1", ["post-2"], None),
        ("A_b", ["a-b", "a.b"], None),
        ("ab", [], None),
    ],
)
def test_only_what_is_certain_is_taken(word: str, known: list[str], expected: str | None) -> None:
    assert certain_suggestion(word, known) == expected
