"""Tests of machines that follow one remote and share a log: the first machine records each commit, once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from server.events.model import Event
from server.events.recorder import Recorder
from server.site.site import Site
from tests.api.test_accounts_elsewhere import ask
from tests.api.test_event_streams import Reader
from tests.git import commit_all, git
from tests.postgres import Postgres
from tests.servers import free_port, serving
from tests.sites import collection, with_accounts, write
from tests.waiting import until

FILES = {
    **collection("tag", {"name": "string"}),
    "content/tags/red.json": '{"name": "Red"}',
    "content/tags/blue.json": '{"name": "Blue"}',
    ".gitignore": ".bifolio/\n",
}


class Machine:
    """A clone of a remote, which is served and recorded."""

    def __init__(self, remote: Path, name: str, url: str) -> None:
        self.root, self.url = remote.parent / name, url
        git(remote.parent, "clone", "-q", str(remote), name)
        self.start()

    def start(self) -> None:
        """Load the clone as a newly started process does."""
        self.site = Site(self.root)
        self.site.load()
        self.recorder = Recorder(self.root, self.site.replaced, accounts_url=self.url)
        self.site.observe(self.recorder)
        self.site.record()

    def save(self, document: str, name: str | None) -> None:
        """Edit or delete a document by hand."""
        path = self.root / f"content/tags/{document}.json"
        path.unlink() if name is None else path.write_text(json.dumps({"name": name}))
        self.site.refresh()

    def push(self, message: str = "edit") -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", message)
        self.site.refresh()
        git(self.root, "push", "-q")

    def pull(self, commit: str = "origin/main") -> None:
        git(self.root, "fetch", "-q")
        git(self.root, "merge", "-q", "--ff-only", commit)
        self.site.refresh()

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(event.kind, event.document_id) for event in self.log]

    @property
    def log(self) -> list[Event]:
        return self.recorder.database.read(0, 1000)


@pytest.fixture
def remote(database: Postgres, tmp_path: Path) -> Path:
    database.empty()
    first = tmp_path / "first"
    write(first, FILES)
    commit_all(first)
    git(tmp_path, "clone", "-q", "--bare", "first", "remote.git")
    return tmp_path / "remote.git"


@pytest.fixture
def machines(remote: Path, database: Postgres) -> list[Machine]:
    return [Machine(remote, name, database.url) for name in ("one", "two", "three")]


def edit(remote: Path, message: str, **names: str | None) -> str:
    """Push a commit from a clone without a server, and return the commit's hash."""
    clone = remote.parent / "editor"
    if not clone.exists():
        git(remote.parent, "clone", "-q", str(remote), "editor")
    git(clone, "pull", "-q", "--ff-only")
    for document, name in names.items():
        path = clone / f"content/tags/{document}.json"
        path.unlink() if name is None else path.write_text(json.dumps({"name": name}))
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", message)
    git(clone, "push", "-q")
    return git(clone, "rev-parse", "HEAD").strip()


def test_a_commit_that_all_take_over_is_recorded_once(remote: Path, machines: list[Machine]) -> None:
    one, two, three = machines
    commit = edit(remote, "red", red="Rot")
    for machine in machines:
        machine.pull()
    assert one.events == [("entry.update", "red")]
    [event] = one.log
    assert (event.source, event.commit, event.changed) == ("git", commit, ("name",))
    edit(remote, "new", green="Green", blue=None)
    for machine in (three, two, one):
        machine.pull()
    assert sorted(one.events[1:]) == [("entry.create", "green"), ("entry.delete", "blue")]


def test_a_machine_that_is_behind_records_nothing_anew(remote: Path, machines: list[Machine]) -> None:
    one, two, three = machines
    commits = [edit(remote, f"{number}", red=f"Red {number}") for number in range(4)]
    for commit in commits[:3]:
        one.pull(commit)
    assert len(one.events) == 3
    for commit in commits[:2]:
        two.pull(commit)
    assert len(one.events) == 3
    three.pull()  # records only the last commit, as an update
    assert one.events == [("entry.update", "red")] * 4
    assert [event.commit for event in one.log] == commits
    one.pull()
    two.pull()
    assert len(one.events) == 4


def test_a_commit_that_a_machine_has_jumped_to_is_compared_with_what_is_recorded(
    remote: Path, machines: list[Machine]
) -> None:
    one, two, _ = machines
    one.pull(edit(remote, "made", green="Green"))
    edit(remote, "changed", green="Leaf")
    two.pull()
    assert one.events == [("entry.create", "green"), ("entry.update", "green")]


