"""Functions that run in a separate process, while threads of this process hold locks."""

import pickle
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from server.site.background.process import run_in_process
from tests.servers import ROOT
from tests.waiting import until

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
    with pytest.raises(TimeoutError, match="no result within 1 s"):
        run_in_process(sleep, timeout_s=1)


def test_work_that_fails_gives_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ChildProcessError, match="ended with status 1"):
        run_in_process(fail, timeout_s=20)
    assert "ValueError: on purpose" in capfd.readouterr().err


class Large:
    """An argument that can be weakly referenced, so that a test can check when it is freed."""


def wait_for(path: Path, large: Large) -> bool:
    until(path.exists)
    return isinstance(large, Large)


def test_arguments_are_let_go_while_the_work_goes_on(tmp_path: Path) -> None:
    kept = list[weakref.ref[Large]]()

    def make() -> Large:
        made = Large()
        kept.append(weakref.ref(made))
        return made

    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(lambda: run_in_process(wait_for, tmp_path / "go", make(), timeout_s=60))
        until(lambda: bool(kept) and kept[0]() is None)
        assert not work.done()
        (tmp_path / "go").touch()
        assert work.result()


def test_large_arguments_arrive() -> None:
    assert run_in_process(len, bytes(10_000_000), timeout_s=20) == 10_000_000


@pytest.mark.parametrize("sent_bytes", [0, 100])
def test_a_parent_that_ends_while_it_sends_leaves_no_traceback(sent_bytes: int) -> None:
    work = pickle.dumps((sleep, (bytes(1000),)), protocol=5)
    done = subprocess.run(
        [sys.executable, "-m", "server.site.background.process"],
        input=work[:sent_bytes],
        capture_output=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")
