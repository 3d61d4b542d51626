"""Tests of the commit header in responses, and of requests that require a certain commit
(docs/machines.md).
"""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from server.api import commits
from tests.git import commit_all, git
from tests.servers import free_port, serving
from tests.sites import STRING, Api, collection, documents, make, write
from tests.waiting import until

FILES = {
    **collection("tag", {"name": STRING}),
    **documents("tags", red={"name": "Red"}),
    "content/uploads/a.txt": "text",
    "site.yaml": "roles: {public: {tag: [find, findOne]}}\n",
    ".gitignore": ".bifolio/\n",
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    write(tmp_path, FILES)
    commit_all(tmp_path)
    return make(tmp_path, {})


def head(api: Api) -> str:
    return git(api.root, "rev-parse", "HEAD").strip()


def commit(api: Api, name: str) -> str:
    """Create a commit with git that the server has not yet noticed, and return its hash."""
    write(api.root, {"content/tags/red.json": f'{{"name": "{name}"}}'})
    git(api.root, "commit", "-qam", name)
    return head(api)


@pytest.mark.parametrize(
    "path", ["/api/tags", "/api/tags/red", "/api/tags/none", "/uploads/a.txt", "/search?q=a"]
)
def test_reads_name_the_commit(api: Api, path: str) -> None:
    assert api.get(path).headers.getlist("Bifolio-Commit") == [head(api)]
    later = commit(api, "Rot")
    api.site.refresh()
    assert api.get(path).headers["Bifolio-Commit"] == later
    tag = api.get(path).headers.get("ETag")
    if tag:
        again = api.get(path, headers={"If-None-Match": tag})
        assert (again.status, again.headers["Bifolio-Commit"]) == (304, later)
    assert (
        "Bifolio-Commit"
        in api.get(path, headers={"Origin": "https://a.org"}).headers["Access-Control-Expose-Headers"]
    )


def test_what_is_not_content_names_none(api: Api) -> None:
    for path in ("/_health", "/api/users", "/history"):
        assert "Bifolio-Commit" not in api.get(path).headers


def test_a_site_without_commits_names_none(tmp_path: Path) -> None:
    assert "Bifolio-Commit" not in make(tmp_path, FILES).get("/api/tags").headers


def test_a_first_description_of_a_file_that_is_committed_leaves_nothing_changed(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "site.yaml": 'git: {commit: each, committer: "Site <site@example.org>"}\n'})
    commit_all(tmp_path)
    api = make(tmp_path, {})
    [file] = api.get("/api/upload/files").body
    described = {"fileInfo": '{"caption": "It"}'}
    assert api.ask("POST", f"/api/upload?id={file['id']}", data=described).status == 200
    assert not git(tmp_path, "status", "--porcelain")
    assert api.get("/uploads/a.txt").headers["Bifolio-Commit"] == head(api)


@pytest.mark.parametrize(
    "edit",
    [
        lambda root: write(root, {"content/tags/red.json": '{"name": "Rot"}'}),
        lambda root: write(root, {"content/tags/new.json": '{"name": "New"}'}),
        lambda root: (root / "content/tags/red.json").unlink(),
        lambda root: write(root, {"content/uploads/a.txt.yaml": "caption: New"}),
        lambda root: write(root, {"site.yaml": "roles: {public: {tag: [find]}}"}),
    ],
)
def test_what_differs_from_the_commit_is_said_to(api: Api, edit: Callable[[Path], object]) -> None:
    at = head(api)
    write(api.root, {"README.md": "this is no content"})
    api.site.refresh()
    assert api.get("/api/tags").headers["Bifolio-Commit"] == at
    edit(api.root)
    api.site.refresh()
    assert api.get("/api/tags").headers["Bifolio-Commit"] == f"{at}; changed"
    git(api.root, "add", "-A")
    git(api.root, "commit", "-qm", "all")
    api.site.refresh()
    assert api.get("/api/tags").headers["Bifolio-Commit"] == head(api)
    git(api.root, "revert", "--no-edit", "HEAD")
    api.site.refresh()
    assert api.get("/api/tags").headers["Bifolio-Commit"] == head(api)


