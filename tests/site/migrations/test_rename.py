"""Tests of the migration `rename`: documents, schemas and site.yaml, and back."""

from pathlib import Path

import pytest

from server.errors import ValidationError
from server.service.opening import Mode, open_site
from server.site.check.survey import survey
from server.site.migrations.plan import Plan
from tests.git import commit_all, git
from tests.site.migrations.helpers import apply, files, lacking, migrate, preview
from tests.sites import STRING, collection, component, relation, write

SITE = """\
name: A  # the name
locales: {available: [en, fr]}
api:
  populate:
    article: {author: {fields: [name, 'email']}, zone: true}
    author: "articles.seo, articles.author"
search:
  weights:
    # as the designers wish
    title: 6
    article.text: 2
preview:
  article: {url: 'https://example.org/{slug}?d={title}', unmarked: [seo.metaTitle, slug]}
export:
  types:
    article: {fields: title, sort: ['title:desc', author.name], filters: {title: {$contains: x}}}
  queries:
    q: /api/articles?filters[title][$eq]=a%20b&populate[author][fields]=name&sort=title,slug
"""
ARTICLE = {
    "title": STRING,
    "slug": {"type": "uid", "targetField": "title"},
    "text": {"type": "richtext"},
    "author": relation("manyToOne", "author", inversedBy="articles"),
    "seo": {"type": "component", "component": "shared.seo"},
    "zone": {"type": "dynamiczone", "components": ["shared.seo", "shared.box"]},
}
SEO = {
    "metaTitle": STRING,
    "inner": {"type": "component", "component": "shared.box", "repeatable": True},
}
AUTHOR = {
    "name": STRING,
    "email": {"type": "email"},
    "title": STRING,
    "articles": relation("oneToMany", "article", mappedBy="author"),
}
MARKDOWN = """\
---
# what
'title':   A  # it
seo: {metaTitle: M, inner: [{title: deep}]}
---
title: no key
"""
YAML = """\
seo:
    inner:
    - title: x
    metaTitle: 'y'
title: >
  folded
  text
"""
JSON = (
    '{"slug":"b","title" : "B","zone":[{"__component":"shared.box","title":"z"},'
    '{"__component":"shared.seo","metaTitle":"q"}]}\n'
)
TOML = """\
+++
title = "C"
[seo]
metaTitle = "m"
[[seo.inner]]
title = "t"
+++
body
"""
FILES = {
    "site.yaml": SITE,
    **collection("article", ARTICLE, drafts=True, localized=True, fileName="{title}-{slug}"),
    **collection("author", AUTHOR),
    **component("shared.seo", SEO),
    **component("shared.box", {"title": STRING}),
    "content/articles/a.md": MARKDOWN,
    "content/articles/a.fr.draft.yaml": YAML,
    "content/articles/b.json": JSON,
    "content/articles/c.md": TOML.replace("\n", "\r\n"),
    "content/articles/none.yaml": "slug: none\n",
    "content/authors/ann.yaml": "name: Ann\ntitle: Dr\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def text(root: Path, path: str) -> str:
    return (root / path).read_bytes().decode()


def test_documents_in_all_formats_locales_and_states_change_only_the_key(root: Path) -> None:
    before = files(root)
    migrate(root, "rename", attribute="article.title", to="headline")
    after = files(root)
    changed = {path: after[path] for path in after if after[path] != before[path] and "content/" in path}
    assert changed == {
        "content/articles/a.md": before["content/articles/a.md"].replace(b"'title'", b"'headline'"),
        "content/articles/a.fr.draft.yaml": before["content/articles/a.fr.draft.yaml"].replace(
            b"\ntitle: >", b"\nheadline: >"
        ),
        "content/articles/b.json": before["content/articles/b.json"].replace(b'"title" :', b'"headline" :'),
        "content/articles/c.md": before["content/articles/c.md"].replace(b'title = "C', b'headline = "C'),
    }


def test_everything_that_refers_to_the_attribute_changes(root: Path) -> None:
    migrate(root, "rename", attribute="article.title", to="headline")
    schema = text(root, "content-types/article.json")
    assert '"targetField": "headline"' in schema
    assert '"fileName": "{headline}-{slug}"' in schema
    site = text(root, "site.yaml")
    expected = (
        SITE.replace("?d={title}", "?d={headline}")
        .replace("fields: title", "fields: headline")
        .replace("'title:desc'", "'headline:desc'")
        .replace("filters: {title", "filters: {headline")
        .replace("filters[title]", "filters[headline]")
        .replace("sort=title", "sort=headline")
        .replace("article.text: 2\n", "article.text: 2\n    article.headline: 6\n")
    )
    assert site == expected
    assert not open_site(root, Mode.READ).site.problems


def test_inverse_sides_and_nested_populates_change(root: Path) -> None:
    migrate(root, "rename", attribute="article.author", to="writer")
    assert '"mappedBy": "writer"' in text(root, "content-types/author.json")
    assert 'author: "articles.seo, articles.writer"' in text(root, "site.yaml")
    assert "article: {writer: {fields: [name, 'email']}" in text(root, "site.yaml")
    migrate(root, "rename", attribute="author.articles", to="works")
    assert '"inversedBy": "works"' in text(root, "content-types/article.json")
    assert 'author: "works.seo, works.writer"' in text(root, "site.yaml")
    migrate(root, "rename", attribute="author.name", to="fullName")
    assert "fields: [fullName, 'email']" in text(root, "site.yaml")
    assert "[fields]=fullName" in text(root, "site.yaml")


def test_attributes_of_components_change_wherever_the_component_is(root: Path) -> None:
    migrate(root, "rename", attribute="shared.seo.metaTitle", to="mt")
    assert "seo: {mt: M, inner: [{title: deep}]}" in text(root, "content/articles/a.md")
    assert "    mt: 'y'\n" in text(root, "content/articles/a.fr.draft.yaml")
    assert '{"__component":"shared.seo","mt":"q"}' in text(root, "content/articles/b.json")
    assert "unmarked: [seo.mt, slug]" in text(root, "site.yaml")
    migrate(root, "rename", attribute="shared.box.title", to="label")
    assert "seo: {mt: M, inner: [{label: deep}]}" in text(root, "content/articles/a.md")
    assert '[{"__component":"shared.box","label":"z"}' in text(root, "content/articles/b.json")
    assert '[[seo.inner]]\r\nlabel = "t"\r\n' in text(root, "content/articles/c.md")
    assert 'title = "C"' in text(root, "content/articles/c.md")


def test_the_body_of_markdown_has_no_key(root: Path) -> None:
    before = files(root)
    plan = migrate(root, "rename", attribute="article.text", to="body")
    assert plan.steps[0].documents == ()
    assert files(root)["content/articles/a.md"] == before["content/articles/a.md"]
    state = open_site(root, Mode.READ).site.state
    documents = [d for found in state.snapshot.claims.values() for d in found if d.path.endswith("a.md")]
    assert documents[0].get("body") == "title: no key"


@pytest.mark.parametrize(
    "attribute",
    ["article.title", "article.slug", "article.text", "article.author", "article.seo", "article.zone",
     "author.name", "author.title", "author.articles", "shared.seo.metaTitle", "shared.seo.inner",
     "shared.box.title"],
)  # fmt: skip
def test_there_and_back_is_zero_bytes(root: Path, attribute: str) -> None:
    before = files(root)
    owner, _, name = attribute.rpartition(".")
    migrate(root, "rename", attribute=attribute, to="renamed")
    assert files(root) != before
    migrate(root, "rename", attribute=f"{owner}.renamed", to=name)
    assert files(root) == before


def refusal(root: Path, *, attribute: str = "article.title", to: str = "headline") -> str:
    before = files(root)
    with pytest.raises(ValidationError) as error:
        migrate(root, "rename", attribute=attribute, to=to)
    assert files(root) == before
    return error.value.message


def test_impossible_renames_are_refused_with_the_reason(root: Path) -> None:
    assert refusal(root, attribute="article.titel") == (
        'api::article.article has no attribute "titel"; did you mean "title"?'
    )
    assert refusal(root, attribute="artcle.title") == 'unknown type "artcle"; did you mean "article"?'
    assert refusal(root, to="slug") == 'api::article.article already has an attribute "slug"'
    assert refusal(root, attribute="title") == (
        'attribute must be TYPE.attribute, such as article.title (found "title")'
    )
    assert 'can\'t be named "locale"' in refusal(root, to="locale")


def test_files_that_contain_the_new_key_or_cant_be_read_are_named(root: Path) -> None:
    write(root, {"content/articles/d.yaml": "headline: old key\n", "content/articles/e.yaml": "title: [\n"})
    message = refusal(root)
    assert 'content/articles/d.yaml:1:11: already contains the key "headline"' in message
    assert "content/articles/e.yaml:" in message


def test_aliases_across_types_are_refused(root: Path) -> None:
    write(root, {"content/articles/d.yaml": "title: x\nseo: &s {metaTitle: a}\nother: *s\n"})
    message = refusal(root, attribute="shared.seo.metaTitle", to="mt")
    assert "content/articles/d.yaml: contains syntax that Bifolio can't change safely" in message


def test_a_plan_writes_nothing(root: Path) -> None:
    before = files(root)
    found = preview(root, "rename", attribute="article.title", to="headline")
    assert files(root) == before
    assert "-'title':   A  # it\n+'headline':   A  # it" in "\n".join(found.diff())
    assert not (root / "migrations").exists()


def test_a_migration_is_kept_and_brings_late_documents_along(root: Path) -> None:
    migrate(root, "rename", attribute="article.title", to="headline")
    migrate(root, "rename", attribute="article.headline", to="name")
    kept = text(root, "migrations/0001-rename-headline.yaml")
    assert kept == (
        "# bifolio migrate rename article.title headline\n"
        "operation: rename\nattribute: article.title\nto: headline\n"
    )
    assert lacking(root) == {"0001-rename-headline": (), "0002-rename-name": ()}
    write(
        root, {"content/articles/late.yaml": "title: Late\n", "content/articles/later.yaml": "headline: L\n"}
    )
    assert lacking(root) == {
        "0001-rename-headline": ("content/articles/late.yaml",),
        "0002-rename-name": ("content/articles/late.yaml", "content/articles/later.yaml"),
    }
    apply(root)
    assert text(root, "content/articles/late.yaml") == "name: Late\n"
    assert text(root, "content/articles/later.yaml") == "name: L\n"
    assert apply(root) == Plan(())


def test_a_kept_migration_does_not_touch_a_new_attribute_with_the_old_name(root: Path) -> None:
    migrate(root, "rename", attribute="article.title", to="headline")
    migrate(root, "rename", attribute="article.headline", to="title")
    before = files(root)
    assert apply(root) == Plan(())
    assert files(root) == before


def test_two_migrations_with_one_number_are_both_applied(root: Path) -> None:
    migrate(root, "rename", attribute="article.title", to="headline")
    (root / "migrations/0001-rename-headline.yaml").rename(root / "migrations/0001-a.yaml")
    migrate(root, "rename", attribute="author.name", to="fullName")
    (root / "migrations/0002-rename-full-name.yaml").rename(root / "migrations/0001-b.yaml")
    write(root, {"content/authors/x.yaml": "name: X\n", "content/articles/x.yaml": "title: X\n"})
    assert list(lacking(root)) == ["0001-a", "0001-b"]
    apply(root)
    assert text(root, "content/authors/x.yaml") == "fullName: X\n"
    assert text(root, "content/articles/x.yaml") == "headline: X\n"


def test_a_branch_gets_one_commit(root: Path) -> None:
    commit_all(root)
    git(root, "branch", "other")
    before = files(root)
    migrate(root, "rename", branch="other", attribute="article.title", to="headline")
    assert files(root) == before
    assert git(root, "rev-list", "--count", "HEAD..other").strip() == "1"
    assert '"headline"' in git(root, "show", "other:content-types/article.json")
    assert "headline = " in git(root, "show", "other:content/articles/c.md")
    assert "operation: rename" in git(root, "show", "other:migrations/0001-rename-headline.yaml")


def test_check_names_documents_that_lack_migrations(root: Path) -> None:
    migrate(root, "rename", attribute="article.title", to="headline")
    migrate(root, "rename", attribute="article.headline", to="name")
    write(root, {"content/articles/late.yaml": "slug: late\ntitle: Late\n"})
    found = survey(root, lambda: open_site(root, Mode.READ).site)
    assert [str(problem) for problem in found.problems if problem.rule == "migration"] == [
        "content/articles/late.yaml:2: the document lacks the migrations 0001-rename-headline, "
        "0002-rename-name. Run bifolio migrate apply."
    ]
    write(root, {"migrations/0003-x.yaml": "operation: renam\n"})
    found = survey(root, lambda: open_site(root, Mode.READ).site)
    assert [str(problem) for problem in found.problems if problem.rule == "migration"] == [
        'migrations/0003-x.yaml:1:12: unknown operation "renam". Did you mean "rename"?'
    ]
