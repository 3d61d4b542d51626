"""Tests for `/branches`: listing, creating and deleting branches, and reading them with `?at=`."""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import run
from urllib.parse import quote

import pytest

from server.storage.git.branches import delete_branch
from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, make, relation, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

SITE = "search: {index: false}\n"
FILES = {
    "site.yaml": SITE,
    **collection("tag", {"name": STRING}),
    **collection(
        "note", {"title": STRING, "body": {"type": "richtext"}, "tags": relation("manyToMany", "tag")}
    ),
    "content/tags/sea.yaml": "name: Sea\n",
    "content/notes/one.md": "---\ntitle: One\ntags: [sea]\n---\nThe harbour.\n",
}
ODD = [
    "été",
    "a(b)",
    "50%",
    "x&y=z",
    "it's",
    'say"so',
    "a$b;c",
    "topic/deep/er",
    "#1",
]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    write(tmp_path, FILES)
    commit_all(tmp_path)
    made = make(tmp_path, {})
    yield made
    made.accounts.close()


def new(api: Api, name: str, who: str = "full", **more: str) -> int:
    return api.ask("POST", "/branches", who, json={"name": name, **more}).status


def test_branches_are_listed_created_and_deleted(api: Api) -> None:
    first = git(api.root, "rev-parse", "HEAD").strip()
    made = api.ask("POST", "/branches", json={"name": "topic/spring"})
    assert made.status == 201
    spring = {
        "name": "topic/spring",
        "commit": first,
        "author": {"name": "T", "email": "t@example.org"},
        "date": "2024-01-01T00:00:00.000Z",
        "served": False,
        "checkedOut": False,
        "documents": 0,
        "merged": True,
    }
    assert made.data == spring
    main = {**spring, "name": "main", "served": True, "checkedOut": True}
    assert api.get("/branches").data == [main, spring]
    assert new(api, "topic/spring") == 409
    assert new(api, "topic") == 409  # conflicts with the branch "topic/spring"
    assert api.ask("DELETE", "/branches/topic/spring").status == 204
    assert api.get("/branches").data == [main]
    assert api.ask("DELETE", "/branches/topic/spring").status == 404


def test_a_branch_begins_at_its_origin(api: Api) -> None:
    first = git(api.root, "rev-parse", "HEAD").strip()
    git(api.root, "tag", "v1")
    write(api.root, {"content/notes/one.md": "---\ntitle: Two\n---\n"})
    git(api.root, "commit", "-qam", "second", at="2024-02-01T00:00:00Z")
    for name, begin in (("a", "v1"), ("b", first[:10]), ("c", "2024-01-15"), ("d", "a")):
        made = api.ask("POST", "/branches", json={"name": name, "from": begin})
        assert made.data["commit"] == first, name
    assert api.get("/api/notes/one?at=a").data["title"] == "One"
    assert new(api, "e", **{"from": "nothing"}) == 400


@pytest.mark.parametrize(
    "name",
    ["", "-d", "--force", "a..b", "a b", "a\nb", "a\x00b", ".a", "a.lock", "a/", "/a", "HEAD", "@", "@{-1}",
     "Head", "FETCH_HEAD", "stash", "refs/heads/a", "heads/a", "tags/a", "remotes/a", "origin/a", "far/a",
     "2030-01-01", "2030-01-01T10:20Z", "v1", "old/v1", "a~1", "a^", "a:b", "a?", "a*",
     "a[b", "a\\b", "x" * 300, "0" * 40],
)  # fmt: skip
def test_an_invalid_or_ambiguous_name_is_refused(api: Api, name: str) -> None:
    git(api.root, "remote", "add", "far", "https://example.org/far.git")
    for tag in ("v1", "old/v1"):
        git(api.root, "tag", tag)
    before = git(api.root, "for-each-ref")
    assert new(api, name) == 400
    assert git(api.root, "for-each-ref") == before


