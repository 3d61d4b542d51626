"""Effective versions: which version of a document a reader sees, depending on status and locale.

- A reader of published content sees the published version.
- A reader of drafts sees the draft. If there is no separate draft, the reader sees the published version.
- A relation resolves to a version with the reader's status, in the locale of the document that contains the
  relation. If that document has no locales, the relation resolves to the first locale in which the reader
  sees the relation's target.
"""

from collections.abc import Mapping

from server.config.model import LocaleSettings
from server.documents.document import DRAFT, PUBLISHED, Document
from server.schema.model import Type

# Locale for following relations from a document without locales: they can resolve to any locale.
EVERY_LOCALE = ""


def edited_status(type_: Type) -> str:
    """Return the status of the version that editors change: `draft` if the content type has drafts, otherwise
    `published`.
    """
    return DRAFT if type_.draft_publish else PUBLISHED


def effective_status(type_: Type, drafts: frozenset[str]) -> str:
    """Return the status that a reader of this content type sees.

    `drafts` contains the uids of the content types whose drafts the reader sees.
    """
    return DRAFT if type_.uid in drafts else PUBLISHED


def effective_versions(type_: Type, published: Document | None, draft: Document | None) -> list[Document]:
    """Return the versions of a document that readers can see in one locale, given its published version and
    its draft.
    """
    versions = [] if published is None else [published]
    if not type_.draft_publish:
        return versions
    if draft is not None:
        versions.append(draft)
    elif published is not None:
        versions.append(published.as_draft())
    return versions


def locale_inside(document: Document) -> str:
    """Return the locale in which a document's relations are resolved, or EVERY_LOCALE if its content type has
    no locales.
    """
    return document.locale if document.type.localized else EVERY_LOCALE


def effective_locales(type_: Type, locale: str, locales: LocaleSettings) -> tuple[str, ...]:
    """Return the locales in which to search for a target of a relation, the preferred locale first. `locale`
    is the locale of the document that contains the relation.
    """
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
    """Return the version that a relation to this document resolves to, or None.

    `versions` maps document id, locale and status to a version. The result is the version in the first of
    `locales` in which the reader sees the document. A draft that the reader does not see never changes the
    result, because a null relation would reveal that the draft exists.
    """
    status = effective_status(type_, drafts)
    found = (versions.get((document_id, locale, status)) for locale in locales)
    return next((version for version in found if version is not None), None)
