"""Machines with `git.push: after`: a write is confirmed once it is committed locally, and is pushed soon, in
order.
"""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.history.past import PastStates
from server.history.remote.backlog import backlog
from server.history.remote.following import Follower
from server.history.remote.push_after_serving import PushCommits
from server.jobs.job import Timing
from server.jobs.runner import Runner
from tests.git import commit_all, git
from tests.history.remote.machines import Machines, at_remote, head, hook, machines
from tests.jobs.clocks import ManualClock
from tests.sites import Api, write
from tests.waiting import until

ONE = "content/notes/one.md"

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Machines]:
    with machines(tmp_path, "a", "b", push="after") as made:
        yield made


def pusher(api: Api, told: list[str] | None = None) -> PushCommits:
    return PushCommits(PastStates(api.site), Timing(), told.append if told is not None else lambda _: None)


def change(api: Api, **values: object) -> str:
    answer = api.put("/api/notes/one", values)
    assert answer.status == 200, answer.body
    return answer.headers["Bifolio-Commit"]


def waiting(api: Api) -> int:
    return backlog(api.root, api.site.state.settings).commit_count


def test_writes_are_confirmed_locally_and_pushed_in_order(two: Machines) -> None:
    before, told = two.tip, list[str]()
    first, second = change(two["a"], title="Uno"), change(two["a"], summary="Long")
    assert (two.tip, waiting(two["a"])) == (before, 2)
    pusher(two["a"], told).push_due()
    assert git(two.bare, "rev-list", "--reverse", f"{before}..main").split() == [first, second]
    assert (told, waiting(two["a"])) == ([second], 0)


def test_a_commit_made_during_a_push_is_pushed_next(two: Machines) -> None:
    api, later = two["a"], list[str]()

    def commit_once(_: str) -> None:
        if not later:
            later.append(change(api, summary="Long"))

    outgoing = PushCommits(PastStates(api.site), Timing(), commit_once)
    change(api, title="Uno")
    outgoing.push_due()
    assert two.tip != later[0]
    outgoing.push_due()
    assert (two.tip, waiting(api)) == (later[0], 0)


def test_commits_of_others_are_merged_by_attribute(two: Machines) -> None:
    change(two["a"], title="Uno")
    change(two["b"], summary="Long")
    pusher(two["a"]).push_due()
    pusher(two["b"]).push_due()
    assert "title: Uno" in at_remote(two, "content/notes/one.md")
    assert "summary: Long" in at_remote(two, "content/notes/one.md")
    assert head(two["b"].root) == two.tip
    found = two["b"].get("/api/notes/one").data
    assert (found["title"], found["summary"]) == ("Uno", "Long")


