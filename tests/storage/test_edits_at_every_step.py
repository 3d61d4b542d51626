"""An editor saves at each step of a write, in every way in which editors save: no edit may be lost.

The editor is a separate process, because it may have to wait for the writer. The writer notifies the editor
before each system call. In half of the tests, the writer is then killed.
"""

import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from server.errors import ApiError
from server.storage.files import signature_of
from server.storage.intent import Write
from server.storage.journal import Journal
from server.storage.replaced import RETENTION_S
from tests.torture import LONG
from tests.waiting import until

ONE, TWO = "content/things/one.md", "content/things/two.md"
BEFORE, WRITTEN = b"before", b"longer than before"
WAIT_S = 0.01  # the time for an editor that may be waiting for the writer
SPAWN = multiprocessing.get_context("forkserver")
STEPS = {
    "open",
    "stat",
    "lstat",
    "fcntl",
    "flock",
    "rename",
    "replace",
    "link",
    "unlink",
    "fsync",
    "audit",
    "read",
}
STRIDE = 1 if LONG else 7  # steps between two steps at which the editor starts
# What the editor does at one step, and what it does at a later step.
WAYS = {
    "renames over it": ("rename", ""),
    "saves in place": ("open save", ""),
    "has found its name": ("find", "open save"),
    "has it open": ("open", "save"),
}
# The number of steps until the later action; the last number is after the end of the write.
LATER = (1, 3, 1000)


def edit(pipe: Connection) -> None:
    """Edit a file as requested by messages from the pipe. Each save keeps the file's size and mtime.

    Reply to each message with its number, and with whether anything was saved since the last message without
    actions.
    """
    found, file, saved = -1, -1, False
    while message := pipe.recv():
        number, actions, path, text = message
        for action in actions.split():
            with suppress(FileNotFoundError):
                if action == "rename":
                    temporary = path.with_name(".editing")
                    temporary.write_bytes(text)
                    temporary.replace(path)
                    saved = True
                elif action == "find":
                    found = os.open(path, os.O_PATH)
                elif action == "open":
                    file = os.open(f"/proc/self/fd/{found}" if found >= 0 else path, os.O_RDWR)
                elif action == "save" and file >= 0:
                    times = os.fstat(file)
                    os.pwrite(file, text, 0)
                    os.ftruncate(file, len(text))
                    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
                    saved = True
        if not actions or "save" in actions:
            for descriptor in {found, file} - {-1}:
                os.close(descriptor)
            found = file = -1
        pipe.send((number, saved))
        saved = saved and bool(actions)


class Editor:
    """This process's connection to an editor."""

    def __init__(self, pipe: Connection, path: Path) -> None:
        self.pipe, self.path, self.sent = pipe, path, 0

    def do(self, actions: str, text: bytes) -> None:
        """Request actions, and wait up to WAIT_S for them. The editor may be waiting for this process."""
        self.sent += 1
        self.pipe.send((self.sent, actions, self.path, text))
        while self.pipe.poll(WAIT_S) and self.pipe.recv()[0] != self.sent:
            pass


@contextmanager
def started_editor() -> Iterator[Connection]:
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=edit, args=(theirs,))
    process.start()
    try:
        yield ours
    finally:
        ours.send(None)
        process.join()
        ours.close()
        theirs.close()


def run_stepped(work: Callable[[], object], at_step: Callable[[int], None], steps: int) -> None:
    """Run `work` in a forked process. Before each of its steps, call `at_step` with the step's number.

    If the work has fewer than `steps` steps, also call `at_step` for the remaining numbers.
    """
    if pid := os.fork():
        os.waitpid(pid, 0)
        return
    count = 0

    def hook(_: object, event: str, function: Any) -> None:
        nonlocal count
        if event == "c_call" and function.__name__ in STEPS:
            count += 1
            at_step(count)

    try:
        sys.setprofile(hook)
        with suppress(ApiError):
            work()
        sys.setprofile(None)
        for number in range(count + 1, steps + 1):
            at_step(number)
    finally:
        os._exit(0)


def write_things(root: Path, data: bytes | None) -> None:
    """Replace or delete files one after another."""
    commit(root, [Write(path, data, signature_of(root / path), read=BEFORE) for path in (TWO, ONE)])


def commit(root: Path, writes: list[Write]) -> None:
    """Apply writes as a single change."""
    journal = Journal(root, root / ".bifolio")
    with journal.writing():
        journal.commit(writes)


