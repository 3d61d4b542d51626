"""A site whose documents contain every type of marked text, in every place where such a text can occur."""

import json
from typing import Any

from tests.sites import Files, collection, component, documents, relation, translated

TEXTS = ("string", "text", "richtext", "email", "biginteger", "date", "time", "datetime", "timestamp", "json")


def text(*texts: str) -> list[Any]:
    return [{"type": "text", "text": each} for each in texts]


DEEP = {"type": "list", "format": "unordered", "children": [{"type": "list-item", "children": text("Deep")}]}
IMAGE = {"url": "/uploads/a.png", "alternativeText": "A boat"}
BLOCKS: list[Any] = [
    {"type": "heading", "level": 1, "children": text("One", "Two")},
    {"type": "paragraph", "children": [{"type": "link", "url": "/x", "children": text("Inside")}]},
    {"type": "code", "children": text("let a = 1")},
    {"type": "quote", "children": text("")},
    {
        "type": "list",
        "format": "ordered",
        "children": [{"type": "list-item", "children": text("A", "B")}, DEEP],
    },
    {"type": "image", "image": IMAGE, "children": text("")},
    {"type": "image", "image": {**IMAGE, "alternativeText": ""}, "children": []},
]
FILES: Files = {
    **collection(
        "post",
        {
            **{name: translated({"type": name}) for name in TEXTS},
            "slug": {"type": "uid"},
            "kind": {"type": "enumeration", "enum": ["calm", "rough"]},
            "flag": {"type": "boolean"},
            "number": {"type": "decimal"},
            "blocks": {"type": "blocks"},
            "seo": {"type": "component", "component": "shared.seo"},
            "many": {"type": "component", "component": "shared.seo", "repeatable": True},
            "zone": {"type": "dynamiczone", "components": ["shared.seo", "shared.quote"]},
            "cover": {"type": "media"},
            "pictures": {"type": "media", "multiple": True},
            "author": relation("manyToOne", "author"),
        },
        drafts=True,
        localized=True,
    ),
    **collection("author", {"name": "string", "seo": {"type": "component", "component": "shared.seo"}}),
    **collection("home", {"title": "string"}, single=True, drafts=True),
    **component(
        "shared.seo",
        {
            "title": {"type": "string"},
            "canonical": {"type": "string"},
            "cover": {"type": "media"},
            "pictures": {"type": "media", "multiple": True},
            "author": relation("oneToOne", "author"),
        },
    ),
    **component(
        "shared.quote", {"text": {"type": "text"}, "seo": {"type": "component", "component": "shared.seo"}}
    ),
    **documents("authors", ann={"name": "Ann", "seo": {"title": "About Ann"}}),
    "content/home.json": json.dumps({"title": "Home"}),
    **documents(
        "posts",
        a={
            "string": "A title~ with *signs*",
            "text": "Two\nlines",
            "richtext": "# Heading",
            "email": "ann@example.org",
            "biginteger": "12345678901234567890123",
            "date": "2024-02-29",
            "time": "10:20:30.000",
            "datetime": "2024-02-29T10:20:30.000Z",
            "timestamp": "2024-02-29T10:20:30.000Z",
            "json": "a text",
            "slug": "a",
            "kind": "calm",
            "flag": True,
            "number": "1.10000000000000000001",
            "blocks": BLOCKS,
            "seo": {"title": "S", "cover": "a.png", "pictures": ["a.png", "b.png"]},
            "many": [{"title": "M0", "canonical": ""}, {"title": "M1"}],
            "zone": [
                {"__component": "shared.seo", "title": "Z0", "cover": "b.png"},
                {"__component": "shared.quote", "text": "Z1", "seo": {"title": "Z1S", "author": "ann"}},
            ],
            "cover": "a.png",
            "pictures": ["a.png", "b.png"],
            "author": "ann",
        },
        b={"string": "", "json": {"a": ["b"]}, "blocks": []},
    ),
    "content/posts/a.draft.json": json.dumps({"string": "Draft"}),
    "content/posts/a.fr.json": json.dumps({"string": "Un titre"}),
    "content/uploads/a.png": b"\x89PNG\r\n\x1a\n",
    "content/uploads/b.png": b"\x89PNG\r\n\x1a\n",
    "content/uploads/a.png.yaml": "alternativeText: A boat\ncaption: A caption\n",
    "site.yaml": (
        "locales: {default: en, available: [en, fr]}\n"
        "roles:\n"
        "  public: {post: [find, findOne], author: [find], home: [find], upload: [find]}\n"
    ),
}
POPULATE = {
    "cover": "true",
    "pictures": "true",
    "author": {"populate": {"seo": "true"}},
    "seo": {"populate": "*"},
    "many": {"populate": "*"},
    "zone": {
        "on": {
            "shared.seo": {"populate": "*"},
            "shared.quote": {"populate": {"seo": {"populate": "*"}}},
        }
    },
}
