"""Writes through the API: what is written to files, and what stays unchanged."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import INTEGER, STRING, Api, collection, documents, make, relation, schema

LOCALIZED = {"type": "string", "pluginOptions": {"i18n": {"localized": True}}}
POST = schema(
    "post",
    {
        "title": {"type": "string", "required": True, "minLength": 2},
        "slug": {"type": "uid", "targetField": "title"},
        "stars": {"type": "integer", "min": 0, "max": 5},
        "mail": "email",
        "code": {"type": "string", "regex": "^(a+)+$"},
        "big": "biginteger",
        "price": "decimal",
        "secret": "password",
        "number": {"type": "string", "unique": True},
        "colour": {"type": "enumeration", "enum": ["red", "green"], "default": "red"},
        "body": "richtext",
        "tags": {
            "type": "relation",
            "relation": "manyToMany",
            "target": "api::tag.tag",
            "inversedBy": "posts",
        },
        "seo": {"type": "component", "component": "shared.seo"},
        "parts": {"type": "dynamiczone", "components": ["shared.seo"]},
    },
    drafts=True,
)
TAG = schema(
    "tag",
    {
        "name": "string",
        "rank": {"type": "integer", "max": 5},
        "posts": {
            "type": "relation",
            "relation": "manyToMany",
            "target": "api::post.post",
            "mappedBy": "tags",
        },
    },
)
PLACE = schema("place", {"name": LOCALIZED, "height": "integer"}, drafts=True, localized=True)
ABOUT = schema("about", {"title": "string"}, single=True)
SEO = '{"attributes": {"title": {"type": "string", "required": true}, "note": {"type": "string"}}}'
HELLO = """---
# the first one
title: "Hello"   # short
slug: hello
stars: 3
tags: [a]
seo:
  title: Old   # kept
  note: 'n'
extra: unknown
---

