"""Remote commits with reserved file names: they are rejected, and the error names the commit."""

import shutil

import pytest

from server.errors import RemoteMergeError
from server.storage.git.command import git as run
from tests.git import TIME, git
from tests.history.remote.places import Places
from tests.sites import write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
NAMES = [
    ".git",
    ".GIT",
    ".Git",
    "..",
    ".",
    ".g\u200cit",
    ".git ",
    ".git.",
    "git~1",
    ".git:x",
    ".bifolio",
    ".BIFOLIO",
    "x" * 256,
    "é" * 128,
]


def push_tree(places: Places, name: str) -> str:
    """Push a commit that contains a folder with any name, even one that git would not create."""
    blob = (run(places.other, "hash-object", "-w", "--stdin", stdin="#!/bin/sh\n") or "").strip()
    below = (run(places.other, "mktree", stdin=f"100755 blob {blob}\thook\n") or "").strip()
    listed = git(places.other, "ls-tree", "HEAD")
    tree = (run(places.other, "mktree", stdin=f"{listed}040000 tree {below}\t{name}\n") or "").strip()
    commit = git(places.other, "commit-tree", "-p", "HEAD", "-m", "harm", tree).strip()
    git(places.other, "push", "-q", "origin", f"{commit}:main")
    return commit


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("merged", [False, True])
def test_reserved_names_are_refused(places: Places, name: str, merged: bool) -> None:
    if merged:
        places.edit({"content/notes/two.md": "---\ntitle: Here\n---\n"})
        places.commit()
    head, commit = places.head, push_tree(places, name)
    before = {path: path.stat().st_mtime_ns for path in (places.root / ".git").glob("h*")}
    with pytest.raises(RemoteMergeError) as refused:
        places.take()
    assert commit[:10] in refused.value.message
    assert ascii(f"{name}/hook") in refused.value.message
    assert places.head == head
    assert places.status == ""
    assert not (places.root / ".git/hook").exists()
    assert before == {path: path.stat().st_mtime_ns for path in (places.root / ".git").glob("h*")}
    git(places.other, "push", "-q", "--force", "origin", "main")
    if not merged:
        places.push({"content/notes/two.md": "---\ntitle: After\n---\n"})
        places.take()
        assert places.note("two")["title"] == "After"


def test_a_path_that_the_system_refuses_is_named_and_the_site_stays_as_it_is(places: Places) -> None:
    head, path = places.head, "/".join(["x" * 250] * 20)
    blob = (run(places.other, "hash-object", "-w", "--stdin", stdin="text") or "").strip()
    run(places.other, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    tree = git(places.other, "write-tree").strip()
    commit = git(places.other, "commit-tree", "-p", "HEAD", "-m", "long", tree).strip()
    git(places.other, "push", "-q", "origin", f"{commit}:main")
    with pytest.raises(RemoteMergeError) as refused:
        places.take()
    assert refused.value.details["files"] == [path]
    assert (places.head, places.status) == (head, "")


@pytest.mark.parametrize(
    "name", ["x" * 255, "git", ".github", ".gitignored", "a..b", "...", "git~10", ".bifolios"]
)
def test_names_similar_to_reserved_ones_are_accepted(places: Places, name: str) -> None:
    push_tree(places, name)
    places.take()
    assert (places.root / name / "hook").exists()


def test_a_state_folder_that_was_committed_can_be_removed_again(places: Places) -> None:
    git(places.other, "config", "core.excludesFile", "/dev/null")
    for folder in (places.other, places.root):
        write(folder, {".bifolio/note": "x"})
        git(folder, "add", "-f", ".bifolio/note")
        git(folder, "commit", "-qm", "by mistake", at=TIME)
    git(places.other, "push", "-q", "origin", "main")
    places.take()
    git(places.other, "rm", "-q", "--cached", ".bifolio/note")
    places.push({})
    places.take()
    assert places.status == ""
    assert (places.root / ".bifolio/note").exists()