def test_a_conflict_is_reported_until_it_is_resolved(two: Machines, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bifolio")
    change(two["a"], title="Uno")
    ours = change(two["b"], title="Eins")
    pusher(two["a"]).push_due()
    theirs, outgoing = two.tip, pusher(two["b"])
    outgoing.push_due()
    outgoing.push_due()
    assert (two.tip, head(two["b"].root), waiting(two["b"])) == (theirs, ours, 1)
    assert two["b"].get("/api/notes/one").data["title"] == "Eins"
    found = two["b"].get("/_health/ready").body["data"]["push"]
    assert found["commits"] == 1
    assert found["since"] is not None
    assert "note/one/en" in found["reason"]
    assert "reason" not in two["b"].get("/_health/ready", "public").body["data"]["push"]
    assert "bifolio_push_waiting_commits 1.0" in two["b"].get("/metrics").text
    assert [r.message for r in caplog.records if "are not pushed yet" in r.message][1:] == []
    git(two["b"].root, "merge", "-q", "-s", "ours", "-m", "Ours", "origin/main")
    two["b"].site.refresh()
    outgoing.push_due()
    assert two.tip == head(two["b"].root)
    assert two["b"].get("/_health/ready").body["data"]["push"]["reason"] == ""
    assert (caplog.records[-1].levelname, caplog.messages[-1]) == (
        "INFO",
        "commits are pushed again",
    )


def conflict(two: Machines) -> PushCommits:
    """Let both machines change the title of the same note, and one more field each.

    Return the part of `b` that pushes. It is the second to push, so its commit conflicts.
    """
    change(two["a"], title="Uno", summary="Long")
    change(two["b"], title="Eins", number=7)
    pusher(two["a"]).push_due()
    outgoing = pusher(two["b"])
    outgoing.push_due()
    assert waiting(two["b"]) == 1
    return outgoing


@pytest.mark.parametrize(
    ("choice", "title"), [("ours", "Eins"), ("theirs", "Uno"), ({"title": {"value": "Un"}}, "Un")]
)
def test_a_conflict_is_resolved_by_a_request(two: Machines, choice: object, title: str) -> None:
    outgoing, merge = conflict(two), "/branches/origin/main/merge"
    refused = two["b"].ask("POST", merge)
    assert refused.status == 409
    [told] = refused.body["error"]["details"]["conflicts"]
    assert (told["document"], told["files"]) == ("note/one/en", [ONE])
    ready = two["b"].get("/_health/ready").body["data"]["push"]
    assert (ready["files"], "note/one/en (title)" in ready["reason"]) == ([ONE], True)
    assert two["b"].get("/_health/ready", "public").body["data"]["push"].keys() == {"commits", "since"}
    assert told["attributes"] == {
        "title": {"paths": [["title"]], "base": "One", "ours": "Eins", "theirs": "Uno"}
    }
    made = two["b"].ask("POST", merge, json={"resolve": {"documents": {"note/one/en": choice}}})
    assert (made.status, made.body["data"]["result"]) == (200, "merge"), made.body
    outgoing.push_due()
    assert (waiting(two["b"]), two.tip) == (0, head(two["b"].root))
    Follower(PastStates(two["a"].site), Timing()).fetch_and_merge(two["a"].site.state.settings)
    for name in "ab":
        found = two[name].get("/api/notes/one").data
        assert (found["title"], found["summary"], found["number"]) == (title, "Long", 7)
    assert two["b"].get("/_health/ready").body["data"]["push"] == {
        "commits": 0,
        "since": None,
        "reason": "",
        "files": [],
    }


def test_a_remote_file_in_place_of_a_local_folder_is_a_conflict(two: Machines) -> None:
    shutil.rmtree(two["a"].root / "content/tags")
    write(two["a"].root, {"content/tags": "What tags are for.\n"})
    commit_all(two["a"].root)
    two["a"].site.refresh()
    pusher(two["a"]).push_due()
    theirs, outgoing = two.tip, pusher(two["b"])
    made = two["b"].post("/api/tags", {"name": "New"}).data["documentId"]
    outgoing.push_due()
    assert (two.tip, waiting(two["b"])) == (theirs, 1)
    found = two["b"].get("/_health/ready").body["data"]["push"]
    assert found["files"] == ["content/tags", f"content/tags/{made}.md"]
    assert two["b"].get(f"/api/tags/{made}").data["name"] == "New"
    # Deletes the tag that was created above, which is one of the pending changes.
    assert two["b"].ask("DELETE", f"/api/tags/{made}").status == 204
    outgoing.push_due()
    assert waiting(two["b"]) == 0
    assert at_remote(two, "content/tags") == "What tags are for.\n"
    assert (two["b"].root / "content/tags").read_text() == "What tags are for.\n"


@pytest.mark.parametrize("push", ["off", "before"])
def test_commits_by_hand_that_are_in_conflict_are_merged_by_a_request(tmp_path: Path, push: str) -> None:
    with machines(tmp_path, "a", "b", push=f"{push}, follow: 1s") as made:
        for name, title in (("a", "Uno"), ("b", "Eins")):
            path = made[name].root / "content/notes/one.md"
            path.write_text(path.read_text().replace("title: One", f"title: {title}"))
            git(made[name].root, "commit", "-qam", "By hand")
            made[name].site.refresh()
        git(made["a"].root, "push", "-q")
        follower = Follower(PastStates(made["b"].site), Timing())
        assert "note/one/en (title)" in follower.fetch_and_merge(made["b"].site.state.settings).reason
        assert made["b"].get("/_health/ready").body["data"]["remote"]["files"] == [ONE]
        choice = {"resolve": {"documents": {"note/one/en": "ours"}}}
        answer = made["b"].ask("POST", "/branches/origin/main/merge", json=choice)
        assert answer.status == 200, answer.body
        assert follower.fetch_and_merge(made["b"].site.state.settings).state == "current"
        assert made["b"].get("/api/notes/one").data["title"] == "Eins"
        if push == "before":
            assert made.tip == head(made["b"].root)


def test_changes_of_the_remote_are_listed_before_a_merge(two: Machines) -> None:
    conflict(two)
    answer = two["b"].get("/branches/origin/main/changes")
    assert [one["documentId"] for one in answer.body["data"]] == ["one"]
    assert set(answer.body["data"][0]["attributes"]) == {"title", "summary"}
    assert two["b"].get("/branches/origin/other/changes").status == 404
    assert two["b"].ask("POST", "/branches/origin/main/merge", who="public").status == 403


def test_pushing_continues_immediately_after_a_resolved_conflict(two: Machines) -> None:
    conflict(two)
    outgoing = pusher(two["b"])
    outgoing._failures = 8  # as after several minutes of failed attempts
    outgoing.push_due()
    runner = Runner([outgoing])
    runner.start()
    try:
        choice = {"resolve": {"documents": {"note/one/en": "theirs"}}}
        assert two["b"].ask("POST", "/branches/origin/main/merge", json=choice).status == 200
        until(lambda: two.tip == head(two["b"].root), 20)
    finally:
        runner.stop()


def test_the_retry_interval_stops_growing(two: Machines) -> None:
    two.bare.rename(two.bare.with_name("away.git"))
    change(two["a"], title="Uno")
    outgoing, clock = pusher(two["a"]), ManualClock()
    outgoing._failures = 3000
    runner = Runner([outgoing], clock)
    for _ in range(2):
        clock.advance(30.0)
        assert runner.run_due() == ["push"]
    (report,) = runner.reports
    assert report.next_run_time == clock.time() + Timing().push_longest_s
    assert "did not respond" in report.error


def test_an_unavailable_or_refusing_remote_leaves_a_backlog(two: Machines) -> None:
    away, outgoing = two.bare.with_name("away.git"), pusher(two["a"])
    two.bare.rename(away)
    change(two["a"], title="Uno")
    outgoing.push_due()
    assert waiting(two["a"]) == 1
    assert "did not respond" in backlog(two["a"].root, two["a"].site.state.settings).error
    away.rename(two.bare)
    hook(two.bare, "pre-receive", "echo 'Not on Sundays' >&2; exit 1")
    pusher(two["a"]).push_due()
    assert "Not on Sundays" in backlog(two["a"].root, two["a"].site.state.settings).error
    (two.bare / "hooks/pre-receive").unlink()
    pusher(two["a"]).push_due()  # as a restarted server does
    assert (waiting(two["a"]), two.tip) == (0, head(two["a"].root))
    assert backlog(two["a"].root, two["a"].site.state.settings).error == ""


def test_commits_by_hand_are_pushed_as_well(two: Machines) -> None:
    path = two["a"].root / "content/notes/two.md"
    path.write_text(path.read_text().replace("title: Two", "title: Zwei"))
    git(two["a"].root, "commit", "-qam", "By hand")
    two["a"].site.refresh()
    pusher(two["a"]).push_due()
    assert "title: Zwei" in at_remote(two, "content/notes/two.md")
