"""Sites of real files for tests of the language server's features, without the protocol."""

from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from server.lsp.positions import Text
from server.lsp.titles import Titles
from server.lsp.view import EditorCapabilities, View
from server.service.opening import Mode, open_site
from server.site.check.unsaved import SavedSite
from tests.lsp.edits import apply_edits
from tests.sites import STRING, collection, component, relation


def _picture() -> bytes:
    file = BytesIO()
    Image.new("RGB", (3, 2)).save(file, "PNG")
    return file.getvalue()


ARTICLE = """---
title: First
author: ann
tags: [fog, night]
---

# Top

## Below it
"""
FILES = {
    "site.yaml": "name: A\nlocales: {default: en, available: [en, fr]}\n"
    "urls:\n  article: https://example.org/blog/{name}\n  author: https://example.org/by/{documentId}/\n",
    **collection("author", {"name": {**STRING, "required": True}, "bio": {"type": "text"}}),
    **collection("tag", {"name": STRING}),
    **collection(
        "article",
        {
            "title": {**STRING, "required": True, "description": "Shown in lists"},
            "slug": {"type": "uid", "targetField": "title"},
            "summary": {"type": "text", "maxLength": 280},
            "body": {"type": "richtext"},
            "kind": {"type": "enumeration", "enum": ["news", "essay"], "default": "news"},
            "featured": {"type": "boolean"},
            "cover": {"type": "media", "allowedTypes": ["images"]},
            "author": relation("manyToOne", "author"),
            "tags": relation("manyToMany", "tag"),
            "about": {"type": "relation", "relation": "morphToMany"},
            "seo": {"type": "component", "component": "shared.seo"},
            "sections": {"type": "dynamiczone", "components": ["shared.quote", "shared.seo"]},
        },
        drafts=True,
        localized=True,
    ),
    **component("shared.seo", {"metaTitle": STRING, "picture": {"type": "media"}}),
    **component("shared.quote", {"text": {"type": "text"}, "by": relation("manyToOne", "author")}),
    "content/authors/ann.yaml": "name: Ann Moor\nbio: Keeps the light.\n",
    "content/authors/bob.yaml": "name: Bob\n",
    "content/tags/fog.yaml": "name: Fog\n",
    "content/tags/night.yaml": "name: Night\n",
    "content/tags/no.yaml": "name: No\n",
    "content/articles/a.md": ARTICLE,
    "content/articles/2024/b.json": '{"title": "Second", "author": "ann", "cover": "fog.png"}',
    "content/articles/2024/b.fr.json": '{"title": "Deuxième", "author": "ann"}',
    "content/uploads/fog.png": _picture(),
    "content/uploads/fog.png.yaml": "alternativeText: Fog at sea\n",
    "content/uploads/notes.txt": "notes",
}
CLIENT = EditorCapabilities(snippets=True, creates_files=True, renames_files=True)


def view_of(root: Path, texts: dict[str, str] | None = None, client: EditorCapabilities = CLIENT) -> View:
    """Return the view of a site in a folder, with unsaved texts."""
    site = open_site(root, Mode.READ).site
    overlay = SavedSite.from_site(site).with_texts(texts or {})
    return View(overlay, {path: Text(text) for path, text in (texts or {}).items()}, Titles(), client)


def marked(text: str) -> tuple[str, dict[str, Any]]:
    """Return a text without its character |, and the parameters of a request at that position."""
    index = text.index("|")
    plain = text.replace("|", "", 1)
    return plain, {"position": Text(plain).position(index)}


def inserted(text: str, item: dict[str, Any]) -> str:
    """Return a text after an item of a completion was chosen."""
    return apply_edits(text, [item["textEdit"]])