def count_steps(root: Path, data: bytes | None) -> int:
    """Return the number of steps in a write."""
    reading, writing = os.pipe()
    run_stepped(lambda: write_things(root, data), lambda _: os.write(writing, b".") and None, 0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        return len(pipe.read())


def begin(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    for path in (ONE, TWO):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(BEFORE)
        os.utime(root / path, (1_700_000_000, 1_700_000_000))


def kept(root: Path) -> list[bytes]:
    """Return the contents of all files in which a user could find an edit."""
    folders = (root / "content", root / ".bifolio/unsaved")
    return [path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()]


def finish(root: Path) -> None:
    """Do the cleanup that later writes and the background sweep would do."""
    journal = Journal(root, root / ".bifolio")
    with journal.writing():
        journal.recover()
    journal.recovery.replaced.sweep(0)
    assert not any((root / ".bifolio/journal").glob("*"))
    assert not any((root / ".bifolio/replaced").glob("*"))


@pytest.mark.parametrize("killed", [False, True], ids=["alive", "killed"])
@pytest.mark.parametrize("data", [WRITTEN, None], ids=["replaced", "removed"])
@pytest.mark.parametrize("way", WAYS)
def test_an_edit_at_any_step_is_kept(way: str, data: bytes | None, killed: bool, tmp_path: Path) -> None:
    root, (first, second) = tmp_path / "site", WAYS[way]
    begin(root)
    steps, runs, saves, lost = count_steps(root, data), 0, 0, []
    assert steps > 60
    with started_editor() as pipe:
        for later in LATER if second else (0,):
            for at in range(1 + runs % STRIDE, steps + 1, STRIDE):
                begin(root)
                editor, text = Editor(pipe, root / ONE), b"%06d" % runs
                last = min(at + later, steps + 1)

                def at_step(
                    step: int, at: int = at, last: int = last, do: Any = editor.do, text: bytes = text
                ) -> None:
                    if step == at:
                        do(first, text)
                    if step == last and second:
                        do(second, text)
                    if step == last + 1 and killed:
                        os.kill(os.getpid(), signal.SIGKILL)

                run_stepped(lambda: write_things(root, data), at_step, steps + 2)
                saved = settle(pipe, root / ONE)
                finish(root)
                saves, runs = saves + saved, runs + 1
                if saved and text not in kept(root):
                    lost.append((at, later))
    assert saves > runs / 2
    assert lost == []


def settle(pipe: Connection, path: Path) -> bool:
    """Wait until the editor has done all requested actions. Return whether it saved anything."""
    pipe.send((-1, "", path, b""))
    while (reply := pipe.recv())[0] != -1:
        pass
    return bool(reply[1])


def test_replaced_files_are_kept_for_a_while(tmp_path: Path) -> None:
    begin(tmp_path)
    write_things(tmp_path, WRITTEN)
    replaced = Journal(tmp_path, tmp_path / ".bifolio").recovery.replaced
    replaced.sweep()
    assert len([*replaced.folder.iterdir()]) == 3
    replaced.sweep(0)
    assert [*replaced.folder.iterdir()] == []
    assert RETENTION_S >= 2


def test_what_a_killed_process_has_replaced_is_swept_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path)
    other = Journal(tmp_path, tmp_path / ".bifolio")
    other.sweep()  # must not fail although nothing is left to delete
    write_things(tmp_path, WRITTEN)
    now = time.monotonic()
    for later in (0, RETENTION_S + 0.1):
        monkeypatch.setattr("server.storage.replaced.time.monotonic", lambda later=later: now + later)
        other.sweep()
    assert len([*other.recovery.replaced.folder.iterdir()]) == 3
    record = next(other.recovery.replaced.folder.glob("*.kept"))
    until(lambda: time.time() - record.stat().st_ctime > RETENTION_S)
    monkeypatch.setattr("server.storage.replaced.time.monotonic", lambda: now + 3 * RETENTION_S)
    other.sweep()
    assert [*other.recovery.replaced.folder.iterdir()] == []


def test_a_file_that_is_renamed_over_one_to_remove_is_kept(tmp_path: Path) -> None:
    """If the bytes of a deleted file are not known, its signature is compared."""
    root, lost = tmp_path / "site", []
    begin(root)
    steps = count_steps(root, None)
    with started_editor() as pipe:
        for at in range(1, steps + 1):
            begin(root)
            editor, text = Editor(pipe, root / ONE), b"%06d" % at

            def at_step(step: int, at: int = at, do: Any = editor.do, text: bytes = text) -> None:
                if step == at:
                    do("rename", text)

            writes = [Write(path, None, signature_of(root / path)) for path in (TWO, ONE)]
            run_stepped(partial(commit, root, writes), at_step, steps)
            saved = settle(pipe, root / ONE)
            finish(root)
            if saved and text not in kept(root):
                lost.append(at)
    assert lost == []
