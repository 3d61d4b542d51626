"""The shortest possible soak test, with its table and its list of broken promises."""

import pytest

from tests.soak.ledger import EVENTS, LOST, Ledger
from tests.soak.model import GONE, Model
from tests.soak.run import soak


def test_one_machine_keeps_its_promises_through_a_kill_and_other_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    held = soak(0, 1, ["one"], ["SIGKILL of a worker", "settings changed"], longest_s=0.5)
    said = capsys.readouterr().out
    assert held == 0, said
    for fault in ("none", "SIGKILL of a worker", "settings changed"):
        [row] = [line for line in said.splitlines() if line.startswith(f"| {fault} ")]
        assert row.count(" held ") == 9
    assert "seed 1, commit " in said


def test_what_fell_is_counted_for_the_fault_of_its_round_and_told() -> None:
    ledger = Ledger(7)
    first = ledger.began + ledger.now
    ledger.begin("one machine", [])
    ledger.begin("one machine", ["full disk"])
    ledger.violated(LOST, "note a is gone")
    ledger.violated(EVENTS, "event 3 is missing", first)
    _, rows = ledger.table()
    assert [row[:3] for row in rows] == [["none", "1", "held"], ["full disk", "1", "failed 1"]]
    assert [row[6] for row in rows] == ["failed 1", "held"]
    lost, missing = ledger.account("/logs")
    assert "one machine, after: full disk; seed 7; logs in /logs\n    note a is gone" in lost
    assert "after: none" in missing


def test_the_model_knows_what_a_document_may_be() -> None:
    model = Model()
    model.acknowledge("notes", "a", {"title": "x", "updatedAt": "1"}, 0.0)
    known = model.of("notes")["a"]
    assert known.allows({"title": "x", "updatedAt": "1", "id": 1})
    assert not known.allows({"title": "x", "updatedAt": "0"})
    assert not known.allows(None)
    model.doubt("notes", "a", {"title": "y"})
    assert known.allows({"title": "y", "updatedAt": "2"})
    assert known.allows({"title": "x", "updatedAt": "1"})
    assert not known.allows({"title": "z"})
    model.doubt("notes", "a", None)
    assert known.allows(None)
    model.acknowledge("notes", "a", GONE, 1.0)
    assert known.allows(None)
    assert not known.allows({"title": "y"})
