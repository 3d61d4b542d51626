"""Completion in documents: which keys and values are offered, and the text after one is chosen."""

from pathlib import Path
from typing import Any

import pytest

from server.lsp.completion import complete, describe_completion
from server.lsp.titles import Titles
from server.lsp.view import EditorCapabilities
from tests.lsp.sites import FILES, inserted, marked, view_of
from tests.sites import write

ARTICLE = "content/articles/new.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def offered(
    root: Path, text: str, path: str = ARTICLE, client: EditorCapabilities | None = None
) -> dict[str, Any]:
    """Return the items at the character | of a text by label."""
    plain, params = marked(text)
    view = view_of(root, {path: plain}, **({"client": client} if client else {}))
    found = complete(view, path, params)
    return {item["label"]: {**item, "after": inserted(plain, item)} for item in found["items"]}


def test_keys_come_with_their_rule_and_without_those_that_are_there(root: Path) -> None:
    items = offered(root, "---\nslug: new\n|\n---\n")
    assert [*items][:2] == ["title", "summary"]  # a required key comes first
    assert not {"slug", "body"} & items.keys()
    assert items["title"]["detail"] == "string, required"
    assert "Shown in lists." in items["title"]["documentation"]["value"]
    assert "Default: `news`." in items["kind"]["documentation"]["value"]
    assert items["title"]["after"] == "---\nslug: new\ntitle: $0\n---\n"
    assert items["tags"]["after"] == "---\nslug: new\ntags: [$0]\n---\n"
    assert items["seo"]["after"] == "---\nslug: new\nseo:\n  $0\n---\n"
    assert items["sections"]["after"] == "---\nslug: new\nsections:\n  - $0\n---\n"


def test_a_key_in_the_middle_of_typing_is_completed(root: Path) -> None:
    text = "---\ntitle: 'half\nsum|\nauthor: ann\n---\n"
    assert offered(root, text)["summary"]["after"] == text.replace("sum|", "summary: $0")
    assert offered(root, "---\nsum|mery: a\n---\n")["summary"]["after"] == "---\nsummary: a\n---\n"


def test_an_editor_without_snippets_gets_plain_text(root: Path) -> None:
    items = offered(root, "---\n|\n---\n", client=EditorCapabilities())
    assert items["tags"]["after"] == "---\ntags: []\n---\n"
    assert "insertTextFormat" not in items["tags"]


def test_keys_of_components(root: Path) -> None:
    assert [*offered(root, "---\nseo:\n  |\n---\n")] == ["metaTitle", "picture"]
    text = "---\nsections:\n  - __component: shared.quote\n    |\n---\n"
    assert [*offered(root, text)] == ["text", "by"]
    assert [*offered(root, '{"seo": {"|"}}', "content/articles/n.json")] == ["metaTitle", "picture"]


def test_entries_of_a_dynamic_zone_come_with_their_skeleton(root: Path) -> None:
    items = offered(root, "---\nsections:\n  - |\n---\n")
    assert items["shared.quote"]["after"] == (
        "---\nsections:\n  - __component: shared.quote\n    text: ${1}\n    by: ${2}\n---\n"
    )
    items = offered(root, "---\nsections:\n  |\n---\n")
    assert items["shared.seo"]["after"] == (
        "---\nsections:\n  - __component: shared.seo\n    metaTitle: ${1}\n    picture: ${2}\n---\n"
    )
    items = offered(root, "---\nsections:\n  - __component: shared.|\n---\n")
    assert [*items] == ["shared.quote", "shared.seo"]


