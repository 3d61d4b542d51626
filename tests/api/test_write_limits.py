"""Tests of the limits for one write over HTTP: larger writes are rejected before any work is done."""

import json
from pathlib import Path
from typing import Any

import pytest

from server.api.environ import GONE
from server.errors import ClientGone
from server.index import budget
from server.index.budget import turns
from tests.sites import INTEGER, STRING, Api, collection, component, load, relation
from tests.waiting import computing_less_than

NOTE = collection(
    "note",
    {
        "title": STRING,
        "text": {"type": "text"},
        "data": {"type": "json"},
        "parts": {"type": "component", "component": "x.part", "repeatable": True},
        "needs": {"type": "component", "component": "x.need", "repeatable": True},
        "to": relation("manyToOne", "note"),
        "zone": {"type": "dynamiczone", "components": ["x.part"]},
    },
)
SCHEMA = {
    **NOTE,
    **component("x.part", {"n": INTEGER, "data": {"type": "json"}}),
    **component("x.need", {"n": {"type": "integer", "required": True}, "m": INTEGER}),
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return Api.of(load(tmp_path_factory.mktemp("site"), SCHEMA))


LARGE = {
    "a list": {"data": [1] * 4_000_000},
    "lists in lists": {"data": [[[]]] * 60_000},
    "an object": {"data": {f"k{i}": i for i in range(60_000)}},
    "text that is JSON": {"data": json.dumps([1] * 60_000)},
    "texts that together are too much JSON": {
        "data": json.dumps([1] * 30_000),
        "zone": [{"__component": "x.part", "data": json.dumps([1] * 30_000)}],
    },
    "components": {"parts": [{"n": 1}] * 60_000},
    "parts of a zone": {"zone": [{"__component": "x.part"}] * 60_000},
    "an unknown key": {"other": [1] * 60_000},
}


@pytest.mark.parametrize("data", LARGE.values(), ids=LARGE.keys())
def test_a_body_with_too_many_values_is_refused_at_once(api: Api, data: dict[str, Any]) -> None:
    body, before = json.dumps({"data": data}), api.files
    with computing_less_than(1):
        answer = api.ask("POST", "/api/notes", data=body, content_type="application/json")
    assert (answer.error["status"], answer.error["name"]) == (400, "ValidationError")
    assert answer.error["message"] == "The request body has more than 50,000 values; send fewer at once"
    assert answer.error["details"] == {"limit": "values"}
    assert api.files == before


PROSE = {
    "escapes": "\u2028Fog, [and] {sea}" * 60_000,
    "a list": "[" + "fog, " * 60_000,
    "JSON": json.dumps([1] * 60_000),
    "a template": "{{ fog }}, " * 60_000,
    "what looks like escapes": "\\u005b," * 60_000,
}


@pytest.mark.parametrize("text", PROSE.values(), ids=PROSE.keys())
def test_a_text_is_one_value_whatever_it_says(api: Api, text: str) -> None:
    answer = api.post("/api/notes", {"text": text})
    assert (answer.status, answer.data["text"]) == (201, text)
    one = {"method": "POST", "path": "/api/notes", "body": {"data": {"text": text}}}
    answer = api.ask("POST", "/batch", json={"operations": [one]})
    assert (answer.status, answer.data[0]["body"]["data"]["text"]) == (200, text)
    if not text.startswith("[1"):
        assert api.post("/api/notes", {"data": text}).data["data"] == text
    for note in api.get("/api/notes?fields=title").ids:
        api.ask("DELETE", f"/api/notes/{note}")


def test_how_many_values_a_body_may_have_is_a_setting(make_api: Any) -> None:
    api = make_api({**SCHEMA, "site.yaml": "api: {limits: {values: 20}}\n"})
    assert api.post("/api/notes", {"data": [1] * 17}).status == 201
    assert api.post("/api/notes", {"data": [1] * 18}).error["details"] == {"limit": "values"}


WRONG = {
    "components": ({"parts": [{"n": "x"}] * 15_000}, "15000 errors occurred; these are the first 100"),
    "parts of a zone": ({"zone": [{}] * 40_000}, "40000 errors occurred; these are the first 100"),
    "options": ({"needs": [{}] * 40_000}, "40000 errors occurred; these are the first 100"),
    "both": (
        {"needs": [{"m": "x"}] * 15_000},
        "30000 errors occurred; these are the first 100",
    ),
}


@pytest.mark.parametrize(("data", "message"), WRONG.values(), ids=WRONG.keys())
def test_of_many_faults_the_first_are_told(api: Api, data: dict[str, Any], message: str) -> None:
    with computing_less_than(5):
        answer = api.post("/api/notes", data)
    assert answer.error["message"] == message
    assert len(answer.error["details"]["errors"]) == 100
    assert len(answer.raw) < 30_000


@pytest.mark.parametrize(
    "data",
    [{"k" * 1_000_000: 1}, {"to": "k" * 1_000_000}, {"parts": [{"k" * 1_000_000: 1}]}],
    ids=["a key", "a target", "a key of a component"],
)
def test_an_error_quotes_the_beginning_of_what_is_long(api: Api, data: dict[str, Any]) -> None:
    answer = api.post("/api/notes", data)
    assert "kkk" in answer.error["message"]
    assert len(answer.raw) < 10_000


COUNT = 2500
RELATED = {
    **collection(
        "page",
        {
            "to": relation("manyToMany", "page", inversedBy="from"),
            "from": relation("manyToMany", "page", mappedBy="to"),
            "tags": relation("oneToMany", "tag", inversedBy="page"),
            "parts": {"type": "component", "component": "x.link", "repeatable": True},
        },
    ),
    **collection("tag", {"page": relation("manyToOne", "page", mappedBy="tags")}),
    **component("x.link", {"n": INTEGER, "to": relation("oneToOne", "page"), "file": {"type": "media"}}),
    **{f"content/pages/p{i}.json": "{}" for i in range(COUNT)},
    **{f"content/tags/t{i}.json": "{}" for i in range(COUNT)},
    "content/pages/one.json": json.dumps({"tags": [f"t{i}" for i in range(COUNT)]}),
    **{f"content/uploads/f{i}.txt": str(i) for i in range(COUNT)},
}


@pytest.fixture(scope="module")
def related(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return Api.of(load(tmp_path_factory.mktemp("related"), RELATED))


def test_relations_by_number_cost_little(related: Api) -> None:
    versions = related.site.state.snapshot.tables["api::page.page"].versions.values()
    numbers = [version.id for version in versions]
    with computing_less_than(4):
        answer = related.put("/api/pages/p0", {"to": numbers * 16})
    assert answer.status == 200
    assert related.get("/api/pages/p0?populate[to][count]=true").data["to"] == {"count": COUNT + 1}


def test_files_by_number_in_many_components_cost_little(related: Api) -> None:
    files = related.get("/api/upload/files").body
    with computing_less_than(6):
        answer = related.put("/api/pages/p1", {"parts": [{"file": file["id"]} for file in files] * 4})
    assert answer.status == 200


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "reversed"])
def test_many_components_sent_back_cost_little(related: Api, order: int) -> None:
    parts = related.put("/api/pages/p4?populate=parts", {"parts": [{"n": n} for n in range(4000)]}).data[
        "parts"
    ]
    changed = [{"id": part["id"], "n": part["n"] + 1} for part in parts[::order]]
    with computing_less_than(5):
        answer = related.put("/api/pages/p4?populate=parts", {"parts": changed})
    assert [part["n"] for part in answer.data["parts"]] == [part["n"] for part in changed]


