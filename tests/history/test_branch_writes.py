"""Writes with `?branch=` to a branch that is not served: each write creates one commit."""

import io
import json
import os
import shutil
import subprocess
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from server.history import branching as branch_write
from server.storage.files import FileMark
from server.storage.git import branches as git_branches
from server.storage.git import checkout_watch
from tests.api.test_upload import picture, upload
from tests.git import commit_all, git
from tests.sites import STRING, Answer, Api, collection, make, relation, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

FILES = {
    "site.yaml": "search: {index: false}\n",
    **collection("tag", {"name": STRING}),
    **collection("home", {"title": STRING}, single=True),
    **collection(
        "note",
        {
            "title": {"type": "string", "required": True},
            "body": {"type": "richtext"},
            "tags": relation("manyToMany", "tag"),
            "cover": {"type": "media"},
        },
        drafts=True,
    ),
    "content/tags/sea.yaml": "name: Sea\n",
    "content/home.yaml": "title: Welcome\n",
    "content/notes/one.md": "---\n# A comment\ntitle: One\ntags: [sea]\n---\nThe harbour.\n",
}
TITLE = "/api/notes/one?fields=title"


def serve(root: Path, place: str = "") -> Api:
    write(root / place, FILES)
    commit_all(root)
    git(root, "branch", "next")
    return make(root / place, {})


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    made = serve(tmp_path)
    yield made
    made.accounts.close()


def head(api: Api, name: str = "next") -> str:
    return git(api.root, "rev-parse", name).strip()


def test_a_write_is_a_commit_of_its_branch_and_nothing_else(api: Api) -> None:
    served, before = head(api, "main"), head(api)
    index = (api.root / ".git/index").read_bytes()
    answer = api.put(f"{TITLE}&branch=next", {"title": "Two"}, headers={"Bifolio-Message": "Retitle"})
    assert (answer.status, answer.data["title"]) == (200, "Two")
    assert answer.headers["Bifolio-Commit"] == head(api)
    assert git(api.root, "log", "--format=%P %an <%ae> %cn %s", "-1", "next").strip() == (
        f"{before} full <bifolio@localhost> Bifolio Retitle"
    )
    assert git(api.root, "diff", "--stat=80", "--name-only", "next~", "next") == "content/notes/one.md\n"
    changed = git(api.root, "diff", "-U0", "next~", "next").splitlines()
    assert [line for line in changed if line[0] in "+-" and line[:3] not in ("+++", "---")][:2] == [
        "-title: One",
        "+title: Two",
    ]
    # The served content, the working tree and git's index are unchanged.
    assert api.get(TITLE).data["title"] == "One"
    assert head(api, "main") == served
    assert git(api.root, "status", "--porcelain", "-uno") == ""
    assert (api.root / ".git/index").read_bytes() == index
    assert api.get(f"{TITLE}&at=next").data["title"] == "Two"
    assert git(api.root, "for-each-ref", "refs/bifolio") == ""


def test_every_kind_of_write(api: Api) -> None:
    made = api.post("/api/notes?branch=next", {"title": "New", "tags": ["sea"]})
    assert made.status == 201
    new = made.data["documentId"]
    assert api.get(f"/api/notes/{new}").status == 404
    assert api.get(f"/api/notes/{new}?at=next").data["title"] == "New"
    assert api.put(f"/api/notes/{new}?branch=next&status=draft", {"title": "Newer"}).data["title"] == "Newer"
    assert api.get(f"/api/notes/{new}?at=next").data["title"] == "New"
    assert api.get(f"/api/notes/{new}?at=next&status=draft").data["title"] == "Newer"
    assert api.put("/api/home?branch=next", {"title": "Bye"}).data["title"] == "Bye"
    gone = api.ask("DELETE", "/api/notes/one?branch=next")
    assert (gone.status, gone.headers["Bifolio-Commit"]) == (204, head(api))
    assert api.get("/api/notes?at=next").ids == [new]
    assert api.get("/api/notes").ids == ["one"]
    assert git(api.root, "rev-list", "--count", "main..next").strip() == "4"


