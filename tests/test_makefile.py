"""Tests of the Makefile: the targets that CI runs, and `make serve` on a machine without a network."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import CHOICES
from tests.torture.__main__ import PARTS

ROOT = Path(__file__).parent.parent
SAYS = (
    "make: pip can't reach its package index (details in .venv/pip.log). "
    "Connect to the network and run make again."
)

TARGETS = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M)
CI = (ROOT / ".ci/run").read_text()
# Targets that .ci/run does not name, with the target that covers them or the reason.
NOT_BY_NAME = {
    "serve": "test_a_first_start_without_a_network_says_so_in_one_line runs it as far as the installation",
    "test-quick": "make test runs all of these tests",
    "torture": "make test runs the tests of all parts once; tests/torture and tests/soak run the rest of it",
    "dist": "make test-dist needs it",
    "audit": "it needs pypi.org; make test-licences does the rest of it",
    "vendor": "make test-vendor does the same into another folder",
    "bench": "make test-bench runs it at its smallest size",
    "bench-worst": "make test-bench runs it at its smallest size",
    "bench-check": "make test-bench runs it at its smallest size",
    "bench-size": "make test-bench runs it at its smallest size",
    "bench-studio": "make test-bench runs it at its smallest size",
    "bench-images": "make test-bench runs it at its smallest size",
    "bench-peers": "make test-bench runs it with a second Bifolio in place of Strapi",
    "peer-diff": "tests/bench/ runs what needs no other server; the others take minutes to install",
    "docs-site": "tests/test_docs_site.py serves the same site and front page",
    "format": "make check runs the same program without writing",
    "clean": "it removes what the other targets made",
    "help": "test_make_alone_lists_every_target runs it",
}


def test_ci_runs_every_target_or_it_is_known_why_not() -> None:
    run = set(re.findall(r"\bmake ([a-z-]+)", CI))
    assert run.isdisjoint(NOT_BY_NAME)
    assert run | NOT_BY_NAME.keys() == set(TARGETS)


def test_make_alone_lists_every_target() -> None:
    done = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"^  make ([a-z-]+) ", done.stdout, re.M) == TARGETS
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert sorted(phony.split()) == sorted(TARGETS)


@pytest.mark.parametrize(
    "package", [(), ("P=",), ("P=inedx",), ("P=conftest.py",), ("P=index/test_nothing.py",)]
)
def test_quick_tests_need_a_package_that_exists(package: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["make", "-s", "-n", "test-quick", *package], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "say which: make test-quick P=index; packages: " in done.stderr
    packages = done.stderr.partition("packages: ")[2].removesuffix(".  Stop.\n").split()
    assert set(packages) == {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert not done.stdout


@pytest.mark.parametrize("package", ["index", "tools/importer", "tools/test_init.py"])
def test_quick_tests_of_one_package(package: str) -> None:
    done = subprocess.run(
        ["make", "-s", "-n", "test-quick", f"P={package}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f" tests/{package} tests/test_architecture.py" in done.stdout


def test_the_commands_of_the_readme_and_the_docs_are_targets() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = re.sub(r"<!-- table.*?<!-- end of table -->", "", page.read_text(), flags=re.DOTALL)
        found = re.findall(r"^(?:\$ )?make ([a-z-]+)|`make ([a-z-]+)", text, re.M)
        named = {one or other for one, other in found}
        assert named or page.parent != ROOT
        assert named <= set(TARGETS), page


def test_each_benchmark_of_the_makefile_is_one_that_test_bench_runs() -> None:
    named = re.findall(r"python -m bench (\w+)$", (ROOT / "Makefile").read_text(), re.M)
    assert named
    assert set(named) <= set(CHOICES)


def test_make_test_runs_the_tests_of_every_part_of_torture() -> None:
    paths = [ROOT / path for part in PARTS for path in part.tests]
    files = [path for path in paths if path.is_file() and path.name.startswith("test_")]
    folders = [path for path in paths if path.is_dir() and list(path.glob("test_*.py"))]
    assert {*files, *folders} == set(paths)


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
        timeout=600,
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
