"""Suggestions for mistyped words."""

import tracemalloc
from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.schema.spelling import (
    MIN_SIMILARITY,
    SpellingCorrector,
    Suggestions,
    _differs_a_little,
    suggestion,
    unambiguous_suggestion,
)
from tests.waiting import computing_less_than


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("Nell_Trevanion", ["nell-trevanion", "ida"], "nell-trevanion"),
        ("été 2024", ["ete-2024"], "ete-2024"),
        ("nell-trevanoin", ["nell-trevanion", "nell"], "nell-trevanion"),
        ("nell-trevanio", ["nell-trevanion"], None),  # It may be a different person's name.
        ("post-12", ["post-21"], None),
        ("post-1", ["post-2"], None),
        ("A_b", ["a-b", "a.b"], None),
        ("ab", [], None),
    ],
)
def test_only_what_is_certain_is_taken(word: str, known: list[str], expected: str | None) -> None:
    assert unambiguous_suggestion(word, known) == expected


def test_what_is_certain_is_found_among_many_words_for_many_words() -> None:
    known = SpellingCorrector(f"article-{number}-about-the-tides" for number in range(10_000))
    with computing_less_than(10):
        meant = [known.correct(f"article_{number}-about-the-Tides") for number in range(5000)]
        unknown = [known.correct(f"article-{number}-of-the-tides") for number in range(5000)]
    assert meant[:2] == ["article-0-about-the-tides", "article-1-about-the-tides"]
    assert not any(unknown)
    assert known.correct("article-12-abuot-the-tides") == "article-12-about-the-tides"


def test_a_word_is_suggested_that_is_most_like_the_mistyped_one() -> None:
    assert suggestion("titel", ["tide", "title", "tile", "fog"]) == 'did you mean "title"?'
    assert suggestion("titel", ["fog"]) == ""


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("api::author.author", "api::home.home", False),
        ("api::auhtor.auhtor", "api::author.author", True),
        ("2018-01-02-storms", "2018-01-02-harbour", False),
        ("2018-01-02-strom", "2018-01-02-storm", True),
        ("content/pages/fog.md", "content/pages/sea.md", False),
        ("nell-trevanio", "nell-trevanion", True),
        ("hello-world", "hello-world-2", True),
    ],
)
def test_parts_that_all_words_have_do_not_make_two_of_them_alike(
    word: str, known: str, expected: bool
) -> None:
    assert bool(suggestion(word, [known])) == expected


def test_thousands_of_mistyped_words_take_no_longer_than_some() -> None:
    known = [f"article-{number}-about-the-tides-at-{number % 7}" for number in range(5000)]
    suggestions = Suggestions()
    with computing_less_than(10):
        made = [suggestions.suggest(f"article-{number}-about-the-tide", known) for number in range(2000)]
    assert made[0].startswith('did you mean "article-0-about')
    assert made[-1] == ""


def test_no_single_word_is_compared_for_ever() -> None:
    known = ["ab" * 1000 + str(number) for number in range(2000)]
    with computing_less_than(10):
        assert Suggestions().suggest("ba" * 1000, known) == ""


def test_a_word_much_longer_than_the_known_ones_is_not_examined() -> None:
    word = "low" * 100_000
    tracemalloc.start()
    try:
        assert suggestion(word, ["low", "mid", "high"]) == ""
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


WORDS = st.text("abc-.", min_size=1, max_size=9)


@given(WORDS, st.lists(WORDS, max_size=20))
def test_the_limit_of_a_similarity_rules_out_no_suggestion(word: str, known: list[str]) -> None:
    ratios = {other: SequenceMatcher(None, other, word).ratio() for other in known}
    near = {ratio for other, ratio in ratios.items() if _differs_a_little(word, other)}
    found = Suggestions().nearest(word, known)
    assert (ratios[found] if found else 0.0) == max((r for r in near if r >= MIN_SIMILARITY), default=0.0)
