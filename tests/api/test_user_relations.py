"""Tests of relations between content and users: writing, populating, filtering, sorting and permissions."""

import json
from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, component, relation

USER = "plugin::users-permissions.user"


def to_user(kind: str, **options: Any) -> dict[str, Any]:
    return {"type": "relation", "relation": kind, "target": USER, **options}


FILES = {
    **collection(
        "article",
        {
            "title": STRING,
            "author": to_user("manyToOne", inversedBy="articles"),
            "editors": to_user("manyToMany", inversedBy="edited"),
            "owner": to_user("oneToOne", inversedBy="profile"),
            "fans": to_user("oneToMany", mappedBy="favourite"),
            "part": {"type": "component", "component": "shared.credit"},
            "parts": {"type": "dynamiczone", "components": ["shared.credit"]},
            "about": {"type": "relation", "relation": "morphToMany"},
        },
        drafts=True,
        localized=True,
    ),
    **collection("note", {"text": STRING, "article": relation("manyToOne", "article")}),
    **component("shared.credit", {"by": to_user("manyToOne"), "label": STRING}),
    "site.yaml": (
        "locales: {default: en, available: [en, fr]}\napi: {populate_with_pagination: allow}\n"
        "roles: {public: {article: [find, findOne, create, update], note: [find]}, authenticated: {}}\n"
    ),
}
NAMES = ("ann", "bob", "cyd")


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    """A site with the users ann, bob and cyd, and an article by ann."""
    api = make_api(FILES)
    for name in NAMES:
        body = {"username": name, "email": f"{name}@example.org", "password": "secret12", "role": 1}
        assert api.ask("POST", "/api/users", json=body).status == 201
    api.token("reader", may=["article.find", "article.findOne", "note.find"])
    api.token("both", may=["article.find", "article.findOne", "note.find", "user.find", "user.findOne"])
    return api


def user(api: Api, name: str) -> dict[str, Any]:
    (found,) = api.get(f"/api/users?filters[username]={name}").body
    return dict(found)


def write(api: Api, data: dict[str, Any], path: str = "/api/articles", who: str = "full") -> Any:
    answer = api.post(path, {"title": "t", **data}, who)
    return answer.data["documentId"] if answer.status == 201 else answer


def names(value: Any) -> Any:
    """Return the names of populated users."""
    if isinstance(value, list):
        return [item["username"] for item in value]
    return value and value["username"]


def shown(api: Api, article: str, field: str, who: str = "full", query: str = "") -> Any:
    return names(api.get(f"/api/articles/{article}?populate={field}{query}", who).data[field])


def test_a_user_is_named_in_many_ways(api: Api) -> None:
    ann, article = user(api, "ann"), write(api, {})
    ways: list[Any] = [
        ann["id"],
        ann["documentId"],
        {"id": ann["id"]},
        {"documentId": ann["documentId"]},
        ann,
    ]
    ways += [[way] for way in ways]
    ways += [{"connect": way} for way in ways] + [{"set": way} for way in ways]
    for way in ways:
        assert api.put(f"/api/articles/{article}", {"author": way}).status == 200, way
        assert shown(api, article, "author") == "ann", way
        api.put(f"/api/articles/{article}", {"author": None})
        assert shown(api, article, "author") is None


def test_users_are_connected_disconnected_and_placed(api: Api) -> None:
    ann, bob, cyd = (user(api, name) for name in NAMES)
    article = write(api, {"editors": [ann["id"], bob["documentId"]]})
    path = f"/api/articles/{article}"
    api.put(path, {"editors": {"connect": [{"id": cyd["id"], "position": {"before": bob["documentId"]}}]}})
    assert shown(api, article, "editors") == ["ann", "cyd", "bob"]
    api.put(path, {"editors": {"disconnect": [ann["id"], {"documentId": bob["documentId"]}, "gone"]}})
    assert shown(api, article, "editors") == ["cyd"]
    api.put(path, {"editors": {"connect": [ann], "disconnect": [cyd]}})
    assert shown(api, article, "editors") == ["ann"]


def test_the_file_says_the_documentid(api: Api) -> None:
    ann, bob = user(api, "ann"), user(api, "bob")
    article = write(api, {"author": ann["id"], "editors": [bob, ann["id"]], "part": {"by": bob["id"]}})
    text = (api.site.root / f"content/articles/{article}.md").read_text()
    assert f"author: {ann['documentId']}\n" in text
    assert f"- {bob['documentId']}\n" in text
    assert f"by: {bob['documentId']}\n" in text
    assert "example.org" not in text


