"""Writing through the API: what comes into the files, and what stays as it was."""

from pathlib import Path
from typing import Any

import pytest

from tests.making import Made, make, schema

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
        "posts": {
            "type": "relation",
            "relation": "manyToMany",
            "target": "api::post.post",
            "mappedBy": "tags",
        },
    },
)
PLACE = schema("place", {"name": LOCALIZED, "height": "integer"}, drafts=True, localized=True)
ABOUT = schema("about", {"title": "string"}, kind="singleType", plural="abouts")
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
def made(tmp_path: Path) -> Made:
    return make(tmp_path, FILES)


def lines(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if not line.startswith(("createdAt", "updatedAt", "publishedAt"))
    ]


def test_a_change_touches_its_own_line_and_the_timestamps(made: Made) -> None:
    made.put("/api/posts/hello", {"title": "Hello again"})
    want = HELLO.replace('title: "Hello"   # short', 'title: "Hello again"   # short')
    assert lines(made.read("content/posts/hello.md")) == want.splitlines()


def test_a_change_inside_of_a_component_keeps_its_neighbours(made: Made) -> None:
    made.put("/api/posts/hello", {"seo": {"title": "New", "note": "n"}})
    assert (
        lines(made.read("content/posts/hello.md")) == HELLO.replace("title: Old ", "title: New ").splitlines()
    )


def test_what_changes_nothing_writes_nothing(made: Made) -> None:
    before = (made.root / "content/posts/hello.md").stat()
    made.put("/api/posts/hello", {"title": "Hello", "stars": 3, "tags": ["a"], "body": "Body text"})
    after = (made.root / "content/posts/hello.md").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_a_new_document_is_named_after_its_uid(made: Made) -> None:
    new = made.post("/api/posts", {"title": "NO", "slug": "norway", "body": "Fjords\n"})
    text = made.read("content/posts/norway.md")
    assert "title: 'NO'\n" in text
    assert f"documentId: {new['documentId']}\n" in text
    assert text.endswith("---\n\nFjords\n\n")
    assert made.get(f"/api/posts/{new['documentId']}")["body"] == "Fjords\n"


@pytest.mark.parametrize("slug", ["..", ".", ".hidden", "a" * 300, "-x", "hello", "x.draft"])
def test_a_uid_that_is_no_good_name_names_no_file(made: Made, slug: str) -> None:
    new = made.post("/api/posts", {"title": "Odd", "slug": slug} if slug != "hello" else {"title": "Odd"})
    assert made.get(f"/api/posts/{new['documentId']}")["title"] == "Odd"
    assert any(new["documentId"] in path for path in made.files)
    assert made.read("content/posts/hello.md") == HELLO


def test_ids_sort_by_creation(made: Made) -> None:
    ids = [made.post("/api/tags", {"name": str(i)})["documentId"] for i in range(30)]
    assert ids == sorted(ids)
    assert all(len(i) == 24 and i[0].isalpha() for i in ids)


def test_null_clears_and_an_absent_attribute_stays(made: Made) -> None:
    assert made.put("/api/posts/hello", {"stars": None})["stars"] is None
    assert made.get("/api/posts/hello")["title"] == "Hello"
    assert made.put("/api/posts/hello", {"colour": None})["colour"] is None
    assert made.get("/api/posts/hello")["colour"] is None  # not the default again


def test_a_draft_has_a_file_of_its_own_until_it_is_published(made: Made) -> None:
    made.put("/api/posts/hello?status=draft", {"title": "Work"})
    assert made.get("/api/posts/hello")["title"] == "Hello"
    assert made.get("/api/posts/hello?status=draft")["title"] == "Work"
    assert made.read("content/posts/hello.md") == HELLO
    assert "# the first one" in made.read("content/posts/hello.draft.md")
    made.put("/api/posts/hello", {})
    assert "posts/hello.draft.md" not in made.files
    assert made.get("/api/posts/hello")["title"] == "Work"


def test_a_draft_is_checked_for_types_only(made: Made) -> None:
    assert made.post("/api/posts?status=draft", {"title": "x", "stars": 9})["publishedAt"] is None
    assert made.send("POST", "/api/posts?status=draft", {"stars": "many"}).status_code == 400


