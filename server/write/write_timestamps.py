"""Timestamps of a write: when createdAt, updatedAt and publishedAt change in files.

- In a new version, createdAt and updatedAt are set to the current time. If the version is published and its
  type has drafts, publishedAt is set too.
- A change sets updatedAt. Publishing also sets publishedAt. A draft has no publishedAt.
- createdAt belongs to the document, so it is the same in the files of all versions.
- If a file changes because another document was written, for example through a relation, its timestamps stay
  the same.

All timestamps in a write have the same time, `Context.now`. Timestamps that are not in files come from
`storage.git.times`. With the setting `timestamps: git`, a timestamp is updated only if the file already
contains it.
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
    """Return the given timestamps as keys for a file. Unknown timestamps are omitted."""
    timestamps = {"createdAt": created, "updatedAt": updated}
    if published:
        timestamps["publishedAt"] = published
    return {name: Plain(timestamp) for name, timestamp in timestamps.items()}


def new_timestamps(now: str) -> dict[str, Plain]:
    """Return the timestamps for a new media file's description."""
    return known_timestamps(now, now)


def timestamps_of_new_file(context: Context, *, is_published: bool) -> dict[str, Plain]:
    """Return the timestamps for a new version's file."""
    now = context.now
    return {} if _is_kept_by_git(context) else known_timestamps(now, now, now if is_published else None)


def updated_timestamp(now: str) -> dict[str, Plain]:
    """Return the keys that must change in a file after its content has changed."""
    return {"updatedAt": Plain(now)}


def timestamp_of_change(context: Context, base: Document) -> dict[str, Plain]:
    """Return the keys that must change after a change to the content of `base`'s file, or of a copy of it."""
    return updated_timestamp(context.now) if _is_stamped(context, base, "updatedAt") else {}


def _is_kept_by_git(context: Context) -> bool:
    return context.settings.timestamps is TimestampSource.GIT


def _is_stamped(context: Context, base: Document, name: str) -> bool:
    """Whether a timestamp is written to the file.

    With the setting `timestamps: git`, it is written only if the file already contains it.
    """
    return not _is_kept_by_git(context) or name in context.tree(base)


def timestamps_of_new_draft(context: Context, published: Document) -> Values:
    """Return the keys in which a new draft's file differs from the published file."""
    created = _created_timestamp(context, published, published.created_at)
    return {**timestamp_of_change(context, published), **created, "publishedAt": REMOVE}


def timestamps_of_publishing(context: Context, base: Document, published: Document | None) -> Values:
    """Return the keys in which a new published file differs from the file of `base`, from which it is
    created.
    """
    created = _created_timestamp(context, base, (published or base).created_at)
    timestamps: Values = {**created, **timestamp_of_change(context, base)}
    source = published if published and _is_kept_by_git(context) else base
    if base.type.draft_publish and _is_stamped(context, source, "publishedAt"):
        timestamps["publishedAt"] = Plain(context.now)
    return timestamps


def timestamps_of_unpublishing() -> Values:
    """Return the keys that must change when a published file becomes a draft."""
    return {"publishedAt": REMOVE}


def timestamps_of_moved(context: Context, document: Document) -> Values:
    """Return the keys that must change in a version's file when the file moves to another path.

    If the file contained no timestamp, the version's timestamp would become the time of the move.
    """
    return _created_timestamp(context, document, document.created_at)


def _created_timestamp(context: Context, base: Document, created_at: str) -> Values:
    """Return the createdAt to write for a version.

    Return nothing if the file of `base` already contains the same time.
    """
    if not _is_stamped(context, base, "createdAt"):
        return {}
    own = read_own_timestamp(context.tree(base), "createdAt", "", Reading(context.snapshot.schema.types))
    return {} if own == created_at else {"createdAt": Plain(created_at)}


def timestamps_of_merge(now: str, tree: Mapping[str, Tree]) -> Values:
    """Return the keys that must change in a file after branches were merged.

    There are none if the file does not contain updatedAt.
    """
    return updated_timestamp(now) if "updatedAt" in tree else {}


def stamp_text(path: str, type_: Type, before: str, after: str, now: str) -> str:
    """Return a file's new text with updated timestamps, unless the new text has already changed them."""
    try:
        tree, old = parse(path, after, type_.body), parse(path, before, type_.body)
    except SyntaxProblem:
        return after  # Validation reports a broken new text. This write repairs a broken old text.
    kept = [name for name in ("updatedAt", "publishedAt") if name in tree and same(tree[name], old.get(name))]
    changes: Values = {name: Plain(now) for name in kept}
    return change_text(path, after, type_.body, changes) if changes else after
