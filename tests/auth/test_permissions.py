"""Tests of read permissions: actions, and populate, filters and sort keys that use content types the caller
can't find.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.sites import STRING, Answer, Api, collection, component, documents, load, make, relation

ARTICLE = {
    "title": STRING,
    "author": relation("manyToOne", "author", inversedBy="articles"),
    "category": relation("manyToOne", "category"),
    "cover": {"type": "media"},
    "part": {"type": "component", "component": "x.part"},
    "zone": {"type": "dynamiczone", "components": ["x.part"]},
    "about": {"type": "relation", "relation": "morphToMany"},
}
FILES = {
    **collection("article", ARTICLE, drafts=True),
    **collection(
        "author",
        {
            "name": STRING,
            "category": relation("manyToOne", "category"),
            "articles": relation("oneToMany", "article", mappedBy="author"),
        },
    ),
    **collection("category", {"name": STRING}),
    **collection("note", {"text": STRING, "article": relation("manyToOne", "article")}, drafts=True),
    **collection("home", {"title": STRING}, single=True),
    **collection("magazine", {"editor": relation("manyToOne", "author")}),
    **component("x.part", {"n": STRING, "category": relation("manyToOne", "category")}),
    **documents(
        "articles",
        one={
            "title": "One",
            "author": "ann",
            "category": "news",
            "cover": "a.png",
            "part": {"n": "x", "category": "news"},
            "zone": [{"__component": "x.part", "category": "news"}],
            "about": [
                {"__type": "api::category.category", "documentId": "news"},
                {"__type": "api::author.author", "documentId": "ann"},
            ],
        },
    ),
    **documents("authors", ann={"name": "Ann", "category": "news"}),
    **documents("categorys", news={"name": "news"}),
    **documents("notes", n={"text": "n", "article": "one"}),
    **documents("magazines", m={"editor": "ann"}),
    "content/articles/two.draft.json": '{"title": "Two", "author": "ann"}',
    "content/articles/one.draft.json": '{"title": "One, again", "author": "ann"}',
    "content/home.json": '{"title": "Home"}',
    "content/uploads/a.png": b"\x89PNG",
    "site.yaml": """
roles:
  public: {article: [find, findOne], author: [find], magazine: [find]}
