"""Tests of what a tool says about a missing permission, an unknown key and invalid values."""

from typing import Any

import pytest

from tests.mcp.agents import Agent, retitle
from tests.mcp.sites import Make
from tests.sites import collection
from tests.sites import write as write_files

ARTICLES = {"type": "article"}
NO_TAG = {"action": "create", "type": "tag", "data": {}}
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


def test_a_permission_that_a_content_type_has_taken_is_told(make_site: Make) -> None:
    api = make_site()
    write_files(api.root, collection("source", {"name": "string"}))
    api.site.refresh()
    api.token("desk", may=[*READER, "source.read"])
    called = Agent(api, "desk").call("read_file", path="content/articles/fog.json")
    assert 'permission source.read, because a content type is named "source"; rename it' in called.line


def test_the_public_learns_no_more_than_before(make_site: Make) -> None:
    called = Agent(make_site(), "public").call("get", type="article", documentId="fog")
    assert called.error["details"] == {}
    assert called.line == "Forbidden (403 ForbiddenError). site_info lists your permissions"


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("find", {**ARTICLES, "sort": "-title"}, 'did you mean "title:desc"?'),
        ("find", {**ARTICLES, "sort": ["titel desc"]}, 'did you mean "title:desc"?'),
        (
            "find",
            {"type": "article", "filters": {"title": {"$like": "x"}}},
            "operators are $and, $or, $not, $eq",
        ),
        (
            "find",
            {"type": "article", "filters": {"writer": "x"}},
            "the attributes are title, rating, body, tags",
        ),
        ("find", {**ARTICLES, "locale": "fr"}, "have no translations"),
        (
            "write",
            {"operations": [NO_TAG, {**NO_TAG, "data": {"colour": 1}}]},
            "operations[1]: Invalid key colour",
        ),
        ("write", {"operations": [{**NO_TAG, "type": "article"}]}, "operations[0]: title: "),
        ("write", {"operations": [{**NO_TAG, "type": "upload"}]}, 'written with the tool "upload"'),
        ("search", {"q": " "}, "no word to search for"),
        ("diff", {"type": "article", "documentId": "fog", "branch": "x"}, 'use "from" and "to"'),
    ],
)
def test_an_error_names_what_is_allowed_instead(
    make_site: Make, tool: str, arguments: dict[str, Any], says: str
) -> None:
    called = Agent(make_site()).call(tool, **arguments)
    assert called.is_error
    assert says in called.line


def test_attributes_that_the_caller_can_not_see_are_not_named(make_site: Make) -> None:
    called = Agent(make_site()).call("find", type="tag", filters={"colour": "x"})
    assert "the attributes are name" in called.line
    assert "secret" not in called.line


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("find", {"type": "article", "locale": "xx"}),
        ("find", {"type": "home"}),
        ("get", {"type": "article"}),
        ("get_schema", {"type": "articles"}),
        ("write", {"operations": [{"action": "create", "type": "home", "data": {}}]}),
        ("restore", {"type": "home", "version": "HEAD", "status": "draft"}),
    ],
)
def test_errors_tell_nothing_about_a_hidden_type(
    make_site: Make, tool: str, arguments: dict[str, Any]
) -> None:
    called = Agent(make_site(), "public").call(tool, **arguments)
    assert called.is_error
    assert called.line.startswith(
        ("Forbidden (403", "operations[0]: Forbidden (403", "You have no permission")
    )
    assert "single" not in called.line
    assert "article " not in called.line
