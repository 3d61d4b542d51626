"""`timestamps: git`: the times come from the git history, and writes add no timestamps to files."""

import os
from pathlib import Path

import pytest

from server.documents.timestamps import now
from tests.conftest import MakeApi
from tests.git import commit_all, git
from tests.servers import free_port, get, serving
from tests.sites import STRING, Api, Files, collection, relation, write
from tests.waiting import until

FIRST, SECOND = "2024-01-01T00:00:00.000Z", "2024-02-01T00:00:00.000Z"
POST = "---\ntitle: A # ours\nlayout: post\n---\n\nText.\n"
FILES: Files = {
    **collection(
        "post",
        {"title": STRING, "body": {"type": "richtext"}, "author": relation("manyToOne", "author")},
        drafts=True,
        files="_posts/{name}.md",
    ),
    **collection("author", {"name": STRING}),
    "site.yaml": "timestamps: git\nroles: {public: {post: [find, findOne]}}\n",
    "content/authors/bo.yaml": "name: Bo\n",
    "_posts/a.md": POST,
}


def times(document: dict[str, str]) -> tuple[str, str, str]:
    return document["createdAt"], document["updatedAt"], document["publishedAt"]


@pytest.fixture
def api(make_api: MakeApi, tmp_path: Path) -> Api:
    write(tmp_path, FILES)
    commit_all(tmp_path)
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "second", at="2024-02-01T00:00:00Z")
    return make_api({})


def test_an_edit_changes_one_line_and_its_time_is_that_of_the_file(api: Api) -> None:
    assert times(api.get("/api/posts/a").data) == (FIRST, FIRST, FIRST)
    before = now()
    changed = api.put("/api/posts/a", {"title": "B"}).data
    assert (api.root / "_posts/a.md").read_text() == POST.replace("title: A", "title: B")
    created, updated, published = times(changed)
    assert created == FIRST
    assert before <= updated == published <= now()
    assert times(api.get("/api/posts/a").data) == times(changed)
    assert api.get("/api/posts/a", headers={"If-None-Match": "x"}).status == 200


def test_a_commit_gives_the_edit_its_time(api: Api) -> None:
    api.put("/api/posts/a", {"title": "B"})
    git(api.root, "commit", "-qam", "edit", at="2024-02-01T00:00:00Z")
    api.site.refresh()
    assert times(api.get("/api/posts/a").data) == (FIRST, SECOND, SECOND)
    text = (api.root / "_posts/a.md").read_text()
    (api.root / "_posts/a.md").write_text(text.replace("Text.", "More."))
    os.utime(api.root / "_posts/a.md", (2_000_000_000, 2_000_000_000))
    api.site.refresh()
    assert times(api.get("/api/posts/a").data)[1] == "2033-05-18T03:33:20.000Z"


def test_a_new_document_says_no_times(api: Api) -> None:
    made = api.post("/api/posts", {"title": "N"}).data
    (path,) = [path for path in (api.root / "_posts").iterdir() if path.name != "a.md"]
    assert "At:" not in path.read_text()
    assert made["createdAt"] == made["updatedAt"] == made["publishedAt"]
    git(api.root, "add", "-A")
    git(api.root, "commit", "-qm", "new", at="2024-02-01T00:00:00Z")
    api.site.refresh()
    assert times(api.get(f"/api/posts/{made['documentId']}").data) == (SECOND, SECOND, SECOND)


def test_a_draft_is_published_without_a_time_and_was_created_with_its_document(api: Api) -> None:
    drafted = api.put("/api/posts/a?status=draft", {"title": "B"}).data
    assert drafted["createdAt"] == FIRST
    assert drafted["publishedAt"] is None
    assert "At:" not in (api.root / "_posts/a.draft.md").read_text()
    assert api.get("/api/posts/a?status=draft").data["createdAt"] == FIRST
    published = api.put("/api/posts/a", {"title": "B"}).data
    assert published["createdAt"] == FIRST
    assert not (api.root / "_posts/a.draft.md").exists()
    assert (api.root / "_posts/a.md").read_text() == POST.replace("title: A", "title: B")


def test_a_time_that_a_file_says_is_renewed(api: Api) -> None:
    said = POST.replace("layout", "updatedAt: 2020-01-01\nlayout")
    (api.root / "_posts/a.md").write_text(said)
    api.site.refresh()
    assert times(api.get("/api/posts/a").data)[1] == "2020-01-01T00:00:00.000Z"
    changed = api.put("/api/posts/a", {"title": "B"}).data
    lines = (api.root / "_posts/a.md").read_text().splitlines()
    assert f"updatedAt: {changed['updatedAt']}" in lines
    assert not any(line.startswith(("createdAt", "publishedAt")) for line in lines)


def test_a_draft_in_a_later_file_is_retimed_with_what_is_published(api: Api) -> None:
    write(api.root, {"_posts/n.md": POST, "_posts/n.draft.md": POST.replace("A", "B")})
    git(api.root, "add", "_posts/n.draft.md")
    git(api.root, "commit", "-qm", "draft", at="2024-02-01T00:00:00Z")
    api.site.refresh()
    assert api.get("/api/posts/n?status=draft").data["createdAt"] == SECOND
    git(api.root, "add", "_posts/n.md")
    git(api.root, "commit", "-qm", "published", at="2024-01-01T00:00:00Z")
    api.site.refresh()
    assert api.get("/api/posts/n?status=draft").data["createdAt"] == FIRST


def test_with_a_commit_for_each_write_a_client_may_go_on_with_what_it_was_told(
    make_api: MakeApi, tmp_path: Path
) -> None:
    write(
        tmp_path,
        {**FILES, "site.yaml": "timestamps: git\ngit: {commit: each, committer: T <t@example.org>}\n"},
    )
    commit_all(tmp_path)
    api = make_api({})
    tag = api.get("/api/posts/a").headers["ETag"]
    for title in ("B", "C", "D"):
        answer = api.put("/api/posts/a", {"title": title}, headers={"If-Match": tag})
        assert answer.status == 200, answer.body
        tag = answer.headers["ETag"]
        api.site.refresh()
    assert (api.root / "_posts/a.md").read_text() == POST.replace("title: A", "title: D")


def test_every_worker_answers_the_same_times(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    commit_all(tmp_path)
    port = free_port()

    def answers() -> set[bytes]:
        return {get(port, "/api/posts?fields=title")[1] for _ in range(30)}

    def all_say(text: bytes) -> bool:
        found = answers()
        return len(found) == 1 and text in found.pop()

    with serving(tmp_path, port, "--workers", "2"):
        assert all_say(b'"title":"A"')
        (tmp_path / "_posts/a.md").write_text(POST.replace("title: A", "title: B"))
        until(lambda: all_say(b'"title":"B"'), 20)
        git(tmp_path, "commit", "-qam", "edit", at="2024-02-01T00:00:00Z")
        until(lambda: len({get(port, "/api/posts")[1] for _ in range(30)}) == 1, 20)
        until(lambda: SECOND.encode() in get(port, "/api/posts")[1], 20)
