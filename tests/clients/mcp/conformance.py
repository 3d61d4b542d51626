"""The server scenarios of the Model Context Protocol's conformance tests (`make test-clients`).

`conformance.yaml` lists the scenarios that pass, and the checks that fail with the reason for each. Most
scenarios call a tool that only the project's own example server has. To write the lists again, run
`python -m tests.clients.mcp.conformance`; then add the reasons.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci import skipped
from tests.clients.npm import install, missing_node
from tests.mcp.sites import FILES
from tests.servers import free_port, serving
from tests.sites import write

HERE = Path(__file__).parent
KNOWN = HERE / "conformance.yaml"
PROGRAM = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
REVISIONS = ("2026-07-28", "2025-11-25")
MIN_NODE = (20, 6)  # has module.register
RUN_S, SCENARIO_MS = 300.0, 20_000
_RUN = re.compile(r"server-(.+)-20\d\d-\d\d-\d\dT.+")
# The suite sends no token.
SETTINGS = FILES["site.yaml"].replace("  public:\n", "  public:\n    article: [find, findOne]\n")


def run(url: str, revision: str) -> Mapping[str, list[str]]:
    """Run the scenarios of a revision. Return the checks that failed, by scenario."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--url", url, "--requirements", revision, "--output-dir", folder]
        command = [
            "node",
            "--import",
            "./node20.mjs",
            PROGRAM,
            "server",
            *options,
            "--timeout",
            str(SCENARIO_MS),
        ]
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=RUN_S, check=False)
        found = {}
        for file in sorted(Path(folder).glob("*/checks.json")):
            match = _RUN.fullmatch(file.parent.name)
            assert match, file
            checks = json.loads(file.read_text())
            found[match[1]] = sorted({each["id"] for each in checks if each["status"] == "FAILURE"})
    assert found, done.stderr
    return found


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if (reason := missing_node(MIN_NODE) or install(HERE)) is not None:
        skipped("test-clients", reason)
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("site")
    write(root, {**FILES, "site.yaml": SETTINGS})
    with serving(root, free_port()) as url:
        yield f"{url}/mcp"


@pytest.mark.parametrize("revision", REVISIONS)
def test_scenarios_pass_or_do_not_apply(url: str, revision: str) -> None:
    known = yaml.safe_load(KNOWN.read_text())
    expected: dict[str, list[str]] = {scenario: [] for scenario in known[revision]["pass"]}
    for scenario, row in known[revision]["fail"].items():
        assert row["why"] in known["reasons"], scenario
        expected[scenario] = row["checks"]
    assert run(url, revision) == expected


def write_lists(url: str) -> None:
    """Write the results of the scenarios into the list, and keep the reasons that it contains."""
    known: dict[str, Any] = yaml.safe_load(KNOWN.read_text())
    for revision in REVISIONS:
        found, old = run(url, revision), known.get(revision, {}).get("fail", {})
        rows = {
            scenario: {"why": old.get(scenario, {}).get("why", "?"), "checks": checks}
            for scenario, checks in found.items()
            if checks
        }
        known[revision] = {"pass": [one for one, checks in found.items() if not checks], "fail": rows}
    KNOWN.write_text(yaml.safe_dump(known, sort_keys=False, width=110, allow_unicode=True))


if __name__ == "__main__":
    if (reason := missing_node(MIN_NODE) or install(HERE)) is not None:
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {**FILES, "site.yaml": SETTINGS})
        with serving(Path(folder), free_port()) as address:
            write_lists(f"{address}/mcp")