def test_a_write_is_validated_against_its_branch(api: Api) -> None:
    before = head(api)
    assert api.put("/api/notes/one?branch=next", {"title": None}).status == 400
    assert api.put("/api/notes/none?branch=next", {"title": "x"}).status == 404
    assert api.put("/api/notes/one?branch=next", {"label": "x"}).status == 400
    assert api.put("/api/notes/one?branch=none", {"title": "x"}).status == 404
    assert api.put("/api/notes/one?branch[]=next", {"title": "x"}).status == 400
    assert api.put("/api/notes/one?branch=", {"title": "x"}).status == 400
    assert head(api) == before
    # Validation uses the schemas and documents of the target branch.
    git(api.root, "checkout", "-q", "next")
    write(api.root, collection("note", {"title": STRING, "label": STRING}, drafts=True))
    write(api.root, {"content/tags/fog.yaml": "name: Fog\n"})
    git(api.root, "add", "-A")
    git(api.root, "commit", "-qm", "label")
    git(api.root, "checkout", "-q", "main")
    api.site.refresh()
    assert api.put("/api/notes/one?branch=next", {"label": "x"}).data["label"] == "x"
    assert api.put("/api/notes/one", {"label": "x"}).status == 400
    assert api.put("/api/tags/fog?branch=next", {"name": "Mist"}).status == 200


def test_if_match_compares_the_version_of_the_branch(api: Api) -> None:
    etag = api.get("/api/notes/one").headers["ETag"]
    assert api.put("/api/notes/one", {"title": "Served"}).status == 200
    first = api.put("/api/notes/one?branch=next", {"title": "Two"}, headers={"If-Match": etag})
    assert first.status == 200
    assert api.put("/api/notes/one?branch=next", {"title": "x"}, headers={"If-Match": etag}).status == 412
    latest = {"If-Match": first.headers["ETag"]}
    assert api.put("/api/notes/one?branch=next", {"title": "Three"}, headers=latest).status == 200


def test_a_change_is_merged_with_what_the_branch_has_changed_since(api: Api) -> None:
    def put(data: dict[str, Any], etag: str) -> Answer:
        headers = {"If-Match": etag, "Prefer": "merge"}
        return api.put("/api/notes/one?branch=next&populate=tags", data, headers=headers)

    read = api.get("/api/notes/one?at=next").headers["ETag"]
    second = api.put("/api/notes/one?branch=next", {"title": "Two"})
    merged = put({"body": "The quay."}, read)
    assert (merged.status, merged.headers["Preference-Applied"]) == (200, "merge")
    assert (merged.data["title"], merged.data["body"]) == ("Two", "The quay.")
    assert "Preference-Applied" not in put({"tags": []}, merged.headers["ETag"]).headers
    refused = put({"title": "Three", "body": "x"}, second.headers["ETag"])
    assert (refused.status, refused.error["details"]["conflicts"]) == (
        412,
        [
            {
                "attribute": "body",
                "paths": [["body"]],
                "base": "The harbour.",
                "ours": "x",
                "theirs": "The quay.",
            }
        ],
    )
    assert put({"title": "Three"}, '"unknown"').status == 412
    # An entity tag from the served branch is valid for the other branch if that branch has had the same
    # version.
    assert put({"title": "Three"}, api.get("/api/notes/one").headers["ETag"]).status == 412
    assert put({"tags": ["sea"]}, api.get("/api/notes/one").headers["ETag"]).status == 200
    assert api.get("/api/notes/one?at=next").data["title"] == "Two"


def test_a_draft_of_a_branch_is_merged(api: Api) -> None:
    place = "/api/notes/one?branch=next&status=draft"
    read = api.get("/api/notes/one?at=next&status=draft").headers["ETag"]
    assert api.put(place, {"title": "Draft"}).status == 200
    merged = api.put(place, {"body": "The quay."}, headers={"If-Match": read, "Prefer": "merge"})
    assert (merged.data["title"], merged.data["body"]) == ("Draft", "The quay.")


