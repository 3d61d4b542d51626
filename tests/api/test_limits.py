"""Tests of the budget for a read over HTTP: whichever part of a query is too expensive, the response has
status 400.
"""

import pytest
from werkzeug.test import create_environ

from server.api.environ import IN_PLACE, ON_LOOP
from server.errors import NeedsThreadPool
from tests.conftest import MakeApi
from tests.sites import INTEGER, STRING, Api, collection, component, documents, load, relation

NAMES = [f"n{i:03d}" for i in range(60)]
SCHEMA = {
    **collection(
        "note",
        {
            "title": STRING,
            "text": {"type": "text"},
            "rank": INTEGER,
            "data": {"type": "json"},
            "group": relation("manyToOne", "group", inversedBy="notes"),
            "next": relation("oneToOne", "note"),
            "parts": {"type": "component", "component": "x.part", "repeatable": True},
        },
        localized=True,
    ),
    **collection("group", {"name": STRING, "notes": relation("oneToMany", "note", mappedBy="group")}),
    **component("x.part", {"n": INTEGER, "to": relation("manyToOne", "group")}),
    **documents("groups", one={"name": "One"}),
    **documents(
        "notes",
        **{
            name: {
                "title": name,
                "text": "x" * 1500,
                "rank": i,
                "next": NAMES[(i + 1) % len(NAMES)],
                "data": [i],
                "group": "one",
                "parts": [{"n": n, "to": "one"} for n in range(5)],
            }
            for i, name in enumerate(NAMES)
        },
    ),
}
PUBLIC = "roles:\n  public:\n    note: [find, findOne]\n    group: [find, findOne]\n"
LIMITS = """
locales: {available: [en, fr]}
api:
  populate_with_pagination: allow
  limits: {steps: 600, size: 60 kB}
"""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    files = {**SCHEMA, "site.yaml": f"{LIMITS}search: {{index: false}}\n{PUBLIC}"}
    return Api.of(load(tmp_path_factory.mktemp("site"), files))


HONEST = (
    "",
    "populate=group,next,parts",
    "populate[parts][populate]=to&sort=rank:desc",
    "filters[group][name]=One&filters[text][$contains]=x",
    "_q=n01",
    "sort=group.name,title",
    "locale=*&filters[rank][$gt]=10",
)
COLUMNS = ("title", "text", "rank", "data", "locale", "createdAt", "updatedAt")
COSTLY = {
    "populate": "populate[group][populate][notes][fields]=rank",
    "populate to one": "pagination[limit]=50&"
    + "&".join(f"populate{'[next][populate]' * n}[next][fields]=rank" for n in range(7)),
    "counting": "populate[group][populate][notes][count]=true&pagination[limit]=25",
    "filters of what is populated": "populate[group][populate][notes][filters][data][$contains]=7",
    "sorting of what is populated": "&".join(
        f"populate[group][populate][notes]{option}" for option in ("[sort]=group.name,title", "[fields]=rank")
    ),
    "sorting of components": "populate[parts][sort]=n:asc,n:desc,id:asc,id:desc",
    "a path of a sort": "sort=" + "group.notes." * 9 + "title",
    "sort keys": "sort=" + ",".join(f"{name}:desc" for name in COLUMNS) + "&_q=n&locale=*",
    "a path of a filter": "filters" + "[group][notes]" * 9 + "[data][$contains]=7",
    "alternatives": "&".join(f"filters[$or][{i}][data][$contains]={i}" for i in range(99)),
    "a search for texts": "&".join(f"filters[$or][{i}][text][$contains]=x{i}" for i in range(99)),
    "filters in every locale": "locale=*&" + "&".join(f"filters[$or][{i}][rank]={i}" for i in range(99)),
    "a filter of components": "filters[parts][to][notes][parts][to][notes][parts][to][name][$contains]=7",
    "whether something is missing": "&".join(
        f"filters[$or][{i}][group][notes][next][$null]=false" for i in range(50)
    ),
}


