"""Edits by hand during writes through the API: no edit may be lost."""

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from server.errors import ConflictError
from server.storage.exchange import exchange
from server.storage.files import signature_of
from server.storage.intent import Step, Write, write_intent
from server.storage.journal import Journal
from tests.sites import Api, make
from tests.storage.test_journal import FILES, contents, die, run_disturbed
from tests.torture import LONG, SEED
from tests.waiting import until

ONE, TWO, NEW = "content/things/one.md", "content/things/two.md", "content/things/new.md"
ROUNDS = 8_000 if LONG else 400


def save_by_renaming(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.editing")
    temporary.write_text(text)
    temporary.replace(path)


def save_in_place(path: Path, text: str) -> None:
    path.write_text(text)


def save_over(path: Path, text: str) -> None:
    """Open the file first, then overwrite it from the start, as some editors do."""
    with path.open("r+") as file:
        time.sleep(0.001)
        file.write(text)
        file.truncate()


SAVES = (save_by_renaming, save_in_place, save_over)


def write_on_and_on(api: Api) -> int:
    """Write to a document in another process until that process is killed. Return its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        number = 0
        while True:
            number += 1
            assert api.put("/api/things/one", {"body": f"{os.getpid()} {number}"}).status in (200, 409)
            time.sleep(0.001)
    finally:
        os._exit(1)


def last_line(path: Path) -> str:
    return path.read_text().splitlines()[-1]


def line_of(text: str) -> str:
    return next((line for line in text.splitlines() if line.startswith("name: ")), "")


@pytest.mark.parametrize("killed", [False, True], ids=["alive", "killed"])
def test_edits_in_a_tight_loop_beside_writes_lose_nothing(tmp_path: Path, killed: bool) -> None:
    """Only the editor changes `name`, so each save must be found until the next save.

    When the writer restores an edited file, a reader may find the previous save for a fraction of a
    millisecond. Versions that are overwritten then, or that a killed writer was processing, are kept in
    `unsaved/`.
    """
    api = make(tmp_path, FILES)
    path, chance = api.root / ONE, random.Random(SEED or 1)
    unsaved, journal = api.root / ".bifolio/unsaved", api.root / ".bifolio/journal"
    save_by_renaming(path, path.read_text().replace("one # kept", "0"))
    api.site.refresh()
    missed, seen, bodies = set[str](), set[str](), set[str]()
    writer = write_on_and_on(api)
    for number in range(1, ROUNDS + 1):
        if killed and not chance.randrange(30):
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
            api.site.recover()
            api.site.refresh()
            writer = write_on_and_on(api)
        # On a busy machine, the writer may not finish a write for a minute, because edits keep interrupting
        # it.
        if not chance.randrange(40):
            body = last_line(path)
            until(lambda: last_line(path) != body)  # noqa: B023
        text = path.read_text()
        seen.add(line_of(text))
        if line_of(text) != f"name: {number - 1}":
            missed.add(f"name: {number - 1}")
        bodies.add(text.splitlines()[-1])
        chance.choice(SAVES)(path, text.replace(line_of(text), f"name: {number}"))
        time.sleep(chance.choice((0, 0.001, chance.uniform(0, 0.02))))
    os.kill(writer, signal.SIGKILL)
    # The writer was killed by the test; it had not failed before.
    assert os.waitpid(writer, 0)[1] == signal.SIGKILL
    api.site.recover()
    aside = {line_of(file.read_text()) for file in unsaved.rglob("*.md")}
    assert missed <= seen | aside
    assert len(missed) <= ROUNDS // 100
    assert line_of(path.read_text()) == f"name: {ROUNDS}"
    assert len(bodies) > ROUNDS // 80  # Enough writes succeeded.
    assert list(journal.iterdir()) == []


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


# The file is edited between the last check and its replacement.
EDITS: dict[str, Callable[[Path], None]] = {
    "renamed over it": lambda path: save_by_renaming(path, path.read_text() + "by hand\n"),
    "removed": Path.unlink,
    "a folder instead": put_folder,
}


def commit(api: Api, data: bytes | None) -> str:
    """Create one file, and replace or delete two others, in one change. Return the error if the change was
    rejected.
    """
    journal = Journal(api.root, api.root / ".bifolio")
    paths = {path: signature_of(api.root / path) for path in (TWO, NEW, ONE)}
    writes = [Write(path, data if before else b"new", before) for path, before in paths.items()]
    try:
        with journal.writing():
            journal.commit(writes)
    except ConflictError as error:
        return error.message
    return ""


@pytest.mark.parametrize("data", [b"written", None], ids=["replaced", "removed"])
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("path", [TWO, ONE])
def test_an_edit_right_before_a_rename_takes_the_change_back(
    tmp_path: Path, path: str, edit: str, data: bytes | None
) -> None:
    api = make(tmp_path / "site", FILES)
    events, message = run_disturbed(api, lambda made: commit(made, data), 0, die)
    assert message == ""
    # The replaced files are moved by the renames that follow.
    renames = [at for at, event in enumerate(events, 1) if event == "os.rename"][:3]
    shutil.rmtree(api.root)
    api = make(tmp_path / "site", FILES)
    EDITS[edit](api.root / path)
    expected = contents(api.root), (api.root / path).is_dir()
    shutil.rmtree(api.root)
    api = make(tmp_path / "site", FILES)
    at = renames[(TWO, NEW, ONE).index(path)]
    _, message = run_disturbed(api, lambda made: commit(made, data), at, lambda: EDITS[edit](api.root / path))
    assert "during this write, so nothing was changed" in message
    assert (contents(api.root), (api.root / path).is_dir()) == expected
    assert list((api.root / ".bifolio/journal").iterdir()) == []


def test_a_file_that_goes_away_between_two_looks_at_it_is_a_conflict(tmp_path: Path) -> None:
    """A program such as git may delete and recreate a file. This must be reported as a conflict, not as a
    disk error.
    """
    journal, two = Journal(tmp_path, tmp_path / ".bifolio"), tmp_path / TWO
    looks, messages, left = 0, set[str](), 1

    def hook(_: object, event: str, function: object) -> None:
        nonlocal left
        if event == "c_call" and function in (os.stat, os.lstat):
            left -= 1
            if not left:
                two.unlink(missing_ok=True)

    while left <= 0 or not looks:
        looks += 1
        left = looks
        two.parent.mkdir(parents=True, exist_ok=True)
        two.write_text("---\nname: two\n---\n")
        before = signature_of(two)
        sys.setprofile(hook)
        try:
            with journal.writing():
                journal.commit([Write(TWO, b"written", before)])
        except ConflictError as error:
            messages.add(error.message)
        finally:
            sys.setprofile(None)
    assert looks > 5
    assert messages == {f"{TWO} was removed during this write, so nothing was changed; try again"}
    assert list(journal.folder.iterdir()) == []


def test_a_file_that_appears_right_before_it_is_made_stays(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    old = contents(api.root)
    events, _ = run_disturbed(api, lambda made: commit(made, b"written"), 0, die)
    at = [at for at, event in enumerate(events, 1) if event == "os.rename"][1]
    for path in (ONE, TWO):
        (api.root / path).write_text(str(FILES[path]))
    (api.root / NEW).unlink()
    _, message = run_disturbed(
        api, lambda made: commit(made, b"written"), at, lambda: (api.root / NEW).write_text("by hand")
    )
    assert message == f"{NEW} appeared during this write, so nothing was changed; try again"
    assert contents(api.root) == {**old, NEW: "by hand"}


def test_a_file_that_a_program_has_open_for_writing_is_not_replaced(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    with (api.root / ONE).open("r+") as file:
        answer = api.put("/api/things/one", {"name": "new"})
        assert answer.status == 409
        assert "was open in another program" in answer.error["message"]
        assert api.put("/api/things/two", {"name": "new"}).status == 200
        file.write("---\nname: two\n---\n")
        file.truncate()
    assert api.put("/api/things/one", {"body": "new"}).status == 200
    assert "name: two\n" in api.read(ONE)
    with (api.root / ONE).open() as file:
        assert api.put("/api/things/one", {"body": "newer"}).status == 200


def test_who_opens_a_file_that_is_being_replaced_waits_until_it_is(tmp_path: Path) -> None:
    """An editor that opens a file during its replacement must wait.

    Its save then goes into the new file, or was complete before the replacement. It never goes into a file
    that has been unlinked.
    """
    api = make(tmp_path, FILES)

    def save_while_held() -> None:
        if os.fork() == 0:
            try:
                with (api.root / ONE).open("a") as file:  # waits until the file is replaced
                    file.write("by hand\n")
            finally:
                os._exit(0)
        time.sleep(0.2)

    def step(made: Api) -> int:
        status = made.put("/api/things/one", {"name": "new"}).status
        os.wait()
        return status

    events, _ = run_disturbed(api, lambda made: made.put("/api/things/one", {"name": "x"}).status, 0, die)
    at = events.index("os.rename") + 1
    _, status = run_disturbed(api, step, at, save_while_held)
    assert status == 200
    assert "name: new # kept\n" in api.read(ONE)
    assert api.read(ONE).endswith("by hand\n")


@pytest.mark.parametrize("data", [b"written", None], ids=["replaced", "removed"])
def test_an_edit_that_a_killed_writer_has_taken_away_is_put_back(tmp_path: Path, data: bytes | None) -> None:
    """The writer is killed after it has swapped the files, but before it has compared the old file."""
    api = make(tmp_path, FILES)
    journal, one = Journal(api.root, api.root / ".bifolio"), api.root / ONE
    journal.folder.mkdir(exist_ok=True)
    aside = journal.folder / "1234-1.staged"
    aside.write_bytes(data or b"")
    after = signature_of(aside) if data else None
    write_intent(
        journal.folder / "1234-2.intent", [Step(ONE, aside.name, signature_of(one), after)], synced=False
    )
    save_by_renaming(one, "---\nname: by hand\n---\n")
    edited = one.rename(journal.folder / "edited")
    if data:
        aside.rename(one)
    else:
        aside.unlink()
    edited.rename(aside)
    with journal.writing():
        assert journal.recover() == 1
    assert one.read_text() == "---\nname: by hand\n---\n"
    assert [(api.root / path).read_bytes() for path in journal.recovery.unsaved_paths()] == (
        [data] if data else []
    )
    assert list(journal.folder.iterdir()) == []


def test_nothing_is_written_below_a_file(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    shutil.rmtree(tmp_path / "content/things")
    (tmp_path / "content/things").write_text("A file\n")
    api.site.refresh()
    assert api.get("/api/things/one").status == 404
    refused = api.post("/api/things", {"name": "new"})
    assert refused.status == 409
    assert "can't be created, because part of its path is a file" in refused.error["message"]
    assert (tmp_path / "content/things").read_text() == "A file\n"


@pytest.mark.parametrize("is_overwritten", [False, True], ids=["kept", "overwritten"])
def test_an_edit_is_kept_if_it_is_overwritten_by_a_program_that_has_not_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_overwritten: bool
) -> None:
    """For a moment before an edit is restored, other programs read the file without it."""
    api = make(tmp_path, FILES)
    path, read = api.root / ONE, list[str]()

    def swap(aside: Path, target: Path, folder: int) -> bool:
        if not read:
            save_by_renaming(path, "---\nname: first edit\n---\n")
        done = exchange(aside, target, folder)
        read.append(path.read_text())
        if is_overwritten and len(read) == 2:
            save_by_renaming(path, f"{read[0]}second edit\n")
        return done

    monkeypatch.setattr("server.storage.concurrent_edits.exchange", swap)
    journal = Journal(api.root, api.root / ".bifolio")
    with journal.writing(), pytest.raises(ConflictError):
        journal.commit([Write(ONE, b"---\nname: written\n---\n", signature_of(path))])
    assert (line_of(read[0]), line_of(read[1])) == ("name: written", "name: first edit")
    journal.recovery.replaced.sweep(0)
    unsaved = [line_of(file.read_text()) for file in (api.root / ".bifolio/unsaved").rglob("*.md")]
    assert unsaved == (["name: first edit"] if is_overwritten else [])
    assert list(journal.recovery.replaced.folder.iterdir()) == []
