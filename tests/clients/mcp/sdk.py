"""The official TypeScript SDK of the Model Context Protocol with a running server (`make test-clients`)."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from server.api.mcp.tools.table import BY_NAME
from tests.ci import skipped
from tests.clients.mcp.conformance import HERE, SETTINGS
from tests.clients.npm import install, missing_node
from tests.mcp.agents import error_in
from tests.mcp.sites import FILES
from tests.servers import free_port, serving
from tests.sites import write

MIN_NODE = (18, 0)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if (reason := missing_node(MIN_NODE) or install(HERE)) is not None:
        skipped("test-clients", reason)
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("site")
    write(root, {**FILES, "site.yaml": SETTINGS})
    with serving(root, free_port()) as url:
        yield f"{url}/mcp"


def call(url: str, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Call tools one after the other, after the SDK has listed them."""
    sent = json.dumps({"url": url, "calls": calls})
    done = subprocess.run(
        ["node", "sdk.mjs"], cwd=HERE, input=sent, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_the_error_of_each_tool_reaches_the_client(url: str) -> None:
    found = call(url, *((name, {"nonsense": 1}) for name in BY_NAME))
    for name, result in zip(BY_NAME, found, strict=True):
        assert result.get("isError"), (name, result)
        line, body = error_in(result["text"])
        assert "(400 ValidationError)" in line
        assert body["error"]["name"] == "ValidationError"


def test_the_error_of_the_rest_api_reaches_the_client(url: str) -> None:
    [result, good] = call(url, ("get", {"type": "article", "documentId": "none"}), ("site_info", {}))
    assert error_in(result["text"])[1]["error"]["status"] == 404
    assert not good["isError"]
