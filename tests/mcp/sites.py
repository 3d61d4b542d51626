"""The site that tests of the MCP server use."""

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from tests.sites import STRING, Api, collection, component, documents, relation, schema

Make = Callable[..., Api]
GIF = b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
EDITOR = ("article.find", "article.findOne", "article.create", "article.update", "article.delete", "tag.find")
SETTINGS = """
locales: {default: en, available: [en, fr]}
mcp: {enabled: true}
roles:
  public:
    tag: [find, findOne]
  editor:
    article: [find, findOne, create, update, delete, readDraft]
    tag: [find, findOne]
    branch: [find, create, update]
"""
ARTICLE: Mapping[str, Any] = {
    "title": {"type": "string", "required": True, "maxLength": 60},
    "rating": "decimal",
    "body": "richtext",
    "tags": relation("manyToMany", "tag"),
    "sections": {"type": "dynamiczone", "components": ["shared.quote", "shared.note"]},
}
FILES: Mapping[str, str] = {
    "site.yaml": SETTINGS,
    **collection("article", ARTICLE, drafts=True),
    **collection("tag", {"name": STRING, "secret": {"type": "string", "private": True}}),
    **component("shared.quote", {"text": {"type": "text"}}),
    **component("shared.note", {"text": {"type": "text"}}),
    "content-types/home.json": schema("home", {"title": "string"}, single=True),
    "content/home.json": '{"title": "Home"}',
    **documents(
        "articles",
        fog={"title": "Fog", "rating": 4.5, "tags": ["sea"], "body": "Fog comes in on the tide."},
        tide={"title": "Tide", "rating": 3.25, "tags": [], "body": "The tide turns twice a day."},
        wind={"title": "Wind", "rating": 1, "body": "Wind against tide."},
    ),
    **documents("tags", sea={"name": "Sea", "secret": "hidden"}, sky={"name": "Sky"}),
}
