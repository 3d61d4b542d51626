"""Tests of machines with `git.push: after`, which share an event log while their commits diverge and merge.

Each change is recorded once, and the events of a document lead up to its final state.
"""

import random
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from server.events.database import ALL_CLONES, LoggedVersion, Transaction
from server.events.model import Event
from server.events.recorder import Recorder, logged_version
from server.history.past import PastStates
from server.history.remote.following import Follower
from server.history.remote.push_after_serving import PushCommits
from server.jobs.job import Timing
from tests.git import git
from tests.history.remote.machines import Machines, machines
from tests.postgres import Postgres
from tests.sites import Api
from tests.torture import LONG, SEED

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
NAMES = ("one", "two", "three")
# the attribute of a shared note that each machine writes
SHARED = {"one": "title", "two": "summary", "three": "number"}
ROUNDS = 25 if LONG else 2
STEPS = 60 if LONG else 35


@dataclass
class Machine:
    """A machine that writes, pushes, follows the remote and records changes."""

    name: str
    api: Api
    url: str
    pushes: PushCommits = field(init=False)
    recorder: Recorder = field(init=False)
    # the status of the machine's own notes, by documentId
    notes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.api.root, self.api.site.replaced, accounts_url=self.url)
        self.api.site.observe(self.recorder)
        self.api.site.record()
        self.pushes = PushCommits(PastStates(self.api.site), Timing())

    def take(self) -> None:
        """Fetch and apply the remote's commits."""
        Follower(PastStates(self.api.site), Timing()).fetch_and_merge(self.api.site.state.settings)

    @property
    def head(self) -> str:
        return git(self.api.root, "rev-parse", "HEAD").strip()

    @property
    def log(self) -> list[Event]:
        return self.recorder.database.read(0, 10_000)

    def kinds(self, document: str) -> list[str]:
        """Return the kinds of a document's events, in order."""
        return [event.kind for event in self.log if event.document_id == document]


@contextmanager
def apart(folder: Path, database: Postgres) -> Iterator[tuple[Machines, list[Machine]]]:
    """Context manager: create three machines with `git.push: after`. Yield the `Machines` and the list of
    machines.
    """
    database.empty()
    with machines(folder, *NAMES, push="after") as made:
        found = [Machine(name, made[name], database.url) for name in NAMES]
        try:
            yield made, found
        finally:
            for machine in found:
                machine.recorder.database.close()


@pytest.fixture
def three(tmp_path: Path, database: Postgres) -> Iterator[list[Machine]]:
    with apart(tmp_path, database) as (_, found):
        yield found


def create(machine: Machine, **values: object) -> str:
    answer = machine.api.post("/api/notes", values)
    assert answer.status == 201, answer.body
    return str(answer.data["documentId"])


def put(machine: Machine, document: str, **values: object) -> None:
    answer = machine.api.put(f"/api/notes/{document}", values)
    assert answer.status == 200, answer.body


def delete(machine: Machine, document: str) -> None:
    assert machine.api.ask("DELETE", f"/api/notes/{document}").status == 204


def settle(found: list[Machine]) -> None:
    """Let all machines push and follow the remote until their content is the same."""
    for _ in range(6):
        for machine in found:
            machine.pushes.push_due()
        for machine in found:
            machine.take()
        if len({machine.head for machine in found}) == 1:
            return
    raise AssertionError("the machines do not come to the same commit")


def recorded(machine: Machine) -> set[LoggedVersion]:
    """Return the versions that result from the events in the log."""

    def read(connection: object) -> set[LoggedVersion]:
        return {LoggedVersion(*row) for row in Transaction(connection, ALL_CLONES).versions()}  # type: ignore[arg-type]

    return machine.recorder.database.query(read)


def served(machine: Machine) -> set[LoggedVersion]:
    """Return the versions that a machine serves."""
    return {one for entry in machine.api.site._contents.entries.values() if (one := logged_version(entry))}


# --- cases -------------------------------------------------------------------------------------------


def test_what_was_made_and_deleted_while_another_machine_was_behind(three: list[Machine]) -> None:
    one, two, _ = three
    put(two, "two", title="Zwei")
    note = create(one, title="New")
    one.pushes.push_due()
    put(one, note, title="Newer")
    delete(one, note)
    two.pushes.push_due()  # merges the note, which has been deleted on the other machine
    assert two.api.get(f"/api/notes/{note}").status == 200
    settle(three)
    expected = ["entry.create", "entry.publish", "entry.update", "entry.publish", "entry.delete"]
    assert one.kinds(note) == expected
    assert recorded(one) == served(two)


def test_a_value_that_comes_back_is_told_each_time(three: list[Machine]) -> None:
    one, two, three_ = three
    for number in range(2):
        for title in ("Uno", "One"):
            put(one, "one", title=title)
            put(two, "two", summary=f"{title} {number}")
            settle(three)
    assert three_.kinds("one").count("entry.update") == 4
    put(one, "one", title="Uno")
    put(one, "one", title="One")  # the original title again, before the others see the first change
    git(one.api.root, "push", "-q", "origin", "HEAD~1:main")
    put(two, "two", summary="Two")
    two.pushes.push_due()
    settle(three)
    assert three_.kinds("one").count("entry.update") == 6
    assert recorded(one) == served(two)


