"""Tests of the migrations `rename-type`, `rename-component` and `set-locale`."""

from pathlib import Path

import pytest

from server.errors import ValidationError
from server.service.opening import Mode, open_site
from tests.site.migrations.helpers import apply, files, lacking, migrate
from tests.sites import STRING, collection, component, relation, schema, translated, write

SITE = """\
locales: {default: en, available: [en, fr]}
roles:
  public: {article: [find], home: [find]} # all
api: {populate: {article: {zone: {on: {shared.box: {populate: pic}}}}}}
preview: {article: 'https://e.org/{title}'}
search: {weights: {article.title: 3, title: 2}}
webhooks:
  - {name: a, url: 'https://e.org/', types: [article, tag]}
check: {ignore: {translation: [content/articles/*, content/tags/*]}}
export: {queries: {q: '/api/articles?sort=title'}}
"""
FILES = {
    "site.yaml": SITE,
    **collection(
        "article",
        {
            "title": translated(STRING),
            "tags": relation("manyToMany", "tag", inversedBy="articles"),
            "zone": {"type": "dynamiczone", "components": ["shared.box", "shared.seo"]},
            "seo": {"type": "component", "component": "shared.seo"},
        },
        localized=True,
        drafts=True,
    ),
    **collection("tag", {"articles": relation("manyToMany", "article", mappedBy="tags")}),
    "content-types/home.json": schema(
        "home", {"main": {"type": "relation", "relation": "morphToOne"}}, single=True
    ),
    **component("shared.box", {"pic": {"type": "media"}}),
    **component("shared.seo", {"title": STRING}),
    "content/articles/2024/a.md": "---\ntitle: A\nzone: [{__component: shared.box}] # z\n---\n",
    "content/articles/2024/a.fr.draft.md": "---\ntitle: F\ntags: [t]\n---\n",
    "content/tags/t.yaml": "{}\n",
    "content/home.yaml": "main: {__type: 'api::article.article', documentId: 2024--a}\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def text(root: Path, path: str) -> str:
    return (root / path).read_text()


def test_a_type_gets_new_names_everywhere(root: Path) -> None:
    before = files(root)
    migrate(root, "rename-type", type="article", to="story", plural="stories")
    assert text(root, "site.yaml") == (
        SITE.replace("{article: [find]", "{story: [find]")
        .replace("{populate: {article:", "{populate: {story:")
        .replace("preview: {article:", "preview: {story:")
        .replace("article.title", "story.title")
        .replace("[article, tag]", "[story, tag]")
        .replace("content/articles/*", "content/stories/*")
        .replace("/api/articles", "/api/stories")
    )
    assert '"target": "api::story.story"' in text(root, "content-types/tag.json")
    assert text(root, "content/home.yaml") == FILES["content/home.yaml"].replace(  # type: ignore[union-attr]
        "article.article", "story.story"
    ).replace("api::article", "api::story")
    assert text(root, "content/stories/2024/a.md") == FILES["content/articles/2024/a.md"]
    assert text(root, "content/stories/2024/a.fr.draft.md") == FILES["content/articles/2024/a.fr.draft.md"]
    assert not (root / "content-types/article.json").exists()
    assert not open_site(root, Mode.READ).site.problems
    migrate(root, "rename-type", type="home", to="start", plural="starts")
    migrate(root, "rename-type", type="start", to="home", plural="homes")
    migrate(root, "rename-type", type="story", to="article", plural="articles")
    assert files(root) == before


def test_late_files_of_a_renamed_type_are_moved(root: Path) -> None:
    migrate(root, "rename-type", type="article", to="story", plural="stories")
    write(root, {"content/articles/late.md": "---\ntitle: L\n---\n"})
    assert list(lacking(root).values()) == [("content/stories/late.md",)]
    apply(root)
    assert text(root, "content/stories/late.md") == "---\ntitle: L\n---\n"


def test_a_component_gets_a_new_name_everywhere(root: Path) -> None:
    before = files(root)
    migrate(root, "rename-component", component="shared.box", to="media.card")
    assert text(root, "content/articles/2024/a.md") == (
        "---\ntitle: A\nzone: [{__component: media.card}] # z\n---\n"
    )
    assert "on: {media.card: {populate: pic}}" in text(root, "site.yaml")
    assert '"media.card"' in text(root, "content-types/article.json")
    assert (root / "content-types/components/media/card.json").exists()
    write(root, {"content/articles/late.yaml": "zone:\n- __component: shared.box\n"})
    apply(root)
    assert text(root, "content/articles/late.yaml") == "zone:\n- __component: media.card\n"
    (root / "content/articles/late.yaml").unlink()
    migrate(root, "rename-component", component="media.card", to="shared.box")
    assert files(root) == before


def test_the_default_locale_changes_and_documents_keep_theirs(root: Path) -> None:
    before = files(root)
    write(root, {"content/articles/2024/a.fr.md": "---\ntitle: P\n---\n"})
    migrate(root, "set-locale", locale="fr")
    assert text(root, "site.yaml").startswith("locales: {default: fr, available: [en, fr]}\n")
    assert text(root, "content/articles/2024/a.md") == "---\ntitle: P\n---\n"
    assert text(root, "content/articles/2024/a.en.md") == FILES["content/articles/2024/a.md"]
    assert text(root, "content/articles/2024/a.draft.md") == FILES["content/articles/2024/a.fr.draft.md"]
    assert text(root, "content/tags/t.yaml") == "{}\n"
    migrate(root, "set-locale", locale="en")
    (root / "content/articles/2024/a.fr.md").unlink()
    assert files(root) == before
    with pytest.raises(ValidationError, match=r"locales\.available \(found \"de\"; others: fr\)"):
        migrate(root, "set-locale", locale="de")


def test_names_that_are_taken_or_wrong_are_refused(root: Path) -> None:
    with pytest.raises(ValidationError, match=r"tag\.json: this file already exists"):
        migrate(root, "rename-type", type="article", to="tag", plural="tags")
    with pytest.raises(ValidationError, match="already exists"):
        migrate(root, "rename-component", component="shared.box", to="shared.seo")
    with pytest.raises(ValidationError, match=r"must be CATEGORY\.NAME"):
        migrate(root, "rename-component", component="shared.box", to="box")
    write(root, {"content/stories/2024/a.md": "x"})
    with pytest.raises(ValidationError, match=r"content/stories/2024/a\.md: this file already exists"):
        migrate(root, "rename-type", type="article", to="story", plural="stories")