@pytest.mark.parametrize("digits", [4, 7, 12, 39])
def test_a_branch_can_not_be_named_like_a_commit(api: Api, digits: int) -> None:
    first = git(api.root, "rev-parse", "HEAD").strip()
    assert new(api, first[:digits]) == 400
    assert new(api, first[:digits].upper()) == 400
    assert new(api, "z" + first[:digits]) == 201


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("annotated", [False, True])
def test_names_resolve_to_ids_then_tags_then_branches(api: Api, packed: bool, annotated: bool) -> None:
    """A pushed branch can't hide a commit or tag of the same name."""
    first = git(api.root, "rev-parse", "HEAD").strip()
    write(api.root, {"content/notes/one.md": "---\ntitle: Two\n---\n"})
    git(api.root, "commit", "-qam", "second", at="2024-02-01T00:00:00Z")
    git(api.root, "tag", *(("-a", "-m", "Spring") if annotated else ()), "spring", first)
    for name in ("spring", first[:7], first[:12], "HEAD"):
        git(api.root, "update-ref", f"refs/heads/{name}", "main")
    for name in (first[:8], "2024-02-02"):
        git(api.root, "tag", name, "main")
    if packed:
        git(api.root, "pack-refs", "--all")
    titles = {
        first[:5]: "One",
        "spring": "One",
        "spring~0": "One",
        first: "One",
        first[:7]: "One",
        first[:8]: "One",
        f"{first[:12]}^0": "One",
        "refs/heads/spring": "Two",
        "HEAD": "Two",
        "2024-02-02": "Two",
        "2024-01-02": "One",
    }
    assert {name: api.get(f"/api/notes/one?at={name}").data["title"] for name in titles} == titles
    assert api.get("/history/notes/one/diff?from=spring&to=main").data["title"] == {
        "from": "One",
        "to": "Two",
    }
    api.token("reads", may=["branch.find", "note.findOne"])
    # This token may read branches, but not the rest of the history.
    assert api.get("/api/notes/one?at=spring", "reads").data["title"] == "Two"
    made = api.ask("POST", "/branches", json={"name": "next", "from": "spring"})
    assert made.data["commit"] == first


@pytest.mark.parametrize("packed", [False, True])
def test_work_that_was_not_committed_has_no_name(api: Api, packed: bool) -> None:
    """Git's other names, such as the stash, refer to work that its author has not published."""
    head = git(api.root, "rev-parse", "HEAD").strip()
    write(api.root, {"content/notes/one.md": "---\ntitle: Two\n---\n"})
    git(api.root, "stash")
    for ref in ("refs/notes/commits", "refs/bisect/bad", "refs/other"):
        git(api.root, "update-ref", ref, "stash")
    git(api.root, "update-ref", "ORIG_HEAD", "stash")
    git(api.root, "update-ref", "refs/remotes/origin/main", head)
    git(api.root, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    if packed:
        git(api.root, "pack-refs", "--all")
    api.site.refresh()
    for name in (
        *(
            "stash",
            "refs/stash",
            "stash~0",
            "../stash",
            "../stash~0",
            "refs/heads/../stash",
            "../../ORIG_HEAD",
        ),
        *(
            "notes/commits",
            "refs/notes/commits",
            "bisect/bad",
            "other",
            "refs/other",
            "ORIG_HEAD",
            "heads/../stash",
        ),
    ):
        assert api.get(f"/api/notes/one?at={name}").status == 400, name
        assert api.get(f"/history/notes/one/diff?from={name}").status == 400, name
    for name in (
        "HEAD",
        "main",
        "refs/heads/main",
        "origin/main",
        "origin",
        "remotes/origin/main",
        "origin/main~0",
    ):
        assert api.get(f"/api/notes/one?at={name}").data["title"] == "One", name


def test_the_number_of_branches_is_limited(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "site.yaml": SITE + "branches: {max: 3}\n"})
    commit_all(tmp_path)
    api = make(tmp_path, {})
    assert [new(api, name) for name in ("a", "b", "c")] == [201, 201, 409]
    assert "branches.max" in api.ask("POST", "/branches", json={"name": "c"}).error["message"]
    assert new(api, "b") == 409
    assert api.ask("DELETE", "/branches/a").status == 204
    assert new(api, "c") == 201
    api.accounts.close()


@pytest.mark.parametrize(
    "body", [None, [], "x", {}, {"name": 1}, {"name": "a", "from": 1}, {"name": "a", "form": "main"}]
)
def test_an_invalid_body_is_refused(api: Api, body: object) -> None:
    assert api.ask("POST", "/branches", json=body).status == 400