TYPES = ["api::article.article", "api::author.author", "api::tag.tag"]
VALUES = {
    "an enumeration": ("---\nkind: |\n---\n", ["news", "essay"]),
    "a boolean": ("---\nfeatured: t|\n---\n", ["true", "false"]),
    "a locale": ("---\nlocale: |\n---\n", ["en", "fr"]),
    "a relation": ("---\nauthor: |\n---\n", ["ann", "bob"]),
    "a relation by its title": ("---\nauthor: moor|\n---\n", ["ann"]),
    "a relation in a component": ("---\nsections: [{__component: shared.quote, by: b|}]\n---\n", ["bob"]),
    "what a list does not have yet": ("---\ntags: [fog, |]\n---\n", ["night", "no"]),
    "a block list": ("---\ntags:\n  - fog\n  - n|\n---\n", ["night", "no"]),
    "a picture": ("---\ncover: |\n---\n", ["fog.png"]),
    "any file": ("---\nseo:\n  picture: |\n---\n", ["fog.png", "notes.txt"]),
    "a content type": ("---\nabout: [{__type: |}]\n---\n", TYPES),
    "a document of a type": ("---\nabout: [{__type: api::tag.tag, documentId: n|}]\n---\n", ["night", "no"]),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(root: Path, name: str) -> None:
    text, labels = VALUES[name]
    assert [*offered(root, text)] == labels


def test_values_are_written_so_that_they_stay_what_they_are(root: Path) -> None:
    assert offered(root, "---\ntags: [n|]\n---\n")["no"]["after"] == "---\ntags: [no]\n---\n"
    assert offered(root, "---\nauthor: 'a|'\n---\n")["ann"]["after"] == "---\nauthor: 'ann'\n---\n"
    assert offered(root, "---\nauthor: 'a|\n---\n")["ann"]["after"] == "---\nauthor: 'ann'\n---\n"
    assert offered(root, "---\nauthor:|\n---\n")["ann"]["after"] == "---\nauthor: ann\n---\n"
    assert offered(root, "---\nauthor: b|ob\n---\n")["bob"]["after"] == "---\nauthor: bob\n---\n"
    json = "content/articles/n.json"
    assert offered(root, '{"author": |}', json)["ann"]["after"] == '{"author": "ann"}'
    assert offered(root, '{"author": "a|"}', json)["ann"]["after"] == '{"author": "ann"}'
    assert offered(root, '{"|"}', json)["author"]["after"] == '{"author": "$0"}'
    assert offered(root, "{|}", json)["tags"]["after"] == '{"tags": ["$0"]}'
    toml = "content/articles/n.toml"
    assert offered(root, "author = |\n", toml)["ann"]["after"] == 'author = "ann"\n'
    assert offered(root, "ti|\n", toml)["title"]["after"] == 'title = "$0"\n'


def test_titles_and_pictures_are_shown_beside_ids_and_paths(root: Path) -> None:
    author = offered(root, "---\nauthor: |\n---\n")["ann"]
    assert author["detail"] == "Ann Moor"
    view = view_of(root)
    assert describe_completion(view, author["data"]).startswith(
        "**Ann Moor**\n\nKeeps the light.\n\nAuthor `ann`"
    )
    picture = offered(root, "---\ncover: |\n---\n")["fog.png"]
    assert picture["detail"].startswith("3 × 2 · ")
    assert "![](file://" in describe_completion(view, picture["data"])


def test_titles_are_those_of_the_locale_that_is_offered(root: Path) -> None:
    english, french = "content/articles/a.md", "content/articles/a.fr.md"
    for path, title in ((english, "Second"), (french, "Deuxième")):
        assert offered(root, "---\nabout: |\n---\n", path)["2024--b"]["detail"] == title
        ending = ".fr.json" if path == french else ".json"
        assert offered(root, "---\ntitle: A\n---\n[b](|)\n", path)[f"2024/b{ending}"]["detail"] == title
    view = view_of(root)
    entry = Titles().titles_of(view.snapshot, "api::article.article")["2024--b"]
    assert entry.titles == {"en": "Second", "fr": "Deuxième"}
    assert entry.title_in("de") == "Second"


def test_an_empty_file_is_filled_with_all_attributes(root: Path) -> None:
    [item] = offered(root, "|").values()
    assert item["after"].startswith("---\ntitle:\nslug: new\nsummary:\nkind: news\n")
    assert item["after"].endswith("---\n\n")
    assert offered(root, "|", "content/articles/n.json")["new article"]["after"].startswith("{\n")


def test_links_in_texts(root: Path) -> None:
    items = offered(root, "---\ntitle: A\n---\nSee [this](|)\n")
    assert {"a.md", "2024/b.json", "../authors/ann.yaml", "/uploads/notes.txt"} <= items.keys()
    assert items["a.md"]["after"].endswith("See [this](a.md)\n")
    assert [*offered(root, "---\ntitle: A\n---\n![](|)\n")] == ["/uploads/fog.png"]
    anchors = offered(root, "---\ntitle: A\n---\n[this](a.md#|)\n")
    assert [*anchors] == ["#top", "#below-it"]
    assert anchors["#top"]["after"].endswith("[this](a.md#top)\n")
    assert [*offered(root, "---\ntitle: A\n---\n## Own one\n[this](#|)\n")] == ["#own-one"]
    assert offered(root, "---\ntitle: A\n---\nPlain |\n") == {}


def test_addresses_in_links(root: Path) -> None:
    items = offered(root, "---\ntitle: A\n---\nSee [this](/blog/|)\n")
    assert [*items] == ["/blog/2024/b", "/blog/a"]
    assert items["/blog/a"]["detail"] == "First"
    assert items["/blog/a"]["after"].endswith("See [this](/blog/a)\n")
    assert "/by/ann/" in offered(root, "---\ntitle: A\n---\nSee [this](/moo|)\n")  # her name
    assert [*offered(root, "---\ntitle: A\n---\nSee [this](/by/b|)\n")] == ["/by/bob/"]
    assert [*offered(root, "---\ntitle: A\n---\nSee [this](/blog/a#|)\n")] == ["#top", "#below-it"]
    assert "/blog/a" not in offered(root, "---\ntitle: A\n---\n![](/|)\n")


@pytest.mark.parametrize(("path", "text", "label"), [
    ("site.yaml", "na|", "name"),
    ("site.yaml", "api:\n  |", "page_size"),
    ("site.yaml", "api:\n  populate_with_pagination: |", "allow"),
    ("site.yaml", "roles:\n  public:\n    article: [|]", "findOne"),
    ("site.yaml", "check:\n  ignore:\n    |", "dangling"),
    ("site.yaml", "check:\n  rules:\n    missing-alt: |", "error"),
    ("site.yaml", "webhooks:\n  - na|", "name"),
    ("site.yaml", "feeds:\n  news:\n    item:\n      |", "summary"),
    ("site.yaml", "preview:\n  article:\n    |", "url"),
    ("site.yaml", "locales:\n  available:\n    - |", "fr"),
    ("content-types/x.json", '{"kind": "|"}', "singleType"),
    ("content-types/x.json", '{"|"}', "attributes"),
    ("content-types/x.json", '{"attributes": {"a": {"|"}}}', "type"),
    ("content-types/x.json", '{"attributes": {"a": {"type": "|"}}}', "richtext"),
    ("content-types/x.json", '{"attributes": {"a": {"type": "relation", "target": "|"}}}', "api::tag.tag"),
    ("content-types/x.json", '{"attributes": {"a": {"type": "component", "component": "|"}}}', "shared.seo"),
    ("content-types/x.json", '{"attributes": {"b": {}, "a": {"targetField": "|"}}}', "b"),
    ("content-types/x.yaml", "attributes:\n  a:\n    required: |", "true"),
])  # fmt: skip
def test_settings_and_schemas(root: Path, path: str, text: str, label: str) -> None:
    assert label in offered(root, text, path)


# The same place in block and in flow style, and the text after the first completion.
FLOW = [
    ("api:\n  |", "api: {|}", "api: {page_size: {$0\\}}"),
    ("api:\n  st|", "api: {\n  st|\n}", "api: {\n  page_size: {$0\\}\n}"),
    ("git:\n  commit: off\n  |", "git: {commit: off, |}", "git: {commit: off, committer: $0}"),
    ("git:\n  commit: |", "git:\n  {commit:|}", "git:\n  {commit: each}"),
    ("git:\n  |push: off", "git: {|push: off}", "git: {commit: off}"),
    ("roles:\n  editor:\n    |", "roles: {editor: {|}}", "roles: {editor: {article: $0}}"),
    ("roles:\n  editor:\n    tag: |", "roles: {editor: {tag: |}}", "roles: {editor: {tag: find}}"),
    ("roles:\n  editor:\n    tag: [|]", "roles: {editor: {tag: [|", "roles: {editor: {tag: [find"),
    ("check:\n  rules:\n    draft: |", "check: {rules: {draft: |}}", "check: {rules: {draft: off}}"),
    ("webhooks:\n  - |", "webhooks: [{|}]", "webhooks: [{name: $0}]"),
    ("webhooks:\n  - name: a\n    |", "webhooks:\n  - {name: a, |}", "webhooks:\n  - {name: a, url: $0}"),
    ("name: a\nlocales:\n  |", "{name: a, locales: {|}}", "{name: a, locales: {default: $0}}"),
    ("git: {push: off}\n|", "{git: {push: off}, |}", "{git: {push: off}, name: $0}"),
]  # fmt: skip


@pytest.mark.parametrize(("block", "flow", "after"), FLOW)
def test_settings_in_flow_style(root: Path, block: str, flow: str, after: str) -> None:
    items = offered(root, flow, "site.yaml")
    assert [*items] == [*offered(root, block, "site.yaml")]
    assert next(iter(items.values()))["after"] == after


def test_files_without_a_schema_have_no_completion(root: Path) -> None:
    assert offered(root, "a|", "content/unknown/a.yaml") == {}
    assert offered(root, "a|", "README.md") == {}
