"""Tests with the client of the `mcp` package: both doors, in both versions of the protocol."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ResourceTemplateReference, TextContent, TextResourceContents

from server.auth.accounts import Accounts
from tests.git import commit_all, git
from tests.mcp.agents import LEGACY, MODERN, retitle
from tests.mcp.sites import FILES, SETTINGS
from tests.servers import ROOT, free_port, serving
from tests.sites import write
from tests.waiting import until

MODES = {MODERN: MODERN, LEGACY: "legacy"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    write(root, {**FILES, ".gitignore": ".bifolio/\n"})
    commit_all(root)
    return root


@pytest.fixture(scope="module")
def token(root: Path) -> str:
    accounts = Accounts(root)
    made = accounts.create_token("agent", "full-access")
    accounts.close()
    return made


@pytest.fixture(scope="module")
def url(root: Path, token: str) -> Iterator[str]:
    with serving(root, free_port()) as url:
        yield url


def command(root: Path, *options: str, **variables: str) -> StdioServerParameters:
    """Return the parameters of a client that starts `bifolio mcp`."""
    code = "from server.commands.cli import main; main()"
    arguments = ["-c", code, "mcp", "--site", str(root), *options]
    return StdioServerParameters(command=sys.executable, args=arguments, env=variables, cwd=ROOT)


@asynccontextmanager
async def by_http(url: str, token: str, version: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=20) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=MODES[version]) as client:
            yield client


async def use(client: Client, version: str) -> dict[str, Any]:
    """Use a site as an agent does, and return what was found."""
    assert client.session.protocol_version == version
    tools = await client.list_tools()
    found = await client.call_tool("find", {"type": "article", "fields": ["title"], "sort": "title"})
    failed = await client.call_tool("get", {"type": "article", "documentId": "none"})
    info = await client.call_tool("site_info", {})
    assert not info.is_error
    await use_resources(client)
    return {
        "tools": [tool.name for tool in tools.tools],
        "titles": [one["title"] for one in found.structured_content["data"]],
        "failed": failed.is_error,
        "caller": info.structured_content["caller"],
    }


async def use_resources(client: Client) -> None:
    """List and read resources, complete an id, and fetch a prompt."""
    listed = [str(one.uri) for one in (await client.list_resources()).resources]
    assert {"bifolio://article/fog", "bifolio://schema/article"} <= {*listed}
    [content] = (await client.read_resource("bifolio://article/fog")).contents
    assert isinstance(content, TextResourceContents)
    assert '"title": "Fog"' in content.text
    [template, _] = (await client.list_resource_templates()).resource_templates
    reference = ResourceTemplateReference(uri=template.uri_template)
    argument = {"name": "documentId", "value": "t"}
    completed = await client.complete(reference, argument, {"type": "article"})
    assert completed.completion.values == ["tide"]
    arguments = {"type": "article", "documentId": "fog", "locale": "fr"}
    [message] = (await client.get_prompt("translate", arguments)).messages
    assert isinstance(message.content, TextContent)
    assert 'into the locale "fr"' in message.content.text


def check(used: dict[str, Any], caller: dict[str, str]) -> None:
    assert used["tools"][:5] == ["site_info", "get_schema", "find", "get", "search"]
    assert (used["titles"], used["failed"]) == (["Fog", "Tide", "Wind"], True)
    assert used["caller"] == caller


@pytest.mark.parametrize("version", MODES)
def test_over_http(url: str, token: str, version: str) -> None:
    async def run() -> dict[str, Any]:
        async with by_http(url, token, version) as client:
            return await use(client, version)

    check(asyncio.run(run()), {"kind": "token", "name": "agent"})


@pytest.mark.parametrize("version", MODES)
def test_over_stdio_with_a_role(root: Path, version: str) -> None:
    async def run() -> dict[str, Any]:
        async with Client(command(root, "--as", "full-access"), mode=MODES[version]) as client:
            return await use(client, version)

    check(asyncio.run(run()), {"kind": "agent", "name": "full-access"})


def test_over_stdio_the_last_write_is_committed_at_the_end(tmp_path: Path) -> None:
    settings = SETTINGS.replace("mcp: {", "mcp: {write: direct, ") + "git: {commit: 10m}\n"
    write(tmp_path, {**FILES, "site.yaml": settings, ".gitignore": ".bifolio/\n"})
    commit_all(tmp_path)

    async def run() -> Any:
        async with Client(command(tmp_path, "--as", "full-access"), mode=MODES[MODERN]) as client:
            return await client.call_tool("write", {"operations": [retitle("Mist")]})

    assert asyncio.run(run()).structured_content["commit"] == "pending"
    until(lambda: "Mist" in git(tmp_path, "show", "HEAD:content/articles/fog.json"))


def test_over_stdio_with_a_token_beside_a_server(root: Path, token: str, url: str) -> None:
    async def run() -> dict[str, Any]:
        parameters = command(root, "--token-env", "AGENT_TOKEN", AGENT_TOKEN=token)
        async with Client(parameters, mode=MODERN) as client:
            used = await use(client, MODERN)
            (root / "content/articles/zeal.json").write_text('{"title": "Zeal"}')
            found = await client.call_tool("get", {"type": "article", "documentId": "zeal"})
            assert found.structured_content["data"]["title"] == "Zeal"
            (root / "content/articles/zeal.json").unlink()
            return used

    check(asyncio.run(run()), {"kind": "token", "name": "agent"})


@pytest.mark.parametrize("version", MODES)
def test_both_doors_write_to_branches_of_one_site(root: Path, token: str, url: str, version: str) -> None:
    served = (root / "content/articles/fog.json").read_text()

    async def retitle(client: Client, title: str) -> Any:
        operation = {"action": "update", "type": "article", "documentId": "fog", "data": {"title": title}}
        done = await client.call_tool("write", {"operations": [operation]})
        assert not done.is_error, done.content
        return done.structured_content

    async def run() -> tuple[str, str]:
        local = Client(command(root, "--as", "full-access"), mode=MODES[version])
        async with by_http(url, token, version) as http, local as stdio:
            ours, theirs = await retitle(http, f"A {version}"), await retitle(stdio, f"B {version}")
            assert "url" in ours["review"]
            assert "url" not in theirs["review"]
            for client, branch, title in ((stdio, ours, "A"), (http, theirs, "B")):
                arguments = {"type": "article", "documentId": "fog", "at": branch["branch"]}
                found = await client.call_tool("get", arguments)
                assert found.structured_content["data"]["title"] == f"{title} {version}"
            return ours["branch"], theirs["branch"]

    assert asyncio.run(run()) == ("agent/agent", "agent/agent.full-access")
    assert (root / "content/articles/fog.json").read_text() == served
    assert git(root, "log", "-1", "--format=%an", "agent/agent.full-access") == "agent (full-access)\n"
