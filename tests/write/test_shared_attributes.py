"""Attributes that the locales of a document share, and attributes with a value for each locale."""

from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import INTEGER, STRING, Api, collection, component, documents, relation, translated

ITEM: dict[str, Any] = {
    "title": translated(STRING),
    "slug": {"type": "uid", "targetField": "title"},
    "price": INTEGER,
    "sold": {"type": "json"},
    "extra": translated({"type": "json"}),
    "box": {"type": "component", "component": "x.box"},
    "shop": {**relation("manyToOne", "shop"), "pluginOptions": {"i18n": {"localized": False}}},
}
FILES: dict[str, Any] = {
    **collection("item", ITEM, drafts=True, localized=True),
    **collection("shop", {"name": STRING}),
    **component("x.box", {"width": INTEGER}),
    **documents("shops", a={"name": "A"}, b={"name": "B"}),
    "site.yaml": "locales: {default: en, available: [en, fr, de]}\n",
    "content/items/one.md": "---\ntitle: One\nslug: one\nprice: 1\nbox: {width: 1}\nshop: a\n---\n",
}


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(dict(FILES))


def prices(api: Api) -> dict[str, Any]:
    """Return the price for each locale and status. It is None if there is no such version."""
    found = {}
    for locale in ("en", "fr", "de"):
        for status in ("published", "draft"):
            answer = api.get(f"/api/items/one?locale={locale}&status={status}")
            found[f"{locale} {status}"] = answer.data["price"] if answer.status == 200 else None
    return found


def files(api: Api) -> set[str]:
    return {path.name for path in (api.site.root / "content/items").iterdir()}


def test_a_new_locale_publishes_what_is_published(api: Api) -> None:
    api.put("/api/items/one?status=draft", {"price": 2})
    assert api.put("/api/items/one?locale=fr", {"title": "Un"}).data["price"] == 1
    assert prices(api) == {
        "en published": 1,
        "en draft": 2,
        "fr published": 1,
        "fr draft": 1,
        "de published": None,
        "de draft": None,
    }


def test_a_new_draft_of_a_locale_takes_over_from_the_draft(api: Api) -> None:
    api.put("/api/items/one?status=draft", {"price": 2})
    assert api.put("/api/items/one?locale=de&status=draft", {"title": "Eins"}).data["price"] == 2
    assert prices(api)["de published"] is None


def test_a_draft_reaches_the_drafts_of_the_other_locales(api: Api) -> None:
    api.put("/api/items/one?locale=fr", {"title": "Un"})
    api.put("/api/items/one?locale=de&status=draft", {"title": "Eins"})
    api.put("/api/items/one?status=draft", {"price": 3})
    assert prices(api) == {
        "en published": 1,
        "en draft": 3,
        "fr published": 1,
        "fr draft": 3,
        "de published": None,
        "de draft": 3,
    }
    assert api.get("/api/items/one?locale=fr&status=draft").data["title"] == "Un"


def test_publishing_reaches_every_version_and_leaves_no_draft_that_is_none(api: Api) -> None:
    api.put("/api/items/one?locale=fr", {"title": "Un"})
    api.put("/api/items/one?status=draft", {"price": 3, "box": {"width": 9}})
    assert "one.fr.draft.md" in files(api)
    api.put("/api/items/one", {})
    assert {price for name, price in prices(api).items() if not name.startswith("de")} == {3}
    assert api.get("/api/items/one?locale=fr&populate=box").data["box"]["width"] == 9
    assert files(api) == {"one.md", "one.fr.md"}


def test_an_edit_of_what_is_a_locales_own_leaves_the_others_alone(api: Api) -> None:
    api.put("/api/items/one?locale=fr", {"title": "Un"})
    french = (api.site.root / "content/items/one.fr.md").read_text()
    api.put("/api/items/one", {"title": "First", "slug": "first", "shop": "b"})
    assert (api.site.root / "content/items/one.fr.md").read_text() == french