Body text
"""
FILES: dict[str, str | bytes] = {
    "content-types/post.json": POST,
    "content-types/tag.json": TAG,
    "content-types/place.json": PLACE,
    "content-types/about.json": ABOUT,
    "content-types/components/shared/seo.json": SEO,
    "site.yaml": "locales: {default: en, available: [en, fr]}\n",
    "content/posts/hello.md": HELLO,
    "content/tags/a.yaml": "name: A\n",
    "content/tags/b.yaml": "name: B\n",
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


def lines(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if not line.startswith(("createdAt", "updatedAt", "publishedAt"))
    ]


def test_a_change_touches_its_own_line_and_the_timestamps(api: Api) -> None:
    assert api.put("/api/posts/hello", {"title": "Hello again"}).status == 200
    want = HELLO.replace('title: "Hello"   # short', 'title: "Hello again"   # short')
    assert lines(api.read("content/posts/hello.md")) == want.splitlines()


def test_a_change_inside_of_a_component_keeps_its_neighbours(api: Api) -> None:
    assert api.put("/api/posts/hello", {"seo": {"title": "New", "note": "n"}}).status == 200
    assert (
        lines(api.read("content/posts/hello.md")) == HELLO.replace("title: Old ", "title: New ").splitlines()
    )


def test_what_changes_nothing_writes_nothing(api: Api) -> None:
    before = (api.root / "content/posts/hello.md").stat()
    assert (
        api.put("/api/posts/hello", {"title": "Hello", "stars": 3, "tags": ["a"], "body": "Body text"}).status
        == 200
    )
    after = (api.root / "content/posts/hello.md").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_a_new_document_is_named_after_its_uid(api: Api) -> None:
    new = api.post("/api/posts", {"title": "NO", "slug": "norway", "body": "Fjords\n"}).data
    text = api.read("content/posts/norway.md")
    assert "title: 'NO'\n" in text
    assert f"documentId: {new['documentId']}\n" in text
    assert text.endswith("---\n\nFjords\n\n")
    assert api.get(f"/api/posts/{new['documentId']}").data["body"] == "Fjords\n"


@pytest.mark.parametrize("slug", ["..", ".", ".hidden", "a" * 300, "-x", "hello", "x.draft"])
def test_a_uid_that_is_no_good_name_names_no_file(api: Api, slug: str) -> None:
    new = api.post("/api/posts", {"title": "Odd", "slug": slug} if slug != "hello" else {"title": "Odd"}).data
    assert api.get(f"/api/posts/{new['documentId']}").data["title"] == "Odd"
    assert any(new["documentId"] in path for path in api.files)
    assert api.read("content/posts/hello.md") == HELLO


def test_ids_sort_by_creation(api: Api) -> None:
    ids = [api.post("/api/tags", {"name": str(i)}).data["documentId"] for i in range(30)]
    assert ids == sorted(ids)
    assert all(len(i) == 24 and i[0].isalpha() for i in ids)


def test_null_clears_and_an_absent_attribute_stays(api: Api) -> None:
    assert api.put("/api/posts/hello", {"stars": None}).data["stars"] is None
    assert api.get("/api/posts/hello").data["title"] == "Hello"
    assert api.put("/api/posts/hello", {"colour": None}).data["colour"] is None
    assert api.get("/api/posts/hello").data["colour"] is None  # null stays; the default is not used again


def test_a_draft_has_a_file_of_its_own_until_it_is_published(api: Api) -> None:
    assert api.put("/api/posts/hello?status=draft", {"title": "Work"}).status == 200
    assert api.get("/api/posts/hello").data["title"] == "Hello"
    assert api.get("/api/posts/hello?status=draft").data["title"] == "Work"
    assert api.read("content/posts/hello.md") == HELLO
    assert "# the first one" in api.read("content/posts/hello.draft.md")
    assert api.put("/api/posts/hello", {}).status == 200
    assert "posts/hello.draft.md" not in api.files
    assert api.get("/api/posts/hello").data["title"] == "Work"


def test_a_draft_is_checked_for_types_and_upper_bounds(api: Api) -> None:
    begun = {"title": "x", "stars": -9, "mail": "nobody", "seo": {}}
    assert api.post("/api/posts?status=draft", begun).data["publishedAt"] is None
    for wrong in ({"stars": "many"}, {"stars": 9}, {"title": "x" * 256}, {"seo": {"title": "x" * 256}}):
        assert api.post("/api/posts?status=draft", wrong).status == 400, wrong


def test_a_string_has_255_characters_at_most_and_other_texts_any_number(api: Api) -> None:
    assert api.post("/api/posts", {"title": "x" * 255, "body": "x" * 5000}).status == 201
    error = api.post("/api/posts", {"title": "x" * 256}).error
    assert error["message"] == "title must be at most 255 characters"


def test_every_error_is_told_at_once_with_its_path(api: Api) -> None:
    data = {"title": "x", "stars": 9, "mail": "no", "parts": [{"__component": "shared.seo"}], "big": "1x"}
    error = api.post("/api/posts", data).error
    found = sorted(".".join(e["path"]) for e in error["details"]["errors"])
    assert found == ["big", "mail", "parts.0.title", "stars", "title"]
    assert error["message"] == "5 errors occurred"


def test_a_value_that_can_not_be_read_is_told_once(api: Api) -> None:
    error = api.post("/api/posts", {"title": 5, "parts": [5, {"__component": "shared.seo"}]}).error
    found = sorted(".".join(e["path"]) for e in error["details"]["errors"])
    assert found == ["parts.0", "parts.1.title", "title"]


def test_nothing_is_said_of_a_body_for_a_document_that_is_not_there(api: Api) -> None:
    assert api.put("/api/posts/gone", {"stars": "many"}).status == 404
    assert api.put("/api/posts/gone", {"nope": 1}).status == 400  # the schema has no attribute "nope"


@pytest.mark.parametrize("key", ["id", "documentId", "createdAt", "updatedAt", "nope"])
def test_keys_that_may_not_be_written_are_refused_by_name(api: Api, key: str) -> None:
    answer = api.post("/api/posts", {"title": "Fine", key: "x"})
    assert (answer.status, answer.body["error"]["message"]) == (400, f"Invalid key {key}")


def test_numbers_are_exact(api: Api) -> None:
    new = api.post("/api/posts", {"title": "Exact", "big": str(2**80), "price": "0.10"}).data
    answer = api.get(f"/api/posts/{new['documentId']}").text
    assert f'"big":"{2**80}"' in answer
    assert '"price":0.10' in answer


def test_a_catastrophic_pattern_holds_up_nobody(api: Api) -> None:
    answer = api.post("/api/posts", {"title": "Slow", "code": "a" * 5000 + "!"})
    assert answer.status == 400


def test_passwords_are_hashed_and_never_shown(api: Api) -> None:
    new = api.post("/api/posts", {"title": "Hush", "slug": "hush", "secret": "open sesame"}).data
    assert "secret" not in new
    assert "open sesame" not in api.read("content/posts/hush.md")
    assert "$argon2" in api.read("content/posts/hush.md")
    assert api.get("/api/posts?filters[secret][$notNull]=true").status == 400


def test_what_is_unique_stays_unique(api: Api) -> None:
    assert api.post("/api/posts", {"title": "One", "number": "7"}).status == 201
    answer = api.post("/api/posts", {"title": "Two", "number": "7"})
    assert answer.body["error"]["details"]["errors"][0]["path"] == ["number"]
    assert api.post("/api/posts", {"title": "Two", "slug": "hello"}).status == 400


def test_a_relation_can_be_written_from_its_other_side(api: Api) -> None:
    assert api.put("/api/tags/b", {"posts": {"connect": ["hello"]}}).status == 200
    assert "tags: [a, b]" in api.read("content/posts/hello.md")
    assert api.put("/api/tags/a", {"posts": []}).status == 200
    assert [t["documentId"] for t in api.get("/api/posts/hello?populate=tags").data["tags"]] == ["b"]
    assert api.read("content/tags/b.yaml").startswith("name: B\n")


def test_a_target_that_does_not_exist_is_refused(api: Api) -> None:
    assert api.put("/api/posts/hello", {"tags": ["zz"]}).status == 400
    assert api.read("content/posts/hello.md") == HELLO


@pytest.mark.parametrize(
    "change",
    [
        {"connect": [{"documentId": "a", "position": {"before": "a"}}]},
        {"connect": [{"documentId": "a", "position": {"after": {"documentId": "a"}}}]},
        {"connect": [{"documentId": "a", "position": {"start": "yes"}}]},
        {"connect": [{"documentId": "a", "position": {"middle": True}}]},
        {"disconnect": [7]},
        {"disconnect": ""},
        {"connect": [{"id": 7}]},
    ],
)
def test_a_change_of_a_relation_that_means_nothing_is_refused(api: Api, change: Any) -> None:
    before = api.read("content/posts/hello.md")
    answer = api.put("/api/posts/hello", {"tags": change})
    assert answer.status == 400
    assert answer.body["error"]["name"] == "ValidationError"
    assert api.read("content/posts/hello.md") == before


def test_a_component_that_calls_itself_another_is_refused(api: Api) -> None:
    named = {"title": "T", "__component": "shared.seo"}
    assert api.put("/api/posts/hello", {"seo": named}).status == 200
    answer = api.put("/api/posts/hello", {"seo": {**named, "__component": "shared.quote"}})
    assert answer.status == 400
    assert answer.body["error"]["details"]["errors"][0]["path"] == ["seo", "__component"]


def test_deleting_a_document_leaves_its_readers_whole(api: Api) -> None:
    assert api.ask("DELETE", "/api/tags/a").status == 204
    assert api.get("/api/posts/hello?populate=tags").data["tags"] == []
    assert api.read("content/posts/hello.md") == HELLO
    assert "does not exist" in " ".join(map(str, api.site.problems))


def test_locales_share_what_is_not_localised(api: Api) -> None:
    place = api.post("/api/places", {"name": "Tower", "height": 3}).data["documentId"]
    assert api.put(f"/api/places/{place}?locale=fr", {"name": "Tour"}).data["height"] == 3
    assert api.put(f"/api/places/{place}?locale=fr", {"height": 4}).status == 200
    assert api.get(f"/api/places/{place}").data["height"] == 4
    assert api.files >= {f"places/{place}.md", f"places/{place}.fr.md"}
    assert api.ask("DELETE", f"/api/places/{place}?locale=fr").status == 204
    assert api.get(f"/api/places/{place}").data["name"] == "Tower"


def test_a_single_type_is_made_by_put(api: Api) -> None:
    assert api.get("/api/about").status == 404
    assert api.put("/api/about", {"title": "Us"}).status == 200
    assert api.read("content/about.md").startswith("---\ntitle: Us\n")
    assert api.ask("DELETE", "/api/about").status == 204
    assert "about.md" not in api.files


def test_if_match_refuses_what_was_made_for_another_version(api: Api) -> None:
    tag = api.get("/api/posts/hello?populate=*").headers["ETag"]
    headers = {"If-Match": tag}
    assert api.put("/api/posts/hello", {"stars": 4}, headers=headers).status == 200
    refused = api.put("/api/posts/hello", {"stars": 5}, headers=headers)
    assert (refused.status, refused.body["error"]["name"]) == (412, "PreconditionFailedError")
    assert api.ask("DELETE", "/api/posts/hello", headers=headers).status == 412
    assert api.get("/api/posts/hello").data["stars"] == 4


def test_if_match_star_asks_for_any_version_but_for_one(api: Api) -> None:
    headers = {"If-Match": " * "}
    assert api.put("/api/posts/hello", {"stars": 4}, headers=headers).data["stars"] == 4
    assert api.put("/api/posts/gone", {"stars": 4}, headers=headers).status == 412
    assert api.put("/api/about", {"title": "Us"}, headers=headers).status == 412
    assert api.ask("DELETE", "/api/posts/hello", headers=headers).status == 204


def test_if_match_has_a_bound(api: Api) -> None:
    many = ", ".join(['"x"'] * 3000)
    refused = api.put("/api/posts/hello", {"stars": 4}, headers={"If-Match": many, "Prefer": "merge"})
    assert (refused.status, "8,192 characters" in refused.error["message"]) == (400, True)


def test_if_match_of_a_document_that_is_gone_says_so(api: Api) -> None:
    headers = {"If-Match": api.get("/api/posts/hello").headers["ETag"]}
    assert api.ask("DELETE", "/api/posts/hello", headers=headers).status == 204
    for method in ("PUT", "DELETE"):
        refused = api.ask(method, "/api/posts/hello", json={"data": {}}, headers=headers)
        assert (refused.status, refused.error["details"]) == (412, {"version": None})
    assert api.put("/api/posts/hello", {}).status == 404  # without If-Match


@pytest.mark.parametrize("named", ["the first", '"0"', "*"])
def test_a_new_document_matches_no_version_of_another(api: Api, named: str) -> None:
    api.token("writer", may=["post.create"])
    tag = api.get("/api/posts?pagination[pageSize]=1").data[0]["documentId"]
    named = api.get(f"/api/posts/{tag}").headers["ETag"] if named == "the first" else named
    before = api.files
    refused = api.post("/api/posts", {"title": "New"}, who="writer", headers={"If-Match": named})
    assert (refused.status, refused.error["details"]) == (412, {"version": None})
    batch = {"operations": [{"method": "POST", "path": "/api/posts", "body": {"data": {}}, "ifMatch": named}]}
    again = api.ask("POST", "/batch", "writer", json=batch).error
    assert again == {**refused.error, "details": {"version": None, "operation": 0}}
    assert api.files == before


def test_weak_tags_tell_what_is_known_but_not_what_may_be_changed(api: Api) -> None:
    tag = api.get("/api/posts/hello").headers["ETag"]
    assert api.get("/api/posts/hello", headers={"If-None-Match": f"W/{tag}"}).status == 304
    assert api.put("/api/posts/hello", {"stars": 4}, headers={"If-Match": f"W/{tag}"}).status == 412
    assert api.put("/api/posts/hello", {"stars": 4}, headers={"If-Match": f'"other", {tag}'}).status == 200


def test_what_is_published_is_held_to_the_options_whatever_the_body_names(api: Api) -> None:
    path = api.root / "content/posts/hello.md"
    path.write_text(HELLO.replace("stars: 3", "stars: 9").replace('title: "Hello"   # short\n', ""))
    api.site.refresh()
    errors = api.put("/api/posts/hello", {"slug": "other"}).error["details"]["errors"]
    assert [error["message"] for error in errors] == [
        "title must be defined.",
        "stars must be less than or equal to 5",
    ]
    assert api.put("/api/posts/hello?status=draft", {"slug": "other"}).status == 200
    assert api.put("/api/posts/hello", {"title": "By the API", "stars": 4}).data["slug"] == "other"


def test_without_drafts_an_update_is_held_to_the_options_of_what_it_changes(api: Api) -> None:
    """An invalid value that was written by hand does not prevent changes to other attributes."""
    (api.root / "content/tags/a.yaml").write_text("rank: 9\n")
    api.site.refresh()
    assert api.put("/api/tags/a", {"name": "By the API"}).data["rank"] == 9
    assert api.put("/api/tags/a", {"rank": 9}).error["details"]["errors"][0]["path"] == ["rank"]


def test_publishing_a_draft_holds_all_of_it_to_the_options(api: Api) -> None:
    draft = HELLO.replace("stars: 3", "stars: 9")
    (api.root / "content/posts/hello.draft.md").write_text(draft)
    api.site.refresh()
    assert api.get("/api/posts/hello?status=draft").data["stars"] == 9
    assert api.put("/api/posts/hello", {"title": "By the API"}).error["details"]["errors"][0]["path"] == [
        "stars"
    ]


def test_a_hand_edit_that_nobody_was_told_of_is_not_overwritten(api: Api) -> None:
    path = api.root / "content/posts/hello.md"
    path.write_text(HELLO.replace("extra: unknown", "extra: by hand").replace("stars: 3", "stars: 1"))
    assert api.put("/api/posts/hello", {"title": "By the API"}).data["stars"] == 1
    assert "extra: by hand" in api.read("content/posts/hello.md")


def test_a_file_that_broke_meanwhile_is_refused_and_left_alone(api: Api) -> None:
    broken = HELLO.replace("stars: 3", "stars: [3")
    (api.root / "content/posts/hello.md").write_text(broken)
    answer = api.put("/api/posts/hello", {"title": "New"})
    assert (answer.status, answer.body["error"]["name"]) == (409, "ConflictError")
    assert api.read("content/posts/hello.md") == broken


def test_a_read_only_file_is_refused_and_left_alone(api: Api) -> None:
    (api.root / "content/posts/hello.md").chmod(0o444)
    answer = api.put("/api/posts/hello", {"title": "New"})
    assert answer.status == 507
    assert "read-only" in answer.body["error"]["message"]
    assert api.read("content/posts/hello.md") == HELLO


@pytest.mark.parametrize(
    ("data", "kind", "status"),
    [
        (b"{bad", "application/json", 400),
        (b'{"data": {"title": "\\ud800"}}', "application/json", 400),
        (b'{"data": {"title": "a\\u0000b"}}', "application/json", 400),
        (b'{"data": ' + b"[" * 100_000, "application/json", 400),
        (b'{"data": {"title": "' + b"x" * 20_000_000 + b'"}}', "application/json", 413),
        (b"title=x", "application/x-www-form-urlencoded", 400),
        (b"data[title]=%zz", "application/x-www-form-urlencoded", 400),
        (b"data[title]=\xff", "application/x-www-form-urlencoded", 400),
        (b"\xff\xfe", "application/json", 400),
    ],
)
def test_bodies_that_are_no_good(api: Api, data: bytes, kind: str, status: int) -> None:
    answer = api.ask("POST", "/api/posts", data=data, content_type=kind)
    body: Any = answer.body
    assert (answer.status, body["data"], body["error"]["status"]) == (status, None, status)
    assert api.files == {"posts/hello.md", "tags/a.yaml", "tags/b.yaml"}


def test_a_form_is_a_body_too(api: Api) -> None:
    form = b"data[title]=A+form&data[tags][0]=a&data[tags][1]=b"
    answer = api.ask("POST", "/api/posts", data=form, content_type="application/x-www-form-urlencoded")
    assert answer.status == 201
    assert "title: A form" in api.read(f"content/posts/{answer.body['data']['documentId']}.md")


def test_an_existing_tree_is_written_in_place(tmp_path: Path) -> None:
    doc = schema(
        "doc", {"title": LOCALIZED, "body": "richtext"}, localized=True, files="docs/{locale}/{name}.mdx"
    )
    api = make(
        tmp_path,
        {
            "content-types/doc.json": doc,
            "site.yaml": "locales: {default: en, available: [en, fr]}\n",
            "docs/en/guides/start.mdx": "---\ntitle: Start\n---\n\nimport X from 'x'\n",
        },
    )
    assert api.put("/api/docs/guides--start?locale=fr", {"title": "Début"}).status == 200
    assert "title: Début" in api.read("docs/fr/guides/start.mdx")
    new = api.post("/api/docs", {"title": "New"}).data["documentId"]
    assert (api.root / f"docs/en/{new}.mdx").exists()


def test_a_file_that_somebody_has_emptied_to_write_it_anew_is_not_written(make_api: MakeApi) -> None:
    """An editor that overwrites a file first truncates it, so the file is empty for a moment."""
    api = make_api(
        {
            **collection("note", {"title": STRING, "n": INTEGER}),
            **documents("notes", a={"title": "A", "n": 1}),
        }
    )
    path = api.root / "content/notes/a.json"
    before = path.read_text()
    with path.open("w") as editor:
        api.site.refresh()
        assert api.get("/api/notes/a").data["title"] == "A"  # the last valid version
        answer = api.put("/api/notes/a", {"n": 2})
        assert (answer.status, "the file is empty" in answer.raw.decode()) == (409, True)
        editor.write(before.replace('"A"', '"Edited"'))
    api.site.refresh()
    assert api.put("/api/notes/a", {"n": 2}).data["title"] == "Edited"
    assert api.get("/api/notes/a").data["n"] == 2


def test_a_target_is_found_by_its_id_without_reading_the_rows_of_the_others(tmp_path: Path) -> None:
    """The other rows would stay in memory, and reading them would delay the write."""
    files = {
        **collection("page", {"title": STRING, "tag": relation("manyToOne", "tag")}),
        **collection("tag", {"name": STRING}),
        **documents("pages", one={"title": "One"}),
        **documents("tags", **{f"t{i}": {"name": f"T{i}"} for i in range(9)}),
    }
    number = make(tmp_path, files).get("/api/tags/t5").data["id"]
    (tmp_path / ".bifolio/accounts.db").unlink()
    api = make(tmp_path, {})  # loads the packed rows from the cache
    answer = api.put("/api/pages/one?populate=tag", {"tag": {"connect": [{"id": number}]}})
    assert answer.data["tag"]["name"] == "T5"
    tags = api.site.state.snapshot.tables["api::tag.tag"].versions.values()
    assert [tag.document_id for tag in tags if tag.is_read] == ["t5"]
