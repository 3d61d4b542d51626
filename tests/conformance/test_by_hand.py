"""Tests with the recorded conversations, in which all writes are made by hand in files: reads must return the
same.

`test_recorded` sends the writes through the API. Here, `editor` makes the writes, the site notices the
changed files, and the read requests must return the recorded responses.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from qs_codec import decode

from tests.conformance.compare import ABSENT, dig, fill
from tests.conformance.conversation import Conversation, Step, read_scenario
from tests.conformance.editor import Editor

SCENARIOS = (
    "fields", "filters", "sortpage", "populate", "locales", "drafts", "access",
    "v4", "protocol", "spec", "collection", "single", "relations", "query2",
)  # fmt: skip
READS = ("GET", "HEAD")


class HandEditing(Conversation):
    """A conversation in which an editor changes files instead of sending write requests."""

    def __init__(self, scenario: dict[str, Any], root: Path) -> None:
        super().__init__(scenario, root)
        self.editor = Editor(root)

    def edit(self, step: Step) -> None:
        """Make a recorded write by hand, unless the recording shows that the write failed."""
        if step["expect"]["status"] >= 400:
            return
        path, body = fill(step["path"], self.variables), fill(_body(step), self.variables)
        document_id = self.editor.play(step["method"], path, body)
        for name in step.get("capture", {}):
            self.variables[name] = document_id
        recorded = dig(step["expect"], "body.data.documentId")
        if document_id and recorded is not ABSENT:
            assert self.comparison.same_document(recorded, document_id), step["name"]
        self.site.refresh()


def _body(step: Step) -> Any:
    """Return the data of a write, which is an object, a JSON string or a form with brackets."""
    if "raw" not in step:
        return step.get("body")
    return json.loads(step["raw"]) if step["raw"].startswith("{") else decode(step["raw"])


@pytest.mark.parametrize("name", SCENARIOS)
def test_reading_what_an_editor_wrote(name: str, tmp_path: Path) -> None:
    scenario = read_scenario(name)
    conversation = HandEditing(scenario, tmp_path)
    wrong, compared = [], 0
    for number, step in enumerate(scenario["steps"]):
        if step["method"] not in READS:
            conversation.edit(step)
            continue
        compared += 1
        if differences := conversation.play(step):
            what = "; ".join(differences)
            wrong.append(f"{number} {step['name']} ({step['method']} {step['path']}): {what}")
    assert not wrong, "\n".join(wrong)
    assert compared
    errors = [str(p) for p in conversation.site.problems if p.severity == "error"]
    assert errors == []
