"""Tests of the git history that `python -m bench history` measures."""

import shutil
from pathlib import Path

import pytest

from bench.history import AUTHORS, BRANCH, make_history
from bench.sites import article_path, git, make_site

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


def test_a_history_is_of_so_many_commits_by_all_authors_and_checked_out(tmp_path: Path) -> None:
    make_site(tmp_path, 30)
    ids = make_history(tmp_path, 30, 40)
    assert len(set(ids)) == 40
    assert git(tmp_path, "rev-parse", "HEAD").strip() == ids[-1]
    assert git(tmp_path, "rev-parse", BRANCH).strip() in ids
    assert git(tmp_path, "status", "--short") == ""
    authors = git(tmp_path, "log", "-40", "--format=%an").split()
    assert {authors.count(name) for name in AUTHORS} == {8}


def test_every_tenth_commit_changes_the_first_article(tmp_path: Path) -> None:
    make_site(tmp_path, 30)
    ids = make_history(tmp_path, 30, 40)
    changing = git(tmp_path, "log", "--format=%H", f"{ids[0]}~..HEAD", "--", article_path(0)).split()
    assert {ids[0], ids[10], ids[20], ids[30]} <= set(changing)
    assert git(tmp_path, "log", "-1", "--format=", "--name-only").split() == [
        article_path(78 % 30),
        article_path(79 % 30),
    ]
    text = (tmp_path / article_path(79 % 30)).read_text()
    assert "\ntitle: Title 39\n" in text
    assert "\n---\n" in text
