"""The timestamps of a write: when createdAt, updatedAt and publishedAt in files change, and to what.

- What is new is created and updated now; what is published of a type with drafts is published now as well.
- A change sets updatedAt, publishing also publishedAt. A draft has no publishedAt.
- createdAt is that of the document, in whichever file of its versions.
- A change of a file by another document, such as a relation to it, is none of its own: nothing is set.

All take the time of the whole write, `Context.now`. What a file that says no time is served with is told by
`storage.git.times`. With `timestamps: git`, that is all there is: a file gets no time that it does not say
already.
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
    """Return what a file says of times that are known, and were not made by this write."""
    timestamps = {"createdAt": created, "updatedAt": updated}
    if published:
        timestamps["publishedAt"] = published
    return {name: Plain(timestamp) for name, timestamp in timestamps.items()}


def new_timestamps(now: str) -> dict[str, Plain]:
    """Return what the description of a new media file says."""
    return known_timestamps(now, now)


def timestamps_of_new_file(context: Context, *, is_published: bool) -> dict[str, Plain]:
    """Return what the file of a new version says."""
    now = context.now
    return {} if _is_kept_by_git(context) else known_timestamps(now, now, now if is_published else None)


def updated_timestamp(now: str) -> dict[str, Plain]:
    """Return what changes in a file by a change of its content, if files say when they were changed."""
    return {"updatedAt": Plain(now)}


def timestamp_of_change(context: Context, base: Document) -> dict[str, Plain]:
    """Return what changes in the file of `base`, or one that is made from it, by a change of its content."""
    return updated_timestamp(context.now) if _is_stamped(context, base, "updatedAt") else {}


def _is_kept_by_git(context: Context) -> bool:
    return context.settings.timestamps is TimestampSource.GIT


def _is_stamped(context: Context, base: Document, name: str) -> bool:
    """Whether a time is written: not if git keeps it and the file does not say it itself."""
    return not _is_kept_by_git(context) or name in context.tree(base)


def timestamps_of_new_draft(context: Context, published: Document) -> Values:
    """Return what the file of a new draft says otherwise than the published one that it is made from."""
    created = _created_timestamp(context, published, published.created_at)
    return {**timestamp_of_change(context, published), **created, "publishedAt": REMOVE}


def timestamps_of_publishing(context: Context, base: Document, published: Document | None) -> Values:
    """Return what a file that is published says otherwise than that of `base`, which it is made from."""
    created = _created_timestamp(context, base, (published or base).created_at)
    timestamps: Values = {**created, **timestamp_of_change(context, base)}
    said = published if published and _is_kept_by_git(context) else base
    if base.type.draft_publish and _is_stamped(context, said, "publishedAt"):
        timestamps["publishedAt"] = Plain(context.now)
    return timestamps


def timestamps_of_unpublishing() -> Values:
    """Return what changes in the file of a published version that becomes a draft."""
    return {"publishedAt": REMOVE}


def timestamps_of_moved(context: Context, document: Document) -> Values:
    """Return what the file of a version says otherwise at another path.

    The time of a file that has none of its own is that of its path, which is new.
    """
    return _created_timestamp(context, document, document.created_at)


def _created_timestamp(context: Context, base: Document, created_at: str) -> Values:
    """Return the createdAt of a version; nothing if the file of `base` says that time in whatever form."""
    if not _is_stamped(context, base, "createdAt"):
        return {}
    said = read_own_timestamp(context.tree(base), "createdAt", "", Reading(context.snapshot.schema.types))
    return {} if said == created_at else {"createdAt": Plain(created_at)}


def timestamps_of_merge(now: str, tree: Mapping[str, Tree]) -> Values:
    """Return what changes in a file that a merge of branches has changed, if it says when it was updated."""
    return updated_timestamp(now) if "updatedAt" in tree else {}


def stamp_text(path: str, type_: Type, before: str, after: str, now: str) -> str:
    """Return a file's new text with new times of the last change, if it has left them as they were."""
    try:
        tree, old = parse(path, after, type_.body), parse(path, before, type_.body)
    except SyntaxProblem:
        return after  # What is wrong with it is told later; or it was, and is no more.
    kept = [name for name in ("updatedAt", "publishedAt") if name in tree and same(tree[name], old.get(name))]
    changes: Values = {name: Plain(now) for name in kept}
    return change_text(path, after, type_.body, changes) if changes else after
