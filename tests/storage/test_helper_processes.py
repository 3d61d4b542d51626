"""Helper processes end before the process that has started them."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from server.storage.helper_processes import helper
from tests.search.test_sync import writers
from tests.servers import free_port, is_alive, start, stop, wait
from tests.site.test_state_folder import FILES
from tests.sites import write
from tests.waiting import until

ENDLESS = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(600)"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_no_helper_outlives_a_stopped_server(tmp_path: Path, number: signal.Signals) -> None:
    """The helper is suspended, so it can't end by itself."""
    root, log = tmp_path / "site", tmp_path / "log"
    write(root, FILES)
    with log.open("wb") as out:
        server = start(root, port := free_port(), "--workers=2", output=out)
    found: list[int] = []
    try:
        wait(server, port)
        until(lambda: bool(writers(root)))
        found = writers(root)
        for process in found:
            os.kill(process, signal.SIGSTOP)
        server.send_signal(number)
        server.wait(20)
        assert [process for process in found if is_alive(process)] == []
        assert "WARNING" not in log.read_text()
        assert "Traceback" not in log.read_text()
    finally:
        for process in found:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        stop(server)


def test_a_helper_ends_with_its_block() -> None:
    with helper(ENDLESS, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdout.close()
    assert not is_alive(process.pid)


def test_helpers_of_a_process_are_killed_and_no_new_one_is_started() -> None:
    code = f"""
import subprocess
from server.storage.helper_processes import end_helpers, start_helper
process = start_helper({ENDLESS!r}, stdout=subprocess.PIPE)
process.stdout.readline()
end_helpers()
try:
    start_helper({ENDLESS!r})
except OSError as error:
    print(process.returncode, error.strerror)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == f"{-signal.SIGKILL} the server is stopping\n"
