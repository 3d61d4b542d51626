"""Machines with `git.push: before`: after the remote accepts a commit, the commit is integrated even if local
files change.
"""

import shutil
from pathlib import Path

import pytest

from tests.git import git
from tests.history.remote.machines import Machines, at_remote, head, hook
from tests.sites import Answer
from tests.waiting import until

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

NOTE = "content/notes/one.md"


def edit(root: Path, before: str, after: str) -> None:
    """Replace some text in the note in place, as an editor does."""
    text = (root / NOTE).read_text()
    assert before in text
    (root / NOTE).write_text(text.replace(before, after))


def edited_when_pushed(two: Machines, before: str, after: str) -> None:
    """Edit the note on "a" by hand as soon as the remote has accepted the current write."""
    hook(two.bare, "post-receive", f"sed -i 's/{before}/{after}/' {two['a'].root / NOTE}")


def change(two: Machines, **values: object) -> Answer:
    return two["a"].put("/api/notes/one", values, "full")


def test_an_edit_included_in_a_write_can_continue(two: Machines) -> None:
    a = two["a"]
    edit(a.root, "summary: Short", "summary: First")
    edited_when_pushed(two, "summary: First", "summary: Second")
    answer = change(two, title="Uno")
    assert answer.status == 200, answer.raw
    assert (answer.headers["Bifolio-Commit"], head(a.root)) == (two.tip, two.tip)
    assert "summary: First" in at_remote(two, NOTE)
    assert "title: Uno" in (a.root / NOTE).read_text()
    assert "summary: Second" in (a.root / NOTE).read_text()
    assert git(a.root, "status", "--short") == f" M {NOTE}\n"


def test_a_write_waits_for_git(two: Machines) -> None:
    a = two["a"]
    path = a.root / ".git/index.lock"
    hook(two.bare, "post-receive", f"touch {path}; (sleep 3; rm {path}) > /dev/null 2>&1 &")
    answer = change(two, title="Uno")
    assert answer.status == 200, answer.raw
    assert answer.data["title"] == "Uno"
    assert (head(a.root), git(a.root, "status", "--short")) == (two.tip, "")


def test_a_conflicting_local_edit_is_reported(two: Machines) -> None:
    a = two["a"]
    edited_when_pushed(two, "title: One", "title: By hand")
    answer = change(two, title="Uno")
    assert answer.status == 409
    assert "because it conflicts with uncommitted changes" in answer.error["message"]
    assert "title: Uno" in at_remote(two, NOTE)
    assert "title: By hand" in (a.root / NOTE).read_text()


def test_a_write_blocked_by_git_is_reported_as_not_served_yet(
    two: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.history.remote.pushed_write.WRITE_TIMEOUT_S", 4.0)
    monkeypatch.setattr("server.history.remote.push_before_serving.MIN_TIMEOUT_S", 0.5)
    a = two["a"]
    lock = a.root / ".git/index.lock"
    hook(two.bare, "post-receive", f"touch {lock}")
    answer = change(two, title="Uno")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert answer.error["message"] == "The change was pushed to the git remote, but is not served here yet"
    lock.unlink()
    (two.bare / "hooks/post-receive").unlink()
    # On a busy test machine, a write may take longer than WRITE_TIMEOUT_S.
    until(lambda: change(two, summary="Long").status == 200)
    assert "title: Uno" in (a.root / NOTE).read_text()
