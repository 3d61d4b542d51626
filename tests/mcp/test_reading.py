"""Tests of the tools that read."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from server.api.mcp.tools.table import DESCRIBED, TOOLS
from tests.mcp.agents import Agent
from tests.mcp.sites import FILES, SETTINGS
from tests.sites import Api, collection, documents, make

READS: Mapping[str, dict[str, Any]] = {
    "site_info": {},
    "get_schema": {"type": "article"},
    "find": {"type": "article", "pageSize": 1},
    "get": {"type": "article", "documentId": "fog"},
    "search": {"q": "tide"},
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    api = make(tmp_path_factory.mktemp("site"), FILES)
    api.token("nobody", may=[])
    yield api
    api.accounts.close()


@pytest.fixture
def agent(api: Api) -> Agent:
    return Agent(api)


def test_the_list_of_tools_is_small_and_valid() -> None:
    assert len(json.dumps(DESCRIBED, separators=(",", ":"))) <= 12_000
    for tool in DESCRIBED:
        for key in ("inputSchema", "outputSchema"):
            Draft202012Validator.check_schema(tool[key])
            assert tool[key]["type"] == "object"


@pytest.mark.parametrize("name", READS)
def test_results_fit_their_schema(agent: Agent, name: str) -> None:
    tool = next(tool for tool in TOOLS if tool.name == name)
    called = agent.call(name, **READS[name])
    assert not called.is_error, called.line
    Draft202012Validator(tool.output_schema).validate(called.content)
    assert tool.describe()["annotations"] == {"readOnlyHint": True, "openWorldHint": False}


def test_site_info_describes_what_the_caller_may_do(agent: Agent, api: Api) -> None:
    called = agent.call("site_info")
    assert called.content["site"]["locales"] == ["en", "fr"]
    assert "git init" in called.content["writes"]["reason"]
    article = next(one for one in called.data if one["name"] == "article")
    assert (article["documents"], article["hasDrafts"], article["isSingleType"]) == (3, True, False)
    public = Agent(api, "public").call("site_info")
    assert [(one["name"], one["allowedActions"]) for one in public.data] == [("tag", ["find", "findOne"])]


def test_a_schema_accepts_what_a_write_accepts(agent: Agent) -> None:
    found = agent.call("get_schema", type="article").content
    Draft202012Validator.check_schema(found)
    create = Draft202012Validator({**found["create"], "$defs": found["$defs"]})
    create.validate({"title": "Fog", "sections": [{"__component": "shared.quote", "text": "a"}]})
    create.validate(found["example"])
    assert not create.is_valid({"rating": 1})
    assert not create.is_valid({"title": "Fog", "sections": [{"__component": "shared.none"}]})
    read = Draft202012Validator({**found["read"], "$defs": found["$defs"]})
    read.validate(agent.call("get", type="article", documentId="fog", populate=["tags"]).data)
    assert "ArticleFilters" not in found["$defs"]
    assert "properties" not in found["$defs"]["Tag"]  # Related types are only named.


def test_a_schema_of_a_single_type_has_an_update(agent: Agent) -> None:
    found = agent.call("get_schema", type="home").content
    assert {"read", "update"} <= found.keys()
    assert "create" not in found


def test_a_schema_leaves_out_what_the_caller_may_not_see(api: Api) -> None:
    public = Agent(api, "public")
    assert "create" not in public.call("get_schema", type="tag").content
    assert public.call("get_schema", type="article").error["status"] == 404


def test_find_filters_sorts_and_pages(agent: Agent) -> None:
    found = agent.call(
        "find", type="article", filters={"rating": {"$gte": 3.25}}, sort="title:desc", fields=["title"]
    )
    assert [one["title"] for one in found.data] == ["Tide", "Fog"]
    assert (found.content["total"], found.content["returned"]) == (2, 2)
    page = agent.call("find", type="articles", pageSize=2)
    assert page.content["next"] == {"page": 2, "pageSize": 2}
    assert "next" not in agent.call("find", type="article", **page.content["next"]).content


def test_find_searches_for_words(agent: Agent) -> None:
    called = agent.call("find", type="article", q="turns twice")
    assert [document["title"] for document in called.data] == ["Tide"]


def test_a_read_is_that_of_the_rest_api(agent: Agent, api: Api) -> None:
    got = agent.call("get", type="article", documentId="fog", populate={"tags": {"fields": ["name"]}})
    shown = api.get("/api/articles/fog?populate[tags][fields]=name")
    assert got.data == shown.data
    assert got.content["etag"] == shown.headers["ETag"]
    assert "secret" not in json.dumps(agent.call("get", type="tag", documentId="sea").data)


def test_an_id_does_not_stand_for_a_document_as_markdown(agent: Agent, api: Api) -> None:
    for _ in range(2):  # The second time, both responses come from the cache.
        assert b"Fog comes in" in api.get("/api/articles/fog.md").raw
        assert agent.call("get", type="article", documentId="fog.md").error["status"] == 404
    assert agent.call("get", type="article", documentId="tide.md").error["status"] == 404
    assert b"The tide turns" in api.get("/api/articles/tide.md").raw


def test_search_finds_documents_of_some_types(agent: Agent) -> None:
    found = agent.call("search", q="tide", type=["article"], pageSize=2)
    assert found.content["total"] == 3
    assert {one["type"] for one in found.data} == {"article"}
    assert found.content["next"] == {"page": 2, "pageSize": 2}


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "says"),
    [
        ("find", {}, 400, '"type" is missing'),
        ("find", {"type": 7}, 400, '"type" must be a string, not an integer'),
        (
            "find",
            {"type": "tag", "page": 1.5},
            400,
            '"page" must be an integer, not a number with a fraction',
        ),
        ("write", {"operations": "[]"}, 400, '"operations" must be a list, not a string'),
        (
            "write",
            {"operations": [{"action": "create", "type": "tag", "data": "{}"}]},
            400,
            '"operations"[0]: "data" must be an object, not a string',
        ),
        ("find", {"type": "article", "status": "live"}, 400, '"status" must be draft or published'),
        ("find", {"type": "article", "pagesize": 1}, 400, 'did you mean "pageSize"?'),
        ("find", {"type": "article", "page": 0}, 400, '"page" must be 1 or more'),
        ("find", {"type": "article", "page": 1.5}, 400, '"page" must be an integer'),
        ("find", {"type": "article", "page": True}, 400, '"page" must be an integer'),
        ("find", {"type": "artcle"}, 404, 'did you mean "article"?'),
        ("find", {"type": "zzz"}, 404, "the types are article, home, tag"),
        ("find", {"type": "article", "filters": {"titel": "a"}}, 400, "titel"),
        (
            "find",
            {"type": "article", "filters": {"title": {"contains": "a"}}},
            400,
            'did you mean "$contains"?',
        ),
        (
            "find",
            {"type": "article", "filters": {"title": {"$contain": "a"}}},
            400,
            'did you mean "$contains"?',
        ),
        ("find", {"type": "home"}, 400, "home is a single type; use get"),
        ("get", {"type": "article"}, 404, '"documentId" is missing'),
        ("get", {"type": "article", "documentId": "none"}, 404, "find lists the documents"),
        ("get", {"type": "article", "documentId": "fog/../tide"}, 404, "There is no article"),
        ("get", {"type": "article", "documentId": "fog%2F"}, 404, 'did you mean "fog"?'),
        ("search", {}, 400, '"q" is missing'),
    ],
)
def test_errors_name_what_is_allowed(
    agent: Agent, tool: str, arguments: dict[str, Any], status: int, says: str
) -> None:
    called = agent.call(tool, **arguments)
    assert called.error["status"] == status
    assert says in called.line


def test_who_may_not_read_may_not_read(api: Api) -> None:
    nobody = Agent(api, "nobody")
    assert nobody.call("find", type="article").error["status"] == 403
    assert nobody.call("get", type="article", documentId="fog").error["status"] == 403
    assert nobody.call("search", q="tide").error["status"] == 403
    assert nobody.call("site_info").data == []


def test_lists_are_cut_by_whole_documents(tmp_path_factory: pytest.TempPathFactory) -> None:
    texts = {f"n{i:02d}": {"text": "x" * 1500} for i in range(30)}
    files = {
        "site.yaml": "mcp: {enabled: true, max_bytes: 16 kB}\n",
        **collection("note", {"text": "text"}),
        **documents("notes", **texts, long={"text": "y" * 20_000}),
    }
    api = make(tmp_path_factory.mktemp("site"), files)
    agent, seen, pages = Agent(api), [], {"pageSize": 25}
    while pages:
        answer = agent.post("tools/call", {"name": "find", "arguments": {"type": "note", "filters": {
            "documentId": {"$ne": "long"}}, **pages}})  # fmt: skip
        content = answer.body["result"]["structuredContent"]
        assert len(json.dumps(content)) <= 16_000
        seen += [one["documentId"] for one in content["data"]]
        assert content["total"] == 30
        pages = content.get("next")
    assert sorted(seen) == sorted(texts)
    whole = agent.call("get", type="note", documentId="long")
    assert whole.error["details"] == {"limit": "max_bytes"}
    assert not agent.call("get", type="note", documentId="long", fields=["documentId"]).is_error
    assert agent.call("find", type="note", filters={"documentId": "long"}).is_error
    api.accounts.close()


def test_results_as_text_have_a_limit_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    texts = {f"n{i:02d}": {"text": '"' * 1000} for i in range(30)}
    files = {
        "site.yaml": "mcp: {enabled: true, max_bytes: 16 kB}\n",
        **collection("note", {"text": "text"}),
        **documents("notes", **texts, long={"text": '"' * 5000}),
    }
    api = make(tmp_path_factory.mktemp("site"), files)
    agent, seen, pages = Agent(api, version="2025-03-26"), [], {"pageSize": 25}
    while pages:
        answer = agent.post("tools/call", {"name": "find", "arguments": {"type": "note", "filters": {
            "documentId": {"$ne": "long"}}, **pages}})  # fmt: skip
        assert len(answer.raw) <= 16_000
        content = json.loads(answer.body["result"]["content"][0]["text"].partition("\n")[2])
        seen += [one["documentId"] for one in content["data"]]
        pages = content.get("next")
    assert sorted(seen) == sorted(texts)
    whole = agent.post("tools/call", {"name": "get", "arguments": {"type": "note", "documentId": "long"}})
    assert len(whole.raw) <= 16_000
    assert whole.body["result"]["isError"]
    assert "more than mcp.max_bytes allows" in whole.body["result"]["content"][0]["text"]
    assert not Agent(api).call("get", type="note", documentId="long").is_error  # has 10 kB, escaped once
    api.accounts.close()


def test_the_list_of_types_has_pages(tmp_path_factory: pytest.TempPathFactory) -> None:
    types = {path: text for i in range(60) for path, text in collection(f"t{i:02d}", {"a": "string"}).items()}
    api = make(tmp_path_factory.mktemp("site"), {"site.yaml": SETTINGS + "  # \n", **types})
    first = Agent(api).call("site_info", pageSize=40)
    assert (len(first.data), first.content["next"]) == (40, {"page": 2, "pageSize": 40})
    assert len(Agent(api).call("site_info", **first.content["next"]).data) == 20
    api.accounts.close()


@pytest.mark.parametrize("name", ["filters", "populate"])
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"K" * 3500: [1] * 900}, "more than 32768 characters"),
        ({"id]=1&locale=fr&x[y": 1}, ""),
        ({"\u202e": 1}, ""),
    ],
)
@pytest.mark.parametrize("type_", ["article", "upload"])
def test_keys_that_are_long_or_contain_syntax_are_bad_requests(
    api: Api, type_: str, name: str, value: dict[str, Any], says: str
) -> None:
    called = Agent(api).call("find", type=type_, **{name: value})
    if type_ == "upload" and name == "populate" and not says:  # Files have no relations.
        assert not called.is_error or called.error["status"] == 400
        return
    assert called.error["status"] == 400
    assert says in called.line
    assert "locale" not in called.error["details"]
