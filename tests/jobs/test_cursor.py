"""Cursors of jobs: if its process is killed, a job continues after its saved position."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from server.jobs.job import Cursor
from tests.servers import ROOT
from tests.waiting import until

# A job that appends the numbers from 1 to a file. It writes each number before it moves its cursor.
JOB = """
import sys
from pathlib import Path
from server.jobs.job import Cursor
from server.jobs.job import Job
from server.jobs.runner import Runner

class Count(Job):
    name = "count"

    def __init__(self, root):
        self.cursor, self.file = Cursor(root, self.name), (root / "counted").open("a", buffering=1)

    def run(self, context):
        number = int(self.cursor.read() or 0) + 1
        self.file.write(f"{number}\\n")
        self.cursor.move(str(number))
        return 0.0

runner = Runner([Count(Path(sys.argv[1]))])
runner.start()
sys.stdin.read()
"""


def test_a_position_is_kept(tmp_path: Path) -> None:
    cursor = Cursor(tmp_path, "job")
    assert cursor.read() == ""
    cursor.move("12 äö")
    cursor.move("13")
    assert Cursor(tmp_path, "job").read() == "13"
    assert Cursor(tmp_path, "other").read() == ""
    assert [path.name for path in (tmp_path / ".bifolio/jobs").iterdir()] == ["job"]


def test_a_position_that_can_not_be_moved_stays(tmp_path: Path) -> None:
    cursor = Cursor(tmp_path, "job")
    (tmp_path / ".bifolio/jobs/job").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        cursor.move("1")
    assert [path.name for path in (tmp_path / ".bifolio/jobs").iterdir()] == ["job"]


def test_a_job_that_is_killed_leaves_nothing_out(tmp_path: Path) -> None:
    counted, kills = tmp_path / "counted", 5
    for _ in range(kills):
        before = len(counted.read_text().split()) if counted.exists() else 0
        command = [sys.executable, "-c", JOB, str(tmp_path)]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as process:
            until(lambda: counted.exists() and len(counted.read_text().split()) > before + 20)  # noqa: B023
            os.kill(process.pid, signal.SIGKILL)
    numbers = [int(number) for number in counted.read_text().split()]
    assert sorted(set(numbers)) == list(range(1, max(numbers) + 1))
    # A number may be written twice if the process was killed before it moved the cursor.
    assert len(numbers) - len(set(numbers)) <= kills
    assert int(Cursor(tmp_path, "count").read()) in (numbers[-1], numbers[-1] - 1)
