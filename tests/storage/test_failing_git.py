"""Git commands that fail: that is never taken for "there is nothing"."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from server.errors import ConflictError, GitError
from server.storage.git.branch_commit import make_commit
from server.storage.git.branches import merge_base
from server.storage.git.command import filter_names
from server.storage.git.tree import read_tree
from server.storage.git.uncommitted import changed_paths, uncommitted_changes
from tests.git import commit_all, git
from tests.git_programs import failing_git
from tests.sites import write
from tests.storage.test_branch_commit import SIGNED, head

Damage = Callable[[str], None]
pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository in which Git LFS keeps pictures; its program is not installed."""
    write(tmp_path, {".gitattributes": "*.png filter=lfs\n", "folder/a.txt": "Text\n"})
    commit_all(tmp_path)
    git(tmp_path, "config", "filter.lfs.clean", "cat")
    return tmp_path


@pytest.fixture
def damage(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Damage:
    """Let a git command fail from now on."""
    return lambda command: failing_git(monkeypatch, tmp_path_factory.mktemp("bin"), command)


def add_picture(root: Path) -> str:
    """Commit a file that Git LFS is to keep."""
    picture = root / "new.png"
    picture.write_bytes(b"Picture")
    return make_commit(root, (head(root),), {"new.png": picture}, SIGNED)


def test_a_file_of_a_filter_is_refused(root: Path) -> None:
    with pytest.raises(ConflictError, match='by the filter "lfs"'):
        add_picture(root)


@pytest.mark.parametrize("command", ["config", "read-tree", "check-attr"])
def test_no_file_is_committed_while_it_is_not_known_whether_a_filter_keeps_it(
    root: Path, damage: Damage, command: str
) -> None:
    damage(command)
    with pytest.raises(GitError, match=f"git {command} has failed: fatal: it is damaged"):
        add_picture(root)


def test_no_file_takes_the_place_of_a_folder_whose_files_are_not_known(root: Path, damage: Damage) -> None:
    damage("ls-tree")
    with pytest.raises(GitError):
        make_commit(root, (head(root),), {"folder": b"File\n"}, SIGNED)


def test_a_tree_that_cannot_be_read_is_not_an_empty_one(root: Path, damage: Damage) -> None:
    assert set(read_tree(root, head(root))) == {".gitattributes", "folder/a.txt"}
    damage("ls-tree")
    with pytest.raises(GitError):
        read_tree(root, head(root))


def test_commits_whose_base_is_not_known_are_not_without_one(root: Path, damage: Damage) -> None:
    one = head(root)
    other = git(root, "commit-tree", "-m", "Other", f"{one}^{{tree}}").strip()
    assert merge_base(root, one, other) == ""
    assert merge_base(root, one, one) == one
    damage("merge-base")
    with pytest.raises(GitError):
        merge_base(root, one, one)


def test_filters_that_are_not_known_are_not_none(root: Path, damage: Damage) -> None:
    assert filter_names(root) == ("lfs",)
    git(root, "config", "--unset", "filter.lfs.clean")
    assert "lfs" not in (filter_names(root) or ())
    damage("config")
    with pytest.raises(GitError):
        filter_names(root)
    assert changed_paths(root) == frozenset()  # with a warning, as where git is too slow


def test_new_files_that_are_not_known_are_not_left_out(root: Path, damage: Damage) -> None:
    (root / "folder/new.txt").write_text("New\n")
    assert [change.path for change in uncommitted_changes(root, ["folder"])] == ["folder/new.txt"]
    damage("ls-files")
    with pytest.raises(GitError):
        uncommitted_changes(root, ["folder"])
