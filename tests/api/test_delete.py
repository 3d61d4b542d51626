"""Tests of requests to delete a locale that does not exist."""

from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, documents, schema

FILES = {
    "site.yaml": "locales: {available: [en, fr]}\n",
    **collection("place", {"name": STRING}, localized=True, drafts=True),
    "content-types/home.json": schema("home", {"name": STRING}, single=True, localized=True),
    **documents("places", a={"name": "A"}),
    "content/home.json": '{"name": "Home"}',
}


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(FILES)


@pytest.mark.parametrize("path", ["/api/places/a", "/api/home", "/api/places/none"])
@pytest.mark.parametrize("locale", ["?locale=de", "?locale[]=de", "?locale=fr"])
def test_nothing_is_deleted_in_a_locale_that_there_is_not(api: Api, path: str, locale: str) -> None:
    assert api.ask("DELETE", path + locale).status == 204
    assert api.files == {"places/a.json", "home.json"}


def test_the_locales_that_there_are_are_deleted_beside_one_that_there_is_not(api: Api) -> None:
    assert api.ask("DELETE", "/api/places/a?locale[]=de&locale[]=en").status == 204
    assert api.files == {"home.json"}


def test_it_is_the_same_in_a_batch_and_tried(api: Api) -> None:
    operation: Any = {"method": "DELETE", "path": "/api/places/a?locale=de"}
    done = api.ask("POST", "/batch", json={"operations": [operation]})
    assert (done.status, done.body["data"][0]["status"]) == (200, 204), done.body
    assert api.files == {"places/a.json", "home.json"}


def test_no_version_matches_an_entity_tag_there(api: Api) -> None:
    tag = {"If-Match": api.get("/api/places/a").headers["ETag"]}
    assert api.ask("DELETE", "/api/places/a?locale=de", headers=tag).status == 412
