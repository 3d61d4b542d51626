"""Tests of the `preview` section in site.yaml, and of names in it that do not exist."""

import json
from pathlib import Path

import pytest

from server.config.model import Preview, Settings
from server.config.reader import survey_settings
from server.errors import SetupError
from server.site.configure import configure
from tests.sites import collection, component, write


def read(root: Path, text: str) -> tuple[Settings, list[SetupError]]:
    (root / "site.yaml").write_text(f"preview:\n{text}\n")
    return survey_settings(root)


ADDRESSES = {
    "https://example.org/preview?slug={slug}&status={status}": "https://example.org",
    "https://Example.org?s={slug}": "https://example.org",
    "http://localhost:3000/{locale}/{slug}": "http://localhost:3000",
    "http://[::1]:80#{documentId}": "http://[::1]:80",
    "/preview/{slug}": "",
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address_is_read_with_its_origin(tmp_path: Path, url: str) -> None:
    settings, wrong = read(tmp_path, f"  article: {json.dumps(url)}\n  page: {{url: {json.dumps(url)}}}")
    assert wrong == []
    assert settings.preview == {"article": Preview(url), "page": Preview(url)}
    assert settings.preview["page"].origin == ADDRESSES[url]


def test_attributes_can_be_left_without_marks(tmp_path: Path) -> None:
    settings, wrong = read(tmp_path, "  article:\n    url: /a\n    unmarked: [seo.canonical, kind]")
    assert wrong == []
    assert settings.preview["article"].unmarked == {"seo.canonical", "kind"}


UNREADABLE = [
    "javascript:alert(1)", "data:text/html,x", "//evil.example/x", "/\\\\evil.example", "ftp://a.example/",
    "a/b", "https://{locale}.example.org/", "https://a.example{slug}", "https://user@a.example/",
    "https://a.example;x/", "https://a b.example/", "https://*.example.org/", "",
]  # fmt: skip


@pytest.mark.parametrize("url", UNREADABLE)
def test_what_is_no_address_of_a_page_is_refused_with_its_line(tmp_path: Path, url: str) -> None:
    settings, [wrong] = read(tmp_path, f'  article: "{url}"')
    assert (wrong.line, wrong.message) == (2, "preview.article must be a URL or a path")
    assert settings.preview == {}


WRONG = {
    '  article: "/x?{slug"': (2, "preview.article contains a space or an invalid placeholder"),
    '  article: "/x y"': (2, "preview.article contains a space or an invalid placeholder"),
    '  article: "/x?{a b}"': (2, "preview.article contains a space or an invalid placeholder"),
    "  article: [a]": (2, "preview.article must be a mapping (found a list)"),
    "  article:\n    unmarked: [a]": (2, "preview.article.url must be a URL or a path"),
    "  article:\n    url: /x\n    unmaked: [a]": (4, 'unknown key "preview.article.unmaked"'),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    _, [wrong] = read(tmp_path, text)
    assert (wrong.line, wrong.message) == WRONG[text]


def test_what_names_nothing_is_a_warning_with_its_line(tmp_path: Path) -> None:
    seo = {"type": "component", "component": "shared.seo"}
    zone = {"type": "dynamiczone", "components": ["shared.seo"]}
    secret = {"type": "string", "private": True}
    files = {
        **collection("note", {"slug": "uid", "seo": seo, "parts": zone, "secret": secret}),
        **component("shared.seo", {"canonical": {"type": "string"}}),
        "site.yaml": (
            "preview:\n  note:\n    url: /{slug}{documentId}{locale}{status}{branch}/{slugg}?{seo}{secret}\n"
            "    unmarked: [slug, seo, seo.canonical, parts.canonical, seo.canonicl, slug.x]\n  nothing: /x\n"
        ),
    }
    write(tmp_path, files)
    told = [(p.severity, p.line, p.message, p.fix) for p in configure(tmp_path).problems]
    assert [(line, what) for _, line, what, _ in told] == [
        (3, 'unknown placeholder "{slugg}" in the preview of note'),
        (3, 'unknown placeholder "{seo}" in the preview of note'),
        (3, 'unknown placeholder "{secret}" in the preview of note'),
        (4, 'unknown attribute "seo.canonicl" in preview.note.unmarked'),
        (4, 'unknown attribute "slug.x" in preview.note.unmarked'),
        (5, 'unknown content type "nothing" in preview'),
    ]
    assert {severity for severity, *_ in told} == {"warning"}
    assert told[0][3] == 'did you mean "slug"?'
