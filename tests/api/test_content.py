"""Tests of the content API over HTTP: paths, methods, query strings and headers."""

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import MakeApi
from tests.sites import (
    INTEGER,
    STRING,
    Api,
    collection,
    component,
    documents,
    load,
    relation,
    write,
)

FILES = {
    **collection("note", {"text": STRING, "i": INTEGER, "to": relation("manyToOne", "note")}),
    **collection("home", {"title": STRING}, single=True),
    **collection("about", {"title": STRING}, single=True),
    **component("x.part", {"n": INTEGER}),
    **documents("notes", a={"text": "hello world", "i": 5, "to": "b"}, b={"text": "é"}),
    "content/notes/2024/c d.md": "---\ntext: in a folder\n---\n",
    "content/home.md": "---\ntitle: Home\n---\n",
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return Api.of(load(tmp_path_factory.mktemp("site"), FILES))


# --- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/api/notes",
        "/api/notes/",
        "/api/notes?",
        "/api/notes/?fields=text",
        "/api/notes?&&&",
        "/api/notes?zzz=1",
    ],
)
def test_a_list(api: Api, path: str) -> None:
    answer = api.get(path)
    assert answer.ids == ["a", "b", "2024--c d"]
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.body["meta"]["pagination"] == {"page": 1, "pageSize": 25, "pageCount": 1, "total": 3}


@pytest.mark.parametrize(
    "path",
    ["/api/notes/a", "/api/notes/a/", "/api/notes/a?", "/api/notes/2024--c%20d", "/api/home", "/api/home/"],
)
def test_one_document(api: Api, path: str) -> None:
    answer = api.get(path)
    assert answer.body.keys() == {"data", "meta"}
    assert answer.body["meta"] == {}
    assert answer.data["documentId"] in path.replace("%20", " ")


@pytest.mark.parametrize(
    "path",
    [
        "/api/notes/none",
        "/api/notes/A",
        "/api/notes/%00",
        "/api/note",
        "/api/Notes",
        "/api/homes",
        "/api/home/home",
        "/api/about",
        "/api/x.part",
        "/api/part",
        "/api/files",
        "/api/none",
        "/api//notes",
        "/notes",
        "/uploads/none.png",
        "/uploads/../site.yaml",
    ],
)
def test_what_is_not_there(api: Api, path: str) -> None:
    error = api.get(path).error
    assert (error["status"], error["name"], error["message"]) == (404, "NotFoundError", "Not Found")


@pytest.mark.parametrize(
    "path", ["/api/notes/a/b", "/api/notes/2024/c%20d", "/api/notes/..%2f..%2fsite.yaml"]
)
def test_a_longer_path_is_not_there_either(api: Api, path: str) -> None:
    assert api.get(path).error["status"] == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/notes/a"),
        ("PUT", "/api/notes"),
        ("PATCH", "/api/notes"),
        ("PATCH", "/api/notes/a"),
        ("DELETE", "/api/notes"),
        ("POST", "/api/home"),
        ("PATCH", "/api/home"),
        ("POST", "/api/none"),
        ("POST", "/_health"),
        ("BREW", "/api/notes"),
        ("TRACE", "/api/notes"),
    ],
)
def test_methods_that_are_not_there(api: Api, method: str, path: str) -> None:
    error = api.ask(method, path, json={"data": {}}).error
    assert (error["status"], error["name"]) == (405, "MethodNotAllowedError")
    assert "Not Allowed" in error["message"]


# --- heads and headers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/api/notes", "/api/notes/a", "/api/home", "/api/notes/none", "/api/notes?sort=zzz"]
)
def test_a_head_is_a_get_without_its_body(api: Api, path: str) -> None:
    get, head = api.get(path), api.ask("HEAD", path)
    assert (head.status, head.body) == (get.status, b"")
    for name in ("Content-Type", "Content-Length"):
        assert head.headers[name] == get.headers[name]


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "text/plain"])
@pytest.mark.parametrize("data", [b"", b"{", b"\xff"])
def test_a_get_may_say_that_it_is_json(api: Api, kind: str, data: bytes) -> None:
    assert api.get("/api/notes", headers={"Content-Type": kind}, data=data).status == 200


