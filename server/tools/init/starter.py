"""The files of a new site: two content types, a single one, and a first article."""

import json
from collections.abc import Mapping
from typing import Any

from server.config.model import FILE
from server.documents.timestamps import now
from server.formats.yaml.writer import yaml_entry
from server.tools.init.propose import settings_text

_EXAMPLES: Mapping[str, str] = {
    "content/home.md": """---
headline: {name}
---

This text is `content/home.md`. Change it, and `/api/home` answers with the change.
""",
    "content/authors/ada.yaml": """name: Ada Example
slug: ada
bio: Writes the first article of every site.
""",
    "content/articles/welcome.md": """---
title: Welcome
slug: welcome
summary: The first article, and where it is.
publishedOn: {today}
author: ada
---

This article is the file `content/articles/welcome.md`. Its name is its `documentId`; what stands between
the two lines of dashes are its attributes, and `content-types/article.json` says what they can be.

- Add a file beside it, and `/api/articles` has one more.
- Name one `NAME.draft.md`, and only those who may read drafts see it.
- `quire check` says what is wrong with any of them.
""",
}


def starter_files(name: str, locales: tuple[str, ...], *, example: bool) -> Mapping[str, str]:
    """The text of each file of a new site, by path; the first locale is the default one."""
    localized = len(locales) > 1
    files = {f"content-types/{key}.json": _json(schema) for key, schema in _types(localized).items()}
    files[FILE] = settings_text(name, locales, ("article", "author", "home", "upload"))
    if example:
        heading = yaml_entry("headline", name).removeprefix("headline: ").rstrip("\n")
        for path, text in _EXAMPLES.items():
            files[path] = text.replace("{name}", heading).replace("{today}", now()[:10])
    return files


def _types(localized: bool) -> Mapping[str, Mapping[str, Any]]:
    """The schemas of the site's types, by singular API id."""
    own = {"pluginOptions": {"i18n": {"localized": True}}} if localized else {}
    article: dict[str, dict[str, Any]] = {
        "title": {"type": "string", "required": True, **own},
        "slug": {"type": "uid", "targetField": "title", **own},
        "summary": {"type": "text", **own},
        "publishedOn": {"type": "date"},
        "author": {"type": "relation", "relation": "manyToOne", "target": "api::author.author"},
        "body": {"type": "richtext", **own},
    }
    author = {"name": {"type": "string", "required": True}, "slug": {"type": "uid"}, "bio": {"type": "text"}}
    article["author"]["inversedBy"] = "articles"
    author["articles"] = {
        "type": "relation",
        "relation": "oneToMany",
        "target": "api::article.article",
        "mappedBy": "author",
    }
    home = {"headline": {"type": "string", "required": True, **own}, "body": {"type": "richtext", **own}}
    return {
        "article": _type("article", "articles", article, own, drafts=True),
        "author": _type("author", "authors", author, {}, format="yaml"),
        "home": _type("home", "homes", home, own, kind="singleType"),
    }


def _type(
    singular: str,
    plural: str,
    attributes: Mapping[str, Any],
    localized: Mapping[str, Any],
    *,
    kind: str = "collectionType",
    drafts: bool = False,
    **options: str,
) -> Mapping[str, Any]:
    return {
        "kind": kind,
        "info": {"singularName": singular, "pluralName": plural, "displayName": singular.title()},
        "options": {"draftAndPublish": drafts, **options},
        "pluginOptions": localized.get("pluginOptions", {}),
        "attributes": attributes,
    }


def _json(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