def test_a_write_that_is_not_committed_is_said_to_differ(api: Api) -> None:
    assert api.put("/api/tags/red", {"name": "Rot"}).status == 200
    assert api.get("/api/tags").headers["Bifolio-Commit"] == f"{head(api)}; changed"


def test_a_commit_that_is_there_is_not_waited_for(api: Api) -> None:
    first, last = head(api), commit(api, "Rot")
    api.site.refresh()
    for named in (first, last, first[:7], last[:12].upper(), f"{last}; changed"):
        began = time.monotonic()
        answer = api.get("/api/tags", headers={"Bifolio-After": named})
        assert (answer.status, answer.headers["Bifolio-Commit"]) == (200, last)
        assert time.monotonic() - began < commits.COMMIT_TIMEOUT_S


@pytest.mark.parametrize(
    "named", ["", "abc", "main", "HEAD", "0123456789abcdefg", "../../x", "1" * 65, "-help123"]
)
def test_what_names_no_commit_is_refused(api: Api, named: str) -> None:
    answer = api.get("/api/tags", headers={"Bifolio-After": named})
    assert (answer.status, answer.error["name"]) == (400, "ValidationError")


def test_a_branch_whose_name_looks_like_an_id_is_no_commit(api: Api) -> None:
    git(api.root, "branch", "abcdef1")
    assert api.get("/api/tags", headers={"Bifolio-After": "abcdef1"}).status == 503


def test_a_commit_that_does_not_arrive_is_said_to_be_missing(api: Api) -> None:
    began = time.monotonic()
    answer = api.get("/api/tags", headers={"Bifolio-After": "0123456789"})
    assert (answer.status, answer.error["name"]) == (503, "ServiceUnavailableError")
    assert answer.headers["Retry-After"] == "1"
    assert commits.COMMIT_TIMEOUT_S <= time.monotonic() - began < commits.COMMIT_TIMEOUT_S + 5


def test_a_commit_that_is_known_but_not_served_is_waited_for(api: Api) -> None:
    later = commit(api, "Rot")
    threading.Timer(0.4, api.site.refresh).start()
    answer = api.get("/api/tags/red", headers={"Bifolio-After": later})
    assert (answer.status, answer.data["name"], answer.headers["Bifolio-Commit"]) == (200, "Rot", later)


def test_few_wait_and_others_are_told_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "COMMIT_TIMEOUT_S", 1.0)
    status: list[int] = []

    def ask() -> None:
        client = api.app.test_client()
        status.append(client.get("/api/tags", headers={"Bifolio-After": "0123456789"}).status_code)

    threads = [threading.Thread(target=ask) for _ in range(commits.MAX_WAITING_REQUESTS + 5)]
    for thread in threads:
        thread.start()
    until(lambda: len(status) == 5, 0.9)
    assert api.get("/api/tags").status == 200
    for thread in threads:
        thread.join()
    assert status == [503] * len(threads)


def test_servers_with_workers_answer_from_what_was_written(tmp_path: Path) -> None:
    write(
        tmp_path,
        {**FILES, "site.yaml": "roles: {public: {tag: [find, findOne, update]}}\ngit: {commit: each}\n"},
    )
    commit_all(tmp_path)
    with serving(tmp_path, free_port()) as url:
        for number in range(10):
            body = json.dumps({"data": {"name": f"n{number}"}}).encode()
            asked = Request(f"{url}/api/tags/red", body, {"Content-Type": "application/json"}, method="PUT")
            with urlopen(asked) as answer:
                made = answer.headers["Bifolio-Commit"]
            with urlopen(Request(f"{url}/api/tags/red", headers={"Bifolio-After": made})) as answer:
                assert json.load(answer)["data"]["name"] == f"n{number}"
                assert answer.headers["Bifolio-Commit"] == made
