"""The background job that fetches from the remote and integrates its commits, including how it logs
failures.
"""

import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from server.history.past import PastStates
from server.history.remote.apply_commits import AppliedCommit, Takeover
from server.history.remote.following import Follower
from server.history.remote.remote_status import AWAY, BEHIND, CURRENT, read_remote_status
from server.history.remote.wakeup import wake
from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.storage.git.remote import STALE_LOCK_AGE_S
from server.storage.git.times import read_times
from tests.git import git
from tests.git_programs import failing_git
from tests.history.remote.machines import counting, machines
from tests.history.remote.places import FILES, Places
from tests.servers import free_port, serving

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
ONE = "content/notes/one.md"
TEXT = str(FILES[ONE])
SITE = {**FILES, "site.yaml": "search: {index: false}\ngit: {remote: origin, branch: main, follow: 1h}\n"}


@pytest.fixture
def follower(places: Places) -> Follower:
    return Follower(PastStates(places.api.site), Timing())


def asked(places: Places, follower: Follower) -> str:
    return follower.fetch_and_merge(places.api.site.state.settings).state


def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_pushed_commits_are_integrated(places: Places, follower: Follower) -> None:
    assert asked(places, follower) == CURRENT
    theirs = places.push({ONE: TEXT.replace("Short", "There")})
    assert asked(places, follower) == CURRENT
    standing = read_remote_status(places.root)
    assert standing
    assert (standing.commit, standing.branch, standing.commits, standing.since) == (theirs, "main", 0, 0.0)
    assert places.note()["summary"] == "There"


