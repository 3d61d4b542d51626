"""Reading commits: the commits of a site, the commit for a name or time, and the files in a commit."""

import shutil
from pathlib import Path

import pytest

from server.errors import GitError
from server.storage.git import tree as tree_module
from server.storage.git.log import Commit, CommitLog, FileChange
from server.storage.git.refs import commit_at, find_commit, head_commit, parse_time
from server.storage.git.times import CommitTimes, read_times
from server.storage.git.tree import read_blobs, read_named, read_tree
from tests.git import TIME, commit_all, git
from tests.sites import write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A site in a subfolder of its git repository."""
    root = tmp_path / "repository/site"
    write(
        root, {"content/a.md": "one\ntwo\nthree\nfour\n", "content/b.md": "b\n", "../README.md": "outside\n"}
    )
    commit_all(tmp_path / "repository")
    return root


def commit(root: Path, at: str = TIME) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "next", at=at)


def commits(root: Path, folder: Path | None = None) -> list[Commit]:
    log = CommitLog(root, folder)
    log.update(head_commit(root))
    return list(log.history_of(head_commit(root)))


def test_a_commit_says_who_when_why_and_what(root: Path) -> None:
    write(root, {"content/a.md": "ONE\n"})
    git(root, "add", ".")
    git(root, "commit", "--author=Zoë <z@x.org>", "-m", "Say it\n\nlouder")
    newest, first = commits(root)
    assert (newest.author, newest.email, newest.message) == ("Zoë", "z@x.org", "Say it\n\nlouder")
    assert newest.changes == (FileChange("M", "content/a.md"),)
    assert newest.parents == (first.id,)
    assert {change.path for change in first.changes} == {"content/a.md", "content/b.md"}


@pytest.mark.parametrize(
    ("author", "committer", "times"),
    [
        ("Zoë <z@x.org> 99999999999999 +0000", "Bo <b@x.org> 1000 +0000", (253402300799, 1000)),
        ("Zoë <z@x.org> 1000 +0000", "Bo <b@x.org> 253402300800 +0000", (1000, 253402300799)),
        ("Zoë <z@x.org>", "Bo <b@x.org> -1 +0000", (0, 0)),
        ("Zo\x1fë\x1f1\x1f <z@x.org> 1000 +0000", "Bo 1000 +0000", (1000, 0)),
    ],
)
def test_a_commit_with_odd_times_and_names_can_be_read(
    root: Path, author: str, committer: str, times: tuple[int, int]
) -> None:
    write(root, {"content/a.md": "ONE\n"})
    git(root, "add", ".")
    tree, parent = git(root, "write-tree").strip(), head_commit(root)
    said = f"tree {tree}\nparent {parent}\nauthor {author}\ncommitter {committer}\n\nOdd\n"
    git(root, "reset", "-q", "--hard", made_of(root, said))
    newest = commits(root)[0]
    assert (newest.parents, newest.authored, newest.committed) == ((parent,), *times)
    assert newest.changes == (FileChange("M", "content/a.md"),)
    assert read_times(root).timestamps("content/a.md", 0)


def made_of(root: Path, commit: str) -> str:
    """Create a commit from raw text, which may be invalid, and return its id."""
    (root / "commit").write_text(commit)
    return git(root, "hash-object", "-t", "commit", "-w", "--literally", "commit").strip()


def test_a_rename_is_one_change(root: Path) -> None:
    git(root, "mv", "content/a.md", "content/ä b.md")
    commit(root)
    assert commits(root)[0].changes == (FileChange("R", "content/ä b.md", "content/a.md"),)


def test_a_file_that_a_merge_changed_and_one_side_had_renamed(root: Path) -> None:
    git(root, "checkout", "-qb", "side")
    git(root, "mv", "content/a.md", "content/c.md")
    commit(root)
    git(root, "checkout", "-q", "main")
    write(root, {"content/a.md": "ONE\ntwo\nthree\nfour\n"})
    commit(root)
    git(root, "merge", "-q", "--no-commit", "side")
    write(root, {"content/c.md": "ONE\ntwo\nthree\nFOUR\n"})
    commit(root, "2024-02-02T00:00:00Z")
    assert commits(root)[0].changes == (FileChange("M", "content/c.md"),)
    assert read_times(root).timestamps("content/c.md", 0)[1] == "2024-02-02T00:00:00.000Z"


def test_a_commit_comes_before_all_that_it_was_made_from(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "other")
    write(root, {"content/b.md": "other\n"})
    commit(root)
    git(root, "checkout", "-q", "main")
    write(root, {"content/a.md": "main\n"})
    commit(root)
    git(root, "merge", "-q", "-m", "both", "other")
    found = commits(root)
    place = {commit.id: at for at, commit in enumerate(found)}
    assert len(found) == 4
    assert all(place[parent] > place[one.id] for one in found for parent in one.parents)


def test_only_what_is_new_is_asked_of_git(root: Path, tmp_path: Path) -> None:
    before = commits(root, tmp_path)
    write(root, {"content/a.md": "new\n"})
    commit(root)
    after = commits(root, tmp_path)
    assert after[1:] == before
    assert len((tmp_path / "commits.jsonl").read_text().splitlines()) == 1 + len(after)


@pytest.mark.parametrize("damage", ["", "{}", '["a"]\n', '{"version": 1, "shallow": ""}\n["x", ', "\0\0\0"])
def test_a_damaged_file_is_made_anew(root: Path, tmp_path: Path, damage: str) -> None:
    wanted = commits(root, tmp_path)
    (tmp_path / "commits.jsonl").write_text(damage)
    assert commits(root, tmp_path) == wanted == commits(root, tmp_path)


def test_two_logs_of_one_file_know_the_same(root: Path, tmp_path: Path) -> None:
    one, other = CommitLog(root, tmp_path), CommitLog(root, tmp_path)
    for text in ("2", "3", "4"):
        write(root, {"content/a.md": text})
        commit(root)
        one.update(head_commit(root))
        one, other = other, one
    other.update(head_commit(root))
    one.update(head_commit(root))
    assert one.commits == other.commits


def test_a_history_that_is_cut_off_later_is_read_anew(root: Path, tmp_path: Path) -> None:
    write(root, {"content/a.md": "new\n"})
    commit(root)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root.parent}", str(clone))
    assert len(commits(clone / "site", tmp_path)) == 1
    git(clone, "fetch", "-q", "--unshallow")
    assert len(commits(clone / "site", tmp_path)) == 2


def test_times_are_the_same_whether_read_at_once_or_commit_by_commit(root: Path, tmp_path: Path) -> None:
    known = CommitTimes()
    for number, name in enumerate("abcab"):
        write(root, {f"content/{name}.md": f"text {number}"})
        if number == 3:
            git(root, "mv", "content/c.md", "content/d.md")
        commit(root)
        known = read_times(root, before=known)
    assert known == read_times(root) == read_times(root, tmp_path) == read_times(root, tmp_path)


def test_a_file_that_git_takes_for_a_renamed_one_is_as_old_as_that(root: Path, tmp_path: Path) -> None:
    known = read_times(root)
    first = known.times["content/a.md"][0]
    steps = (("a", "b2"), ("b2", "c2"), ("c2", "a"), ("a", "d"))
    for hour, (old, new) in enumerate(steps):
        git(root, "mv", f"content/{old}.md", f"content/{new}.md")
        commit(root, at=f"2024-03-01T0{hour}:00:00Z")
        known = read_times(root, before=known)
        assert known.times[f"content/{new}.md"] == (first, known.times[f"content/{old}.md"][1])
    assert known == read_times(root)
    # If a renamed file is not similar enough, its history begins with the rename.
    write(root, {"content/e.md": "one\ntwo\nother\nlines\n"})
    git(root, "rm", "-q", "content/d.md")
    commit(root, at="2024-04-01T00:00:00Z")
    assert read_times(root, before=known).times["content/e.md"][0] > first


# --- names and times ---------------------------------------------------------------------------------


def test_a_name_is_a_branch_a_tag_or_an_id(root: Path) -> None:
    first = head_commit(root)
    git(root, "tag", "-a", "v1", "-m", "first")
    git(root, "branch", "feature/new")
    write(root, {"content/a.md": "new\n"})
    commit(root)
    assert {
        find_commit(root, name) for name in ("v1", "feature/new", "main~1", "HEAD^", first, first[:8])
    } == {first}
    assert find_commit(root, "main") == head_commit(root) != first


@pytest.mark.parametrize(
    "name",
    [
        "",
        "--all",
        "-h",
        "nothing",
        "main..v1",
        "main@{1}",
        ":/first",
        "a b",
        "a\nb",
        "a\0b",
        "x" * 300,
        "main:content",
    ],
)
def test_what_is_no_name_of_a_commit_means_none(root: Path, name: str) -> None:
    assert find_commit(root, name) == ""


def test_a_time_means_the_last_commit_by_then(root: Path) -> None:
    made = {}
    for day in ("2031-05-01T10:00:00Z", "2031-05-02T10:00:00Z"):
        write(root, {"content/a.md": day})
        commit(root, at=day)
        made[day[:10]] = head_commit(root)
    log = CommitLog(root, None)
    wanted = {
        "2031-05-01": made["2031-05-01"],
        "2031-05-02T09:59Z": made["2031-05-01"],
        "2031-05-02T12:30+02:00": made["2031-05-02"],
        "2031-05-02T11:30:00+02:00": made["2031-05-01"],
        "2090-01-01": made["2031-05-02"],
        "1999-12-31": "",
    }
    for text, id_ in wanted.items():
        time = parse_time(text)
        assert time is not None
        assert commit_at(log, head_commit(root), time) == id_, text


@pytest.mark.parametrize(
    "text", ["", "main", "2026", "2026-13-01", "2026-02-30", "2026-01-01T25:00Z", "0000-01-01"]
)
def test_what_is_no_time(text: str) -> None:
    assert parse_time(text) is None


# --- files -------------------------------------------------------------------------------------------


def test_the_files_of_a_commit_are_those_of_the_site_alone(root: Path) -> None:
    wanted = {"content/a.md": b"one\ntwo\nthree\nfour\n", "content/b.md": b"b\n"}
    write(root, {"content/a.md": "later\n"})
    tree = read_tree(root, head_commit(root))
    texts = read_blobs(root, [blob.id for blob in tree.values()])
    assert dict(zip(tree, texts, strict=True)) == wanted
    assert {path: blob.size for path, blob in tree.items()} == {path: len(b) for path, b in wanted.items()}


def test_links_stand_for_what_they_lead_to_in_the_site(root: Path) -> None:
    (root / "content/link.md").symlink_to("a.md")
    (root / "content/twice.md").symlink_to("link.md")
    (root / "more").symlink_to("content")
    (root / "content/out.md").symlink_to("../../README.md")
    (root / "content/nothing.md").symlink_to("gone.md")
    (root / "content/circle.md").symlink_to("circle.md")
    commit(root)
    tree = read_tree(root, head_commit(root))
    assert sorted(tree) == [
        "content/a.md",
        "content/b.md",
        "content/link.md",
        "content/twice.md",
        "more/a.md",
        "more/b.md",
    ]
    assert tree["content/twice.md"] == tree["content/a.md"] == tree["more/a.md"]


def test_a_blob_that_is_not_there_is_none(root: Path) -> None:
    there = read_tree(root, head_commit(root))["content/b.md"].id
    assert list(read_blobs(root, ["0" * 40, there, "f" * 40])) == [None, b"b\n", None]


def test_a_folder_that_is_no_repository_has_no_commits(tmp_path: Path) -> None:
    assert head_commit(tmp_path) == find_commit(tmp_path, "main") == ""
    with pytest.raises(GitError, match="not a git repository"):  # not an empty result
        read_tree(tmp_path, "HEAD")


def test_files_are_read_by_name_few_at_a_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_module, "BATCH_BYTES", 5)
    sizes = zip("efghi", (3, 9, 4, 1, 1), strict=True)
    texts = {f"content/{letter}.md": letter * size for letter, size in sizes}
    write(root, texts)
    commit(root)
    names = [f"HEAD:./{path}" for path in (*texts, "content/none.md", "content")]
    read = list(read_named(root, names, 8))
    assert read == [b"eee", None, b"gggg", b"h", b"i", None, None]
    assert not list(read_named(root, [], 8))
