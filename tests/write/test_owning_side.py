"""Relations that are stored in the files of other documents: drafts, publishing, and relations to oneself."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, documents, make, relation, translated

PLACE = {
    "name": STRING,
    "code": {"type": "string", "unique": True},
    "near": relation("oneToMany", "place", mappedBy="nearOf"),
    "nearOf": relation("manyToOne", "place", inversedBy="near"),
    "sign": relation("oneToOne", "sign", inversedBy="place"),
}
FILES: dict[str, Any] = {
    **collection("place", PLACE, drafts=True),
    **collection("sign", {"name": STRING, "place": relation("oneToOne", "place", mappedBy="sign")}),
    **documents("signs", s={"name": "S"}, t={"name": "T"}),
    **documents("places", a={"name": "a"}, b={"name": "b", "nearOf": "a", "sign": "s"}, c={"name": "c"}),
}


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(dict(FILES))


def near(api: Api, status: str) -> dict[str, list[str]]:
    """Return for each place the places that are near it."""
    found = api.get(f"/api/places?status={status}&populate[near][sort]=name&sort=name").data
    return {d["documentId"]: sorted(n["documentId"] for n in d["near"]) for d in found if d["near"]}


def files(api: Api) -> set[str]:
    return {path.name for path in (api.site.root / "content/places").iterdir()}


def test_publishing_takes_with_it_what_the_draft_moved(api: Api) -> None:
    api.put("/api/places/a?status=draft", {"near": ["c"]})
    assert (near(api, "published"), near(api, "draft")) == ({"a": ["b"]}, {"a": ["c"]})
    api.put("/api/places/a", {})
    assert near(api, "published") == near(api, "draft") == {"a": ["c"]}
    assert files(api) == {"a.json", "b.json", "c.json"}


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (["c"], {"a": ["c"]}),  # the same targets that the draft already has
        ({}, {"a": ["c"]}),
        ({"connect": ["b"]}, {"a": ["b", "c"]}),
        ([], {}),
    ],
)
def test_publishing_takes_it_with_it_where_the_relation_is_named_as_well(
    api: Api, change: Any, left: dict[str, list[str]]
) -> None:
    api.put("/api/places/a?status=draft", {"near": ["c"]})
    api.put("/api/places/a", {"near": change})
    assert near(api, "published") == near(api, "draft") == left


def test_no_write_changes_more_files_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    for most in range(1, 12):
        api = make(tmp_path / str(most), FILES)
        api.put("/api/places/a?status=draft", {"near": ["c", "b"]})
        api.put("/api/places/c?status=draft", {"near": ["b"]})
        before = {path: path.read_bytes() for path in (api.root / "content").rglob("*.json")}
        monkeypatch.setattr("server.write.context.MAX_FILES", most)
        answer = api.put("/api/places/a", {"near": {"set": ["c", "b"]}})
        monkeypatch.undo()
        after = {path: path.read_bytes() for path in (api.root / "content").rglob("*.json")}
        changed = {path for path in before | after if before.get(path) != after.get(path)}
        assert len(changed) <= (most if answer.status == 200 else 0)
        done += changed
    assert any(not path.exists() for path in done)


def test_what_was_moved_on_in_a_draft_is_published_with_the_one_that_has_it(api: Api) -> None:
    api.put("/api/places/c?status=draft", {"name": "C", "near": ["b"]})
    assert (near(api, "published"), near(api, "draft")) == ({"a": ["b"]}, {"c": ["b"]})
    api.put("/api/places/c", {})
    assert near(api, "published") == {"c": ["b"]}
    assert api.get("/api/places/c").data["name"] == "C"


def test_the_drafts_of_others_stay_drafts(api: Api) -> None:
    api.put("/api/places/b?status=draft", {"name": "B"})
    api.put("/api/places/c?status=draft", {"near": ["b"]})
    api.put("/api/places/c", {})
    assert api.get("/api/places/b").data["name"] == "b"
    assert api.get("/api/places/b?status=draft").data["name"] == "B"


def test_one_to_one_taken_in_a_draft_is_taken_when_that_is_published(api: Api) -> None:
    def owners(status: str) -> list[str]:
        return api.get(f"/api/places?filters[sign][name]=S&status={status}").ids

    api.put("/api/places/c?status=draft", {"sign": "s"})
    assert (owners("published"), owners("draft")) == (["b"], ["c"])
    api.put("/api/places/c", {})
    assert owners("published") == owners("draft") == ["c"]


@pytest.mark.parametrize("data", ["c", ["c"], {"connect": ["c"]}])
def test_what_a_draft_relates_to_is_published_from_the_side_without_drafts(api: Api, data: Any) -> None:
    api.put("/api/places/c?status=draft", {"sign": "t"})
    assert api.get("/api/places/c?populate=sign").data["sign"] is None
    api.put("/api/signs/t", {"place": data})
    assert api.get("/api/places/c?populate=sign").data["sign"]["documentId"] == "t"


def test_a_relation_to_itself_from_its_other_side(api: Api) -> None:
    api.put("/api/places/c?status=draft", {"name": "C", "near": ["c", "b"]})
    assert near(api, "draft") == {"c": ["b", "c"]}
    assert api.get("/api/places/c?status=draft").data["name"] == "C"
    api.put("/api/places/c", {})
    assert near(api, "published") == {"c": ["b", "c"]}
    api.put("/api/places/c", {"near": {"disconnect": ["c"]}})
    assert near(api, "published") == {"c": ["b"]}


@pytest.mark.parametrize("position", ["before", "after"])
def test_it_is_placed_next_to_others_while_it_relates_to_itself(api: Api, position: str) -> None:
    change = [{"documentId": "c", "position": {position: "b"}}]
    assert api.put("/api/places/a", {"near": {"connect": change}}).status == 200
    assert near(api, "published") == {"a": ["b", "c"]}
    change = [{"documentId": "a", "position": {position: "b"}}]
    assert api.put("/api/places/a", {"near": {"connect": change}}).status == 200
    assert near(api, "published") == {"a": ["a", "b", "c"]}
    change = [{"documentId": "b", "position": {position: "missing"}}]
    assert api.put("/api/places/a", {"near": {"connect": change}}).status == 400


@pytest.mark.parametrize(
    ("data", "related"),
    [({"near": [], "nearOf": "c"}, True), ({"nearOf": None, "near": ["c"]}, False), ({"near": ["c"]}, True)],
)
def test_of_both_sides_of_a_relation_to_itself_the_later_in_the_schema_counts(
    api: Api, data: dict[str, Any], related: bool
) -> None:
    api.put("/api/places/c", data)
    assert near(api, "published").get("c", []) == (["c"] if related else [])


def test_a_draft_that_relates_to_itself_can_be_published(api: Api) -> None:
    made = api.post("/api/places?status=draft", {"name": "d"}).data["documentId"]
    api.put(f"/api/places/{made}?status=draft", {"near": [made]})
    assert api.put(f"/api/places/{made}", {}).status == 200
    assert near(api, "published")[made] == [made]


def test_a_write_from_the_other_side_leaves_the_timestamps_alone(api: Api) -> None:
    api.put("/api/places/b", {"name": "B"})
    before = api.get("/api/places/b").data
    api.put("/api/places/c", {"near": ["b"]})
    after = api.get("/api/places/b?populate=nearOf").data
    assert after["nearOf"]["documentId"] == "c"
    for name in ("createdAt", "updatedAt", "publishedAt"):
        assert after[name] == before[name]


def test_without_drafts_a_document_is_published_when_it_is_made(api: Api) -> None:
    made = api.post("/api/signs", {"name": "new"}).data
    changed = api.put(f"/api/signs/{made['documentId']}", {"name": "newer"}).data
    assert changed["publishedAt"] == made["publishedAt"] == made["createdAt"]
    assert changed["updatedAt"] > made["updatedAt"]


# --- unique values -------------------------------------------------------------------------------


def test_a_unique_value_is_compared_with_what_is_published(api: Api) -> None:
    api.put("/api/places/a", {"code": "one"})
    api.put("/api/places/a?status=draft", {"code": "two"})
    assert api.put("/api/places/b", {"code": "two"}).status == 200  # only a draft has the same code
    assert api.put("/api/places/c?status=draft", {"code": "two"}).status == 200
    for place in ("a", "c"):
        error = api.put(f"/api/places/{place}", {}).error
        assert error["details"]["errors"][0]["path"] == ["code"]
    assert api.put("/api/places/b", {"name": "still b"}).status == 200
    assert api.put("/api/places/a", {"code": "one"}).status == 200


def test_a_target_can_be_asked_to_be_published(api: Api) -> None:
    api.post("/api/places?status=draft", {"name": "begun"})
    (begun,) = [p["documentId"] for p in api.get("/api/places?status=draft").data if p["name"] == "begun"]
    for status, answered in (("published", 400), ("draft", 200)):
        place = {"connect": [{"documentId": begun, "status": status}], "options": {"strict": True}}
        assert api.put("/api/signs/s", {"place": place}).status == answered


def test_one_document_has_what_has_no_locale_in_all_its_locales(make_api: MakeApi) -> None:
    place = {"name": translated(STRING), "sign": relation("oneToOne", "sign", inversedBy="place")}
    files = {
        **collection("place", place, drafts=True, localized=True),
        **collection("sign", {"name": STRING, "place": relation("oneToOne", "place", mappedBy="sign")}),
        **documents("signs", s={"name": "S"}),
        "site.yaml": "locales: {default: en, available: [en, fr, de]}",
    }
    for name in "ab":
        files |= {
            f"content/places/{name}{end}.json": '{"sign": "s"}' if name == "a" else "{}"
            for end in ("", ".fr")
        }
    api = make_api(files)

    def having() -> set[str]:
        found = api.get("/api/places?locale=*&populate=sign").data
        return {f"{d['documentId']} {d['locale']}" for d in found if d["sign"]}

    assert having() == {"a en", "a fr"}
    api.put("/api/places/b", {"sign": "s"})
    assert having() == {"b en"}
    api.put("/api/places/b?locale=fr", {"sign": "s"})
    assert having() == {"b en", "b fr"}
    api.put("/api/signs/s", {"place": "a"})
    assert having() == {"a en"}
    assert api.get("/api/signs/s?populate=place").data["place"]["documentId"] == "a"
    api.put("/api/signs/s", {"place": {"documentId": "a", "locale": "en"}})
    assert having() == {"a en"}
    # When the same value is sent again, as in a response that is sent back, nothing changes.
    for _ in range(2):
        api.put("/api/signs/s", {"place": {"documentId": "b", "locale": "fr"}})
        assert having() == {"b fr"}
    api.put("/api/signs/s", {"place": None})
    assert having() == set()


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ([], set()),
        (["b"], {"b en"}),
        ({"set": ["c"]}, {"c en"}),
        ([{"documentId": "a", "locale": "fr"}, "b"], {"a fr", "b en"}),
        ({"disconnect": [{"documentId": "a", "locale": "fr"}]}, {"a en", "b en", "b fr", "c en"}),
    ],
)
def test_what_has_no_locale_relates_to_the_locale_that_is_said_or_the_default_one(
    make_api: MakeApi, value: Any, left: set[str]
) -> None:
    book = {"title": translated(STRING), "author": relation("manyToOne", "writer", inversedBy="books")}
    files: dict[str, Any] = {
        **collection("book", book, drafts=True, localized=True),
        **collection("writer", {"books": relation("oneToMany", "book", mappedBy="author")}),
        **documents("writers", w={}),
        "site.yaml": "locales: {default: en, available: [en, fr]}",
        "content/books/c.json": '{"author": "w"}',
        "content/books/c.draft.json": "{}",
    }
    for name in ("a", "a.fr", "a.fr.draft", "b", "b.fr"):
        files[f"content/books/{name}.json"] = '{"author": "w"}'
    api = make_api(files)
    assert api.put("/api/writers/w", {"books": value}).status == 200
    for status in ("published", "draft"):
        found = api.get(f"/api/books?locale=*&populate=author&status={status}").data
        having = {f"{d['documentId']} {d['locale']}" for d in found if d["author"]}
        assert having - {"c en"} == left - {"c en"}
    assert ("c en" in having) == ("set" in value)  # the draft of "c" had no author


def test_several_targets_are_taken_from_one_document(make_api: MakeApi) -> None:
    api = make_api(
        {
            **collection("box", {"things": relation("oneToMany", "thing", inversedBy="box")}),
            **collection("thing", {"box": relation("manyToOne", "box", mappedBy="things")}),
            **documents("things", a={}, b={}, c={}),
            **documents("boxs", one={"things": ["a", "b", "c"]}, two={}),
        }
    )
    api.put("/api/boxs/two", {"things": ["a", "c"]})
    found = api.get("/api/boxs?populate=things&sort=documentId").data
    assert [[thing["documentId"] for thing in box["things"]] for box in found] == [["b"], ["a", "c"]]
