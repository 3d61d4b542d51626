"""Tests of `.ci/run` with a `make` that only prints: how it ends after a failed phase or an interruption, and
what it prints at its end.
"""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.waiting import until

ROOT = Path(__file__).parent.parent
MAKE = """#!/bin/sh
echo making $1
[ "$1" = "$FAILING" ] && exit 2
[ "$1" = "$WAITING" ] && touch waiting && sleep 60 && touch went-on
[ "$1" = check ] && sleep 0.3
[ "$1" = test ] && [ ! -e npm-made ] && echo "no packages" && exit 2
[ "$1" = npm ] && sleep 0.3 && touch npm-made
[ "$1" = test ] && echo "12 passed in 3.00s"
[ "$1" = test-studio ] && echo "99 passed in 9.00s"
echo made $1
exit 0
"""


def run(folder: Path, failing: str = "", waiting: str = "") -> subprocess.CompletedProcess[str]:
    """Run a copy of `.ci/run` in a folder. The target `failing` fails."""
    with begin(folder, failing, waiting) as process:
        output, errors = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def begin(folder: Path, failing: str, waiting: str) -> "subprocess.Popen[str]":
    programs = {folder / "programs/make": MAKE, folder / ".venv/bin/python": "#!/bin/sh\n"}
    for path, text in programs.items():
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci")
    environment = {"PATH": f"{folder / 'programs'}:/usr/bin:/bin", "FAILING": failing, "WAITING": waiting}
    return subprocess.Popen(
        [folder / ".ci/run"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_run_ends_with_the_seconds_of_phases_and_the_closing_line_of_pytest(tmp_path: Path) -> None:
    done = run(tmp_path)
    lines = done.stdout.splitlines()
    phases = [line.removeprefix("== ") for line in lines if line.startswith("== ") and "make" in line]
    assert_whole(lines)
    assert phases.index("make test-dist") < phases.index(
        "make check"
    )  # make check starts earlier, but takes longer
    table = lines[lines.index("== seconds by phase") + 1 :]
    assert done.returncode == 0, done
    assert [line.split(" s  ")[1] for line in table[:-1]] == [*phases, "in all"]
    assert {"make check", "make test", "make test-studio"} <= set(phases)
    assert table[-1] == "12 passed in 3.00s"


def test_packages_from_npm_are_installed_before_tests_need_them(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert "no packages" not in done.stdout
    assert done.returncode == 0


def assert_whole(lines: list[str]) -> None:
    """Require that the output of each phase is contiguous, even if phases run in parallel."""
    begins = [number for number, line in enumerate(lines) if line.startswith("== ")]
    for number in begins[:-1]:
        name = lines[number].split("make ")[1].split()[0]
        assert lines[number + 1] == f"making {name}"
        end = next(n for n, line in enumerate(lines) if n > number and line.startswith("-- "))
        assert lines[end - 1] == f"made {name}"


def test_a_phase_that_fails_ends_the_one_beside_it(tmp_path: Path) -> None:
    began = time.monotonic()
    done = run(tmp_path, "test-dist", "check")
    assert done.returncode == 2
    assert done.stdout.splitlines()[-1] == "-- make test-dist: FAILED with status 2"
    assert "making check" not in done.stdout
    assert time.monotonic() - began < 50
    assert not (tmp_path / "went-on").exists()


@pytest.mark.parametrize("failing", ["check", "test", "test-studio"])
def test_a_phase_that_fails_ends_the_run(tmp_path: Path, failing: str) -> None:
    done = run(tmp_path, failing)
    *_, last_made, seconds, failure = done.stdout.splitlines()
    assert done.returncode == 2
    assert last_made == f"making {failing}"
    assert seconds.startswith(f"-- make {failing}: ")
    assert failure == f"-- make {failing}: FAILED with status 2"


def test_an_interrupted_run_prints_the_output_of_running_phases_and_ends_them(tmp_path: Path) -> None:
    with begin(tmp_path, "", "test") as process:
        until((tmp_path / "waiting").exists)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "== make test: interrupted\nmaking test\n" in output
    assert not (tmp_path / "went-on").exists()
