"""Git hooks on a machine that pushes: a hook that rejects a commit or hangs must not cause a write to be
lost.
"""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.history.past import PastStates
from server.history.remote import pushing
from server.history.remote.backlog import backlog
from server.history.remote.push_after_serving import PushCommits
from server.jobs.job import Timing
from server.storage.git import command
from tests.git import git
from tests.history.remote.machines import Machines, at_remote, head, hook, machines
from tests.sites import Answer, Api

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
HANGS = "sleep 60"
SOON_S = 20.0  # much shorter than the hook takes


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the timeout for hooks."""
    monkeypatch.setattr(pushing, "PUSH_TIMEOUT_S", 1.0)
    monkeypatch.setattr(pushing, "BACKOFF_S", 0.0)
    monkeypatch.setattr(command, "OWNER_TIMEOUT_S", 1.0)


@pytest.fixture
def after(tmp_path: Path) -> Iterator[Machines]:
    with machines(tmp_path, "a", push="after") as made:
        yield made


@pytest.fixture
def before(tmp_path: Path) -> Iterator[Machines]:
    with machines(tmp_path, "a") as made:
        yield made


def change(api: Api, title: str) -> Answer:
    began = time.monotonic()
    answer = api.put("/api/notes/one", {"title": title})
    assert time.monotonic() - began < SOON_S
    return answer


def push(api: Api) -> str:
    """Push pending commits. Return why some of them could not be pushed."""
    began = time.monotonic()
    PushCommits(PastStates(api.site), Timing()).push_due()
    assert time.monotonic() - began < SOON_S
    return backlog(api.root, api.site.state.settings).error


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo 'Not on Sundays' >&2; exit 1", "The pre-push hook rejected this change: Not on Sundays"),
        (HANGS, "did not respond within 1 s"),
    ],
)
def test_a_hook_before_the_push_with_after(after: Machines, body: str, said: str) -> None:
    api, tip = after["a"], after.tip
    hook(api.root / ".git", "pre-push", body)
    assert change(api, "Uno").status == 200
    assert said in push(api)
    assert after.tip == tip
    assert change(api, "Due").status == 200
    (api.root / ".git/hooks/pre-push").unlink()
    assert push(api) == ""
    assert after.tip == head(api.root)
    assert "title: Due" in at_remote(after, "content/notes/one.md")


@pytest.mark.parametrize(("body", "status"), [("echo 'No' >&2; exit 1", 409), (HANGS, 503)])
def test_a_hook_before_the_push_with_before(before: Machines, body: str, status: int) -> None:
    api, tip = before["a"], before.tip
    hook(api.root / ".git", "pre-push", body)
    answer = change(api, "Uno")
    assert answer.status == status, answer.body
    assert (before.tip, head(api.root)) == (tip, tip)
    assert api.get("/api/notes/one").data["title"] == "One"
    (api.root / ".git/hooks/pre-push").unlink()
    assert change(api, "Due").status == 200
    assert before.tip == head(api.root)


@pytest.mark.parametrize("body", ["exit 1", HANGS])
def test_a_hook_after_the_commit_with_after(after: Machines, body: str) -> None:
    api = after["a"]
    hook(api.root / ".git", "post-commit", f"echo x >> .git/ran; {body}")
    assert change(api, "Uno").status == 200
    api.site.committer.commit_due()
    assert (api.root / ".git/ran").exists()
    assert git(api.root, "status", "--porcelain") == ""
    assert push(api) == ""
    (api.root / ".git/hooks/post-commit").unlink()
    assert change(api, "Due").status == 200
    assert push(api) == ""
    assert after.tip == head(api.root)
    assert len(git(after.bare, "rev-list", "main").split()) == 3


@pytest.mark.parametrize("body", ["echo 'Spelling first' >&2; exit 1", HANGS])
def test_a_hook_before_the_commit(after: Machines, tmp_path: Path, body: str) -> None:
    """With `push: after`, the write succeeds and is committed once the hook accepts it. With `before`, it
    fails with 409.
    """
    api, tip = after["a"], after.tip
    hook(api.root / ".git", "pre-commit", body)
    assert change(api, "Uno").headers["Bifolio-Commit"] == "pending"
    push(api)
    assert after.tip == tip
    (api.root / ".git/hooks/pre-commit").unlink()
    api.site.committer._refused.clear()  # as if half a minute had passed
    api.site.committer._rests_until = 0.0
    api.site.committer.commit_due()
    assert push(api) == ""
    assert "title: Uno" in at_remote(after, "content/notes/one.md")
    (tmp_path / "other").mkdir()
    with machines(tmp_path / "other", "a") as made:
        hook(made["a"].root / ".git", "pre-commit", body)
        assert change(made["a"], "Uno").status == 409
        assert made["a"].get("/api/notes/one").data["title"] == "One"


@pytest.mark.parametrize("body", ["exit 1", HANGS])
def test_a_hook_after_the_commit_with_before(before: Machines, body: str) -> None:
    api = before["a"]
    hook(api.root / ".git", "post-commit", body)
    assert change(api, "Uno").status == 200
    assert before.tip == head(api.root)
    assert len(git(before.bare, "rev-list", "main").split()) == 2
