"""Tests of `bifolio mcp` as a process: its standard streams, its options, and its end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from server.api.mcp.json_rpc import INVALID_REQUEST, PARSE_ERROR
from server.api.serving.bodies import MAX_BODY_BYTES
from tests.git import commit_all
from tests.mcp.agents import LEGACY, MODERN, error_in, message
from tests.mcp.sites import FILES
from tests.servers import ROOT
from tests.sites import write


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    write(root, FILES)
    return root


def run(root: Path, *options: str, sent: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    code = "from server.commands.cli import main; main()"
    command = [sys.executable, "-c", code, "mcp", "--site", str(root), *options]
    return subprocess.run(command, input=sent, capture_output=True, timeout=60, check=False, cwd=ROOT)


def lines(*messages: object) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in messages)


def test_it_answers_each_line_and_ends_with_the_input(root: Path) -> None:
    call = message(
        "tools/call", {"name": "get", "arguments": {"type": "tag", "documentId": "sea"}}, MODERN, "a"
    )
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    sent = lines(call) + b"\n{\n" + b"x" * (MAX_BODY_BYTES + 9) + b"\n" + lines(initialized)
    done = run(root, sent=sent + json.dumps(message("ping", {}, LEGACY, 2)).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    called, broken, long, pinged = map(json.loads, done.stdout.splitlines())
    assert called["id"] == "a"
    assert called["result"]["structuredContent"]["data"]["name"] == "Sea"
    assert broken["error"]["code"] == PARSE_ERROR
    assert long["error"]["code"] == INVALID_REQUEST
    assert pinged == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_it_remembers_the_version_of_initialize(root: Path) -> None:
    call = message(
        "tools/call", {"name": "get", "arguments": {"type": "tag", "documentId": "sea"}}, LEGACY, 2
    )
    for version, structured in ((LEGACY, True), ("2024-11-05", False)):
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        done = run(root, sent=lines(message("initialize", params, LEGACY), call))
        begun, called = map(json.loads, done.stdout.splitlines())
        assert begun["result"]["protocolVersion"] == version
        assert ("structuredContent" in called["result"]) == structured


def test_without_a_token_the_agent_is_the_public(root: Path) -> None:
    call = {"name": "find", "arguments": {"type": "article"}}
    statuses = []
    for options in ((), ("--as", "editor"), ("--as", "read-only")):
        done = run(root, *options, sent=lines(message("tools/call", call, MODERN)))
        result = json.loads(done.stdout)["result"]
        failed = result.get("isError") and error_in(result["content"][0]["text"])[1]
        statuses.append(failed["error"]["status"] if failed else 200)
    assert statuses == [403, 200, 200]


def test_a_write_without_a_server_tells_how_to_review_it(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, ".gitignore": ".bifolio/\n"})
    commit_all(tmp_path)
    operation = {"action": "update", "type": "article", "documentId": "fog", "data": {"title": "Mist"}}
    call = message("tools/call", {"name": "write", "arguments": {"operations": [operation]}}, MODERN)
    done = run(tmp_path, "--as", "full-access", sent=lines(call))
    content = json.loads(done.stdout)["result"]["structuredContent"]
    assert content["review"] == {
        "mergeCommand": f"git merge {content['commit']}",
        "startServer": f"bifolio serve --site {tmp_path}",
        "path": "/studio/site/-/branches/agent/agent.full-access",
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--as", "editr"), 'there is no role "editr". Did you mean "editor"?'),
        (("--token-env", "NO_SUCH"), "the environment variable NO_SUCH is not set"),
        (("--token-env", "PATH"), "the environment variable PATH does not contain a valid token"),
        (("--token-env", "NO_SUCH", "--as", "editor"), "--token-env and --as can't be used together"),
    ],
)
def test_wrong_options_are_told_in_one_line(root: Path, options: tuple[str, ...], says: str) -> None:
    assert "NO_SUCH" not in os.environ
    done = run(root, *options)
    assert (done.returncode, done.stdout) == (1, b"")
    assert says in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
