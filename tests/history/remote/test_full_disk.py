"""A disk that is full: nothing is lost, it is said what is wrong, and all goes on by itself afterwards.

git says so through a hook, or the command that reaches the remote, as it does where the disk is full indeed.
"""

import shutil
from pathlib import Path

import pytest

from server.history.past import PastStates
from server.history.remote.background_push import Outgoing
from server.history.remote.following import Follower
from server.jobs.job import Timing
from tests.git import git
from tests.history.remote.machines import at_remote, head, hook, machines

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
FULL = "echo 'fatal: unable to write loose object file: No space left on device' >&2; exit 1"


def test_a_write_before_which_the_remote_is_asked_can_be_tried_again(tmp_path: Path) -> None:
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


def test_a_write_that_is_answered_is_committed_and_pushed_as_soon_as_there_is_room(tmp_path: Path) -> None:
    with machines(tmp_path, "a", push="after") as made:
        api = made["a"]
        hook(api.root / ".git", "pre-commit", FULL)
        assert api.put("/api/notes/one", {"title": "Uno"}).headers["Bifolio-Commit"] == "pending"
        (api.root / ".git/hooks/pre-commit").unlink()
        api.site.committer.commit_due()  # as half a second later: it is no refusal, which would rest longer
        Outgoing(PastStates(api.site), Timing()).push_due()
        assert "title: Uno" in at_remote(made, "content/notes/one.md")
        assert git(api.root, "status", "--porcelain") == ""


def test_a_remote_that_can_not_be_asked_for_want_of_room_is_not_to_blame(tmp_path: Path) -> None:
    with machines(tmp_path, "a", push="off, follow: 1s") as made:
        api = made["a"]
        url = git(api.root, "remote", "get-url", "origin").strip()
        git(api.root, "remote", "set-url", "origin", "ssh://nobody@localhost/x")
        git(api.root, "config", "core.sshCommand", f'sh -c "{FULL}"')
        follower = Follower(PastStates(api.site), Timing())
        standing = follower.ask(api.site.state.settings)
        assert standing.state == "away"
        assert "since the disk is full" in standing.reason
        git(api.root, "remote", "set-url", "origin", url)
        assert follower.ask(api.site.state.settings).state == "current"