def test_a_write_without_changes_makes_no_commit(api: Api) -> None:
    before = head(api)
    answer = api.put("/api/notes/one?branch=next", {"title": "One"})
    assert (answer.status, answer.headers["Bifolio-Commit"], head(api)) == (200, before, before)


def test_the_branch_that_is_served_is_written_in_the_working_tree(api: Api) -> None:
    before = head(api, "main")
    assert api.put("/api/notes/one?branch=main", {"title": "Two"}).status == 200
    assert "title: Two" in api.read("content/notes/one.md")
    assert head(api, "main") == before
    git(api.root, "checkout", "-q", "--detach")
    assert api.put("/api/notes/one?branch=main", {"title": "Three"}).status == 200
    assert "title: Two" in api.read("content/notes/one.md")
    assert head(api, "main") != before


def test_a_branch_checked_out_elsewhere_is_not_written(api: Api, tmp_path: Path) -> None:
    git(api.root, "worktree", "add", "-q", str(tmp_path.with_name(f"{tmp_path.name}-other")), "next")
    before = head(api)
    assert api.put("/api/notes/one?branch=next", {"title": "Two"}).status == 409
    assert head(api) == before


def test_permissions_of_a_write_to_a_branch(api: Api) -> None:
    api.token("note", may=["note.update", "note.findOne"])
    api.token("branch", may=["branch.update", "branch.find"])
    api.token("both", may=["note.update", "branch.update"])
    for who, status in {"note": 403, "branch": 403, "both": 200, "public": 403}.items():
        assert api.put("/api/notes/one?branch=next", {"title": who}, who).status == status, who
        assert api.ask("DELETE", "/api/notes/one?branch=next", who).status == 403


def batch(
    api: Api, *operations: tuple[str, str, Any], who: str = "full", query: str = "?branch=next"
) -> Answer:
    made = [{"method": m, "path": path, "body": data and {"data": data}} for m, path, data in operations]
    return api.ask("POST", f"/batch{query}", who, json={"operations": made, "message": "All at once"})


def test_a_batch_is_one_commit_of_its_branch(api: Api) -> None:
    before = head(api)
    answer = batch(
        api,
        ("POST", "/api/tags", {"name": "Fog"}),
        ("PUT", "/api/notes/one?populate=tags", {"tags": {"connect": ["{{0.documentId}}"]}}),
        ("DELETE", "/api/tags/sea", None),
    )
    assert [one["status"] for one in answer.data] == [201, 200, 204]
    assert [tag["name"] for tag in answer.data[1]["body"]["data"]["tags"]] == ["Fog"]
    assert answer.headers["Bifolio-Commit"] == head(api)
    assert git(api.root, "log", "--format=%P %an %s", "-1", "next").strip() == f"{before} full All at once"
    assert api.get("/api/tags?at=next").ids == [answer.data[0]["documentId"]]
    assert api.get("/api/tags").ids == ["sea"]
    assert git(api.root, "status", "--porcelain", "-uno") == ""


def test_a_batch_on_a_branch_is_all_or_nothing(api: Api) -> None:
    before = head(api)
    api.token("note", may=["note.update", "branch.update"])
    first = ("PUT", "/api/notes/one", {"title": "Two"})
    refused = batch(api, first, ("PUT", "/api/notes/one", {"title": None}))
    assert (refused.status, refused.error["details"]["operation"]) == (400, 1)
    assert batch(api, first, ("POST", "/api/tags", {}), who="note").error["details"]["operation"] == 1
    assert batch(api, first, query="?branch=none").status == 404
    assert batch(api, ("PUT", "/api/notes/one?branch=next", {"title": "Two"}), query="").status == 400
    assert head(api) == before
    assert batch(api, first, who="note").status == 200