def count(api: Api, name: str, who: str = "full") -> object:
    return next(branch["documents"] for branch in api.get("/branches", who).data if branch["name"] == name)


def put(api: Api, path: str, **data: object) -> None:
    assert api.put(f"/api/{path}{'&' if '?' in path else '?'}branch=next", data).status < 300


def test_changed_documents_are_counted(api: Api) -> None:
    """Versions of one document count once. Changes on the served branch and merged changes do not count."""
    assert new(api, "next") == 201
    put(api, "notes/one", title="Uno")
    put(api, "notes/one?locale=de", title="Eins")
    assert api.ask("POST", "/api/tags?branch=next", json={"data": {"name": "Fog"}}).status == 201
    assert (count(api, "next"), count(api, "main")) == (2, 0)
    write(api.root, {"content/notes/two.md": "---\ntitle: Two\n---\n"})
    commit_all(api.root)
    api.site.refresh()
    assert count(api, "next") == 2
    assert api.ask("POST", "/branches/next/merge").status == 200
    assert count(api, "next") == 0


def test_only_documents_that_a_caller_may_find_are_counted(tmp_path: Path) -> None:
    files = collection("draft", {"title": STRING}, drafts=True) | {
        "content/drafts/a.md": "---\ntitle: A\n---\n"
    }
    write(tmp_path, {**FILES, **files})
    commit_all(tmp_path)
    api = make(tmp_path, {})
    assert new(api, "next") == 201
    put(api, "notes/one", title="Uno")
    put(api, "drafts/a?status=draft", title="B")
    assert count(api, "next") == 2
    for who, permissions, expected in (
        ("none", [], 0),
        ("notes", ["note.find"], 1),
        ("published", ["note.find", "draft.find"], 1),
        ("drafts", ["note.find", "draft.find", "draft.readDraft"], 2),
    ):
        api.token(who, may=["branch.find", *permissions])
        assert count(api, "next", who) == expected, who
        assert api.get("/branches/next/changes", who).body["meta"]["pagination"]["total"] == expected, who
    # If the branch makes the type's documents visible by another schema, they stay hidden.
    git(api.root, "checkout", "-q", "next")
    write(api.root, collection("draft", {"title": STRING}))
    commit_all(api.root)
    git(api.root, "checkout", "-q", "main")
    assert count(api, "next", "published") == 1
    api.accounts.close()


def test_changes_of_hidden_values_are_not_counted(tmp_path: Path) -> None:
    secret = {"type": "string", "private": True}
    links = {"plan": relation("manyToOne", "plan"), "secret": secret}
    files = collection("plan", {"title": STRING}) | collection(
        "note", {"title": STRING, **links}, drafts=True
    )
    write(tmp_path, {**FILES, **files, "content/plans/p.md": "---\ntitle: P\n---\n"})
    commit_all(tmp_path)
    api = make(tmp_path, {})
    api.token("reader", may=["branch.find", "note.find", "note.readDraft"])
    for number, (data, expected) in enumerate(
        (({"secret": "x"}, 0), ({"plan": "p"}, 0), ({"title": "Uno", "secret": "y"}, 1))
    ):
        name = f"b{number}"
        assert new(api, name) == 201
        assert api.put(f"/api/notes/one?branch={name}", data).status == 200
        assert (count(api, name), count(api, name, "reader")) == (1, expected), data
        meta = api.get(f"/branches/{name}/changes", "reader").body["meta"]
        assert meta["pagination"]["total"] == expected, data
    api.accounts.close()