def test_many_targets_that_another_document_has_cost_little(related: Api) -> None:
    with computing_less_than(4):
        answer = related.put("/api/pages/p2", {"tags": [f"t{i}" for i in range(COUNT)]})
    assert answer.status == 200
    assert json.loads(related.read("content/pages/one.json")).get("tags", []) == []


def test_a_write_changes_a_thousand_files_at_most(related: Api) -> None:
    sources = [f"p{i}" for i in range(10, COUNT)]
    before = related.get("/api/pages/p3?populate[from][count]=true").data["from"]["count"]
    answer = related.put("/api/pages/p3", {"from": {"connect": sources}})
    assert (answer.error["status"], answer.error["name"]) == (400, "ValidationError")
    assert (
        answer.error["message"]
        == "This write would change more than 1,000 files; change fewer relations at once"
    )
    assert related.get("/api/pages/p3?populate[from][count]=true").data["from"] == {"count": before}
    assert related.put("/api/pages/p3", {"from": {"connect": sources[:1000]}}).status == 200
    assert related.get("/api/pages/p3?populate[from][count]=true").data["from"] == {"count": before + 1000}


MANY = 300
SLOW = {
    **collection(
        "page",
        {
            "title": STRING,
            "to": relation("manyToMany", "page", inversedBy="from"),
            "from": relation("manyToMany", "page", mappedBy="to"),
            "parts": {"type": "component", "component": "x.link", "repeatable": True},
        },
    ),
    **component("x.link", {"n": INTEGER, "to": relation("oneToOne", "page")}),
    **{f"content/pages/p{i}.json": "{}" for i in range(MANY)},
}
ALL = {"from": {"connect": [f"p{i}" for i in range(1, MANY)]}}


