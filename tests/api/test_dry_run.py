"""Tests of `?dryRun=true`: the response shows how a write would change the files, but nothing is saved."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.git import commit_all, git
from tests.sites import STRING, Answer, Api, collection, documents, make, relation, translated

FILES: dict[str, str | bytes] = {
    "site.yaml": "locales: {available: [en, fr]}\n",
    **collection("tag", {"name": STRING, "posts": relation("manyToMany", "post", mappedBy="tags")}),
    **collection(
        "post",
        {
            "title": {"type": "string", "required": True, "maxLength": 20},
            "count": {"type": "integer"},
            "slug": {"type": "uid", "targetField": "title"},
            "secret": {"type": "string", "private": True},
            "key": {"type": "password"},
            "tags": relation("manyToMany", "tag", inversedBy="posts"),
        },
        drafts=True,
        format="yaml",
    ),
    **collection("place", {"name": translated(STRING), "code": STRING}, localized=True, format="yaml"),
    **collection("home", {"title": STRING}, single=True),
    **documents("tags", red={"name": "Red"}, blue={"name": "Blue"}),
    "content/posts/one.yaml": (
        "# mine\ntitle: One\ncount: 1  # of all\nsecret: hush\nkey: $argon2id$abc\nx: 1\n"
    ),
    "content/posts/two.yaml": "title: Two\ntags: [red]\n",
    "content/posts/two.draft.yaml": "title: Two anew\n",
    "content/places/a.yaml": "name: A\ncode: '1'\n",
    "content/places/a.fr.yaml": "name: A fr\ncode: '1'\n",
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


def state_of(api: Api) -> dict[str, Any]:
    """Return all files that a write could change."""
    found = {p: p.read_bytes() for p in sorted(api.root.rglob("content/**/*")) if p.is_file()}
    return {str(path): data for path, data in found.items()}


def trying(api: Api, method: str, path: str, body: Any = None, who: str = "full", **options: Any) -> Answer:
    """Send a dry run, require that all files stay the same, and return the response."""
    before, number = state_of(api), api.site.state.snapshot.number
    mark = "&" if "?" in path else "?"
    answer = api.ask(method, f"{path}{mark}dryRun=true", who, json=body, **options)
    assert state_of(api) == before
    assert api.site.state.snapshot.number == number
    return answer


def changed(lines: list[str]) -> list[str]:
    """Return the removed and added lines of a diff, without timestamps."""
    return [line for line in lines if line[0] in "+-" and "At: " not in line and 'At": ' not in line]


def test_an_update_shows_the_lines_that_it_would_change(api: Api) -> None:
    [file] = trying(api, "PUT", "/api/posts/one", {"data": {"count": 2}}).data["files"]
    assert (file["path"], file["action"]) == ("content/posts/one.yaml", "update")
    assert changed(file["lines"]) == ["-count: 1  # of all", "+count: 2  # of all"]
    assert file["lines"][0].startswith("@@ -1,6 +1,")


def test_the_real_write_does_what_the_dry_run_has_shown(api: Api) -> None:
    body = {"data": {"count": 3, "tags": ["red"], "secret": None}}
    [file] = trying(api, "PUT", "/api/posts/one", body).data["files"]
    before = api.read("content/posts/one.yaml").splitlines()
    assert api.ask("PUT", "/api/posts/one", json=body).status == 200
    after = api.read("content/posts/one.yaml").splitlines()
    removed = [line[1:] for line in changed(file["lines"]) if line[0] == "-" and "key:" not in line]
    added = [line[1:] for line in changed(file["lines"]) if line[0] == "+" and "key:" not in line]
    assert removed == [line for line in before if line not in after]
    assert added == [line for line in after if line not in before and "At: " not in line]


def test_a_new_document_is_shown_whole_and_takes_no_name(api: Api) -> None:
    body = {"data": {"title": "New", "slug": "new"}}
    for _ in range(2):
        [file] = trying(api, "POST", "/api/posts", body).data["files"]
        assert (file["path"], file["action"]) == ("content/posts/new.yaml", "create")
        assert changed(file["lines"])[:2] == ["+title: New", "+slug: new"]
    assert api.ask("POST", "/api/posts", json=body).status == 201
    assert "content/posts/new.yaml" in {f"content/{path}" for path in api.files}


def test_every_file_that_a_write_touches_is_shown(api: Api) -> None:
    shared = trying(api, "PUT", "/api/places/a", {"data": {"code": "2"}}).data["files"]
    assert [f["path"] for f in shared] == ["content/places/a.fr.yaml", "content/places/a.yaml"]
    related = trying(api, "PUT", "/api/tags/red", {"data": {"posts": ["one"]}}).data["files"]
    assert {f["path"] for f in related} >= {"content/posts/one.yaml", "content/posts/two.yaml"}
    published = trying(api, "PUT", "/api/posts/two", {"data": {}}).data["files"]
    assert {f["path"]: f["action"] for f in published} == {
        "content/posts/two.draft.yaml": "delete",
        "content/posts/two.yaml": "update",
    }
    draft = trying(api, "PUT", "/api/posts/one?status=draft", {"data": {"count": 9}}).data["files"]
    assert [(f["path"], f["action"]) for f in draft] == [("content/posts/one.draft.yaml", "create")]


def test_a_deletion_shows_what_would_be_gone(api: Api) -> None:
    files = trying(api, "DELETE", "/api/places/a?locale=*").data["files"]
    assert [(f["action"], changed(f["lines"])[0]) for f in files] == [
        ("delete", "-name: A fr"),
        ("delete", "-name: A"),
    ]
    assert trying(api, "DELETE", "/api/posts/none").data["files"] == []


def test_what_changes_nothing_shows_nothing(api: Api) -> None:
    assert trying(api, "PUT", "/api/posts/one?status=draft", {"data": {"title": "One"}}).data["files"] == []


def test_what_is_done_to_a_document_as_a_whole_can_be_tried(api: Api) -> None:
    for action in ("unpublish", "discard"):
        files = trying(api, "POST", f"/api/posts/two/actions/{action}").data["files"]
        assert "content/posts/two.draft.yaml" in {f["path"] for f in files} or action == "unpublish"
        assert files


def test_a_batch_is_tried_as_a_whole(api: Api) -> None:
    operations = [
        {"method": "POST", "path": "/api/tags", "body": {"data": {"name": "Green"}}},
        {"method": "PUT", "path": "/api/posts/one", "body": {"data": {"tags": ["{{0.documentId}}"]}}},
    ]
    files = trying(api, "POST", "/batch", {"operations": operations}).data["files"]
    assert [file["action"] for file in files] == ["update", "create"]
    assert api.get("/api/tags").ids == ["red", "blue"]
    inner = [{"method": "DELETE", "path": f"/api/tags/red?{name}=true"} for name in ("dryRun", "dry-run")]
    for one in inner:
        assert api.ask("POST", "/batch", json={"operations": [one]}).status == 400
    assert api.get("/api/tags").ids == ["red", "blue"]


def test_what_the_write_refuses_the_dry_run_refuses_in_the_same_words(api: Api) -> None:
    writes: list[tuple[str, str, Any, dict[str, str]]] = [
        ("PUT", "/api/posts/one", {"data": {"title": "x" * 21, "count": "many"}}, {}),
        ("PUT", "/api/posts/one", {"data": {"none": 1}}, {}),
        ("PUT", "/api/posts/one", {"data": {"count": 2}}, {"If-Match": '"old"'}),
        ("PUT", "/api/posts/none", {"data": {}}, {}),
        ("POST", "/api/posts", {"data": {}}, {}),
        ("POST", "/api/posts", None, {}),
        ("DELETE", "/api/posts/one", None, {"If-Match": '"old"'}),
        ("PUT", "/api/places/a?locale=xx", {"data": {}}, {}),
    ]
    for method, path, body, headers in writes:
        tried = trying(api, method, path, body, headers=headers)
        real = api.ask(method, path, json=body, headers=headers)
        assert (tried.status, tried.body) == (real.status, real.body)
        assert real.status >= 400


def test_a_message_that_no_commit_could_have_is_refused(api: Api) -> None:
    said = {"Bifolio-Message": "x" * 10_001}
    answer = trying(api, "PUT", "/api/posts/one", {"data": {"count": 2}}, headers=said)
    assert (answer.status, "at most 10,000" in answer.error["message"]) == (400, True)


def test_a_file_that_was_edited_meanwhile_is_tried_as_it_is_now(api: Api) -> None:
    path = api.root / "content/posts/one.yaml"
    path.write_text("title: Edited\ncount: 5\n")
    answer = api.ask("PUT", "/api/posts/one?dryRun=true", json={"data": {"count": 6}})
    assert changed(answer.data["files"][0]["lines"]) == ["-count: 5", "+count: 6"]
    path.write_text("title: [Edited\n")
    refused = api.ask("PUT", "/api/posts/one?dryRun=true", json={"data": {"count": 7}})
    assert refused.status == 409


@pytest.mark.parametrize(
    "query",
    [
        "dryrun=true",
        "dry-run=true",
        "DRYRUN=1",
        "dryRun=1",
        "dryRun=",
        "dryRun",
        "dryRun[]=true",
        "dry_run=x",
    ],
)
def test_a_dry_run_that_is_misspelt_does_not_write(api: Api, query: str) -> None:
    before = state_of(api)
    assert api.ask("DELETE", f"/api/posts/one?{query}").status == 400
    assert api.ask("POST", f"/batch?{query}", json={"operations": []}).status == 400
    assert state_of(api) == before


def test_a_dry_run_of_what_has_none_is_refused(api: Api) -> None:
    for path in ("/api/upload", "/api/auth/local", "/api/users", "/branches", "/problems/fix"):
        assert api.ask("POST", f"{path}?dryRun=true", json={}).status in (400, 404), path
    assert api.ask("PUT", "/api/posts/one?dryRun=false", json={"data": {"count": 8}}).data["count"] == 8


def test_a_dry_run_of_a_commit_is_refused_and_commits_nothing(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    commit_all(tmp_path)
    head = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "content/tags/red.md").write_text("---\nname: Rot\n---\n")
    api.site.refresh()
    body = {"message": "Try it", "files": ["content/tags/red.md"]}
    assert api.ask("POST", "/history/commit?dryRun=true", json=body).status == 400
    assert git(tmp_path, "rev-parse", "HEAD") == head
    assert api.ask("POST", "/history/commit", json=body).status == 201


def test_who_may_not_read_files_is_shown_none(api: Api) -> None:
    may = ["post.find", "post.findOne", "post.update", "post.create", "post.readDraft"]
    api.token("writer", may=may)
    assert trying(api, "PUT", "/api/posts/one", {"data": {"count": 2}}, "writer").status == 403
    api.token("reader", may=["source.read", "post.find", "post.findOne"])
    assert trying(api, "PUT", "/api/posts/one", {"data": {"count": 2}}, "reader").status == 403


def test_files_of_drafts_and_of_types_that_one_may_not_find_are_left_out(api: Api) -> None:
    api.token("blind", may=["source.read", "post.find", "post.findOne", "post.update"])
    files = trying(api, "PUT", "/api/posts/two", {"data": {"count": 2}}, "blind").data["files"]
    assert [file["path"] for file in files] == ["content/posts/two.yaml"]
    assert "anew" not in json.dumps(files)
    api.token("unseeing", may=["source.read", "post.update"])
    assert trying(api, "PUT", "/api/posts/one", {"data": {"count": 2}}, "unseeing").data["files"] == []


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ([], []),
        (["post.find"], []),
        (["post.findOne"], ["content/posts/two.yaml"]),
        (["post.find", "post.readDraft"], []),
        (["post.findOne", "post.readDraft"], ["content/posts/two.draft.yaml", "content/posts/two.yaml"]),
    ],
)
def test_a_file_is_shown_to_those_who_may_read_its_source(
    api: Api, more: list[str], shown: list[str]
) -> None:
    api.token("clerk", may=["source.read", "tag.update", "tag.find", "post.update", *more])
    sources = [("content/posts/two.draft.yaml", "status=draft"), ("content/posts/two.yaml", "")]
    readable = [
        path for path, query in sources if api.get(f"/source/posts/two?{query}", "clerk").status == 200
    ]
    assert readable == shown
    written = {"method": "PUT", "path": "/api/posts/two", "body": {"data": {"count": 3}}}
    for tried in (
        trying(api, "PUT", "/api/posts/two", written["body"], "clerk"),
        trying(api, "POST", "/batch", {"operations": [written]}, "clerk"),
    ):
        # A writer who may read drafts publishes the draft, so its file is deleted.
        assert [file["path"] for file in tried.data["files"]] == shown


def test_a_single_type_needs_find(api: Api) -> None:
    body = {"data": {"title": "Home"}}
    for action, paths in (("findOne", []), ("find", ["content/home.md"])):
        api.token(action, may=["source.read", "home.update", f"home.{action}"])
        tried = trying(api, "PUT", "/api/home", body, action)
        assert [file["path"] for file in tried.data["files"]] == paths


def test_no_hash_of_a_password_is_in_a_diff(api: Api) -> None:
    [file] = trying(api, "PUT", "/api/posts/one", {"data": {"key": "open sesame", "count": 2}}).data["files"]
    text = "\n".join(file["lines"])
    assert "argon2" not in text
    assert "sesame" not in text
    assert changed(file["lines"])[-2:] == ["-key: (hidden 1)", "+key: (hidden anew)"]
    assert "-secret" not in text  # The attribute is private, but callers who may read the files can see it.
    assert " secret: hush" in text


def test_a_diff_that_is_larger_than_an_answer_may_be_is_refused(tmp_path: Path) -> None:
    api = make(tmp_path, {**FILES, "site.yaml": "api: {limits: {size: 3000}}\n"})
    assert trying(api, "POST", "/api/tags", {"data": {"name": "x" * 250}}).status == 200
    body = {
        "operations": [{"method": "POST", "path": "/api/tags", "body": {"data": {"name": "x" * 250}}}] * 20
    }
    assert trying(api, "POST", "/batch", body).error["details"] == {"limit": "size"}


def test_a_write_to_a_branch_and_a_restore_can_be_tried(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    commit_all(api.root)
    api.site.refresh()
    assert api.ask("POST", "/branches", json={"name": "next"}).status == 201
    tried = trying(api, "PUT", "/api/posts/one?branch=next", {"data": {"count": 7}})
    assert changed(tried.data["files"][0]["lines"]) == ["-count: 1  # of all", "+count: 7  # of all"]
    assert api.ask("PUT", "/api/posts/one", json={"data": {"count": 4}}).status == 200
    back = trying(api, "POST", "/history/posts/one/restore", {"at": "HEAD", "fields": ["count"]})
    assert changed(back.data["files"][0]["lines"]) == ["-count: 4  # of all", "+count: 1  # of all"]


def test_a_link_that_leads_astray_is_refused_as_the_write_is(api: Api, tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside.yaml"
    outside.write_text("title: Two\n")
    file = api.root / "content/posts/two.yaml"
    file.unlink()
    file.symlink_to(outside)
    tried = api.ask("PUT", "/api/posts/two?dryRun=true", json={"data": {"count": 1}})
    real = api.ask("PUT", "/api/posts/two", json={"data": {"count": 1}})
    assert tried.status == real.status >= 400
    assert outside.read_text() == "title: Two\n"