def test_a_file_that_is_uploaded_to_a_branch(api: Api) -> None:
    before, content = head(api), picture(700, 300)
    about = {"ref": "api::note.note", "refId": "one", "field": "cover", "fileInfo": '{"caption": "The bay"}'}
    answer = upload(api, (content, "bay.png"), query="?branch=next", **about)
    [file] = answer.body
    assert (answer.status, file["width"], file["height"], file["caption"]) == (201, 700, 300, "The bay")
    assert answer.headers["Bifolio-Commit"] == head(api)
    assert (
        git(api.root, "log", "--format=%P %an %s", "-1", "next").strip()
        == f'{before} full Upload file "{path_of(file)}"'
    )
    changed = git(api.root, "diff", "--name-only", "main", "next").splitlines()
    kept = f"content/uploads/{path_of(file)}"
    assert changed == ["content/notes/one.md", kept, f"{kept}.yaml"]
    cover = api.get("/api/notes/one?at=next&populate=cover").data["cover"]
    assert (cover["url"], cover["width"]) == (file["url"], 700)
    assert api.get(f"{file['url']}?at=next").raw == content
    # None of these changes is visible on the served branch.
    assert api.get(file["url"]).status == 404
    assert api.get("/api/upload/files").body == []
    assert api.get("/api/notes/one?populate=cover").data["cover"] is None
    assert git(api.root, "status", "--porcelain", "-uno") == ""
    assert not list((api.root / ".bifolio/incoming").iterdir())


def path_of(file: Any) -> str:
    return str(file["url"]).removeprefix("/uploads/")


def test_a_file_of_a_branch_is_described_replaced_and_deleted(api: Api) -> None:
    [file] = upload(api, (picture(), "bay.png"), query="?branch=next").body
    query = f"?id={file['id']}&branch=next"
    told = upload(api, query=query, fileInfo='{"caption": "The bay"}')
    # A picture's stored data, such as its width, is reused for later commits.
    assert (told.status, told.body["caption"], told.body["width"]) == (200, "The bay", 600)
    replaced = upload(api, (picture(90, 80), "b.png"), query=query)
    assert (replaced.body["width"], replaced.body["caption"], replaced.body["url"]) == (
        90,
        "The bay",
        file["url"],
    )
    assert upload(api, (b"text", "b.txt"), query=query).status == 400
    assert api.ask("DELETE", f"/api/upload/files/{file['id']}").status == 404
    gone = api.ask("DELETE", f"/api/upload/files/{file['id']}?branch=next")
    assert (gone.status, gone.body["url"], gone.headers["Bifolio-Commit"]) == (200, file["url"], head(api))
    assert git(api.root, "diff", "--name-only", "main", "next") == ""
    assert git(api.root, "fsck", "--strict") == ""


def test_permissions_of_an_upload_to_a_branch(api: Api) -> None:
    api.token("files", may=["upload.upload"])
    api.token("both", may=["upload.upload", "branch.update"])
    form = {"content_type": "multipart/form-data"}
    for who, status in {"files": 403, "both": 201, "public": 403}.items():
        data = {"files": [(io.BytesIO(b"text"), "a.txt")]}
        assert api.ask("POST", "/api/upload?branch=next", who, data=data, **form).status == status, who
    assert api.ask("DELETE", "/api/upload/files/1?branch=next", "both").status == 403
    assert upload(api, (b"text", "a.txt"), query="?branch=none").status == 404


def test_a_large_file_is_not_held_in_memory(api: Api) -> None:
    write(api.root, {"site.yaml": "search: {index: false}\napi: {upload_limit: 100 MB}\n"})
    api.site.refresh()
    form = b'--x\r\nContent-Disposition: form-data; name="files"; filename="large.bin"\r\n\r\n%b\r\n--x--\r\n'
    body = form % (b"0123456789abcdef" * 4_000_000)
    tracemalloc.start()
    try:
        kind = "multipart/form-data; boundary=x"
        answer = api.ask("POST", "/api/upload?branch=next", data=body, content_type=kind)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.status == 201
    size = git(api.root, "cat-file", "-s", f"next:content/uploads/{path_of(answer.body[0])}")
    assert int(size) == 64_000_000
    assert peak < 16_000_000


