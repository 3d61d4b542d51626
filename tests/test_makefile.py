"""`make serve` in a new clone, on a machine without a network."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SAYS = (
    "make: the first time needs the network, to install packages into .venv/: "
    "pip can't reach its index (.venv/pip.log)"
)


def test_a_first_start_without_a_network_says_so_in_one_line(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("server", ".ci"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    away = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    own = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "MAKE"))
    }
    done = subprocess.run(
        ["make", "serve", f"PYTHON={sys.executable}"],
        cwd=tmp_path,
        env={**own, **away},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2, done.stderr
    assert [line for line in done.stderr.splitlines() if "***" not in line] == [SAYS]
    assert not (tmp_path / ".venv" / ".ready").exists()


def test_processes_of_a_target_keep_compiled_modules() -> None:
    done = subprocess.run(
        ["make", "-s", "--eval=has:; @env", "has"],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "PATH=" in done.stdout
    assert "PYTHONDONTWRITEBYTECODE" not in done.stdout
