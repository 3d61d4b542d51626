"""Tests for `/branches/NAME/changes`, which lists the documents and attributes that a branch has changed."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, make, relation, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

NOTE = {
    "title": STRING,
    "body": {"type": "richtext"},
    "hidden": {"type": "string", "private": True},
    "tags": relation("manyToMany", "tag"),
}
FILES = {
    "site.yaml": "search: {index: false}\n",
    **collection("tag", {"name": STRING}),
    **collection("note", NOTE, drafts=True),
    "content/tags/sea.yaml": "name: Sea\n",
    "content/tags/fog.yaml": "name: Fog\n",
    "content/notes/one.md": "---\ntitle: One\nhidden: a\ntags: [sea]\n---\nFirst.\n\nLast.\n",
    "content/notes/two.md": "---\ntitle: Two\n---\n",
}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    write(tmp_path, FILES)
    commit_all(tmp_path)
    git(tmp_path, "branch", "topic/next")
    made = make(tmp_path, {})
    yield made
    made.accounts.close()


def put(api: Api, path: str, **data: object) -> None:
    assert api.put(f"/api/{path}{'&' if '?' in path else '?'}branch=topic/next", data).status == 200


def changes(
    api: Api, who: str = "full", query: str = ""
) -> list[tuple[str, str, str, str, dict[str, object]]]:
    found = api.get(f"/branches/topic/next/changes{query}", who).data
    return [(c["type"], c["documentId"], c["status"], c["action"], c["attributes"]) for c in found]


def test_changed_documents_are_listed_by_attribute(api: Api) -> None:
    fork = git(api.root, "rev-parse", "main").strip()
    assert changes(api) == []
    put(api, "notes/one", title="Uno", body="First.\n\nThe last.\n", tags=["fog"], hidden="b")
    put(api, "notes/two?status=draft", title="Dos")
    assert api.ask("DELETE", "/api/tags/sea?branch=topic/next").status == 204
    found = api.get("/branches/topic/next/changes")
    head = git(api.root, "rev-parse", "topic/next").strip()
    assert (found.body["meta"]["from"], found.body["meta"]["to"]) == (fork, head)
    assert found.body["meta"]["pagination"]["total"] == 3
    one, two, sea = changes(api)
    lines = ["@@ -1,3 +1,4 @@", " First.", " ", "-Last.", "+The last."]
    body = one[4].pop("body")
    assert isinstance(body, dict)
    assert body["lines"][:5] == lines
    assert one == (
        "note", "one", "published", "update",
        {"title": {"from": "One", "to": "Uno"}, "tags": {"from": ["sea"], "to": ["fog"]}},
    )  # fmt: skip
    assert two == ("note", "two", "draft", "create", {"title": {"from": None, "to": "Dos"}})
    assert sea == ("tag", "sea", "published", "delete", {"name": {"from": "Sea", "to": None}})
    assert changes(api, query="?page=2&pageSize=2") == [sea]


def test_changed_media_files_are_listed_for_those_who_may_find_media(api: Api) -> None:
    api.token("reader", "custom", ["branch.find", "note.find"])
    name = "content/uploads/buoy.txt"
    git(api.root, "checkout", "-q", "topic/next")
    write(api.root, {name: "Buoy", "content/uploads/gone.txt": "Gone"})
    commit_all(api.root)
    git(api.root, "checkout", "-q", "main")
    meta = api.get("/branches/topic/next/changes").body["meta"]
    assert meta["media"] == [
        {"path": name, "action": "create", "attributes": {}},
        {"path": "content/uploads/gone.txt", "action": "create", "attributes": {}},
    ]
    assert meta["mediaTotal"] == 2
    hidden = api.get("/branches/topic/next/changes", "reader").body["meta"]
    assert (hidden["media"], hidden["mediaTotal"]) == ([], 0)


def test_changed_content_types_and_settings_are_listed_for_those_who_may_read_them(api: Api) -> None:
    api.token("reader", "custom", ["branch.find", "note.find"])
    api.token("editor", "custom", ["branch.find", "content-type.write", "source.read"])
    api.token("admin", "custom", ["branch.find", "settings.read"])
    git(api.root, "checkout", "-q", "topic/next")
    (api.root / "content-types/tag.json").unlink()
    write(
        api.root,
        {
            "site.yaml": "name: Sea\nwebhooks:\n  - {name: a, url: 'https://a.example/?key=swordfish'}\n",
            "migrations/0001-drop.yaml": "changes: []\n",
            "migrations/notes.bin": b"\xff",
            **collection("note", {"title": STRING, "body": {"type": "richtext"}}, drafts=True),
        },
    )
    commit_all(api.root)
    git(api.root, "checkout", "-q", "main")
    api.site.refresh()

    def listed(who: str) -> tuple[list[str], int]:
        meta = api.get("/branches/topic/next/changes", who).body["meta"]
        return [f"{file['action']} {file['path']}" for file in meta["files"]], meta["filesTotal"]

    types = [
        "update content-types/note.json",
        "delete content-types/tag.json",
        "create migrations/0001-drop.yaml",
        "create migrations/notes.bin",
    ]
    assert listed("full") == ([*types, "update site.yaml"], 5)
    assert listed("reader") == ([], 5)
    assert listed("editor") == (types, 5)
    assert listed("admin") == (["update site.yaml"], 5)
    _, _, migration, binary, settings = api.get("/branches/topic/next/changes").body["meta"]["files"]
    assert binary["lines"] is None
    assert migration["lines"] == ["@@ -0,0 +1 @@", "+changes: []"]
    assert "+name: Sea" in settings["lines"]
    assert "swordfish" not in str(settings["lines"])


def test_the_diff_of_settings_shows_no_comments(api: Api) -> None:
    settings = "# swordfish 1\nname: Sea # swordfish 2\n#accounts: swordfish\nllms: {enabled: false}\n"
    write(api.root, {"site.yaml": settings})
    commit_all(api.root)
    git(api.root, "checkout", "-qb", "settings")
    write(api.root, {"site.yaml": settings.replace("Sea", "Pier").replace("2", "3")})
    commit_all(api.root)
    git(api.root, "checkout", "-q", "main")
    answer = api.get("/branches/settings/changes")
    (file,) = answer.body["meta"]["files"]
    assert file["lines"] == ["@@ -2 +2 @@", "-name: Sea # (hidden)", "+name: Pier # (hidden)"]
    assert "swordfish" not in answer.text


def test_a_changed_description_is_listed_by_attribute(api: Api) -> None:
    name = "content/uploads/buoy.txt"
    write(api.root, {name: "Buoy", f"{name}.yaml": "alternativeText: A buoy\ncaption: Sea\n"})
    commit_all(api.root)
    git(api.root, "branch", "-f", "topic/next", "main")
    api.site.refresh()
    [file] = api.get("/api/upload/files").body
    info = {"alternativeText": "A red buoy", "caption": "Sea"}
    sent = {"fileInfo": json.dumps(info)}
    answer = api.ask("POST", f"/api/upload?id={file['id']}&branch=topic/next", data=sent)
    assert answer.status == 200, answer.body
    [media] = api.get("/branches/topic/next/changes").body["meta"]["media"]
    assert (media["path"], media["action"]) == (f"{name}.yaml", "update")
    assert media["attributes"] == {"alternativeText": {"from": "A buoy", "to": "A red buoy"}}


def test_changes_of_the_served_branch_are_not_listed(api: Api) -> None:
    put(api, "notes/one", title="Uno")
    write(api.root, {"content/notes/two.md": "---\ntitle: Deux\n---\n"})
    git(api.root, "commit", "-qam", "served")
    api.site.refresh()
    assert [c[:2] for c in changes(api)] == [("note", "one")]


def test_hidden_documents_are_not_listed(api: Api) -> None:
    put(api, "notes/one", title="Uno", tags=["fog"])
    put(api, "notes/two", hidden="x")
    put(api, "notes/two?status=draft", title="Dos")
    put(api, "tags/fog", name="Mist")
    api.token("notes", may=["branch.find", "note.find"])
    api.token("none", may=["branch.find"])
    api.token("history", may=["history.read", "note.find"])
    assert changes(api, "notes") == [
        ("note", "one", "published", "update", {"title": {"from": "One", "to": "Uno"}})
    ]
    assert changes(api, "none") == []
    assert api.get("/branches/topic/next/changes", "history").status == 403
    assert api.get("/branches/none/changes").status == 404


def test_a_branch_without_a_common_commit(api: Api) -> None:
    tree = git(api.root, "rev-parse", "main^{tree}").strip()
    other = git(api.root, "commit-tree", tree, "-m", "another beginning", at="2025-01-01T00:00:00Z").strip()
    git(api.root, "branch", "apart", other)
    assert api.get("/branches/apart/changes").status == 409


def test_another_schema(api: Api) -> None:
    git(api.root, "checkout", "-q", "topic/next")
    write(api.root, collection("note", {**NOTE, "label": STRING}, drafts=True))
    write(api.root, {"content/notes/two.md": "---\ntitle: Two\nlabel: x\n---\n"})
    git(api.root, "commit", "-qam", "label")
    git(api.root, "checkout", "-q", "main")
    api.site.refresh()
    assert changes(api) == [("note", "two", "published", "update", {"label": {"from": None, "to": "x"}})]


def test_changes_have_the_titles_that_a_caller_may_see(api: Api) -> None:
    put(api, "notes/one", title="Uno")
    put(api, "notes/two?status=draft", title="Dos")
    assert api.ask("DELETE", "/api/tags/sea?branch=topic/next").status == 204
    found = api.get("/branches/topic/next/changes").data
    assert [change["title"] for change in found] == ["Uno", "Dos", "Sea"]
    note = {**NOTE, "title": {"type": "string", "private": True}}
    write(api.root, collection("note", note, drafts=True))
    api.site.refresh()
    found = api.get("/branches/topic/next/changes").data
    assert "Uno" not in str(found)
    assert [change["title"] for change in found if change["type"] == "tag"] == ["Sea"]
