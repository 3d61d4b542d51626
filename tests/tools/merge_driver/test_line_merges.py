"""Tests that the driver merges a file exactly as git would if it can't be merged as a document."""

import shutil
from pathlib import Path

import pytest

from tests.sites import Files
from tests.tools.merge_driver.repository import BASE, PATH, SITE, create, diverge, run_git, save

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

BROKEN = BASE.replace("number: 1", "number: [")
SCHEMA = "content-types/note.json"
CASES: dict[str, tuple[Files, Files, Files]] = {
    "not YAML": ({PATH: BASE}, {PATH: BROKEN}, {PATH: BASE.replace("'One'", "Two")}),
    "base is not YAML": ({PATH: BROKEN}, {PATH: BASE}, {PATH: BROKEN.replace("'One'", "Two")}),
    "ours is empty": ({PATH: BASE}, {PATH: ""}, {PATH: BASE.replace("'One'", "Two")}),
    "not UTF-8": (
        {PATH: BASE.encode("utf-16")},
        {PATH: BASE.replace("1", "2").encode("latin-1") + b"\xe9"},
        {PATH: BASE.replace("1", "3").encode("utf-16")},
    ),
    "binary": ({PATH: b"\0a\n"}, {PATH: b"\0b\n"}, {PATH: b"\0c\n"}),
    "no content type": (
        {"content/other/x.md": BASE},
        {"content/other/x.md": BASE.replace("'One'", "Two")},
        {"content/other/x.md": BASE.replace("'One'", "Three").replace("Third", "3")},
    ),
    "no schema": (
        {SCHEMA: "<<<<<<< a\n=======\n>>>>>>> b\n", PATH: BASE},
        {PATH: BASE.replace("'One'", "Two")},
        {PATH: BASE.replace("Short", "Long").replace("Third", "3")},
    ),
    "two documents": (
        {PATH: BASE},
        {PATH: BASE.replace("number: 1", "documentId: a")},
        {PATH: BASE.replace("number: 1", "documentId: b").replace("Third", "3")},
    ),
    "markers in the base": (
        {PATH: BASE + "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n"},
        {PATH: BASE + "1\n"},
        {PATH: BASE + "2\n"},
    ),
}


def merged(folder: Path, path: str, *, driver: bool) -> tuple[bytes, str]:
    """Merge the branch `next`, and return the file and the state of the index."""
    if not driver:
        save(folder, {".gitattributes": ""})
        for name in ("bifolio", "bifolio-base"):
            run_git(folder, "config", "--remove-section", f"merge.{name}")
    run_git(folder, "merge", "-q", "next", status=None)
    return (folder / path).read_bytes(), run_git(folder, "ls-files", "-u", path)


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_that_of_git(tmp_path: Path, name: str) -> None:
    base, ours, theirs = CASES[name]
    results = []
    for driver in (True, False):
        folder = tmp_path / str(driver)
        create(folder, SITE)
        save(folder, base)
        diverge(folder, ours, theirs)
        results.append(merged(folder, next(iter(ours)), driver=driver))
    with_driver, without = (
        (data.replace(b" HEAD\n", b" ours\n").replace(b" next\n", b" theirs\n"), index)
        for data, index in results
    )
    assert with_driver == without


@pytest.mark.parametrize("command", ["/nowhere/bifolio", "false", "sh -c 'kill -9 $$'"])
def test_without_bifolio_lines_are_merged(tmp_path: Path, command: str) -> None:
    create(tmp_path, {**SITE, PATH: BASE})
    driver = run_git(tmp_path, "config", "merge.bifolio.driver").strip()
    run_git(tmp_path, "config", "merge.bifolio.driver", f"{command} {driver[driver.index('-- ') :]}")
    diverge(tmp_path, {PATH: BASE.replace("'One'", "Two")}, {PATH: BASE.replace("Third", "3")})
    run_git(tmp_path, "merge", "-q", "next")
    assert (tmp_path / PATH).read_text() == BASE.replace("'One'", "Two").replace("Third", "3")


def test_without_bifolio_a_conflict_has_markers(tmp_path: Path) -> None:
    create(tmp_path, {**SITE, PATH: BASE})
    driver = run_git(tmp_path, "config", "merge.bifolio.driver").strip()
    run_git(tmp_path, "config", "merge.bifolio.driver", f"/nowhere {driver[driver.index('-- ') :]}")
    diverge(tmp_path, {PATH: BASE.replace("'One'", "Two")}, {PATH: BASE.replace("'One'", "Three")})
    run_git(tmp_path, "merge", "-q", "next", status=1)
    text = (tmp_path / PATH).read_text()
    assert "<<<<<<< ours\ntitle: Two\n=======\ntitle: Three\n>>>>>>> theirs\n" in text