def test_every_error_is_told_at_once_with_its_path(made: Made) -> None:
    data = {"title": "x", "stars": 9, "mail": "no", "parts": [{"__component": "shared.seo"}], "big": "1x"}
    first = made.send("POST", "/api/posts", data).json["error"]
    assert [e["path"] for e in first["details"]["errors"]] == [["big"]]  # types first
    del data["big"]
    second = made.send("POST", "/api/posts", data).json["error"]
    found = sorted(".".join(e["path"]) for e in second["details"]["errors"])
    assert found == ["mail", "parts.0.title", "stars", "title"]
    assert second["message"] == "4 errors occurred"


@pytest.mark.parametrize("key", ["id", "documentId", "createdAt", "updatedAt", "nope"])
def test_keys_that_may_not_be_written_are_refused_by_name(made: Made, key: str) -> None:
    answer = made.send("POST", "/api/posts", {"title": "Fine", key: "x"})
    assert (answer.status_code, answer.json["error"]["message"]) == (400, f"Invalid key {key}")


def test_numbers_are_exact(made: Made) -> None:
    new = made.post("/api/posts", {"title": "Exact", "big": str(2**80), "price": "0.10"})
    answer = made.send("GET", f"/api/posts/{new['documentId']}").get_data(as_text=True)
    assert f'"big":"{2**80}"' in answer
    assert '"price":0.10' in answer


def test_a_catastrophic_pattern_holds_up_nobody(made: Made) -> None:
    answer = made.send("POST", "/api/posts", {"title": "Slow", "code": "a" * 5000 + "!"})
    assert answer.status_code == 400


def test_passwords_are_hashed_and_never_shown(made: Made) -> None:
    new = made.post("/api/posts", {"title": "Hush", "slug": "hush", "secret": "open sesame"})
    assert "secret" not in new
    assert "open sesame" not in made.read("content/posts/hush.md")
    assert "$argon2" in made.read("content/posts/hush.md")
    assert made.send("GET", "/api/posts?filters[secret][$notNull]=true").status_code == 400


def test_what_is_unique_stays_unique(made: Made) -> None:
    made.post("/api/posts", {"title": "One", "number": "7"})
    answer = made.send("POST", "/api/posts", {"title": "Two", "number": "7"})
    assert answer.json["error"]["details"]["errors"][0]["path"] == ["number"]
    assert made.send("POST", "/api/posts", {"title": "Two", "slug": "hello"}).status_code == 400


def test_a_relation_can_be_written_from_its_other_side(made: Made) -> None:
    made.put("/api/tags/b", {"posts": {"connect": ["hello"]}})
    assert "tags: [a, b]" in made.read("content/posts/hello.md")
    made.put("/api/tags/a", {"posts": []})
    assert [t["documentId"] for t in made.get("/api/posts/hello?populate=tags")["tags"]] == ["b"]
    assert made.read("content/tags/b.yaml").startswith("name: B\n")


def test_a_target_that_does_not_exist_is_refused(made: Made) -> None:
    assert made.send("PUT", "/api/posts/hello", {"tags": ["zz"]}).status_code == 400
    assert made.read("content/posts/hello.md") == HELLO


@pytest.mark.parametrize(
    "change",
    [
        {"connect": [{"documentId": "a", "position": {"before": "a"}}]},
        {"connect": [{"documentId": "a", "position": {"after": {"documentId": "a"}}}]},
        {"connect": [{"documentId": "a", "position": {"start": "yes"}}]},
        {"connect": [{"documentId": "a", "position": {"middle": True}}]},
        {"disconnect": [7]},
        {"disconnect": ""},
        {"disconnect": {"id": 7}},
    ],
)
def test_a_change_of_a_relation_that_means_nothing_is_refused(made: Made, change: Any) -> None:
    before = made.read("content/posts/hello.md")
    answer = made.send("PUT", "/api/posts/hello", {"tags": change})
    assert answer.status_code == 400
    assert answer.json["error"]["name"] == "ValidationError"
    assert made.read("content/posts/hello.md") == before


def test_a_component_that_calls_itself_another_is_refused(made: Made) -> None:
    named = {"title": "T", "__component": "shared.seo"}
    assert made.send("PUT", "/api/posts/hello", {"seo": named}).status_code == 200
    answer = made.send("PUT", "/api/posts/hello", {"seo": {**named, "__component": "shared.quote"}})
    assert answer.status_code == 400
    assert answer.json["error"]["details"]["errors"][0]["path"] == ["seo", "__component"]


def test_deleting_a_document_leaves_its_readers_whole(made: Made) -> None:
    assert made.send("DELETE", "/api/tags/a").status_code == 204
    assert made.get("/api/posts/hello?populate=tags")["tags"] == []
    assert made.read("content/posts/hello.md") == HELLO
    assert "there is no document" in " ".join(map(str, made.site.problems))


