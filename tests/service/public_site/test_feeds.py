"""Feeds: what they contain, and whether independent readers accept them."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import atoma  # type: ignore[import-untyped]
import feedparser  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from server.service.public_site.feed_items import strip_mdx_modules
from server.service.public_site.xml import HEAD, element, parent_element
from tests.conftest import MakeApi
from tests.service.public_site.sites import FILES, SECRETS, SETTINGS
from tests.sites import STRING, Api, collection

EXTENSIONS = ("rss", "atom", "json")
READERS = {
    "rss": atoma.parse_rss_bytes,
    "atom": atoma.parse_atom_bytes,
    "json": atoma.parse_json_feed_bytes,
}


SHORT_SETTINGS = SETTINGS[: SETTINGS.index("feeds:")] + "feeds: {news: {type: article}}\n"
SCHEMA = json.loads(Path(__file__).with_name("json_feed.schema.json").read_text())
JSON_FEED = Draft202012Validator(SCHEMA, format_checker=FormatChecker())


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(FILES)


def items(api: Api, name: str) -> Any:
    return api.get(f"/feeds/{name}.json", "public").body["items"]


@pytest.mark.parametrize("name", ["news", "everything", "red"])
@pytest.mark.parametrize("extension", EXTENSIONS)
def test_independent_readers_accept_every_feed(api: Api, name: str, extension: str) -> None:
    response = api.get(f"/feeds/{name}.{extension}", "public")
    assert response.status == 200
    read = READERS[extension](response.raw)
    count = len(items(api, name))
    assert len(getattr(read, "entries", None) or read.items) == count > 0
    if extension != "json":
        parsed = feedparser.parse(
            response.raw, response_headers={"content-type": response.headers["Content-Type"]}
        )
        assert not parsed.bozo, parsed.bozo_exception
        assert len(parsed.entries) == count
        assert len({entry.id for entry in parsed.entries}) == count


@pytest.mark.parametrize("name", ["news", "everything", "red"])
def test_every_json_feed_fits_the_schema_of_its_version(api: Api, name: str) -> None:
    feed = api.get(f"/feeds/{name}.json", "public").body
    assert [error.message for error in JSON_FEED.iter_errors(feed)] == []


def test_documents_without_values_are_valid_items(make_api: MakeApi) -> None:
    schema = collection("article", {"slug": "uid", "body": "richtext"})
    api = make_api({**schema, "site.yaml": SHORT_SETTINGS, "content/articles/x.md": "---\nslug: x\n---\n"})
    feed = api.get("/feeds/news.json", "public").body
    assert [error.message for error in JSON_FEED.iter_errors(feed)] == []
    assert len(feed["items"]) == 1


def test_the_schema_refuses_wrong_json_feeds(api: Api) -> None:
    feed = api.get("/feeds/news.json", "public").body
    for wrong in ({"id": 1}, {"url": "/fog"}, {"image": "a b"}, {"date_published": "2024-03-02"}, {"_a": 1}):
        changed = deepcopy(feed)
        changed["items"][0].update(wrong)
        assert not JSON_FEED.is_valid(changed), wrong
    del feed["items"][0]["content_html"]
    assert not JSON_FEED.is_valid(feed)


def test_a_feed_contains_the_newest_documents_with_their_public_urls(api: Api) -> None:
    fog, ferry = items(api, "news")
    assert fog["url"] == "https://example.org/articles/fog"
    assert fog["title"] == "Fog & <script>alert(1)</script> ball"
    assert fog["summary"] == "It is thick."
    assert fog["date_published"] == "2024-03-02T00:00:00Z"
    assert fog["authors"] == [{"name": "Ann O'Hara"}]
    assert fog["image"] == "https://cms.example.org/uploads/cover.png"
    assert ferry["url"] == "https://example.org/articles/red%20ferry%2F%E2%80%9C7%E2%80%9D"


def test_content_is_html_with_absolute_urls_and_without_scripts(api: Api) -> None:
    fog, _ = items(api, "news")
    assert fog["content_html"] == (
        '<p>See <a href="https://example.org/ferry">the ferry</a>'
        ' <img src="https://cms.example.org/uploads/cover.png" alt="" /></p>\n\n<p>tab ]]&gt;</p>'
    )
    page = next(item for item in items(api, "everything") if item["url"] == "https://example.org/about/us")
    assert page["content_html"] == (
        "<h2>Who &amp; what</h2>\n<ol><li><strong>one</strong>"
        '<a href="https://example.org/fog">two</a></li>\n</ol>'
    )


def test_a_feed_shows_only_what_the_public_may_read(api: Api) -> None:
    for name in ("news", "everything", "red"):
        for extension in EXTENSIONS:
            public = api.get(f"/feeds/{name}.{extension}", "public")
            assert public.raw == api.get(f"/feeds/{name}.{extension}", "full").raw
            assert not [secret for secret in SECRETS if secret.encode() in public.raw]
    assert api.get("/feeds/memos.rss", "full").status == 404


def test_a_feed_contains_what_its_settings_say(api: Api) -> None:
    [red] = items(api, "red")
    assert red["title"] == "Ferry"
    assert "summary" not in red
    assert {item["language"] for item in items(api, "everything")} == {"en", "fr"}


def test_a_list_of_names_is_the_authors(make_api: MakeApi) -> None:
    page = collection("page", {"heading": STRING, "authors": {"type": "array"}})
    api = make_api({**FILES, **page, "content/pages/about/us.yaml": "heading: Us\nauthors: [Ann, Bo]\n"})
    item = next(item for item in items(api, "everything") if item["url"].endswith("/about/us"))
    assert item["authors"] == [{"name": "Ann"}, {"name": "Bo"}]


def test_mdx_has_no_javascript(make_api: MakeApi) -> None:
    text = (
        "---\nslug: x\n---\nimport A from 'a';\nimport {\n  B,\n} from 'b';\n\nOne <Card>two</Card>\n\n"
        "```js\nimport x from 'y';\n```\n\nexport const c = 1;\n\nimported goods\n"
    )
    schema = collection("article", {"slug": "uid", "body": "richtext"}, files=["posts/{name}.mdx"])
    api = make_api({**schema, "site.yaml": SHORT_SETTINGS, "posts/x.mdx": text})
    [item] = items(api, "news")
    assert item["content_html"] == (
        "<p>One two</p>\n<pre><code>import x from 'y';\n</code></pre>\n<p>imported goods</p>"
    )


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("a\nimport b\nc\n\nd", "a\n\nd"),
        ("export a\r\n\r\nb", "\r\nb"),
        ("```js\nimport a\n~~~\n``\n````\nimport b", "```js\nimport a\n~~~\n``\n````"),
        ("~~~ `\nimport a", "~~~ `\nimport a"),
        ("``` `a`\nimport b", "``` `a`"),
        ("`" * 50_000 + "\n" + "a\n" * 50_000, "`" * 50_000 + "\n" + "a\n" * 50_000),
        ("```a\n" * 50_000, "```a\n" * 50_000),
    ],
    ids=range(7),
)
def test_modules_are_removed_outside_code_blocks(text: str, rest: str) -> None:
    assert strip_mdx_modules(text) == rest


def test_an_id_stays_the_same_when_the_slug_changes(api: Api) -> None:
    before = items(api, "news")[1]
    api.put("/api/articles/ferry", {"slug": "mist"})
    after = items(api, "news")[1]
    assert (after["id"], after["url"]) == (before["id"], "https://example.org/articles/mist")


def test_an_unchanged_feed_is_not_sent_again(api: Api) -> None:
    first = api.get("/feeds/news.rss", "public")
    assert first.headers["Content-Type"] == "application/rss+xml; charset=utf-8"
    assert first.headers["Cache-Control"] == "public, max-age=0, must-revalidate"
    again = api.get("/feeds/news.rss", "public", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.raw) == (304, b"")
    api.put("/api/articles/fog", {"title": "Mist"})
    assert api.get("/feeds/news.rss", "public").headers["ETag"] != first.headers["ETag"]


def test_a_feed_of_nothing_is_valid(make_api: MakeApi) -> None:
    api = make_api({path: text for path, text in FILES.items() if not path.startswith("content/")})
    for extension in EXTENSIONS:
        assert READERS[extension](api.get(f"/feeds/news.{extension}", "public").raw)
    assert JSON_FEED.is_valid(api.get("/feeds/news.json", "public").body)


def test_an_unknown_feed_is_not_found(api: Api) -> None:
    for path in ("/feeds/news", "/feeds/news.xml", "/feeds/none.rss", "/feeds/", "/feeds/a/b.rss"):
        assert api.get(path, "public").status == 404


def test_a_wrong_filter_is_an_error_with_its_name(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": SETTINGS.replace("{slug: {$startsWith: red}}", "{note: x}")})
    response = api.get("/feeds/red.rss", "public")
    assert response.status == 400
    assert "note" in response.body["error"]["message"]


@given(st.text(), st.text())
def test_any_text_becomes_xml_that_a_parser_reads(text: str, value: str) -> None:
    root = ElementTree.fromstring(HEAD + parent_element("a", [element("b", text, c=value)]))
    read = root[0]
    kept = [
        c for c in text if c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff"
    ]
    assert (read.text or "") == "".join(kept).replace("\r\n", "\n").replace("\r", "\n")
