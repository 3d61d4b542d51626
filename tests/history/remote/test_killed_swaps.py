"""Kills while a file is being replaced by a folder of the same name, or a folder by a file."""

import shutil
from pathlib import Path

import pytest

from tests.git import git
from tests.history.remote.places import Places, settle
from tests.killing import DONE, KILLED, killed_at
from tests.sites import load, write
from tests.torture import SEED

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
STRIDE = 5  # kill the process at every fifth step
ONE, PLACE = "content/notes/one.md", "content/notes/x.md"
FOLDER = f"{PLACE}/y/z.md"


def put(root: Path, kind: str) -> None:
    """Create either a file or a folder at `PLACE`, replacing whichever is there."""
    place = root / PLACE
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    write(root, {PLACE if kind == "file" else FOLDER: f"---\ntitle: {kind}\n---\n"})


def push(places: Places, kind: str, *, alone: bool = False) -> str:
    """Push a commit with a file or a folder at `PLACE`.

    Unless `alone`, another document changes in the same commit, with the kind ("file" or "folder") as its
    title.
    """
    put(places.other, kind)
    return places.push({} if alone else {ONE: f"---\ntitle: {kind}\n---\n"}, force=True)


def go_back(places: Places, commit: str) -> None:
    """Reset the site and the second clone to an earlier commit."""
    git(places.root, "reset", "-q", "--hard", commit)
    git(places.other, "reset", "-q", "--hard", commit)
    git(places.root, "update-ref", "refs/bifolio/remote/main", commit)
    places.api.site.refresh()


def there(places: Places) -> str:
    """Return which state is on disk: "file", "folder", or "mix" if the two documents do not match."""
    found = {path for path in (PLACE, FOLDER) if (places.root / path).is_file()}
    titles = {places.text(path).split()[2] for path in (*found, ONE)}
    kind = "file" if found == {PLACE} else "folder"
    return kind if len(found) == 1 and titles == {kind} else "mix"


@pytest.mark.parametrize(("before", "after"), [("file", "folder"), ("folder", "file")])
def test_a_process_is_killed_at_every_step(places: Places, before: str, after: str) -> None:
    """The next process finds either the old or the new state, even if the remote is not reachable."""
    first = push(places, before)
    places.take()
    for step in range(1 + SEED % STRIDE, 2000, STRIDE):
        go_back(places, first)
        theirs = push(places, after)
        ended = killed_at(step, places.takes, theirs)
        settle(places)
        found = (places.head, places.status, there(places), places.note()["title"])
        assert found in ((first, "", before, before), (theirs, "", after, after)), step
        assert places.take().commit == theirs, step
        assert (places.head, places.status, there(places)) == (theirs, "", after), step
        assert places.note()["title"] == after
        if ended != KILLED:
            break
    assert ended == DONE


@pytest.mark.parametrize(("before", "after"), [("file", "folder"), ("folder", "file")])
def test_files_of_a_killed_checkout_do_not_block(places: Places, before: str, after: str) -> None:
    push(places, before)
    places.take()
    theirs = push(places, after)
    put(places.root, after)
    places.api.site.refresh()
    assert places.take().commit == theirs
    assert (places.head, places.status, there(places)) == (theirs, "", after)


@pytest.mark.parametrize(("before", "after"), [("file", "folder"), ("folder", "file")])
def test_the_next_start_has_all_or_nothing_of_a_single_change(
    places: Places, before: str, after: str
) -> None:
    first, seen = push(places, before), set[str]()
    places.take()
    for step in range(1 + SEED % STRIDE, 2000, STRIDE):
        go_back(places, first)
        theirs = push(places, after, alone=True)
        ended = killed_at(step, places.takes, theirs)
        served = {path for path in load(places.root, {}).basis()[3] if path.startswith(PLACE)}
        assert served in ({PLACE}, {FOLDER}), step
        seen |= served
        settle(places)
        if ended != KILLED:
            break
    assert (ended, seen) == (DONE, {PLACE, FOLDER})


def test_edits_after_a_kill_are_kept(places: Places) -> None:
    first, edited = push(places, "file"), set[str]()
    places.take()
    for step in range(1 + SEED % STRIDE, 2000, 3 * STRIDE):
        go_back(places, first)
        theirs = push(places, "folder")
        ended = killed_at(step, places.takes, theirs)
        place = places.root / PLACE
        edit = FOLDER if place.is_dir() else PLACE
        places.edit({edit: "---\ntitle: Mine\n---\n"})
        settle(places)
        assert places.text(edit) == "---\ntitle: Mine\n---\n", step
        edited.add(edit)
        if ended != KILLED:
            break
    assert len(edited) == 2


def test_a_branch_moved_after_a_kill_is_kept(places: Places) -> None:
    first = push(places, "file")
    places.take()
    for step in range(1 + SEED % STRIDE, 2000, 3 * STRIDE):
        go_back(places, first)
        theirs = push(places, "folder")
        ended = killed_at(step, places.takes, theirs)
        (places.root / ".git/index.lock").unlink(missing_ok=True)
        git(places.root, "fetch", "-q", "origin")
        git(places.root, "reset", "-q", "--hard", theirs)
        places.edit({ONE: f"---\ntitle: Later {step}\n---\n"})
        git(places.root, "commit", "-qam", "Later")
        settle(places)
        assert (places.status, (places.root / FOLDER).is_file()) == ("", True), step
        if ended != KILLED:
            break
    assert ended == DONE
