"""Simultaneous writes with `git.push: before`: they are pushed together, but each gets its own response."""

import io
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.git import git
from tests.history.remote.machines import Machines, at_remote, head, hook
from tests.sites import Answer, Api
from tests.waiting import until

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


@contextmanager
def held(two: Machines) -> Iterator[Path]:
    """Context manager: block the pushes from "a" as long as the returned file exists.

    Each push appends a line to the file `waits` in the same folder.
    """
    wait = two.bare.parent / "wait"
    wait.touch()
    hook(two["a"].root / ".git", "pre-push", f"echo >> {wait}s; while test -e {wait}; do sleep 0.02; done")
    yield wait


def pushes(wait: Path) -> int:
    """Return how many pushes have started."""
    log = wait.with_name("waits")
    return len(log.read_text().splitlines()) if log.exists() else 0


def together(two: Machines, wait: Path, *jobs: Callable[[], Answer]) -> list[Answer]:
    """Send requests while another push is in progress, and return their responses."""
    with ThreadPoolExecutor(len(jobs) + 1) as pool:
        first = pool.submit(change, two["a"], "two", title="Zwei")
        until(lambda: pushes(wait) == 1)
        others: list[Future[Answer]] = []
        for job in jobs:  # Start them in this order.
            others.append(pool.submit(job))
            until(lambda: len(waiting(two["a"])) == len(others))
        wait.unlink()
        assert first.result().status == 200
        return [other.result() for other in others]


def waiting(api: Api) -> list[threading.Thread]:
    """Return the threads whose writes are waiting for the current push to end."""
    arbiter = api.site.arbiter
    return list(arbiter._line._waiting)  # type: ignore[union-attr]


def change(api: Api, name: str, who: str = "full", **values: object) -> Answer:
    return api.put(f"/api/notes/{name}", values, who)


def test_waiting_writes_are_pushed_together_as_one_commit_each(two: Machines) -> None:
    a, before = two["a"], two.tip
    with held(two) as wait:
        answers = together(
            two,
            wait,
            lambda: change(a, "one", title="Uno"),
            lambda: change(a, "one", summary="Long"),
            lambda: a.post("/api/notes", {"title": "New", "slug": "new"}),
            lambda: change(a, "two", number=3),
            lambda: a.ask("DELETE", "/api/tags/sky"),
        )
    assert [answer.status for answer in answers] == [200, 200, 201, 200, 204]
    assert pushes(wait) == 2
    subjects = git(two.bare, "log", "--reverse", "--format=%s", f"{before}..main").splitlines()
    assert subjects == [
        'Update note "Zwei"', 'Update note "Uno"', 'Update note "Uno"', 'Create note "New"',
        'Update note "Zwei"', 'Delete tag "Sky"',
    ]  # fmt: skip
    commits = git(two.bare, "rev-list", "--reverse", f"{before}..main").split()
    assert [answer.headers["Bifolio-Commit"] for answer in answers] == commits[1:]
    assert (answers[0].data["summary"], answers[1].data["title"]) == ("Short", "Uno")
    assert (head(a.root), git(a.root, "status", "--short")) == (two.tip, "")
    assert a.get("/api/notes/one").data["summary"] == "Long"
    a.site.refresh()
    assert not a.site.state.has_uncommitted_changes


def test_an_invalid_write_fails_without_the_others(two: Machines) -> None:
    a = two["a"]
    with held(two) as wait:
        answers = together(
            two,
            wait,
            lambda: a.post("/api/notes", {"title": "New", "slug": "new"}),
            lambda: a.post("/api/notes", {"title": "Same", "slug": "new"}),
            lambda: change(a, "none", title="None"),
            lambda: change(a, "one", title="Uno"),
        )
    assert [answer.status for answer in answers] == [201, 400, 404, 200]
    assert "unique" in answers[1].error["message"]
    assert "title: Uno" in at_remote(two, "content/notes/one.md")


def test_conflicts_in_a_refused_group_are_reported(two: Machines) -> None:
    a, b = two["a"], two["b"]
    with held(two) as wait, ThreadPoolExecutor(2) as pool:
        jobs = [lambda: change(a, "one", title="Uno"), lambda: change(a, "one", summary="Long")]
        second = wait.with_name("second")
        hook(a.root / ".git", "pre-push", _waiting_twice(wait, second))
        second.touch()
        answers = pool.submit(together, two, wait, *jobs)
        until(lambda: pushes(wait) == 2)
        assert b.put("/api/notes/one", {"title": "Eins"}).status == 200
        second.unlink()
        found = answers.result()
    assert [answer.status for answer in found] == [409, 200]
    [conflict] = found[0].error["details"]["conflicts"]
    assert (conflict["ours"], conflict["theirs"]) == ("Uno", "Eins")
    assert (found[1].data["title"], found[1].data["summary"]) == ("Eins", "Long")
    assert (head(a.root), git(a.root, "status", "--short")) == (two.tip, "")


