"""Tests for the steps in docs/migrate.md that merge a branch from before a migration with git."""

import shutil
from pathlib import Path

import pytest

from tests.sites import STRING, collection, write
from tests.tools.merge_driver.repository import bifolio, run_git, save

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

NAMES = ("title", "summary", "a", "b", "number")
SITE = {
    "site.yaml": "search: {index: false}\n",
    ".gitignore": ".bifolio/\nnames.py\n",
    **collection("note", dict.fromkeys(NAMES, STRING)),
    "names.py": (
        "ATTRIBUTES = {'first': {'type': 'string'}, 'last': {'type': 'string'}}\n"
        "def split(value):\n    return dict(zip(ATTRIBUTES, value.split(), strict=True))\n"
    ),
    "content/notes/two.yaml": "title: Two\n",
}
PATH = "content/notes/one.yaml"
BASE = "summary: Short text\na: A\nb: B\nnumber: '1'\ntitle: One\n"
RENAME = ("rename", "note.summary", "teaser")
SPLIT = ("split", "note.summary", "--with", "names.py")
RENAMED = "teaser: Long text\na: A\nb: B\nnumber: '2'\ntitle: One\n"


@pytest.fixture(params=[False, True], ids=["git", "driver"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Create a repository whose branch `next` lacks a change on main. With and without the merge driver."""
    run_git(tmp_path, "init", "-qb", "main")
    write(tmp_path, SITE)
    if request.param:
        bifolio(tmp_path, "merge-driver", "install")
    save(tmp_path, {PATH: BASE})
    run_git(tmp_path, "branch", "next")
    save(tmp_path, {"content/notes/two.yaml": "title: Second\n"})
    return tmp_path


def diverge(folder: Path, migration: tuple[str, ...]) -> None:
    """Migrate main and edit the document on both branches. Tag the migration's commit."""
    bifolio(folder, "migrate", *migration, "--write")
    save(folder, {})
    run_git(folder, "tag", "migration")
    save(folder, {PATH: (folder / PATH).read_text().replace("'1'", "'2'")})
    run_git(folder, "checkout", "-q", "next")
    new = "summary: From next\n"
    save(folder, {PATH: BASE.replace("Short", "Long"), "content/notes/new.yaml": new})


def merge_into_main(folder: Path) -> None:
    run_git(folder, "checkout", "-q", "main")
    run_git(folder, "merge", "-q", "next")
    assert "no problems" in bifolio(folder, "check")
    assert (folder / "content/notes/two.yaml").read_text() == "title: Second\n"


def test_git_alone_reports_a_conflict(folder: Path) -> None:
    diverge(folder, RENAME)
    run_git(folder, "checkout", "-q", "main")
    run_git(folder, "merge", "-q", "next", status=1)
    assert "<<<<<<<" in (folder / PATH).read_text()


@pytest.mark.parametrize("migration", [RENAME, SPLIT], ids=["rename", "split"])
def test_a_branch_is_brought_along_with_apply(folder: Path, migration: tuple[str, ...]) -> None:
    diverge(folder, migration)
    run_git(folder, "merge", "-q", "migration^")
    run_git(folder, "merge", "-q", "-s", "ours", "--no-commit", "migration")
    run_git(folder, "checkout", "-q", "migration", "--", "migrations", "content-types", "site.yaml")
    bifolio(folder, "migrate", "apply", "--scripts", "--write")
    save(folder, {})
    merge_into_main(folder)
    split = "a: A\nb: B\nnumber: '2'\ntitle: One\nfirst: Long\nlast: text\n"
    assert (folder / PATH).read_text() == (RENAMED if migration == RENAME else split)
    new = "teaser: From next\n" if migration == RENAME else "first: From\nlast: next\n"
    assert (folder / "content/notes/new.yaml").read_text() == new


def test_a_branch_with_its_own_schemas_is_brought_along_with_the_same_command(folder: Path) -> None:
    diverge(folder, RENAME)
    save(folder, collection("tag", {"name": STRING}))
    run_git(folder, "merge", "-q", "migration^")
    run_git(folder, "merge", "-q", "-s", "ours", "--no-commit", "migration")
    bifolio(folder, "migrate", *RENAME, "--write")
    save(folder, {})
    merge_into_main(folder)
    assert (folder / PATH).read_text() == RENAMED
    assert (folder / "content-types/tag.json").is_file()
    assert [path.name for path in (folder / "migrations").iterdir()] == ["0001-rename-teaser.yaml"]
