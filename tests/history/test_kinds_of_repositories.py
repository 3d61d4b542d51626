"""All features based on git, tested in each kind of repository that can contain a site."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from tests.git import commit_all, git
from tests.history.test_branches import OPTIONS as FORMATS
from tests.sites import STRING, Api, collection, make, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

FILES = {
    "site.yaml": "git: {commit: each, committer: Site <site@example.org>}\nsearch: {index: false}\n",
    ".gitignore": ".bifolio/\n",
    **collection("note", {"title": STRING, "body": {"type": "richtext"}}),
    "content/notes/one.md": "---\ntitle: One\n---\nThe harbour.\n",
}
ALLOWED = ("-c", "protocol.file.allow=always")


def plain(folder: Path, *options: str) -> Path:
    root = folder / "site"
    write(root, FILES)
    git(root, "init", "-q", "-b", "main", *options)
    commit_all(root)
    return root


def worktree(folder: Path) -> Path:
    """Return a site in a linked worktree. Its `.git` is a file that points into another repository."""
    first = plain(folder)
    git(first, "worktree", "add", "-q", "-b", "side", str(folder / "side"))
    return folder / "side"


def submodule(folder: Path) -> Path:
    """Return a site in a submodule. Its `.git` is a file, and the outer repository only contains the
    submodule's commit id.
    """
    inner = plain(folder)
    outer = folder / "outer"
    write(outer, {"README": "All our sites\n"})
    commit_all(outer)
    git(outer, *ALLOWED, "submodule", "add", "-q", str(inner), "sites/one")
    git(outer, "commit", "-qm", "site")
    return outer / "sites/one"


def subfolder(folder: Path) -> Path:
    root = folder / "all/sites/the site"
    write(root, FILES)
    write(folder / "all", {"content/notes/one.md": "not the site's\n"})
    commit_all(folder / "all")
    return root


def shallow(folder: Path) -> Path:
    first = plain(folder)
    git(first, "commit", "-q", "--allow-empty", "-m", "more")
    git(folder, "clone", "-q", "--depth=1", f"file://{first}", "clone")
    return folder / "clone"


def detached(folder: Path) -> Path:
    root = plain(folder)
    git(root, "checkout", "-q", "--detach")
    return root


def elsewhere(folder: Path) -> Path:
    """Return a site whose repository is outside the site's folder."""
    root = plain(folder)
    git(root, "init", "-q", f"--separate-git-dir={folder / 'kept.git'}")
    return root


KINDS: dict[str, Callable[[Path], Path]] = {
    **{made.__name__: made for made in (plain, worktree, submodule, subfolder, shallow, detached, elsewhere)},
    **{option: lambda folder, option=option: plain(folder, option) for option in FORMATS},  # type: ignore[misc]
}


@pytest.fixture(params=KINDS)
def api(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Api]:
    made = make(KINDS[request.param](tmp_path), {})
    yield made
    made.accounts.close()


def head(api: Api, name: str = "HEAD") -> str:
    return git(api.root, "rev-parse", name).strip()


def test_all_history_features(api: Api) -> None:
    first = head(api)
    written = api.put("/api/notes/one", {"title": "Two"}, headers={"Bifolio-Message": "Retitle"})
    assert (written.status, written.headers["Bifolio-Commit"]) == (200, head(api))
    assert git(api.root, "status", "--porcelain") == ""
    versions = api.get("/history/notes/one").data
    assert [(v["message"].strip().splitlines()[0], v["attributes"]) for v in versions][:1] == [
        ("Retitle", ["title"])
    ]
    assert api.get(f"/api/notes/one?at={first}").data["title"] == "One"
    assert api.get(f"/history/notes/one/diff?from={first}").data["title"]["to"] == "Two"
    assert set(api.get("/history/notes/one/blame").data) == {"title", "body"}
    # Read a branch, write to it, and check that the served content is unchanged.
    assert api.ask("POST", "/branches", json={"name": "next", "from": first}).status == 201
    assert api.put("/api/notes/one?branch=next", {"body": "The quay."}).status == 200
    assert api.get("/api/notes/one").data["body"] == "The harbour."
    there = api.get("/api/notes/one?at=next").data
    assert (there["title"], there["body"]) == ("One", "The quay.")
    [change] = api.get("/branches/next/changes").data
    assert list(change["attributes"]) == ["body"]
    assert api.ask("POST", "/history/notes/one/restore", json={"at": first}).data["title"] == "One"
    assert api.ask("DELETE", "/branches/next").status == 204
    assert git(api.root, "status", "--porcelain") == ""
    assert git(api.root, "fsck", "--strict", "--no-dangling") == ""


