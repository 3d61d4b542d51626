"""Work in a process of its own, beside threads that hold locks."""

import threading
import time

import pytest

from server.site.background.process import run_in_process

LOCK = threading.Lock()


def lock_and_add(one: int, other: int) -> int:
    with LOCK:
        print("not an answer")
        return one + other


def sleep() -> None:
    time.sleep(60)


def fail() -> None:
    raise ValueError("on purpose")


def test_a_lock_that_another_thread_holds_stops_nothing() -> None:
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with LOCK:
            taken.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        assert run_in_process(lock_and_add, 1, 2, timeout_s=20) == 3
    finally:
        done.set()
        thread.join()


def test_work_that_takes_too_long_ends() -> None:
    with pytest.raises(TimeoutError, match="no answer within 1 s"):
        run_in_process(sleep, timeout_s=1)


def test_work_that_fails_gives_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ChildProcessError, match="ended with status 1"):
        run_in_process(fail, timeout_s=20)
    assert "ValueError: on purpose" in capfd.readouterr().err


def test_large_arguments_arrive() -> None:
    assert run_in_process(len, bytes(10_000_000), timeout_s=20) == 10_000_000
