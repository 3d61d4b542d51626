"""Tests of deploy/systemd: systemd accepts the unit, and the unit restricts the service."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "deploy/systemd/bifolio@.service"
MOST_EXPOSED = 20  # out of 100; a service without restrictions has 96
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with a program and a user that exist on this machine."""
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text(), flags=re.M)
    path = tmp_path / "bifolio@.service"
    path.write_text(re.sub(r"^(User|Group)=.*", r"\1=root", text, flags=re.M))
    return path


def analyze(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *options], capture_output=True, text=True, check=False)


@needs_systemd
def test_systemd_takes_the_unit(unit: Path) -> None:
    done = analyze("verify", str(unit))
    assert (done.returncode, [line for line in done.stderr.splitlines() if unit.name in line]) == (0, [])


@needs_systemd
def test_the_service_may_do_little(unit: Path) -> None:
    done = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", "--no-pager", str(unit))
    assert done.returncode == 0, done.stdout[-300:]


def test_a_server_that_has_handed_its_port_on_stays_ended() -> None:
    text = UNIT.read_text()
    assert " --takeover " in text
    assert "\nRestart=on-failure\n" in text
