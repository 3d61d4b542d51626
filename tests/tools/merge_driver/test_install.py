"""Tests for `bifolio merge-driver install` and `uninstall`, and for the note of `bifolio check`."""

import shutil
from pathlib import Path

import pytest

from tests.sites import collection, write
from tests.tools.merge_driver.repository import BASE, PATH, SITE, bifolio, run_git, save

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

NOTE = "is not installed in this clone"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run_git(tmp_path, "init", "-qb", "main")
    write(tmp_path, {**SITE, PATH: BASE})
    return tmp_path


def attributes(folder: Path) -> bytes:
    return (folder / ".gitattributes").read_bytes()


def driver_of(folder: Path, path: str) -> str:
    return run_git(folder, "check-attr", "merge", "--", path).rpartition(": ")[2].strip()


def test_documents_get_the_driver_and_other_files_do_not(folder: Path) -> None:
    assert ".gitattributes: 7 patterns\ngit config: merge.bifolio\n" in bifolio(
        folder, "merge-driver", "install"
    )
    assert {driver_of(folder, path) for path in (PATH, "content/a.json")} == {"bifolio"}
    assert {driver_of(folder, path) for path in ("README.md", "content/a.png")} == {"unspecified"}
    assert run_git(folder, "config", "merge.bifolio.recursive") == "bifolio-base\n"
    assert run_git(folder, "config", "--global", "--list", status=None) == ""


def test_installing_twice_changes_nothing(folder: Path) -> None:
    bifolio(folder, "merge-driver", "install")
    before = attributes(folder), (folder / ".git/config").read_bytes()
    assert "unchanged\ngit config: unchanged\n" in bifolio(folder, "merge-driver", "install")
    assert (attributes(folder), (folder / ".git/config").read_bytes()) == before


@pytest.mark.parametrize(
    "lines", [b"*.png binary", b"*.png binary\n", b"*.png binary\r\n*.md text\r\n", b"\xff x\n"]
)
def test_other_lines_are_kept(folder: Path, lines: bytes) -> None:
    (folder / ".gitattributes").write_bytes(lines)
    bifolio(folder, "merge-driver", "install")
    assert attributes(folder).startswith(lines)
    assert driver_of(folder, PATH) == "bifolio"
    assert driver_of(folder, "x.png") in ("unset", "unspecified")
    with (folder / ".gitattributes").open("ab") as file:
        file.write(b"*.svg -text\n")
    bifolio(folder, "merge-driver", "install")
    bifolio(folder, "merge-driver", "uninstall")
    assert (
        attributes(folder).rstrip()
        == lines.rstrip() + (b"\r\n" if b"\r" in lines else b"\n") + b"*.svg -text"
    )


def test_uninstall_removes_everything(folder: Path) -> None:
    before = (folder / ".git/config").read_bytes()
    bifolio(folder, "merge-driver", "install")
    bifolio(folder, "merge-driver", "uninstall")
    assert not (folder / ".gitattributes").exists()
    assert (folder / ".git/config").read_bytes() == before
    assert "unchanged\ngit config: unchanged\n" in bifolio(folder, "merge-driver", "uninstall")


def test_folders_of_options_files_get_the_driver(folder: Path) -> None:
    files = ["src/my pages [x]/{name}.md", "data/*odd/{name}.yaml"]
    write(folder, collection("page", {"title": "string"}, files=files))
    bifolio(folder, "merge-driver", "install")
    assert driver_of(folder, "src/my pages [x]/a.md") == "bifolio"
    assert driver_of(folder, "data/*odd/a.yaml") == "bifolio"
    assert driver_of(folder, "data/even/a.yaml") == "unspecified"


def test_the_driver_stays_while_another_site_uses_it(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q")
    for site in ("one", "two"):
        write(tmp_path / site, SITE)
        bifolio(tmp_path, "merge-driver", "install", site)
    save(tmp_path, {})
    assert "git config: unchanged" in bifolio(tmp_path, "merge-driver", "uninstall", "one")
    save(tmp_path, {})
    assert driver_of(tmp_path, "one/content/a.md") == "unspecified"
    assert run_git(tmp_path, "config", "merge.bifolio.driver") != ""
    assert "git config: merge.bifolio removed" in bifolio(tmp_path, "merge-driver", "uninstall", "two")


def test_a_folder_without_git_is_refused(tmp_path: Path) -> None:
    write(tmp_path, SITE)
    done = bifolio(tmp_path, "merge-driver", "install", status=1)
    assert "the folder is not in a git repository. Create one with `git init`." in done
    assert not (tmp_path / ".gitattributes").exists()


def test_check_reports_a_clone_without_the_driver(folder: Path) -> None:
    bifolio(folder, "merge-driver", "install")
    save(folder, {})
    assert NOTE not in bifolio(folder, "check")
    clone = folder.with_name(f"{folder.name}-clone")
    run_git(folder, "clone", "-q", str(folder), str(clone))
    assert NOTE in bifolio(clone, "check", "--strict")
    bifolio(clone, "merge-driver", "install")
    assert NOTE not in bifolio(clone, "check")