# --- git operations in progress, and other obstacles ----------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Api]:
    """A site with a branch that changes the same line as the served branch."""
    root = plain(tmp_path)
    git(root, "checkout", "-q", "-b", "other")
    write(root, {"content/notes/one.md": "---\ntitle: Theirs\n---\nThe harbour.\n"})
    git(root, "commit", "-qam", "theirs")
    git(root, "checkout", "-q", "main")
    write(root, {"content/notes/one.md": "---\ntitle: Ours\n---\nThe harbour.\n"})
    write(root, {"content/notes/two.md": "---\ntitle: Two\n---\n"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "ours")
    made = make(root, {})
    yield made
    made.accounts.close()


@pytest.mark.parametrize("command", ["merge", "rebase", "cherry-pick"])
def test_a_commit_waits_for_the_git_operation_in_progress(
    site: Api, command: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(CalledProcessError):
        git(site.root, command, "other")
    site.site.refresh()
    # The server keeps serving the previous version of the file with conflict markers, and does not write to
    # the file.
    assert site.get("/api/notes/one").data["title"] in ("Ours", "Theirs")
    assert site.put("/api/notes/one", {"title": "Mine"}).status == 409
    assert "<<<<<<<" in site.read("content/notes/one.md")
    before = head(site)
    written = site.put("/api/notes/two", {"title": "Second"})
    assert (written.status, written.headers["Bifolio-Commit"]) == (200, "pending")
    assert head(site) == before
    assert f"a {command} is in progress" in caplog.text
    assert site.get("/api/notes/one?at=other").data["title"] == "Theirs"
    assert site.put("/api/notes/two?branch=other", {"title": "x"}).status == 404
    git(site.root, command, "--abort")
    site.site.refresh()
    site.site.committer.commit_due()
    assert site.get("/api/notes/one").data["title"] == "Ours"


def test_git_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = plain(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    api = make(root, {})
    assert api.get("/api/notes/one").data["title"] == "One"
    for path in ("/api/notes/one?at=main", "/history", "/branches"):
        refused = api.get(path)
        assert (refused.status, "git is not installed" in refused.error["message"]) == (409, True)
    assert api.put("/api/notes/one?branch=next", {"title": "x"}).status == 409
    written = api.put("/api/notes/one", {"title": "Two"})
    assert (written.status, written.headers["Bifolio-Commit"]) == (200, "pending")
    monkeypatch.undo()
    api.site.refresh()
    api.accounts.close()


def test_paths_and_messages_that_are_not_utf_8(tmp_path: Path) -> None:
    root = plain(tmp_path)
    odd = os.fsdecode(b"content/notes/caf\xe9.md")
    (root / odd).write_text("---\ntitle: Odd\n---\n")
    git(root, "add", "-A")
    git(root, "-c", "i18n.commitEncoding=latin1", "commit", "-qm", os.fsdecode(b"caf\xe9"))
    api = make(root, {})
    assert [commit["message"].strip() for commit in api.get("/history").data][-1] == "first"
    assert api.get("/api/notes?at=main").ids == ["one"]
    assert api.put("/api/notes/one", {"title": "Two"}).headers["Bifolio-Commit"] == head(api)
    assert api.ask("POST", "/branches", json={"name": "next", "from": "main"}).status == 201
    assert api.put("/api/notes/one?branch=next", {"title": "Three"}).status == 200
    listed = git(root, "-c", "core.quotePath=true", "ls-tree", "-r", "--name-only", "next", "content")
    assert listed.splitlines() == [r'"content/notes/caf\351.md"', "content/notes/one.md"]
    api.accounts.close()


def test_large_files_in_the_history_do_not_slow_reads(tmp_path: Path) -> None:
    root = plain(tmp_path)
    (root / "content/uploads").mkdir()
    (root / "content/uploads/large.bin").write_bytes(os.urandom(50_000_000))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "large")
    git(root, "rm", "-q", "content/uploads/large.bin")
    git(root, "commit", "-qm", "gone")
    api = make(root, {})
    first = git(root, "rev-parse", "HEAD~").strip()
    [file] = api.get(f"/api/upload/files?at={first}").body
    assert (file["name"], round(file["size"])) == ("large.bin", 50000)
    assert len(api.get(f"/uploads/large.bin?at={first}").raw) == 50_000_000
    assert api.get("/history").data
    api.accounts.close()
