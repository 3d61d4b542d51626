"""Discarding drafts and unpublishing documents."""

from collections.abc import Iterable

from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.file_keys import draft_key_value
from server.documents.values import same_values
from server.errors import ValidationError
from server.schema.model import Type
from server.write.context import Context, Values, values_of
from server.write.draft_merge import drop_equal_draft, write_draft
from server.write.write_timestamps import timestamps_of_moved, timestamps_of_unpublishing

# --- discard --------------------------------------------------------------------------------------

NOTHING_PUBLISHED_MESSAGE = (
    "This document is not published, so its draft can't be discarded; delete it instead"
)
NO_DRAFT_MESSAGE = "This document has no draft to discard"


def discard(
    context: Context, type_: Type, document_id: str, locales: Iterable[str], *, hides_drafts: bool
) -> None:
    """Discard the drafts of a document in the given locales.

    Raises ConflictError if a file has an error, or ValidationError if there is no published version. A
    missing draft also raises ValidationError, unless `hides_drafts` is set.
    """
    locales = tuple(locales)
    found = [(locale, *context.versions(type_, document_id, locale)) for locale in locales]
    if not any(published for _, published, _ in found):
        raise ValidationError(NOTHING_PUBLISHED_MESSAGE)
    shared: Values = {}
    for locale, published, _ in found:
        draft = context.only_version(type_, document_id, locale, DRAFT)
        if published and draft:
            context.require_valid_file(published.path)
            context.remove(draft)
            shared |= _shared(type_, published, draft)
    if not context.old_documents and not hides_drafts:
        raise ValidationError(NO_DRAFT_MESSAGE)
    if shared:
        _share(context, type_, document_id, locales, shared)


def _shared(type_: Type, published: Document, draft: Document) -> Values:
    live, edited = values_of(published), values_of(draft)
    names = (a.name for a in type_.attributes.values() if type_.localized and not a.localized)
    return {name: live[name] for name in names if not same_values(live[name], edited[name])}


def _share(
    context: Context, type_: Type, document_id: str, discarded: tuple[str, ...], shared: Values
) -> None:
    # Writes published values to the drafts that were not discarded.
    for locale in context.settings.locales.available:
        published, draft = context.versions(type_, document_id, locale)
        if draft is None or (locale in discarded and published):
            continue
        values = {**values_of(draft), **shared}
        live = values_of(published) if published else {}
        if published is None or not drop_equal_draft(context, published, draft, live, values):
            write_draft(context, published, draft, values)


# --- unpublish ------------------------------------------------------------------------------------


def unpublish(context: Context, type_: Type, document_id: str, locales: Iterable[str]) -> None:
    """Unpublish a document in the given locales.

    If there is no draft, the published version becomes the draft. Raises ConflictError if several files
    contain the published version, or if a file has an error.
    """
    for locale in locales:
        published = context.only_version(type_, document_id, locale, PUBLISHED)
        if published is None:
            continue
        draft = context.versions(type_, document_id, locale)[1]
        if draft:
            context.require_valid_file(draft.path)
            context.remove(published)
        else:
            _become_draft(context, published)


def _become_draft(context: Context, published: Document) -> None:
    type_ = published.type
    path = published.path if type_.draft_key else context.sibling(published.path, draft=True)
    changes: Values = {**timestamps_of_unpublishing(), **draft_key_value(type_)}
    if path == published.path:
        context.replace_file(path, context.text_with_changes(published, changes), published)
        return
    changes |= timestamps_of_moved(context, published)
    context.replace_file(path, context.text_with_changes(published, changes))
    context.remove(published)