@pytest.mark.parametrize(
    "value",
    ["nobody", 99, {"id": 99}, {"connect": [99]}, -1, 0, 1.5, True, {"id": True}, {"username": "ann"}],
)
def test_a_user_that_there_is_not_is_refused(api: Api, value: Any) -> None:
    article = write(api, {"author": 1})
    answer = api.put(f"/api/articles/{article}", {"author": value})
    assert answer.error["name"] == "ValidationError"
    assert "ann" not in json.dumps(answer.body["error"]["details"].get("key", ""))
    assert shown(api, article, "author") == "ann"


def test_users_are_populated_wherever_they_are(api: Api) -> None:
    article = write(
        api,
        {
            "part": {"by": 1},
            "parts": [{"__component": "shared.credit", "by": 2}],
            "about": [{"__type": USER, "id": 3}],
        },
    )
    query = "populate[part][populate]=by&populate[parts][on][shared.credit][populate]=by&populate=about"
    data = api.get(
        f"/api/articles/{article}?{query.replace('&populate=about', '&populate[about]=true')}"
    ).data
    assert (names(data["part"]["by"]), names(data["parts"][0]["by"])) == ("ann", "bob")
    assert [(item["__type"], item["username"]) for item in data["about"]] == [(USER, "cyd")]
    note = api.post("/api/notes", {"article": article}).data["documentId"]
    api.put(f"/api/articles/{article}", {"author": 2})
    deep = api.get(f"/api/notes/{note}?populate[article][populate][author][populate]=role").data
    assert deep["article"]["author"]["role"]["type"] == "authenticated"


def test_drafts_and_locales_relate_to_users(api: Api) -> None:
    article = write(api, {"author": 1})
    api.ask("PUT", f"/api/articles/{article}?status=draft", json={"data": {"author": 2}})
    api.ask("PUT", f"/api/articles/{article}?locale=fr", json={"data": {"title": "f", "author": 3}})
    assert shown(api, article, "author") == "ann"
    assert shown(api, article, "author", query="&status=draft") == "bob"
    assert shown(api, article, "author", query="&locale=fr") == "cyd"


def test_filters_and_sort_lead_through_users(api: Api) -> None:
    by = {name: write(api, {"title": name, "author": i}) for i, name in enumerate(NAMES, 1)}
    by["none"] = write(api, {"title": "none"})

    def titles(query: str) -> list[str]:
        return [d["title"] for d in api.get(f"/api/articles?{query}").data]

    assert titles("filters[author][username]=bob") == ["bob"]
    assert titles("filters[author][username][$contains]=n") == ["ann"]
    assert titles("filters[author]=2") == titles("filters[author][id][$eq]=2") == ["bob"]
    assert titles(f"filters[author][documentId]={user(api, 'cyd')['documentId']}") == ["cyd"]
    assert titles("filters[author][$null]=true") == ["none"]
    assert titles("filters[author][role][type]=authenticated&sort=title") == ["ann", "bob", "cyd"]
    assert titles("sort=author.username:desc") == ["cyd", "bob", "ann", "none"]
    assert titles("filters[author][articles][title]=ann") == ["ann"]
    assert [d["username"] for d in api.get("/api/users?filters[articles][title]=bob").body] == ["bob"]
    assert [d["username"] for d in api.get("/api/users?sort=articles.title:desc&limit=1").body] == ["cyd"]


def test_the_other_side_is_populated_on_users(api: Api) -> None:
    first = write(api, {"title": "first", "author": 1, "owner": 1, "fans": [1, 2]})
    write(api, {"title": "second", "author": 1, "editors": [2, 1]})
    query = "populate[articles][sort]=title&populate[edited][fields]=title&populate=profile"
    ann = api.get("/api/users/1?populate=*").body
    assert [d["title"] for d in ann["articles"]] == ["first", "second"]
    assert [d["title"] for d in ann["edited"]] == ["second"]
    assert (ann["profile"]["documentId"], ann["favourite"]["title"]) == (first, "first")
    assert ann["role"]["name"] == "Authenticated"
    bob = api.get(f"/api/users/2?{query.replace('populate=profile', 'populate[profile]=true')}").body
    assert (bob["articles"], [d["title"] for d in bob["edited"]], bob["profile"]) == ([], ["second"], None)
    api.token("people", may=["user.find", "user.findOne"])
    assert api.get("/api/users/1?populate=*", "people").body.keys() & {"articles", "edited", "role"} == set()
    assert api.get("/api/users?filters[articles][title]=first", "people").status == 400


def test_one_user_owns_one_article(api: Api) -> None:
    first, second = write(api, {"owner": 1, "fans": [1, 2]}), write(api, {"owner": 1, "fans": [2]})
    assert (shown(api, first, "owner"), shown(api, second, "owner")) == (None, "ann")
    assert (shown(api, first, "fans"), shown(api, second, "fans")) == (["ann"], ["bob"])