def test_a_branch_that_can_not_be_compared_has_no_count(api: Api) -> None:
    git(api.root, "checkout", "-q", "--orphan", "alone")
    git(api.root, "commit", "-qm", "alone")
    git(api.root, "checkout", "-q", "-f", "main")
    git(api.root, "checkout", "-q", "-b", "broken")
    write(api.root, {"content-types/note.json": "{", "content/notes/one.md": "---\ntitle: Uno\n---\n"})
    commit_all(api.root)
    git(api.root, "checkout", "-q", "main")
    assert (count(api, "alone"), count(api, "broken"), count(api, "main")) == (None, None, 0)


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/branches/next"), ("POST", "/branches/next/merge")])
def test_a_branch_that_has_changed_is_neither_merged_nor_deleted(method: str, path: str, api: Api) -> None:
    assert new(api, "next") == 201
    put(api, "notes/one", title="Uno")
    seen = api.get("/branches/next/changes").body["meta"]["to"]
    put(api, "notes/one", title="Une")
    refused = api.ask(method, path, headers={"If-Match": f'"{seen}"'})
    last = git(api.root, "rev-parse", "next").strip()
    assert (refused.status, refused.error["details"]) == (412, {"commit": last})
    assert api.get("/api/notes/one").data["title"] == "One"
    assert api.ask(method, path, headers={"If-Match": f'"{last}"'}).status in (200, 204)


def test_branches_that_differ_only_in_case_are_not_created_at_once(api: Api) -> None:
    for number in range(5):
        with ThreadPoolExecutor(2) as pool:
            statuses = list(pool.map(lambda name: new(api, name), (f"Br{number}", f"bR{number}")))
        assert sorted(statuses) == [201, 409]


def test_a_commit_that_arrives_during_a_deletion_is_kept(api: Api) -> None:
    assert new(api, "next") == 201
    first = git(api.root, "rev-parse", "next").strip()
    put(api, "notes/one", title="Uno")
    assert not delete_branch(api.root, "next", first)
    assert "Uno" in git(api.root, "show", "next:content/notes/one.md")
    assert delete_branch(api.root, "next", git(api.root, "rev-parse", "next").strip())
    assert not delete_branch(api.root, "next", first)


def test_a_branch_that_is_being_rebased_is_not_deleted(api: Api, tmp_path: Path) -> None:
    assert new(api, "next") == 201
    put(api, "notes/one", title="Uno")
    write(api.root, {"content/notes/one.md": "---\ntitle: Ein\n---\n"})
    commit_all(api.root)
    other = tmp_path.with_name(f"{tmp_path.name}-other")
    git(api.root, "worktree", "add", "-q", str(other), "next")
    assert run(["git", "-C", str(other), "rebase", "-q", "main"], capture_output=True).returncode
    refused = api.ask("DELETE", "/branches/next")
    assert (refused.status, refused.error["message"].endswith("checked out or being rebased")) == (409, True)
    run(["git", "-C", str(other), "rebase", "--abort"], check=True)
    git(other, "checkout", "-q", "--detach")
    assert api.ask("DELETE", "/branches/next").status == 204


def test_a_locked_branch_is_not_deleted(api: Api) -> None:
    assert new(api, "next") == 201
    lock = api.root / ".git/refs/heads/next.lock"
    lock.touch()
    os.utime(lock, (1e9, 1e9))
    refused = api.ask("DELETE", "/branches/next")
    assert refused.status == 503
    assert ".git/refs/heads/next.lock" in refused.error["message"]
    lock.unlink()
    assert api.ask("DELETE", "/branches/next").status == 204


@pytest.mark.parametrize("name", ODD)
def test_odd_names_can_be_used(api: Api, name: str) -> None:
    assert new(api, name) == 201
    assert api.get(f"/api/notes/one?at={quote(name, safe='')}").data["title"] == "One"
    assert api.ask("DELETE", f"/branches/{quote(name)}").status == 204


def test_a_checked_out_branch_is_not_deleted(api: Api, tmp_path: Path) -> None:
    assert new(api, "other") == 201
    git(api.root, "worktree", "add", "-q", str(tmp_path.with_name(f"{tmp_path.name}-other")), "other")
    for name in ("main", "other"):
        assert api.ask("DELETE", f"/branches/{name}").status == 409
    assert [(b["name"], b["served"], b["checkedOut"]) for b in api.get("/branches").data] == [
        ("main", True, True),
        ("other", False, True),
    ]
    git(api.root, "checkout", "-q", "--detach")
    assert [b["served"] for b in api.get("/branches").data] == [False, False]
    assert api.ask("DELETE", "/branches/main").status == 204