def test_a_file_with_a_filter_is_refused(api: Api) -> None:
    """Git LFS would store the file's content outside the repository.

    Bifolio does not run git's filters, so it would commit the whole content.
    """
    write(api.root, {".git/info/attributes": "*.png filter=lfs\n"})
    assert upload(api, (picture(), "a.png"), query="?branch=next").status == 201
    git(api.root, "config", "filter.lfs.clean", "touch ran; cat")
    before = head(api)
    refused = upload(api, (picture(), "a.png"), query="?branch=next")
    assert (refused.status, '"lfs"' in refused.body["error"]["message"]) == (409, True)
    assert upload(api, (b"text", "a.txt"), query="?branch=next").status == 201
    assert head(api, "next~") == before
    assert not list(api.root.rglob("ran"))


def restore(api: Api, path: str, who: str = "full", branch: str = "next", **body: Any) -> Answer:
    return api.ask("POST", f"/history/{path}/restore?branch={branch}", who, json=body)


def test_an_earlier_version_is_restored_on_a_branch(api: Api) -> None:
    api.put("/api/notes/one?branch=next", {"title": "Two", "body": "New."})
    back = restore(api, "notes/one", at="main", fields=["title"])
    assert (back.status, back.data["title"], back.data["body"]) == (200, "One", "New.")
    assert back.headers["Bifolio-Commit"] == head(api)
    assert restore(api, "notes/one", at="next~", fields=["title"]).data["title"] == "Two"
    assert api.get(TITLE).data["title"] == "One"
    api.put("/api/home?branch=next", {"title": "Bye"})
    assert restore(api, "home", at="main").data["title"] == "Welcome"
    assert git(api.root, "status", "--porcelain", "-uno") == ""


def test_a_document_that_existed_only_on_a_branch_is_restored_there(api: Api) -> None:
    new = api.post("/api/tags?branch=next", {"name": "Fog"}).data["documentId"]
    made = head(api)
    assert api.put(f"/api/tags/{new}?branch=next", {"name": "Mist"}).status == 200
    assert restore(api, f"tags/{new}", at=made).data["name"] == "Fog"
    assert api.ask("DELETE", f"/api/tags/{new}?branch=next").status == 204
    back = restore(api, f"tags/{new}", at=made)
    assert (back.status, back.data["documentId"], back.data["name"]) == (201, new, "Fog")
    assert restore(api, f"tags/{new}", at=made, branch="main").status == 404
    assert api.ask("GET", f"/history/tags/{new}").status == 404


def test_permissions_of_a_restore_on_a_branch(api: Api) -> None:
    may = ["note.find", "note.update", "history.read", "history.restore"]
    api.token("served", may=may)
    api.token("both", may=[*may, "branch.update"])
    assert restore(api, "notes/one", "served", at="main", fields=["title"]).status == 403
    assert restore(api, "notes/one", "both", at="main", fields=["title"]).status == 200
    assert restore(api, "notes/one", branch="none", at="main").status == 404


@pytest.mark.parametrize("path", ["/api/users", "/branches"])
def test_nothing_else_is_written_to_a_branch(api: Api, path: str) -> None:
    answer = api.ask("POST", f"{path}?branch=next", json={"operations": [], "at": "main"})
    assert answer.status == 400
    assert "branch" in answer.body["error"]["message"]


def test_two_simultaneous_writes_both_succeed(api: Api) -> None:
    def put(number: int) -> int:
        return api.post("/api/tags?branch=next", {"name": f"Tag {number}"}).status

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(put, range(12))) == [201] * 12
    assert len(api.get("/api/tags?at=next").ids) == 13
    assert git(api.root, "rev-list", "--count", "main..next").strip() == "12"
    assert git(api.root, "fsck", "--strict") == ""


