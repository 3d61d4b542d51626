"""Tests of what migrations change in site.yaml."""

from pathlib import Path
from typing import Any

import pytest

from server.errors import ValidationError
from server.service.opening import Mode, open_site
from tests.site.migrations.helpers import files, migrate
from tests.sites import STRING, collection, relation, write

SITE = """\
roles: {public: {article: [find], page: [find]}}
api:
  populate:
    article: {cover: true, author: {fields: [name, mail]}}  # both
    author: "articles.cover, articles.author"
    page: cover
search:
  weights:
    article.note: 6  # high
    article.title: 2
    cover: 3
preview:
  article: {url: 'https://example.org/{slug}', unmarked: [note, slug]}
export:
  types:
    article: {fields: [title, note], sort: ['note:desc', title]}
    page: {filters: {title: {$contains: x}}}
  queries:
    q: /api/articles?sort=title,rank
urls:
  article: {en: 'https://example.org/{slug}'}
  page: https://example.org/{slug}
feeds:
  news:
    type: article
    item: {summary: note, image: cover, author: author.name}
    sort: rank
  all: {type: [article, page], item: {title: title}}
"""
ARTICLE = {
    "title": STRING,
    "slug": {"type": "uid"},
    "note": STRING,
    "rank": {"type": "integer"},
    "cover": {"type": "media"},
    "author": relation("manyToOne", "author", inversedBy="articles"),
}
FILES = {
    "site.yaml": SITE,
    **collection("article", ARTICLE),
    **collection("page", {"title": STRING, "slug": {"type": "uid"}, "cover": {"type": "media"}}),
    **collection(
        "author",
        {"name": STRING, "mail": STRING, "articles": relation("oneToMany", "article", mappedBy="author")},
    ),
    "content/articles/a.yaml": "title: A\nnote: n\nslug: a\nrank: 1\n",
    "content/authors/ann.yaml": "name: Ann Lee\nmail: a@example.org\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def changed(root: Path, operation: str, **arguments: Any) -> dict[str, str]:
    """Apply a migration. Return the changed lines of site.yaml: the new line by the old one."""
    migrate(root, operation, lossy=True, **arguments)
    assert not open_site(root, Mode.READ).site.problems
    old, new = SITE.splitlines(), (root / "site.yaml").read_text().splitlines()
    assert len(old) == len(new), new
    return {a.strip(): b.strip() for a, b in zip(old, new, strict=True) if a != b}


def test_rename_changes_urls_and_feeds(root: Path) -> None:
    assert changed(root, "rename", attribute="article.slug", to="path") == {
        "article: {url: 'https://example.org/{slug}', unmarked: [note, slug]}": (
            "article: {url: 'https://example.org/{path}', unmarked: [note, path]}"
        ),
        "article: {en: 'https://example.org/{slug}'}": "article: {en: 'https://example.org/{path}'}",
    }
    migrate(root, "rename", attribute="article.rank", to="order")
    migrate(root, "rename", attribute="author.name", to="label")
    text = (root / "site.yaml").read_text()
    assert "    sort: order\n" in text
    assert "author: author.label}" in text
    with pytest.raises(
        ValidationError, match=r"site\.yaml:28:46: feeds\.all\.item\.title: the feed contains"
    ):
        migrate(root, "rename", attribute="article.title", to="headline")


def test_drop_removes_entries(root: Path) -> None:
    migrate(root, "drop", lossy=True, attribute="article.note")
    assert (root / "site.yaml").read_text() == (
        SITE.replace("    article.note: 6  # high\n", "")
        .replace("unmarked: [note, slug]", "unmarked: [slug]")
        .replace("fields: [title, note], sort: ['note:desc', title]", "fields: [title], sort: [title]")
        .replace("item: {summary: note, image", "item: {image")
    )
    assert not open_site(root, Mode.READ).site.problems
    migrate(root, "drop", lossy=True, attribute="article.cover")
    text = (root / "site.yaml").read_text()
    assert "article: {author: {fields: [name, mail]}}  # both" in text
    assert 'author: "articles, articles.author"' in text
    assert "    page: cover\n" in text
    assert "    cover: 3\n" in text  # Pages still have it.


def test_wrap_writes_paths(root: Path) -> None:
    migrate(root, "wrap", type="article", attributes=["cover"], component="shared.look")
    assert (root / "site.yaml").read_text() == (
        SITE.replace("{cover: true, author", "{look: {populate: {cover: true}}, author")
        .replace('"articles.cover,', '"articles.look.cover,')
        .replace("image: cover", "image: look.cover")
        .replace("    cover: 3\n", "    cover: 3\n    article.look: 3\n")
    )
    assert not open_site(root, Mode.READ).site.problems


def test_unwrap_removes_the_component_from_paths(root: Path) -> None:
    migrate(root, "wrap", type="article", attributes=["cover"], component="shared.look")
    migrate(root, "unwrap", attribute="article.look")
    text = (root / "site.yaml").read_text()
    assert 'author: "articles.cover, articles.author"' in text
    assert "image: cover" in text
    assert "article: {cover: true, author:" in text


def test_split_lists_all_new_attributes(root: Path) -> None:
    code = (
        "ATTRIBUTES = {'one': {'type': 'string'}, 'two': {'type': 'string'}}\n"
        "def split(value):\n    return {'one': value, 'two': value}\n"
    )
    migrate(root, "split", attribute="author.mail", file="s.py", code=code)
    assert "author: {fields: [name, 'one,two']}" in (root / "site.yaml").read_text()


@pytest.mark.parametrize(
    ("operation", "arguments", "message"),
    [
        ("drop", {"attribute": "page.title"}, r"site\.yaml:17:22: export\.types\.page\.filters\.title uses"),
        ("drop", {"attribute": "article.rank"}, r"site\.yaml:19:8: export\.queries\.q uses"),
        (
            "drop",
            {"attribute": "page.slug"},
            r"site\.yaml:22:9: urls\.page uses .* the type's own attributes",
        ),
        (
            "wrap",
            {"type": "article", "attributes": ["note"], "component": "shared.look"},
            r"site\.yaml:16:\d+: export\.types\.article\.fields\.1 uses .*note, and only the type's own",
        ),
    ],
)
def test_entries_that_cant_be_changed_are_named(
    root: Path, operation: str, arguments: dict[str, Any], message: str
) -> None:
    before = files(root)
    with pytest.raises(ValidationError, match=message):
        migrate(root, operation, lossy=True, **arguments)
    assert files(root) == before
