"""A vocabulary leaves out no text that contains another, and none of the words of one that does."""

from hypothesis import given
from hypothesis import strategies as st

from server.index.text_search import Texts
from server.index.vocabulary import Vocabulary, wanted

SIGNS = "ab -\n.é_1ß漢"
texts = st.lists(st.text(SIGNS, max_size=12), min_size=1, max_size=8)


def joined(listed: list[str]) -> tuple[str, list[int]]:
    starts, text = [], ""
    for one in listed:
        starts.append(len(text))
        text += "\0" + one
    return text, starts


@given(texts, st.text(SIGNS, min_size=1, max_size=5))
def test_it_finds_every_text_that_contains_another(listed: list[str], text: str) -> None:
    containing = [i for i, one in enumerate(listed) if text in one]
    sought = wanted(text)
    found = Vocabulary(*joined(listed)).texts_with(sought)
    assert set(containing) <= set(found)
    if sought.exact:
        assert containing == found


@given(texts, st.text(SIGNS, min_size=1, max_size=5))
def test_texts_are_found_with_a_vocabulary_as_without(listed: list[str], text: str) -> None:
    kept = Texts((), ())
    kept.text, kept.starts = joined(listed)
    plain = kept.with_text(wanted(text))
    kept.vocabulary = Vocabulary(kept.text, kept.starts)
    assert kept.with_text(wanted(text)) == plain == [i for i, one in enumerate(listed) if text in one]
