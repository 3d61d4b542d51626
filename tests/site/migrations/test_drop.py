"""Tests of the migration `drop`."""

from pathlib import Path

import pytest

from server.errors import ValidationError
from tests.site.migrations.helpers import apply, files, lacking, migrate
from tests.sites import STRING, collection, relation, write

FILES = {
    "site.yaml": "search: {weights: {article.title: 3}}\npreview:\n  article: https://e.org/{slug}\n",
    **collection(
        "article",
        {
            "title": STRING,
            "slug": {"type": "uid", "targetField": "title"},
            "note": STRING,
            "first": {"type": "richtext"},
            "second": {"type": "richtext"},
            "author": relation("manyToOne", "author", inversedBy="articles"),
        },
    ),
    **collection("author", {"name": STRING, "articles": relation("oneToMany", "article", mappedBy="author")}),
    "content/articles/a.md": "---\ntitle: A\nnote: n # c\nsecond: two\n---\nOne\n",
    "content/articles/b.md": "---\ntitle: B\nnote:\n---\n",
    "content/articles/c.json": '{"note": "x", "title": "C"}',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def test_documents_with_values_are_named_unless_losses_are_allowed(root: Path) -> None:
    before = files(root)
    with pytest.raises(ValidationError) as error:
        migrate(root, "drop", attribute="article.note")
    assert error.value.message == (
        "The migration would lose values in 2 files (allow this with --lossy):\n"
        '  content/articles/a.md:3:7: "note" has a value\n'
        '  content/articles/c.json:1:10: "note" has a value'
    )
    assert files(root) == before
    migrate(root, "drop", lossy=True, attribute="article.note")
    after = files(root)
    assert after["content/articles/a.md"] == b"---\ntitle: A\nsecond: two\n---\nOne\n"
    assert after["content/articles/b.md"] == b"---\ntitle: B\n---\n"
    assert after["content/articles/c.json"] == b'{"title": "C"}'
    assert b'"note"' not in after["content-types/article.json"]


def test_what_uses_the_attribute_must_be_changed_first(root: Path) -> None:
    with pytest.raises(ValidationError) as error:
        migrate(root, "drop", lossy=True, attribute="article.title")
    assert (
        "content-types/article.json:18:19: attributes.slug.targetField uses api::article.article.title"
        in (error.value.message)
    )
    with pytest.raises(ValidationError, match=r"site\.yaml:3:12: preview\.article uses api::article"):
        migrate(root, "drop", lossy=True, attribute="article.slug")


def test_a_dropped_body_leaves_no_text_behind(root: Path) -> None:
    migrate(root, "drop", lossy=True, attribute="article.first")
    assert files(root)["content/articles/a.md"] == b"---\ntitle: A\nnote: n # c\nsecond: two\n---\n"


def test_the_derived_side_of_a_relation_must_go_first(root: Path) -> None:
    with pytest.raises(ValidationError, match=r"bifolio migrate drop author\.articles"):
        migrate(root, "drop", attribute="article.author")
    migrate(root, "drop", attribute="author.articles")
    assert b"inversedBy" not in files(root)["content-types/article.json"]
    migrate(root, "drop", attribute="article.author")
    assert b"author" not in files(root)["content-types/article.json"]


def test_late_documents_lose_the_value_only_if_that_is_allowed(root: Path) -> None:
    migrate(root, "drop", lossy=True, attribute="article.note")
    write(root, {"content/articles/late.yaml": "title: L\nnote: x\n"})
    assert lacking(root) == {"0001-drop-article-note": ("content/articles/late.yaml",)}
    with pytest.raises(ValidationError, match=r"late\.yaml:2:7"):
        apply(root)
    apply(root, lossy=True)
    assert files(root)["content/articles/late.yaml"] == b"title: L\n"
