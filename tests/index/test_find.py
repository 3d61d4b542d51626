"""Queries on the index: `_q`, publication filters, single documents, and changes to files."""

from typing import Any

import pytest

from server.query.parse import PUBLICATION_FILTERS
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
    translated,
)

NOTE = {
    "s": STRING,
    "txt": {"type": "text"},
    "rich": {"type": "richtext"},
    "enu": {"type": "enumeration", "enum": ["red", "blue"]},
    "mail": {"type": "email"},
    "slug": {"type": "uid"},
    "i": INTEGER,
    "f": {"type": "float"},
    "dec": {"type": "decimal"},
    "big": {"type": "biginteger"},
    "pw": {"type": "password"},
    "hidden": {"type": "string", "private": True},
    "count": {"type": "integer", "private": True},
    "j": {"type": "json"},
    "part": {"type": "component", "component": "x.part"},
    "to": relation("manyToOne", "note"),
}
NOTES = {
    "string": {"s": "A needle here"},
    "text": {"txt": "two\nNEEDLES"},
    "rich": {"rich": "# needle"},
    "enum": {"enu": "red"},
    "mail": {"mail": "needle@x.org"},
    "slug": {"slug": "needle"},
    "integer": {"i": 42},
    "float": {"f": 1.5},
    "decimal": {"dec": 1.1},
    "big": {"big": 9007199254740993},
    "password": {"pw": "needle"},
    "private": {"hidden": "needle", "count": 42},
    "json": {"j": "needle"},
    "component": {"part": {"n": "needle"}},
    "related": {"to": "string"},
    "accent": {"s": "ÉTÉ"},
}
FILES = {**collection("note", NOTE), **component("x.part", {"n": STRING}), **documents("notes", **NOTES)}


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return Api.of(load(tmp_path_factory.mktemp("notes"), FILES))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("needle", ["string", "text", "rich", "mail", "slug"]),
        ("NEEDLE", ["string", "text", "rich", "mail", "slug"]),
        ("needle here", ["string"]),
        ("red", ["enum"]),
        ("42", ["integer"]),
        ("0071992", ["big"]),
        (".1", ["decimal"]),
        ("4", ["integer", "big"]),
        ("integer", ["integer"]),
        ("intege", []),
        ("1.5", ["float"]),
        ("1.1", ["decimal"]),
        ("9007199254740993", ["big"]),
        ("9007199254740992", []),
        ("été", ["accent"]),
        ("zzz", []),
        ("4_2", []),
        ("nan", []),
        ("9" * 5000, []),
    ],
)
def test_a_search_covers_visible_attributes(notes: Api, text: str, wanted: list[str]) -> None:
    assert notes.get("/api/notes", query_string={"_q": text}).ids == wanted


def test_a_search_combines_with_filters_sorting_and_pages(notes: Api) -> None:
    query = "_q=needle&filters[s][$null]=true&sort=id:desc&pagination[pageSize]=2"
    answer = notes.get(f"/api/notes?{query}")
    assert answer.ids == ["slug", "mail"]
    assert answer.body["meta"]["pagination"]["total"] == 4


@pytest.mark.parametrize("query", ["filters[s]=other", "_q=other"])
def test_a_document_that_does_not_match_is_not_found(notes: Api, query: str) -> None:
    assert notes.get(f"/api/notes/string?{query}").status == 404
    assert notes.get("/api/notes/string?filters[s][$contains]=needle&_q=here").status == 200


# --- publication filters -------------------------------------------------------------------------

