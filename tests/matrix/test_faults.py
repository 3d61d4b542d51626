"""The matrix detects faults that are planted in the product: see `tests.matrix.faults`."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.matrix.cases import Case, make_cases
from tests.matrix.faults import FAULTS, Fault
from tests.matrix.matrix import Logged, Matrix, logging_to, set_up_process
from tests.matrix.sites import IDENTITIES, Family, families, two_kinds
from tests.torture import LONG

SOME = tuple(identity for identity in IDENTITIES if identity.name in ("public", "clerk", "trying", "custom"))

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


def notice(
    fault: Fault, made: list[Family], cases: Sequence[Case], planting: pytest.MonkeyPatch
) -> tuple[str, str]:
    """Return the matrix's first finding with a planted fault, and its finding for the same request without
    the fault.

    A long run tries all requests, not only those that the fault names.
    """
    chosen = [case for case in cases if LONG or case.request.operation in fault.operations]
    if not fault.operations:
        chosen = []
    fault.plant(planting)
    found, case = find_first(made, chosen)
    planting.undo()
    return found, find_first(made, [case] if case else [])[0]


def find_first(made: list[Family], cases: Sequence[Case]) -> tuple[str, Case | None]:
    """Return the matrix's first finding, and the request that caused it.

    Without requests, the matrix checks what webhooks send. All caches are empty at the start.
    """
    for family in made:
        for twin in family.twins:
            twin.renew()
    with logging_to(Logged()) as logged:
        matrix = Matrix(made, logged)
        for case in cases:
            matrix.ask_case(case)
            if matrix.found:
                return matrix.found[0], case
        if not cases:
            matrix.judge_webhooks()
    return next(iter(matrix.found), ""), None


def test_planted_faults_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_up_process(monkeypatch)
    cases, unnoticed, after = make_cases(), [], []
    with families(tmp_path, two_kinds, IDENTITIES if LONG else SOME) as made:
        for fault in FAULTS:
            with pytest.MonkeyPatch.context() as planting:
                found, without = notice(fault, made, cases, planting)
            if not found:
                unnoticed.append(fault.name)
            if without:
                after.append(f"{fault.name}: {without}")
    assert not unnoticed
    assert not after
