"""Tests of the merge driver with real git commands: merge, rebase, cherry-pick, revert and stash."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from server.formats.tree import SyntaxProblem
from server.storage.read import parse
from tests.sites import Files
from tests.tools.merge_driver.repository import BASE, PATH, SITE, bifolio, create, diverge, run_git, save

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

OURS = BASE.replace("'One'", "'Ours'").replace("2024-01-01", "2024-02-02").replace("First", "First!")
THEIRS = BASE.replace("Short", "Long").replace("2024-01-01", "2024-03-03").replace("Third", "Third!")
MERGED = OURS.replace("Short", "Long").replace("Third", "Third!")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    create(tmp_path / "a", {**SITE, PATH: BASE})
    return tmp_path / "a"


def text(folder: Path, path: str = PATH) -> str:
    return (folder / path).read_bytes().decode()


def without_time(text: str) -> str:
    return re.sub("updatedAt: .*", "updatedAt: T", text)


def merge(folder: Path) -> None:
    diverge(folder, {PATH: OURS}, {PATH: THEIRS})
    run_git(folder, "merge", "-q", "next")


def rebase(folder: Path) -> None:
    diverge(folder, {PATH: THEIRS}, {PATH: OURS})
    run_git(folder, "rebase", "-q", "next")


def cherry_pick(folder: Path) -> None:
    diverge(folder, {PATH: OURS}, {PATH: THEIRS})
    run_git(folder, "cherry-pick", "next")


def revert(folder: Path) -> None:
    wrong = save(folder, {PATH: BASE.replace("Short", "Wrong").replace("Third", "Wrong")})
    after = OURS.replace("Short", "Wrong").replace("Third", "Wrong")
    save(folder, {PATH: after})
    run_git(folder, "revert", "--no-edit", wrong)


def stash_pop(folder: Path) -> None:
    (folder / PATH).write_bytes(THEIRS.encode())
    run_git(folder, "stash")
    save(folder, {PATH: OURS})
    run_git(folder, "stash", "pop")


@pytest.mark.parametrize("command", [merge, rebase, cherry_pick, stash_pop])
def test_changes_of_neighbouring_attributes_are_merged(folder: Path, command: Callable[[Path], None]) -> None:
    command(folder)
    assert without_time(text(folder)) == without_time(MERGED)
    assert run_git(folder, "diff", "--name-only", "--diff-filter=U") == ""


def test_a_commit_is_reverted_although_a_neighbouring_attribute_was_changed(folder: Path) -> None:
    revert(folder)
    assert without_time(text(folder)) == without_time(OURS)


def conflict(folder: Path, ours: str, theirs: str, *options: str) -> str:
    """Merge two versions in conflict. Return the file with markers."""
    diverge(folder, {PATH: ours}, {PATH: theirs})
    run_git(folder, *options, "merge", "-q", "next", status=1)
    return text(folder)


def test_only_the_attribute_in_conflict_is_between_markers(folder: Path) -> None:
    marked = conflict(folder, OURS, THEIRS.replace("'One'", "'Theirs'"))
    between = "<<<<<<< ours\ntitle: 'Ours'\n=======\ntitle: 'Theirs'\n>>>>>>> theirs\n"
    assert re.sub("(ours|theirs|HEAD|next)$", "", between, flags=re.M) in re.sub(
        "(?<=[<>] )(ours|theirs|HEAD|next)$", "", marked, flags=re.M
    )
    assert marked.count("<<<<<<< ") == 1
    assert "summary: Long  # kept" in marked
    assert "First!\n\nSecond\n\nThird!" in marked
    assert run_git(folder, "ls-files", "-u").count(PATH) == 3
    with pytest.raises(SyntaxProblem, match="unresolved merge conflict"):
        parse(PATH, marked, "body")
    assert "unresolved merge conflict" in bifolio(folder, "check", status=1)


def test_only_the_lines_of_a_text_in_conflict_are_between_markers(folder: Path) -> None:
    ours = OURS.replace("Second", "Ours")
    marked = conflict(folder, ours, THEIRS.replace("Second", "Theirs"))
    assert re.search("\nFirst!\n\n<<<<<<< .*\nOurs\n=======\nTheirs\n>>>>>>> .*\n\nThird!\n$", marked)
    assert "'Ours'\nsummary: Long" in marked


@pytest.mark.parametrize("style", ["diff3", "zdiff3"])
def test_the_conflict_style_of_git_shows_the_base(folder: Path, style: str) -> None:
    run_git(folder, "config", "merge.conflictStyle", style)
    marked = conflict(
        folder, OURS.replace("Second", "Ours"), THEIRS.replace("'One'", "2").replace("Second", "T")
    )
    assert re.search(r"\n\|{7} .*\ntitle: 'One'\n=======\ntitle: 2|\ntitle: '2'\n", marked)
    assert re.search(r"\nOurs\n\|{7} .*\nSecond\n=======\nT\n", marked)


def test_the_size_of_the_markers_is_an_attribute_of_git(folder: Path) -> None:
    save(folder, {".gitattributes": text(folder, ".gitattributes") + "*.md conflict-marker-size=12\n"})
    marked = conflict(folder, OURS, THEIRS.replace("'One'", "'Theirs'"))
    assert re.search("^<{12} .*\ntitle: 'Ours'\n={12}\ntitle: 'Theirs'\n>{12} .*$", marked, re.M)
    assert "unresolved merge conflict" in bifolio(folder, "check", status=1)


def test_markers_can_be_short(folder: Path) -> None:
    save(folder, {".gitattributes": text(folder, ".gitattributes") + "*.md conflict-marker-size=3\n"})
    marked = conflict(folder, OURS, THEIRS.replace("'One'", "'Theirs'"))
    assert re.search("^<{3} .*\ntitle: 'Ours'\n={3}\ntitle: 'Theirs'\n>{3} .*\nsummary: Long", marked, re.M)
    assert marked.count("<<<") == 1


def test_a_key_that_is_not_an_attribute_is_merged_too(folder: Path) -> None:
    base = BASE.replace("number: 1\n", "number: 1\nmood: calm\nsky: grey\n")
    save(folder, {PATH: base})
    diverge(folder, {PATH: base.replace("calm", "wild")}, {PATH: base.replace("grey", "blue")})
    run_git(folder, "merge", "-q", "next")
    assert "mood: wild\nsky: blue\n" in text(folder)


def test_a_key_that_is_not_an_attribute_can_be_in_conflict(folder: Path) -> None:
    base = BASE.replace("number: 1\n", "number: 1\nmood: calm\n")
    save(folder, {PATH: base})
    marked = conflict(
        folder, base.replace("calm", "wild"), base.replace("calm", "merry").replace("One", "Two")
    )
    assert re.search(
        "title: 'Two'\n(.*\n)*<<<<<<< .*\nmood: wild\n=======\nmood: merry\n>>>>>>> .*\n", marked
    )


def test_comments_of_both_sides_are_kept(folder: Path) -> None:
    ours = OURS.replace("---\n#", "---\n# Ours\n#")
    theirs = THEIRS.replace("tags:", "# Theirs\ntags:").replace("'One'", "'Theirs'")
    marked = conflict(folder, ours, theirs)
    assert marked.count("<<<<<<< ") == 1
    assert all(comment in marked for comment in ("# Ours", "# Theirs\ntags", "summary: Long  # kept"))


def test_a_comment_that_has_no_place_in_the_merge_is_a_conflict(folder: Path) -> None:
    ours, theirs = (BASE.replace("'One'", f"'Two'  # {side}") for side in ("mine", "other"))
    marked = conflict(folder, ours, theirs)
    assert "# mine" in marked
    assert "# other" in marked


CHANGED = {  # base, ours, theirs; the merged text
    "windows line ends": tuple(t.replace("\n", "\r\n") for t in (BASE, OURS, THEIRS, MERGED)),
    "byte order mark": tuple(f"\ufeff{t}" for t in (BASE, OURS, THEIRS, MERGED)),
    "no final newline": tuple(t.removesuffix("\n") for t in (BASE, OURS, THEIRS, MERGED)),
}


@pytest.mark.parametrize("name", CHANGED)
def test_bytes_around_the_text_are_kept(folder: Path, name: str) -> None:
    base, ours, theirs, merged = CHANGED[name]
    run_git(folder, "config", "core.autocrlf", "false")
    save(folder, {PATH: base})
    diverge(folder, {PATH: ours}, {PATH: theirs})
    run_git(folder, "merge", "-q", "next")
    assert without_time(text(folder).replace("\r", "")) == without_time(merged.replace("\r", ""))
    assert text(folder).count("\r") == merged.count("\r")


def test_git_converts_line_ends_after_the_merge(folder: Path) -> None:
    run_git(folder, "config", "core.autocrlf", "true")
    merge(folder)
    assert without_time(text(folder).replace("\r\n", "\n")) == without_time(MERGED)
    assert "\r\n" in text(folder)


def test_a_file_that_both_sides_added_is_merged(folder: Path) -> None:
    path = "content/notes/two.yaml"
    diverge(folder, {path: "title: Two\nnumber: 2\n"}, {path: "title: Two\nsummary: Short\n"})
    run_git(folder, "merge", "-q", "next")
    assert text(folder, path) == "title: Two\nnumber: 2\nsummary: Short\n"


def test_a_renamed_file_is_merged(folder: Path) -> None:
    new = "content/notes/odd name ü'$(x).md"
    run_git(folder, "checkout", "-qb", "next")
    run_git(folder, "mv", PATH, new)
    save(folder, {new: THEIRS})
    run_git(folder, "checkout", "-q", "main")
    save(folder, {PATH: OURS})
    run_git(folder, "merge", "-q", "next")
    assert without_time(text(folder, new)) == without_time(MERGED)


def test_a_changed_mode_is_kept(folder: Path) -> None:
    run_git(folder, "checkout", "-qb", "next")
    (folder / PATH).chmod(0o755)
    save(folder, {PATH: THEIRS})
    run_git(folder, "checkout", "-q", "main")
    save(folder, {PATH: OURS})
    run_git(folder, "merge", "-q", "next")
    assert without_time(text(folder)) == without_time(MERGED)
    assert run_git(folder, "ls-files", "-s", PATH).startswith("100755")


def criss_cross(folder: Path, ours: Files, theirs: Files, one: Files, two: Files) -> None:
    """Merge two branches into each other, with the results `one` and `two`, and check out the first."""
    diverge(folder, ours, theirs)
    run_git(folder, "branch", "old")
    for branch, other, files in (("main", "next", one), ("next", "old", two)):
        run_git(folder, "checkout", "-q", branch)
        run_git(folder, "merge", "-q", "--no-commit", "-s", "ours", other)
        save(folder, files)
    run_git(folder, "checkout", "-q", "main")


def test_branches_with_several_merge_bases_are_merged(folder: Path) -> None:
    both = BASE.replace("'One'", "'Ours'").replace("Short", "Long")
    criss_cross(
        folder,
        {PATH: BASE.replace("'One'", "'Ours'")},
        {PATH: BASE.replace("Short", "Long")},
        {PATH: both.replace("number: 1", "number: 2")},
        {PATH: both.replace("[sea]", "[sea, sky]")},
    )
    run_git(folder, "merge", "-q", "next")
    assert without_time(text(folder)) == without_time(
        both.replace("number: 1", "number: 2").replace("[sea]", "[sea, sky]")
    )


def test_a_conflict_between_merge_bases_leaves_no_markers(folder: Path) -> None:
    ours, theirs = (
        BASE.replace("'One'", "A").replace("Second", "A"),
        BASE.replace("'One'", "B").replace("Second", "B"),
    )
    criss_cross(
        folder,
        {PATH: ours},
        {PATH: theirs},
        {PATH: ours.replace("number: 1", "number: 2")},
        {PATH: ours.replace("[sea]", "[sea, sky]")},
    )
    run_git(folder, "merge", "-q", "next")
    assert without_time(text(folder)) == without_time(
        ours.replace("number: 1", "number: 2").replace("[sea]", "[sea, sky]")
    )


def test_different_choices_between_merge_bases_are_a_conflict(folder: Path) -> None:
    ours, theirs = (
        BASE.replace("'One'", "A").replace("Second", "A"),
        BASE.replace("'One'", "B").replace("Second", "B"),
    )
    criss_cross(
        folder, {PATH: ours}, {PATH: theirs}, {PATH: BASE}, {PATH: theirs.replace("number: 1", "number: 2")}
    )
    run_git(folder, "merge", "-q", "next", status=1)
    assert re.search("<<<<<<< .*\ntitle: 'One'\n=======\ntitle: '?B'?\n>>>>>>> ", text(folder))
    assert re.search("<<<<<<< .*\nSecond\n=======\nB\n>>>>>>> ", text(folder))


def test_a_site_in_a_folder_and_in_a_worktree(tmp_path: Path) -> None:
    site = "my site's [folder]"
    create(tmp_path / "a", {f"{site}/{path}": data for path, data in {**SITE, PATH: BASE}.items()}, site)
    diverge(tmp_path / "a", {f"{site}/{PATH}": OURS}, {f"{site}/{PATH}": THEIRS})
    run_git(tmp_path / "a", "worktree", "add", "-q", str(tmp_path / "b"), "next")
    run_git(tmp_path / "b" / site, "merge", "-q", "main")
    assert without_time(text(tmp_path / "b", f"{site}/{PATH}")) == without_time(MERGED)


def test_a_site_in_a_submodule(tmp_path: Path, folder: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    run_git(outer, "init", "-q")
    run_git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(folder), "site")
    run_git(outer / "site", "checkout", "-q", "-B", "main")
    assert "git config: merge.bifolio" in bifolio(outer / "site", "merge-driver", "install")
    merge(outer / "site")
    assert without_time(text(outer / "site")) == without_time(MERGED)