# Each document's versions in en and fr: whether it is published, and whether there is a draft file.
STATES = {
    "live": ("p", ""),
    "same": ("pd=", ""),
    "changed": ("pd", ""),
    "new": ("d", ""),
    "fr-live": ("d", "p"),
    "fr-new": ("p", "d"),
    "fr-only": ("", "p"),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Api:
    files: dict[str, Any] = {
        **collection("page", {"title": translated(STRING)}, localized=True, drafts=True),
        "site.yaml": "locales: {default: en, available: [en, fr]}",
    }
    for name, states in STATES.items():
        for state, locale in zip(states, ("", ".fr"), strict=True):
            if "p" in state:
                files[f"content/pages/{name}{locale}.md"] = "---\ntitle: T\n---\n"
            if "d" in state:
                title = "T" if "=" in state else "Other"
                files[f"content/pages/{name}{locale}.draft.md"] = f"---\ntitle: {title}\n---\n"
    return Api.of(load(tmp_path_factory.mktemp("pages"), files))


@pytest.mark.parametrize(
    ("wanted", "published", "draft"),
    [
        ("never-published", [], ["fr-live", "new"]),
        (
            "has-published-version",
            ["changed", "fr-new", "live", "same"],
            ["changed", "fr-new", "live", "same"],
        ),
        ("modified", ["changed"], ["changed"]),
        ("unmodified", ["fr-new", "live", "same"], ["fr-new", "live", "same"]),
        ("never-published-document", [], ["new"]),
        (
            "has-published-version-document",
            ["changed", "fr-new", "live", "same"],
            ["changed", "fr-live", "fr-new", "live", "same"],
        ),
        ("published-without-draft", [], []),
        ("published-with-draft", ["changed", "fr-new", "live", "same"], []),
    ],
)
def test_publication_filters(pages: Api, wanted: str, published: list[str], draft: list[str]) -> None:
    path = f"/api/pages?sort=documentId&publicationFilter={wanted}"
    assert pages.get(path).ids == published
    assert pages.get(f"{path}&status=draft").ids == draft


def test_every_publication_filter_is_implemented() -> None:
    tested = {
        mark.args[1][i][0] for mark in test_publication_filters.pytestmark for i in range(len(mark.args[1]))
    }
    assert tested == set(PUBLICATION_FILTERS)


def test_a_draft_with_1_instead_of_true_is_modified(make_api: MakeApi) -> None:
    page = collection("page", {"extra": {"type": "json"}}, drafts=True)
    versions = {"a": "true", "a.draft": "1", "b": "true", "b.draft": "true"}
    files = {f"content/pages/{name}.json": f'{{"extra": {value}}}' for name, value in versions.items()}
    api = make_api({**page, **files})
    assert api.get("/api/pages?publicationFilter=modified").ids == ["a"]
    assert api.get("/api/pages?publicationFilter=unmodified").ids == ["b"]


def test_publication_filters_do_not_apply_to_types_without_drafts(notes: Api) -> None:
    assert len(notes.get("/api/notes?publicationFilter=modified").ids) == len(NOTES)


def test_a_published_document_shown_as_a_draft_has_no_date_of_publication(pages: Api) -> None:
    found = {d["documentId"]: d for d in pages.get("/api/pages?status=draft").data}
    assert {d["publishedAt"] for d in found.values()} == {None}
    assert found["live"]["title"] == "T"
    assert found["changed"]["title"] == "Other"
    assert found["live"]["id"] == pages.get("/api/pages/live").data["id"]


# --- changes to files -----------------------------------------------------------------------------


def test_lists_reflect_changed_files(make_api: MakeApi) -> None:
    api = make_api({**FILES, "content/notes/string.json": '{"s": "one", "i": 1}'})
    for query in ("filters[s]=one", "sort=s&filters[i]=1", "filters[to][s]=one", "_q=one"):
        api.get(f"/api/notes?{query}")
    assert api.get("/api/notes?filters[to][s]=one").ids == ["related"]
    (api.site.root / "content/notes/string.json").write_text('{"s": "two", "i": 2}')
    api.site.refresh()
    assert api.get("/api/notes?filters[s]=one").ids == []
    assert api.get("/api/notes?filters[s]=two").ids == ["string"]
    assert api.get("/api/notes?sort=s&filters[i]=2").ids == ["string"]
    assert api.get("/api/notes?filters[to][s]=two").ids == ["related"]
    (api.site.root / "content/notes/string.json").unlink()
    api.site.refresh()
    assert api.get("/api/notes?filters[to][s]=two").ids == []
    assert api.get("/api/notes/related?populate=to").data["to"] is None


# --- hidden drafts -------------------------------------------------------------------------------

# Pages have no locales, but their relations lead to articles, which do.
RELATIONS = {
    "one": relation("manyToOne", "article"),
    "many": relation("manyToMany", "article"),
    "any": {"type": "relation", "relation": "morphToOne"},
    "part": {"type": "component", "component": "x.part"},
}
CAPE = {
    **collection("article", {"title": translated(STRING)}, localized=True, drafts=True),
    **collection("page", {"title": STRING, **RELATIONS}),
    **component("x.part", {"one": relation("manyToOne", "article")}),
    **documents(
        "pages",
        p={
            "one": "cape",
            "many": ["cape"],
            "any": {"__type": "api::article.article", "documentId": "cape"},
            "part": {"one": "cape"},
        },
    ),
    "content/articles/cape.fr.json": '{"title": "Le cap"}',
    "site.yaml": "locales: {default: en, available: [en, fr]}\n"
    "roles: {public: {page: [find], article: [find]}}\n",
}
QUERIES = (
    "populate[one]=true&populate[many]=true&populate[any]=true&populate[part][populate]=*",
    "filters[one][title]=Le cap",
    "filters[one][title][$null]=true",
    "filters[one][id][$notNull]=true",
    "filters[part][one][title][$startsWith]=Le",
    "populate[many][count]=true",
    "sort=one.title&populate=one",
)


@pytest.mark.parametrize("query", QUERIES)
def test_a_draft_in_the_default_locale_does_not_change_what_the_public_reads(
    make_api: MakeApi, query: str
) -> None:
    api = make_api(CAPE)
    before = api.get(f"/api/pages?{query}", "public")
    (api.root / "content/articles/cape.draft.json").write_text('{"title": "Hush"}')
    api.site.refresh()
    assert api.get("/api/articles?status=draft").ids == ["cape"]  # The server has read the draft.
    assert api.get(f"/api/pages?{query}", "public").raw == before.raw
    assert before.status == 200