def test_an_overtaken_write_is_repeated(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the write is prepared, another commit moves the branch, so the write is prepared again."""
    move, calls = checkout_watch.move_branch, []

    def overtaken(root: Path, name: str, *rest: str) -> bool:
        if not calls:
            calls.append(name)
            tree = git(root, "rev-parse", "next^{tree}").strip()
            other = git(root, "commit-tree", tree, "-p", "next", "-m", "other").strip()
            git(root, "update-ref", "refs/heads/next", other)
        return move(root, name, *rest)

    monkeypatch.setattr(checkout_watch, "move_branch", overtaken)
    assert api.put("/api/notes/one?branch=next", {"title": "Two"}).status == 200
    subjects = git(api.root, "log", "--format=%s", "main..next").split("\n")
    assert subjects == ['Update note "Two"', "other", ""]


def test_a_write_does_not_wait_for_writes_to_other_branches(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(api.root, "branch", "other")
    make_commit, order = branch_write.make_commit, []
    has_begun, other_is_done = Event(), Event()

    def held(root: Path, *rest: Any) -> str:
        if not has_begun.is_set():
            has_begun.set()
            other_is_done.wait(5)
        return make_commit(root, *rest)

    def put(branch: str) -> int:
        status = api.put(f"/api/notes/one?branch={branch}", {"title": "Two"}).status
        order.append(branch)
        return status

    monkeypatch.setattr(branch_write, "make_commit", held)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(put, "next")
        has_begun.wait()
        assert put("other") == 200
        other_is_done.set()
        assert first.result() == 200
    assert order == ["other", "next"]


# --- checkouts during a write ----------------------------------------------------------------------


def beside_move(
    monkeypatch: pytest.MonkeyPatch, before: Callable[[], Any] = int, after: Callable[[], Any] = int
) -> None:
    """Run functions directly before and after a branch moves for the first time."""
    move, calls = checkout_watch.move_branch, []

    def moved(*arguments: Any) -> bool:
        calls.append(arguments)
        if len(calls) > 1:
            return move(*arguments)
        before()
        result = move(*arguments)
        after()
        return result

    monkeypatch.setattr(checkout_watch, "move_branch", moved)


def require_refused(api: Api, answer: Answer, before: str) -> None:
    """Check that a write left nothing that a commit of the person could revert."""
    assert (answer.status, answer.error["details"]) == (409, {"checkedOut": "next"})
    assert "is checked out in the site's folder now; repeat the request" in answer.error["message"]
    assert head(api) == before
    assert git(api.root, "symbolic-ref", "HEAD").strip() == "refs/heads/next"
    assert git(api.root, "status", "--porcelain", "-uno") == ""


def test_a_write_that_a_checkout_has_missed_is_taken_back(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    before = head(api)
    beside_move(monkeypatch, before=lambda: git(api.root, "checkout", "-q", "next"))
    require_refused(api, api.put("/api/notes/one?branch=next", {"title": "Two"}), before)
    api.site.refresh()
    assert api.put("/api/notes/one?branch=next", {"title": "Two"}).status == 200
    assert "title: Two" in api.read("content/notes/one.md")


def test_a_write_that_a_checkout_has_read_is_kept(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    beside_move(monkeypatch, after=lambda: git(api.root, "checkout", "-q", "next"))
    answer = api.put("/api/notes/one?branch=next", {"title": "Two"})
    assert (answer.status, answer.headers["Bifolio-Commit"]) == (200, head(api))
    assert git(api.root, "status", "--porcelain", "-uno") == ""
    assert "title: Two" in api.read("content/notes/one.md")


def test_a_write_waits_for_a_checkout_that_has_locked_the_index(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git stops in the filter of a file, until the write looks at git's lock after the move."""
    started, go = api.root / ".git/started", api.root / ".git/go"
    for pipe in (started, go):
        os.mkfifo(pipe)
    git(api.root, "config", "filter.pause.smudge", f"echo > {started}; cat {go}; cat")
    write(api.root, {".git/info/attributes": "*.md filter=pause\n"})
    git(api.root, "rm", "-q", "--cached", "content/notes/one.md")
    git(api.root, "commit", "-qm", "without the note")
    (api.root / "content/notes/one.md").unlink()
    before, look, running = head(api), checkout_watch.git_lock, []

    def check_out() -> None:
        running.append(subprocess.Popen(["git", "checkout", "-q", "next"], cwd=api.root))
        started.read_text()

    def looked(folder: Path) -> FileMark | None:
        lock = look(folder)
        if lock and running:
            go.write_text("")
            assert running.pop().wait() == 0
        return lock

    beside_move(monkeypatch, before=check_out)
    monkeypatch.setattr(checkout_watch, "git_lock", looked)
    require_refused(api, api.put("/api/notes/one?branch=next", {"title": "Two"}), before)


def test_a_write_waits_for_a_checkout_that_has_not_set_head(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, is_new, before = api.root / ".git/index", checkout_watch._is_new, head(api)

    def replace_index() -> None:
        shutil.copy(index, copy := index.with_name("copy"))
        copy.rename(index)

    def looked(mark: FileMark) -> bool:
        git(api.root, "symbolic-ref", "HEAD", "refs/heads/next")
        return is_new(mark)

    beside_move(monkeypatch, after=replace_index)
    monkeypatch.setattr(checkout_watch, "_is_new", looked)
    require_refused(api, api.put("/api/notes/one?branch=next", {"title": "Two"}), before)


def test_a_merge_into_a_branch_that_is_checked_out_meanwhile_is_taken_back(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api.put("/api/notes/one", {"title": "Two"}).status == 200
    git(api.root, "commit", "-qam", "two")
    git(api.root, "branch", "other")
    git(api.root, "checkout", "-q", "--detach", "next")
    api.site.refresh()
    before = head(api)
    beside_move(monkeypatch, before=lambda: git(api.root, "checkout", "-q", "next"))
    require_refused(api, api.ask("POST", "/branches/other/merge", json={"into": "next"}), before)


# --- locked branches -------------------------------------------------------------------------------

LOCKED = "git has not released the branch's lock .git/refs/heads/{}.lock; if no git command is running"


def test_a_branch_that_stays_locked_is_reported(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> str:
        raise AssertionError("prepared although the branch is locked")

    monkeypatch.setattr(git_branches, "BRANCH_LOCK_TIMEOUT_S", 0.0, raising=False)
    monkeypatch.setattr(branch_write, "make_commit", never)
    for name in ("next", "new"):
        (api.root / f".git/refs/heads/{name}.lock").touch()
    made = api.ask("POST", "/branches", json={"name": "new"})
    written = api.put("/api/notes/one?branch=next", {"title": "Two"})
    for answer, name in ((made, "new"), (written, "next")):
        assert answer.status == 503
        assert answer.error["message"].startswith(LOCKED.format(name))


def test_a_write_waits_for_the_lock_of_its_branch(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """git locks the branch after the write is prepared, and releases it while the write waits."""
    make_commit, lock, calls = branch_write.make_commit, api.root / ".git/refs/heads/next.lock", []
    wait = getattr(git_branches, "wait_for_branch_lock", None)

    def locking(*arguments: Any) -> str:
        calls.append("prepared")
        lock.touch()
        return make_commit(*arguments)

    def releasing(*arguments: Any) -> None:
        calls.append("waited")
        lock.unlink()
        wait(*arguments)

    monkeypatch.setattr(branch_write, "make_commit", locking)
    monkeypatch.setattr(git_branches, "wait_for_branch_lock", releasing, raising=False)
    assert api.put("/api/notes/one?branch=next", {"title": "Two"}).status == 200
    assert calls == ["prepared", "waited"]


def test_links_are_not_replaced(api: Api) -> None:
    git(api.root, "checkout", "-q", "next")
    (api.root / "content/tags").rename(api.root / "content/labels")
    (api.root / "content/tags").symlink_to("labels")
    git(api.root, "add", "-A")
    git(api.root, "commit", "-qm", "link")
    git(api.root, "checkout", "-q", "main")
    api.site.refresh()
    before = head(api)
    assert api.put("/api/tags/sea?branch=next", {"name": "x"}).status == 409
    assert api.post("/api/tags?branch=next", {"name": "x"}).status == 409
    assert head(api) == before


def test_a_file_is_not_replaced_by_a_folder(api: Api) -> None:
    git(api.root, "checkout", "-q", "next")
    shutil.rmtree(api.root / "content/tags")
    write(api.root, {"content/tags": "What tags are for.\n"})
    commit_all(api.root)
    git(api.root, "checkout", "-q", "main")
    api.site.refresh()
    before = head(api)
    answer = api.post("/api/tags?branch=next", {"name": "x"})
    assert (answer.status, answer.error["message"].partition(" ")[2]) == (
        409,
        "can't be created, because part of its path is a file instead of a folder; move that file first",
    )
    assert head(api) == before


def test_hooks_and_filters_do_not_run(api: Api) -> None:
    hook = "#!/bin/sh\ntouch ran; exit 1\n"
    for name in ("pre-commit", "reference-transaction", "post-commit", "update"):
        write(api.root, {f".git/hooks/{name}": hook})
        (api.root / f".git/hooks/{name}").chmod(0o755)
    git(api.root, "config", "filter.x.clean", "touch ran; cat")
    write(api.root, {".git/info/attributes": "* filter=x\n"})
    assert api.put("/api/notes/one?branch=next", {"title": "Two"}).status == 200
    assert not list(api.root.rglob("ran"))


@pytest.mark.parametrize("place", ["site", 'a "b"/s'])
def test_a_site_in_a_folder_of_its_repository(tmp_path: Path, place: str) -> None:
    write(tmp_path, {"content/notes/one.md": "not the site's\n"})
    api = serve(tmp_path, place)
    assert api.put("/api/notes/one?branch=next", {"title": "Two"}).status == 200
    changed = git(tmp_path, "diff", "--name-only", "-z", "main", "next")
    assert changed == f"{place}/content/notes/one.md\0"
    api.accounts.close()


def test_shallow_clones_and_repositories_of_sha256(tmp_path: Path) -> None:
    first = serve(tmp_path / "first")
    first.accounts.close()
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{tmp_path}/first", "clone")
    git(tmp_path / "clone", "branch", "next")
    write(tmp_path / "other", FILES)
    git(tmp_path / "other", "init", "-q", "-b", "main", "--object-format=sha256")
    commit_all(tmp_path / "other")
    git(tmp_path / "other", "branch", "next")
    for name in ("clone", "other"):
        api = make(tmp_path / name, {})
        assert api.put("/api/notes/one?branch=next", {"title": "Two"}).status == 200
        assert api.get(f"{TITLE}&at=next").data["title"] == "Two"
        api.accounts.close()


def test_objects_of_a_write_to_a_branch_are_flushed_to_disk(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check in git's trace that each new object is flushed. By default, the objects of a small write are not
    packed.
    """
    told = tmp_path / "told.json"
    write(tmp_path, {"home/.gitconfig": f"[trace2]\n\teventTarget = {told}\n"})
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert upload(api, (picture(), "a.png"), query="?branch=next").status == 201
    events = [json.loads(line) for line in told.read_text().splitlines()]
    commands = {event["sid"]: event["name"] for event in events if event["event"] == "cmd_name"}
    flushed = {
        commands[event["sid"]]
        for event in events
        if event.get("category") == "fsync"
        and event["key"].endswith("hardware-flush")
        and int(event["value"])
    }
    assert {"hash-object", "unpack-objects"} <= flushed