def test_a_uid_and_a_relation_are_each_locales_own(api: Api) -> None:
    new = api.put("/api/items/one?locale=fr&populate=shop", {"title": "Un"}).data
    assert (new["slug"], new["shop"]) == (None, None)
    api.put("/api/items/one?locale=fr", {"slug": "un", "shop": "b"})
    for locale, slug, shop in (("en", "one", "A"), ("fr", "un", "B")):
        found = api.get(f"/api/items/one?locale={locale}&populate=shop").data
        assert (found["slug"], found["shop"]["name"]) == (slug, shop)


def test_a_draft_that_says_1_where_true_is_published_is_kept(api: Api) -> None:
    api.put("/api/items/one?locale=fr", {"title": "Un", "extra": True})
    api.put("/api/items/one?locale=fr&status=draft", {"extra": 1})
    api.put("/api/items/one", {"price": 5})
    assert api.get("/api/items/one?locale=fr&status=draft").data["extra"] is not True
    assert "one.fr.draft.md" in files(api)


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("", {"fr", "de"}),
        ("locale=fr", {"en", "de"}),
        ("locale[0]=en&locale[1]=fr", {"de"}),
        ("locale[0]=*", set()),
        ("locale=*", set()),
    ],
)
def test_a_deletion_is_of_the_locales_that_it_names(api: Api, query: str, left: set[str]) -> None:
    for locale in ("fr", "de"):
        api.put(f"/api/items/one?locale={locale}", {"title": locale})
        api.put(f"/api/items/one?locale={locale}&status=draft", {"title": f"{locale} draft"})
    assert api.ask("DELETE", f"/api/items/one?{query}").status == 204
    assert {code for code in ("en", "fr", "de") if prices(api)[f"{code} published"]} == left
    assert {name.split(".")[1] for name in files(api)} <= {"md", *left}


@pytest.mark.parametrize(
    "query", ["populate=zzz", "fields=zzz", "sort=zzz", "filters[zzz]=1", "status=draft", "locale=en/fr"]
)
def test_a_deletion_that_asks_for_what_is_not_there_deletes_nothing(api: Api, query: str) -> None:
    assert api.ask("DELETE", f"/api/items/one?{query}").status == 400
    assert files(api) == {"one.md"}


def test_publishing_1_where_true_was_published_reaches_all_locales(api: Api) -> None:
    api.put("/api/items/one?locale=fr", {"title": "Un", "sold": True})
    api.put("/api/items/one?status=draft", {"sold": 1})
    api.put("/api/items/one", {"title": "New"})
    assert api.get("/api/items/one?locale=fr").data["sold"] is not True


def test_a_new_locale_takes_nothing_from_the_others(api: Api) -> None:
    assert api.put("/api/items/one?locale=fr", {"title": None, "price": None, "box": None}).data["price"] == 1
    assert prices(api)["en published"] == 1
    assert api.get("/api/items/one?locale=fr&populate=box").data["box"]["width"] == 1
    # If the locale exists, null deletes the value in all locales.
    api.put("/api/items/one?locale=fr", {"price": None})
    assert prices(api)["en published"] is None


def test_what_a_write_does_not_change_leaves_other_locales_that_differ(api: Api) -> None:
    api.put("/api/items/one?locale=fr", {"title": "Un"})
    path = api.site.root / "content/items/one.fr.md"
    path.write_text(path.read_text().replace("price: 1", "price: 7"))
    api.site.refresh()
    french = path.read_text()
    api.put("/api/items/one", {"title": "First", "price": 1})
    api.put("/api/items/one?status=draft", {"title": "Draft", "price": 1})
    api.put("/api/items/one?locale=de", {"title": "Eins", "price": 1})
    assert path.read_text() == french
    api.put("/api/items/one", {"price": 2})
    assert set(prices(api).values()) == {2}


def test_what_is_published_as_it_was_before_its_draft_reaches_the_other_drafts(api: Api) -> None:
    api.put("/api/items/one?locale=fr", {"title": "Un"})
    api.put("/api/items/one?status=draft", {"price": 3})
    api.put("/api/items/one", {"price": 1})
    assert prices(api)["fr draft"] == 1
