"""The processing of texts before they are indexed: words, markup and search terms."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server.search.highlight import WordFinder, fragment
from server.search.question import Clause, apply_corrections, read_question
from server.search.texts import block_texts, paragraphs
from server.search.words import (
    MAX_WORD_CHARS,
    NO_STEMMER,
    fold,
    language_of,
    spans,
    split,
    terms,
    words_starting_with,
)

FIELDS = {"title", "body"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("L'Été à Saint-Malo", ["l", "ete", "a", "saint", "malo"]),
        ("Straße, œuvre, Łódź", ["strasse", "oeuvre", "lodz"]),
        ("v1.2_beta", ["v1", "2", "beta"]),
        ("検索 engine", ["検", "索", "engine"]),
        ("Йод", ["иод"]),
        ("", []),
    ],
)
def test_words_are_folded(text: str, words: list[str]) -> None:
    assert split(text) == words


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ["tide", "tides", "Tides"]),
        ("fr", ["publiée", "publiee"]),
        ("fr", ["publiée", "publié"]),
        ("de", ["Häuser", "Hauser"]),
        ("es", ["canción", "canciones"]),
    ],
)
def test_forms_of_a_word_have_a_term_in_common(language: str, words: list[str]) -> None:
    found = [set(terms(word, language)) for word in words]
    assert set.intersection(*found)


@pytest.mark.parametrize(
    ("locale", "language"),
    [("en", "en"), ("pt-BR", "pt"), ("ja", NO_STEMMER), ("zh-Hans", NO_STEMMER), ("nb_NO", "nb")],
)
def test_a_locale_has_a_language(locale: str, language: str) -> None:
    assert language_of(locale) == language


@given(st.text())
def test_any_text_has_words_with_terms(text: str) -> None:
    for found in spans(text):
        assert fold(found[0])
        for language in ("en", "fr", NO_STEMMER):
            assert all(terms(found[0], language))


@given(st.text(), st.sampled_from("aeé検"))
@example("検a a検検", "a")
@example("検a a検検", "検")
def test_words_that_begin_with_a_letter_are_all_found(text: str, letter: str) -> None:
    start = fold(letter)
    text = f"Été {text} Apple 検索 écol"
    expected = [found.span() for found in spans(text) if fold(found[0])[:1] == start]
    assert [found.span() for found in words_starting_with([start]).finditer(text)] == expected


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# Head #\n\n**bold** _it_ ~~no~~ `code` snake_case", ["Head", "bold it no code snake_case"]),
        ("A [link](http://x.org/a(b) 'T') and ![alt text](p.png)", ["A link and alt text"]),
        ("[![badge](b.svg)](http://x.org) [a][1] end\n\n[1]: http://x.org", ["badge a end"]),
        ("- one\n- two\n\n1. three\n\n> said", ["one", "two", "three", "said"]),
        ("| a | b |\n|---|:-:|\n| c | d |", ["a b", "c d"]),
        ("```js\nlet x = 1;\n```", ["let x = 1;"]),
        ("import X from 'y';\n\nHi {/* no */}<Box a='b'>in</Box> <!-- no\nno -->there", ["Hi in there"]),
        ("<script>no()</script>a &amp; b \\*c\\*", ["a & b *c*"]),
        ("one\nparagraph\n\n---\n\nanother", ["one paragraph", "another"]),
        ("an <!-- that never ends", ["an <!-- that never ends"]),
    ],
)
def test_markup_is_stripped(markdown: str, text: list[str]) -> None:
    assert paragraphs(markdown) == text


@given(st.text(alphabet="ab <>[]()*_`#|-\n\\!{}/:", max_size=300))
def test_no_markup_loses_a_word_that_is_not_in_a_mark(text: str) -> None:
    assert all("\n" not in paragraph and paragraph.strip() == paragraph for paragraph in paragraphs(text))


@pytest.mark.parametrize("mark", ["[", "<!--", "<a", "*", " ", "\n", "|-", "`", "![a](", "<script>", "{/*"])
def test_markup_without_end_is_read_to_the_end(mark: str) -> None:
    assert "word" in split(" ".join(paragraphs(mark * 100_000 + "\n\nword")))


def test_blocks_have_texts() -> None:
    blocks = [
        {"type": "paragraph", "children": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]},
        {
            "type": "list",
            "children": [
                {"type": "list-item", "children": [{"type": "text", "text": "one"}]},
                {"type": "list-item", "children": [{"type": "text", "text": "two"}]},
            ],
        },
        {"type": "image", "image": {"alternativeText": "a boat"}, "children": [{"type": "text", "text": ""}]},
        {"type": "link", "url": "http://x", "children": [{"text": "x"}]},
        "broken",
    ]
    assert list(block_texts(blocks)) == ["a b", "one two", "a boat", "x"]


@pytest.mark.parametrize(
    ("typed", "wanted", "unwanted"),
    [
        ("tide tables ", [Clause(("tide",)), Clause(("tables",))], []),
        ("tide tab", [Clause(("tide",)), Clause(("tab",), is_prefix=True)], []),
        ('"slack water"', [Clause(("slack", "water"))], []),
        ('"slack wat', [Clause(("slack", "wat"), is_prefix=True)], []),
        ("title:tide -ferry ", [Clause(("tide",), "title")], [Clause(("ferry",))]),
        ('-body:"of the" x ', [Clause(("x",))], [Clause(("of", "the"), "body")]),
        ("light* house ", [Clause(("light",), is_prefix=True), Clause(("house",))], []),
        ("keeper's ", [Clause(("keeper", "s"))], []),
        ("note: what ", [Clause(("note",)), Clause(("what",))], []),
        ("nope:what ", [Clause(("nope", "what"))], []),
        ('- -- " : * ', [], []),
        ("a a a ", [Clause(("a",))], []),
    ],
)
def test_what_is_typed_becomes_a_question(typed: str, wanted: list[Clause], unwanted: list[Clause]) -> None:
    question = read_question(typed, FIELDS)
    assert list(question.required) == wanted
    assert list(question.excluded) == unwanted


def test_nothing_is_unfinished_where_somebody_has_ended() -> None:
    assert read_question("tide tab", FIELDS, is_incomplete=False).required[1] == Clause(("tab",))


@given(st.text())
def test_whatever_is_typed_is_a_question(typed: str) -> None:
    question = read_question(typed, FIELDS)
    words = [word for clause in (*question.required, *question.excluded) for word in clause.words]
    assert len(words) <= 32
    assert apply_corrections(question, {}) == typed


def test_a_correction_keeps_what_was_typed() -> None:
    question = read_question('title:Harbor "slak water" -slak', FIELDS)
    assert apply_corrections(question, {"slak": "slack"}) == 'title:Harbor "slack water" -slack'


def test_words_are_marked_in_a_part_of_a_long_text() -> None:
    text = "word " * 100 + "the Tides turn " + "word " * 100
    finder = WordFinder(read_question("tide ", FIELDS), "en")
    pieces = fragment(text, finder.spans(text))
    assert [piece for piece, marked in pieces if marked] == ["Tides"]
    joined = "".join(piece for piece, _ in pieces)
    assert joined.startswith("… word")
    assert joined.endswith("word …")
    assert len(joined) < 250


def test_an_unfinished_word_is_marked_where_it_begins_one() -> None:
    finder = WordFinder(read_question("ti", FIELDS), "en")
    assert [finder.matches(word) for word in ("Tides", "tímes", "at")] == [True, True, False]


def test_a_word_of_any_length_is_known_by_its_beginning() -> None:
    assert terms("x" * 1_000_000, "en") == terms("x" * MAX_WORD_CHARS, "en")
    assert len(fold("\ufdfa" * MAX_WORD_CHARS)) == MAX_WORD_CHARS  # one character that folds to eighteen
