"""The import of schemas: custom fields, and relations whose other side is the type for users."""

from pathlib import Path
from typing import Any

from server.schema.model import USER
from server.site.site import Site
from server.tools.importer.importing import ImportOptions, import_source
from server.tools.importer.readers.archive import Archive
from server.tools.importer.readers.remote import Remote
from tests.tools.importer.archives import link, small
from tests.tools.importer.replay import recorded, serving

ARTICLE = "api::article.article"
TITLE = {"title": {"type": "string"}}
USER_SCHEMA: dict[str, Any] = {
    "kind": "collectionType",
    "info": {"singularName": "user", "pluralName": "users", "displayName": "User"},
    "attributes": {"username": {"type": "string"}, "password": {"type": "password"}},
}


def imported(root: Path, reader: Archive | Remote) -> tuple[Site, list[str]]:
    """Import from a source. Return the site, and the notes that the import reported."""
    root.mkdir(exist_ok=True)
    notes = [
        f"{uid}: {what}" for uid, what, _ in import_source(root, reader, ImportOptions(), _say).source.notes
    ]
    site = Site(root)
    site.load()
    assert [p for p in site.problems if p.severity == "error"] == []
    return site, notes


def _say(what: str, done: int, total: int) -> None:
    pass


def values(site: Site, uid: str, name: str) -> list[Any]:
    return [d.get(name) for d in site.state.snapshot.tables[uid].versions.values()]


def user_with(**attributes: Any) -> dict[str, Any]:
    return {**USER_SCHEMA, "attributes": {**USER_SCHEMA["attributes"], **attributes}}


def related(kind: str, target: str, **sides: str) -> dict[str, str]:
    return {"type": "relation", "relation": kind, "target": target, **sides}


# --- custom fields ---------------------------------------------------------------------------------


def test_custom_fields_of_an_archive_come(tmp_path: Path) -> None:
    attributes = {
        **TITLE,
        "colour": {"type": "string", "customField": "plugin::color-picker.color"},
        "place": {"type": "customField", "customField": "plugin::map.place", "options": {"zoom": 3}},
        "tint": {"type": "customField", "customField": "plugin::color-picker.color"},
    }
    said = {"title": "Fog", "colour": "#ff8800", "place": {"lat": 50.1, "lng": -5.5}, "tint": "#000000"}
    path = small(tmp_path / "a.tar.gz", {ARTICLE: attributes}, [(ARTICLE, 1, said)])
    site, notes = imported(tmp_path / "site", Archive(path))
    assert notes == []
    for name, value in said.items():
        assert values(site, ARTICLE, name) == [value]
    assert '"customField": "plugin::map.place"' in (tmp_path / "site/content-types/article.json").read_text()


def test_custom_fields_of_an_installation_come(tmp_path: Path) -> None:
    """The content-type builder returns only `customField` as the type of these attributes."""
    attributes = {**TITLE, "place": {"type": "customField", "customField": "plugin::map.place"}}
    row = {
        "documentId": "n1",
        "title": "Fog",
        "place": {"lat": 50.1},
        "createdAt": "2024-01-01T00:00:00.000Z",
    }
    answers = {
        "/api/content-type-builder/content-types": {"data": [_told(ARTICLE, attributes)]},
        "/api/content-type-builder/components": {"data": []},
        "/api/i18n/locales": [],
        "/api/upload/files?sort=id&start=0&limit=100": [],
        "/api/articles?sort=id&pagination[page]=1&pagination[pageSize]=100": {
            "data": [row],
            "meta": {"pagination": {"pageCount": 1}},
        },
    }
    with serving(recorded(answers, {}, "token")) as address:
        site, notes = imported(tmp_path / "site", Remote(address, "token"))
    assert notes == []
    assert values(site, ARTICLE, "place") == [{"lat": 50.1}]


def _told(uid: str, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return a content type as in a response of the content-type builder."""
    name = uid.rpartition(".")[2]
    schema = {
        "kind": "collectionType",
        "collectionName": name,
        "singularName": name,
        "pluralName": f"{name}s",
    }
    described = {**schema, "displayName": name, "description": "", "draftAndPublish": False}
    return {"uid": uid, "schema": {**described, "attributes": attributes}}


# --- users -----------------------------------------------------------------------------------------


def test_relations_stored_at_users_come_to_the_other_side(tmp_path: Path) -> None:
    schemas = {
        ARTICLE: {
            **TITLE,
            "readers": related("manyToMany", USER, mappedBy="favourites"),
            "owner": related("oneToOne", USER, mappedBy="home"),
            "author": related("manyToOne", USER, inversedBy="articles"),
        },
        USER: user_with(
            favourites=related("manyToMany", ARTICLE, inversedBy="readers"),
            home=related("oneToOne", ARTICLE, inversedBy="owner"),
            articles=related("oneToMany", ARTICLE, mappedBy="author"),
        ),
    }
    rows = [(ARTICLE, 1, {"title": "Fog"}), (USER, 7, {"username": "ann"}), (USER, 8, {"username": "bob"})]
    links = [
        link((USER, 7, "favourites"), (ARTICLE, 1, "readers"), mirror=2),
        link((USER, 8, "favourites"), (ARTICLE, 1, "readers"), mirror=1),
        link((USER, 7, "home"), (ARTICLE, 1, "owner")),
        link((ARTICLE, 1, "author"), (USER, 8, "articles")),
    ]
    del links[2]["right"]["pos"]  # A to-one relation has no order.
    site, notes = imported(tmp_path / "site", Archive(small(tmp_path / "a.tar.gz", schemas, rows, links)))
    assert [n for n in notes if ": accounts are not imported" not in n] == []
    assert values(site, ARTICLE, "readers") == [(f"{8:024d}", f"{7:024d}")]
    assert values(site, ARTICLE, "owner") == [(f"{7:024d}",)]
    assert values(site, ARTICLE, "author") == [(f"{8:024d}",)]


def test_attributes_that_only_users_have_are_named(tmp_path: Path) -> None:
    schemas = {
        ARTICLE: TITLE,
        USER: user_with(bookmarks=related("oneToMany", ARTICLE), city={"type": "string"}),
    }
    path = small(tmp_path / "a.tar.gz", schemas, [(ARTICLE, 1, {"title": "Fog"}), (USER, 7, {})])
    _, notes = imported(tmp_path / "site", Archive(path))
    assert notes[1:] == [
        f'{USER}: "bookmarks" is one-way; to import it into {ARTICLE}, make it two-way in Strapi',
        f'{USER}: "city" was added to users; accounts in Bifolio do not support it',
    ]
