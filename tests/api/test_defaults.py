"""Tests of the defaults in site.yaml for requests: what they populate, and the response format."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from server.commands.cli import main
from server.errors import SetupError
from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, component, documents, load, relation, schema

LINK = {"type": "component", "component": "x.link"}
FILES = {
    **collection("article", {"title": STRING, "author": relation("manyToOne", "author"), "link": LINK}),
    **collection("author", {"name": STRING}),
    **component("x.link", {"url": STRING}),
    "content-types/home.json": schema("home", {"title": STRING, "link": LINK}, single=True),
    **documents("authors", ann={"name": "Ann"}),
    **documents("articles", a={"title": "A", "author": "ann", "link": {"url": "/a"}}),
    "content/home.json": '{"title": "Home", "link": {"url": "/"}}',
}
ROLES = "roles:\n  public: {article: [find, findOne], home: [find]}\n"
POPULATE = "api:\n  populate:\n    article: [author, link]\n    home: {link: true}\n"


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api({**FILES, "site.yaml": POPULATE + ROLES})


def test_a_read_that_says_nothing_populates_what_the_site_says(api: Api) -> None:
    one = api.get("/api/articles/a").body["data"]
    assert (one["author"]["name"], one["link"]["url"]) == ("Ann", "/a")
    assert api.get("/api/articles").body["data"] == [one]
    assert api.get("/api/home").body["data"]["link"]["url"] == "/"
    assert "link" not in api.get("/api/authors/ann").body["data"]


def test_a_read_that_says_what_to_populate_gets_that(api: Api) -> None:
    assert "author" not in api.get("/api/articles/a?populate=").body["data"]
    assert api.get("/api/articles/a?populate=link").body["data"].keys() & {"author", "link"} == {"link"}


def test_what_may_not_be_found_is_left_out(api: Api) -> None:
    assert "author" not in api.get("/api/articles/a", "public").body["data"]


def test_its_lists_can_be_paged(api: Api) -> None:
    page = api.get("/api/articles?pagination[pageSize]=1")
    assert page.status == 200
    assert page.body["data"][0]["author"]["name"] == "Ann"


def test_a_change_of_the_setting_counts_at_once(api: Api) -> None:
    assert "author" in api.get("/api/articles/a").body["data"]
    (api.root / "site.yaml").write_text("api: {populate: {article: link}}\n" + ROLES)
    api.site.refresh()
    assert "author" not in api.get("/api/articles/a").body["data"]


def test_the_answer_to_a_write_populates_what_it_asks_for(api: Api) -> None:
    assert "author" not in api.put("/api/articles/a", {"title": "B"}).body["data"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "article: nope",
            "site.yaml:3:14: api.populate.article is not a valid populate value: Invalid key nope. Use",
        ),
        (
            "article: {author: {nope: 1}}",
            "site.yaml:3:5: api.populate.article is not a valid populate value: Invalid key nope at author",
        ),
    ],
)
def test_what_no_request_may_have_is_refused(tmp_path: Path, said: str, message: str) -> None:
    with pytest.raises(SetupError) as caught:
        load(tmp_path, {**FILES, "site.yaml": f"api:\n  populate:\n    {said}\n"})
    assert str(caught.value).startswith(message)


def test_a_name_that_is_no_type_is_a_warning(tmp_path: Path) -> None:
    site = load(tmp_path, {**FILES, "site.yaml": "api:\n  populate:\n    articles: author\n"})
    (problem,) = site.problems
    assert (problem.line, problem.severity) == (3, "warning")
    assert 'did you mean "article"' in problem.fix


def test_the_older_format_where_a_request_does_not_say(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": "api: {format: v4}\n"})
    plain = api.get("/api/articles/a?populate=author").body["data"]
    assert plain["attributes"]["author"]["data"]["attributes"]["name"] == "Ann"
    for _ in range(2):  # the second response comes from the cache
        new = api.get("/api/articles/a?populate=author", headers={"Strapi-Response-Format": "v5"})
        assert new.body["data"]["author"]["name"] == "Ann"
        assert api.get("/api/articles/a?populate=author").body["data"] == plain
    assert "attributes" in api.put("/api/articles/a", {"title": "B"}).body["data"]


@pytest.mark.parametrize("form", ["v4", "v5"])
def test_an_export_says_what_the_server_answers(make_api: MakeApi, tmp_path: Path, form: str) -> None:
    api = make_api({**FILES, "site.yaml": f"{POPULATE}  format: {form}\n{ROLES}"})
    done = CliRunner().invoke(main, ["export", str(tmp_path / "out"), "--site", str(api.root)])
    assert done.exit_code == 0, done.output
    for path in ("articles", "articles/a", "home"):
        exported = json.loads((tmp_path / f"out/api/{path}.json").read_text())
        assert exported == api.get(f"/api/{path}", "public").body
