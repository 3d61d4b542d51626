"""Documents as Markdown: what is in the front matter, and that no value can break out of it."""

import datetime
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import frontmatter  # type: ignore[import-untyped]
from hypothesis import example, given
from hypothesis import strategies as st

from server.auth.permissions import Actor
from server.formats.markdown import markdown_to_html
from server.index.budget import UNLIMITED
from server.schema.model import Schema
from server.service.markdown.document import Links, document_markdown
from tests.conftest import MakeApi
from tests.service.markdown.test_syntax import TEXTS, Page, plain
from tests.sites import STRING, Api, collection, component, load, relation

MARKDOWN = {"Accept": "text/markdown"}
SCHEMAS = {
    **collection(
        "post",
        {
            "title": STRING,
            "lead": {"type": "text"},
            "body": {"type": "richtext"},
            "extra": {"type": "json"},
            "day": "date",
            "size": "decimal",
            "count": "biginteger",
            "author": relation("manyToOne", "author"),
            "editors": relation("manyToMany", "author"),
            "subject": {"type": "relation", "relation": "morphToOne"},
            "seo": {"type": "component", "component": "shared.seo"},
            "parts": {"type": "dynamiczone", "components": ["shared.seo"]},
            "cover": {"type": "media"},
            "files": {"type": "media", "multiple": True},
        },
        body="body",
    ),
    **collection("author", {"name": STRING}),
    **component(
        "shared.seo",
        {
            "metaTitle": STRING,
            "notes": {"type": "blocks"},
            "by": relation("oneToOne", "author"),
            "again": {"type": "component", "component": "shared.seo", "repeatable": True},
        },
    ),
}
POST = """\
---
title: "Fog: a [guide]"
lead: |
  Two
  lines
day: 2024-03-02
size: 1.00000000000000000001
count: 123456789012345678901234567890
author: ann
editors: [ann, bob]
subject: {__type: api::author.author, documentId: bob}
seo:
  metaTitle: Meta
  by: bob
  again: [{metaTitle: Inner}]
  notes: [{type: paragraph, children: [{type: text, text: Bold, bold: true}]}]
parts: [{__component: shared.seo, metaTitle: Part}]
cover: a.txt
extra: {a: [1, {b: null}], "on": "no"}
---

# Fog

---
It is *thick*.
"""
FILES = {
    "site.yaml": "roles: {public: {post: [find, findOne], author: [find, findOne]}}\n",
    **SCHEMAS,
    "content/posts/fog.md": POST,
    "content/authors/ann.yaml": "name: Ann [x](y)\n",
    "content/authors/bob.yaml": "{}\n",
    "content/uploads/a.txt": "text",
}


@cache
def schema() -> Schema:
    with TemporaryDirectory() as folder:
        return load(Path(folder), SCHEMAS).state.schema


def converted(data: Any) -> str:
    links = Links(schema(), Actor("full", everything=True), "en")
    type_ = schema().types["api::post.post"]
    return document_markdown(type_, json.dumps(data).encode(), links, UNLIMITED).decode()


def read(api: Api, path: str = "/api/posts/fog") -> str:
    answer = api.get(path, "public", headers=MARKDOWN)
    assert answer.status == 200, answer.raw
    return answer.raw.decode()


def test_a_document_has_front_matter_and_its_body(make_api: MakeApi) -> None:
    api = make_api(FILES)
    text = read(api)
    post = frontmatter.loads(text)
    original = frontmatter.loads(POST)
    assert post.content == original.content
    data = post.metadata
    for name in ("title", "lead", "day", "size", "extra"):
        assert data[name] == original[name], name
    assert data["day"] == datetime.date(2024, 3, 2)
    assert data["count"] == "123456789012345678901234567890"
    assert "size: 1.00000000000000000001\n" in text
    assert data["author"] == r"[Ann \[x\](y)](/api/authors/ann.md)"
    assert data["editors"] == [data["author"], "[bob](/api/authors/bob.md)"]
    assert data["subject"] == "[bob](/api/authors/bob.md)"
    assert data["seo"] == {
        "metaTitle": "Meta",
        "notes": "**Bold**",
        "by": "[bob](/api/authors/bob.md)",
    }  # A component inside itself is only there if it is requested:
    deep = frontmatter.loads(read(api, "/api/posts/fog?populate[seo][populate]=again"))
    assert deep["seo"] == {
        "metaTitle": "Meta",
        "notes": "**Bold**",
        "again": [{"metaTitle": "Inner"}],
    }
    assert data["parts"] == [{"__component": "shared.seo", "metaTitle": "Part"}]
    assert data["cover"] == "[a.txt](/uploads/a.txt)"
    assert "files" not in data
    assert [*data][:2] == ["documentId", "title"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(TEXTS, TEXTS, VALUES, TEXTS)
@example("a\n---\nadmin: true\n---\n", "...\n---", {"---\nx": "---\ny"}, "---\nadmin: true\n---")
@example("- a: b", "#", [": ", "no", "1", "null", "~", "2024-01-01"], "\n\n")
def test_no_value_breaks_out_of_the_front_matter(title: str, lead: str, extra: Any, body: str) -> None:
    data = {"documentId": "x", "title": title, "lead": lead, "extra": extra, "body": body}
    found = frontmatter.loads(converted({"id": 1, **data}))
    expected = {name: data[name] for name in ("documentId", "title", "lead", "extra")}
    if extra in (None, [], {}):
        del expected["extra"]
    assert found.metadata == expected
    assert found.content == body.replace("\r\n", "\n").strip()


@given(TEXTS, TEXTS, TEXTS)
@example("](x) [", "a", "b")
def test_no_title_breaks_out_of_a_relation(name: str, document_id: str, alt: str) -> None:
    author = {"documentId": f"d{document_id}", "name": name}
    picture = {"name": "a", "alternativeText": alt, "url": "/uploads/a b.png", "mime": "image/png"}
    found = frontmatter.loads(converted({"documentId": "x", "author": author, "cover": picture}))
    page = Page(markdown_to_html(f"{found['author']} {found['cover']}"))
    assert [tag for tag, _ in page.elements] == ["p", "a", "img"]
    title = plain(name) or plain(author["documentId"])
    assert plain(page.text) == title
    assert page.elements[2][1]["src"] == "/uploads/a%20b.png"
