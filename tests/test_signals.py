"""Tests of test runs that were started with ignored signals, as `nohup` and some CI runners do."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.servers import ROOT

SIGNALLED = (
    "tests/api/test_supervisor.py::test_a_signal_ends_all",
    "tests/api/test_supervisor.py::test_a_second_ctrl_c_ends_it_at_once",
    "tests/commands/test_cli.py::test_a_server_answers_until_it_is_told_to_end",
)


def _ignore() -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def test_servers_heed_signals_that_the_test_run_inherited_as_ignored(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path / 'run'}",
    ]
    done = subprocess.run(
        [*command, *SIGNALLED],
        cwd=ROOT,
        preexec_fn=_ignore,
        restore_signals=False,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
