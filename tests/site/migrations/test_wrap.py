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
