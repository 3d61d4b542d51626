"""Failing git commands: a failure must never be treated as an empty result."""

import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from server.errors import ConflictError, GitError, StorageError
from server.storage.git.branch_commit import make_commit
from server.storage.git.branches import branches, delete_branch, is_branch_name, merge_base, move_branch
from server.storage.git.checkout import temporary_checkout as checkout
from server.storage.git.command import filter_names
from server.storage.git.commit import NewCommit, Person, is_own_commit, store_changed_files
from server.storage.git.log import CommitLog
from server.storage.git.refs import (
    branch_commit,
    checked_out_branch,
    commits_outside_history,
    find_commit,
    head_commit,
    is_ancestor,
)
from server.storage.git.repository import is_shallow, is_tracked, repository_of
from server.storage.git.times import read_times
from server.storage.git.tree import (
    changed_files,
    copy_blob,
    paths_changed_by,
    read_blobs,
    read_named,
    read_tree,
    write_blob,
)
from server.storage.git.uncommitted import changed_paths, staged_renames, uncommitted_changes
from tests.git import commit_all, git
from tests.git_programs import failing_git, fake_git
from tests.sites import write
from tests.storage.test_branch_commit import SIGNED, head

Damage = Callable[[str], None]
BY = Person("T", "t@example.org")
pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository that stores pictures in Git LFS. The program for Git LFS is not installed."""
    write(tmp_path, {".gitattributes": "*.png filter=lfs\n", "folder/a.txt": "Text\n"})
    commit_all(tmp_path)
    git(tmp_path, "config", "filter.lfs.clean", "cat")
    return tmp_path


@pytest.fixture
def damage(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Damage:
    """A function that makes a git command fail from then on."""
    return lambda command: failing_git(monkeypatch, tmp_path_factory.mktemp("bin"), command)


def add_picture(root: Path) -> str:
    """Commit a file that Git LFS should store."""
    picture = root / "new.png"
    picture.write_bytes(b"Picture")
    return make_commit(root, (head(root),), {"new.png": picture}, SIGNED)


def test_a_file_of_a_filter_is_refused(root: Path) -> None:
    with pytest.raises(ConflictError, match='requires the git filter "lfs"'):
        add_picture(root)


@pytest.mark.parametrize("command", ["config", "read-tree", "check-attr"])
def test_no_file_is_committed_while_it_is_not_known_whether_a_filter_keeps_it(
    root: Path, damage: Damage, command: str
) -> None:
    damage(command)
    with pytest.raises(GitError, match=f"git {command} failed: fatal: it is damaged"):
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
    with pytest.raises(GitError):
        changed_paths(root)


def test_new_files_that_are_not_known_are_not_left_out(root: Path, damage: Damage) -> None:
    (root / "folder/new.txt").write_text("New\n")
    assert [change.path for change in uncommitted_changes(root, ["folder"])] == ["folder/new.txt"]
    damage("ls-files")
    with pytest.raises(GitError):
        uncommitted_changes(root, ["folder"])


@dataclass(frozen=True, slots=True)
class Ids:
    """Object ids in a repository: of the last commit, of the first commit, and of a file."""

    head: str
    first: str
    blob: str


def read_log(root: Path, ids: Ids) -> None:
    CommitLog(root, None).update(ids.head)


@pytest.mark.parametrize(
    ("command", "ask"),
    [
        ("for-each-ref", lambda root, _: branches(root)),
        ("for-each-ref", lambda root, _: branch_commit(root, "other")),
        ("check-ref-format", lambda root, _: is_branch_name(root, "new")),
        ("update-ref", lambda root, ids: move_branch(root, "new", ids.head, "", "create")),
        ("update-ref", lambda root, ids: delete_branch(root, "other", ids.head)),
        ("rev-parse", lambda root, _: find_commit(root, "v1")),
        ("rev-parse", lambda root, _: is_shallow(root)),
        ("ls-files", lambda root, _: is_tracked(root, "folder")),
        ("merge-base", lambda root, ids: is_ancestor(root, ids.first, ids.head)),
        ("cat-file", lambda root, ids: commits_outside_history(root, [ids.first], ids.head)),
        ("rev-list", lambda root, ids: commits_outside_history(root, [ids.first], ids.head)),
        ("cat-file", lambda root, ids: list(read_blobs(root, [ids.blob]))),
        ("cat-file", lambda root, ids: list(read_named(root, [f"{ids.head}:./folder/a.txt"], 1000))),
        ("blob", lambda root, ids: copy_blob(root, ids.blob, sys.stderr.buffer)),
        ("hash-object", lambda root, _: write_blob(root, b"New")),
        ("diff-tree", lambda root, ids: changed_files(root, ids.first, ids.head)),
        ("diff-tree", lambda root, ids: paths_changed_by(root, [ids.head])),
        ("diff", lambda root, _: changed_paths(root)),
        ("diff", lambda root, _: staged_renames(root)),
        ("log", read_log),
        ("log", lambda root, _: read_times(root)),
        ("log", lambda root, ids: is_own_commit(repository_of(root), ids.head, [])),
        ("config", lambda root, _: repository_of(root).signs),
    ],
)
def test_what_git_does_not_say_is_not_nothing(
    root: Path, damage: Damage, command: str, ask: Callable[[Path, Ids], object]
) -> None:
    write(root, {"folder/b.txt": "Text\n"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "next")
    git(root, "branch", "other")
    git(root, "pack-refs", "--all")
    first = git(root, "rev-list", "--max-parents=0", "HEAD").strip()
    ids = Ids(head(root), first, git(root, "hash-object", "folder/a.txt").strip())
    damage(command)
    with pytest.raises(GitError, match="failed: fatal: it is damaged"):
        ask(root, ids)


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_branch_that_does_not_exist_is_found_out_without_git(
    root: Path, damage: Damage, is_packed: bool
) -> None:
    git(root, "branch", "other")
    if is_packed:
        git(root, "pack-refs", "--all")
    assert branch_commit(root, "other") == head(root)
    damage("for-each-ref")
    assert branch_commit(root, "none") == branch_commit(root, "\N{PERFORMING ARTS}" * 200) == ""


def test_what_there_is_not_is_nothing(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    nowhere, id_ = tmp_path_factory.mktemp("none"), "1" * 40
    for place in (root, nowhere):
        assert find_commit(place, "v1") == find_commit(place, id_) == branch_commit(place, "other") == ""
        assert not is_ancestor(place, id_, "2" * 40)
        assert not is_shallow(place)
        assert not is_tracked(place, "other")
        assert changed_paths(place) == frozenset()
    assert list(read_blobs(root, [id_])) == list(read_named(root, [f"{head(root)}:./none"], 1000)) == [None]
    assert not is_ancestor(root, id_, head(root))
    with tempfile.TemporaryFile() as file:
        assert not copy_blob(root, id_, file)
    assert commits_outside_history(root, [id_], head(root)) == {id_}
    assert not move_branch(root, "main", head(root), id_, "write")
    assert not move_branch(root, "main/below", head(root), "", "create")
    assert not any(
        is_branch_name(root, name) for name in ("-x", "a b", "a..b", "@{-1}", "HEAD", "@", "a.lock")
    )
    assert is_branch_name(root, "a/b@c")
    assert head_commit(nowhere) == checked_out_branch(nowhere) == ""
    assert branches(nowhere) == []


def test_commits_that_git_has_forgotten_do_not_keep_later_ones_from_being_read(root: Path) -> None:
    log, first = CommitLog(root, None), head(root)
    write(root, {"folder/b.txt": "Text\n"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "forgotten")
    log.update(head(root))
    git(root, "reset", "-q", "--hard", first)
    git(root, "reflog", "expire", "--expire=all", "--all")
    git(root, "gc", "-q", "--prune=now")
    git(root, "commit", "-q", "--allow-empty", "-m", "later")
    log.update(head(root))
    assert [one.id for one in log.history_of(head(root))] == [head(root), first]


def test_a_server_whose_git_is_damaged_says_so(
    root: Path, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    before = read_times(root)
    (root / "folder/a.txt").write_text("Other\n")
    known = read_times(root, before=before)
    assert known.changed == {"folder/a.txt"}
    damage("diff")
    assert read_times(root, before=known) == known
    assert "git can't list the uncommitted files: git diff failed" in caplog.text


def test_a_write_whose_commit_was_begun_before_git_forgot_it_is_committed(root: Path) -> None:
    repository, at = repository_of(root), 1_700_000_000
    new = NewCommit({"folder/a.txt": b"Mine\n"}, "Message", BY, at, BY, at, base="1" * 40)
    assert set(store_changed_files(repository, new, head(root))) == {"folder/a.txt"}


def test_a_checkout_says_why_it_failed(root: Path, damage: Damage) -> None:
    commit = head(root)
    damage("checkout-index")
    with (
        pytest.raises(StorageError, match="checkout-index failed: fatal: it is damaged"),
        checkout(root, commit),
    ):
        pass


def test_a_branch_is_moved_although_git_is_killed_once(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, commit = root / ".git/refs/heads/new.lock", head(root)
    kill = f"if mkdir {root}/.git/killed; then echo {commit} >{lock}; kill -9 $$; fi"
    fake_git(monkeypatch, tmp_path_factory.mktemp("programs"), update_ref=kill)
    assert move_branch(root, "new", commit, "", "create")
    assert (branch_commit(root, "new"), lock.exists()) == (commit, False)