def test_an_integration_runs_few_git_commands(
    places: Places, follower: Follower, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.push({ONE: TEXT.replace("Short", "There")})
    assert asked(places, follower) == CURRENT
    places.push({ONE: TEXT.replace("Short", "Then")}, at="2024-05-01T12:00:00Z")
    theirs = places.push({"content/notes/new.md": "---\ntitle: New\n---\n", "content/notes/two.md": None})
    with counting(monkeypatch, tmp_path) as commands:
        assert asked(places, follower) == CURRENT
    assert len(commands) <= 11, commands
    site = places.api.site
    assert (site.state.commit, site.state.has_uncommitted_changes) == (theirs, False)
    assert places.note()["summary"] == "Then"
    assert places.note("new")["title"] == "New"
    assert places.note("two") == {}
    site.refresh()
    assert site.git.committed == read_times(places.root)
    with counting(monkeypatch, tmp_path) as commands:
        assert asked(places, follower) == CURRENT
    assert commands == ["fetch"]


def test_a_blocked_integration_is_logged_once_and_recovers(
    places: Places, follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bifolio")
    places.edit({ONE: TEXT.replace("Short", "Hand")})
    places.push({ONE: TEXT.replace("Short", "There")})
    places.push({"README.md": "New\n"})
    for _ in range(3):
        assert asked(places, follower) == BEHIND
    standing = read_remote_status(places.root)
    assert standing
    assert (standing.commits, standing.files) == (2, (ONE,))
    assert "note/one/en (summary)" in standing.reason
    assert abs(standing.since - time.time()) < 60
    assert [record.message for record in caplog.records if "can't be merged" in record.message] == [
        f"new commits from origin/main can't be merged: {standing.reason}"
    ]
    ready = places.api.get("/_health/ready", "full").data["remote"]
    assert (ready["state"], ready["behind"], ready["files"]) == ("behind", 2, [ONE])
    shown = places.api.get("/_health/ready", "public")
    assert shown.status == 200
    assert shown.data["remote"].keys() == {"state", "behind", "since"}
    assert (ready["branch"], ready["commit"]) == ("main", standing.commit)
    assert places.api.get("/_health/ready?lag=3600", "public").status == 200
    time.sleep(0.01)
    assert places.api.get("/_health/ready?lag=0", "public").status == 503
    assert places.api.get("/_health/ready?lag=soon", "public").status == 400
    metrics = places.api.get("/metrics").body.decode()
    assert "bifolio_remote_behind_commits 2.0" in metrics
    places.edit({ONE: TEXT})
    places.api.site.refresh()
    assert asked(places, follower) == CURRENT
    assert places.note()["summary"] == "There"
    assert "origin/main is served again" in caplog.records[-1].message


@pytest.mark.parametrize("component", ['"a.\\0b"', "x." + "y" * 300, "a.../../../../victim"])
def test_a_machine_follows_a_remote_with_a_migration_that_can_not_be_planned(
    places: Places, follower: Follower, caplog: pytest.LogCaptureFixture, component: str
) -> None:
    text = f"operation: wrap\ntype: note\nattributes: [summary]\ncomponent: {component}\n"
    places.edit({"content/tags/here.yaml": "name: Here\n"})
    places.commit()
    places.push({"migrations/0001-odd.yaml": text, ONE: TEXT.replace("Short", "There")})
    assert [asked(places, follower) for _ in range(3)] == [CURRENT] * 3
    assert places.note()["summary"] == "There"
    assert places.text("migrations/0001-odd.yaml") == text
    [record] = [each for each in caplog.records if "migration" in each.message]
    assert record.message.startswith(
        "merging commits of the git remote without their migrations: A migration is invalid: "
        'migrations/0001-odd.yaml:4:12: "component" must '
    )
    assert record.message.endswith(
        "Run bifolio check, correct what it reports, then run bifolio migrate apply --write"
    )
    assert places.api.put("/api/notes/one", {"summary": "Written"}).status == 200
    assert places.api.get("/_health/ready", "public").status == 200


class _Failing(Takeover):
    """Takeover that fails as it would if Bifolio had a defect."""

    def take_over_locked(self, *arguments: object, **more: object) -> AppliedCommit:
        raise ValueError("embedded null byte")


def test_the_status_says_that_an_unexpected_error_prevents_following(
    places: Places, caplog: pytest.LogCaptureFixture
) -> None:
    past = PastStates(places.api.site)
    failing = Follower(past, Timing(), _Failing(past))
    places.push({ONE: TEXT.replace("Short", "There")})
    assert [asked(places, failing) for _ in range(3)] == [BEHIND] * 3
    reason = "unexpected error (ValueError: embedded null byte); merge the commits with git"
    standing = read_remote_status(places.root)
    assert standing
    assert standing.reason.startswith(reason)
    ready = places.api.get("/_health/ready", "full").data["remote"]
    assert (ready["state"], ready["behind"]) == ("behind", 1)
    assert ready["reason"].startswith(reason)
    assert len([record for record in caplog.records if record.exc_info]) == 1
    assert len([record for record in caplog.records if "can't be merged" in record.message]) == 1
    assert places.api.put("/api/notes/one", {"summary": "Written"}).status == 200
    places.edit({ONE: TEXT})
    places.api.site.refresh()
    assert asked(places, Follower(past, Timing())) == CURRENT
    assert places.note()["summary"] == "There"


def test_a_remote_that_is_unavailable_for_a_while(
    places: Places, follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bifolio")
    asked(places, follower)
    elsewhere = places.remote.with_name("elsewhere.git")
    places.remote.rename(elsewhere)
    for _ in range(3):
        assert asked(places, follower) == AWAY
    # The next pause depends on how long fetches have failed, not on how often.
    assert follower._pause(0.001) < 2.0
    follower._away_since -= 40.0
    assert 40.0 <= follower._pause(2.0) < 50.0
    follower._away_since -= 400.0
    assert follower._pause(2.0) == 60.0
    assert places.api.get("/_health/ready?lag=0").data["remote"]["state"] == "away"
    assert places.api.put("/api/notes/one", {"title": "Meanwhile"}).status == 200
    elsewhere.rename(places.remote)
    places.push({ONE: TEXT.replace("Short", "There")})
    assert asked(places, follower) == CURRENT
    assert follower._pause(2.0) == 2.0
    assert (places.note()["summary"], places.note()["title"]) == ("There", "Meanwhile")
    away, again = caplog.records
    assert away.levelname == "WARNING"
    assert "can't be fetched: The git remote did not respond" in away.message
    assert again.levelname == "INFO"
    assert "origin/main is served again, after" in again.message


def test_a_killed_command_has_left_the_lock_of_the_tracking_branch(
    places: Places, follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    assert asked(places, follower) == CURRENT
    lock = places.root / ".git/refs/remotes/origin/main.lock"
    lock.write_text("")
    places.push({ONE: TEXT.replace("Short", "There")})
    assert asked(places, follower) == AWAY
    assert "The commits from the git remote can't be stored yet" in caplog.records[-1].message
    then = time.time() - STALE_LOCK_AGE_S - 1
    os.utime(lock, (then, then))
    assert asked(places, follower) == CURRENT
    assert places.note()["summary"] == "There"


def test_json_logs_have_levels_for_failure_and_recovery(places: Places, tmp_path: Path) -> None:
    elsewhere, path = places.remote.with_name("elsewhere.git"), tmp_path / "log.json"
    places.remote.rename(elsewhere)
    options = ("--workers=1", "--log=json", "--quiet")
    with path.open("wb") as output, serving(places.root, free_port(), *options, output=output):
        until(lambda: "can't be fetched" in path.read_text())
        elsewhere.rename(places.remote)
        wake(places.root)
        until(lambda: "is served again, after" in path.read_text())
    told = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["level"] for line in told if "origin/main" in line.get("message", "")] == ["warning", "info"]


def test_a_branch_missing_at_the_remote(places: Places, follower: Follower) -> None:
    asked(places, follower)
    git(places.remote, "branch", "-m", "main", "renamed")
    assert asked(places, follower) == BEHIND
    standing = read_remote_status(places.root)
    assert standing
    assert standing.reason == 'The git remote has no branch "main"'
    git(places.remote, "branch", "-m", "renamed", "main")
    assert asked(places, follower) == CURRENT


def test_another_branch_that_is_checked_out_by_hand(places: Places, follower: Follower) -> None:
    git(places.root, "checkout", "-q", "-b", "mine")
    places.push({ONE: TEXT.replace("Short", "There")})
    assert asked(places, follower) == BEHIND
    assert git(places.root, "symbolic-ref", "--short", "HEAD") == "mine\n"
    git(places.root, "checkout", "-q", "main")
    places.api.site.refresh()
    assert asked(places, follower) == CURRENT
    assert places.note()["summary"] == "There"


def test_a_rewritten_history_is_logged(
    places: Places, follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    places.push({ONE: TEXT.replace("Short", "There")})
    asked(places, follower)
    git(places.other, "reset", "-q", "--hard", "HEAD~1")
    theirs = places.push({}, "other", force=True)
    assert asked(places, follower) == CURRENT
    assert places.head == theirs
    assert "the history of origin/main was rewritten" in caplog.text


def test_one_process_follows_at_a_time_and_is_woken(places: Places) -> None:
    followers = [Follower(PastStates(places.api.site), Timing()) for _ in range(2)]
    runners = [Runner([one]) for one in followers]
    for runner in runners:
        runner.start()
    until(lambda: read_remote_status(places.root) is not None)
    leads = [one for one in followers if one._written_status]
    assert len(leads) == 1
    places.push({ONE: TEXT.replace("Short", "There")})
    wake(places.root)
    until(lambda: places.note()["summary"] == "There")
    runners[followers.index(leads[0])].stop()
    other = next(one for one in followers if one is not leads[0])
    until(lambda: other._written_status is not None)
    places.push({ONE: TEXT.replace("Short", "Again")})
    wake(places.root)
    until(lambda: places.note()["summary"] == "Again")
    for runner in runners:
        runner.stop()
    assert not [thread for thread in threading.enumerate() if thread.name in ("follow-remote", "wakes")]


def test_following_ends_when_it_is_switched_off(places: Places, follower: Follower) -> None:
    asked(places, follower)
    places.edit({"site.yaml": "search: {index: false}\n"})
    places.api.site.refresh()
    runner = Runner([follower])
    runner.start()
    until(lambda: read_remote_status(places.root) is None)
    assert places.api.get("/_health/ready").data["remote"] is None
    runner.stop()


@pytest.mark.parametrize("is_on", [True, False])
def test_git_objects_do_not_accumulate_on_a_following_machine(tmp_path: Path, is_on: bool) -> None:
    with machines(tmp_path, "a", "b", push="off, follow: 1s") as made:
        api, other = made["a"], made["b"].root
        for setting in ("fetch.unpackLimit=1", "gc.autoPackLimit=2", "gc.autoDetach=false"):
            git(api.root, "config", *setting.split("="))
        if not is_on:
            git(api.root, "config", "gc.auto", "0")
        follower, packs = Follower(PastStates(api.site), Timing()), api.root / ".git/objects/pack"
        for number in range(4):
            (other / "content/tags/sea.yaml").write_text(f"name: Sea {number}\n")
            git(other, "commit", "-qam", f"{number}")
            git(other, "push", "-q")
            assert follower.fetch_and_merge(api.site.state.settings).state == CURRENT
        before = len(list(packs.glob("*.pack")))
        api.site.committer.commit_due()
        assert len(list(packs.glob("*.pack"))) == before > 2
        api.site.committer._gc_at -= 3600
        api.site.committer.commit_due()
        assert len(list(packs.glob("*.pack"))) == (1 if is_on else before)
        assert git(api.root, "fsck", "--connectivity-only") is not None


def test_nothing_is_integrated_while_its_changes_are_unknown(
    places: Places, follower: Follower, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = git(places.root, "rev-parse", "HEAD")
    places.push({ONE: TEXT.replace("Short", "There")})
    with monkeypatch.context() as patch:
        failing_git(patch, tmp_path / "bin", "diff-tree")
        assert asked(places, follower) == BEHIND
    standing = read_remote_status(places.root)
    assert standing
    assert standing.reason == "git diff-tree failed: fatal: it is damaged"
    assert git(places.root, "rev-parse", "HEAD") == before
    assert asked(places, follower) == CURRENT
    assert places.note()["summary"] == "There"
    assert git(places.root, "status", "--porcelain") == ""
