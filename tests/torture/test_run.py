"""`python -m tests.torture` with parts made for this test: how often it runs them, and its exit status."""

from pathlib import Path

import pytest

from tests.torture import __main__ as torture
from tests.torture.__main__ import Part


def run(parts: list[Part], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(torture, "PARTS", parts)
    monkeypatch.setattr(torture, "soak", lambda seconds, seed: seconds > 0)
    monkeypatch.setattr("sys.argv", ["torture", "--minutes", "0"])
    return torture.main()


def part(folder: Path, name: str, body: str) -> Part:
    path = folder / f"test_{name}.py"
    path.write_text(f"import os\n\ndef test_it():\n    {body}\n")
    return Part(name, [str(path)])


def test_each_part_is_run_once_at_least_and_a_failure_is_told_with_its_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    held = part(tmp_path, "held", "assert int(os.environ['BIFOLIO_SEED']) > 0")
    fell = part(tmp_path, "fell", "assert False")
    assert run([held, fell], monkeypatch) == 1
    assert (held.runs, held.held, held.failed) == (1, 1, [])
    assert (fell.runs, fell.held, len(fell.failed)) == (1, 0, 1)
    assert f"BIFOLIO_SEED={fell.failed[0]} is what 'fell' failed with" in capsys.readouterr().out


def test_parts_that_hold_end_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run([part(tmp_path, "held", "pass")], monkeypatch) == 0
