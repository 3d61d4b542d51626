"""Tests that the benchmarks use only names that Bifolio defines."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import bench

ROOT = Path(bench.__file__).parent.parent
MODULES = sorted(path.stem for path in Path(bench.__file__).parent.glob("[!_]*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_every_module_can_be_imported(name: str) -> None:
    assert importlib.import_module(f"bench.{name}").__doc__


@pytest.mark.parametrize("module", ["bench", "bench.peer", "bench.differential", "docs"])
def test_each_command_shows_its_help(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: python -m" in done.stdout
