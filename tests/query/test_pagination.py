"""Pagination: by page and by offset, with values out of range, and with and without the total."""

from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, documents, load

NAMES = [f"n{i:03d}" for i in range(130)]
FILES = {**collection("note", {"text": STRING}), **documents("notes", **{name: {} for name in NAMES})}


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return Api.of(load(tmp_path_factory.mktemp("notes"), FILES))


def page(api: Api, query: str) -> tuple[list[str], dict[str, Any]]:
    answer = api.get(f"/api/notes?{query}")
    return answer.ids, answer.body["meta"]["pagination"]


@pytest.mark.parametrize(
    ("query", "wanted", "meta"),
    [
        ("", NAMES[:25], {"page": 1, "pageSize": 25, "pageCount": 6, "total": 130}),
        ("pagination[page]=2", NAMES[25:50], {"page": 2, "pageSize": 25, "pageCount": 6, "total": 130}),
        ("pagination[page]=6", NAMES[125:], {"page": 6, "pageSize": 25, "pageCount": 6, "total": 130}),
        ("pagination[page]=7", [], {"page": 7, "pageSize": 25, "pageCount": 6, "total": 130}),
        ("pagination[pageSize]=65", NAMES[:65], {"page": 1, "pageSize": 65, "pageCount": 2, "total": 130}),
        (
            "pagination[pageSize]=1000",
            NAMES[:100],
            {"page": 1, "pageSize": 100, "pageCount": 2, "total": 130},
        ),
        ("pagination[pageSize]=0", NAMES[:1], {"page": 1, "pageSize": 1, "pageCount": 130, "total": 130}),
        ("pagination[page]=0", NAMES[:25], {"page": 1, "pageSize": 25, "pageCount": 6, "total": 130}),
        ("pagination[page]=-3", NAMES[:25], {"page": 1, "pageSize": 25, "pageCount": 6, "total": 130}),
        ("pagination[page]=", NAMES[:25], {"page": 1, "pageSize": 25, "pageCount": 6, "total": 130}),
        ("pagination[start]=120", NAMES[120:], {"start": 120, "limit": 25, "total": 130}),
        ("pagination[start]=3&pagination[limit]=2", NAMES[3:5], {"start": 3, "limit": 2, "total": 130}),
        ("pagination[limit]=7", NAMES[:7], {"start": 0, "limit": 7, "total": 130}),
        ("pagination[limit]=1000", NAMES[:100], {"start": 0, "limit": 100, "total": 130}),
        ("pagination[start]=-5", NAMES[:25], {"start": 0, "limit": 25, "total": 130}),
        ("pagination[start]=500", [], {"start": 500, "limit": 25, "total": 130}),
        ("pagination[withCount]=false", NAMES[:25], {"page": 1, "pageSize": 25}),
        ("pagination[start]=1&pagination[withCount]=0", NAMES[1:26], {"start": 1, "limit": 25}),
        (
            "pagination[withCount]=true",
            NAMES[:25],
            {"page": 1, "pageSize": 25, "pageCount": 6, "total": 130},
        ),
        (
            "pagination[page]=2&pagination[pageCount]=6&pagination[total]=130",
            NAMES[25:50],
            {"page": 2, "pageSize": 25, "pageCount": 6, "total": 130},
        ),
        (
            "pagination[page]=999999999999999999",
            [],
            {"page": 999999999999999999, "pageSize": 25, "pageCount": 6, "total": 130},
        ),
        (
            "sort=documentId&pagination[page]=999999999999999999&pagination[pageSize]=100",
            [],
            {"page": 999999999999999999, "pageSize": 100, "pageCount": 2, "total": 130},
        ),
        (
            "filters[text][$null]=true&pagination[start]=999999999999999999",
            [],
            {"start": 999999999999999999, "limit": 25, "total": 130},
        ),
        (
            "filters[documentId][$startsWith]=n00&pagination[pageSize]=4",
            NAMES[:4],
            {"page": 1, "pageSize": 4, "pageCount": 3, "total": 10},
        ),
        ("filters[text]=none", [], {"page": 1, "pageSize": 25, "pageCount": 0, "total": 0}),
    ],
)
def test_pages(notes: Api, query: str, wanted: list[str], meta: dict[str, int]) -> None:
    assert page(notes, query) == (wanted, meta)


@pytest.mark.parametrize(
    ("query", "name", "words"),
    [
        ("pagination[page]=abc", "ValidationError", "page must be a whole number"),
        ("pagination[page]=1.5", "ValidationError", "page must be a whole number"),
        ("pagination[page]=1e3", "ValidationError", "page must be a whole number"),
        ("pagination[page]=%D9%A1", "ValidationError", "page must be a whole number"),
        (f"pagination[page]={'9' * 19}", "ValidationError", "page must be a whole number"),
        (f"pagination[pageSize]={'9' * 5000}", "ValidationError", "pageSize must be a whole number"),
        ("pagination[page][x]=1", "ValidationError", "page must be a whole number"),
        ("pagination[limit]=x", "ValidationError", "limit must be a whole number"),
        ("pagination[withCount]=maybe", "ValidationError", "withCount"),
        ("pagination[withCount]=", "ValidationError", "withCount"),
        ("pagination[page]=1&pagination[start]=1", "PaginationError", "page & offset"),
        ("pagination[pageSize]=1&pagination[limit]=1", "PaginationError", "page & offset"),
    ],
)
def test_invalid_pages_are_refused(notes: Api, query: str, name: str, words: str) -> None:
    error = notes.get(f"/api/notes?{query}").error
    assert (error["status"], error["name"]) == (400, name)
    assert words in error["message"]


def test_page_sizes_are_configurable(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": "api: {page_size: {default: 3, max: 5}}"})
    assert page(api, "")[1]["pageSize"] == 3
    assert page(api, "pagination[pageSize]=50")[1]["pageSize"] == 5
    assert page(api, "pagination[limit]=50")[1]["limit"] == 5


def test_populate_with_pagination_needs_a_setting(make_api: MakeApi) -> None:
    tagged = collection(
        "tag", {"notes": {"type": "relation", "relation": "oneToMany", "target": "api::note.note"}}
    )
    api = make_api({**FILES, **tagged})
    error = api.get("/api/tags?populate=*&pagination[page]=1").error
    assert (error["status"], error["name"]) == (400, "ValidationError")
    assert "populate_with_pagination: allow" in error["message"]
    assert api.get("/api/tags?populate=notes").status == 200
    assert api.get("/api/tags?populate=&pagination[page]=1").status == 200
    (api.site.root / "site.yaml").write_text("api: {populate_with_pagination: allow}")
    api.site.refresh()
    assert api.get("/api/tags?populate=*&pagination[page]=1").status == 200
