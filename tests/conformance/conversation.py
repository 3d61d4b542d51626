"""Replay of one recorded conversation, on a site of real files that is empty at first.

scenarios/ and site/ are exact copies of the recordings. To update them, replace them as a whole and edit
nothing. The recordings themselves mark the responses that differ on purpose.
"""

import base64
import json
import shutil
import uuid
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from server.api.app import create_app
from server.auth.accounts import Accounts
from tests.conformance.compare import ABSENT, Comparison, dig, fill
from tests.sites import opened

HERE = Path(__file__).parent
SCENARIOS = sorted(path.stem for path in (HERE / "scenarios").glob("*.json"))
Step = dict[str, Any]


def read_scenario(name: str) -> dict[str, Any]:
    """Return a scenario: its topic, its access rights, and its steps in order."""
    scenario: dict[str, Any] = json.loads((HERE / "scenarios" / f"{name}.json").read_text())
    return scenario


def site_yaml(scenario: dict[str, Any]) -> str:
    """Return the site.yaml for a scenario as JSON, which is valid YAML."""
    roles: dict[str, dict[str, list[str]]] = {"public": {}, "authenticated": {}}
    for role, permissions in scenario.get("access", {}).get("roles", {}).items():
        for subject, action in (permission.split(".") for permission in permissions):
            roles[role].setdefault(subject, []).append(action)
    paging = scenario.get("populate_with_pagination", "allow")
    locales = {"default": "en", "available": ["en", "fr", "de"]}
    return json.dumps({"locales": locales, "api": {"populate_with_pagination": paging}, "roles": roles})


class Conversation:
    """A scenario that is being replayed."""

    def __init__(self, scenario: dict[str, Any], root: Path) -> None:
        shutil.copytree(HERE / "site" / "content-types", root / "content-types")
        (root / "content").mkdir()
        (root / "site.yaml").write_text(site_yaml(scenario))
        self.site, self.comparison = opened(root), Comparison()
        accounts = Accounts(root)
        self.client: FlaskClient = create_app(self.site, accounts).test_client()
        made = {"full": ("full-access", ()), "ro": ("read-only", ())}
        custom = scenario.get("access", {}).get("tokens", {})
        made |= {name: ("custom", permissions) for name, permissions in custom.items()}
        self.tokens = {n: accounts.create_token(n, kind, may) for n, (kind, may) in made.items()}
        self.variables: dict[str, Any] = {}

    def play(self, step: Step) -> list[str]:
        """Send the request of one step. Return how the response differs from the recorded one."""
        headers = dict(fill(step.get("headers", {}), self.variables))
        who = step.get("as", "full")
        if who != "none":
            token = self.tokens.get(who) or self.variables.get(who, "missing")
            headers["Authorization"] = f"Bearer {token}"
        data, kind = _payload(step, self.variables)
        if kind:
            headers.setdefault("Content-Type", kind)
        path = fill(step["path"], self.variables)
        answer = self.client.open(path, method=step["method"], headers=headers, data=data)
        body = _parsed(answer.get_data())
        for name, where in step.get("capture", {}).items():
            if (value := dig(body, where)) is not ABSENT:
                self.variables[name] = value
        missing = [f"no header {h}" for h in step.get("expect_headers", []) if h not in answer.headers]
        return self.comparison.differences(step["expect"], answer.status_code, body) + missing


def _payload(step: Step, variables: dict[str, Any]) -> tuple[bytes | None, str | None]:
    """Return the body of a request and its content type."""
    if "form" in step:
        return _multipart(fill(step["form"], variables))
    if "raw" in step:
        return step["raw"].encode(), "application/json"
    if "body" in step:
        return json.dumps(fill(step["body"], variables)).encode(), "application/json"
    return None, None


def _multipart(form: dict[str, Any]) -> tuple[bytes, str]:
    boundary, out = uuid.uuid4().hex, b""
    for key, value in form.get("fields", []):
        head = f'Content-Disposition: form-data; name="{key}"'
        out += f"--{boundary}\r\n{head}\r\n\r\n{value}\r\n".encode()
    for key, name, kind, data in form.get("files", []):
        head = f'Content-Disposition: form-data; name="{key}"; filename="{name}"\r\nContent-Type: {kind}'
        out += f"--{boundary}\r\n{head}\r\n\r\n".encode() + base64.b64decode(data) + b"\r\n"
    return out + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def _parsed(text: bytes) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return {"<text>": text.decode("utf-8", "replace")[:200]}
