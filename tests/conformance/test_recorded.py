"""The recorded conversations (scenarios/), replayed against the app with real files.

`compare` says what is equal; `known` lists the steps that are not yet.
"""

from pathlib import Path

import pytest

from tests.conformance.conversation import SCENARIOS, Conversation, read_scenario
from tests.conformance.known import KNOWN_DIFFERENCES


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_are_as_recorded(name: str, tmp_path: Path) -> None:
    scenario, known = read_scenario(name), KNOWN_DIFFERENCES.get(name, set())
    conversation = Conversation(scenario, tmp_path)
    wrong = []
    for step in scenario["steps"]:
        differences = conversation.play(step)
        if bool(differences) != (step["name"] in known):
            what = "; ".join(differences) or "is as recorded now: take it off the list of known differences"
            wrong.append(f"{step['name']} ({step['method']} {step['path']}): {what}")
    assert not wrong, "\n".join(wrong)


def test_every_recording_is_replayed() -> None:
    assert sum(len(read_scenario(name)["steps"]) for name in SCENARIOS) == 1097


def test_a_known_difference_is_one_step() -> None:
    assert KNOWN_DIFFERENCES.keys() <= set(SCENARIOS)
    for name, known in KNOWN_DIFFERENCES.items():
        steps = [step["name"] for step in read_scenario(name)["steps"]]
        assert {step: steps.count(step) for step in known} == dict.fromkeys(known, 1), name
