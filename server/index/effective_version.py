"""Rules that select the effective version of a document, which is the version that a request reads."""

from collections.abc import Mapping

from server.config.model import LocaleSettings
from server.documents.document import DRAFT, PUBLISHED, Document
from server.schema.model import Type

# Locale for following relations from a document without locales: they can resolve to any locale.
EVERY_LOCALE = ""


def edited_status(type_: Type) -> str:
    return DRAFT if type_.draft_publish else PUBLISHED


def effective_status(type_: Type, draft_types: frozenset[str]) -> str:
    return DRAFT if type_.uid in draft_types else PUBLISHED


def effective_versions(type_: Type, published: Document | None, draft: Document | None) -> list[Document]:
    """Return the published version and the draft of a document in one locale, if they exist.

    If there is no draft, a copy of the published version is returned as the draft.
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
    return document.locale if document.type.localized else EVERY_LOCALE


def effective_locales(type_: Type, locale: str, locales: LocaleSettings) -> tuple[str, ...]:
    """Return the locales in which to look for a target, preferred first. `locale` can be EVERY_LOCALE."""
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
    draft_types: frozenset[str],
) -> Document | None:
    """Return the effective version in the first of `locales` that has one, or None.

    The keys of `versions` are document id, locale and status. `draft_types` contains the uids of the content
    types whose drafts the request reads.
    """
    status = effective_status(type_, draft_types)
    found = (versions.get((document_id, locale, status)) for locale in locales)
    return next((version for version in found if version is not None), None)