def test_missing_repositories_and_commits_are_reported(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    for _ in range(2):
        assert api.get("/branches").status == 409
        assert new(api, "a") == 409
        assert api.ask("DELETE", "/branches/a").status == 409
        git(tmp_path, "init", "-q", "-b", "main")
        api.site.refresh()
    api.accounts.close()


def test_each_permission(api: Api) -> None:
    for name in ("find", "create", "delete"):
        api.token(name, may=[f"branch.{name}"])
    api.token("reads", may=["branch.find", "note.findOne"])
    api.token("past", may=["history.read", "note.findOne"])
    api.token("none", may=["note.findOne"])
    api.token("reader", "read-only")
    first = git(api.root, "rev-parse", "HEAD").strip()
    git(api.root, "tag", "v1")
    for who, statuses in {
        "find": (200, 403, 403),
        "create": (403, 201, 403),
        "delete": (403, 403, 204),
        "reader": (200, 403, 403),
        "public": (403, 403, 403),
    }.items():
        got = (
            api.get("/branches", who).status,
            new(api, "x", who),
            api.ask("DELETE", "/branches/x", who).status,
        )
        assert got == statuses, who
    # Creating a branch reveals the commit that it starts from, so it needs permission to read that commit.
    assert [new(api, "y", "create", **{"from": name}) for name in ("v1", first, "main")] == [403, 403, 201]
    for who, statuses in {
        "reads": [200, 403, 403, 403],
        "reader": [200, 403, 403, 403],
        "past": [200, 200, 200, 400],
        "none": [403, 403, 403, 403],
    }.items():
        names = ("main", first, "v1", "zzz")
        assert [api.get(f"/api/notes/one?at={name}", who).status for name in names] == statuses, who


def test_a_content_type_named_branch(tmp_path: Path) -> None:
    roles = "roles: {public: {branch: [find, findOne, create, delete, readDraft]}}\n"
    files = {**FILES, "site.yaml": SITE + roles, **collection("branch", {"name": STRING})}
    write(tmp_path, files)
    commit_all(tmp_path)
    api = make(tmp_path, {})
    assert api.get("/api/branchs", "public").status == 200
    assert api.get("/branches", "public").status == 403
    assert new(api, "a", "public") == 403
    assert api.get("/api/branchs?at=main", "public").status == 403
    assert api.get("/branches").status == 200
    api.accounts.close()


def test_a_site_in_a_folder_of_its_repository(tmp_path: Path) -> None:
    write(tmp_path / "site", FILES)
    commit_all(tmp_path)
    api = make(tmp_path / "site", {})
    assert new(api, "a") == 201
    assert api.get("/api/notes/one?at=a").data["title"] == "One"
    api.accounts.close()


GIT_INIT = run(["git", "init", "-h"], capture_output=True, text=True, check=False).stdout
REFTABLE = "--ref-format=reftable"  # requires git 2.45 or later
OPTIONS = ["--object-format=sha256", *([REFTABLE] if "ref-format" in GIT_INIT else [])]


@pytest.mark.parametrize("option", OPTIONS)
def test_other_kinds_of_repositories(tmp_path: Path, option: str) -> None:
    write(tmp_path, FILES)
    git(tmp_path, "init", "-q", "-b", "main", option)
    commit_all(tmp_path)
    api = make(tmp_path, {})
    assert new(api, "a") == 201
    assert [b["name"] for b in api.get("/branches").data] == ["a", "main"]
    assert api.get("/api/notes/one?at=a").data["title"] == "One"
    assert api.ask("DELETE", "/branches/a").status == 204
    api.accounts.close()


def test_openapi_lists_the_permitted_operations_on_branches(api: Api) -> None:
    api.token("find", may=["branch.find"])
    paths = api.get("/openapi.json", "find").body["paths"]
    assert {path: list(paths[path]) for path in paths if path.startswith("/branches")} == {
        "/branches": ["get"],
        "/branches/{name}/changes": ["get"],
    }
    assert not any(path.startswith("/branches") for path in api.get("/openapi.json", "public").body["paths"])
    answer = api.get("/branches", "find")
    described = paths["/branches"]["get"]["responses"]["200"]
    item = described["content"]["application/json"]["schema"]["properties"]["data"]["items"]
    assert set(answer.data[0]) == set(item["required"])
    assert "ETag" in answer.headers
