"""Tests of the warning about drafts that a write publishes."""

from typing import Any

import pytest

from tests.git import commit_all
from tests.mcp.agents import Agent, retitle, write
from tests.mcp.sites import EDITOR, Make
from tests.sites import Api, documents
from tests.sites import write as write_files

DRAFT = {
    path.replace(".json", ".draft.json"): text
    for path, text in documents("articles", fog={"title": "Haar"}, rain={"title": "Rain"}).items()
}


@pytest.fixture
def api(make_site: Make) -> Api:
    api = make_site()
    write_files(api.root, DRAFT)
    commit_all(api.root)
    api.site.refresh()
    return api


def test_a_publication_without_a_draft_says_so(api: Api) -> None:
    called = write(Agent(api), {"action": "publish", "type": "article", "documentId": "tide"})
    assert called.content["note"].startswith("Nothing to publish")
    called = write(Agent(api), {"action": "publish", "type": "article", "documentId": "fog"})
    assert "note" not in called.content


def test_an_update_that_publishes_drafts_says_so(api: Api) -> None:
    agent = Agent(api)
    body: dict[str, Any] = {"action": "update", "type": "article", "data": {"rating": 5}}
    called = write(
        agent,
        *({**body, "documentId": name} for name in ("fog", "rain", "tide")),
        {**body, "documentId": "fog"},
    )
    note = called.content["note"]
    assert "published changes in the drafts of article/fog, article/rain, and removed these" in note
    assert "status: draft" in note
    at = {"at": "agent/full"}
    assert agent.call("get", type="article", documentId="fog", **at).data["title"] == "Haar"
    assert "note" not in write(agent, *({**body, "documentId": name} for name in ("fog", "tide"))).content


def test_other_writes_do_not_warn(api: Api) -> None:
    agent = Agent(api)
    draft = {**retitle("Mist"), "status": "draft"}
    for operation in (
        draft,
        {"action": "publish", "type": "article", "documentId": "fog"},
        retitle("A", "tide"),
    ):
        assert "note" not in write(agent, operation).content
    home = {"action": "update", "type": "home", "data": {"title": "Start"}}
    assert "note" not in write(agent, home).content


def test_drafts_that_the_caller_may_not_read_are_neither_named_nor_published(api: Api) -> None:
    api.token("editor", may=[*EDITOR, "branch.find", "branch.create", "branch.update"])
    editor = Agent(api, "editor")
    assert "note" not in write(editor, retitle("Mist")).content
    draft = api.get("/api/articles/fog?status=draft&at=agent/editor").data
    assert draft["title"] == "Mist"
