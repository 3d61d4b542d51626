"""Tests of suggestions for mistyped attributes, which name nothing that the caller may not see."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sites import STRING, Api, collection, component, load, relation

FILES = {
    **collection(
        "article",
        {
            "title": STRING,
            "secretCode": {"type": "string", "private": True},
            "authors": relation("manyToMany", "author"),
            "quote": {"type": "component", "component": "shared.quote"},
        },
    ),
    **collection("author", {"name": STRING, "card": {"type": "component", "component": "shared.card"}}),
    **component("shared.quote", {"spoken": {"type": "text"}}),
    **component("shared.card", {"telephone": STRING}),
    "content/articles/fog.json": '{"title": "Fog"}',
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    api = Api.of(load(tmp_path_factory.mktemp("site"), FILES))
    api.token("articles", may=["article.find", "article.update"])
    api.token("writer", may=["article.update"])
    yield api
    api.accounts.close()


@pytest.mark.parametrize(
    ("who", "query", "meant"),
    [
        ("full", "fields=titel", "title"),
        ("full", "fields=author", None),  # Relations are not fields.
        ("full", "filters[titel]=a", "title"),
        ("full", "filters[author][name]=a", "authors"),
        ("full", "filters[authors][nmae]=a", "name"),
        ("full", "sort=tilte", "title"),
        ("full", "populate=autors", "authors"),
        ("full", "populate[autors]=true", "authors"),
        ("full", "filters[secretCod]=a", None),
        ("full", "filters[colour]=a", None),
        ("full", f"filters[title{'e' * 500}]=a", None),
        ("articles", "filters[titel]=a", "title"),
        ("articles", "filters[author]=a", None),
        ("articles", "populate=autors", None),
        ("articles", "filters[authors][nmae]=a", None),
        ("articles", "filters[authors][card][telefone]=a", None),
        ("full", "filters[authors][card][telefone]=a", "telephone"),
        ("articles", "filters[quote][spokn]=a", "spoken"),
    ],
)
def test_a_mistyped_key_of_a_query(api: Api, who: str, query: str, meant: str | None) -> None:
    error = api.get(f"/api/articles?{query}", who).error
    assert error["message"].startswith("Invalid key ")
    assert error["details"].get("suggestion") == meant


@pytest.mark.parametrize(
    ("who", "data", "meant"),
    [
        ("full", {"titel": "a"}, "title"),
        ("full", {"quote": {"spokn": "a"}}, "spoken"),
        ("full", {"secretcode": "a"}, "secretCode"),
        ("full", {"colour": "a"}, None),
        ("articles", {"titel": "a"}, "title"),
        ("articles", {"autors": []}, None),
        ("writer", {"secretcode": "a"}, None),
    ],
)
def test_a_mistyped_key_of_a_body(api: Api, who: str, data: dict[str, Any], meant: str | None) -> None:
    error = api.put("/api/articles/fog", data, who).error
    assert error["message"].startswith("Invalid key ")
    assert error["details"].get("suggestion") == meant
