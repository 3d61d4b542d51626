"""Tests of the start page at `/`: it links to what the caller may read, and reveals nothing else."""

import re
from html import unescape
from urllib.parse import urljoin

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, documents, relation, schema

SITE = {
    **collection("article", {"title": STRING}, drafts=True),
    **collection("dossier", {"subject": STRING}),
    "content-types/home.json": schema("home", {"title": STRING}, single=True),
    **documents("articles", a={"title": "A"}, b={"title": "B"}),
    "content/articles/c.draft.json": '{"title": "Not yet"}',
    "content/home.json": '{"title": "Hello"}',
    "site.yaml": "name: Fish & <Chips>\nroles:\n  public:\n    article: [find]\n    home: [find]\n",
}
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(SITE)


def test_every_link_of_the_page_opens(api: Api) -> None:
    page = api.get("/", "public", headers=BROWSER).body.decode()
    links = re.findall(r'href="(?!data:)([^"]+)"', page)
    assert {"api/articles", "api/home", "docs", "openapi.json"} <= set(links)
    for link in links:
        assert api.get(urljoin("/", link), "public").status == 200, link


def test_the_page_shows_what_its_reader_may_find(api: Api) -> None:
    page = api.get("/", "public", headers=BROWSER).body.decode()
    assert "<h1>Fish &amp; &lt;Chips&gt;</h1>" in page
    assert "2 published" in page  # the draft is not mentioned
    assert "ossier" not in page
    assert "Other content types are not for everybody" in page  # The page does not reveal their number.
    everything = api.get("/", headers=BROWSER).body.decode()
    assert "api/dossiers" in everything
    assert "not for everybody" not in everything


def test_programs_get_json(api: Api) -> None:
    for accepted in ("application/json", "*/*"):
        answer = api.get("/", "public", headers={"Accept": accepted})
        assert answer.body["name"] == "Fish & <Chips>"
        assert [t["url"] for t in answer.body["types"]] == ["/api/articles", "/api/home"]
        assert "Accept" in answer.headers["Vary"].split(", ")


@pytest.mark.parametrize("path", ["/api", "/api/", "/admin", "/admin/"])
def test_where_people_look_for_a_page_they_are_led_to_it(api: Api, path: str) -> None:
    answer = api.get(path, "public", headers=BROWSER)
    assert answer.status == 302
    assert urljoin(f"http://x{path}", answer.headers["Location"]) == "http://x/"


def test_a_program_finds_no_page_below_api(api: Api) -> None:
    assert [api.get(path, "public").status for path in ("/api", "/api/")] == [404, 404]


def test_a_site_without_types_says_how_to_get_some(make_api: MakeApi) -> None:
    page = make_api({"site.yaml": "name: New\n"}).get("/", "public", headers=BROWSER).body.decode()
    assert "bifolio init" in page


def test_example_queries_find_something(make_api: MakeApi) -> None:
    article = {
        "secret": {"type": "string", "private": True},
        "title": STRING,
        "kind": {"type": "enumeration", "enum": ["note & essay", "x"]},
        "hidden": relation("manyToOne", "dossier"),
        "author": relation("manyToOne", "author"),
    }
    api = make_api(
        {
            **collection("article", article),
            **collection("author", {"name": STRING, "age": "integer"}),
            **collection("dossier", {"subject": STRING}),
            **collection("empty", {"subject": STRING}),
            **documents("authors", ann={"name": "Ann = ä", "age": 5}),
            **documents("dossiers", d={"subject": "Classified"}),
            **documents("articles", a={"secret": "s"}, b={"title": "The Tides", "kind": "note & essay",
                                                        "author": "ann", "hidden": "d"}),
            "site.yaml": "roles: {public: {article: [find], author: [find], empty: [find]}}\n",
        }
    )  # fmt: skip
    page = api.get("/", "public", headers=BROWSER).body.decode()
    links = [unescape(link) for link in re.findall(r'href="((?:api|search)[^"]*\?[^"]*)"', page)]
    assert "api/articles?filters[kind]=note%20%26%20essay" in links
    assert "api/articles?populate=author" in links
    assert "search?q=Tides" in links
    assert len(links) == 4
    for link in links:
        found = api.get(urljoin("/", link), "public")
        assert found.status == 200
        assert found.data, link
    assert api.get("/api/articles?populate=author", "public").data[1]["author"]["name"] == "Ann = ä"
    assert "ecret" not in page
    assert "hidden" not in page
    assert "lassified" not in page
