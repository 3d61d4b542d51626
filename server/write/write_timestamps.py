"""Timestamps of a write: when createdAt, updatedAt and publishedAt change in files.

- A new version is created and updated now; a published one of a type with drafts is published now, too.
- A change sets updatedAt, publishing also publishedAt. A draft has no publishedAt.
- createdAt belongs to the document, in whichever file of its versions.
- A change of a file by another document, such as a relation to it, sets no timestamps.

All timestamps are the time of the whole write, `Context.now`. `storage.git.times` supplies those that files
do not contain. With `timestamps: git`, only timestamps that a file already contains are updated.
"""

from collections.abc import Mapping

from server.config.model import TimestampSource
from server.documents.document import Document
from server.documents.encode import Reading, read_own_timestamp
from server.formats.edits import REMOVE, same
from server.formats.tree import Plain, SyntaxProblem, Tree
from server.schema.model import Type
from server.storage.document_text import change_text
from server.storage.read import parse
from server.write.context import Context, Values


def known_timestamps(created: str, updated: str, published: str | None = None) -> dict[str, Plain]:
    """Return the keys of known timestamps, which this write did not make."""
    timestamps = {"createdAt": created, "updatedAt": updated}
    if published:
        timestamps["publishedAt"] = published
    return {name: Plain(timestamp) for name, timestamp in timestamps.items()}


def new_timestamps(now: str) -> dict[str, Plain]:
    """Return the timestamps of a new media file's description."""
    return known_timestamps(now, now)


def timestamps_of_new_file(context: Context, *, is_published: bool) -> dict[str, Plain]:
    """Return the timestamps of a new version's file."""
    now = context.now
    return {} if _is_kept_by_git(context) else known_timestamps(now, now, now if is_published else None)


def updated_timestamp(now: str) -> dict[str, Plain]:
    """Return the keys to change after a change of content."""
    return {"updatedAt": Plain(now)}


def timestamp_of_change(context: Context, base: Document) -> dict[str, Plain]:
    """Return the keys to change in the file of `base`, or one made from it, after a change of content."""
    return updated_timestamp(context.now) if _is_stamped(context, base, "updatedAt") else {}


def _is_kept_by_git(context: Context) -> bool:
    return context.settings.timestamps is TimestampSource.GIT


def _is_stamped(context: Context, base: Document, name: str) -> bool:
    """Return whether a timestamp is written: not if git keeps it, unless the file contains it."""
    return not _is_kept_by_git(context) or name in context.tree(base)


def timestamps_of_new_draft(context: Context, published: Document) -> Values:
    """Return the keys that differ between a new draft's file and the published one."""
    created = _created_timestamp(context, published, published.created_at)
    return {**timestamp_of_change(context, published), **created, "publishedAt": REMOVE}


def timestamps_of_publishing(context: Context, base: Document, published: Document | None) -> Values:
    """Return the keys that differ between a published file and `base`, from which it is made."""
    created = _created_timestamp(context, base, (published or base).created_at)
    timestamps: Values = {**created, **timestamp_of_change(context, base)}
    source = published if published and _is_kept_by_git(context) else base
    if base.type.draft_publish and _is_stamped(context, source, "publishedAt"):
        timestamps["publishedAt"] = Plain(context.now)
    return timestamps


def timestamps_of_unpublishing() -> Values:
    """Return the keys to change when a published file becomes a draft."""
    return {"publishedAt": REMOVE}


def timestamps_of_moved(context: Context, document: Document) -> Values:
    """Return the keys to change in a version's file that moves to another path.

    Without a timestamp in the file, it would get the time of its new path.
    """
    return _created_timestamp(context, document, document.created_at)


def _created_timestamp(context: Context, base: Document, created_at: str) -> Values:
    """Return the createdAt to write for a version; nothing if the file of `base` has it in any format."""
    if not _is_stamped(context, base, "createdAt"):
        return {}
    own = read_own_timestamp(context.tree(base), "createdAt", "", Reading(context.snapshot.schema.types))
    return {} if own == created_at else {"createdAt": Plain(created_at)}


def timestamps_of_merge(now: str, tree: Mapping[str, Tree]) -> Values:
    """Return the keys to change in a file after a merge of branches, if it contains updatedAt."""
    return updated_timestamp(now) if "updatedAt" in tree else {}


def stamp_text(path: str, type_: Type, before: str, after: str, now: str) -> str:
    """Return a file's new text with current timestamps, unless the text itself changed them."""
    try:
        tree, old = parse(path, after, type_.body), parse(path, before, type_.body)
    except SyntaxProblem:
        return after  # Validation reports a broken new text; a broken old one is being repaired.
    kept = [name for name in ("updatedAt", "publishedAt") if name in tree and same(tree[name], old.get(name))]
    changes: Values = {name: Plain(now) for name in kept}
    return change_text(path, after, type_.body, changes) if changes else after
