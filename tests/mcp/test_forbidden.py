"""Tests of what a tool says about a missing permission."""

from typing import Any

import pytest

from tests.mcp.agents import Agent, retitle
from tests.mcp.sites import Make

READER = ("article.find", "article.findOne", "tag.find", "branch.find", "branch.create", "branch.update")


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("get", {"type": "article", "documentId": "fog", "status": "draft"}, "permission article.readDraft"),
        ("get", {"type": "tag", "documentId": "sea"}, "does not have the permission tag.findOne"),
        ("history", {}, "does not have the permission history.read"),
        ("read_file", {"path": "content/articles/fog.json"}, "does not have the permission source.read"),
        ("upload", {"data": "aa==", "name": "a.gif"}, "does not have the permission upload.upload"),
        ("get", {"type": "home"}, "has no permission for the content type home"),
        ("write", {"operations": [retitle("Mist")]}, "has no permission to write documents"),
    ],
)
def test_a_refused_tool_names_the_permission_and_the_token(
    make_site: Make, tool: str, arguments: dict[str, Any], says: str
) -> None:
    api = make_site()
    api.token("desk", may=READER)
    called = Agent(api, "desk").call(tool, **arguments)
    assert called.error["status"] == 403
    assert "(403 ForbiddenError). The token desk " in called.line
    assert called.line.endswith(f"{says}. site_info lists your permissions")


def test_a_write_without_a_permission_for_its_type_names_it(make_site: Make) -> None:
    api = make_site()
    api.token("desk", may=[*READER, "tag.update"])
    called = Agent(api, "desk").call("write", operations=[retitle("Mist")])
    assert "token desk does not have the permission article.update" in called.line


def test_the_public_learns_no_more_than_before(make_site: Make) -> None:
    called = Agent(make_site(), "public").call("get", type="article", documentId="fog")
    assert called.error["details"] == {}
    assert called.line == "Forbidden (403 ForbiddenError). site_info lists your permissions"