def test_locales_share_what_is_not_localised(made: Made) -> None:
    place = made.post("/api/places", {"name": "Tower", "height": 3})["documentId"]
    assert made.put(f"/api/places/{place}?locale=fr", {"name": "Tour"})["height"] == 3
    made.put(f"/api/places/{place}?locale=fr", {"height": 4})
    assert made.get(f"/api/places/{place}")["height"] == 4
    assert made.files >= {f"places/{place}.md", f"places/{place}.fr.md"}
    assert made.send("DELETE", f"/api/places/{place}?locale=fr").status_code == 204
    assert made.get(f"/api/places/{place}")["name"] == "Tower"


def test_a_single_type_is_made_by_put(made: Made) -> None:
    assert made.send("GET", "/api/about").status_code == 404
    made.put("/api/about", {"title": "Us"})
    assert made.read("content/about.md").startswith("---\ntitle: Us\n")
    assert made.send("DELETE", "/api/about").status_code == 204
    assert "about.md" not in made.files


def test_if_match_refuses_what_was_made_for_another_version(made: Made) -> None:
    tag = made.send("GET", "/api/posts/hello?populate=*").headers["ETag"]
    headers = {"If-Match": tag}
    assert made.send("PUT", "/api/posts/hello", {"stars": 4}, headers=headers).status_code == 200
    refused = made.send("PUT", "/api/posts/hello", {"stars": 5}, headers=headers)
    assert (refused.status_code, refused.json["error"]["name"]) == (412, "PreconditionFailedError")
    assert made.send("DELETE", "/api/posts/hello", headers=headers).status_code == 412
    assert made.get("/api/posts/hello")["stars"] == 4


def test_a_hand_edit_that_nobody_was_told_of_is_not_overwritten(made: Made) -> None:
    path = made.root / "content/posts/hello.md"
    path.write_text(HELLO.replace("extra: unknown", "extra: by hand").replace("stars: 3", "stars: 1"))
    assert made.put("/api/posts/hello", {"title": "By the API"})["stars"] == 1
    assert "extra: by hand" in made.read("content/posts/hello.md")


def test_a_file_that_broke_meanwhile_is_refused_and_left_alone(made: Made) -> None:
    broken = HELLO.replace("stars: 3", "stars: [3")
    (made.root / "content/posts/hello.md").write_text(broken)
    answer = made.send("PUT", "/api/posts/hello", {"title": "New"})
    assert (answer.status_code, answer.json["error"]["name"]) == (409, "ConflictError")
    assert made.read("content/posts/hello.md") == broken


def test_a_read_only_file_is_refused_and_left_alone(made: Made) -> None:
    (made.root / "content/posts/hello.md").chmod(0o444)
    answer = made.send("PUT", "/api/posts/hello", {"title": "New"})
    assert answer.status_code == 507
    assert "read-only" in answer.json["error"]["message"]
    assert made.read("content/posts/hello.md") == HELLO


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
def test_bodies_that_are_no_good(made: Made, data: bytes, kind: str, status: int) -> None:
    answer = made.send("POST", "/api/posts", raw=data, content_type=kind)
    body: Any = answer.json
    assert (answer.status_code, body["data"], body["error"]["status"]) == (status, None, status)
    assert made.files == {"posts/hello.md", "tags/a.yaml", "tags/b.yaml"}


def test_a_form_is_a_body_too(made: Made) -> None:
    form = b"data[title]=A+form&data[tags][0]=a&data[tags][1]=b"
    answer = made.send("POST", "/api/posts", raw=form, content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 201
    assert "title: A form" in made.read(f"content/posts/{answer.json['data']['documentId']}.md")


def test_an_existing_tree_is_written_in_place(tmp_path: Path) -> None:
    doc = schema(
        "doc", {"title": LOCALIZED, "body": "richtext"}, localized=True, files="docs/{locale}/{name}.mdx"
    )
    made = make(
        tmp_path,
        {
            "content-types/doc.json": doc,
            "site.yaml": "locales: {default: en, available: [en, fr]}\n",
            "docs/en/guides/start.mdx": "---\ntitle: Start\n---\n\nimport X from 'x'\n",
        },
    )
    made.put("/api/docs/guides--start?locale=fr", {"title": "Début"})
    assert "title: Début" in made.read("docs/fr/guides/start.mdx")
    new = made.post("/api/docs", {"title": "New"})["documentId"]
    assert (made.root / f"docs/en/{new}.mdx").exists()