def test_an_edit_is_recorded_where_it_is_made_and_not_again_as_a_commit(machines: list[Machine]) -> None:
    one, two, three = machines
    one.save("red", "Rot")
    assert one.events == [("entry.update", "red")]
    one.push()
    two.pull()
    three.pull()
    assert one.events == [("entry.update", "red")]
    two.save("blue", "Blau")
    two.push()
    one.save("green", "Green")
    one.pull()
    assert one.events[1:] == [("entry.update", "blue"), ("entry.create", "green")]


def test_machines_that_have_both_committed_record_each_once(machines: list[Machine]) -> None:
    one, two, three = machines
    one.save("red", "Rot")
    two.save("blue", "Blau")
    git(two.root, "commit", "-qam", "beside")
    two.site.refresh()
    one.push()
    git(two.root, "fetch", "-q")
    git(two.root, "merge", "-q", "--no-edit", "origin/main")
    two.site.refresh()
    git(two.root, "push", "-q")
    one.pull()
    three.pull()
    assert one.events == [("entry.update", "red"), ("entry.update", "blue")]


def test_history_that_was_rewritten_is_recorded_once(remote: Path, machines: list[Machine]) -> None:
    one, two, three = machines
    before = edit(remote, "first", red="Rot")
    edit(remote, "second", red="Rouge")
    for machine in machines:
        machine.pull()
    editor = remote.parent / "editor"
    git(editor, "reset", "-q", "--hard", before)
    git(editor, "push", "-q", "--force")
    for machine in machines:
        git(machine.root, "fetch", "-q")
        git(machine.root, "reset", "-q", "--hard", "origin/main")
        machine.site.refresh()
    assert one.events == [("entry.update", "red")] * 2
    edit(remote, "third", red="Rosso")
    for machine in (three, two, one):
        machine.pull()
    assert one.events == [("entry.update", "red")] * 3


def test_what_happened_while_a_machine_was_not_running_is_recorded_once(
    remote: Path, machines: list[Machine]
) -> None:
    one, two, three = machines
    edit(remote, "red", red="Rot")
    two.pull()
    git(one.root, "pull", "-q", "--ff-only")
    one.start()
    assert two.events == [("entry.update", "red")]
    edit(remote, "blue", blue="Blau")
    git(one.root, "pull", "-q", "--ff-only")
    one.start()
    two.pull()
    three.pull()
    assert two.events == [("entry.update", "red"), ("entry.update", "blue")]


KILLED = """
import os, signal, sys
from pathlib import Path
from server.events import database
from server.events.recorder import Recorder
from server.site.site import Site
root, url, when = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
site = Site(root)
site.load()
recorder = Recorder(root, site.replaced, accounts_url=url)
append = database.Transaction.append
def die(transaction, events):
    append(transaction, events)
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
database.Transaction.append = die
site.observe(recorder)
site.record()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_machine_that_is_killed_as_it_records_leaves_each_event_once(
    remote: Path, machines: list[Machine], when: str
) -> None:
    one, two, three = machines
    edit(remote, "red", red="Rot")
    git(one.root, "pull", "-q", "--ff-only")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(one.root), one.url, when], env={**os.environ})
    assert killed.returncode == -signal.SIGKILL
    until(lambda: two.recorder.database.bounds().last == (1 if when == "after" else 0))
    two.pull()
    three.pull()
    one.start()
    assert two.events == [("entry.update", "red")]


def test_streams_of_a_machine_tell_of_what_others_have_recorded(
    database: Postgres, remote: Path, tmp_path: Path
) -> None:
    settings = "roles: {public: {tag: [find, findOne, create, update]}}\ngit: {commit: each}\n"
    editor = tmp_path / "settings"
    git(tmp_path, "clone", "-q", str(remote), "settings")
    write(editor, with_accounts({"site.yaml": settings}, database.url))
    git(editor, "add", "-A")
    git(editor, "commit", "-qm", "settings")
    git(editor, "push", "-q")
    ports = [free_port(), free_port()]
    for name in ("left", "right"):
        git(tmp_path, "clone", "-q", str(remote), name)
    with (
        serving(tmp_path / "left", ports[0], "--workers=2", output=subprocess.DEVNULL),
        serving(tmp_path / "right", ports[1], "--workers=2", output=subprocess.DEVNULL),
        Reader(ports[1]) as stream,
    ):
        assert stream.next()[1] == "welcome"
        until(lambda: ask(ports[0], "GET", "/events")[0] == 200, 20)
        for number in range(3):
            assert ask(ports[0], "POST", "/api/tags", {"data": {"name": f"n{number}"}})[0] == 201
            began = time.monotonic()
            assert stream.next()[1] == "entry.create"
            assert time.monotonic() - began < 5
