"""Tests of resources: their list, their texts, and the completion of their ids."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from server.api.mcp.json_rpc import INVALID_PARAMS
from server.api.mcp.resources import PAGE_RESOURCES
from server.api.mcp.uris import DOCUMENT_TEMPLATE, SCHEMA_TEMPLATE
from tests.mcp.agents import LEGACY, Agent
from tests.mcp.sites import FILES, SETTINGS
from tests.sites import STRING, Api, collection, documents, make, schema

FOG = "---\ntitle: Fog\n# a comment\n---\nFog comes in.\n"
NOTE_FILES = {
    **collection("note", {"title": STRING, "text": "richtext"}, drafts=True),
    "content/notes/fog.md": FOG,
    "content/notes/a b.md": "---\ntitle: Space\n---\n",
    "content/notes/fog.draft.md": "---\ntitle: Draft\n---\n",
    "content/notes/dotted.md": "---\ntitle: Dotted\ndocumentId: b.md\n---\n",
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    api = make(tmp_path_factory.mktemp("site"), {**FILES, **NOTE_FILES})
    api.token("nobody")
    api.token("reader", may=["note.find", "note.findOne"])
    yield api
    api.accounts.close()


@pytest.fixture
def agent(api: Api) -> Agent:
    return Agent(api)


def text_of(agent: Agent, uri: str) -> tuple[str, str]:
    """Return the media type and text of a resource."""
    found = agent.ask("resources/read", {"uri": uri})
    assert (found["cacheScope"], found["ttlMs"]) == ("private", 0)
    [content] = found["contents"]
    assert content["uri"] == uri
    return content["mimeType"], content["text"]


def test_a_document_is_the_text_of_its_file(agent: Agent) -> None:
    assert text_of(agent, "bifolio://note/fog") == ("text/markdown", FOG)
    assert text_of(agent, "bifolio://notes/fog") == ("text/markdown", FOG)
    assert "Space" in text_of(agent, "bifolio://note/a%20b")[1]
    assert "Draft" in text_of(agent, "bifolio://note/fog?status=draft")[1]
    assert text_of(agent, "bifolio://home") == ("application/json", '{"title": "Home"}')


def test_who_may_not_read_files_gets_the_document_as_markdown(api: Api) -> None:
    media_type, text = text_of(Agent(api, "reader"), "bifolio://note/fog")
    shown = api.get("/api/notes/fog", "reader", headers={"Accept": "text/markdown"})
    assert (media_type, text) == ("text/markdown", shown.raw.decode())
    assert text.endswith("Fog comes in.\n")
    assert "a comment" not in text
    assert "secret" not in text_of(Agent(api, "public"), "bifolio://tag/sea")[1]


def test_a_schema_is_that_of_the_tool(agent: Agent) -> None:
    media_type, text = text_of(agent, "bifolio://schema/article")
    assert media_type == "application/schema+json"
    assert json.loads(text) == agent.call("get_schema", type="article").content


@pytest.mark.parametrize(
    "uri",
    [
        "bifolio://note/none",
        "bifolio://none/fog",
        "bifolio://note/fog/",
        "bifolio://note/fog%2F..%2Ftide",
        "bifolio://note/../tag/sea",
        "bifolio://note",
        "bifolio://home/x",
        "bifolio://schema/none",
        "bifolio://schema",
        "bifolio://",
        "file:///etc/passwd",
        "",
    ],
)
def test_a_resource_that_does_not_exist(api: Api, uri: str) -> None:
    answer = Agent(api).post("resources/read", {"uri": uri}, headers={"Mcp-Name": uri})
    assert (answer.status, answer.body["error"]["code"]) == (200, INVALID_PARAMS)
    assert answer.body["error"]["data"]["uri"] == uri
    old = Agent(api, version=LEGACY).post("resources/read", {"uri": uri})
    assert old.body["error"]["code"] == -32002


@pytest.mark.parametrize("uri", [None, 7, "bifolio://note/" + "a" * 3000, "bifolio://note/fog?at=main"])
def test_a_uri_that_is_invalid(api: Api, uri: Any) -> None:
    answer = Agent(api, version=LEGACY).post("resources/read", {"uri": uri})
    assert answer.body["error"]["code"] == INVALID_PARAMS


def test_who_may_not_read_a_document_may_not_read_its_file(api: Api) -> None:
    for who in ("nobody", "public"):
        for uri in ("bifolio://note/fog", "bifolio://schema/note", "bifolio://note/fog?status=draft"):
            answer = Agent(api, who).post("resources/read", {"uri": uri})
            assert "error" in answer.body, (who, uri)
    draft = Agent(api, "reader").post("resources/read", {"uri": "bifolio://note/fog?status=draft"})
    assert draft.body["error"]["data"]["error"]["status"] == 403


def test_an_id_does_not_stand_for_a_document_as_markdown(api: Api) -> None:
    answer = Agent(api, "reader").post("resources/read", {"uri": "bifolio://note/fog.md"})
    assert answer.body["error"]["data"]["error"]["status"] == 404
    assert "Dotted" in text_of(Agent(api, "reader"), "bifolio://note/b.md")[1]


def test_a_title_is_cut(tmp_path_factory: pytest.TempPathFactory) -> None:
    files = {
        "site.yaml": SETTINGS,
        "content-types/note.json": schema("note", {"title": STRING}).replace("Note", "Note" * 100),
        **documents("notes", a={"title": "x" * 60_000}, b={"title": "y" * 200}),
    }
    api = make(tmp_path_factory.mktemp("site"), files)
    titles = [each["title"] for each in all_resources(Agent(api))]
    assert titles == ["Note" * 49 + "Not… (content type)", "x" * 199 + "…", "y" * 200]
    api.accounts.close()


@pytest.mark.parametrize("text", ["y" * 20_000, '"' * 6000])
def test_a_text_that_is_too_long_is_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    files = {
        "site.yaml": "mcp: {enabled: true, max_bytes: 16 kB}\n",
        **collection("note", {"text": "text"}),
        **documents("notes", long={"text": text}),
    }
    api = make(tmp_path_factory.mktemp("site"), files)
    answer = Agent(api).post("resources/read", {"uri": "bifolio://note/long"})
    assert "mcp.max_bytes" in answer.body["error"]["message"]
    api.accounts.close()


def all_resources(agent: Agent) -> list[dict[str, Any]]:
    found, cursor = [], {}
    while True:
        page = agent.ask("resources/list", cursor)
        assert len(page["resources"]) <= PAGE_RESOURCES
        found += page["resources"]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


def test_the_list_names_schemas_and_published_documents(agent: Agent, api: Api) -> None:
    found = {each["uri"]: each.get("title") for each in all_resources(agent)}
    assert found["bifolio://schema/note"] == "Note (content type)"
    assert (found["bifolio://article/fog"], found["bifolio://home"]) == ("Fog", "Home")
    assert "bifolio://note/a%20b" in found
    for uri in found:
        text_of(agent, uri)
    public = [each["uri"] for each in all_resources(Agent(api, "public"))]
    assert public == ["bifolio://schema/tag", "bifolio://tag/sea", "bifolio://tag/sky"]
    assert all_resources(Agent(api, "nobody")) == []


def test_the_list_has_pages(tmp_path_factory: pytest.TempPathFactory) -> None:
    types = {path: text for i in range(50) for path, text in collection(f"t{i:02d}", {"a": "string"}).items()}
    many = documents("t07s", **{f"d{i:03d}": {"a": "x"} for i in range(250)})
    api = make(tmp_path_factory.mktemp("site"), {"site.yaml": SETTINGS, **types, **many})
    uris = [each["uri"] for each in all_resources(Agent(api))]
    assert len(uris) == len({*uris}) == 300
    api.accounts.close()


@pytest.mark.parametrize("cursor", ["", "a", "1", "1.b", "1.2.3", "-1.0", "1." + "9" * 20, 7, []])
def test_a_wrong_cursor_is_refused(agent: Agent, cursor: Any) -> None:
    answer = agent.post("resources/list", {"cursor": cursor})
    assert answer.body["error"]["code"] == INVALID_PARAMS


def test_templates(agent: Agent) -> None:
    found = agent.ask("resources/templates/list")
    assert [each["uriTemplate"] for each in found["resourceTemplates"]] == [
        DOCUMENT_TEMPLATE,
        SCHEMA_TEMPLATE,
    ]


# --- completion -----------------------------------------------------------------------------------


def completed(agent: Agent, name: str, typed: str, template: str = DOCUMENT_TEMPLATE, **chosen: str) -> Any:
    params = {
        "ref": {"type": "ref/resource", "uri": template},
        "argument": {"name": name, "value": typed},
        "context": {"arguments": chosen},
    }
    return agent.ask("completion/complete", params)["completion"]


def test_ids_are_completed(agent: Agent, api: Api) -> None:
    found = {"values": ["tide"], "total": 1, "hasMore": False}
    assert completed(agent, "documentId", "T", type="article") == found
    assert completed(agent, "documentId", "", type="article")["values"] == ["fog", "tide", "wind"]
    assert completed(agent, "documentId", "", type="home")["values"] == []
    assert completed(agent, "documentId", "")["values"] == []
    assert completed(Agent(api, "public"), "documentId", "", type="article")["values"] == []


def test_other_arguments_are_completed(agent: Agent, api: Api) -> None:
    assert completed(agent, "type", "A", SCHEMA_TEMPLATE)["values"] == ["article"]
    assert completed(Agent(api, "public"), "type", "")["values"] == ["tag"]
    assert completed(agent, "locale", "")["values"] == ["en", "fr"]
    assert completed(agent, "status", "d")["values"] == ["draft"]


def test_at_most_100_values_are_returned(tmp_path_factory: pytest.TempPathFactory) -> None:
    notes = documents("notes", **{f"d{i:03d}": {"a": "x"} for i in range(150)})
    files = {"site.yaml": SETTINGS, **collection("note", {"a": "string"}), **notes}
    api = make(tmp_path_factory.mktemp("site"), files)
    found = completed(Agent(api), "documentId", "d", type="note")
    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 150, True)
    api.accounts.close()


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"ref": 7, "argument": {"name": "type", "value": ""}},
        {"ref": {"type": "ref/x"}, "argument": {"name": "type", "value": ""}},
        {"ref": {"type": "ref/resource", "uri": []}, "argument": {"name": "type", "value": ""}},
        {"ref": {"type": "ref/resource", "uri": "x://"}, "argument": {"name": "type", "value": ""}},
        {
            "ref": {"type": "ref/resource", "uri": SCHEMA_TEMPLATE},
            "argument": {"name": "locale", "value": ""},
        },
        {"ref": {"type": "ref/resource", "uri": SCHEMA_TEMPLATE}, "argument": {"name": "type", "value": 7}},
        {"ref": {"type": "ref/resource", "uri": SCHEMA_TEMPLATE}, "argument": {"name": [], "value": ""}},
        {"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "type", "value": ""}},
    ],
)
def test_a_wrong_completion_is_refused(agent: Agent, params: Any) -> None:
    assert agent.post("completion/complete", params).body["error"]["code"] == INVALID_PARAMS
