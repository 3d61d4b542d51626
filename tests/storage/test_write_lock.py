"""The write lock between processes: waiting is fair, and the next process gets the lock when it is
released.
"""

import os
import signal
import time
from pathlib import Path

from server.storage.write_lock import WriteLock


def lock_of(root: Path) -> WriteLock:
    return WriteLock(root / "write.lock", root)


def test_one_who_waits_has_a_turn_beside_one_who_takes_the_lock_again_and_again(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            greedy = lock_of(tmp_path)
            while True:
                with greedy.held():
                    greedy.set_counter(greedy.counter + 1)
                    time.sleep(0.002)
        finally:
            os._exit(1)
    try:
        lock = lock_of(tmp_path)
        for _ in range(20):
            with lock.held(timeout_s=1):
                number = lock.counter
                time.sleep(0.002)
        assert number > 2  # The other process wrote, too.
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_it_is_free_again_although_a_process_was_forked_while_it_was_held(tmp_path: Path) -> None:
    with lock_of(tmp_path).held():
        pid = os.fork()
        if pid == 0:
            try:
                time.sleep(60)
            finally:
                os._exit(1)
    try:
        with lock_of(tmp_path).held(timeout_s=0.1):
            assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_it_is_held_also_where_there_is_no_file_beside_the_folder(tmp_path: Path) -> None:
    first, second = (WriteLock(tmp_path / "missing" / "write.lock", tmp_path) for _ in range(2))
    with first.held():
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                with second.held(timeout_s=0.05):
                    status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    with second.held(timeout_s=0.05):
        assert second.counter == 0
