"""Effective versions: which version of a document a reader sees, by status and locale.

A reader of published content sees the published version. A reader of drafts sees the draft, or the published
version if there is no separate draft. A relation leads to the version in the reader's status, in the locale
of the document that contains it. From a document without locales, it leads to the first locale that the other
document has.
"""

from collections.abc import Mapping

from server.config.model import LocaleSettings
from server.documents.document import DRAFT, PUBLISHED, Document
from server.schema.model import Type

# The locale of a traversal through a document without locales, which relates to documents in any locale.
EVERY_LOCALE = ""


def edited_status(type_: Type) -> str:
    """Return the status of the versions that editors change: draft, if the type has drafts."""
    return DRAFT if type_.draft_publish else PUBLISHED


def effective_status(type_: Type, drafts: frozenset[str]) -> str:
    """Return the status in which a reader sees a type; `drafts` are the uids whose drafts it sees."""
    return DRAFT if type_.uid in drafts else PUBLISHED


def effective_versions(type_: Type, published: Document | None, draft: Document | None) -> list[Document]:
    """Return the versions that readers see of a document in a locale, given its files there."""
    versions = [] if published is None else [published]
    if not type_.draft_publish:
        return versions
    if draft is not None:
        versions.append(draft)
    elif published is not None:
        versions.append(published.as_draft())
    return versions


def locale_inside(document: Document) -> str:
    """Return the locale in which a document's relations are followed; EVERY_LOCALE if it has none."""
    return document.locale if document.type.localized else EVERY_LOCALE


def effective_locales(type_: Type, locale: str, locales: LocaleSettings) -> tuple[str, ...]:
    """Return the locales in which a relation from a document in `locale` looks, best first."""
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
    """Return the version that a relation leads to, from a type's `versions` by id, locale and status.

    It is in the first of the locales that the document has; None if that one is not published.
    """
    status, edited = effective_status(type_, drafts), edited_status(type_)
    for locale in locales:
        version = versions.get((document_id, locale, status))
        if version is not None or (document_id, locale, edited) in versions:
            return version
    return None
