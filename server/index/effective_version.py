"""Effective versions: which version of a document a reader sees, by status and locale.

- A reader of published content sees the published version.
- A reader of drafts sees the draft, or the published version if there is no separate draft.
- A relation resolves to a version in the reader's status and in the locale of the document that contains the
  relation. If that document has no locales, the relation resolves to the first locale that its target has.
"""

from collections.abc import Mapping

from server.config.model import LocaleSettings
from server.documents.document import DRAFT, PUBLISHED, Document
from server.schema.model import Type

# Locale for following relations from a document without locales: they can resolve to any locale.
EVERY_LOCALE = ""


def edited_status(type_: Type) -> str:
    """Return the status that editors change: draft if the type has drafts, else published."""
    return DRAFT if type_.draft_publish else PUBLISHED


def effective_status(type_: Type, drafts: frozenset[str]) -> str:
    """Return the status that a reader sees. `drafts` are the uids of the types whose drafts it sees."""
    return DRAFT if type_.uid in drafts else PUBLISHED


def effective_versions(type_: Type, published: Document | None, draft: Document | None) -> list[Document]:
    """Return the visible versions of a document in one locale, given its published and draft files."""
    versions = [] if published is None else [published]
    if not type_.draft_publish:
        return versions
    if draft is not None:
        versions.append(draft)
    elif published is not None:
        versions.append(published.as_draft())
    return versions


def locale_inside(document: Document) -> str:
    """Return the locale for following a document's relations; EVERY_LOCALE if its type has no locales."""
    return document.locale if document.type.localized else EVERY_LOCALE


def effective_locales(type_: Type, locale: str, locales: LocaleSettings) -> tuple[str, ...]:
    """Return the locales to search for the target of a relation from a document in `locale`, best first."""
    if not type_.localized:
        return (locales.default,)
    if locale != EVERY_LOCALE:
        return (locale,)
    return (locales.default, *(other for other in locales.available if other != locales.default))


def effective_version(
    versions: Mapping[tuple[str, str, str], Document],
    type_: Type,
    document_id: str,
    locales: tuple[str, ...],
    drafts: frozenset[str],
) -> Document | None:
    """Return the version that a relation resolves to. `versions` is keyed by id, locale and status.

    The first locale in `locales` that the document has is used. Returns None if the document is not published
    in that locale, or has none of the locales.
    """
    status, edited = effective_status(type_, drafts), edited_status(type_)
    for locale in locales:
        version = versions.get((document_id, locale, status))
        if version is not None or (document_id, locale, edited) in versions:
            return version
    return None
