"""Generator of documents for a project that has content types but no content."""
# There are three documents of each collection type: in YAML, in JSON, and in Markdown if the type has a body.

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from bench.real.expected import Attribute
from bench.real.layout import Components, ContentType, load_types
from tests.sites import write

LOCALES = ("en", "fr")
SETTINGS = "locales: {default: en, available: [en, fr]}\napi: {populate_with_pagination: allow}\n"
PICTURE = Path(__file__).parents[2] / "content" / "uploads" / "knots.png"
NAMES = ("first", "second", "third")
_TEXTS: Mapping[str, str] = {
    "date": "2024-02-29",
    "time": "10:20:30.000",
    "datetime": "2024-02-29T10:20:30.000Z",
    "email": "ann@example.org",
    "biginteger": "9007199254740993",
}
_BLOCKS = [
    {"type": "heading", "level": 2, "children": [{"type": "text", "text": "Rain"}]},
    {"type": "paragraph", "children": [{"type": "text", "text": "All: day", "bold": True}]},
]


def make_content(root: Path) -> None:
    types = load_types(root)
    files: dict[str, str | bytes] = {"site.yaml": SETTINGS, "content/uploads/knots.png": PICTURE.read_bytes()}
    singles = {one.uid for one in types if one.is_single}
    for content_type in types:
        files |= dict(_documents(content_type, singles))
    write(root, files)


def _documents(content_type: ContentType, singles: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the path and text of each file for a content type."""
    for number, name in enumerate(NAMES[:1] if content_type.is_single else NAMES):
        stem = f"content/{content_type.singular}"
        if not content_type.is_single:
            stem = f"content/{content_type.plural}/{name}"
        for locale in LOCALES if content_type.is_localized and number == 0 else LOCALES[:1]:
            values = {
                key: _value(attribute, name, f"{key} {name}", locale, content_type.components, singles)
                for key, attribute in content_type.attributes.items()
            }
            values = {key: value for key, value in values.items() if value is not None}
            suffix = "" if locale == LOCALES[0] else f".{locale}"
            if number == 1:
                yield f"{stem}{suffix}.json", json.dumps(values, indent=2, ensure_ascii=False) + "\n"
                continue
            body = values.pop(content_type.body, None) if content_type.body and number == 2 else None
            # This makes a deep copy, so that the YAML contains no anchors.
            values = json.loads(json.dumps(values))
            text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
            if body is None:
                yield f"{stem}{suffix}.yaml", text
            else:
                yield f"{stem}{suffix}.md", f"---\n{text}---\n\n{body}\n"


def _value(
    attribute: Attribute, name: str, label: str, locale: str, components: Components, singles: set[str]
) -> Any:
    """Return a value for an attribute, or None if none is possible."""
    kind = attribute["type"]
    is_own = attribute.get("pluginOptions", {}).get("i18n", {}).get("localized")
    if kind in ("string", "text", "richtext", "customField"):
        told = f"{label}, {locale}" if is_own else label
        told = (f"{told}: # 1" if kind == "text" else told).ljust(attribute.get("minLength", 0), ".")
        return told[: attribute.get("maxLength", 255)]
    if kind == "uid":
        return label.replace(" ", "-").replace("_", "-").lower()
    if kind == "enumeration":
        return attribute["enum"][0]
    if kind in ("integer", "float", "decimal"):
        return attribute.get("min", 7)
    if kind == "relation":
        return _related(attribute, name, locale, singles)
    if kind == "media":
        return ["knots.png"] if attribute.get("multiple") else "knots.png"
    if kind == "component":
        made = _component(attribute["component"], name, locale, components, singles)
        return [made, dict(made)] if attribute.get("repeatable") else made
    if kind == "dynamiczone":
        return [
            {"__component": uid, **_component(uid, name, locale, components, singles)}
            for uid in attribute["components"]
        ]
    fixed: Mapping[str, Any] = {"boolean": True, "json": {"on": [1, "no"]}, "blocks": _BLOCKS}
    return _TEXTS.get(kind, fixed.get(kind))


def _component(uid: str, name: str, locale: str, components: Components, singles: set[str]) -> dict[str, Any]:
    values = {
        key: _value(attribute, name, f"{key} {name}", locale, components, singles)
        for key, attribute in components[uid].items()
    }
    return {key: value for key, value in values.items() if value is not None}


def _related(attribute: Attribute, name: str, locale: str, singles: set[str]) -> Any:
    """Return the value of a relation, or None if the file does not store it."""
    target = attribute.get("target", "")
    if attribute.get("mappedBy") or not target.startswith("api::") or target in singles:
        return None
    if attribute["relation"].endswith("ToOne"):
        return name
    # Only the first document is translated, and relations stay within a locale.
    return [name, *(other for other in NAMES[:2] if other != name and locale == LOCALES[0])]