@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        ("application/json; charset=latin1", True),
        ("application/json-patch+json", True),
        ("application/vnd.api+json", True),
        ("application/csp-report", True),
        ("application/ld+json", False),
        ("text/plain", False),
        ("text/json", False),
    ],
)
def test_the_content_types_that_a_body_of_json_may_have(api: Api, kind: str, taken: bool) -> None:
    answer = api.ask("PUT", "/api/notes/a", headers={"Content-Type": kind}, data=b'{"data": {}}')
    if taken:
        assert answer.status == 200
    else:
        assert (answer.status, answer.error["message"]) == (400, 'Missing "data" payload in the request body')


@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/html", ""])
def test_answers_are_json_whatever_is_accepted(api: Api, accept: str) -> None:
    for path in ("/api/notes", "/api/none"):
        assert (
            api.get(path, headers={"Accept": accept}).headers["Content-Type"].startswith("application/json")
        )


# --- query strings -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "filters[i][$eq]=5",
        "filters%5Bi%5D%5B%24eq%5D=5",
        "filters%5bi%5d%5b$eq%5d=5",
        "filters[text]=hello+world",
        "filters[text]=hello%20world",
        "filters[text][$contains]=%6c%6c",
        "&&filters[i]=5&",
    ],
)
def test_queries_raw_and_encoded(api: Api, query: str) -> None:
    assert api.get(f"/api/notes?{query}").ids == ["a"]


def test_text_that_is_not_ascii_comes_encoded_or_raw(api: Api) -> None:
    assert api.get(f"/api/notes?filters[text]={quote('é')}").ids == ["b"]
    assert api.get(
        "/api/notes", environ_overrides={"QUERY_STRING": "filters[text]=é".encode().decode("latin-1")}
    ).ids == ["b"]
    assert (
        api.get("/api/notes", environ_overrides={"QUERY_STRING": "filters[text]=\xe9"}).error["status"] == 400
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("[" * 10_000, "nested"),
        ("filters" + "[a]" * 3000 + "=1", "nested"),
        ("filters" + "[$not]" * 20 + "=1", "Invalid key 1"),
        ("filters[$and][0]" + "[$or][0]" * 9 + "[i]=5", "nested"),
        ("filters[text]=%zz", "percent"),
        ("filters[text]=a%00b", "control"),
        ("a=" + "b" * 40_000, "characters"),
        ("&".join("a=1" for _ in range(2000)), "parameters"),
        ("filters[__proto__][x]=1", "Invalid key __proto__"),
        ("filters[constructor]=1", "Invalid key constructor"),
        ("sort=__proto__", "Invalid key __proto__"),
    ],
)
def test_odd_queries_are_refused_with_clear_words(api: Api, query: str, words: str) -> None:
    answer = api.get(f"/api/notes?{query}")
    assert (answer.error["status"], answer.error["name"]) == (400, "ValidationError")
    assert words in answer.error["message"]


@pytest.mark.parametrize("query", ["]" * 10_000 + "=1", "a]b[c=1", "fields=text%0D"])
def test_odd_queries_that_mean_something_are_answered(api: Api, query: str) -> None:
    assert api.get(f"/api/notes?{query}").ids == ["a", "b", "2024--c d"]


# --- endpoints come and go with the files --------------------------------------------------------


def test_a_schema_file_makes_endpoints(make_api: MakeApi) -> None:
    api = make_api({**FILES, "content/things/x.md": "---\nname: X\n---\n"})
    assert api.get("/api/things").status == 404
    write(api.site.root, collection("thing", {"name": STRING}))
    api.site.refresh()
    assert api.get("/api/things").data[0]["name"] == "X"
    (api.site.root / "content-types/thing.json").unlink()
    api.site.refresh()
    assert api.get("/api/things").status == 404
    assert api.get("/api/notes").status == 200


