"""Random edits in remote commits, in local commits and in uncommitted files: none of them is lost."""

import random
import shutil
from pathlib import Path

import pytest

from server.errors import RemoteMergeError
from tests.git import git
from tests.history.remote.places import Places
from tests.sites import STRING, collection
from tests.torture import SEED

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
ROUNDS = 25
FIELDS = ("a", "b", "c", "d")
NAMES = ("one", "two", "three")
SITE = {
    "site.yaml": "search: {index: false}\n",
    ".gitignore": ".bifolio/\n",
    "lines.txt": "".join(f"line {number}\n\n\n" for number in range(12)),
    **collection("note", dict.fromkeys(FIELDS, STRING)),
    **{f"content/notes/{name}.yaml": "".join(f"{field}: begun\n" for field in FIELDS) for name in NAMES},
}


class Side:
    """One of the three places where fields are edited. It records the values set since all places were the
    same.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.set: dict[tuple[str, str], str] = {}

    def edit(self, chance: random.Random, left: set[tuple[str, str]], number: int) -> None:
        """Set some random fields. Prefer fields in `left`, which no other side has set."""
        fields = [(name, field) for name in NAMES for field in FIELDS]
        for name, field in chance.sample(fields, chance.randint(0, 4)):
            if (name, field) not in left and chance.random() < 0.9:
                continue
            left.discard((name, field))
            value = f"{self.name}{number}"
            path = self.folder / f"content/notes/{name}.yaml"
            lines = path.read_text().splitlines()
            path.write_text(
                "".join(
                    f"{field}: {value}\n" if line.startswith(f"{field}:") else f"{line}\n" for line in lines
                )
            )
            self.set[name, field] = value


def values(places: Places) -> dict[tuple[str, str], str]:
    notes = {name: places.note(name) for name in NAMES}
    return {(name, field): str(notes[name][field]) for name in NAMES for field in FIELDS}


def test_random_edits_on_three_sides(places: Places) -> None:
    """If each field is set on one side only, all edits are merged. If two sides set the same field, nothing
    changes.
    """
    chance, taken, stayed = random.Random(SEED), 0, 0
    for number in range(ROUNDS):
        git(places.root, "checkout", "-q", "-f", "main")
        git(places.root, "fetch", "-q", "origin")
        git(places.root, "reset", "-q", "--hard", "origin/main")
        places.api.site.refresh()
        git(places.other, "reset", "-q", "--hard", "origin/main")
        before, left = values(places), {(name, field) for name in NAMES for field in FIELDS}
        theirs, ours, hand = (
            Side(places.other, "theirs"),
            Side(places.root, "ours"),
            Side(places.root, "hand"),
        )
        theirs.edit(chance, left, number)
        places.push({}, f"theirs {number}")
        ours.edit(chance, left, number)
        if ours.set:
            places.commit(f"ours {number}")
        hand.edit(chance, left, number)
        if chance.random() < 0.5:
            places.api.site.refresh()
        local = {**ours.set, **hand.set}
        both = theirs.set.keys() & local.keys()
        head = places.head
        if both:
            with pytest.raises(RemoteMergeError):
                places.take()
            places.api.site.refresh()
            assert places.head == head, number
            assert values(places) == {**before, **local}, number
            stayed += 1
        else:
            places.take()
            assert values(places) == {**before, **theirs.set, **local}, number
            committed = {
                (name, line.partition(":")[0]): line.partition(": ")[2]
                for name in NAMES
                for line in git(places.root, "show", f"HEAD:content/notes/{name}.yaml").splitlines()
            }
            assert committed == {**before, **theirs.set, **ours.set}, number
            touched = {f" M content/notes/{name}.yaml" for name, _ in hand.set}
            assert set(places.status.splitlines()) == touched, number
            assert git(places.root, "merge-base", "origin/main", "HEAD") == git(
                places.root, "rev-parse", "origin/main"
            )
            taken += 1
    assert taken > ROUNDS // 3
    assert taken + stayed == ROUNDS


def test_lines_of_other_files_on_three_sides(places: Places) -> None:
    chance = random.Random(SEED)
    for number in range(ROUNDS // 5):
        git(places.root, "fetch", "-q", "origin")
        git(places.root, "reset", "-q", "--hard", "origin/main")
        git(places.other, "reset", "-q", "--hard", "origin/main")
        lines = chance.sample(range(12), 3)
        sides = [(places.other, lines[0]), (places.root, lines[1]), (places.root, lines[2])]
        for place, (folder, line) in enumerate(sides):
            text = (folder / "lines.txt").read_text().split("\n\n\n")
            text[line] = f"side {place} of {number}"
            (folder / "lines.txt").write_text("\n\n\n".join(text))
            if place == 0:
                places.push({})
            elif place == 1:
                places.commit()
        places.take()
        text = places.text("lines.txt").split("\n\n\n")
        assert [text[line] for line in lines] == [f"side {place} of {number}" for place in range(3)]
        assert places.status == " M lines.txt\n"
