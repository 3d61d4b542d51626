"""Tests of the zygote: forks share only imported modules, behave like started processes, and do not outlive
it.
"""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from server.jobs.job import Timing
from tests.servers import ROOT, free_port, is_alive, start, stop, wait
from tests.sites import schema, write
from tests.waiting import until

SITE: dict[str, str | bytes] = {"content-types/note.json": schema("note", {"title": "string"})}
PRINT = "import os, sys; print(os.environ.get('KEPT'), len(sys.argv), flush=True); sys.exit(3)"
KEEP = "import os, server.errors; server.errors.KEPT = os.environ['KEPT'] = 'here'; os._exit(0)"
END = "import atexit; atexit.register(print, 'ended', flush=True)"
FAIL = "from server.commands import cli; cli.main = lambda **_: 1 / 0"
EXIT = "import sys; from server.commands import cli; cli.main = lambda **_: sys.exit(7)"
LIST = """
import os
descriptors = sorted(os.listdir("/proc/self/fd"))  # one of them is that of the listing
print(os.getsid(0) == os.getpid(), descriptors, flush=True)
os._exit(0)
"""
TELL = """
import sys
from server.commands import serve
serve.open_site = lambda *_, timing, **__: sys.exit(print(timing.patrol_s, timing.poll_s, flush=True))
"""
LEFT = """
import sys, time
from pathlib import Path
from tests.servers import start, wait
server = start(Path(sys.argv[1]), int(sys.argv[2]), "--workers=1")
wait(server, int(sys.argv[2]))
print(server.pid, flush=True)
time.sleep(60)
"""


def test_a_fork_has_its_own_environment_arguments_output_and_status(tmp_path: Path) -> None:
    output = []
    for environment in ({"KEPT": "given"}, {}):
        process = start(tmp_path, 1, "--quiet", first=PRINT, environment=environment)
        output.append(process.communicate(timeout=20))
        assert process.returncode == 3
    assert output == [("given 7\n", ""), ("None 7\n", "")]


def test_nothing_that_a_server_sets_is_there_for_the_next(tmp_path: Path) -> None:
    assert start(tmp_path, 1, first=KEEP, output=subprocess.DEVNULL).wait(20) == 0
    look = "import os, sys, server.errors; sys.exit(hasattr(server.errors, 'KEPT') or 'KEPT' in os.environ)"
    assert start(tmp_path, 1, first=look, output=subprocess.DEVNULL).wait(20) == 0


def test_a_fork_ends_with_its_exit_handlers_and_status(tmp_path: Path) -> None:
    for first, status, printed, error in (
        (END, 1, "ended\n", "is not a site"),
        (FAIL, 1, "", "ZeroDivisionError"),
        (EXIT, 7, "", ""),
    ):
        process = start(tmp_path, 1, first=first)
        output, errors = process.communicate(timeout=20)
        assert (process.returncode, output) == (status, printed)
        assert error in errors


def test_a_fork_leads_a_session_and_keeps_no_descriptor_of_the_zygote(tmp_path: Path) -> None:
    assert start(tmp_path, 1, first=LIST).communicate(timeout=20)[0] == "True ['0', '1', '2', '3']\n"


def test_a_fork_has_the_timing_that_it_is_given(tmp_path: Path) -> None:
    write(tmp_path, SITE)
    timing = replace(Timing(), patrol_s=7.5)
    output, _ = start(tmp_path, free_port(), first=TELL, timing=timing).communicate(timeout=20)
    assert output.splitlines()[0] == f"7.5 {Timing().poll_s}"


def test_a_process_that_runs_has_no_status_and_one_that_is_killed_its_signal(tmp_path: Path) -> None:
    write(tmp_path, SITE)
    port = free_port()
    process = start(tmp_path, port, "--workers=1")
    wait(process, port)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    with pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=0.01)
    process.kill()
    assert process.wait(10) == -signal.SIGKILL
    process.terminate()  # has no effect, because the process has ended
    stop(process)


def test_servers_end_with_the_process_that_had_them_started(tmp_path: Path) -> None:
    write(tmp_path, SITE)
    command = [sys.executable, "-c", LEFT, str(tmp_path), str(free_port())]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout
        server = int(tests.stdout.readline())
        zygote = int(Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[1])
        assert os.getsid(server) == server
        tests.kill()
    until(lambda: not is_alive(server) and not is_alive(zygote))
