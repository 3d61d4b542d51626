"""What is different on purpose is written down once, in deviations.json, and everything else refers to it."""

import json
import re
from pathlib import Path

from tests.conformance.conversation import SCENARIOS, read_scenario

ENTRIES = json.loads((Path(__file__).parent / "deviations.json").read_text(encoding="utf-8"))


def test_every_deviation_of_a_recorded_step_has_an_entry() -> None:
    steps = [step for name in SCENARIOS for step in read_scenario(name)["steps"]]
    told = {step["deviation"] for step in steps if "deviation" in step}
    assert told == {text for entry in ENTRIES for text in entry.get("said", [])}


def test_an_entry_says_what_both_do_and_why() -> None:
    for entry in ENTRIES:
        assert all(entry[key] for key in ("name", "about", "strapi", "quire", "why")), entry
    names = [entry["name"] for entry in ENTRIES]
    assert len(set(names)) == len(names)


def test_patterns_can_be_read() -> None:
    for entry in ENTRIES:
        matches = entry.get("match", [])
        for match in matches if isinstance(matches, list) else [matches]:
            assert set(match) <= {"request", "where", "kind", "there", "here", "instead"}
            for key, pattern in match.items():
                for one in [pair[0] for pair in pattern] if key == "instead" else [pattern]:
                    re.compile(one)
