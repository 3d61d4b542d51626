"""Tests of the errors for documents that do not exist: they name what exists, if the caller may see it."""

from collections.abc import Iterator

import pytest

from tests.mcp.agents import Agent, valid
from tests.mcp.conftest import Make
from tests.sites import Api, collection, documents, make, translated, write

SETTINGS = """
locales: {default: en, available: [en, fr, nl, de]}
mcp: {enabled: true}
roles: {public: {note: [find, findOne]}}
"""
FILES = {
    "site.yaml": SETTINGS,
    **collection("note", {"title": translated({"type": "string"})}, drafts=True, localized=True),
    **documents("notes", fog={"title": "Fog"}),
    "content/notes/fog.nl.json": '{"title": "Mist"}',
    "content/notes/fog.fr.draft.json": '{"title": "Brume"}',
    "content/notes/tide.draft.json": '{"title": "Tide"}',
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    api = make(tmp_path_factory.mktemp("site"), FILES)
    yield api
    api.accounts.close()


@pytest.mark.parametrize(
    ("who", "arguments", "says"),
    [
        (
            "full",
            {"documentId": "fog", "locale": "fr"},
            'not published in the locale "fr"; to read its draft',
        ),
        ("full", {"documentId": "fog", "locale": "de"}, 'not exist in the locale "de", but in en, nl'),
        ("public", {"documentId": "fog", "locale": "fr"}, 'not exist in the locale "fr", but in en, nl'),
        (
            "full",
            {"documentId": "tide"},
            'is not published; to read its draft, use status "draft"',
        ),
        ("public", {"documentId": "tide"}, 'There is no note "tide"; find lists the documents'),
        ("full", {"documentId": "tied"}, 'There is no note "tied"; did you mean "tide"?'),
        ("public", {"documentId": "tied"}, 'There is no note "tied"; find lists the documents'),
        ("full", {"documentId": "fgo", "status": "draft"}, 'did you mean "fog"?'),
    ],
)
def test_a_missing_document_is_told_from_what_exists(
    api: Api, who: str, arguments: dict[str, str], says: str
) -> None:
    called = Agent(api, who).call("get", type="note", **arguments)
    assert called.error["status"] == 404
    assert says in called.line


@pytest.mark.parametrize("tool", ["history", "diff", "restore"])
def test_the_history_of_a_missing_document_names_a_similar_one(make_site: Make, tool: str) -> None:
    arguments = {"version": "HEAD"} if tool == "restore" else {}
    called = Agent(make_site(), "full").call(tool, type="article", documentId="fgo", **arguments)
    assert called.error["status"] == 404
    assert 'There is no article "fgo"; did you mean "fog"?' in called.line


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("notes/fgo.json", 'is no file "content/notes/fgo.json"; did you mean "content/notes/fog.json"?'),
        ("notes/fog.fr.json", 'did you mean "content/notes/fog.fr.draft.json"?'),
        ("notes/fog.de.json", 'did you mean "content/notes/fog.json"?'),
        ("notes/tide.json", 'did you mean "content/notes/tide.draft.json"?'),
        ("notes/zebra.json", "find lists the documents"),
        ("note/fog.json", "is not the path of a document's file; find lists the documents"),
    ],
)
def test_a_missing_file_is_told_from_similar_ones(api: Api, path: str, says: str) -> None:
    called = Agent(api).call("read_file", path=f"content/{path}")
    assert called.error["status"] == 404
    assert says in called.line


def test_write_file_says_that_a_file_must_exist(make_site: Make) -> None:
    agent, sent = Agent(make_site()), {"path": "content/articles/fgo.json", "text": "{}", "ifMatch": '"1"'}
    called = agent.call("write_file", **sent)
    assert called.error["status"] == 404
    assert 'did you mean "content/articles/fog.json"?' in called.line
    assert "write_file replaces existing files" in called.line
    assert "must be the etag" in agent.call("write_file", **{**sent, "ifMatch": "*"}).line


def test_check_names_paths_of_no_document(make_site: Make) -> None:
    api = make_site(", text: summary")
    api.token("checker", may=["problems.find", "article.find"])
    paths = ["content/articles/fog.json", "content/articles/fgo.json", "articles/fog.json", "site.yaml"]
    checked = valid("check", Agent(api).call("check", paths=paths))
    assert checked.content["unknownPaths"] == paths[1:3]
    assert checked.line.endswith(f"No document has these paths: {paths[1]}, {paths[2]}.")
    many = Agent(api).call("check", paths=[f"content/articles/x{n}.json" for n in range(5)])
    assert many.line.endswith("x2.json and 2 more (see unknownPaths).")
    assert "unknownPaths" not in Agent(api).call("check", paths=paths[0]).content
    assert "unknownPaths" not in Agent(api, "checker").call("check", paths=paths).content


def test_a_check_of_many_unknown_paths_fits_into_a_result(make_site: Make) -> None:
    api = make_site(", max_bytes: 16 kB")
    broken = [f"content/articles/a{n}.json" for n in range(50)]
    write(api.root, dict.fromkeys(broken, '{"title": "A", "tags": ["none"]}'))
    api.site.refresh()
    unknown = [f"content/{n:0150}.json" for n in range(50)]
    checked = valid("check", Agent(api).call("check", paths=[*broken, *unknown], pageSize=100))
    assert checked.content["total"] == 50 > checked.content["returned"] > 0
    assert {*unknown} <= {*checked.content["unknownPaths"]}


def test_the_file_of_a_missing_single_type_is_not_found(make_site: Make) -> None:
    api = make_site()
    (api.root / "content/home.json").unlink()
    api.site.refresh()
    assert Agent(api, "full").call("read_file", path="content/home.json").error["status"] == 404
