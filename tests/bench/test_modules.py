"""What measures Quire uses what Quire has."""

import importlib
from pathlib import Path

import pytest

import bench

MODULES = sorted(path.stem for path in Path(bench.__file__).parent.glob("[!_]*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_every_module_can_be_imported(name: str) -> None:
    assert importlib.import_module(f"bench.{name}").__doc__
