"""Tests of `GET /overview`: the number of documents per content type and the latest changes that the caller
may see.
"""

import json
from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, translated


def document(title: str, day: int) -> str:
    return json.dumps({"title": title, "updatedAt": f"2024-05-{day:02}T12:00:00.000Z"})


FILES = {
    "site.yaml": """
locales: {default: en, available: [en, fr]}
roles:
  public: {article: [find], plan: [find]}
""",
    **collection("article", {"title": translated(STRING)}, drafts=True, localized=True),
    **collection("memo", {"title": STRING}),
    **collection("plan", {"title": STRING}, single=True),
    "content/articles/tides.json": document("Tides", 1),
    "content/articles/tides.draft.json": document("The tides", 6),
    "content/articles/tides.fr.json": document("Les marées", 5),
    "content/articles/harbour.json": document("The harbour", 3),
    "content/articles/wreck.draft.json": document("The wreck", 4),
    "content/memos/one.json": document("Memo", 2),
    "content/plan.json": document("Plan", 7),
}


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(FILES)


def titles(found: Any) -> list[str]:
    return [entry["title"] for entry in found["data"]]


def test_it_counts_what_the_caller_may_find_and_lists_it_the_newest_first(api: Api) -> None:
    public = api.get("/overview", "public").body
    assert public["meta"] == {"counts": {"article": 2, "plan": 1}}
    assert titles(public) == ["Plan", "The harbour", "Tides"]
    assert public["data"][1] == {
        "id": public["data"][1]["id"],
        "documentId": "harbour",
        "type": "article",
        "locale": "en",
        "status": "published",
        "title": "The harbour",
        "updatedAt": "2024-05-03T12:00:00.000Z",
        "href": "/api/articles/harbour",
    }
    everything = api.get("/overview").body
    assert everything["meta"]["counts"] == {"article": 2, "memo": 1, "plan": 1}
    assert titles(everything) == ["Plan", "The harbour", "Memo", "Tides"]


def test_drafts_are_for_those_who_may_read_them(api: Api) -> None:
    assert api.get("/overview?status=draft", "public").status == 403
    api.token("some", may=["article.find", "memo.find"])
    assert api.get("/overview?status=draft", "some").status == 403
    drafts = api.get("/overview?status=draft").body
    assert drafts["meta"]["counts"] == {"article": 3, "memo": 1, "plan": 1}
    assert titles(drafts) == ["Plan", "The tides", "The wreck", "The harbour", "Memo"]
    assert [entry["status"] for entry in drafts["data"]][:3] == ["published", "draft", "draft"]


def test_the_type_the_locale_and_the_number_can_be_chosen(api: Api) -> None:
    articles = api.get("/overview?type=articles&limit=1").body
    assert (articles["meta"]["counts"], titles(articles)) == ({"article": 2}, ["The harbour"])
    french = api.get("/overview?type=article&locale=fr").body
    assert (french["meta"]["counts"], titles(french)) == ({"article": 1}, ["Les marées"])
    assert api.get("/overview?type=article&locale=*").body["meta"]["counts"] == {"article": 3}


@pytest.mark.parametrize("query", ["type=memo", "type=memo,article"])
def test_a_type_that_the_caller_may_not_find_is_as_unknown_as_one_that_there_is_not(
    api: Api, query: str
) -> None:
    forbidden = api.get(f"/overview?{query}", "public").error
    unknown = api.get(f"/overview?{query.replace('memo', 'zzzz')}", "public").error
    assert forbidden == {**unknown, "message": unknown["message"].replace("zzzz", "memo")}
    assert forbidden["status"] == 400


def test_only_types_that_the_caller_may_find_are_suggested(api: Api) -> None:
    assert 'did you mean "memo"?' in api.get("/overview?type=meno").error["message"]
    assert api.get("/overview?type=meno", "public").error["message"].endswith('unknown content type "meno"')
    assert 'did you mean "plan"?' in api.get("/overview?type=plam", "public").error["message"]


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "status=zzz", "locale=!", "type=zzz"])
def test_what_is_not_understood_is_refused(api: Api, query: str) -> None:
    assert api.get(f"/overview?{query}").status == 400


def test_it_has_an_entity_tag_of_what_it_tells(api: Api) -> None:
    first = api.get("/overview")
    etag = first.headers["ETag"]
    assert api.get("/overview", headers={"If-None-Match": etag}).status == 304
    api.post("/api/memos", {"title": "Another"})
    assert api.get("/overview", headers={"If-None-Match": etag}).body["meta"]["counts"]["memo"] == 2
