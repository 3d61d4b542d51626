"""The parts of `make peer-diff` that need no server: what is the same, what is asked, what is shown."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.differential.compare import Comparison
from bench.differential.deviations import Deviation, explain, read_deviations
from bench.differential.model import read_model
from bench.differential.reads import AREAS, Reads
from bench.differential.request import GET, Answer, Request, curl, fill, flatten
from bench.differential.shapes import Shapes
from bench.differential.shrink import shrink
from bench.differential.sites import SITES
from bench.differential.world import World
from bench.differential.writes import AREAS as WRITE_AREAS
from bench.differential.writes import Writes

MODEL = read_model(SITES["things"])
SHAPES = Shapes(MODEL)


def differences(theirs: Any, ours: Any, status: int = 200) -> list[str]:
    """What differs between two answers, where `a` there is `b` here."""
    comparison = Comparison({"doc:1": "a"}, {"doc:1": "b"})
    return [str(found) for found in comparison.differences(Answer(status, theirs), Answer(status, ours))]


def test_what_no_two_servers_share_is_the_same() -> None:
    theirs = {
        "documentId": "a",
        "id": 1,
        "createdAt": "2024-01-02T03:04:05.000Z",
        "url": "/uploads/a_0123456789.png",
    }
    ours = {
        "documentId": "b",
        "id": 9,
        "createdAt": "2025-01-02T03:04:05.000Z",
        "url": "/uploads/a_9876543210.png",
    }
    assert differences({"data": theirs}, {"data": {**ours, "locale": "en"}}) == []


@pytest.mark.parametrize(
    ("theirs", "ours", "said"),
    [
        ({"a": 1}, {"a": True}, "a type: 1 there, True here"),
        ({"a": 1}, {}, "a missing: 1 there, '«absent»' here"),
        ({"a": [1]}, {"a": []}, "a members: '1 items' there, '0 items' here"),
        ({"publishedAt": None}, {"publishedAt": "2024-01-02T03:04:05.000Z"}, None),
        ({"documentId": "a"}, {"documentId": "c"}, "documentId value: 'a' there, 'c' here"),
    ],
)
def test_what_differs_is_said(theirs: Any, ours: Any, said: str | None) -> None:
    found = differences(theirs, ours)
    assert len(found) == 1
    assert said is None or found == [said]


def test_lists_of_documents_are_compared_by_what_is_in_them() -> None:
    one, two = {"documentId": "a", "x": 1}, {"documentId": "n", "x": 2}
    comparison = Comparison({"doc:1": "a", "doc:2": "n"}, {"doc:1": "a", "doc:2": "n"})
    answers = Answer(200, {"data": [one, two]}), Answer(200, {"data": [two, one]})
    assert [found.kind for found in comparison.differences(*answers)] == ["order"]
    assert comparison.differences(*answers, unordered=True) == []


def test_errors_are_compared_by_status_name_and_paths() -> None:
    def error(name: str, message: str, *paths: str) -> dict[str, Any]:
        details = {"errors": [{"path": path.split(".")} for path in paths]}
        return {"data": None, "error": {"status": 400, "name": name, "message": message, "details": details}}

    assert (
        differences(error("ValidationError", "one", "a.b"), error("ValidationError", "other", "a.b"), 400)
        == []
    )
    assert differences(error("ValidationError", "one", "a"), error("ValidationError", "one", "b"), 400)
    assert differences(error("ValidationError", "one"), error("ApplicationError", "one"), 400)
    assert differences(
        error("ValidationError", "Invalid key a"), error("ValidationError", "Invalid key b"), 400
    )


def test_references_are_filled_in_by_each_server() -> None:
    body = {"tags": ["«doc:3»"], "note": "see «doc:3»", "was": {GET: "/api/tags/«doc:3»", "at": "data.name"}}
    filled = fill(body, {"doc:3": "xyz"}, lambda path: {"data": {"name": path}})
    assert filled == {"tags": ["xyz"], "note": "see xyz", "was": "/api/tags/xyz"}


def test_a_document_that_was_read_is_changed_and_sent_back() -> None:
    read = {
        "data": {"id": 1, "documentId": "d", "title": "x", "parts": [{"id": 2, "n": 1}, {"id": 3, "n": 2}]}
    }
    edits = [
        ["title", "set", "«doc:1»"],
        ["parts.0.n", "set", 7],
        ["parts", "reverse", None],
        ["no", "drop", None],
    ]
    how = {"without": ["id", "documentId"], "plain": True, "edits": edits}
    body = fill({GET: "/api/x", "at": "data", **how}, {"doc:1": "q"}, lambda _: read)
    assert body == {"title": "q", "parts": [{"n": 2}, {"n": 7}]}
    assert read["data"]["id"] == 1


def test_a_relation_that_leads_elsewhere_is_one_difference() -> None:
    known = {"doc:1": "a", "doc:2": "b", "doc:3": "c"}
    comparison = Comparison(dict(known), dict(known))

    def kinds(theirs: Any, ours: Any) -> list[str]:
        answers = [
            Answer(200, {"data": {"documentId": "a", "to": {"name": to[0], **to[1]}}})
            for to in (theirs, ours)
        ]
        return [difference.kind for difference in comparison.differences(*answers)]

    assert kinds(("x", {"documentId": "b"}), ("y", {"documentId": "c"})) == ["other document"]
    en, fr = {"documentId": "b", "locale": "en"}, {"documentId": "b", "locale": "fr"}
    assert kinds(("x", en), ("y", fr)) == ["other locale"]
    assert kinds(("x", en), ("y", en)) == ["value"]


def test_a_list_that_shows_another_locale_of_a_document_says_so() -> None:
    known = {"doc:1": "a", "doc:2": "b", "doc:3": "c"}

    def kinds(theirs: str, ours: str) -> list[str]:
        comparison = Comparison(dict(known), dict(known))
        lists = [[{"documentId": i[0], "locale": i[1:]} for i in ids.split()] for ids in (theirs, ours)]
        bodies = [Answer(200, {"data": {"documentId": "a", "to": found}}) for found in lists]
        return [difference.kind for difference in comparison.differences(*bodies)]

    assert kinds("ben cfr", "ben cen") == ["other locale"]
    assert kinds("ben cfr", "cen") == ["other locale", "fewer members"]
    assert kinds("bfr", "ben cen") == ["other locale", "more members"]
    assert kinds("ben", "cen") == ["members"]


def test_a_relation_that_lacks_the_written_document_alone_says_so() -> None:
    known = {"doc:1": "a", "doc:2": "b", "doc:3": "c"}

    def kinds(theirs: list[str], ours: list[str]) -> list[str]:
        comparison = Comparison(dict(known), dict(known), "doc:2")
        bodies = [{"documentId": "a", "to": [{"documentId": i} for i in ids]} for ids in (theirs, ours)]
        found = comparison.differences(*(Answer(200, {"data": body}) for body in bodies))
        return [difference.kind for difference in found]

    assert kinds(["c"], ["b", "c"]) == ["written"]
    assert kinds(["c", "b"], ["b", "c"]) == ["moved"]
    assert kinds(["b"], ["b", "c"]) == ["more members"]
    assert kinds(["b", "c"], ["c"]) == ["fewer members"]


def test_a_request_reads_as_a_command() -> None:
    query = flatten("filters", {"tags": {"documentId": {"$in": ["«doc:3»", "x"]}}})
    command = curl(Request("GET", "/api/things", query), {"doc:3": "xyz"})
    asked = "filters[tags][documentId][$in][0]=xyz&filters[tags][documentId][$in][1]=x"
    assert command == f"curl -sg '/api/things?{asked}'"


def world() -> World:
    """A world with two documents of each type."""
    made = World(MODEL, files=["«file:0»"])
    for uid, type_ in MODEL.types.items():
        for _ in range(1 if type_.single else 2):
            made.add(uid).versions.add(("en", "published"))
    return made


@pytest.mark.parametrize("area", AREAS)
def test_the_same_seed_asks_the_same(area: str) -> None:
    one, two = (Reads(world(), random.Random(7)).request(area) for _ in range(2))
    assert one == two
    assert one.method == "GET"


@pytest.mark.parametrize("area", WRITE_AREAS)
def test_every_area_of_writes_has_some(area: str) -> None:
    made = [Writes(world(), random.Random(seed), "x").step({area: 1}) for seed in range(20)]
    written = [write for write in made if write]
    assert written
    assert {write.area for write in written} == {area}
    assert {write.request.method for write in written} <= {"POST", "PUT", "DELETE"}


def test_a_request_gets_as_small_as_what_it_shows() -> None:
    query = (("filters[$and][0][a][$eq]", "1"), ("sort", "b,c"), ("populate", "*"))
    request = Request("GET", "/api/things", query)
    small = shrink(request, lambda other: any("[a][$eq]" in key for key, _ in other.query))
    assert small.query == (("filters[a][$eq]", "1"),)
    body = {"data": {"a": [{"x": 1, "y": 2}], "b": 3}}
    small = shrink(replace(request, query=(), body=body), lambda other: "x" in str(other.body))
    assert small.body == {"data": {"a": [{"x": 1}]}}


def test_shapes_are_the_same_for_other_names_and_values() -> None:
    one = Request("GET", "/api/things", (("filters[i][$gt]", "5"),))
    assert SHAPES.request(one) == "GET /«type»?filters[<number>][$gt]='number'"


def test_what_a_filter_compares_is_told() -> None:
    def told(key: str, value: str) -> str:
        return SHAPES.through(Request("GET", "/api/things", ((f"filters{key}", value),)))

    assert told("[dt][$notContainsi]", "18T12") == " through text-of-datetime"
    assert told("[pic][$not]", "5") == told("[tags]", "5") == " through number-of-row"
    assert told("[pic][size]", "5") == told("[pic]", "x") == told("[i]", "5") == ""


def explained(deviation: Deviation, request: Request, theirs: Answer, ours: Answer) -> tuple[list[str], int]:
    """The names of the deviations of two answers, and how many differences are left."""
    found = Comparison({}, {}).differences(theirs, ours)
    names, left = explain(
        [deviation], [request], found, SHAPES, lambda other: "$containsi" in str(other.query)
    )
    return names, len(left)


def test_a_deviation_explains_what_it_names_and_nothing_else() -> None:
    times = next(d for d in read_deviations() if d.name == "timestamps")
    theirs, ours = (
        {"data": {"ts": "1704164645000", "i": 1}},
        {"data": {"ts": "2024-01-02T03:04:05.000Z", "i": 2}},
    )
    answers = Answer(200, theirs), Answer(200, ours)
    assert explained(times, Request("GET", "/api/things/x"), *answers) == (["timestamps"], 1)


def test_a_deviation_may_be_shown_by_another_request() -> None:
    case = next(d for d in read_deviations() if d.name == "case")
    answers = Answer(200, {"data": ["a"]}), Answer(200, {"data": []})
    asked = Request("GET", "/api/things", (("filters[str][$contains]", "A"),))
    assert explained(case, asked, *answers) == (["case"], 0)
    other = Request("GET", "/api/things", (("filters[str][$eq]", "A"),))
    assert explained(case, other, *answers) == ([], 1)


def test_every_site_can_be_read() -> None:
    for folder in SITES.values():
        assert isinstance(folder, Path)
        assert read_model(folder).collections


def test_more_errors_are_not_more_documents() -> None:
    errors = next(d for d in read_deviations() if d.name == "all errors")
    answers = Answer(200, {"data": []}), Answer(200, {"data": [{"documentId": "a"}]})
    assert explained(errors, Request("GET", "/api/things"), *answers) == ([], 1)