def test_only_who_may_find_users_sees_them(api: Api) -> None:
    article = write(api, {"author": 1, "part": {"by": 1}, "about": [{"__type": USER, "id": 1}]})
    for who, sees in (("full", True), ("both", True), ("reader", False), ("public", False)):
        data = api.get(f"/api/articles/{article}?populate=*", who).data
        assert ("author" in data, "editors" in data) == (sees, sees)
        assert [item["username"] for item in data["about"]] == (["ann"] if sees else [])
        part = api.get(f"/api/articles/{article}?populate[part][populate]=*", who).data["part"]
        assert ("by" in part) == sees
        for query in (
            "filters[author][username]=ann",
            "filters[author]=1",
            "filters[author][$notNull]=true",
            "filters[part][by][username]=ann",
            "filters[$or][0][editors][id]=1",
            "sort=author.username",
            "populate[author][filters][username]=ann",
        ):
            answer = api.get(f"/api/articles?{query}", who)
            allowed = 200 if sees or query.startswith("populate") else 400
            assert answer.status == allowed, (who, query)
            assert sees or "ann@example.org" not in json.dumps(answer.body)


@pytest.mark.parametrize(
    "data",
    [
        {"author": 1},
        {"author": {"connect": [1]}},
        {"author": None},
        {"editors": []},
        {"editors": {"disconnect": [99]}},
        {"part": {"by": 99}},
        {"parts": [{"__component": "shared.credit", "by": 1}]},
        {"about": [{"__type": USER, "id": 1}]},
        {"about": {"disconnect": [{"__type": USER, "id": 99}]}},
    ],
)
def test_who_may_not_find_users_can_not_relate_to_them(api: Api, data: dict[str, Any]) -> None:
    answer = api.post("/api/articles", {"title": "t", **data}, "public")
    assert answer.error["status"] == 400
    assert answer.error["message"].startswith("Invalid key")


def test_a_user_that_is_gone_is_nobody(api: Api) -> None:
    article = write(api, {"author": 1, "editors": [1, 2]})
    assert shown(api, article, "author") == "ann"
    api.ask("DELETE", "/api/users/1")
    assert (shown(api, article, "author"), shown(api, article, "editors")) == (None, ["bob"])
    assert api.get("/api/articles?filters[author][$null]=true").ids == [article]
    api.put(f"/api/articles/{article}", {"title": "other"})
    assert "author: " in (api.site.root / f"content/articles/{article}.md").read_text()


def test_an_answer_shows_users_as_they_are_now(api: Api) -> None:
    """A cached response must not be used after a user has changed, although the content is the same."""
    article = write(api, {"author": 1})
    one, many = f"/api/articles/{article}?populate=author", "/api/articles?populate=author"
    tags = {api.get(path).headers["ETag"] for path in (one, one)}
    assert len(tags) == 1
    for change in ({"username": "anna"}, {"blocked": True}, {"role": 2}):
        api.ask("PUT", "/api/users/1", json=change)
        for path in (one, many, one):
            data = api.get(path).data
            shown_ = (data[0] if isinstance(data, list) else data)["author"]
            for key in change.keys() - {"role"}:
                assert shown_[key] == change[key]  # type: ignore[index]
        tags.add(api.get(one).headers["ETag"])
    assert len(tags) == 3 + 1
    titles = "/api/articles?fields=title"
    before = api.get(titles).headers["ETag"]
    api.ask("DELETE", "/api/users/1")
    assert api.get(titles).headers["ETag"] == before
    assert api.get(one).data["author"] is None


def test_roles_of_site_yaml_are_seen_when_they_change(api: Api) -> None:
    path = api.site.root / "site.yaml"
    path.write_text(path.read_text().replace("authenticated: {}", "authenticated: {}, chief-editor: {}"))
    api.site.refresh()
    api.ask("PUT", "/api/users/1", json={"role": "chief-editor"})
    article = write(api, {"author": 1})
    data = api.get(f"/api/articles/{article}?populate[author][populate]=role").data
    assert data["author"]["role"]["name"] == "Chief editor"


@pytest.mark.parametrize("name", ["username", "role", "password", "id", "documentId", "locale", "edited"])
def test_two_things_of_users_can_not_have_one_name(make_api: MakeApi, name: str) -> None:
    attributes = {
        "one": to_user("manyToOne", inversedBy=name),
        "two": to_user("manyToOne", inversedBy="edited"),
    }
    with pytest.raises(Exception, match=r"content-types/page.json.*users already have an attribute named"):
        make_api(collection("page", attributes))