def test_what_both_have_changed_ends_with_what_was_merged(three: list[Machine]) -> None:
    one, two, _ = three
    put(one, "one", title="Uno", summary="Long")
    put(two, "one", summary="Long")  # recorded last, but contained in the other change
    settle(three)
    assert recorded(one) == served(one)
    assert one.kinds("one").count("entry.update") == 3
    put(one, "one", title="Eins")
    put(two, "one", number=7)
    settle(three)
    assert recorded(one) == served(one)
    assert one.kinds("one").count("entry.update") == 6


def test_what_an_editor_has_pushed_beside_is_told_by_the_first_who_comes(
    three: list[Machine], tmp_path: Path
) -> None:
    one, two, last = three
    git(tmp_path, "clone", "-q", "bare.git", "editor")
    path = tmp_path / "editor/content/notes/two.md"
    path.write_text(path.read_text().replace("title: Two", "title: Deux"))
    git(tmp_path / "editor", "commit", "-qam", "By an editor")
    git(tmp_path / "editor", "push", "-q")
    put(one, "one", title="Uno")
    put(two, "one", summary="Long")
    last.take()
    settle(three)
    assert one.kinds("two") == ["entry.update", "entry.publish"]
    assert recorded(one) == served(last)


def test_commits_that_are_taken_back_before_they_are_pushed(three: list[Machine]) -> None:
    one, two, _ = three
    put(one, "one", title="Uno")
    git(one.api.root, "reset", "-q", "--hard", "HEAD~1")
    one.api.site.refresh()
    put(two, "two", title="Zwei")
    settle(three)
    assert one.kinds("one").count("entry.update") == 2
    assert recorded(one) == served(two)


def test_edits_by_hand_that_are_taken_back_or_committed(three: list[Machine]) -> None:
    one, two, last = three
    path = one.api.root / "content/notes/two.md"
    path.write_text(path.read_text().replace("title: Two", "title: Zwei"))
    one.api.site.refresh()
    put(two, "two", summary="Long")
    two.pushes.push_due()
    last.take()
    assert one.kinds("two").count("entry.update") == 2
    one.take()
    assert one.api.get("/api/notes/two").data["title"] == "Zwei"
    git(one.api.root, "checkout", "-q", "--", "content")
    one.api.site.refresh()
    assert recorded(one) == served(one) == served(last)
    path.write_text(path.read_text().replace("title: Two", "title: Deux"))
    one.api.site.refresh()
    before = one.kinds("two")
    git(one.api.root, "commit", "-qam", "By hand")
    one.api.site.refresh()
    settle(three)
    assert one.kinds("two") == before
    assert recorded(one) == served(last)
    put(last, "two", title="Two again")
    settle(three)
    assert one.kinds("two") == [*before, "entry.update", "entry.publish"]


# --- random changes -------------------------------------------------------------------------------


class Story:
    """A random sequence of actions on machines, with the expected events."""

    def __init__(self, seed: str, found: list[Machine]) -> None:
        self.chance, self.found, self.number = random.Random(seed), found, 0
        self.expected: dict[str, list[str]] = defaultdict(list)
        self.shared = 0

    def step(self) -> None:
        machine, chance = self.chance.choice(self.found), self.chance
        self.number += 1
        steps = (self.make, self.update, self.update, self.publish, self.remove, self.share)
        chance.choice((*steps, self.push, self.push, self.follow))(machine)

    def own(self, machine: Machine, *statuses: str) -> str:
        some = [note for note, status in sorted(machine.notes.items()) if status in statuses]
        return self.chance.choice(some[-3:]) if some else ""

    def make(self, machine: Machine) -> None:
        note = create(machine, title=f"N{self.number}")
        machine.notes[note] = "published"
        self.expected[note] += ["entry.create", "entry.publish"]

    def update(self, machine: Machine) -> None:
        if note := self.own(machine, "published"):
            value = self.chance.choice(("back", f"S{self.number}"))  # may be an earlier value
            before = machine.api.get(f"/api/notes/{note}").data["summary"]
            put(machine, note, summary=value)
            self.expected[note] += ["entry.update", "entry.publish"] if value != before else []

    def publish(self, machine: Machine) -> None:
        """Unpublish a document, or publish it again."""
        if note := self.own(machine, "published", "draft"):
            published = machine.notes[note] == "published"
            if published:
                assert machine.api.post(f"/api/notes/{note}/actions/unpublish", {}).status == 200
            else:
                put(machine, note)
            machine.notes[note] = "draft" if published else "published"
            self.expected[note].append("entry.unpublish" if published else "entry.publish")

    def remove(self, machine: Machine) -> None:
        if note := self.own(machine, "published", "draft"):
            delete(machine, note)
            del machine.notes[note]
            self.expected[note].append("entry.delete")

    def share(self, machine: Machine) -> None:
        name = SHARED[machine.name]
        put(machine, "one", **{name: self.number if name == "number" else f"V{self.number}"})
        self.shared += 1

    def push(self, machine: Machine) -> None:
        machine.pushes.push_due()

    def follow(self, machine: Machine) -> None:
        machine.take()


@pytest.mark.parametrize("number", range(ROUNDS))
def test_each_change_is_told_once(tmp_path: Path, database: Postgres, number: int) -> None:
    with apart(tmp_path, database) as (made, found):
        story = Story(f"{SEED} {number}", found)
        for _ in range(STEPS):
            story.step()
        settle(found)
        for machine in found:
            assert served(machine) == recorded(machine)
        told = {note: found[0].kinds(note) for note in story.expected}
        assert told == dict(story.expected)
        merges = len(git(made.bare, "rev-list", "--merges", "main").split())
        updates = found[0].kinds("one").count("entry.update")
        assert story.shared <= updates <= story.shared + merges