@pytest.mark.parametrize("query", HONEST)
def test_what_pages_ask_for_is_far_from_the_limits(api: Api, query: str) -> None:
    assert api.get(f"/api/notes?{query}&fields=title&pagination[limit]=10", "public").status == 200


@pytest.mark.parametrize("query", COSTLY.values(), ids=COSTLY.keys())
def test_a_read_that_takes_too_many_steps_is_refused(api: Api, query: str) -> None:
    error = api.get(f"/api/notes?{query}&fields=title", "public").error
    assert (error["status"], error["name"], error["details"]) == (400, "ValidationError", {"limit": "steps"})
    assert error["message"] == "The response would need more than 600 steps; request less data"


def test_sorting_by_many_keys_costs_each_of_them(api: Api) -> None:
    keys = [f"{name}:{order}" for name in COLUMNS for order in ("asc", "desc")][:10]
    error = api.get(f"/api/notes?sort={','.join(keys)}&locale=*&fields=title", "public").error
    assert error["details"] == {"limit": "steps"}


@pytest.mark.parametrize(
    "query",
    ["fields=text&pagination[limit]=50", "populate[group][populate][notes][fields]=text&pagination[limit]=1"],
)
def test_an_answer_that_would_be_too_large_is_refused(api: Api, query: str) -> None:
    for _ in range(2):  # a response that has already been rendered counts, too
        error = api.get(f"/api/notes?{query}", "public").error
        assert (error["status"], error["name"], error["details"]) == (
            400,
            "ValidationError",
            {"limit": "size"},
        )
        assert error["message"] == "The response would be larger than 60,000 bytes; request less data"


def test_a_search_without_an_index_is_read_within_the_limits(api: Api) -> None:
    error = api.get("/search?q=xx+yy", "public").error
    assert error["details"] == {"limit": "steps"}


def test_a_search_without_an_index_costs_the_reading_of_texts_as_well(make_api: MakeApi) -> None:
    texts = {name: {"text": "x " * 3200} for name in NAMES[:5]}
    api = make_api(
        {
            "site.yaml": f"{LIMITS}search: {{index: false}}\n{PUBLIC}",
            **collection("note", {"text": {"type": "text"}}),
            **documents("notes", **texts),
        }
    )
    assert api.get("/search?q=yy", "public").error["details"] == {"limit": "steps"}


def test_lists_of_files_and_users_have_the_same_limits(make_api: MakeApi) -> None:
    uploads = {f"content/uploads/{i}.txt": "x" for i in range(50)}
    api = make_api({**uploads, "site.yaml": "api: {limits: {size: 5 kB}}\n"})
    assert api.get("/api/upload/files").error["details"] == {"limit": "size"}
    assert api.get("/api/upload/files?limit=5").status == 200
    for i in range(20):
        body = {"username": f"user{i}", "email": f"u{i}@example.org", "password": "secret12", "role": 1}
        assert api.ask("POST", "/api/users", json=body).status == 201
    assert api.get("/api/users").error["details"] == {"limit": "size"}
    assert len(api.get("/api/users?limit=5").body) == 5


def test_a_written_document_may_cost_as_much_as_one_that_is_read(api: Api) -> None:
    assert api.post("/api/groups?populate=notes", {"name": "Two"}).status == 201


@pytest.mark.parametrize(("filters", "leaves"), [(3, False), (90, True)])
def test_an_event_loop_reads_no_long_query(api: Api, *, filters: int, leaves: bool) -> None:
    query = "&".join(f"filters[$or][{n}][title][$eq]=none-{n}" for n in range(filters))
    environ = create_environ("/api/notes", query_string=query) | {IN_PLACE: True, ON_LOOP: True}
    if leaves:
        with pytest.raises(NeedsThreadPool) as postponed:
            api.app.wsgi_app(environ, lambda *_: lambda _: None)
        assert postponed.value.long
    else:
        assert b'"data":[]' in b"".join(api.app.wsgi_app(environ, lambda *_: lambda _: None))
