"""Tests of writes to branches, and of commits, that a full disk or a lock file stops."""

import os
import time
from pathlib import Path

import pytest

from tests.branches import site_with_branch
from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, opened, write
from tests.small_disk import fill, mounted

FILES = {
    **collection("note", {"title": STRING, "body": {"type": "richtext"}}),
    "content/notes/one.json": '{"title": "One"}',
    ".gitignore": ".bifolio/\n",
}


def _temporary(root: Path) -> list[str]:
    names = ("fast_import_crash_", "tmp_obj_", "tmp_pack_", "tmp_idx_", "tmp_objdir-")
    return [path.name for path in root.rglob("*") if path.name.startswith(names)]


def test_a_full_disk_refuses_a_write_to_a_branch_and_leaves_no_files(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "4m") as disk:
        (disk / "site").mkdir()
        api = site_with_branch(disk / "site", FILES)
        assert api.put("/api/notes/one?branch=next", {"title": "Before"}).status == 200
        before = git(api.root, "rev-parse", "next")
        # Another git command is running, and has just closed these files.
        others = ["fast_import_crash_1", "objects/pack/tmp_pack_other", "objects/ab/tmp_obj_other"]
        for other in others:
            path = api.root / ".git" / other
            path.parent.mkdir(exist_ok=True)
            path.touch()
        fill(disk / "filler")
        for body in (os.urandom(9000).hex(), "short"):
            refused = api.put("/api/notes/one?branch=next", {"body": body})
            assert (refused.status, refused.error["name"]) == (507, "InsufficientStorageError")
            assert "the disk is full" in refused.error["message"]
        created = api.ask("POST", "/branches", json={"name": "other"})
        assert created.status == 507
        assert set(_temporary(api.root)) == {Path(other).name for other in others}
        (disk / "filler").unlink()
        assert git(api.root, "rev-parse", "next") == before
        assert api.put("/api/notes/one?branch=next", {"title": "After"}).status == 200
        api.accounts.close()


def test_a_commit_that_a_full_disk_stops_leaves_no_files_in_git(tmp_path: Path) -> None:
    with mounted(tmp_path / "git", "4m") as disk:
        write(tmp_path / "site", {**FILES, "site.yaml": "git: {commit: 10m}\n"})
        git(tmp_path, "init", "-q", f"--separate-git-dir={disk / 'repository'}", "site")
        commit_all(tmp_path / "site")
        api = Api.of(opened(tmp_path / "site"))
        fill(disk / "filler")
        for title in ("Two", "Three"):
            assert api.put("/api/notes/one", {"title": title}).headers["Bifolio-Commit"] == "pending"
            api.site.committer.flush()
            assert _temporary(disk) == []
        (disk / "filler").unlink()
        api.site.committer.flush()
        assert "Three" in git(api.root, "show", "HEAD:content/notes/one.json")
        api.accounts.close()


@pytest.mark.parametrize("name", ["next", "other"])
def test_an_old_lock_of_a_branch_is_named(tmp_path: Path, name: str) -> None:
    api = site_with_branch(tmp_path, FILES)
    lock = tmp_path / ".git/refs/heads" / f"{name}.lock"
    lock.touch()
    os.utime(lock, (time.time() - 3600,) * 2)

    def attempt() -> tuple[int, str]:
        if name == "other":
            answer = api.ask("POST", "/branches", json={"name": name})
        else:
            answer = api.put("/api/notes/one?branch=next", {"title": "After"})
        return answer.status, "" if answer.status < 400 else answer.error["message"]

    status, message = attempt()
    assert status == 503
    assert f".git/refs/heads/{name}.lock; if no git command is running" in message
    lock.unlink()
    assert attempt()[0] < 300
    api.accounts.close()


@pytest.mark.parametrize("content", [None, b"damaged"])
def test_a_damaged_branch_is_listed_beside_the_others(tmp_path: Path, content: bytes | None) -> None:
    api = site_with_branch(tmp_path, FILES)
    assert api.put("/api/notes/one?branch=next", {"title": "Next"}).status == 200
    git(tmp_path, "branch", "other")
    commit = git(tmp_path, "rev-parse", "next").strip()
    damaged = tmp_path / ".git/objects" / commit[:2] / commit[2:]
    damaged.chmod(0o600)
    damaged.unlink()
    if content:
        damaged.write_bytes(content)
    listed = {branch["name"]: branch for branch in api.ask("GET", "/branches").data}
    assert listed.keys() == {"main", "next", "other"}
    assert listed["next"]["problem"].startswith(f"The commit {commit[:10]} is missing or damaged")
    assert (listed["next"]["date"], listed["next"]["documents"], listed["next"]["merged"]) == (
        None,
        None,
        False,
    )
    assert listed["other"].keys() == listed["main"].keys()
    assert listed["other"]["merged"]
    assert api.put("/api/notes/one?branch=other", {"title": "Other"}).status == 200
    assert api.put("/api/notes/one?branch=next", {"title": "Changed"}).status == 503
    api.accounts.close()
