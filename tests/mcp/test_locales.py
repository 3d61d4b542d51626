"""Tests of what agents learn about locales, because they would take a shared value for a translation."""

import pytest

from tests.git import commit_all, git
from tests.mcp.agents import Agent, valid, write
from tests.mcp.sites import Make
from tests.sites import STRING, Api, collection, documents, translated
from tests.sites import write as write_files

TYPES = {
    **collection("note", {"title": translated(STRING), "topic": STRING}, drafts=True, localized=True),
    **collection("writer", {"name": STRING}),
    **documents("notes", Rain={"title": "Rain", "topic": "weather"}),
    "content/notes/Rain.fr.md": "---\ntitle: Pluie\ntopic: weather\n---\n",
    **documents("writers", ida={"name": "Ida"}),
}


@pytest.fixture
def api(make_site: Make) -> Api:
    api = make_site()
    write_files(api.root, TYPES)
    commit_all(api.root)
    api.site.refresh()
    return api


def test_a_schema_says_which_attributes_all_locales_share(api: Api) -> None:
    called = Agent(api).call("get_schema", type="note")
    assert called.content["localized"] == ["title"]
    assert called.content["sharedByAllLocales"] == ["topic"]
    assert "localized" not in Agent(api).call("get_schema", type="writer").content


def test_a_write_for_one_locale_says_which_values_it_changed_in_all(api: Api) -> None:
    operation = {"action": "update", "type": "note", "documentId": "Rain", "locale": "fr"}
    both = write(Agent(api), operation | {"data": {"title": "Averse", "topic": "temps"}})
    assert both.content["note"] == ("All locales share note.topic, so this changed the other locales, too.")
    assert "note" not in write(Agent(api), operation | {"data": {"title": "Pluie"}}).content
    del operation["locale"]
    assert "note" not in write(Agent(api), operation | {"data": {"topic": "sky"}}).content


def test_a_check_of_a_branch_finds_shared_values_that_differ(api: Api) -> None:
    git(api.root, "checkout", "-qb", "sky")
    write_files(api.root, documents("notes", Rain={"title": "Rain", "topic": "sky"}))
    commit_all(api.root)
    git(api.root, "checkout", "-q", "main")
    write_files(api.root, {"content/notes/Rain.fr.md": "---\n# Pluie\n# (2)\ntopic: weather\n---\n"})
    [problem] = valid("check", Agent(api).call("check", branch="sky")).data
    assert (problem["rule"], problem["path"], problem["line"]) == ("shared", "content/notes/Rain.fr.md", 3)
    assert Agent(api).call("check").data == []


@pytest.mark.parametrize("tool", ["find", "get", "write", "restore"])
def test_a_type_without_translations_has_no_other_locale(api: Api, tool: str) -> None:
    wanted = {"type": "writer", "documentId": "ida", "locale": "fr"}
    operation = {"action": "update", **wanted, "data": {"name": "Idée"}}
    arguments = {
        "find": {"type": "writer", "locale": "fr"},
        "get": wanted,
        "write": {"operations": [operation]},
        "restore": {**wanted, "version": "HEAD"},
    }
    called = Agent(api).call(tool, **arguments[tool])
    assert called.error["status"] == 400
    assert 'type writer have no translations; omit "locale" (found "fr")' in called.line
    assert not Agent(api).call("get", type="writer", documentId="ida", locale="en").is_error


def test_an_id_that_differs_in_case_is_suggested_first(api: Api) -> None:
    write_files(api.root, documents("writers", **{f"Rust-1.{n}.0": {"name": "x"} for n in range(1, 130)}))
    commit_all(api.root)
    api.site.refresh()
    called = Agent(api).call("get", type="writer", documentId="rust-1.128.0")
    assert 'There is no writer "rust-1.128.0"; did you mean "Rust-1.128.0"?' in called.line


def test_a_document_that_is_missing_may_be_on_the_own_branch(api: Api) -> None:
    agent = Agent(api)
    assert "at:" not in agent.call("get", type="writer", documentId="bo").line
    made = write(agent, {"action": "create", "type": "writer", "data": {"name": "Bo"}})
    [new] = made.content["documents"]
    missing = agent.call("get", type="writer", documentId=new["documentId"])
    assert 'To read your own branch, use at: "agent/full"' in missing.line
    assert (
        agent.call("get", type="writer", documentId=new["documentId"], at="agent/full").data["name"] == "Bo"
    )
