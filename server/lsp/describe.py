"""Descriptions in Markdown for hovers and completions."""

from collections.abc import Iterable
from typing import Any

from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.values import same_values
from server.index.dangling import MEDIA, Key
from server.lsp.view import View
from server.schema.model import ATTRIBUTE_TYPES, Attribute, Type, title_of
from server.schema.sentences import describe_attribute
from server.schema.sentences import describe_type as sentences_of_type

MAX_SUMMARY_CHARS = 300
_SUMMARY_NAMES = ("summary", "description", "excerpt", "teaser", "bio")
# keys of document files that are not attributes
FILE_KEYS = {
    "documentId": "The document's id. By default, it follows from the file's name.",
    "createdAt": "When the document was created. By default, the time of its first commit.",
    "updatedAt": "When the document was last changed. By default, the time of its last commit.",
    "publishedAt": "When the document was published.",
    "locale": "The document's locale. The file's name determines it.",
    "__component": "The component of this entry of a dynamic zone.",
    "__type": "The content type of the document to which this relation refers.",
}


def describe_target(view: View, key: Key, locale: str = "") -> str:
    document = view.find(key, locale)
    if document is None:
        return ""
    return describe_media(view, document) if key[0] == MEDIA else describe_document(view, document)


def describe_document(view: View, document: Document) -> str:
    """Describe a document in Markdown."""
    parts = [f"**{escape_markdown(title(document) or document.document_id)}**"]
    if summary := _summary(document):
        parts.append(escape_markdown(summary))
    versions = view.snapshot.tables[document.type.uid].versions
    locales = list(dict.fromkeys(at for at, _ in view.snapshot.tables[document.type.uid].order))
    written = [at for at in locales if any((document.document_id, at, s) in versions for s in _STATUSES)]
    facts = [f"{document.type.display} `{document.document_id}`", status_text(view, document)]
    if document.type.localized:
        facts.append(", ".join(written))
    parts.append(" · ".join(filter(None, facts)))
    parts.append(f"[{document.path}]({view.uri(document.path)})")
    return "\n\n".join(parts)


_STATUSES = (PUBLISHED, DRAFT)


def title(document: Document) -> str:
    name = title_of(document.type)
    return " ".join(str(document.get(name) or "").split()) if name else ""


def status_text(view: View, document: Document) -> str:
    """Return a document's status as text, such as "draft". Return "" if its content type has no drafts."""
    if not document.type.draft_publish:
        return ""
    published, draft = (
        view.snapshot.get(document.type, document.document_id, document.locale, name) for name in _STATUSES
    )
    if published is None:
        return "draft"
    if draft is None or same_values(published.values, draft.values):
        return "published"
    return "published, with a modified draft"


def _summary(document: Document) -> str:
    attributes = document.type.attributes
    texts = [
        n for n, a in attributes.items() if a.type == "text" and a.visible and n != title_of(document.type)
    ]
    name = next((n for n in (*_SUMMARY_NAMES, *texts) if n in attributes and attributes[n].visible), None)
    value = document.get(name) if name else None
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= MAX_SUMMARY_CHARS else f"{text[:MAX_SUMMARY_CHARS]}…"


def describe_media(view: View, file: Document) -> str:
    """Describe a media file in Markdown. If it is an image, include a preview."""
    parts = [f"**{escape_markdown(file.path)}**", media_properties(file)]
    if str(_value(file, "mime") or "").startswith("image/"):
        parts.insert(1, f"![]({view.uri(file.path)})")
    for name in ("alternativeText", "caption"):
        if value := _value(file, name):
            parts.append(f"{name}: {escape_markdown(str(value))}")
    return "\n\n".join(filter(None, parts))


def media_properties(file: Document) -> str:
    """Return the dimensions, size and type of a media file, such as `1200 × 800 · 340 kB · image/png`."""
    width, height, size = (_value(file, name) for name in ("width", "height", "size"))
    parts = [f"{width} × {height}" if width and height else "", f"{size} kB" if size is not None else ""]
    return " · ".join(filter(None, (*parts, str(_value(file, "mime") or ""))))


def _value(file: Document, name: str) -> Any:
    return file.get(name) if name in file.type.position else None


# --- schemas --------------------------------------------------------------------------------------


def describe_key(type_: Type | None, name: str) -> str:
    """Describe a key of a document file in Markdown. Return "" if nothing is known about the key."""
    attribute = type_.attributes.get(name) if type_ else None
    if type_ is None or attribute is None:
        return FILE_KEYS.get(name, "")
    raw = type_.raw.get("attributes", {})
    own = raw.get(name) if isinstance(raw, dict) else None
    written = str(own.get("description", "")) if isinstance(own, dict) else ""
    sentences = [*([f"{written.strip().rstrip('.')}."] if written.strip() else []), *_rule(attribute)]
    return f"**{name}** ({kind(attribute)})\n\n" + " ".join(sentences)


def kind(attribute: Attribute) -> str:
    parts = [attribute.relation or attribute.type if attribute.type == "relation" else attribute.type]
    return ", ".join((*parts, *(["required"] if attribute.required else [])))


def _rule(attribute: Attribute) -> Iterable[str]:
    if attribute.type in ATTRIBUTE_TYPES:
        yield from describe_attribute(attribute)
    if attribute.type == "dynamiczone":
        yield "Components: " + ", ".join(f"`{uid}`" for uid in attribute.components) + "."
    if attribute.required:
        yield "Required."
    if not attribute.localized:
        yield "The same in all locales."


def describe_type(type_: Type) -> str:
    rows = [f"- `{name}`: {kind(attribute)}" for name, attribute in type_.attributes.items()]
    return f"**{type_.uid}**\n\n" + " ".join(sentences_of_type(type_)) + "\n\n" + "\n".join(rows)


def escape_markdown(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|" else c for c in text)
