"""A full disk: no write is lost, the error is reported, and pushing and fetching resume once there is space.

The disk is not really full: a git hook or remote helper fails with the message that git prints on a full
disk.
"""

import shutil
from pathlib import Path

import pytest

from server.history.past import PastStates
from server.history.remote.following import Follower
from server.history.remote.push_after_serving import PushCommits
from server.jobs.job import Timing
from tests.git import git
from tests.history.remote.machines import at_remote, head, hook, machines

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
FULL = "echo 'fatal: unable to write loose object file: No space left on device' >&2; exit 1"


def test_a_write_with_push_before_can_be_retried(tmp_path: Path) -> None:
    with machines(tmp_path, "a") as made:
        api, tip = made["a"], made.tip
        hook(api.root / ".git", "pre-commit", FULL)
        answer = api.put("/api/notes/one", {"title": "Uno"})
        assert answer.status == 503
        assert "No space left on device" in answer.error["message"]
        assert answer.headers["Retry-After"]
        assert made.tip == head(api.root) == tip
        (api.root / ".git/hooks/pre-commit").unlink()
        assert api.put("/api/notes/one", {"title": "Uno"}).status == 200
        assert made.tip == head(api.root)


def test_a_confirmed_write_is_committed_and_pushed_when_the_disk_has_room(tmp_path: Path) -> None:
    with machines(tmp_path, "a", push="after") as made:
        api = made["a"]
        hook(api.root / ".git", "pre-commit", FULL)
        assert api.put("/api/notes/one", {"title": "Uno"}).headers["Bifolio-Commit"] == "pending"
        (api.root / ".git/hooks/pre-commit").unlink()
        # As if half a second had passed; unlike after a rejection, the pause is short.
        api.site.committer.commit_due()
        PushCommits(PastStates(api.site), Timing()).push_due()
        assert "title: Uno" in at_remote(made, "content/notes/one.md")
        assert git(api.root, "status", "--porcelain") == ""


def test_a_full_disk_is_not_reported_as_an_unavailable_remote(tmp_path: Path) -> None:
    with machines(tmp_path, "a", push="off, follow: 1s") as made:
        api = made["a"]
        url = git(api.root, "remote", "get-url", "origin").strip()
        git(api.root, "remote", "set-url", "origin", "ssh://nobody@localhost/x")
        git(api.root, "config", "core.sshCommand", f'sh -c "{FULL}"')
        follower = Follower(PastStates(api.site), Timing())
        standing = follower.fetch_and_merge(api.site.state.settings)
        assert standing.state == "away"
        assert "because the disk is full" in standing.reason
        git(api.root, "remote", "set-url", "origin", url)
        assert follower.fetch_and_merge(api.site.state.settings).state == "current"
