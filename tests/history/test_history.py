"""Tests for `/history`: versions of documents, their differences, and restoring them."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, component, make, relation, translated, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

SITE = "locales: {available: [en, fr]}\nsearch: {index: false}\n"
SCHEMA = {
    **component(
        "page.quote",
        {
            "text": STRING,
            "secret": {"type": "string", "private": True},
            "code": {"type": "password"},
        },
    ),
    **collection("tag", {"name": STRING}),
    **collection("home", {"title": STRING}, single=True),
    **collection(
        "note",
        {
            "title": translated({"type": "string", "required": True}),
            "body": translated({"type": "richtext"}),
            "hidden": {"type": "string", "private": True},
            "tags": relation("manyToMany", "tag"),
            "cover": {"type": "media"},
            "quote": {"type": "component", "component": "page.quote"},
            "day": {"type": "date"},
            "big": {"type": "biginteger"},
        },
        drafts=True,
        localized=True,
    ),
}
CONTENT = {
    "site.yaml": SITE,
    "content/tags/sea.yaml": "name: Sea\n",
    "content/home.yaml": "title: Welcome\n",
    "content/uploads/a.txt": "a\n",
    "content/notes/one.md": (
        "---\ntitle: One\nhidden: no\ntags: [sea]\ncover: a.txt\nday: 2024-05-01\n"
        "quote:\n  text: Said\n  secret: s\n---\nFirst line.\n\nLast line.\n"
    ),
    "content/notes/one.fr.md": "---\ntitle: Un\n---\n",
}


def commit(root: Path, hour: int, message: str, author: str = "Ada <ada@x.org>") -> str:
    git(root, "add", "-A")
    at = f"2030-05-01T{hour:02d}:00:00Z"
    git(root, "commit", "-qm", message, f"--author={author}", f"--date={at}", at=at)
    return git(root, "rev-parse", "HEAD").strip()


def text(api: Api) -> str:
    return api.read("content/notes/one.md")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    write(tmp_path, {**SCHEMA, **CONTENT})
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, 0, "Begin")
    made = make(tmp_path, {})
    yield made
    made.accounts.close()


def brief(answer: Any) -> list[tuple[Any, ...]]:
    return [(e["message"], e["locale"], e["status"], e["action"], e["attributes"]) for e in answer.data]


def test_a_document_has_the_commits_that_changed_its_files(api: Api) -> None:
    write(api.root, {"content/notes/one.md": text(api).replace("First line", "A line")})
    second = commit(api.root, 1, "Say a line\n\nWith reasons.", "Bo <bo@x.org>")
    write(
        api.root,
        {"content/notes/one.fr.md": "---\ntitle: Une\n---\n", "content/notes/one.draft.md": text(api)},
    )
    commit(api.root, 2, "Translate")
    write(api.root, {"content/tags/sea.yaml": "name: Ocean\n"})
    commit(api.root, 3, "Another document")
    found = api.get("/history/notes/one")
    every = ["title", "body", "tags", "cover", "quote", "day"]
    assert brief(found) == [
        ("Translate", "en", "draft", "create", every),
        ("Translate", "fr", "published", "update", ["title"]),
        ("Say a line\n\nWith reasons.", "en", "published", "update", ["body"]),
        ("Begin", "fr", "published", "create", ["title"]),
        ("Begin", "en", "published", "create", every),
    ]
    assert found.data[2]["commit"] == second
    assert found.data[2]["author"] == {"name": "Bo", "email": "bo@x.org"}
    assert found.data[2]["date"] == "2030-05-01T01:00:00.000Z"
    assert [e["message"] for e in api.get("/history/notes/one?locale=fr").data] == ["Translate", "Begin"]
    assert [e["locale"] for e in api.get("/history/notes/one?status=draft").data] == ["en"]
    page = api.get("/history/notes/one?page=2&pageSize=2")
    assert brief(page) == brief(found)[2:4]
    assert page.body["meta"]["pagination"] == {"page": 2, "pageSize": 2, "pageCount": 3, "total": 5}


def test_uncommitted_changes_are_the_first_entry(api: Api) -> None:
    assert api.put("/api/notes/one", {"title": "Two"}).status == 200
    first, *others = api.get("/history/notes/one?locale=en").data
    assert (first["commit"], first["author"], first["action"]) == (None, None, "update")
    assert first["attributes"] == ["title"]
    assert len(others) == 1
    created = api.post("/api/notes", {"title": "New"}).data["documentId"]
    assert brief(api.get(f"/history/notes/{created}")) == [
        (None, "en", "published", "create", ["title"]),
    ]


def test_history_follows_renames(api: Api) -> None:
    git(api.root, "mv", "content/notes/one.md", "content/notes/uno.md")
    commit(api.root, 1, "Rename")
    write(api.root, {"content/notes/uno.md": api.read("content/notes/uno.md").replace("One", "Uno")})
    commit(api.root, 2, "Retitle")
    api.site.refresh()
    assert [(e["message"], e["action"], e["attributes"]) for e in api.get("/history/notes/uno").data] == [
        ("Retitle", "update", ["title"]),
        ("Rename", "rename", []),
        ("Begin", "create", ["title", "body", "tags", "cover", "quote", "day"]),
    ]


def test_a_deleted_document_still_has_a_history(api: Api) -> None:
    assert api.ask("DELETE", "/api/notes/one?locale=*").status == 204
    commit(api.root, 1, "Delete")
    assert [(e["message"], e["action"]) for e in api.get("/history/notes/one?locale=en").data] == [
        ("Delete", "delete"),
        ("Begin", "create"),
    ]
    assert api.get("/history/notes/never").status == 404
    assert api.get("/history/nothing/one").status == 404


def test_versions_differ_by_attribute_and_line(api: Api) -> None:
    first = git(api.root, "rev-parse", "HEAD").strip()
    write(api.root, {"content/notes/one.md": text(api).replace("Last", "Another").replace("[sea]", "[]")})
    second = commit(api.root, 1, "Change")
    lines = ["@@ -1,3 +1,3 @@", " First line.", " ", "-Last line.", "+Another line."]
    change = {
        "body": {
            "from": "First line.\n\nLast line.",
            "to": "First line.\n\nAnother line.",
            "lines": lines,
        },
        "tags": {"from": ["sea"], "to": None},
    }
    for query in ("", f"?from={first}", f"?from={first}&to={second}", f"?from={first[:10]}&to=main"):
        assert api.get(f"/history/notes/one/diff{query}").data == change, query
    back = api.get(f"/history/notes/one/diff?from={second}&to={first}").data
    assert back["tags"] == {"from": None, "to": ["sea"]}
    assert api.get("/history/notes/one/diff?from=HEAD").data == {}
    assert api.put("/api/notes/one", {"title": "By hand"}).status == 200
    assert api.get("/history/notes/one/diff").data == {"title": {"from": "One", "to": "By hand"}}
    assert api.get("/history/notes/one/diff?from=nothing").status == 400
    assert api.get("/history/notes/one/diff?locale=fr&from=main").data == {}


def test_a_version_is_compared_with_the_previous_one_by_default(api: Api) -> None:
    first = git(api.root, "rev-parse", "HEAD").strip()
    write(api.root, {"content/notes/one.md": text(api).replace("Last", "Another")})
    second = commit(api.root, 1, "Change the body")
    write(api.root, {"content/tags/sea.yaml": "name: Ocean\n"})
    other = commit(api.root, 2, "Another document")
    write(api.root, {"content/notes/one.md": text(api).replace("One", "Two")})
    commit(api.root, 3, "Change the title")
    changed = {to: api.get(f"/history/notes/one/diff?to={to}") for to in (first, second, other, "main")}
    assert list(changed[first].data) == ["title", "body", "tags", "cover", "quote", "day"]
    assert list(changed[second].data) == list(changed[other].data) == ["body"]
    assert (changed[second].body["meta"]["from"], changed[first].body["meta"]["from"]) == (first, None)
    assert list(changed["main"].data) == ["title"]


def test_a_draft_is_compared_with_the_published_version(api: Api) -> None:
    assert api.put("/api/notes/one?status=draft", {"title": "Draft"}).status == 200
    change = {"title": {"from": "One", "to": "Draft"}}
    assert api.get("/history/notes/one/diff?status=draft").data == change
    begun = commit(api.root, 1, "Begin a draft")
    assert api.get(f"/history/notes/one/diff?to={begun}&status=draft").data == change
    assert api.get("/history/notes/one/diff?from=main&fromStatus=published&status=draft").data == change
    assert api.put("/api/notes/one", {"day": "2024-06-01"}).status == 200
    assert api.put("/api/notes/one?status=draft", {"title": "Other"}).status == 200
    other = {"title": {"from": "Draft", "to": "Other"}}
    assert api.get("/history/notes/one/diff?fromStatus=published&status=draft").data == other
    assert api.get("/history/notes/one/diff?to=main&fromStatus=published&status=draft").data == change
    assert api.get("/history/notes/one/diff?from=main&fromStatus=some&status=draft").status == 400


def test_integers_of_any_size_are_exact(api: Api) -> None:
    assert api.put("/api/notes/one", {"big": "12345678901234567890"}).status == 200
    assert api.get("/history/notes/one/diff").data == {"big": {"from": None, "to": "12345678901234567890"}}


def test_keys_without_a_current_attribute_are_named(api: Api) -> None:
    old = (
        text(api)
        .replace("day: 2024-05-01", "day: [soon]\nsubtitle: Sub\nhidden2: x")
        .replace("hidden: no", "hidden: [1]")
    )
    write(api.root, {"content/notes/one.md": old.replace("  text: Said", "  text: Said\n  source: Me")})
    commit(api.root, 1, "With a subtitle")
    write(api.root, {"content/notes/one.md": "---\ntitle: Two\n---\n"})
    meta = api.get("/history/notes/one/diff?from=main").body["meta"]
    assert meta["unread"] == {"from": ["subtitle", "hidden2", "quote.source", "day"], "to": []}


def test_every_attribute_and_line_has_its_commit(api: Api) -> None:
    first = git(api.root, "rev-parse", "HEAD").strip()
    write(api.root, {"content/notes/one.md": text(api).replace("Last", "Another").replace("One", "Two")})
    second = commit(api.root, 1, "Change", "Bo <bo@x.org>")
    write(api.root, {"content/notes/one.md": text(api).replace("Two", "Three")})
    api.site.refresh()
    found = api.get("/history/notes/one/blame").data
    assert found["day"]["commit"] == first
    assert (found["title"]["commit"], found["title"]["author"]) == (None, None)
    assert found["body"]["commit"] == second
    assert [(line["text"], line["commit"]) for line in found["body"]["lines"]] == [
        ("First line.", first),
        ("", first),
        ("Another line.", second),
    ]
    assert found["body"]["lines"][2]["author"] == {"name": "Bo", "email": "bo@x.org"}


def test_versions_of_a_large_document_are_counted_in_the_budget(tmp_path: Path) -> None:
    limited = {"site.yaml": f"{SITE}api: {{limits: {{steps: 150}}}}\n"}
    write(tmp_path, {**SCHEMA, **CONTENT, **limited})
    git(tmp_path, "init", "-q", "-b", "main")
    for hour in range(4):
        write(tmp_path, {"content/notes/one.md": f"---\ntitle: {hour}\n---\n{'Line.' * 8000}\n"})
        commit(tmp_path, hour, "Write")
    api = make(tmp_path, {})
    assert api.get("/history/notes/one?pageSize=1").status == 200
    for path in ("?pageSize=4", "/blame"):
        answer = api.get(f"/history/notes/one{path}")
        assert (answer.status, answer.error["name"]) == (400, "ValidationError"), path
    api.accounts.close()


def test_responses_are_limited_in_size(tmp_path: Path) -> None:
    limited = {"site.yaml": f"{SITE}api: {{limits: {{size: 50 kB}}}}\n"}
    lines = "A line.\n" * 1000
    write(tmp_path, {**SCHEMA, **CONTENT, **limited, "content/notes/two.md": f"---\ntitle: 2\n---\n{lines}"})
    git(tmp_path, "init", "-q", "-b", "main")
    first = commit(tmp_path, 0, "Begin")
    git(tmp_path, "checkout", "-qb", "other")
    write(tmp_path, {"content/notes/one.md": f"---\ntitle: One\n---\n{'Words ' * 8000}\n"})
    commit(tmp_path, 1, "Write much")
    write(tmp_path, {"content/notes/one.md": f"---\ntitle: One\n---\n{'Others ' * 5000}\n"})
    commit(tmp_path, 2, "Write much else")
    git(tmp_path, "checkout", "-q", "main")
    api = make(tmp_path, {})
    assert api.get("/history/notes/two").status == 200
    for path in (
        "/history/notes/two/blame",
        "/history/notes/one/diff?from=other~1&to=other",
        f"/branches/other/changes?from={first}",
    ):
        answer = api.get(path)
        assert answer.status == 400, path
        assert answer.error["details"] == {"limit": "size"}
    api.accounts.close()


def test_the_whole_site_has_a_history(api: Api) -> None:
    write(
        api.root,
        {"content/tags/fog.yaml": "name: Fog\n", "content/notes/one.fr.md": "---\ntitle: Une\n---\n"},
    )
    second = commit(api.root, 1, "Two documents", "Bo <bo@x.org>")
    write(api.root, {"README.md": "nothing that is a document\n"})
    commit(api.root, 2, "No document")
    newest, first = api.get("/history").data
    assert (newest["commit"], newest["count"], first["message"]) == (second, 2, "Begin")
    assert newest["documents"] == [
        {"type": "note", "documentId": "one", "locale": "fr", "status": "published", "action": "update"},
        {"type": "tag", "documentId": "fog", "locale": "en", "status": "published", "action": "create"},
    ]
    for query, count in {
        "since=2030-05-01": 2, "since=2030-05-01T00:30Z": 1, "since=2031-01-01": 0, "since=HEAD~1": 0,
        "since=HEAD~2": 1, "author=bo": 1, "author=BO@x.org": 1, "author=bo@x": 0, "type=tag": 2,
        "type=home": 1, "type=homes": 1,
    }.items():  # fmt: skip
        assert len(api.get(f"/history?{query}").data) == count, query
    assert api.get("/history?since=nothing").status == 400
    assert api.get("/history?since[x]=1").status == 400


def test_a_single_type_needs_no_id(api: Api) -> None:
    write(api.root, {"content/home.yaml": "title: Hello\n"})
    commit(api.root, 1, "Greet")
    api.site.refresh()
    assert [e["message"] for e in api.get("/history/home").data] == ["Greet", "Begin"]
    assert api.get("/history/home/diff").data == {"title": {"from": "Welcome", "to": "Hello"}}
    assert api.get("/history/home/blame").data["title"]["author"]["name"] == "Ada"
    assert api.ask("POST", "/history/home/restore", json={"at": "HEAD~1"}).data["title"] == "Welcome"
    assert api.read("content/home.yaml").startswith("title: Welcome\n")


# --- restore -----------------------------------------------------------------------------------------


def test_a_version_is_restored_whole_or_in_some_attributes(api: Api) -> None:
    before = text(api)
    changes = {"title": "Two", "body": "Other.\n", "tags": [], "cover": None, "quote": None, "day": None}
    assert api.put("/api/notes/one", changes).status == 200
    commit(api.root, 1, "Change all")
    answer = api.ask(
        "POST", "/history/notes/one/restore?populate=*", json={"at": "HEAD~1", "fields": ["body", "day"]}
    )
    assert (answer.data["title"], answer.data["body"], answer.data["day"]) == (
        "Two",
        "First line.\n\nLast line.",
        "2024-05-01",
    )
    answer = api.ask("POST", "/history/notes/one/restore?populate=*", json={"at": "HEAD~1"})
    assert answer.data["title"] == "One"
    assert [tag["documentId"] for tag in answer.data["tags"]] == ["sea"]
    assert answer.data["cover"]["name"] == "a.txt"
    assert answer.data["quote"]["text"] == "Said"
    assert answer.headers["ETag"]
    said = [line for line in text(api).splitlines() if not line.startswith("updatedAt")]
    assert set(before.splitlines()) <= {*said, "  secret: s"}
    assert api.get("/api/notes/one?fields=title").data["title"] == "One"


def test_numbers_with_a_fraction_are_restored(make_api: MakeApi, tmp_path: Path) -> None:
    numbers = {"tall": "float", "price": "decimal", "data": "json"}
    write(tmp_path, {**collection("note", numbers), "content/notes/one.yaml": "tall: 1.5\nprice: 2.50\n"})
    commit_all(tmp_path)
    api = make_api({})
    assert api.put("/api/notes/one", {"tall": 3.5, "price": 4, "data": {"a": 0.5}}).status == 200
    restored = api.ask("POST", "/history/notes/one/restore", json={"at": "main"})
    assert (restored.data["tall"], restored.data["price"], restored.data["data"]) == (1.5, 2.5, None)


def test_a_published_version_is_restored_as_a_draft(api: Api) -> None:
    before = text(api)
    body = {"at": "main", "status": "published", "fields": ["title"]}
    assert api.put("/api/notes/one?status=draft", {"title": "Draft"}).status == 200
    answer = api.ask("POST", "/history/notes/one/restore?status=draft", json=body)
    assert (answer.status, answer.data["title"]) == (200, "One")
    assert text(api) == before
    assert "title: One" in api.read("content/notes/one.draft.md")
    assert api.put("/api/notes/one", {"title": "Two"}).status == 200
    del body["status"]
    answer = api.ask("POST", "/history/notes/one/restore?status=draft", json=body)
    assert (answer.data["title"], "title: Two" in text(api)) == ("One", True)


def test_a_restore_checks_if_match(api: Api) -> None:
    before = text(api)
    body, path = {"at": "main", "fields": ["title"]}, "/history/notes/one/restore"
    etag = api.get("/api/notes/one").headers["ETag"]
    assert api.put("/api/notes/one", {"title": "Two"}).status == 200
    assert api.ask("POST", path, json=body, headers={"If-Match": etag}).status == 412
    assert text(api) != before
    assert api.ask("POST", path, json=body).status == 200


def test_the_hash_of_a_password_is_not_restored_as_a_password(api: Api) -> None:
    said = text(api).replace("  secret: s\n", "  secret: s\n  code: $argon2id$hash\n")
    write(api.root, {"content/notes/one.md": said})
    commit(api.root, 1, "Add a code")
    write(api.root, {"content/notes/one.md": said.replace("Said", "Other")})
    commit(api.root, 2, "Change")
    api.site.refresh()
    body = {"at": "HEAD~1", "fields": ["quote"]}
    answer = api.ask("POST", "/history/notes/one/restore?populate=*", json=body)
    assert answer.data["quote"]["text"] == "Said"
    assert "text: Said\n" in text(api)
    # The response contains neither the earlier password hash nor any value derived from it.
    assert "code:" not in text(api)


def test_a_deleted_document_is_restored_under_its_id(api: Api) -> None:
    assert api.ask("DELETE", "/api/notes/one?locale=*").status == 204
    commit(api.root, 1, "Delete")
    answer = api.ask("POST", "/history/notes/one/restore", json={"at": "2030-05-01T00:30Z"})
    assert (answer.status, answer.data["documentId"], answer.data["title"]) == (201, "one", "One")


def test_deleted_documents_are_found_and_restored(api: Api) -> None:
    first = git(api.root, "rev-parse", "HEAD").strip()
    assert api.get("/history/notes?deleted=true").data == []
    assert api.ask("DELETE", "/api/notes/one?locale=*").status == 204
    versions = [{"locale": locale, "status": "published", "at": first} for locale in ("en", "fr")]
    [gone] = api.get("/history/notes?deleted=true").data
    assert (gone["documentId"], gone["commit"], gone["author"]) == ("one", None, None)
    second = commit(api.root, 1, "Delete it", "Bo <bo@x.org>")
    write(api.root, {"content/tags/sky.yaml": "name: Sky\n"})
    commit(api.root, 2, "A tag")
    git(api.root, "mv", "content/tags/sea.yaml", "content/tags/ocean.yaml")
    commit(api.root, 3, "Rename a tag")
    answer = api.get("/history/notes?deleted=true")
    assert answer.data == [
        {
            "documentId": "one",
            "title": "One",
            "commit": second,
            "author": {"name": "Bo", "email": "bo@x.org"},
            "date": "2030-05-01T01:00:00.000Z",
            "message": "Delete it",
            "versions": versions,
        }
    ]
    assert answer.body["meta"]["pagination"]["total"] == 1
    # The document was renamed and still exists, so it is not listed as deleted.
    assert api.get("/history/tags?deleted=true").data == []
    for one in versions:
        restored = api.ask(
            "POST", f"/history/notes/one/restore?locale={one['locale']}", json={"at": one["at"]}
        )
        assert restored.status in (200, 201)
    assert api.get("/history/notes?deleted=true").data == []
    assert api.get("/api/notes/one?locale=fr").data["title"] == "Un"
    assert api.get("/history/notes?deleted=yes").status == 400
    assert api.get("/history/notes").status == api.get("/history/nothing?deleted=true").status == 404


def test_deleted_drafts_are_named_to_those_who_may_read_drafts(api: Api) -> None:
    write(api.root, {"content/notes/two.draft.md": "---\ntitle: Two\n---\n"})
    commit(api.root, 1, "Begin another")
    (api.root / "content/notes/two.draft.md").unlink()
    [gone] = api.get("/history/notes?deleted=true").data
    assert (gone["title"], gone["versions"][0]["status"]) == ("Two", "draft")
    api.token("reader", may=["note.find", "history.read"])
    assert api.get("/history/notes?deleted=true", "reader").data == []
    api.token("other", may=["tag.find", "history.read"])
    assert api.get("/history/notes?deleted=true", "other").status == 403
    assert api.get("/history/notes?deleted=true", "public").status == 403


def test_a_restored_version_is_validated_as_any_write(api: Api) -> None:
    assert api.put("/api/notes/one", {"tags": []}).status == 200
    assert api.ask("DELETE", "/api/tags/sea").status == 204
    commit(api.root, 1, "No sea")
    before = text(api)
    answer = api.ask("POST", "/history/notes/one/restore", json={"at": "HEAD~1"})
    assert answer.status == 400
    assert "sea" in answer.text
    assert text(api) == before


NOTHING_TO_RESTORE: list[Any] = [
    None,
    [],
    {},
    {"at": 1},
    {"at": "nothing"},
    {"at": "--all"},
    {"at": "main\0"},
    {"at": "main", "fields": []},
    {"at": "main", "fields": ["none"]},
    {"at": "main", "fields": ["hidden"]},
    {"at": "main", "fields": "title"},
    {"at": "main", "status": "modified"},
]


@pytest.mark.parametrize("body", NOTHING_TO_RESTORE)
def test_a_body_without_anything_to_restore_is_refused(api: Api, body: Any) -> None:
    before = text(api)
    assert api.ask("POST", "/history/notes/one/restore", json=body).status == 400
    assert text(api) == before


# --- visibility --------------------------------------------------------------------------------------


def test_history_needs_its_own_permission_and_the_types(api: Api) -> None:
    tokens = {
        "reader": "note.find history.read",
        "finder": "note.find note.readDraft",
        "blind": "tag.find history.read",
        "restorer": "note.find note.update history.read history.restore",
        "updater": "note.find note.update history.read",
        "only": "note.find history.read history.restore",
    }
    for name, may in tokens.items():
        api.token(name, may=may.split())
    for path in ("", "/diff", "/blame"):
        statuses = [
            api.get(f"/history/notes/one{path}", who).status
            for who in ("reader", "finder", "blind", "public")
        ]
        assert statuses == [200, 403, 403, 403], path
    body = {"at": "main", "fields": ["title"]}
    for who, status in {"restorer": 200, "updater": 403, "only": 403, "public": 403}.items():
        assert api.ask("POST", "/history/notes/one/restore", who, json=body).status == status, who
    assert [c["documents"] for c in api.get("/history?type=note", "blind").data] == []
    assert {d["type"] for c in api.get("/history", "reader").data for d in c["documents"]} == {"note"}


def test_hidden_drafts_and_values_are_not_revealed(api: Api) -> None:
    write(api.root, {"content/notes/two.draft.md": "---\ntitle: Secret plan\n---\n"})
    write(
        api.root,
        {
            "content/notes/one.md": text(api)
            .replace("hidden: no", "hidden: yes")
            .replace("secret: s", "secret: t")
        },
    )
    commit(api.root, 1, "Hide")
    api.site.refresh()
    api.token("reader", may=["note.find", "history.read"])
    assert api.get("/history/notes/two", "reader").status == 404
    assert api.get("/history/notes/one?status=draft", "reader").data == []
    assert api.get("/history/notes/one/diff?status=draft", "reader").status == 403
    documents = [d for c in api.get("/history", "reader").data for d in c["documents"]]
    assert "two" not in {d["documentId"] for d in documents}
    for path in ("", "/diff", "/diff?from=HEAD~1", "/blame"):
        said = api.get(f"/history/notes/one{path}").text
        assert "secret" not in said, path
        assert "hidden" not in said, path
    assert "tags" not in api.get("/history/notes/one", "reader").text


NEUTRAL = "Changed documents"


def test_messages_are_visible_if_all_changes_of_a_commit_are(api: Api) -> None:
    tag, draft = "content/tags/sea.yaml", "content/notes/plan.draft.md"
    told = 'Update tag "Ocean"\n\nBifolio-Actor: token:full\nBifolio-Document: tag/sea\n'
    commits = {
        "all": ({tag: "name: Ocean\n"}, told),
        "a draft": ({tag: "name: Sea\n", draft: "---\ntitle: Plan\n---\n"}, _listed("note/plan")),
        "a picture": ({tag: "name: Bay\n", "content/uploads/plan.txt": "p\n"}, _listed("upload/plan.txt")),
        "a type": ({tag: "name: Fog\n", **collection("plan", {"title": STRING})}, "Plan more"),
        "of no type": ({tag: "name: Tide\n", "content/plans/b.yaml": "title: Plan\n"}, "Say what we plan"),
        "other files": ({tag: "name: Eddy\n", "README.md": "What we do\n"}, "Say what we do"),
    }
    for hour, (files, message) in enumerate(commits.values(), start=1):
        write(api.root, files)
        commit(api.root, hour, message)
    api.site.refresh()
    api.token("reader", may=["tag.find", "history.read"])
    kept = f"{NEUTRAL}\n\nBifolio-Document: tag/sea"
    expected = ["Say what we do", NEUTRAL, NEUTRAL, kept, kept, told.strip()]
    for path in ("/history/tags/sea", "/history"):
        found = api.get(path, "reader")
        assert [entry["message"].strip() for entry in found.data[:6]] == expected
        assert "plan" not in found.text.lower()
        assert [entry["commit"] for entry in found.data] == [entry["commit"] for entry in api.get(path).data]
        assert api.get(path).body["meta"] == found.body["meta"]
    api.token("more", may=["tag.find", "history.read", "note.find", "note.readDraft", "upload.find"])
    shown = [entry["message"].strip() for entry in api.get("/history/tags/sea", "more").data[:6]]
    assert shown == [
        "Say what we do",
        NEUTRAL,
        NEUTRAL,
        *(c[1] for c in list(commits.values())[2:0:-1]),
        told.strip(),
    ]
    (api.root / "content-types/plan.json").unlink()
    api.site.refresh()
    assert [entry["message"].strip() for entry in api.get("/history", "reader").data[:6]] == expected
    api.token("all", "full-access")
    assert [entry["message"] for entry in api.get("/history", "all").data[1:3]] == [
        "Say what we plan",
        "Plan more",
    ]


def _listed(name: str) -> str:
    lines = ['Update tag "Sea"', f'Create "{name}"']
    return "\n".join(
        ("Make 2 changes", "", *lines, "", "Bifolio-Document: tag/sea", f"Bifolio-Document: {name}")
    )


def test_the_message_of_a_merge_needs_full_visibility(api: Api) -> None:
    git(api.root, "checkout", "-qb", "next")
    write(
        api.root,
        {"content/tags/sea.yaml": "name: Ocean\n", "content/notes/plan.draft.md": "---\ntitle: P\n---\n"},
    )
    commit(api.root, 1, "Plan")
    git(api.root, "checkout", "-q", "main")
    write(api.root, {"content/tags/sea.yaml": "name: Bay\n"})
    commit(api.root, 2, "Bay")
    git(api.root, "merge", "-q", "-s", "ours", "--no-commit", "next")
    write(api.root, {"content/tags/sea.yaml": "name: Fjord\n"})
    commit(api.root, 3, "Merge the plan")
    api.site.refresh()
    api.token("reader", may=["tag.find", "note.find", "history.read"])
    assert api.get("/history/tags/sea").data[0]["message"] == "Merge the plan"
    assert api.get("/history/tags/sea", "reader").data[0]["message"] == NEUTRAL


def test_the_message_of_a_deletion_needs_full_visibility(api: Api) -> None:
    write(
        api.root,
        {"content/tags/fog.yaml": "name: Fog\n", "content/notes/plan.draft.md": "---\ntitle: P\n---\n"},
    )
    commit(api.root, 1, "Begin")
    for path in ("content/tags/fog.yaml", "content/notes/plan.draft.md"):
        (api.root / path).unlink()
    commit(api.root, 2, "Drop the plan")
    api.site.refresh()
    api.token("reader", may=["tag.find", "note.find", "history.read"])
    assert api.get("/history/tags?deleted=true").data[0]["message"] == "Drop the plan"
    assert api.get("/history/tags?deleted=true", "reader").data[0]["message"] == NEUTRAL


def test_a_published_former_draft_looks_new_without_readDraft(api: Api) -> None:
    draft, file = api.root / "content/notes/two.draft.md", api.root / "content/notes/two.md"
    body = "A line.\n" * 100
    draft.write_text(f"---\ntitle: Secret\nday: 2024-05-01\n---\n{body}")
    commit(api.root, 1, "Draft")
    draft.unlink()
    file.write_text(f"---\ntitle: Two\nday: 2024-05-01\n---\n{body}")
    commit(api.root, 2, "Publish")
    api.site.refresh()
    api.token("reader", may=["note.find", "history.read"])
    [published, _] = api.get("/history/notes/two").data
    assert (published["action"], published["attributes"]) == ("rename", ["title"])
    [first] = api.get("/history/notes/two", "reader").data
    assert (first["action"], first["attributes"]) == ("create", ["title", "body", "day"])
    assert api.get("/history").data[0]["documents"][0]["action"] == "rename"
    assert api.get("/history", "reader").data[0]["documents"][0]["action"] == "create"


def test_differences_in_hidden_values_are_not_listed(api: Api) -> None:
    write(api.root, {"content/notes/plan.draft.md": "---\ntitle: Plan\n---\n"})
    write(api.root, collection("list", {"title": STRING, "notes": relation("manyToMany", "note")}))
    write(api.root, {"content/lists/all.yaml": "title: All\nnotes: [one]\n"})
    commit(api.root, 1, "List")
    write(api.root, {"content/lists/all.yaml": "title: All\nnotes: [one, plan]\n"})
    commit(api.root, 2, "Plan")
    api.site.refresh()
    api.token("reader", may=["list.find", "note.find", "history.read"])
    assert list(api.get("/history/lists/all/diff").data) == ["notes"]
    assert api.get("/history/lists/all/diff", "reader").data["notes"] == {"from": None, "to": ["one"]}
    assert [one["attributes"] for one in api.get("/history/lists/all").data] == [
        ["notes"],
        ["title", "notes"],
    ]
    assert brief(api.get("/history/lists/all", "reader")) == [
        (NEUTRAL, "en", "published", "create", ["title", "notes"])
    ]


def test_commits_that_change_only_hidden_values_are_hidden(api: Api) -> None:
    plans = collection("plan", {"title": STRING})
    secret = {"type": "string", "private": True}
    lists = collection("list", {"title": STRING, "secret": secret, "plan": relation("manyToOne", "plan")})
    write(
        api.root,
        {**plans, **lists, "content/plans/p.yaml": "title: P\n", "content/lists/b.yaml": "title: B\n"},
    )
    write(api.root, {"content/lists/a.yaml": "title: A\n"})
    commit(api.root, 1, "Begin lists")
    told = "Note the plan\n\nBifolio-Document: list/a\nBifolio-Document: list/b\n"
    versions = (
        ("title: One\n", "B", "Call it One"),
        ("title: One\nsecret: plan\n", "B", "Note the plan\n\nBifolio-Document: list/a\n"),
        ("title: One\nsecret: plan\nplan: p\n", "B", "Link the plan"),
        ("title: One\nsecret: plans\nplan: p\n", "C", told),
    )
    for hour, (first, second, message) in enumerate(versions, start=2):
        write(api.root, {"content/lists/a.yaml": first, "content/lists/b.yaml": f"title: {second}\n"})
        commit(api.root, hour, message)
    api.site.refresh()
    api.token("reader", may=["list.find", "history.read"])
    assert brief(api.get("/history/lists/a", "reader")) == [
        ("Call it One", "en", "published", "update", ["title"]),
        (NEUTRAL, "en", "published", "create", ["title"]),
    ]
    trailer = f"{NEUTRAL}\n\nBifolio-Document: list/b"
    assert brief(api.get("/history/lists/b", "reader"))[0] == (
        trailer,
        "en",
        "published",
        "update",
        ["title"],
    )
    assert api.get("/history/lists/a/diff", "reader").data == {"title": {"from": "A", "to": "One"}}
    listed = [
        (one["message"], [document["documentId"] for document in one["documents"]], one["count"])
        for one in api.get("/history?type=list", "reader").data
    ]
    assert listed[:4] == [
        (trailer, ["b"], 1),
        (NEUTRAL, [], 0),
        (NEUTRAL, [], 0),
        ("Call it One", ["a"], 1),
    ]
    assert [one["message"].partition("\n")[0] for one in api.get("/history/lists/a").data] == [
        "Note the plan",
        "Link the plan",
        "Note the plan",
        "Call it One",
        "Begin lists",
    ]


def test_true_and_one_differ(api: Api) -> None:
    write(api.root, collection("list", {"data": {"type": "json"}}))
    write(api.root, {"content/lists/all.yaml": "data: [1]\n"})
    commit(api.root, 1, "One")
    write(api.root, {"content/lists/all.yaml": "data: [true]\n"})
    commit(api.root, 2, "True")
    api.site.refresh()
    assert api.get("/history/lists/all/diff").data == {"data": {"from": [1], "to": [True]}}


def test_drafts_are_not_named_without_readDraft(api: Api) -> None:
    write(api.root, {"content/notes/plan.draft.md": "---\ntitle: Plan\n---\n"})
    write(api.root, collection("list", {"title": STRING, "notes": relation("manyToMany", "note")}))
    write(api.root, {"content/lists/all.yaml": "title: All\nnotes: [one, plan]\n"})
    commit(api.root, 1, "List")
    write(api.root, {"content/lists/all.yaml": "title: All\nnotes: []\n"})
    commit(api.root, 2, "Clear")
    api.site.refresh()
    may = "list.find list.update note.find history.read history.restore"
    api.token("reader", may=may.split())
    change = {"from": ["one", "plan"], "to": None}
    assert api.get("/history/lists/all/diff").data == {"notes": change}
    assert api.get("/history/lists/all/diff", "reader").data == {"notes": {**change, "from": ["one"]}}
    answer = api.ask("POST", "/history/lists/all/restore?populate=*", "reader", json={"at": "HEAD~1"})
    assert [note["documentId"] for note in answer.data["notes"]] == ["one"]
    assert "plan" not in answer.text


# --- sites without history ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "/notes/one", "/notes/one/diff", "/notes/one/blame", "/home"])
def test_a_site_without_commits_gets_a_helpful_error(make_api: MakeApi, path: str) -> None:
    api = make_api({**SCHEMA, **CONTENT})
    assert "git init" in api.get(f"/history{path}").error["message"]
    git(api.root, "init", "-q")
    api.site.refresh()
    answer = api.get(f"/history{path}")
    assert (answer.status, "commit" in answer.error["message"]) == (409, True)
    assert api.ask("POST", "/history/notes/one/restore", json={"at": "main"}).status == 409


def test_odd_commits_do_no_harm(api: Api) -> None:
    (api.root / "content/notes/one.md").write_bytes(b"\xff\xfe broken")
    git(api.root, "add", "-A")
    git(
        api.root,
        "-c",
        "i18n.commitEncoding=ISO-8859-1",
        "commit",
        "-qm",
        "caf\udce9".encode("utf-8", "surrogateescape").decode("latin-1"),
    )
    write(api.root, {"content/notes/one.md": "---\ntitle: [\n---\n"})
    commit(api.root, 3, "Broken")
    write(api.root, {"content/notes/one.md": "---\ntitle: Sound\n---\n"})
    commit(api.root, 4, "Sound again")
    found = api.get("/history/notes/one?locale=en")
    assert [e["attributes"] for e in found.data][:3] == [None, None, None]
    assert api.get("/history/notes/one/blame").data["title"]["author"]["name"] == "Ada"


def test_files_with_names_that_are_not_utf_8_have_no_history(tmp_path: Path) -> None:
    write(tmp_path, {**SCHEMA, **CONTENT})
    with open(os.path.join(os.fsencode(tmp_path), b"content/tags/caf\xe9.yaml"), "wb") as file:
        file.write(b"name: Coffee\n")
    commit_all(tmp_path)
    api = make(tmp_path, {})
    answer = api.get("/history?type=tag")
    assert answer.status == 200
    assert [tag["documentId"] for tag in answer.data[0]["documents"]] == ["sea"]
    api.accounts.close()