""",
}


DRAFTS = {
    **collection("note", {"title": STRING, "secret": STRING}, drafts=True),
    **collection("plan", {"title": STRING, "secret": STRING}, drafts=True, single=True),
    "content/notes/a.draft.json": '{"title": "A", "secret": "not yet"}',
    "content/notes/b.json": '{"title": "B"}',
    "content/notes/b.draft.json": '{"title": "B", "secret": "not yet"}',
    "content/plan.draft.json": '{"title": "P", "secret": "not yet"}',
}
WRITES = ("create", "update", "delete", "find", "findOne")


@pytest.mark.parametrize(
    "query", ["", "&populate=*", "&fields=secret", "&publicationFilter=modified", "&sort=secret"]
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "notes/a"), ("PUT", "notes/b"), ("PUT", "plan"), ("POST", "notes"), ("DELETE", "notes/a")],
)
def test_who_writes_a_draft_and_may_not_read_drafts_is_shown_its_ids(
    tmp_path: Path, method: str, path: str, query: str
) -> None:
    api = make(tmp_path, DRAFTS)
    api.token("writer", may=[f"{name}.{action}" for name in ("note", "plan") for action in WRITES])
    api.token("editor", may=[f"{name}.{a}" for name in ("note", "plan") for a in (*WRITES, "readDraft")])
    body = {"json": {"data": {"title": "New"}}} if method != "DELETE" else {}
    for who in ("writer", "editor"):
        for headers in ({}, {"Strapi-Response-Format": "v4"}):
            url = f"/api/{path}?status=draft{query}"
            answer = api.ask(method, url, who, headers=headers, **body)
            if method == "DELETE":
                assert "not yet" not in answer.text
                continue
            shown = answer.data.get("attributes", answer.data)
            assert answer.status in (200, 201), answer.body
            assert ("secret" in shown) is (who == "editor"), (who, answer.body)
            assert "not yet" not in answer.text or who == "editor"
            assert answer.data["id"]
    api.accounts.close()


@pytest.mark.parametrize("query", ["", "&status=draft"])
def test_the_publication_status_of_a_write_needs_the_permission_to_read_drafts(
    tmp_path: Path, query: str
) -> None:
    api = make(tmp_path, DRAFTS)
    api.token("writer", may=[f"note.{action}" for action in WRITES])
    api.token("editor", may=[f"note.{action}" for action in (*WRITES, "readDraft")])
    for who in ("writer", "editor"):
        answer = api.put(f"/api/notes/b?publicationStatus=true{query}", {}, who)
        assert answer.status == 200
        assert ("publicationStatus" in answer.text) is (who == "editor"), answer.body
        assert ("title" in answer.data) is (who == "editor" or not query), answer.body
    api.accounts.close()


@pytest.mark.parametrize("path", ["notes/a", "notes/b", "plan"])
def test_who_may_not_read_a_draft_is_told_nothing_of_its_version(tmp_path: Path, path: str) -> None:
    api = make(tmp_path, DRAFTS)
    api.token("writer", may=[f"{name}.{action}" for name in ("note", "plan") for action in WRITES])
    api.token("editor", may=[f"{name}.{a}" for name in ("note", "plan") for a in (*WRITES, "readDraft")])
    url, stale = f"/api/{path}?status=draft", {"If-Match": '"none"'}
    written = {who: api.put(url, {"title": "New"}, who) for who in ("writer", "editor")}
    refused = {who: api.put(url, {"title": "Newer"}, who, headers=stale) for who in ("writer", "editor")}
    assert "ETag" not in written["writer"].headers
    assert (refused["writer"].status, refused["writer"].error["details"]) == (412, {})
    tag = written["editor"].headers["ETag"]
    assert refused["editor"].error["details"]["version"] == tag[1:].partition(".")[0]
    assert api.put(url, {"title": "Newest"}, "editor", headers={"If-Match": tag}).status == 200
    api.accounts.close()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    api = Api.of(load(tmp_path_factory.mktemp("site"), FILES))
    api.token("reading", "read-only")
    api.token("nothing", "custom", ["category.find"])
    api.token("articles", "custom", ["article.find", "article.findOne"])
    api.token("drafts", "custom", ["article.find", "article.findOne", "article.readDraft", "author.find"])
    api.token("notes", "custom", ["note.find", "note.readDraft", "article.find"])
    api.token("writer", "custom", ["note.create", "note.update", "note.delete"])
    return api


def forbidden(answer: Answer) -> bool:
    error = {**answer.error, "details": {}}
    assert not answer.error["details"].keys() - {"permission"}
    return answer.status == 403 and error == {
        "status": 403,
        "name": "ForbiddenError",
        "message": "Forbidden",
        "details": {},
    }


def test_an_identified_caller_learns_which_permission_is_missing(api: Api) -> None:
    refusals = {
        ("articles", "POST", "/api/articles"): {"permission": "article.create"},
        ("articles", "GET", "/api/articles?status=draft"): {"permission": "article.readDraft"},
        ("articles", "GET", "/branches"): {"permission": "branch.find"},
        ("articles", "GET", "/history"): {"permission": "history.read"},
        ("reading", "POST", "/api/articles"): {"permission": "article.create"},
        # A type without any permission might be unknown to the caller.
        ("nothing", "GET", "/api/articles"): {},
        ("nothing", "POST", "/api/articles"): {},
        ("public", "GET", "/branches"): {},
    }
    for (who, method, path), details in refusals.items():
        answer = api.ask(method, path, who, json={"data": {}} if method == "POST" else None)
        assert (answer.status, answer.error["details"]) == (403, details), path


# --- actions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "path", "allowed"),
    [
        ("public", "/api/articles", True),
        ("public", "/api/articles/one", True),
        ("public", "/api/authors", True),
        ("public", "/api/authors/ann", False),
        ("public", "/api/categorys", False),
        ("public", "/api/home", False),
        ("articles", "/api/articles", True),
        ("articles", "/api/authors", False),
        ("nothing", "/api/articles", False),
        ("reading", "/api/home", True),
        ("reading", "/api/categorys/news", True),
        ("full", "/api/home", True),
        ("writer", "/api/notes", False),
        ("writer", "/api/notes/n", False),
    ],
)
def test_reading(api: Api, who: str, path: str, allowed: bool) -> None:
    answer = api.get(path, who)
    assert answer.status == 200 if allowed else forbidden(answer)
    assert api.ask("HEAD", path, who).status == answer.status


def test_what_is_not_there_is_hidden_from_nobody_but_by_permission(api: Api) -> None:
    assert api.get("/api/articles/none", "public").status == 404
    assert forbidden(api.get("/api/categorys/none", "public"))
    assert api.get("/api/nothing", "public").status == 404


@pytest.mark.parametrize("who", ["public", "reading", "articles", "nothing"])
def test_writing_needs_its_own_permission(api: Api, who: str) -> None:
    before = {p: p.read_bytes() for p in (api.site.root / "content").rglob("*") if p.is_file()}
    assert forbidden(api.post("/api/articles", {"title": "x"}, who))
    assert forbidden(api.put("/api/articles/one", {"title": "x"}, who))
    assert forbidden(api.put("/api/home", {"title": "x"}, who))
    assert forbidden(api.ask("DELETE", "/api/articles/one", who))
    assert forbidden(api.ask("DELETE", "/api/home", who))
    assert {p: p.read_bytes() for p in (api.site.root / "content").rglob("*") if p.is_file()} == before


# --- populate ------------------------------------------------------------------------------------


def test_what_may_not_be_found_is_not_populated(api: Api) -> None:
    found = api.get("/api/articles/one?populate=*", "public").data
    assert found["author"]["name"] == "Ann"
    assert "category" not in found
    assert "category" not in api.get("/api/articles/one?populate=category", "public").data
    assert api.get("/api/articles/one?populate=category", "reading").data["category"]["name"] == "news"


def test_nor_is_it_further_in(api: Api) -> None:
    found = api.get("/api/articles/one?populate[author][populate]=*", "public").data
    assert "category" not in found["author"]
    assert [a["title"] for a in found["author"]["articles"]] == ["One"]
    found = api.get("/api/articles/one?populate[part][populate]=*&populate[zone][populate]=*", "public").data
    assert (found["part"]["n"], len(found["zone"])) == ("x", 1)
    assert "category" not in found["part"]
    assert "category" not in found["zone"][0]


def test_of_a_morph_relation_only_what_may_be_found_is_shown(api: Api) -> None:
    path = "/api/articles/one?populate=about"
    assert [t["__type"] for t in api.get(path, "public").data["about"]] == ["api::author.author"]
    assert len(api.get(path, "full").data["about"]) == 2
    # the relation may contain articles, which this token may find
    assert "about" in api.get(path, "articles").data


def test_media_come_with_the_document(api: Api) -> None:
    assert api.get("/api/articles/one?populate=cover", "public").data["cover"]["name"] == "a.png"


# --- filters and sorting -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "key", "path", "param"),
    [
        ("filters[category][name]=news", "category", "category", "filters"),
        ("filters[category][$null]=true", "category", "category", "filters"),
        ("filters[category]=news", "category", "category", "filters"),
        ("filters[$not][$or][0][category][name]=news", "category", "category", "filters"),
        ("filters[author][category][name]=news", "category", "author.category", "filters"),
        ("filters[part][category][name]=news", "category", "part.category", "filters"),
        ("sort=category.name", "category", "category", "sort"),
        ("sort[author][category][name]=asc", "category", "author.category", "sort"),
        ("sort=part.category.name", "category", "part.category", "sort"),
        ("populate[author][filters][category][name]=news", "category", "category", "populate"),
        ("populate[author][sort]=category.name", "category", "category", "populate"),
    ],
)
def test_nobody_filters_or_sorts_through_what_they_may_not_find(
    api: Api, query: str, key: str, path: str, param: str
) -> None:
    error = api.get(f"/api/articles?{query}", "public").error
    assert (error["status"], error["name"]) == (400, "ValidationError")
    assert error["message"] == f"Invalid key {key}" + (f" at {path}" if path != key else "")
    assert error["details"] == {"key": key, "path": path, "source": "query", "param": param}
    assert api.get(f"/api/articles?{query}", "reading").status == 200


# --- drafts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/articles?status=draft", "/api/articles/one?status=draft"])
def test_drafts_need_a_permission_of_their_own(api: Api, path: str) -> None:
    assert forbidden(api.get(path, "public"))
    assert forbidden(api.get(path, "articles"))
    for who in ("full", "reading", "drafts"):
        assert api.get(path, who).status == 200


def test_drafts_of_further_types_need_theirs(api: Api) -> None:
    path = "/api/notes/?status=draft&populate[article][fields]=title&populate[article][fields]=publishedAt"
    (mine,) = api.get(path, "notes").data
    assert (mine["article"]["title"], mine["publishedAt"]) == ("One", None)
    (all_,) = api.get(path, "reading").data
    assert all_["article"]["title"] == "One, again"
    assert api.get("/api/notes?status=draft&filters[article][title]=One", "notes").ids == ["n"]
    assert api.get("/api/notes?status=draft&filters[article][title]=One", "reading").ids == []


def test_drafts_show_through_a_type_without_drafts_only_with_permission(api: Api) -> None:
    path = "/api/authors?status=draft&populate[articles][fields]=title&populate[articles][sort]=title"

    def titles(who: str) -> list[str]:
        return [a["title"] for a in api.get(path, who).data[0]["articles"]]

    assert titles("public") == ["One"]
    assert titles("drafts") == ["One, again", "Two"]
    assert titles("full") == ["One, again", "Two"]


@pytest.mark.parametrize("wanted", ["modified", "unmodified"])
def test_whether_a_draft_differs_is_for_those_who_may_see_it(api: Api, wanted: str) -> None:
    path = f"/api/articles?publicationFilter={wanted}"
    assert forbidden(api.get(path, "public"))
    assert api.get(path, "drafts").ids == (["one"] if wanted == "modified" else [])
    assert api.get("/api/articles?publicationFilter=has-published-version", "public").ids == ["one"]


def test_the_publication_status_is_for_those_who_may_see_drafts(api: Api) -> None:
    assert forbidden(api.get("/api/articles?publicationStatus=true", "public"))
    assert forbidden(api.get("/api/articles/one?publicationStatus=true", "public"))
    status = api.get("/api/articles?publicationStatus=true", "drafts").body["meta"]["publicationStatus"]
    assert status == ["modified"]
    drafts = api.get("/api/articles?status=draft&sort=title&publicationStatus=true", "drafts").body
    assert drafts["meta"]["publicationStatus"] == ["modified", "draft"]
    one = api.get("/api/articles/one?publicationStatus=true&fields=title", "drafts").body
    assert one["meta"] == {"publicationStatus": "modified"}


@pytest.mark.parametrize("wanted", ["modified", "unmodified"])
def test_nor_is_it_told_by_what_is_populated(api: Api, wanted: str) -> None:
    path = f"/api/authors?publicationFilter={wanted}&populate[articles][fields]=title"
    assert forbidden(api.get(path, "public"))
    shown = [a["title"] for a in api.get(path, "drafts").data[0]["articles"]]
    assert shown == (["One"] if wanted == "modified" else [])


@pytest.mark.parametrize("wanted", ["modified", "unmodified"])
def test_nor_by_what_is_populated_further_in(api: Api, wanted: str) -> None:
    nested = "populate[editor][populate][articles][fields]=title"
    assert forbidden(api.get(f"/api/magazines?publicationFilter={wanted}&{nested}", "public"))
    assert api.get(f"/api/magazines?publicationFilter={wanted}&populate=editor", "public").ids == ["m"]


def test_what_is_published_stays_so_for_those_who_may_see_drafts(api: Api) -> None:
    assert [a["title"] for a in api.get("/api/articles", "drafts").data] == ["One"]
    assert api.get("/api/articles/two", "drafts").status == 404


# --- roles ---------------------------------------------------------------------------------------


def test_a_changed_role_counts_from_the_next_request(tmp_path_factory: pytest.TempPathFactory) -> None:
    api = Api.of(load(tmp_path_factory.mktemp("roles"), FILES))
    assert api.get("/api/articles", "public").status == 200
    (api.site.root / "site.yaml").write_text("roles: {public: {author: [find]}}")
    api.site.refresh()
    assert forbidden(api.get("/api/articles", "public"))
    assert api.get("/api/authors", "public").status == 200


@pytest.mark.parametrize("who", ["public", "reading", "drafts", "full"])
def test_answers_of_one_are_never_given_to_another(api: Api, who: str) -> None:
    """Callers send the same request in turn, and each receives its own response despite the
    response cache.
    """
    seen: dict[str, Any] = {}
    for _ in range(2):
        for other in ("full", who, "nothing", "public"):
            answer = api.get("/api/articles/one?populate=*", other)
            assert seen.setdefault(other, (answer.status, answer.body)) == (answer.status, answer.body)
    assert seen["nothing"][0] == 403
    assert "category" not in seen["public"][1]["data"]
    assert "category" in seen["full"][1]["data"]
