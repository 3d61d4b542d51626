"""Tests of problems and source files on branches, and of which branches are merged."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.index.budget import turns
from tests.branches import site_with_branch
from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, opened, relation, write

FILES = {
    **collection("tag", {"name": STRING}),
    **collection("post", {"title": STRING, "body": "richtext", "tags": relation("manyToMany", "tag")}),
    **collection("secret", {"title": STRING, "tags": relation("manyToMany", "tag")}),
    "content/tags/sea.yaml": "name: Sea\n",
    "content/tags/sky.yaml": "name: Sky\n",
    "content/posts/one.md": "---\ntitle: One\ntags: [sea]\n---\nText.\n",
    "content/posts/two.md": "---\ntitle: Two\ntags: [none]\n---\n",
    "content/secrets/a.yaml": "title: A\ntags: [sea]\n",
    ".gitignore": ".bifolio/\n",
}  # fmt: skip


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    api = site_with_branch(tmp_path, FILES)
    yield api
    api.accounts.close()


def problems(api: Api, query: str = "", who: str = "full") -> set[tuple[str, str, bool]]:
    listed = api.get(f"/branches/next/problems{query}", who).data
    return {(one["path"], one["rule"], one["new"]) for one in listed}


def change_on_branch(api: Api, body: str) -> None:
    assert api.put("/api/posts/one?branch=next&fields=title", {"body": body}).status == 200


def test_a_branch_with_too_many_links_is_not_checked(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "site.yaml": "api: {limits: {steps: 10000}}\n"})
    commit_all(tmp_path)
    git(tmp_path, "branch", "next")
    api = Api.of(opened(tmp_path))
    change_on_branch(api, "[a](/uploads/x.jpg)\n" * 500)
    assert len(api.get("/branches/next/problems?pageSize=100").data) == 100
    fork = git(tmp_path, "rev-parse", "main")[:10]
    for links in (900, 2000):  # With 900, the links are allowed, but not their problems.
        change_on_branch(api, "[a](/uploads/x.jpg)\n" * links)
        error = api.get("/branches/next/problems").error
        assert (error["status"], error["details"]) == (400, {"limit": "steps"})
        size = int(git(tmp_path, "cat-file", "-s", "next:content/posts/one.md"))
        what = f"The files that differ from the commit {fork} are too large to check: 1 file, {size:,} bytes"
        assert error["message"] == what
    api.accounts.close()


def test_a_branch_is_checked_once_for_all_callers(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.token("reader", may=["post.find", "branch.find", "problems.find", "tag.find"])
    change_on_branch(api, "See [it](none.md).")
    assert api.ask("DELETE", "/api/tags/sea?branch=next").status == 204
    broken, dangling = (("content/posts/one.md", rule, True) for rule in ("broken-link", "dangling"))
    hidden = ("content/secrets/a.yaml", "dangling", True)
    assert problems(api) == {broken, dangling, hidden}
    taken = turns(max_waiting=0)
    monkeypatch.setattr(api.app.wsgi_app, "turns", taken)
    with taken:  # Nothing is checked again, so no turn is necessary.
        assert problems(api, who="reader") == {broken, dangling}
        assert problems(api, "?path=content/secrets/a.yaml") == {hidden}
        assert api.get("/branches/next/problems", "public").status == 403
        change_on_branch(api, "Text.")
        assert api.get("/branches/next/problems").status == 503
    assert problems(api) == {dangling, hidden}


def test_a_branch_without_changes_has_no_problems(api: Api) -> None:
    assert problems(api) == set()


def test_problems_of_changed_files_and_those_that_they_cause(api: Api) -> None:
    first = git(api.root, "rev-parse", "next").strip()
    assert api.ask("DELETE", "/api/tags/sea?branch=next").status == 204
    caused = {("content/posts/one.md", "dangling", True), ("content/secrets/a.yaml", "dangling", True)}
    assert problems(api) == caused
    second = git(api.root, "rev-parse", "next").strip()
    assert api.put("/api/posts/two?branch=next", {"body": "See [it](none.md)."}).status == 200
    known = ("content/posts/two.md", "dangling", False)  # in the file before, and not on the branch alone
    broken = ("content/posts/two.md", "broken-link", True)
    assert problems(api) == {*caused, known, broken}
    assert problems(api, f"?since={second}") == {known, broken}
    assert problems(api, f"?since={first}") == {*caused, known, broken}
    assert problems(api, "?path=content/posts/two.md&path=content/tags/sky.yaml") == {known, broken}
    assert api.get("/branches/next/problems?path[a]=b").status == 400
    assert problems(api, "?pageSize=1&page=1") < {*caused, known, broken}
    assert api.get("/api/posts/one?populate=tags").data["tags"] != []


def test_only_commits_of_the_branch_can_be_the_start(api: Api) -> None:
    git(api.root, "commit", "-q", "--allow-empty", "-m", "Later")
    for since in (git(api.root, "rev-parse", "HEAD").strip(), "main", "next", "x" * 200):
        assert api.get(f"/branches/next/problems?since={since}").status == 400
    assert api.get("/branches/none/problems").status == 404


def test_problems_are_shown_to_whom_they_are_shown_on_the_served_branch(api: Api) -> None:
    assert api.ask("DELETE", "/api/tags/sea?branch=next").status == 204
    may = ("branch.find", "problems.find", "post.find", "post.findOne", "tag.find", "tag.findOne")
    api.token("editor", may=may)
    assert problems(api, who="editor") == {("content/posts/one.md", "dangling", True)}
    for missing in ("branch.find", "problems.find"):
        api.token(missing, may=set(may) - {missing})
        assert api.get("/branches/next/problems", missing).status == 403
    api.token("tagless", may=set(may) - {"tag.find", "tag.findOne"})
    assert problems(api, who="tagless") == set()


def test_a_source_is_read_and_written_on_a_branch(api: Api) -> None:
    path = "/source/posts/one"
    served = api.get(path)
    text = served.data["text"].replace("Text.", "Other.")
    sent = {"json": {"data": {"text": text}}, "headers": {"If-Match": served.headers["ETag"]}}
    assert (
        api.ask("PUT", f"{path}?branch=next&dryRun=true", **sent).data["files"][0]["path"]
        == "content/posts/one.md"
    )
    done = api.ask("PUT", f"{path}?branch=next", **sent)
    assert done.data["text"] == text
    assert done.headers["Bifolio-Commit"] == git(api.root, "rev-parse", "next").strip()
    assert api.get(path).data["text"] == served.data["text"]
    there = api.get(f"{path}?at=next")
    assert (there.data["text"], there.headers["ETag"]) == (text, done.headers["ETag"])
    assert git(api.root, "show", "next:content/posts/one.md") == text
    assert api.ask("PUT", f"{path}?branch=next", **sent).status == 412


def test_a_source_on_a_branch_needs_the_permissions_of_both_schemas(api: Api) -> None:
    may = ("source.read", "branch.find", "tag.find", "tag.findOne", "post.findOne", "post.find")
    api.token("reader", may=may)
    assert api.get("/source/posts/one?at=next", "reader").status == 200
    assert api.get("/source/secrets/a?at=next", "reader").status == 403
    api.token("served", may=set(may) - {"branch.find"})
    assert api.get("/source/posts/one?at=next", "served").status == 403
    assert api.get("/source/posts/one?at=HEAD", "reader").status == 403  # needs history.read


def test_a_source_that_the_served_schema_hides_is_hidden_on_a_branch(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    commit_all(tmp_path)
    git(tmp_path, "branch", "next")
    marked = collection("post", {"title": STRING}, drafts=True, draftWhen={"draft": True})
    write(tmp_path, marked)
    git(tmp_path, "commit", "-qam", "Mark drafts")
    api = Api.of(opened(tmp_path))
    may = ["source.read", "branch.find", "post.find", "post.findOne", "tag.find", "tag.findOne"]
    api.token("reader", may=may)
    assert api.get("/source/posts/one", "reader").status == 403  # Any file may contain a draft.
    assert api.get("/source/posts/one?at=next", "reader").status == 403
    api.token("drafter", may=[*may, "post.readDraft"])
    assert api.get("/source/posts/one?at=next", "drafter").status == 200
    api.accounts.close()


def test_the_list_tells_which_branches_are_merged(api: Api) -> None:
    def merged() -> dict[str, bool]:
        return {one["name"]: one["merged"] for one in api.get("/branches").data}

    assert merged() == {"main": True, "next": True}
    api.put("/api/posts/one?branch=next", {"title": "New"})
    assert merged() == {"main": True, "next": False}
    assert api.ask("POST", "/branches/next/merge").status == 200
    assert merged() == {"main": True, "next": True}


@pytest.mark.parametrize("branch", ["", "&branch=next"])
def test_a_batch_returns_the_files_that_it_changed(api: Api, branch: str) -> None:
    operations = [
        {"method": "POST", "path": "/api/tags", "body": {"data": {"name": "Rain"}}},
        {"method": "PUT", "path": "/api/tags/sky", "body": {"data": {"name": "Air"}}},
        {"method": "DELETE", "path": "/api/tags/sea"},
    ]
    done = api.ask("POST", f"/batch?diff=true{branch}", json={"operations": operations})
    created = done.data[0]["documentId"]
    files = {file["path"]: file for file in done.body["files"]}
    assert {path: file["action"] for path, file in files.items()} == {
        f"content/tags/{created}.md": "create",
        "content/tags/sky.yaml": "update",
        "content/tags/sea.yaml": "delete",
    }
    assert {"-name: Sky", "+name: Air"} <= set(files["content/tags/sky.yaml"]["lines"])


def test_the_files_of_a_batch_need_source_read(api: Api) -> None:
    api.token("editor", may=["tag.find", "tag.findOne", "tag.update"])
    operations = [{"method": "PUT", "path": "/api/tags/sky", "body": {"data": {"name": "Air"}}}]
    assert api.ask("POST", "/batch?diff=true", "editor", json={"operations": operations}).status == 403
    assert "Sky" in api.read("content/tags/sky.yaml")
    assert "files" not in api.ask("POST", "/batch", "editor", json={"operations": operations}).body
    assert api.ask("POST", "/batch?diff=yes", json={"operations": operations}).status == 400
