"""Locks on files and folders, between threads, between processes, and with child processes."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from server.storage.file_lock import FileLock


@contextmanager
def child(run: Callable[[], None]) -> Iterator[int]:
    """Context manager: fork a process that runs a function, reports that it did, and waits to be killed."""
    ready, says = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            run()
            os.write(says, b".")
            signal.pause()
        finally:
            os._exit(1)
    try:
        assert os.read(ready, 1) == b"."
        yield pid
    finally:
        os.close(ready)
        os.close(says)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.parametrize("is_folder", [False, True])
def test_two_locks_of_one_path_exclude_each_other(tmp_path: Path, is_folder: bool) -> None:
    path = tmp_path if is_folder else tmp_path / "lock"
    first, second = (FileLock(path, is_folder=is_folder) for _ in range(2))
    assert first.acquire()
    assert first.acquire()  # This lock object already holds the lock.
    assert not second.acquire()
    first.release()
    assert second.acquire()


def test_a_waiting_thread_gets_the_lock_when_it_is_released(tmp_path: Path) -> None:
    first, second = (FileLock(tmp_path / "lock") for _ in range(2))
    assert first.acquire()
    found: list[bool] = []
    waiting = Thread(target=lambda: found.append(second.acquire(wait_s=60)))
    waiting.start()
    first.release()
    waiting.join()
    assert found == [True]


def test_with_says_whether_the_lock_was_acquired_and_releases_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with FileLock(path).held() as is_held, FileLock(path).held() as is_held_again:
        assert (is_held, is_held_again) == (True, False)
    with FileLock(path).held() as is_held:
        assert is_held


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    with child(lambda: None if FileLock(lock.path).acquire() else os._exit(2)):
        assert not lock.acquire()
    assert lock.acquire()


def test_a_forked_child_does_not_keep_the_lock_of_its_parent(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.acquire()
    with child(lambda: None):
        os.close(lock.descriptor)  # as if the parent process had died
        lock.descriptor = -1
        assert FileLock(lock.path).acquire()


def test_a_path_that_cannot_be_opened_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "missing" / "lock").acquire()
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "missing", is_folder=True).acquire()
