"""The helper process of the merge driver, which merges the files of one git command after the first ones."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from server.commands import merge_driver_helper
from server.tools.merge_driver import start
from server.tools.merge_driver.install import NAME
from tests.sites import Files
from tests.tools.merge_driver.repository import BASE, ROOT, SITE, create, diverge, run_git
from tests.waiting import until

COUNT = 4


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A running helper, which is the only one that git commands in this test can find."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    path = start.socket_path()
    command = [sys.executable, "-P", "-m", "server.commands.merge_driver_helper", path, "600"]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        until(lambda: os.path.exists(path))
        yield process.pid
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(10)


def changed(change: str) -> Files:
    old, _, new = change.partition("→")
    return {f"content/notes/n{i}.md": BASE.replace(old, new) for i in range(COUNT)}


def texts(folder: Path) -> set[str]:
    return {(folder / f"content/notes/n{i}.md").read_text() for i in range(COUNT)}


def make(folder: Path, ours: str, theirs: str) -> None:
    create(folder, {**SITE, **changed("")})
    diverge(folder, changed(ours), changed(theirs))


def test_the_helper_merges_in_the_folder_and_with_the_settings_of_git(helper: int, tmp_path: Path) -> None:
    make(tmp_path / "a", "One→Two", "One→Three")
    run_git(tmp_path / "a", "config", "merge.conflictStyle", "diff3")
    run_git(tmp_path / "a", "merge", "-q", "next", status=1)
    [text] = texts(tmp_path / "a")
    assert "title: 'Two'\n||||||| " in text
    make(tmp_path / "b", "One→Two", "Third→3")
    run_git(tmp_path / "b", "merge", "-q", "next")
    assert texts(tmp_path / "b") == {BASE.replace("One", "Two").replace("Third", "3")}
    assert not list(tmp_path.glob("bifolio-*/*.time"))  # No file was merged in a process of its own.


def test_without_an_answer_the_file_is_merged_in_a_process_of_its_own(helper: int, tmp_path: Path) -> None:
    os.kill(helper, signal.SIGKILL)
    make(tmp_path / "a", "One→Two", "Third→3")
    run_git(tmp_path / "a", "merge", "-q", "next")
    assert texts(tmp_path / "a") == {BASE.replace("One", "Two").replace("Third", "3")}
    assert list(tmp_path.glob("bifolio-*/*.time"))


class _Killed:
    """A helper that is killed for each file after it has merged the file, before it answers."""

    def __init__(self, path: str) -> None:
        self.files = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(16)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):  # the end of `close`
            while True:
                connection, _ = self._listener.accept()
                with connection:
                    folder, arguments, variables = merge_driver_helper._read_request(connection)
                    command = [sys.executable, "-P", "-m", "server", "merge-driver", "run", *arguments]
                    subprocess.run(command, cwd=folder, env=variables, capture_output=True, check=False)
                    self.files += 1

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()


def test_a_helper_that_is_killed_before_its_answer_leaves_our_version_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    path = start.socket_path()
    os.mkdir(f"{path}.time")  # so that no other helper is started
    make(tmp_path / "a", "One→Two", "One→Three")
    killed = _Killed(path)
    try:
        run_git(tmp_path / "a", "merge", "-q", "next", status=1)
    finally:
        killed.close()
    assert killed.files == COUNT
    [text] = texts(tmp_path / "a")
    assert [line[0] for line in text.splitlines() if re.match("[<=>]{7}", line)] == ["<", "=", ">"]
    assert not [*tmp_path.glob("bifolio-*/merge-*.*.*"), *(tmp_path / "a").glob(".merge_file*")]


def test_a_helper_that_is_stopped_is_waited_for_once(helper: int, tmp_path: Path) -> None:
    path = start.socket_path()
    before = os.lstat(path).st_ino
    make(tmp_path / "a", "One→Two", "Third→3")
    impatient = tmp_path / "impatient.py"
    impatient.write_text(
        "import sys\nfrom server.tools.merge_driver import start\n"
        "start.WAIT_S = 0.2\nstart.main(sys.argv[1:])\n"
    )
    key = f"merge.{NAME}.driver"
    command = run_git(tmp_path / "a", "config", key).strip().replace(start.__file__, str(impatient))
    assert str(impatient) in command
    run_git(tmp_path / "a", "config", key, command)
    os.kill(helper, signal.SIGSTOP)
    try:
        run_git(tmp_path / "a", "merge", "-q", "next")
        assert not os.path.exists(path) or os.lstat(path).st_ino != before
    finally:
        os.kill(helper, signal.SIGCONT)
    assert texts(tmp_path / "a") == {BASE.replace("One", "Two").replace("Third", "3")}


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert start.socket_path().startswith(f"{tmp_path}/bifolio-")
    folder = next(tmp_path.iterdir())
    folder.chmod(0o770)
    assert start.socket_path() == ""
    folder.rmdir()
    (tmp_path / "other").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "other")
    assert start.socket_path() == ""
