"""Tests of the migrations `wrap`, `unwrap` and `move`."""

import json
from pathlib import Path
from typing import Any

import pytest

from server.errors import ValidationError
from server.service.opening import Mode, open_site
from tests.site.migrations.helpers import apply, files, lacking, migrate
from tests.sites import STRING, collection, component, relation, translated, write

MARKDOWN = """\
---
title: A
# for search engines
metaTitle: 'M'
metaText: |
  one
  two
---
Body
"""
WRAPPED = """\
---
title: A
# for search engines
seo:
  metaTitle: 'M'
  metaText: |
    one
    two
---
Body
"""
FILES = {
    "site.yaml": "locales: {available: [en, fr]}\n",
    **collection(
        "page",
        {
            "title": translated(STRING),
            "metaTitle": translated({"type": "string", "maxLength": 60}),
            "metaText": translated({"type": "text"}),
            "order": {"type": "integer"},
            "body": {"type": "richtext"},
            "link": {"type": "component", "component": "shared.link"},
            "tag": relation("manyToOne", "tag"),
        },
        localized=True,
        drafts=True,
    ),
    **collection("tag", {"name": STRING}),
    **component("shared.link", {"url": STRING, "label": STRING}),
    "content/pages/a.md": MARKDOWN,
    "content/pages/a.fr.draft.yaml": "title: B # t\nmetaText: x\nlink: {url: u, label: l}\n",
    "content/pages/c.json": '{"title": "C", "link": {"url": "v"}}\n',
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def text(root: Path, path: str) -> str:
    return (root / path).read_text()


def attributes(root: Path, path: str = "content-types/page.json") -> Any:
    return json.loads(text(root, path))["attributes"]


def test_attributes_are_put_into_a_new_component(root: Path) -> None:
    migrate(root, "wrap", type="page", attributes=["metaTitle", "metaText"], component="shared.seo")
    assert text(root, "content/pages/a.md") == WRAPPED
    assert text(root, "content/pages/a.fr.draft.yaml") == (
        "title: B # t\nseo:\n  metaText: x\nlink: {url: u, label: l}\n"
    )
    assert text(root, "content/pages/c.json") == FILES["content/pages/c.json"]
    made = attributes(root, "content-types/components/shared/seo.json")
    assert made == {"metaTitle": {"type": "string", "maxLength": 60}, "metaText": {"type": "text"}}
    assert attributes(root)["seo"]["pluginOptions"] == {"i18n": {"localized": True}}
    assert not open_site(root, Mode.READ).site.problems


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_wrapped_keys_keep_their_place_and_text(root: Path, newline: str) -> None:
    before = (
        "# top\nmetaTitle: \"M\"   # title\nmetaText: >-\n  one\n\n  two\n# order\norder: 1\n\ntitle: 'T'\n"
    )
    wrapped = (
        '# top\nseo:\n  metaTitle: "M"   # title\n  metaText: >-\n    one\n\n    two\n'
        "# order\norder: 1\n\ntitle: 'T'\n"
    )
    path = root / "content/pages/b.yaml"
    path.write_bytes(before.replace("\n", newline).encode())
    migrate(root, "wrap", type="page", attributes=["metaTitle", "metaText"], component="shared.seo")
    assert path.read_bytes().decode() == wrapped.replace("\n", newline)
    migrate(root, "unwrap", attribute="page.seo")
    assert path.read_bytes().decode() == before.replace("\n", newline)


def test_unwrap_undoes_wrap(root: Path) -> None:
    migrate(root, "wrap", type="page", attributes=["metaTitle", "metaText"], component="shared.seo")
    migrate(root, "unwrap", attribute="page.seo")
    expected = json.loads(str(FILES["content-types/page.json"]))["attributes"]
    assert attributes(root) == expected
    assert text(root, "content/pages/a.fr.draft.yaml") == (
        "title: B # t\nmetaText: x\nlink: {url: u, label: l}\n"
    )


def test_attributes_join_an_existing_component(root: Path) -> None:
    migrate(root, "wrap", type="page", attributes=["order"], component="shared.link", **{"as": "link"})
    assert attributes(root, "content-types/components/shared/link.json")["order"] == {"type": "integer"}
    migrate(root, "move", attribute="page.title", to="shared.link")
    assert json.loads(text(root, "content/pages/c.json")) == {"link": {"url": "v", "title": "C"}}
    assert text(root, "content/pages/a.fr.draft.yaml") == (
        "metaText: x\nlink: {url: u, label: l, title: B}\n"
    )


def test_an_attribute_moves_out_of_a_component(root: Path) -> None:
    migrate(root, "move", attribute="shared.link.label", to="page")
    assert text(root, "content/pages/a.fr.draft.yaml") == (
        "title: B # t\nmetaText: x\nlink: {url: u}\nlabel: l\n"
    )
    assert "label" not in attributes(root, "content-types/components/shared/link.json")
    assert attributes(root)["label"] == STRING


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["title", "order"], "Some of these attributes have a value for each locale"),
        (["body"], "is the body of Markdown files"),
        (["nothing"], "has no attribute"),
    ],
)
def test_what_cant_be_wrapped_is_refused(root: Path, names: list[str], message: str) -> None:
    before = files(root)
    with pytest.raises(ValidationError, match=message):
        migrate(root, "wrap", type="page", attributes=names, component="shared.seo")
    with pytest.raises(ValidationError, match="has a value that no related document would get"):
        migrate(root, "move", attribute="page.title", to="tag")
    assert files(root) == before


