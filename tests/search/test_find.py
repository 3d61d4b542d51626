"""The cost of a search, and the results of a search for a phrase."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from server.config.model import with_values
from server.documents.document import PUBLISHED
from server.errors import BusyError, LimitError
from server.index.budget import Budget
from server.search.find import Results, Scope, Search
from server.search.question import read_question
from server.search.status import read_status
from server.site.site import Site
from tests.search.test_sync import fed
from tests.sites import STRING, collection, documents, load, write
from tests.waiting import computing_less_than, until

SCOPE = Scope({"api::note.note": PUBLISHED})
MANY = 30_000  # how often a text repeats the same word
FILES = {
    "site.yaml": "name: Search\n",
    **collection("note", {"title": STRING, "body": {"type": "richtext"}}),
    **documents(
        "notes",
        one={"title": "low tide at noon", "body": "cd " * MANY},
        two={"title": "tide, low and high", "body": "at noon, low tides"},
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = load(tmp_path_factory.mktemp("site"), FILES)
    with fed(site):
        yield site


def ask(search: Search, site: Site, q: str, budget: Budget | None = None) -> Results:
    question = read_question(q, {"title", "body"}, is_incomplete=False)
    found = search.find(site.state, question, SCOPE, 0, 10, budget)
    assert found.indexed
    return found


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ('"low tide"', {"one", "two"}),
        ('"tide low"', {"two"}),
        ('"low tide at noon"', {"one"}),
        ('title:"low tide"', {"one"}),
        ('body:"low tide"', {"two"}),
        ('"at noon low"', {"two"}),
        ('"noon low"', {"two"}),
        ('"low low"', set()),
        ('"cd cd cd"', {"one"}),
        ("body:cd", {"one"}),
        ("title:cd", set()),
    ],
)
def test_a_phrase_is_its_words_one_after_the_other(site: Site, q: str, expected: set[str]) -> None:
    found = ask(Search(site.root), site, q)
    assert {document.document_id for _, document in found.documents} == expected


@pytest.mark.parametrize("words", [2, 12, 32])
def test_a_phrase_of_one_word_in_a_text_of_that_word_costs_little(site: Site, words: int) -> None:
    search = Search(site.root)
    ask(search, site, "tide")
    with computing_less_than(1):
        assert len(ask(search, site, f'"{" ".join(["cd"] * words)}"').documents) == 1


def test_a_search_of_the_index_ends_where_it_takes_too_much(site: Site) -> None:
    settings = with_values(site.state.settings, {"api.limits.steps": 3 * MANY >> 4})
    limited = replace(site.state, settings=settings)
    question = read_question('"cd cd cd cd"', {"title", "body"}, is_incomplete=False)
    search = Search(site.root)
    with pytest.raises(LimitError):
        search.find(limited, question, SCOPE, 0, 10, Budget(settings))
    assert search.find(limited, question, SCOPE, 0, 10).indexed  # without a budget, as in a command
    assert len(ask(search, site, '"low tide"').documents) == 2


def test_nobody_waits_without_end_for_other_searches(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.search.find.TURN_TIMEOUT_S", 0.01)
    search = Search(site.root)
    with search._turns, pytest.raises(BusyError):
        ask(search, site, "tide")
    assert len(ask(search, site, "tide").documents) == 2


# Notes with only two different texts. Their scores are sums of several words' scores.
EQUAL = {
    f"n{i * 37 % 100:02}": {"title": ("Low tide, lamp, fog", "Fog, fog, lamp, low tide")[i % 2]}
    for i in range(100)
}
EQUAL_FILES = {**FILES, **documents("notes", **EQUAL)}
ASKED = "low tide lamp fog"


def pages(site: Site, size: int, q: str = ASKED) -> list[tuple[float, str]]:
    """Return the results on all pages of a search, as a process that has just started finds them."""
    search, question = Search(site.root), read_question(q, {"title", "body"}, is_incomplete=False)
    found: list[tuple[float, str]] = []
    while page := search.find(site.state, question, SCOPE, len(found), size):
        assert page.indexed
        if not page.documents:
            return found
        found += [(score, document.document_id) for score, document in page.documents]
    raise AssertionError


def edited(site: Site, texts: Mapping[str, Mapping[str, str]]) -> None:
    """Change notes, and wait until the index contains them."""
    before = read_status(site.root / ".bifolio" / "search")
    write(site.root, documents("notes", **texts))
    site.refresh()
    until(
        lambda: (now := read_status(site.root / ".bifolio" / "search")) and now != before and not now.pending
    )


def test_results_with_equal_scores_keep_their_order(tmp_path: Path) -> None:
    site = load(tmp_path, EQUAL_FILES)
    with fed(site):
        built = pages(site, 100)
        assert len({score for score, _ in built}) < 5
        assert sorted(name for _, name in built) == sorted(EQUAL)
        assert built == sorted(built, key=lambda hit: (-hit[0], hit[1]))
        for size in (1, 7, 25, 50):
            assert pages(site, size) == built, size
        # Each edit writes new segments, in which whoosh numbers the notes differently.
        for chosen in (slice(0, 30, 3), slice(50, 52), slice(0, None, 7)):
            names = list(EQUAL)[chosen]
            edited(site, {name: {"title": "Something else"} for name in names})
            assert len(pages(site, 25)) == len(built) - len(names)
            edited(site, {name: EQUAL[name] for name in names})
            assert pages(site, 7) == built
    shutil.rmtree(tmp_path / ".bifolio" / "search")
    with fed(load(tmp_path, {})):
        assert pages(site, 25) == built


def test_hidden_documents_do_not_change_the_order_of_equal_scores(tmp_path: Path) -> None:
    site = load(tmp_path / "one", EQUAL_FILES)
    hidden = {f"h{i}": {"title": "Lamp, low tide at noon, at noon"} for i in range(40)}
    other = load(
        tmp_path / "other",
        {**EQUAL_FILES, **collection("memo", {"title": STRING}), **documents("memos", **hidden)},
    )
    with fed(site), fed(other):
        assert pages(other, 7) == pages(site, 25)
