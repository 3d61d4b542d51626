"""Tests that replay the recorded conversations (scenarios/) against the app with real files.

Every step must match the recording by the rules in `compare`.
"""

from pathlib import Path

import pytest

from tests.conformance.conversation import SCENARIOS, Conversation, read_scenario


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_are_as_recorded(name: str, tmp_path: Path) -> None:
    scenario = read_scenario(name)
    conversation = Conversation(scenario, tmp_path)
    wrong = [
        f"{step['name']} ({step['method']} {step['path']}): {'; '.join(differences)}"
        for step in scenario["steps"]
        if (differences := conversation.play(step))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_recording_is_replayed() -> None:
    assert sum(len(read_scenario(name)["steps"]) for name in SCENARIOS) == 1097
