"""Runs the scenes of a soak test one after another, and prints the table of faults and promises."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.tables import show
from tests.servers import ROOT
from tests.soak.ledger import Ledger
from tests.soak.scene import one_machine, three_machines

SCENES = {"one": one_machine, "three": three_machines}


def soak(
    seconds: float,
    seed: int,
    scenes: Sequence[str] = tuple(SCENES),
    faults: Sequence[str] | None = None,
    longest_s: float = 60.0,
) -> int:
    """Run scenes for `seconds` in total. Return the exit status, which is 1 if a promise was broken.

    With `faults`, only these faults are injected, each at least once. Otherwise, all faults of the scene are
    injected.
    """
    ledger, folder = Ledger(seed), Path(tempfile.mkdtemp(prefix="bifolio-soak-"))
    try:
        for name in scenes:
            (folder / name).mkdir()
            _run_scene(name, folder / name, ledger, seconds / len(scenes), faults, longest_s)
    except KeyboardInterrupt:
        ledger.notes.append(
            f"interrupted after {ledger.now / 60:.0f} minutes; the last round was not checked"
        )
    _print_report(ledger, folder)
    if not ledger.violations:
        shutil.rmtree(folder, ignore_errors=True)
    return int(bool(ledger.violations))


def _run_scene(
    name: str, folder: Path, ledger: Ledger, seconds: float, faults: Sequence[str] | None, longest_s: float
) -> None:
    try:
        with SCENES[name](folder, ledger, ledger.seed, longest_s) as scene:
            if faults is not None:
                scene.faults = {name: scene.faults[name] for name in faults if name in scene.faults}
            scene.soak(seconds, each_once=faults is not None)
    except pytest.skip.Exception as reason:
        ledger.notes.append(f"{name}: skipped, {reason}")


def _print_report(ledger: Ledger, folder: Path) -> None:
    head, rows = ledger.table()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    show("Faults and promises", head, rows, "\n".join(ledger.notes))
    for line in ledger.account(str(folder)):
        print(line)
    print(
        f"\nseed {ledger.seed}, commit {commit}, {datetime.now(UTC):%Y-%m-%d}, {ledger.now / 60:.0f} minutes"
    )
