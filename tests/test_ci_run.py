"""`.ci/run` with a `make` that only prints: what it does when a phase fails, and how its output ends."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKE = """#!/bin/sh
echo making $1
[ "$1" = "$FAILING" ] && exit 2
[ "$1" = test ] && echo "12 passed in 3.00s"
[ "$1" = test-studio ] && echo "99 passed in 9.00s"
exit 0
"""


def run(folder: Path, failing: str = "") -> subprocess.CompletedProcess[str]:
    """Run a copy of `.ci/run` in a folder, where one target of make may fail."""
    programs = {folder / "programs/make": MAKE, folder / ".venv/bin/python": "#!/bin/sh\n"}
    for path, text in programs.items():
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci")
    environment = {"PATH": f"{folder / 'programs'}:/usr/bin:/bin", "FAILING": failing}
    return subprocess.run([folder / ".ci/run"], env=environment, capture_output=True, text=True, check=False)


def test_a_run_ends_with_the_seconds_of_phases_and_the_closing_line_of_pytest(tmp_path: Path) -> None:
    done = run(tmp_path)
    lines = done.stdout.splitlines()
    phases = [line.removeprefix("== ") for line in lines if line.startswith("== ") and "make" in line]
    table = lines[lines.index("== seconds by phase") + 1 :]
    assert done.returncode == 0, done
    assert [line.split(" s  ")[1] for line in table[:-1]] == [*phases, "in all"]
    assert {"make check", "make test", "make test-studio"} <= set(phases)
    assert table[-1] == "12 passed in 3.00s"


@pytest.mark.parametrize("failing", ["check", "test", "test-studio"])
def test_a_phase_that_fails_ends_the_run(tmp_path: Path, failing: str) -> None:
    done = run(tmp_path, failing)
    *_, last_made, seconds, failure = done.stdout.splitlines()
    assert done.returncode == 2
    assert last_made == f"making {failing}"
    assert seconds.startswith(f"-- make {failing}: ")
    assert failure == f"-- make {failing}: FAILED with status 2"
