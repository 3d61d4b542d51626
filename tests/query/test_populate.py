"""`fields` and `populate` in every form, and their errors (spec.md 4.4, 4.5)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import (
    INTEGER,
    STRING,
    Api,
    collection,
    component,
    documents,
    load,
    relation,
    translated,
)

PNG = b"\x89PNG\r\n\x1a\n"
ARTICLE: dict[str, Any] = {
    "title": STRING,
    "rank": INTEGER,
    "pw": {"type": "password"},
    "hidden": {"type": "string", "private": True},
    "author": relation("manyToOne", "author", inversedBy="articles"),
    "editor": relation("manyToOne", "author", private=True),
    "tags": relation("manyToMany", "tag", inversedBy="articles"),
    "next": relation("oneToOne", "article"),
    "cover": {"type": "media"},
    "gallery": {"type": "media", "multiple": True},
    "seo": {"type": "component", "component": "shared.seo"},
    "parts": {"type": "component", "component": "shared.part", "repeatable": True},
    "zone": {"type": "dynamiczone", "components": ["shared.part", "shared.quote"]},
    "about": {"type": "relation", "relation": "morphToOne"},
    "links": {"type": "relation", "relation": "morphToMany"},
    "mentions": relation("morphMany", "article", morphBy="links"),
    "answer": relation("morphOne", "article", morphBy="about"),
}
SCHEMA = {
    **collection("article", ARTICLE, drafts=True),
    **collection("author", {"name": STRING, "articles": relation("oneToMany", "article", mappedBy="author")}),
    **collection(
        "tag",
        {
            "name": STRING,
            "articles": relation("manyToMany", "article", mappedBy="tags"),
            "mentions": relation("morphMany", "article", morphBy="links"),
            "answer": relation("morphOne", "article", morphBy="about"),
        },
    ),
    **component(
        "shared.seo",
        {
            "text": STRING,
            "secret": {"type": "password"},
            "picture": {"type": "media"},
            "part": {"type": "component", "component": "shared.part"},
        },
    ),
    **component(
        "shared.part",
        {"n": INTEGER, "tag": relation("manyToOne", "tag"), "hidden": {"type": "string", "private": True}},
    ),
    **component("shared.quote", {"text": STRING, "by": relation("manyToOne", "author")}),
}
ONE = {
    "title": "One",
    "rank": 1,
    "pw": "x",
    "hidden": "x",
    "author": "ann",
    "editor": "ann",
    "tags": ["blue", "red"],
    "next": "two",
    "cover": "a.png",
    "gallery": ["b.png", "a.png", "gone.png"],
    "seo": {"text": "S", "secret": "x", "picture": "a.png", "part": {"n": 1, "tag": "red"}},
    "parts": [{"n": 2, "tag": "blue", "hidden": "x"}, {"n": 1}],
    "zone": [
        {"__component": "shared.quote", "text": "Q", "by": "ann"},
        {"__component": "shared.part", "n": 3, "tag": "red"},
    ],
    "about": {"__type": "api::tag.tag", "documentId": "red"},
    "links": [
        {"__type": "api::author.author", "documentId": "ann"},
        {"__type": "api::tag.tag", "documentId": "blue"},
        {"__type": "api::article.article", "documentId": "two"},
        {"__type": "api::tag.tag", "documentId": "gone"},
    ],
}
FILES = {
    **SCHEMA,
    **documents(
        "articles",
        one=ONE,
        two={"title": "Two", "rank": 2, "author": "ann"},
        three={"title": "Three"},
    ),
    **documents("authors", ann={"name": "Ann"}, ben={"name": "Ben"}),
    **documents("tags", red={"name": "red"}, blue={"name": "blue"}),
    "content/articles/four.draft.json": json.dumps({"title": "Four", "author": "ann"}),
    "content/uploads/a.png": PNG,
    "content/uploads/b.png": PNG,
}
SCALARS = {"id", "documentId", "title", "rank", "createdAt", "updatedAt", "publishedAt", "locale"}
POPULATABLE = set(ARTICLE) - {"title", "rank", "pw", "hidden", "editor"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return Api.of(load(tmp_path_factory.mktemp("site"), FILES))


def one(api: Api, query: str) -> Any:
    return api.get(f"/api/articles/one?{query}").data


def names(found: Any) -> list[str]:
    return [document["documentId"] for document in found]


# --- fields --------------------------------------------------------------------------------------


def test_nothing_is_populated_by_default(api: Api) -> None:
    assert set(one(api, "")) == SCALARS


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("fields=title", {"title"}),
        ("fields=title,rank", {"title", "rank"}),
        ("fields[0]=title&fields[1]=rank", {"title", "rank"}),
        ("fields[]=title&fields[]=rank", {"title", "rank"}),
        ("fields=title&fields=rank", {"title", "rank"}),
        ("fields=createdAt", {"createdAt"}),
        ("fields=locale", {"locale"}),
        ("fields=id", set()),
        ("fields=documentId", set()),
        ("fields[0]=title&fields[1]=title", {"title"}),
    ],
)
def test_fields_select(api: Api, query: str, wanted: set[str]) -> None:
    assert set(one(api, query)) == {"id", "documentId", *wanted}


@pytest.mark.parametrize("query", ["fields=", "fields=*", "fields[0]=*", "fields[0]=title&fields[1]=*"])
def test_fields_that_select_everything(api: Api, query: str) -> None:
    assert set(one(api, query)) == SCALARS


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("zzz", None),
        ("author", "author"),
        ("cover", "cover"),
        ("seo", "seo"),
        ("zone", "zone"),
        ("pw", "pw"),
        ("hidden", "hidden"),
        ("author.name", None),
    ],
)
def test_fields_that_can_not_be_selected_are_named(api: Api, field: str, path: str | None) -> None:
    error = api.get(f"/api/articles?fields[0]=title&fields[1]={field}").error
    assert (error["status"], error["name"]) == (400, "ValidationError")
    assert error["message"] == f"Invalid key {field}"
    assert error["details"] == {"key": field, "path": path, "source": "query", "param": "fields"}


@pytest.mark.parametrize("query", ["fields[a]=title", "fields[0][a]=title", "fields[title]=true"])
def test_fields_must_be_names(api: Api, query: str) -> None:
    assert api.get(f"/api/articles?{query}").error["message"].startswith("Invalid fields parameter.")


# --- populate ------------------------------------------------------------------------------------


def test_star_populates_one_level_of_everything(api: Api) -> None:
    found = one(api, "populate=*")
    assert set(found) == SCALARS | POPULATABLE
    assert found["author"]["name"] == "Ann"
    assert "articles" not in found["author"]
    assert "part" not in found["seo"]
    assert names(found["tags"]) == ["blue", "red"]
    assert found["next"]["title"] == "Two"
    assert found["answer"] is None
    assert found["mentions"] == []


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("populate=author", {"author"}),
        ("populate=author,tags", {"author", "tags"}),
        ("populate=author&populate=tags", {"author", "tags"}),
        ("populate[0]=author&populate[1]=tags", {"author", "tags"}),
        ("populate[]=author&populate[]=tags", {"author", "tags"}),
        ("populate[author]=true", {"author"}),
        ("populate[author]=*", {"author"}),
        ("populate[author][fields][0]=name", {"author"}),
        ("populate[author]=true&populate[tags]=false", {"author"}),
        ("populate[author]=0", set()),
        ("populate[*]=true", POPULATABLE),
        ("populate[0]=*", POPULATABLE),
        ("populate=*&populate=author.articles", POPULATABLE),
        ("populate=", set()),
        ("populate[]=", set()),
    ],
)
def test_every_form(api: Api, query: str, wanted: set[str]) -> None:
    assert set(one(api, query)) == SCALARS | wanted


@pytest.mark.parametrize(
    "query",
    [
        "populate=author.articles",
        "populate[0]=author&populate[1]=author.articles",
        "populate[0]=author.articles&populate[1]=author",
        "populate[author][populate]=articles",
        "populate[author][populate][0]=articles",
        "populate[author][populate][articles]=true",
        "populate[author][populate]=*",
    ],
)
def test_nested_forms(api: Api, query: str) -> None:
    assert names(one(api, query)["author"]["articles"]) == ["one", "two"]


def test_nested_selections_are_independent(api: Api) -> None:
    found = one(
        api,
        "fields=title&populate[author][fields]=name&populate[author][populate][articles][fields]=rank"
        "&populate[author][populate][articles][sort]=rank:desc"
        "&populate[author][populate][articles][filters][rank][$notNull]=true",
    )
    assert set(found) == {"id", "documentId", "title", "author"}
    assert set(found["author"]) == {"id", "documentId", "name", "articles"}
    assert [set(a) for a in found["author"]["articles"]] == [{"id", "documentId", "rank"}] * 2
    assert names(found["author"]["articles"]) == ["two", "one"]


def test_to_many_relations_keep_the_order_of_the_file(api: Api) -> None:
    assert names(one(api, "populate=tags")["tags"]) == ["blue", "red"]
    assert names(one(api, "populate[tags][sort]=name:desc")["tags"]) == ["red", "blue"]
    assert names(one(api, "populate[tags][filters][name]=red")["tags"]) == ["red"]


def test_a_filter_can_remove_a_to_one_relation(api: Api) -> None:
    assert one(api, "populate[author][filters][name]=Ben")["author"] is None
    assert one(api, "populate[author][filters][name]=Ann")["author"]["name"] == "Ann"


def test_the_derived_side_is_in_order_of_creation(api: Api) -> None:
    assert names(api.get("/api/authors/ann?populate=articles").data["articles"]) == ["one", "two"]
    assert api.get("/api/authors/ben?populate=articles").data["articles"] == []


def test_media(api: Api) -> None:
    found = one(api, "populate[cover][fields]=name&populate[gallery][fields]=url")
    assert set(found["cover"]) == {"id", "documentId", "name"}
    assert [f["url"] for f in found["gallery"]] == ["/uploads/b.png", "/uploads/a.png"]
    assert api.get("/api/articles/two?populate=cover,gallery").data["cover"] is None
    assert api.get("/api/articles/two?populate=cover,gallery").data["gallery"] == []


def test_components(api: Api) -> None:
    found = one(api, "populate[0]=seo&populate[1]=parts")
    assert found["seo"] == {"id": found["seo"]["id"], "text": "S"}
    assert [{**p, "id": 0} for p in found["parts"]] == [{"id": 0, "n": 2}, {"id": 0, "n": 1}]
    assert len({p["id"] for p in found["parts"]} | {found["seo"]["id"]}) == 3
    assert api.get("/api/articles/two?populate=seo,parts").data["seo"] is None
    assert api.get("/api/articles/two?populate=seo,parts").data["parts"] == []


def test_populate_inside_components(api: Api) -> None:
    assert one(api, "populate=seo.part.tag,seo.picture")["seo"]["part"]["tag"]["name"] == "red"
    assert one(api, "populate=seo.part.tag,seo.picture")["seo"]["picture"]["name"] == "a.png"
    assert one(api, "populate[seo][populate]=*")["seo"]["part"] == {
        "id": one(api, "populate=seo.part")["seo"]["part"]["id"],
        "n": 1,
    }
    parts = one(api, "populate[parts][fields]=n&populate[parts][populate][tag][fields]=name")["parts"]
    assert [p["tag"] and p["tag"]["name"] for p in parts] == ["blue", None]
    filtered = one(api, "populate[parts][filters][n][$gt]=1")["parts"]
    assert [p["n"] for p in filtered] == [2]


@pytest.mark.parametrize("query", ["populate=zone", "populate[zone]=true"])
def test_a_dynamic_zone_names_the_type_of_each_component(api: Api, query: str) -> None:
    found = [{k: v for k, v in part.items() if k != "id"} for part in one(api, query)["zone"]]
    assert found == [{"__component": "shared.quote", "text": "Q"}, {"__component": "shared.part", "n": 3}]


@pytest.mark.parametrize("key", ["true", "t", "f"])
def test_boolean_keys_are_ignored(api: Api, key: str) -> None:
    assert set(one(api, f"fields=title&populate[{key}]=author&populate[author][{key}]=x")) == {
        "id",
        "documentId",
        "title",
        "author",
    }


def test_a_dynamic_zone_in_detail(api: Api) -> None:
    every = one(api, "populate[zone][populate]=*")["zone"]
    assert every[0]["by"]["name"] == "Ann"
    assert every[1]["tag"]["name"] == "red"
    some = one(api, "populate=zone.by")["zone"]
    assert some[0]["by"]["name"] == "Ann"
    assert "tag" not in some[1]
    on = one(
        api,
        "populate[zone][on][shared.quote][fields]=text"
        "&populate[zone][on][shared.quote][populate][by][populate][articles][fields]=title",
    )["zone"]
    assert [part["__component"] for part in on] == ["shared.quote"]
    assert [a["title"] for a in on[0]["by"]["articles"]] == ["One", "Two"]
    both = one(api, "populate[zone][on][shared.quote]=true&populate[zone][on][shared.part][populate]=tag")
    assert both["zone"][1]["tag"]["name"] == "red"
    for word in ("true", "false", "0"):
        shown = one(api, f"populate[zone][on][shared.quote]={word}")["zone"]
        assert [part["__component"] for part in shown] == ["shared.quote"], word


def test_a_dynamic_zone_keeps_its_order(tmp_path: Path) -> None:
    api = Api.of(load(tmp_path, FILES))
    zone = [
        {"__component": "shared.part", "n": 2, "tag": "red"},
        {"__component": "shared.quote", "text": "q", "by": "ann"},
        {"__component": "shared.part", "n": 1, "tag": "blue"},
    ]
    api.put("/api/articles/one", {"zone": zone})
    others = "&populate[zone][on][shared.quote]=true"
    for sort in ("n", "tag.name"):
        found = one(api, f"populate[zone][on][shared.part][sort]={sort}{others}")["zone"]
        assert [part.get("n", part.get("text")) for part in found] == [2, "q", 1]
    assert api.get("/api/articles/one?populate[zone][on][shared.part][sort]=zzz").status == 400


# --- morph relations -----------------------------------------------------------------------------


def test_a_morph_relation_names_the_type_of_each_target(api: Api) -> None:
    found = one(api, "populate=about,links")
    assert (found["about"]["__type"], found["about"]["name"]) == ("api::tag.tag", "red")
    assert [(link["__type"], link["documentId"]) for link in found["links"]] == [
        ("api::author.author", "ann"),
        ("api::tag.tag", "blue"),
        ("api::article.article", "two"),
    ]
    assert api.get("/api/articles/two?populate=about,links").data["about"] is None


def test_a_morph_relation_in_detail(api: Api) -> None:
    found = one(
        api,
        "populate[links][on][api::tag.tag][fields]=name"
        "&populate[links][on][api::author.author][populate][articles][fields]=title",
    )["links"]
    assert [link["__type"] for link in found] == ["api::author.author", "api::tag.tag"]
    assert [a["title"] for a in found[0]["articles"]] == ["One", "Two"]
    assert set(found[1]) == {"__type", "id", "documentId", "name"}
    assert one(api, "populate[about][on][api::author.author]=true")["about"] is None
    assert one(api, "populate=links.articles")["links"][1]["articles"][0]["title"] == "One"


def test_a_morph_relation_is_not_wrapped_in_the_format_of_version_4(api: Api) -> None:
    headers = {"Strapi-Response-Format": "v4"}
    found = api.get("/api/articles?populate=about,links,tags&sort=title", headers=headers).data
    one = next(item["attributes"] for item in found if item["documentId"] == "one")
    assert (one["about"]["name"], one["links"][0]["name"]) == ("red", "Ann")
    assert one["tags"]["data"][0]["attributes"]["name"] == "blue"
    two = next(item["attributes"] for item in found if item["documentId"] == "two")
    assert (two["about"], two["links"]) == (None, [])


def test_the_documentId_of_a_component_can_be_requested(api: Api) -> None:
    assert set(one(api, "populate[seo][fields]=documentId")["seo"]) == {"id"}


def test_the_other_side_of_a_morph_relation_is_an_ordinary_relation(api: Api) -> None:
    red = api.get("/api/tags/red?populate=answer,mentions").data
    assert red["answer"]["title"] == "One"
    assert red["mentions"] == []
    blue = api.get("/api/tags/blue?populate[mentions][fields]=title&populate[answer]=true").data
    assert blue["answer"] is None
    assert [set(m) for m in blue["mentions"]] == [{"id", "documentId", "title"}]
    assert api.get("/api/articles/two?populate[mentions][filters][rank]=1").data["mentions"][0]["rank"] == 1
    assert api.get("/api/tags?filters[mentions][title]=One").ids == ["blue"]
    assert api.get("/api/tags?filters[answer][$null]=true").ids == ["blue"]
    assert api.get("/api/tags?sort=answer.title:desc").ids == ["red", "blue"]


@pytest.mark.parametrize(
    ("name", "options", "count"),
    [
        ("tags", "", 2),
        ("tags", "&populate[tags][filters][name]=red", 1),
        ("author", "", 1),
        ("mentions", "", 0),
        ("links", "", None),
        ("gallery", "", 2),
        ("cover", "", 1),
        ("parts", "", 2),
        ("parts", "&populate[parts][filters][n][$gt]=1", 1),
        ("seo", "", 1),
        ("zone", "", None),
    ],
)
def test_count_counts_the_populated_items(api: Api, name: str, options: str, count: int | None) -> None:
    found = one(api, f"populate[{name}][count]=true{options}")[name]
    if count is None:  # relations to several types are not counted
        assert isinstance(found, list)
    else:
        assert found == {"count": count}
    shown = one(api, f"populate[{name}][count]=false{options}")[name]
    assert shown == one(api, f"populate[{name}]=true{options}" if not options else options[1:])[name]


def test_a_count_in_the_format_of_version_4(api: Api) -> None:
    headers = {"Strapi-Response-Format": "v4"}
    found = api.get("/api/articles/one?populate[tags][count]=true", headers=headers).data
    assert found["attributes"]["tags"] == {"data": {"attributes": {"count": 2}}}


@pytest.mark.parametrize(
    ("sort", "numbers"),
    [
        ("[sort]=n", [1, 2]),
        ("[sort]=n:desc", [2, 1]),
        ("[sort][n]=desc", [2, 1]),
        ("[sort][0]=n:asc", [1, 2]),
        ("[sort]=id", [2, 1]),
        ("[sort]=id:desc", [1, 2]),
        ("[sort]=tag.name", [1, 2]),
        ("[sort]=tag.name:desc", [2, 1]),
    ],
)
def test_components_are_sorted(api: Api, sort: str, numbers: list[int]) -> None:
    assert [part["n"] for part in one(api, f"populate[parts]{sort}")["parts"]] == numbers


def test_a_component_that_the_zone_can_not_contain_is_ignored(api: Api) -> None:
    assert one(api, "populate[zone][on][shared.seo]=true")["zone"] == []


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "key", "path"),
    [
        ("populate=zzz", "zzz", "zzz"),
        ("populate[0]=author&populate[1]=zzz", "zzz", "zzz"),
        ("populate[zzz]=true", "zzz", None),
        ("populate[author][populate][zzz]=true", "zzz", "author"),
        ("populate[author][populate][articles][populate][zzz]=1", "zzz", "author.articles"),
        ("populate=title", "title", "title"),
        ("populate=pw", "pw", "pw"),
        ("populate=editor", "editor", "editor"),
        ("populate=author.zzz", "zzz", "author.zzz"),
        ("populate=author.articles.zzz", "zzz", "author.articles.zzz"),
        ("populate[author][populate]=zzz", "zzz", "zzz"),
        ("populate[author][zzz]=1", "zzz", "author"),
        ("populate[author][populate][articles][zzz]=1", "zzz", "author.articles"),
        ("populate[tags][0]=*", "*", "tags"),
        ("populate[seo][0]=part", "part", "seo.part"),
        ("populate[tags][0]=zzz", "zzz", "tags"),
        ("populate[author]=articles", "articles", "author.articles"),
        ("populate[author]=zzz.yyy", "zzz", "author"),
        ("populate[author][populate][articles]=zzz", "zzz", "author.articles"),
        ("populate[author][populate][articles]=title", "title", "author.articles.title"),
        ("populate[zone][on][shared.part]=zzz.yyy", "zzz", "zone"),
        ("populate[author][populate]=zzz&populate[tags][fields]=yyy", "zzz", "zzz"),
        ("populate[zone][on][shared.part][fields]=yyy&populate[zone][on][zzz]=1", "zzz", "zone.on.zzz"),
        ("populate[seo][on]=x", "on", "seo.on"),
        ("populate[zone][on]=true", "on", "zone.on"),
        ("populate[author][fields]=zzz", "zzz", None),
        ("populate[author][fields]=articles", "articles", "articles"),
        ("populate[author][filters][zzz]=1", "zzz", None),
        ("populate[author][sort]=zzz", "zzz", None),
        ("populate[seo][fields]=secret", "secret", "secret"),
        ("populate[parts][fields]=hidden", "hidden", "hidden"),
        ("populate[zone][fields]=n", "fields", "zone"),
        ("populate[zone][populate]=zzz", "populate", "zone"),
        ("populate[zone][populate]=", "populate", "zone"),
        ("populate[zone][populate]=by", "populate", "zone"),
        ("populate[author][populate]=", "", "author"),
        ("populate[author][fields]=", "", None),
        ("populate[0][nope]=1&populate[1]=author&populate[2]=tags", "2", None),
        ("populate[nope]=author&populate[2]=author", "2", None),
        ("populate[author][sort]=name:up&populate[zzz]=1", "zzz", None),
        ("populate[author][filters][name][$null]=x&populate[author][fields]=zzz", "zzz", None),
        ("populate[zone][on][shared.zzz]=true", "shared.zzz", "zone.on.shared.zzz"),
        ("populate[tags][count]=maybe", "count", "tags"),
        ("populate[tags][count][page]=1", "count", "tags"),
        ("populate[links][on][api::zzz.zzz]=true", "api::zzz.zzz", "links.on.api::zzz.zzz"),
        ("populate[author][name][$eq]=x", "name", "author.name"),
        ("populate[zone][x]=1&populate[zone][on][shared.quote][fields]=zzz", "zzz", None),
        ("populate[zone][x]=1&populate[zone][on][shared.quote]=true", "x", "zone"),
        ("populate[author][articles][sort]=x", "articles", "author.articles"),
        ("populate[author][fields]=createdBy", "createdBy", "createdBy"),
        ("populate[localizations]=true", "localizations", "localizations"),
    ],
)
def test_attributes_that_can_not_be_populated_are_named(
    api: Api, query: str, key: str, path: str | None
) -> None:
    for url in (f"/api/articles?{query}", f"/api/articles/one?{query}"):
        error = api.get(url).error
        assert (error["status"], error["name"]) == (400, "ValidationError")
        assert error["message"].startswith(f"Invalid key {key}")
        assert error["details"] == {"key": key, "path": path, "source": "query", "param": "populate"}


@pytest.mark.parametrize(
    "query",
    [
        "populate[author]=maybe",
        "populate[0][author]=true",
        "populate=tags&populate[author]=true",
        "populate[author]=articles&populate[author][populate]=articles",
        "populate[author][0]=name",
        f"populate={'next.' * 3000}next",
        "populate[author][populate][0][x]=1",
    ],
)
def test_other_values_are_refused(api: Api, query: str) -> None:
    error = api.get(f"/api/articles?{query}").error
    assert (error["status"], error["name"]) == (400, "ValidationError")


# --- drafts and locales --------------------------------------------------------------------------


def test_drafts_are_populated_only_in_drafts(api: Api) -> None:
    path = "/api/authors/ann?populate[articles][fields]=publishedAt"
    assert names(api.get(path).data["articles"]) == ["one", "two"]
    drafts = api.get(f"{path}&status=draft").data["articles"]
    assert sorted(names(drafts)) == ["four", "one", "two"]
    assert {d["publishedAt"] for d in drafts} == {None}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Api:
    place = {
        "name": translated(STRING),
        "near": relation("manyToMany", "place"),
        "kind": relation("manyToOne", "kind", inversedBy="places"),
    }
    kind = {"name": STRING, "places": relation("oneToMany", "place", mappedBy="kind")}
    files: dict[str, Any] = {
        **collection("place", place, localized=True),
        **collection("kind", kind),
        **documents("kinds", town={"name": "town"}),
        "site.yaml": "locales: {default: en, available: [en, fr, de]}",
    }
    for name, locales in (("london", "en fr de"), ("lyon", "en fr"), ("bonn", "de")):
        for locale in locales.split():
            data = {"name": f"{name} {locale}", "kind": "town", "near": ["lyon", "london", "bonn"]}
            ending = "" if locale == "en" else f".{locale}"
            files[f"content/places/{name}{ending}.json"] = json.dumps(data)
    return Api.of(load(tmp_path_factory.mktemp("places"), files))


def test_relations_stay_in_their_locale(places: Api) -> None:
    for locale, near in (
        ("en", ["lyon en", "london en"]),
        ("fr", ["lyon fr", "london fr"]),
        ("de", ["london de", "bonn de"]),
    ):
        found = places.get(
            f"/api/places/london?locale={locale}&populate[near][populate]=near&populate[kind]=true"
        ).data
        assert [n["name"] for n in found["near"]] == near
        assert [n["name"] for n in found["near"][0]["near"]] == near
        assert found["kind"]["name"] == "town"


EVERY_PLACE = ["bonn de", "london de", "london en", "london fr", "lyon en", "lyon fr"]


@pytest.mark.parametrize("locale", ["", "&locale=fr", "&locale=*"])
def test_a_document_without_locales_relates_to_every_locale(places: Api, locale: str) -> None:
    path = f"/api/kinds/town?populate[places][fields]=name&populate[places][sort]=name{locale}"
    assert [p["name"] for p in places.get(path.replace("&locale=*", "")).data["places"]] == EVERY_PLACE
    narrowed = places.get(f"{path}&populate[places][filters][locale]=fr".replace("&locale=*", "")).data
    assert [p["name"] for p in narrowed["places"]] == ["london fr", "lyon fr"]


def test_paths_through_a_document_without_locales_lead_to_every_locale(places: Api) -> None:
    path = "populate[kind][populate][places][fields]=name&populate[kind][populate][places][sort]=name"
    found = places.get(f"/api/places/london?locale=fr&{path}").data["kind"]["places"]
    assert [p["name"] for p in found] == EVERY_PLACE


def test_filters_and_sorting_see_every_locale(places: Api) -> None:
    for name in EVERY_PLACE:
        assert places.get("/api/kinds", query_string={"filters[places][name]": name}).ids == ["town"]
    assert places.get("/api/kinds?filters[places][name]=bonn fr").ids == []
    assert places.get("/api/kinds?sort=places.name").ids == ["town"]


def test_relations_of_a_document_without_locales_prefer_the_default_locale(
    make_api: MakeApi,
) -> None:
    api = make_api(
        {
            **collection(
                "list", {"places": relation("manyToMany", "place"), "best": relation("oneToOne", "place")}
            ),
            **collection("place", {"name": translated(STRING)}, localized=True),
            "site.yaml": "locales: {default: en, available: [fr, en, de]}",
            "content/places/a.json": '{"name": "a en"}',
            "content/places/a.fr.json": '{"name": "a fr"}',
            "content/places/b.de.json": '{"name": "b de"}',
            **documents("lists", all={"places": ["b", "a"], "best": "b"}),
        }
    )
    shown = api.get("/api/lists/all?populate=*").data
    assert [p["name"] for p in shown["places"]] == ["b de", "a en"]
    assert shown["best"]["name"] == "b de"
    for name, lists in (("a en", ["all"]), ("b de", ["all"]), ("a fr", [])):
        assert api.get("/api/lists", query_string={"filters[places][name]": name}).ids == lists
        assert api.get("/api/lists", query_string={"filters[places][name][$ne]": name}).ids == ["all"]
    assert api.get("/api/lists?filters[best][name]=b de").ids == ["all"]


def test_every_locale_populates_its_own(places: Api) -> None:
    found = places.get("/api/places?locale=*&populate=near&sort=name").data
    assert [(d["name"], [n["name"] for n in d["near"]]) for d in found if d["locale"] == "de"] == [
        ("bonn de", ["london de", "bonn de"]),
        ("london de", ["london de", "bonn de"]),
    ]
    assert [n["name"] for d in found if d["name"] == "lyon fr" for n in d["near"]] == ["lyon fr", "london fr"]


def test_localizations(places: Api) -> None:
    found = places.get("/api/places/london?locale=fr&populate[localizations][fields]=name").data
    assert [(v.get("locale", ""), v["name"]) for v in found["localizations"]] == [
        ("", "london en"),
        ("", "london de"),
    ]
    assert "localizations" in places.get("/api/places/london?populate=*").data
    assert places.get("/api/places/bonn?locale=de&populate=localizations").data["localizations"] == []
    nested = places.get("/api/places/london?populate[localizations][populate]=near").data["localizations"]
    assert [n["name"] for n in nested[0]["near"]] == ["lyon fr", "london fr"]


def test_a_dangling_relation_reads_as_absent(make_api: MakeApi) -> None:
    note = {
        "to": relation("manyToOne", "note"),
        "all": relation("manyToMany", "note"),
        "pic": {"type": "media"},
    }
    made = documents("notes", a={"to": "gone", "all": ["gone", "a"], "pic": "gone.png"})
    found = make_api({**collection("note", note), **made}).get("/api/notes/a?populate=*").data
    assert (found["to"], names(found["all"]), found["pic"]) == (None, ["a"], None)


def test_targets_with_equal_sort_keys_are_in_default_order(make_api: MakeApi) -> None:
    created = {n: f"2024-01-0{i}T00:00:00.000Z" for i, n in enumerate("abc", 1)}
    tags = {n: {"rank": 2 if n == "a" else 1, "createdAt": at} for n, at in created.items()}
    api = make_api(
        {
            **collection("tag", {"rank": INTEGER}),
            **collection("page", {"tags": relation("manyToMany", "tag")}),
            **documents("tags", **tags),
            **documents("pages", one={"tags": ["c", "a", "b"]}),
        }
    )

    def ids(query: str) -> list[str]:
        return [tag["documentId"] for tag in api.get(f"/api/pages/one?{query}").data["tags"]]

    assert ids("populate=tags") == ["c", "a", "b"]
    assert ids("populate[tags][sort]=rank") == ["b", "c", "a"]
    assert ids("populate[tags][sort]=rank:desc") == ["a", "b", "c"]


def test_the_number_of_populated_attributes_is_limited(make_api: MakeApi) -> None:
    """A relation to any type is followed for each possible type, so the number of attributes multiplies at
    each level.
    """
    to_any = {"to": {"type": "relation", "relation": "morphToMany"}}
    api = make_api(
        {
            **collection("a", to_any),
            **collection("b", to_any),
            **documents("as", one={"to": [{"__type": "api::b.b", "documentId": "two"}]}),
            **documents("bs", two={}),
        }
    )
    deep = "populate=to.to.to.to.to.to"
    assert names(api.get(f"/api/as/one?{deep}").data["to"]) == ["two"]
    error = api.get(f"/api/as?populate={'to.' * 18}to").error
    assert (error["status"], error["name"]) == (400, "ValidationError")
    assert error["message"] == '"populate" selects more than 2000 attributes; select fewer'


def test_a_document_without_locales_leads_to_the_first_locale_that_the_reader_sees(
    make_api: MakeApi,
) -> None:
    files: dict[str, Any] = {
        **collection("place", {"name": translated(STRING)}, localized=True, drafts=True),
        **collection("kind", {"best": relation("manyToMany", "place")}),
        **documents("kinds", town={"best": ["begun", "french", "known"]}),
        "site.yaml": "locales: {default: en, available: [en, fr]}",
        "content/places/begun.draft.json": '{"name": "begun"}',
        "content/places/begun.fr.json": '{"name": "entamé"}',
        "content/places/french.fr.json": '{"name": "français"}',
        "content/places/known.json": '{"name": "known"}',
    }
    api = make_api(files)
    shown = {
        s: api.get(f"/api/kinds/town?populate=best&status={s}").data["best"] for s in ("published", "draft")
    }
    assert [place["name"] for place in shown["published"]] == ["entamé", "français", "known"]
    assert [place["name"] for place in shown["draft"]] == ["begun", "français", "known"]
