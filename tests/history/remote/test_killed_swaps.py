"""A process is killed while it takes over a folder in the place of a file, or the other way round."""

import shutil
from pathlib import Path

import pytest

from tests.git import git
from tests.history.remote.places import Places, settle
from tests.killing import DONE, KILLED, killed_at
from tests.sites import write
from tests.torture import SEED

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
STRIDE = 5  # of the steps at which a process is killed
ONE, PLACE = "content/notes/one.md", "content/notes/x.md"


def put(root: Path, kind: str) -> None:
    """Have a file or a folder at a place of the content."""
    place = root / PLACE
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    write(root, {f"{PLACE}{'' if kind == 'file' else '/y/z.md'}": f"---\ntitle: {kind}\n---\n"})


def push(places: Places, kind: str) -> str:
    """Push a file or a folder, and another document that tells which it is; the commit."""
    put(places.other, kind)
    return places.push({ONE: f"---\ntitle: {kind}\n---\n"}, force=True)


def there(places: Places) -> str:
    """What is on disk: "file", "folder", or a mix."""
    found = {path for path in (PLACE, f"{PLACE}/y/z.md") if (places.root / path).is_file()}
    titles = {places.text(path).split()[2] for path in (*found, ONE)}
    kind = "file" if found == {PLACE} else "folder"
    return kind if len(found) == 1 and titles == {kind} else "mix"


@pytest.mark.parametrize(("before", "after"), [("file", "folder"), ("folder", "file")])
def test_at_every_step_a_process_is_killed(places: Places, before: str, after: str) -> None:
    """What is left is old or new, or becomes new when the remote's commit is taken over next."""
    first = push(places, before)
    places.take()
    for step in range(1 + SEED % STRIDE, 2000, STRIDE):
        git(places.root, "reset", "-q", "--hard", first)
        git(places.other, "reset", "-q", "--hard", first)
        git(places.root, "update-ref", "refs/quire/remote/main", first)
        places.api.site.refresh()
        theirs = push(places, after)
        ended = killed_at(step, places.takes, theirs)
        settle(places)
        assert places.head in (first, theirs), step
        assert places.take().commit == theirs, step
        assert (places.head, places.status, there(places)) == (theirs, "", after), step
        assert places.note()["title"] == after
        if ended != KILLED:
            break
    assert ended == DONE


@pytest.mark.parametrize(("before", "after"), [("file", "folder"), ("folder", "file")])
def test_what_a_killed_process_has_checked_out_is_in_nobodys_way(
    places: Places, before: str, after: str
) -> None:
    push(places, before)
    places.take()
    theirs = push(places, after)
    put(places.root, after)
    places.api.site.refresh()
    assert places.take().commit == theirs
    assert (places.head, places.status, there(places)) == (theirs, "", after)