def _waiting_twice(wait: Path, second: Path) -> str:
    return (
        f"echo >> {wait}s; while test -e {wait}; do sleep 0.02; done; "
        f"test $(wc -l < {wait}s) -lt 2 || while test -e {second}; do sleep 0.02; done"
    )


def test_a_write_refused_by_a_remote_hook_fails_without_the_others(two: Machines) -> None:
    a = two["a"]
    hook(two.bare, "pre-receive", "read old new name; ! git log --format=%s $old..$new | grep -q Bad")
    with held(two) as wait:
        answers = together(
            two,
            wait,
            lambda: change(a, "one", title="Uno"),
            lambda: change(a, "one", title="Bad"),
            lambda: change(a, "one", summary="Long"),
        )
    assert [answer.status for answer in answers] == [200, 409, 200]
    assert (answers[2].data["title"], answers[2].data["summary"]) == ("Uno", "Long")
    assert (head(a.root), git(a.root, "status", "--short")) == (two.tip, "")


def test_a_write_after_a_refused_one_is_compared_with_the_served_state(two: Machines) -> None:
    a = two["a"]
    hook(
        two.bare,
        "pre-receive",
        "read old new name; ! git log --format=%s $old..$new | grep -q 'Bad\\|Delete'",
    )
    tag = a.get("/api/notes/two").headers["ETag"]
    with held(two) as wait:
        answers = together(
            two,
            wait,
            lambda: a.post("/api/notes", {"title": "Bad", "slug": "mine"}),
            lambda: a.post("/api/notes", {"title": "Good", "slug": "mine"}),
            lambda: a.ask("DELETE", "/api/notes/one"),
            lambda: change(a, "one", summary="Kept"),
            lambda: change(a, "one", title="Bad"),
            lambda: change(a, "one", title="Uno"),
            lambda: a.put("/api/notes/two", {"summary": "Late"}, headers={"If-Match": tag}),
        )
    assert [answer.status for answer in answers] == [409, 201, 409, 200, 409, 200, 412]
    assert (answers[5].data["title"], answers[5].data["summary"]) == ("Uno", "Kept")
    assert (head(a.root), git(a.root, "status", "--short")) == (two.tip, "")


def test_a_refused_upload_fails_without_the_others(two: Machines) -> None:
    a = two["a"]
    names = "git diff --name-only $old $new"
    hook(
        two.bare,
        "pre-receive",
        f"read old new name; ! {names} | grep secret || {{ echo of alice >&2; exit 1; }}",
    )
    with held(two) as wait:
        answers = together(
            two,
            wait,
            lambda: a.ask("POST", "/api/upload", data={"files": (io.BytesIO(b"hello"), "secret.txt")}),
            lambda: change(a, "one", title="Uno"),
        )
    assert [answer.status for answer in answers] == [409, 200]


def test_a_waiting_write_overtaken_by_another_machine_gets_a_conflict(two: Machines) -> None:
    a, b = two["a"], two["b"]
    with held(two) as wait, ThreadPoolExecutor(3) as pool:
        first = pool.submit(change, a, "two", title="Zwei")
        until(lambda: pushes(wait) == 1)
        second = pool.submit(change, a, "one", title="Uno")
        until(lambda: len(waiting(a)) == 1)
        assert b.put("/api/notes/one", {"title": "Eins"}).status == 200
        wait.unlink()
    assert (first.result().status, second.result().status) == (200, 409)
    assert a.get("/api/notes/one").data["title"] == "Eins"


def test_a_concurrent_edit_is_merged_with_the_pushed_write(two: Machines) -> None:
    a = two["a"]
    path = a.root / "content/notes/one.md"

    def edit() -> Answer:
        path.write_text(path.read_text().replace("summary: Short", "summary: By hand"))
        return change(a, "two", number=4)

    with held(two) as wait:
        answers = together(two, wait, lambda: change(a, "one", title="Uno"), edit)
    assert [answer.status for answer in answers] == [200, 200]
    assert "title: Uno" in path.read_text()
    assert "summary: By hand" in path.read_text()
