"""The draft of a document goes, so that what is published is its draft again."""

from collections.abc import Iterable

from server.documents.document import DRAFT, Document
from server.documents.values import same_values
from server.errors import ValidationError
from server.schema.model import Type
from server.write.context import Context, Values, values_of
from server.write.version_files import Update, write_draft

NOTHING_PUBLISHED = "Nothing is published of this document, so that its draft can't be discarded; delete it"
NO_DRAFT = "This document has no draft of its own: it is as it is published"


def discard(context: Context, type_: Type, document_id: str, locales: Iterable[str], *, blind: bool) -> None:
    """Remove the drafts of a document in some locales, where it is published.

    What the locales share becomes what is published in the drafts of the others as well. Relations that
    are stored in other documents are those documents' own, and stay. Raises ValidationError where there is
    nothing to discard; to somebody `blind`, who may not read drafts, it is not told whether there is a draft.
    """
    locales = tuple(locales)
    found = [(locale, *context.versions(type_, document_id, locale)) for locale in locales]
    if not any(published for _, published, _ in found):
        raise ValidationError(NOTHING_PUBLISHED)
    shared: Values = {}
    for locale, published, _ in found:
        draft = context.only_version(type_, document_id, locale, DRAFT)
        if published and draft:
            context.remove(draft)
            shared |= _shared(type_, published, draft)
    if not context.touched and not blind:
        raise ValidationError(NO_DRAFT)
    if shared:
        _share(context, type_, document_id, locales, shared)


def _shared(type_: Type, published: Document, draft: Document) -> Values:
    """What a draft had changed of the attributes that all locales share, as it is published."""
    live, edited = values_of(published), values_of(draft)
    names = (a.name for a in type_.attributes.values() if type_.localized and not a.localized)
    return {name: live[name] for name in names if not same_values(live[name], edited[name])}


def _share(
    context: Context, type_: Type, document_id: str, discarded: tuple[str, ...], shared: Values
) -> None:
    """Give the drafts of the other locales what is published of the attributes that all share."""
    for locale in context.settings.locales:
        published, draft = context.versions(type_, document_id, locale)
        if draft is None or (locale in discarded and published):
            continue
        values = {**values_of(draft), **shared}
        if published and same_values(values_of(published), values):
            context.drop_draft(published, draft)
        else:
            write_draft(context, Update(published, draft, draft, values))