def operations(*bodies: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"method": "PUT", "path": f"/api/pages/p{number}", "body": {"data": data}}
        for number, data in enumerate(bodies)
    ]


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    """A site in which a change of many files takes too long."""
    monkeypatch.setattr(budget, "WRITE_TIME_FACTOR", 0.002)  # 4 ms
    return Api.of(load(tmp_path, SLOW))


@pytest.mark.parametrize("query", ["", "?dryRun=true"], ids=["write", "dry run"])
def test_a_write_that_takes_too_long_changes_nothing(slow: Api, query: str) -> None:
    before = slow.files
    answer = slow.ask("PUT", f"/api/pages/p0{query}", json={"data": ALL})
    assert (answer.error["status"], answer.error["name"]) == (400, "ValidationError")
    assert answer.error["message"] == "This write would take too long; change less at once"
    assert answer.error["details"] == {"limit": "time"}
    assert slow.files == before
    assert slow.put("/api/pages/p0", {"title": "Fog"}).status == 200


@pytest.mark.parametrize("query", ["", "?dryRun=true"], ids=["write", "dry run"])
def test_a_batch_that_takes_too_long_names_the_operation_and_changes_nothing(slow: Api, query: str) -> None:
    before = slow.files
    answer = slow.ask("POST", f"/batch{query}", json={"operations": operations({"title": "Fog"}, ALL)})
    assert answer.error["details"] == {"limit": "time", "operation": 1}
    assert slow.files == before


def test_a_batch_whose_references_take_too_long_is_refused(slow: Api) -> None:
    bodies = [{"title": "{{0.documentId}}" * 10_000}] * 50
    answer = slow.ask("POST", "/batch", json={"operations": operations({}, *bodies)})
    assert answer.error["details"]["limit"] == "time"


def test_components_that_take_too_long_are_refused(slow: Api) -> None:
    answer = slow.put("/api/pages/p0", {"parts": [{"n": n, "to": "p1"} for n in range(9000)]})
    assert answer.error["details"] == {"limit": "time"}


@pytest.mark.parametrize("query", ["", "?dryRun=true"], ids=["write", "dry run"])
@pytest.mark.parametrize("path", ["/api/pages/p0", "/batch"])
def test_a_write_stops_when_its_client_disconnects(tmp_path: Path, path: str, query: str) -> None:
    api, looks = Api.of(load(tmp_path, SLOW)), 0

    def is_gone() -> bool:
        nonlocal looks
        looks += 1
        return looks > 2

    before = api.files
    body = {"operations": operations(ALL)} if path == "/batch" else {"data": ALL}
    method = "POST" if path == "/batch" else "PUT"
    with pytest.raises(ClientGone):
        api.ask(method, path + query, json=body, environ_overrides={GONE: is_gone})
    assert (looks, api.files) == (3, before)
    assert api.put("/api/pages/p0", ALL).status == 200  # No lock is still held.


FORMS = (
    "POST /api/auth/local",
    "POST /api/auth/local/register",
    "POST /api/auth/forgot-password",
    "POST /api/auth/reset-password",
    "POST /api/auth/send-email-confirmation",
    "POST /api/auth/refresh",
    "POST /api/users",
    "PUT /api/users/1",
)


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize("route", FORMS)
def test_what_is_no_content_is_small(make_api: Any, route: str, kind: str) -> None:
    api = make_api({"site.yaml": "auth: {refresh: true}\n"})
    user = {"username": "anna", "email": "anna@example.org", "password": "secret12", "role": 1}
    assert api.ask("POST", "/api/users", json=user).status == 201
    method, path = route.split()
    for size, refused in ((64 * 1024, False), (64 * 1024 + 1, True)):
        body = '{"identifier":"' + "x" * (size - 17) + '"}'
        answer = api.ask(method, path, data=body, content_type=kind)
        assert (answer.status == 413) is refused, answer.body
    assert answer.error["name"] == "PayloadTooLargeError"
    assert answer.error["message"] == "The request body is larger than 65,536 bytes"


def test_who_sends_much_waits_for_others_and_is_told_when_to_come_back(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = turns(max_waiting=0)
    monkeypatch.setattr(api.app.wsgi_app, "turns", taken)
    with taken:
        assert api.post("/api/notes", {"data": "x" * 60_000}).status == 201
        answer = api.post("/api/notes", {"data": "x" * 70_000})
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert api.post("/api/notes", {"data": "x" * 70_000}).status == 201
