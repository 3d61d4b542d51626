"""Rules for the timestamps in files: when a write sets createdAt, updatedAt and publishedAt.

- In a new version, createdAt and updatedAt are set to the current time. If the version is published and its
  content type has drafts, publishedAt is set too.
- A change sets updatedAt. Publishing also sets publishedAt. A draft has no publishedAt.
- createdAt belongs to the document, so it is the same in the files of all versions.
- If a file changes because another document was written, for example through a relation, the file's
  timestamps stay the same.

All timestamps that one write sets have the same value, `Context.now`. If a file does not contain a timestamp,
`storage.git.times` determines the value. With the setting `timestamps: git`, a write updates only timestamps
that the file already contains.
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
    """Return createdAt and updatedAt as keys and values for a file. If `published` is given, publishedAt is
    included.
    """
    timestamps = {"createdAt": created, "updatedAt": updated}
    if published:
        timestamps["publishedAt"] = published
    return {name: Plain(timestamp) for name, timestamp in timestamps.items()}


def new_timestamps(now: str) -> dict[str, Plain]:
    """Return the timestamps for the description of a new media file, as keys and values."""
    return known_timestamps(now, now)


def timestamps_of_new_file(context: Context, *, is_published: bool) -> dict[str, Plain]:
    """Return the timestamps for the file of a new version of a document, as keys and values."""
    now = context.now
    return {} if _is_kept_by_git(context) else known_timestamps(now, now, now if is_published else None)


def updated_timestamp(now: str) -> dict[str, Plain]:
    """Return updatedAt with the time `now`, as a key and value for a file."""
    return {"updatedAt": Plain(now)}


def timestamp_of_change(context: Context, base: Document) -> dict[str, Plain]:
    """Return the timestamp to set when the content of the file of `base` has changed, or when a changed copy
    of it is written.
    """
    return updated_timestamp(context.now) if _is_stamped(context, base, "updatedAt") else {}


def _is_kept_by_git(context: Context) -> bool:
    return context.settings.timestamps is TimestampSource.GIT


def _is_stamped(context: Context, base: Document, name: str) -> bool:
    """Whether a write sets the timestamp `name` in the file of `base`.

    With the setting `timestamps: git`, the timestamp is set only if the file already contains it.
    """
    return not _is_kept_by_git(context) or name in context.tree(base)


def timestamps_of_new_draft(context: Context, published: Document) -> Values:
    """Return the timestamps to change in the file of a new draft. This file is a copy of the published
    version's file.
    """
    created = _created_timestamp(context, published, published.created_at)
    return {**timestamp_of_change(context, published), **created, "publishedAt": REMOVE}


def timestamps_of_publishing(context: Context, base: Document, published: Document | None) -> Values:
    """Return the timestamps to change when `base` is published. The published version's file is a copy of
    `base`'s file.
    """
    created = _created_timestamp(context, base, (published or base).created_at)
    timestamps: Values = {**created, **timestamp_of_change(context, base)}
    source = published if published and _is_kept_by_git(context) else base
    if base.type.draft_publish and _is_stamped(context, source, "publishedAt"):
        timestamps["publishedAt"] = Plain(context.now)
    return timestamps


def timestamps_of_unpublishing() -> Values:
    """Return the timestamps to change in a file when it is converted from a published version to a draft."""
    return {"publishedAt": REMOVE}


def timestamps_of_moved(context: Context, document: Document) -> Values:
    """Return the timestamps to add to a document's file when the file moves to another path.

    Without them, timestamps that the file does not contain would become the time of the move.
    """
    return _created_timestamp(context, document, document.created_at)


def _created_timestamp(context: Context, base: Document, created_at: str) -> Values:
    """Return createdAt as a key and value for the file of a version.

    Return an empty mapping if the file of `base` already contains this time, or if the write does not set
    createdAt.
    """
    if not _is_stamped(context, base, "createdAt"):
        return {}
    own = read_own_timestamp(context.tree(base), "createdAt", "", Reading(context.snapshot.schema.types))
    return {} if own == created_at else {"createdAt": Plain(created_at)}


def timestamps_of_merge(now: str, tree: Mapping[str, Tree]) -> Values:
    """Return updatedAt as a key and value for a file, after branches were merged.

    Return an empty mapping if the file does not contain updatedAt.
    """
    return updated_timestamp(now) if "updatedAt" in tree else {}


def stamp_text(path: str, type_: Type, before: str, after: str, now: str) -> str:
    """Return the new text of a file with updated timestamps. Timestamps that the new text itself has changed
    stay as they are.
    """
    try:
        tree, old = parse(path, after, type_.body), parse(path, before, type_.body)
    except SyntaxProblem:
        # If the new text has a syntax error, validation will report it. If only the old text has one, this
        # write repairs the file.
        return after
    kept = [name for name in ("updatedAt", "publishedAt") if name in tree and same(tree[name], old.get(name))]
    changes: Values = {name: Plain(now) for name in kept}
    return change_text(path, after, type_.body, changes) if changes else after
