"""Rules for setting and updating timestamps.

With the setting `timestamps: git`, a write updates only timestamps that the file already contains.
"""

from collections.abc import Mapping

from server.config.model import TimestampSource
from server.documents.document import Document
from server.documents.encode import Reading, read_file_timestamp
from server.formats.edits import REMOVE, is_same_value
from server.formats.tree import Plain, SyntaxProblem, Tree
from server.schema.model import Type
from server.storage.document_text import change_text
from server.storage.read import parse
from server.write.context import Context, Values


def known_timestamps(created: str, updated: str, published: str | None = None) -> dict[str, Plain]:
    timestamps = {"createdAt": created, "updatedAt": updated}
    if published:
        timestamps["publishedAt"] = published
    return {name: Plain(timestamp) for name, timestamp in timestamps.items()}


def new_timestamps(now: str) -> dict[str, Plain]:
    return known_timestamps(now, now)


def timestamps_of_new_file(context: Context, *, is_published: bool) -> dict[str, Plain]:
    now = context.now
    return {} if _is_kept_by_git(context) else known_timestamps(now, now, now if is_published else None)


def updated_timestamp(now: str) -> dict[str, Plain]:
    return {"updatedAt": Plain(now)}


def timestamp_of_change(context: Context, base: Document) -> dict[str, Plain]:
    return updated_timestamp(context.now) if _is_stamped(context, base, "updatedAt") else {}


def _is_kept_by_git(context: Context) -> bool:
    return context.settings.timestamps is TimestampSource.GIT


def _is_stamped(context: Context, base: Document, name: str) -> bool:
    # With `timestamps: git`, a write sets only timestamps that the file already contains.
    return not _is_kept_by_git(context) or name in context.tree(base)


def timestamps_of_new_draft(context: Context, published: Document) -> Values:
    # The new draft is a copy of the published file, so createdAt may have to be added.
    created = _created_timestamp(context, published, published.created_at)
    return {**timestamp_of_change(context, published), **created, "publishedAt": REMOVE}


def timestamps_of_publishing(context: Context, base: Document, published: Document | None) -> Values:
    # The published file is a copy of the file of `base`, so createdAt may have to be added.
    created = _created_timestamp(context, base, (published or base).created_at)
    timestamps: Values = {**created, **timestamp_of_change(context, base)}
    source = published if published and _is_kept_by_git(context) else base
    if base.type.draft_publish and _is_stamped(context, source, "publishedAt"):
        timestamps["publishedAt"] = Plain(context.now)
    return timestamps


def timestamps_of_unpublishing() -> Values:
    return {"publishedAt": REMOVE}


def timestamps_of_moved(context: Context, document: Document) -> Values:
    # Write createdAt if the file does not contain it. Otherwise, it would become the time of the move.
    return _created_timestamp(context, document, document.created_at)


def _created_timestamp(context: Context, base: Document, created_at: str) -> Values:
    # Returns {} if the file already contains this timestamp.
    if not _is_stamped(context, base, "createdAt"):
        return {}
    own = read_file_timestamp(context.tree(base), "createdAt", "", Reading(context.snapshot.schema.types))
    return {} if own == created_at else {"createdAt": Plain(created_at)}


def timestamps_of_merge(now: str, tree: Mapping[str, Tree]) -> Values:
    return updated_timestamp(now) if "updatedAt" in tree else {}


def update_timestamps(path: str, type_: Type, before: str, after: str, now: str) -> str:
    """Return the text `after` with its updatedAt and publishedAt set to `now`.

    A timestamp that differs from the one in `before` was changed by the client, so it is kept.
    """
    try:
        tree, old = parse(path, after, type_.body), parse(path, before, type_.body)
    except SyntaxProblem:
        # Validation will report a syntax error in the new text. If only the old text has an error, this write
        # repairs it.
        return after
    kept = [
        name
        for name in ("updatedAt", "publishedAt")
        if name in tree and is_same_value(tree[name], old.get(name))
    ]
    changes: Values = {name: Plain(now) for name in kept}
    return change_text(path, after, type_.body, changes) if changes else after