def test_late_documents_are_wrapped(root: Path) -> None:
    migrate(root, "wrap", type="page", attributes=["metaTitle", "metaText"], component="shared.seo")
    write(root, {"content/pages/late.yaml": "title: L\nmetaTitle: m\n"})
    assert lacking(root) == {"0001-wrap-shared-seo": ("content/pages/late.yaml",)}
    apply(root)
    assert text(root, "content/pages/late.yaml") == "title: L\nseo:\n  metaTitle: m\n"


# --- private attributes ---------------------------------------------------------------------------

LINK = {"type": "component", "component": "shared.link", "private": True}


def with_attributes(root: Path, **changed: Any) -> dict[str, bytes]:
    """Change attributes of the page, and return all files."""
    page = json.loads(str(FILES["content-types/page.json"]))
    page["attributes"] |= changed
    write(root, {"content-types/page.json": json.dumps(page, indent=2) + "\n"})
    return files(root)


def test_attributes_of_a_private_component_become_private(root: Path) -> None:
    with_attributes(root, link=LINK)
    [step] = migrate(root, "unwrap", attribute="page.link").steps
    assert attributes(root)["url"] == attributes(root)["label"] == {**STRING, "private": True}
    assert step.notes == tuple(
        f"api::page.page.{name} becomes private, because link is private" for name in ("url", "label")
    )
    page = open_site(root, Mode.READ).site.state.schema.types["api::page.page"]
    assert not page.attributes["url"].visible


def test_an_attribute_that_moves_out_of_a_private_component_becomes_private(root: Path) -> None:
    with_attributes(root, link=LINK)
    [step] = migrate(root, "move", attribute="shared.link.label", to="page").steps
    assert attributes(root)["label"] == {**STRING, "private": True}
    assert step.notes == ("api::page.page.label becomes private, because link is private",)


def test_wrap_undoes_unwrap_of_a_private_component(root: Path) -> None:
    others = {name: value for name, value in attributes(root).items() if name != "link"}
    page = json.loads(str(FILES["content-types/page.json"]))
    link = {"type": "component", "repeatable": False, "component": "shared.link", "private": True}
    page["attributes"] = {**others, "link": link}
    write(root, {"content-types/page.json": json.dumps(page, indent=2) + "\n"})
    write(root, {"content/pages/a.fr.draft.yaml": "title: B\nlink:\n  url: u\n  label: l\n"})
    before = files(root)
    migrate(root, "unwrap", attribute="page.link")
    [step] = migrate(root, "wrap", type="page", attributes=["url", "label"], component="shared.link").steps
    assert files(root) == before
    assert step.notes == ("api::page.page.link is private, because url, label were private",)


def test_wrapped_private_attributes_stay_private(root: Path) -> None:
    before = with_attributes(root, order={"type": "integer", "private": True})
    migrate(root, "wrap", type="page", attributes=["title", "metaTitle"], component="shared.seo")
    migrate(root, "wrap", type="page", attributes=["order"], component="shared.rank")
    assert "private" not in attributes(root)["rank"]
    rank = attributes(root, "content-types/components/shared/rank.json")
    assert rank["order"] == {"type": "integer", "private": True}
    migrate(root, "unwrap", attribute="page.rank")
    assert attributes(root)["order"] == json.loads(before["content-types/page.json"])["attributes"]["order"]


def test_a_private_attribute_does_not_join_a_public_one(root: Path) -> None:
    before = with_attributes(root, url={**STRING, "private": True})
    with pytest.raises(ValidationError, match='already has a different attribute "url"'):
        migrate(root, "wrap", type="page", attributes=["url"], component="shared.link", **{"as": "link"})
    assert files(root) == before
