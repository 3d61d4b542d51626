"""Content types of the measured sites."""

import json
from pathlib import Path
from typing import Any

_TITLED = {"name": {"type": "string", "required": True}, "slug": {"type": "uid", "targetField": "name"}}
_COMPONENTS: dict[str, dict[str, Any]] = {
    "shared/seo": {"metaTitle": {"type": "string"}, "metaDescription": {"type": "text"}},
    "shared/quote": {"body": {"type": "text"}, "attribution": {"type": "string"}},
    "shared/callout": {"title": {"type": "string"}, "body": {"type": "richtext"}},
}
# by plural API id: singular API id, kind of the relation to articles, and the articles' attribute for its
# other side
REFERRED = {
    "authors": ("author", "oneToMany", "author"),
    "categories": ("category", "oneToMany", "category"),
    "tags": ("tag", "manyToMany", "tags"),
}


def write_types(root: Path) -> None:
    for place, attributes in _COMPONENTS.items():
        _write(root / "content-types/components" / f"{place}.json", {}, attributes)
    for plural, (singular, kind, mirrored) in REFERRED.items():
        articles = _relation(kind, "article", mappedBy=mirrored)
        _write_type(root, singular, plural, {**_TITLED, "bio": {"type": "text"}, "articles": articles})
    _write_type(root, "article", "articles", _article())


def _article() -> dict[str, Any]:
    return {
        "title": {"type": "string", "required": True, "maxLength": 120},
        "slug": {"type": "uid", "targetField": "title"},
        "summary": {"type": "text"},
        "body": {"type": "richtext"},
        "publishedOn": {"type": "date"},
        "readingMinutes": {"type": "integer", "min": 1},
        "featured": {"type": "boolean", "default": False},
        "author": _relation("manyToOne", "author", inversedBy="articles"),
        "category": _relation("manyToOne", "category", inversedBy="articles"),
        "tags": _relation("manyToMany", "tag", inversedBy="articles"),
        "related": _relation("manyToMany", "article"),
        "seo": {"type": "component", "repeatable": False, "component": "shared.seo"},
        "sections": {"type": "dynamiczone", "components": ["shared.quote", "shared.callout"]},
    }


def _relation(kind: str, target: str, **more: str) -> dict[str, Any]:
    return {"type": "relation", "relation": kind, "target": f"api::{target}.{target}", **more}


def _write_type(root: Path, singular: str, plural: str, attributes: dict[str, Any]) -> None:
    info = {"singularName": singular, "pluralName": plural, "displayName": singular.title()}
    _write(root / "content-types" / f"{singular}.json", {"kind": "collectionType", "info": info}, attributes)


def _write(path: Path, head: dict[str, Any], attributes: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**head, "attributes": attributes}, indent=2) + "\n", encoding="utf-8")
