"""Tests of the parts of `make peer-diff` that need no server: comparing, generating requests and
reporting.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.differential.causes import Example, Findings
from bench.differential.checks import CHECKS, Context
from bench.differential.compare import Comparison
from bench.differential.deviations import Deviation, explain, read_deviations
from bench.differential.difference import Difference
from bench.differential.edges import edge, with_null_inside
from bench.differential.judging import Verdict
from bench.differential.model import Model, read_model
from bench.differential.morphs import same_targets
from bench.differential.protocol import with_other_indices
from bench.differential.reads import AREAS, Reads
from bench.differential.report import below, print_outcomes, print_rows
from bench.differential.request import GET, Answer, Request, curl, fill, flatten
from bench.differential.shapes import Shapes
from bench.differential.shrink import shrink
from bench.differential.sites import SITES, make_types
from bench.differential.world import World
from bench.differential.writes import AREAS as WRITE_AREAS
from bench.differential.writes import Writes
from tests.conformance.compare import dig

MODEL = read_model(SITES["things"])
SHAPES = Shapes(MODEL)


def differences(theirs: Any, ours: Any, status: int = 200) -> list[str]:
    """Return the differences between two responses, in which their document `a` corresponds to our document
    `b`.
    """
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


def error(name: str, message: str, *paths: str, **more: Any) -> dict[str, Any]:
    errors = [{"path": path.split("."), "message": f"{path} is wrong", "name": name} for path in paths]
    details = {"errors": errors, **more} if paths else more
    return {"data": None, "error": {"status": 400, "name": name, "message": message, "details": details}}


def test_errors_are_compared_by_name_and_details() -> None:
    one = error("ValidationError", "one", "a.b")
    assert differences(one, one, 400) == []
    assert differences(error("ValidationError", "one", "a"), error("ValidationError", "one", "b"), 400)
    assert differences(error("ValidationError", "one"), error("ApplicationError", "one"), 400)
    assert differences(error("ValidationError", "one", key="a"), error("ValidationError", "one"), 400)
    assert differences(
        error("ValidationError", "Invalid key a"), error("ValidationError", "Invalid key b"), 400
    )


def kinds(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    found = Comparison({}, {}).differences(Answer(400, theirs), Answer(400, ours))
    return [difference.kind for difference in found]


def test_other_words_for_the_same_mistake_are_a_kind_of_their_own() -> None:
    assert kinds(error("ValidationError", "one", "a"), error("ValidationError", "other", "a")) == ["message"]
    theirs, ours = error("ValidationError", "one", "a"), error("ValidationError", "one", "a")
    ours["error"]["details"]["errors"][0]["message"] = "a must be something else"
    assert kinds(theirs, ours) == ["message"]
    ours["error"]["details"]["errors"][0]["name"] = "OtherError"
    assert kinds(theirs, ours) == ["message", "details"]


def test_headers_are_compared_and_those_of_cors_where_an_origin_asks() -> None:
    theirs = Answer(200, None, {"content-type": "application/json; charset=utf-8", "vary": "Origin, Accept"})
    same = Answer(200, None, {"content-type": "application/json;charset=UTF-8", "vary": "accept, origin"})
    other = Answer(200, None, {"content-type": "text/plain", "vary": "Accept", "allow": "GET"})
    comparison = Comparison({}, {})
    assert comparison.differences(theirs, same, cross_origin=True) == []
    found = comparison.differences(theirs, other)
    assert [difference.where for difference in found] == ["header.allow", "header.content-type"]
    found = comparison.differences(theirs, other, cross_origin=True)
    assert [difference.where for difference in found][2:] == ["header.vary"]


def test_a_key_that_only_one_of_them_has_differs() -> None:
    assert differences({"a": 1, "isUrlSigned": False}, {"a": 1}) == [
        "isUrlSigned missing: False there, '«absent»' here"
    ]
    assert differences({"size": 1.2}, {"size": 1.3}) == ["size value: 1.2 there, 1.3 here"]


def noted(findings: Findings, area: str, **parts: Any) -> None:
    answer = Answer(200, {})
    verdict = Verdict(Request("GET", "/api/things"), answer, answer, **parts)
    findings.note(area, "shape", Example("1", ["curl"], verdict))


def test_every_answer_compared_counts_in_the_share(capsys: pytest.CaptureFixture[str]) -> None:
    findings, found = Findings(), [Difference("a", "value", 1, 2)]
    for parts in (
        {},
        {},
        {"deviations": ["times"], "ignored_keys": ["id"]},
        {"wording": found},
        {"unexplained": found},
    ):
        noted(findings, "read", **parts)
    noted(findings, "read", unexplained=found, deviations=["times"])
    assert findings.outcomes["read"] == {"equal": 2, "declared": 1, "wording": 1, "undeclared": 2}
    print_outcomes(findings, {"read": 0.25})
    assert (
        "| all  |        6 |     2 |               1 |        1 |          2 | 33.3% |"
        in capsys.readouterr().out
    )
    print_rows(findings, {"times": "`timestamp`", "case": "`$contains`"})
    printed = capsys.readouterr().out
    assert "| `timestamp` |       1 |" in printed
    assert "1 of the 2 rows did not occur." in printed
    assert "Not compared: `id` in 1 answers" in printed


def test_an_area_below_its_floor_is_named() -> None:
    findings = Findings()
    for i in range(40):
        noted(findings, "read", unexplained=[Difference("a", "value", 1, 2)] if i % 2 else [])
    assert below(findings, {"read": 0.5}) == []
    assert below(findings, {"read": 0.51}) == ["read"]


def test_what_a_recording_has_no_answer_to_is_not_compared() -> None:
    findings = Findings()
    verdict = Verdict(Request("GET", "/api/things"), Answer(599, None), Answer(200, {}))
    findings.note("read", "shape", Example("1", ["curl"], verdict))
    assert (findings.outcomes, findings.unrecorded) == ({}, 1)


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


RULES = "rules"


@pytest.fixture(scope="session")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """The model of a site that uses every option."""
    return read_model(make_types(tmp_path_factory.mktemp("rules") / "types", RULES))


def world(model: Model = MODEL) -> World:
    """Return the expected documents of a site: one of each single type and two of each collection type."""
    made = World(model, files=["«file:0»"])
    for uid, type_ in model.types.items():
        for _ in range(1 if type_.single else 2):
            made.add(uid).versions.add(("en", "published"))
    return made


@pytest.mark.parametrize("area", AREAS)
def test_the_same_seed_asks_the_same(area: str) -> None:
    one, two = (Reads(world(), random.Random(7)).request(area) for _ in range(2))
    assert one == two
    assert one.method == "GET" or area == "http"


def test_requests_of_the_area_http_write_nothing() -> None:
    """A POST to a collection, or a PUT to a single type or document, would write. Therefore, no such request
    may be sent.
    """
    singles = {type_.path for type_ in MODEL.types.values() if type_.single}
    asked = [Reads(world(), random.Random(seed)).request("http") for seed in range(500)]
    assert {request.method for request in asked} >= {"HEAD", "OPTIONS", "PATCH", "POST", "PUT", "DELETE"}
    for request in asked:
        if "nope" in request.path or request.path in ("/api", "/api/"):
            continue
        if request.method in ("PUT", "DELETE"):
            assert request.path.count("/") == 2
            assert request.path not in singles
        elif request.method == "POST":
            assert request.path.count("/") == 3 or request.path in singles


@pytest.mark.parametrize("area", WRITE_AREAS)
def test_every_area_of_writes_has_some(area: str, rules: Model) -> None:
    made = [
        Writes(world(model), random.Random(seed), "x").step({area: 1})
        for model in (MODEL, rules)
        for seed in range(20)
    ]
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
    assert told("[publishedAt][$contains]", "11-2") == " through text-of-datetime"
    assert told("[dec][$eqi]", "8") == " through text-of-decimal"
    assert told("[pic][$not]", "5") == told("[tags]", "5") == " through number-of-row"
    assert told("[pic][size]", "5") == told("[pic]", "x") == told("[i]", "5") == ""


def explained(deviation: Deviation, request: Request, theirs: Answer, ours: Answer) -> tuple[list[str], int]:
    """Return the deviations that explain the differences between two responses, and the number of unexplained
    ones.
    """
    found = Comparison({}, {}).differences(theirs, ours)
    context = Context([request], theirs, ours, SHAPES, world(), {}, {})

    def again(other: Request, *, both: bool) -> tuple[list[Difference], Context]:
        return ([] if "$containsi" in str(other.query) else found), context

    names, left = explain([deviation], found, context, again)
    return names, len(left)


def test_a_deviation_explains_what_it_names_and_nothing_else() -> None:
    times = next(d for d in read_deviations() if d.name == "timestamps")
    theirs, ours = (
        {"data": {"ts": "1704164645000", "i": 1}},
        {"data": {"ts": "2024-01-02T03:04:05.000Z", "i": 2}},
    )
    answers = Answer(200, theirs), Answer(200, ours)
    assert explained(times, Request("GET", "/api/things/x"), *answers) == (["timestamps"], 1)


def test_a_deviation_may_be_told_by_the_message_of_an_error() -> None:
    order = next(d for d in read_deviations() if d.name == "order of keys" and "refused there" in d.match)
    request = Request("PUT", "/api/things/x", body={"data": {}})
    ours = Answer(400, error("ValidationError", "zone[0].label must be defined."))
    there = Answer(400, error("ValidationError", "Invalid key __component at zone", key="__component"))
    assert explained(order, request, there, ours) == (["order of keys"], 0)
    other = Answer(400, error("ValidationError", "Invalid key label at zone"))
    assert explained(order, request, other, ours)[0] == []


def test_a_locale_that_is_null_there_is_not_compared() -> None:
    theirs, ours = (Answer(200, {"data": {"documentId": "a", "locale": code}}) for code in (None, "en"))
    comparison = Comparison({}, {})
    assert comparison.differences(theirs, ours) == []
    assert comparison.ignored_keys == {"locale"}


def test_a_document_that_is_there_twice_is_compared_as_it_is_published() -> None:
    draft, published = (
        {"documentId": "a", "name": name, "publishedAt": time}
        for name, time in (("new", None), ("old", "2024-01-02T03:04:05.000Z"))
    )
    holder = {"documentId": "h"}
    theirs = Answer(200, {"data": {**holder, "to": [draft, published]}})
    found = Comparison({}, {}).differences(theirs, Answer(200, {"data": {**holder, "to": [published]}}))
    assert [difference.kind for difference in found] == ["repeated"]


def test_a_difference_is_known_again_with_other_numbers() -> None:
    one, other = ({"data": {"documentId": "h", "to": {"id": n, "documentId": "a"}}} for n in (1, 2))
    keys = [
        [
            d.key()
            for d in Comparison({}, {}).differences(Answer(200, body), Answer(200, {"data": {**holder}}))
        ]
        for holder in ({"documentId": "h", "to": None},)
        for body in (one, other)
    ]
    assert keys[0] == keys[1] != []


def test_parts_of_edits_are_filled_in() -> None:
    body = {"edits": [("tags", "set", "«doc:1»")]}
    assert fill(body, {"doc:1": "a"}, lambda _: None) == {"edits": [["tags", "set", "a"]]}


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


def test_lists_of_a_query_are_written_in_other_ways() -> None:
    query = flatten("filters", {"$or": [{"a": {"$in": ["1", "2"]}}, {"b": "3"}]})
    seen = {with_other_indices(random.Random(seed), query)[0][0] for seed in range(40)}
    assert {
        "filters[$or][][a][$in][]",
        "filters[$or][2][a][$in][2]",
        "filters[$or][150][a][$in][150]",
    } <= seen


def test_edges_are_about_what_the_attribute_says() -> None:
    attribute = {"type": "string", "minLength": 2, "maxLength": 8}
    texts = [edge(random.Random(seed), attribute, []) for seed in range(400)]
    lengths = {len(text) for text in texts if text}
    assert {1, 2, 3, 7, 8, 9} <= lengths
    assert {None, "", "🎈"} <= set(texts)
    numbers = [edge(random.Random(seed), {"type": "float", "min": 0.5}, []) for seed in range(200)]
    assert {0.5, -0.5, 1.5, 0.0} <= {number for number in numbers if isinstance(number, float)}


def test_null_comes_to_every_depth_of_blocks() -> None:
    blocks = [
        {"type": "list", "children": [{"type": "list-item", "children": [{"type": "text", "text": "x"}]}]}
    ]
    made = [with_null_inside(random.Random(seed), blocks) for seed in range(300)]
    places = ("0", "0.type", "0.children.0", "0.children.0.children.0", "0.children.0.children.0.text")
    for place in places:
        assert any(dig(value, place, "absent") is None for value in made), place
    assert blocks[0]["type"] == "list"


def test_relations_of_one_document_lead_to_the_same_one(rules: Model) -> None:
    road = rules.types["api::road.road"]
    bodies = [same_targets(random.Random(seed), world(rules), road) for seed in range(400)]
    assert any(body and body.get("start") and body.get("start") == body.get("end") for body in bodies)


def test_the_masks_of_a_search_look_for_the_text() -> None:
    """A document that only Strapi finds must contain the search text in an attribute that Bifolio hides."""
    made = world()
    document = next(d for d in made.documents.values() if d.uid == "api::thing.thing")
    document.said["priv"] = "a Secret word"
    names = {"theirs1": f"doc:{document.name}"}
    theirs = Answer(200, {"data": [{"documentId": "theirs1", "id": 4, "locale": None}]})
    difference = Difference("data", "fewer members", [], [])

    def found(text: str) -> bool:
        request = Request("GET", "/api/things", (("_q", text),))
        context = Context([request], theirs, Answer(200, {"data": []}), SHAPES, made, {}, names)
        return CHECKS["found by what is hidden"](context, difference)

    assert found("secret")
    assert found("heirs")
    assert found("en")
    assert not found("tide")


def test_the_other_side_of_a_morph_relation_has_what_names_it() -> None:
    made = world()
    pin, holder = list(made.documents.values())[:2]
    names = {"ours1": f"doc:{holder.name}"}
    difference = Difference("data.pins", "more members", [], [f"doc:{pin.name}"], {"documentId": "ours1"})

    def found() -> bool:
        request = Request("GET", "/api/towns", (("populate", "pins"),))
        context = Context([request], Answer(200, {}), Answer(200, {}), SHAPES, made, names, {})
        return CHECKS["named by the other side"](context, difference)

    assert not found()
    pin.said["subjects"] = [{"__type": "api::town.town", "documentId": holder.reference}]
    assert found()


@pytest.mark.parametrize(
    ("where", "key", "sorted_there"),
    [
        ("data[].road.ends", "populate[road][populate][ends][sort][0]", True),
        ("data[].road.ends", "populate[road][sort]", False),
        ("data.road.ends", "populate[road][populate][ends][fields]", False),
        ("data[].attributes.zone[].ends.data", "populate[zone][on][a.b][populate][ends][sort]", True),
    ],
)
def test_a_list_is_in_no_order_where_its_own_part_of_the_request_has_no_sort(
    where: str, key: str, sorted_there: bool
) -> None:
    request, nothing = Request("GET", "/api/towns", ((key, "name"),)), Answer(200, {})
    context = Context([request], nothing, nothing, SHAPES, world(), {}, {})
    assert CHECKS["not sorted there"](context, Difference(where, "order", [], [])) is not sorted_there


def test_what_is_asked_again_without_fields_is_still_populated() -> None:
    deviation = Deviation("x", {"without": r"\[fields\]"})
    fields = (("populate[a][fields][0]", "b"), ("populate[a][fields][1]", "e"))
    request = Request("GET", "/api/towns", (*fields, ("fields", "c"), ("sort", "d")))
    again = deviation.without(request)
    assert again is not None
    assert again.query == (("populate[a]", "true"), ("fields", "c"), ("sort", "d"))


def test_a_request_with_a_line_end_in_a_value_meets_masks_as_any_other() -> None:
    row = next(d for d in read_deviations() if d.name == "drafts through relations")
    query = (("filters[$not][things][txt]", "null\nfog"),)
    answers = Answer(200, {"data": [{"documentId": "a"}]}), Answer(200, {"data": []})
    assert explained(row, Request("GET", "/api/tags", query), *answers) == (["drafts through relations"], 0)


@pytest.mark.parametrize(
    ("status", "is_none"), [("published ", True), ("nope", True), ("published", False), ("draft", False)]
)
def test_a_status_that_is_none_is_told_from_one_that_is(status: str, is_none: bool) -> None:
    row = next(d for d in read_deviations() if d.name == "status")
    refused = {"name": "ValidationError", "message": "Invalid status. Expected one of: published, draft"}
    answers = Answer(200, {"data": []}), Answer(400, {"data": None, "error": refused})
    found = explained(row, Request("GET", "/api/things", (("status", status),)), *answers)
    assert found == ((["status"], 0) if is_none else ([], 1))


@pytest.mark.parametrize(
    ("path", "accept", "told"),
    [("/api", "text/html", True), ("/api/", "text/html", True), ("/api", "*/*", False),
     ("/api/things", "text/html", False)],
)  # fmt: skip
def test_a_browser_is_led_from_the_api_to_the_start_page(path: str, accept: str, told: bool) -> None:
    row = next(d for d in read_deviations() if d.name == "browsers at the API")
    there = Answer(404, {"data": None, "error": {"name": "NotFoundError", "message": "Not Found"}})
    found = explained(row, Request("GET", path, headers=(("Accept", accept),)), there, Answer(302, None))
    assert found == ((["browsers at the API"], 0) if told else ([], 1))


@pytest.mark.parametrize(("key", "left"), [("cfg,parts", 0), ("cfg", 2)])
def test_details_differ_where_strapi_refuses_a_comma(key: str, left: int) -> None:
    rows = [d for d in read_deviations() if d.name == "commas inside"]
    query = (("filters[day][id]", "1"), ("populate[lab][populate]", "cfg,parts"))
    theirs, ours = (
        {"data": None, "error": {"message": f"Invalid key {name}", "details": {"key": name, "path": path}}}
        for name, path in ((key, "lab"), ("id", "lab"))
    )
    context_answers = Answer(400, theirs), Answer(400, ours)
    found = [explained(row, Request("GET", "/api/probes", query), *context_answers) for row in rows]
    assert min(count for _, count in found) == left


@pytest.mark.parametrize(("names", "equal"), [(("x", None, None), True), (("x", "a", "b"), False)])
@pytest.mark.parametrize("v4", [True, False])
def test_documents_that_a_sort_leaves_equal_are_in_no_order(
    names: Sequence[str | None], equal: bool, v4: bool
) -> None:
    items: Any = [{"name": name} for name in names]
    items = {"data": [{"attributes": item} for item in items]} if v4 else items
    holder = {"documentId": "a", **({"attributes": {"roads": items}} if v4 else {"roads": items})}
    where = "data[].attributes.roads.data" if v4 else "data[].roads"
    found = Difference(where, "order", ["doc:1", "doc:3", "doc:2"], ["doc:1", "doc:2", "doc:3"], holder)
    request = Request("GET", "/api/towns", (("populate[roads][sort][0]", "name:desc"),))
    context = Context([request], Answer(200, {}), Answer(200, {}), SHAPES, world(), {}, {})
    assert CHECKS["not sorted there"](context, found) is equal


def test_a_relation_that_only_one_side_lost_is_looked_at_by_what_documents_were_told() -> None:
    made = world()
    labs = [d for d in made.documents.values() if d.uid == "api::lab.lab"] or [
        made.add("api::lab.lab") for _ in range(2)
    ]
    while len(labs) < 2:
        labs.append(made.add("api::lab.lab"))
    probe = made.add("api::probe.probe")
    names = {"ours-lab": f"doc:{labs[0].name}", "ours-probe": f"doc:{probe.name}"}
    found = Difference(
        "data[].twin", "type", None, {"documentId": "ours-probe", "data": 5}, {"documentId": "ours-lab"}
    )
    nothing = Answer(200, {})
    context = Context([Request("GET", "/api/labs")], nothing, nothing, SHAPES, made, names, {})
    assert not CHECKS["also related by the draft of another"](context, found)
    assert not CHECKS["several versions of what is related"](context, found)
    labs[1].said["twin"], labs[1].versions = probe.reference, {("en", "draft")}
    probe.versions = {("en", "published"), ("de", "published")}
    assert CHECKS["also related by the draft of another"](context, found)
    assert CHECKS["several versions of what is related"](context, found)


def test_a_relation_that_only_strapi_keeps_is_looked_at_from_its_other_side() -> None:
    made = world()
    lab, first, second = made.add("api::lab.lab"), made.add("api::probe.probe"), made.add("api::probe.probe")
    lab.versions = {("en", "published"), ("de", "published")}
    theirs, ours = {"theirs-lab": f"doc:{lab.name}"}, {"ours-probe": f"doc:{first.name}"}
    found = Difference("data[].lab", "type", {"documentId": "theirs-lab"}, None, {"documentId": "ours-probe"})
    nothing = Answer(200, {})
    context = Context([Request("GET", "/api/probes")], nothing, nothing, SHAPES, made, ours, theirs)
    inverse = {"lab": {"type": "relation", "inversedBy": "twin", "target": "api::lab.lab"}}
    probe = replace(MODEL.types["api::probe.probe"], attributes=inverse)
    made.model = replace(MODEL, types={**MODEL.types, "api::probe.probe": probe})
    told = {}
    for other in (first, second):
        lab.said["twin"] = other.reference
        told[other.name] = CHECKS["related to another since"](context, found)
    assert told == {first.name: False, second.name: True}
