"""Sitemaps."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

import pytest

from server.service.public_site.public_reader import PublicSite
from server.service.public_site.sitemap import sitemaps
from tests.conftest import MakeApi
from tests.service.public_site.sites import FILES, SECRETS
from tests.sites import STRING, Api, collection, load

SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
LINK = "{http://www.w3.org/1999/xhtml}link"


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(FILES)


def addresses(text: str | bytes, kind: str = "url") -> list[str]:
    root = ElementTree.fromstring(text)
    assert root.tag == SITEMAP + {"url": "urlset", "sitemap": "sitemapindex"}[kind]
    return [each.findtext(f"{SITEMAP}loc") or "" for each in root.findall(f"{SITEMAP}{kind}")]


def test_a_sitemap_lists_the_published_documents_of_public_types(api: Api) -> None:
    response = api.get("/sitemap.xml", "public")
    assert response.headers["Content-Type"] == "application/xml; charset=utf-8"
    assert addresses(response.raw) == [
        "https://example.org/about/us",
        "https://example.org/articles/fog",
        "https://example.org/articles/red%20ferry%2F%E2%80%9C7%E2%80%9D",
        "https://example.org/fr/articles/brume",
    ]
    assert not [secret for secret in SECRETS if secret.encode() in response.raw]
    assert api.get("/sitemap.xml", "full").raw == response.raw
    assert api.get("/sitemap-1.xml", "public").status == 404


def test_a_translated_document_names_its_other_languages(api: Api) -> None:
    root = ElementTree.fromstring(api.get("/sitemap.xml", "public").raw)
    links: Mapping[str, list[tuple[str | None, ...]]] = {
        url.findtext(f"{SITEMAP}loc") or "": [
            (link.get("hreflang"), link.get("href")) for link in url.findall(LINK)
        ]
        for url in root
    }
    english, french = "https://example.org/articles/fog", "https://example.org/fr/articles/brume"
    assert links[english] == links[french] == [("en", english), ("x-default", english), ("fr", french)]
    assert links["https://example.org/about/us"] == []


def test_a_large_site_has_several_sitemaps_and_an_index(tmp_path: Path) -> None:
    site = load(
        tmp_path,
        {
            "site.yaml": 'roles: {public: {note: [find]}}\nurls: {note: "https://example.org/{documentId}"}\n',
            **collection("note", {"title": STRING}),
            **{f"content/notes/n{i:03}.json": "{}" for i in range(25)},
        },
    )
    public = PublicSite(site.state)
    found = sitemaps(public, max_urls=10)
    assert addresses(found["sitemap.xml"], "sitemap") == [
        f"https://example.org/sitemap-{number}.xml" for number in (1, 2, 3)
    ]
    listed = [addresses(found[f"sitemap-{number}.xml"]) for number in (1, 2, 3)]
    assert [len(part) for part in listed] == [10, 10, 5]
    assert [*chain.from_iterable(listed)] == addresses(sitemaps(public)["sitemap.xml"])
    small = sitemaps(public, max_bytes=700)
    assert len(small) > 4
    assert max(len(text) for name, text in small.items() if name != "sitemap.xml") <= 700


def test_a_site_without_public_urls_has_no_sitemap(make_api: MakeApi) -> None:
    api = make_api(collection("note", {"title": STRING}))
    assert api.get("/sitemap.xml", "public").status == 404