def test_what_was_changed_by_hand_is_read_by_the_next_request(make_api: MakeApi) -> None:
    api = make_api(FILES)
    tag = api.get("/api/notes/a").headers["ETag"]
    (api.site.root / "content/notes/a.json").write_text(json.dumps({"text": "changed"}))
    api.site.refresh()
    answer = api.get("/api/notes/a", headers={"If-None-Match": tag})
    assert (answer.status, answer.data["text"]) == (200, "changed")
    again = api.get("/api/notes/a", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")


def test_a_write_is_read_by_the_next_request(make_api: MakeApi) -> None:
    api = make_api(FILES)
    made = api.post("/api/notes", {"text": "made", "to": "a"}).data
    assert api.get(f"/api/notes/{made['documentId']}?populate=to").data["to"]["text"] == "hello world"
    assert made["documentId"] in api.get("/api/notes").ids
    assert api.put("/api/home", {"title": "New"}).data == api.get("/api/home").data
    assert api.ask("DELETE", f"/api/notes/{made['documentId']}").status == 204
    assert api.get(f"/api/notes/{made['documentId']}").status == 404


# --- any query -----------------------------------------------------------------------------------

PARAMETERS = [
    "filters",
    "sort",
    "fields",
    "populate",
    "pagination",
    "locale",
    "status",
    "_q",
    "publicationFilter",
    "publicationStatus",
]
WORDS = [
    *PARAMETERS,
    "$and",
    "$or",
    "$not",
    "$eq",
    "$in",
    "$between",
    "$null",
    "$gt",
    "$contains",
    "id",
    "documentId",
    "text",
    "i",
    "to",
    "part",
    "parts",
    "zone",
    "about",
    "file",
    "createdAt",
    "localizations",
    "on",
    "x.part",
    "n",
    "0",
    "1",
    "2",
    "*",
    "page",
    "pageSize",
    "start",
    "limit",
    "withCount",
    "api::note.note",
]
LEAVES = [
    *WORDS,
    "",
    "a",
    "b",
    "true",
    "false",
    "-1",
    "1.5",
    "desc",
    "text:desc",
    "to.text",
    "to.to",
    "2024-01-01",
    "[",
    "é",
    "null",
]
words, leaves = st.sampled_from(WORDS), st.sampled_from(LEAVES)
parameters = st.builds(
    lambda head, rest, value: (
        head + "".join(f"[{part}]" for part in rest) + ("" if value is None else f"={quote(value)}")
    ),
    st.sampled_from(PARAMETERS),
    st.lists(words, max_size=6),
    st.none() | leaves,
)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Api:
    part = {"type": "component", "component": "x.part"}
    note = {
        "text": STRING,
        "i": INTEGER,
        "to": relation("manyToOne", "note"),
        "part": part,
        "parts": {**part, "repeatable": True},
        "zone": {"type": "dynamiczone", "components": ["x.part"]},
        "about": {"type": "relation", "relation": "morphToMany"},
        "file": {"type": "media"},
    }
    about = [{"__type": "api::note.note", "documentId": "a"}]
    made = {
        "to": "b",
        "part": {"n": 1},
        "parts": [{"n": 2}],
        "zone": [{"__component": "x.part"}],
        "about": about,
    }
    files = {
        **collection("note", note, drafts=True, localized=True),
        **component("x.part", {"n": INTEGER, "to": relation("manyToOne", "note")}),
        **documents("notes", a={"text": "a", "i": 1, **made}, b={"text": "b", "to": "a", "file": "x.png"}),
        "content/uploads/x.png": b"x",
        "site.yaml": "api: {populate_with_pagination: allow}",
    }
    return Api.of(load(tmp_path_factory.mktemp("wide"), files))


@given(st.lists(parameters, max_size=4))
def test_no_query_is_an_unexpected_error(wide: Api, parts: list[str]) -> None:
    for path in ("/api/notes", "/api/notes/a"):
        answer = wide.get(f"{path}?{'&'.join(parts)}")
        assert answer.status in (200, 400, 404), answer.body
        if answer.status == 400:
            assert answer.error["message"]
