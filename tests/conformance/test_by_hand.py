"""The recorded conversations, with every write done by hand in files: what is read must be the same.

`test_recorded.py` sends the writes through the API; here an editor makes them (`editor`), the
site takes notice, and the reading requests must be answered as recorded.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from server.api.app import create_app
from server.auth.accounts import Accounts
from server.site.site import Site
from tests.conformance.compare import ABSENT, Comparison, dig, fill
from tests.conformance.editor import Editor

HERE = Path(__file__).parent
SCENARIOS = (
    "fields", "filters", "sortpage", "populate", "locales", "drafts", "access",
    "v4", "protocol", "spec", "collection", "single", "relations",
)  # fmt: skip
READS = ("GET", "HEAD")

_STALE = "the reference keeps a stale value of an attribute that its locales share"
_CASE = "recorded on SQLite, where $contains does not tell upper from lower case; ours does"
_ORDER = "the derived side of a relation is in order of creation, not of connecting"
# Reading steps that differ, and why; a step that is here and does not differ fails as well.
KNOWN = {
    ("locales", "which one changed: en"): _STALE,
    ("locales", "as draft"): _STALE,
    ("locales", "de draft"): _STALE,
    ("populate", "with filters, sort and fields"): _CASE,
    ("relations", "inverse sees it"): _ORDER,
}


def site_yaml(scenario: dict[str, Any]) -> str:
    """The site.yaml of a scenario: JSON is YAML."""
    roles: dict[str, dict[str, list[str]]] = {}
    for role, permissions in scenario.get("access", {}).get("roles", {}).items():
        for subject, action in (permission.split(".") for permission in permissions):
            roles.setdefault(role, {}).setdefault(subject, []).append(action)
    paging = scenario.get("populate_with_pagination", "allow")
    locales = {"default": "en", "available": ["en", "fr", "de"]}
    return json.dumps({"locales": locales, "api": {"populate_with_pagination": paging}, "roles": roles})


class Conversation:
    """One scenario under way."""

    def __init__(self, scenario: dict[str, Any], root: Path) -> None:
        shutil.copytree(HERE / "site" / "content-types", root / "content-types")
        (root / "content").mkdir()
        (root / "site.yaml").write_text(site_yaml(scenario))
        self.site, self.editor, self.comparison = Site(root), Editor(root), Comparison()
        self.site.load()
        accounts = Accounts(root)
        self.client: FlaskClient = create_app(self.site, accounts).test_client()
        made = {"full": ("full-access", ()), "ro": ("read-only", ())}
        custom = scenario.get("access", {}).get("tokens", {})
        made |= {name: ("custom", permissions) for name, permissions in custom.items()}
        self.tokens = {n: accounts.create_token(n, kind, may) for n, (kind, may) in made.items()}
        self.variables: dict[str, Any] = {}

    def play(self, step: dict[str, Any]) -> list[str]:
        """Do one step; what of the answer is not as recorded."""
        if step["method"] in READS:
            return self.read(step)
        if step["expect"]["status"] < 400:
            path, body = fill(step["path"], self.variables), fill(step.get("body"), self.variables)
            document_id = self.editor.play(step["method"], path, body)
            for name in step.get("capture", {}):
                self.variables[name] = document_id
            recorded = dig(step["expect"], "body.data.documentId")
            if document_id and recorded is not ABSENT:
                assert self.comparison.same_document(recorded, document_id), step["name"]
            self.site.refresh()
        return []

    def read(self, step: dict[str, Any]) -> list[str]:
        headers = dict(fill(step.get("headers", {}), self.variables))
        who = step.get("as", "full")
        if who != "none":
            headers["Authorization"] = f"Bearer {self.tokens[who]}"
        answer = self.client.open(fill(step["path"], self.variables), method=step["method"], headers=headers)
        text = answer.get_data(as_text=True)
        body = json.loads(text) if text else None
        for name, where in step.get("capture", {}).items():
            if (found := dig(body, where)) is not ABSENT:
                self.variables[name] = found
        missing = [f"no header {h}" for h in step.get("expect_headers", []) if h not in answer.headers]
        return self.comparison.differences(step["expect"], answer.status_code, body) + missing


@pytest.mark.parametrize("name", SCENARIOS)
def test_reading_what_an_editor_wrote(name: str, tmp_path: Path) -> None:
    scenario = json.loads((HERE / "scenarios" / f"{name}.json").read_text())
    conversation = Conversation(scenario, tmp_path)
    wrong = []
    for number, step in enumerate(scenario["steps"]):
        found = conversation.play(step)
        if bool(found) != ((name, step["name"]) in KNOWN):
            what = "; ".join(found) or "does not differ any more: take it off KNOWN"
            wrong.append(f"{number} {step['name']} ({step['method']} {step['path']}): {what}")
    assert not wrong, "\n".join(wrong)
    errors = [str(p) for p in conversation.site.problems if p.severity == "error"]
    assert errors == []
