"""What is published of a document goes; its draft stays, or what was published becomes it."""

from collections.abc import Iterable

from server.documents.document import PUBLISHED, Document
from server.formats.edits import REMOVE
from server.schema.model import Type
from server.write.context import Context, Values
from server.write.version_files import created_timestamp, draft_mark


def unpublish(context: Context, type_: Type, document_id: str, locales: Iterable[str]) -> None:
    """Leave nothing published of a document in some locales, but its drafts.

    Where nothing is published, nothing changes. Raises ConflictError where a second file claims to be what is
    published, or the file can't be changed.
    """
    for locale in locales:
        published = context.only_version(type_, document_id, locale, PUBLISHED)
        if published is None:
            continue
        if context.versions(type_, document_id, locale)[1]:
            context.remove(published)
        else:
            _become_draft(context, published)


def _become_draft(context: Context, published: Document) -> None:
    """Let the file of what is published be that of the draft: renamed, or by what it says of itself."""
    type_ = published.type
    path = published.path if type_.draft_key else context.sibling(published.path, draft=True)
    changes: Values = {"publishedAt": REMOVE, **draft_mark(type_)}
    if path == published.path:
        context.replace(path, context.changed(published, changes), published)
        return
    # The time of a file that has none of its own is that of its path, which is new.
    changes.update(created_timestamp(context, published, published.created_at))
    context.replace(path, context.changed(published, changes))
    context.remove(published)
