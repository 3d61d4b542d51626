"""The cost of a search, and the results of a search for a phrase."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from server.config.model import with_values
from server.documents.document import PUBLISHED
from server.errors import BusyError, LimitError
from server.index.budget import Budget
from server.search.find import Results, Scope, Search
from server.search.question import read_question
from server.site.site import Site
from tests.search.test_sync import fed
from tests.sites import STRING, collection, documents, load
from tests.waiting import computing_less_than

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
    question = read_question(q, {"title", "body"}, unfinished=False)
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
    question = read_question('"cd cd cd cd"', {"title", "body"}, unfinished=False)
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
