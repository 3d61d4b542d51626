"""Changes to draft and published versions.

Publishing a change also publishes the existing draft, unless the author may not read the draft.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from server.documents.document import Document
from server.documents.file_keys import draft_key_value, is_draft, published_value
from server.documents.values import same_values
from server.formats.edits import REMOVE
from server.write.context import Context, Values
from server.write.write_timestamps import (
    timestamp_of_change,
    timestamps_of_new_draft,
    timestamps_of_publishing,
)


@dataclass(frozen=True, slots=True)
class AffectedVersions:
    """The document versions that a change affects. `hidden_draft` is a draft that the author may not read."""

    published: Document | None
    draft: Document | None
    hidden_draft: Document | None = None

    @property
    def base(self) -> Document | None:
        # None if there is only a hidden draft.
        return self.draft or self.published


def plan_merge(
    published: Document | None, draft: Document | None, *, of_draft: bool, hides_drafts: bool
) -> AffectedVersions:
    # Authors who can't see the draft must not publish its changes.
    if hides_drafts and not of_draft:
        return AffectedVersions(published, None, draft)
    return AffectedVersions(published, draft)


def write_draft(
    context: Context,
    published: Document | None,
    draft: Document | None,
    new: Values,
    *,
    even_if_unchanged: bool = False,
    rewritten_names: Iterable[str] = (),
) -> None:
    """Write new values to a document's draft, and create the draft if it does not exist.

    The attributes in `rewritten_names` are written even if their values are unchanged.
    """
    base = draft or published
    changes = context.changed_keys(base, new, rewritten_names) if base else {}
    if base is None:
        return
    if not (changes or even_if_unchanged):
        context.require_valid_file(base.path)
        _rely_on(context, published, draft)
        return
    if draft is None:
        changes |= {**timestamps_of_new_draft(context, base), **draft_key_value(base.type)}
    else:
        changes |= timestamp_of_change(context, base)
    text = context.text_with_changes(base, changes)
    path = draft.path if draft else context.sibling(base.path, draft=True)
    context.replace_file(path, text, draft, published)


def write_published(
    context: Context,
    published: Document | None,
    draft: Document | None,
    new: Values,
    *,
    even_if_unchanged: bool = False,
    rewritten_names: Iterable[str] = (),
) -> None:
    """Publish new values of a document. If there is a draft, its file replaces the published file.

    The attributes in `rewritten_names` are written even if their values are unchanged.
    """
    base = draft or published
    changes = context.changed_keys(base, new, rewritten_names) if base else {}
    if base is None:
        return
    if published and draft:
        context.require_valid_file(published.path)
    if not (changes or draft or even_if_unchanged):
        context.require_valid_file(base.path)
        _rely_on(context, published)
        return
    timestamps = timestamps_of_publishing(context, base, published)
    text = context.text_with_changes(base, {**changes, **timestamps, **_no_draft_mark(context, base)})
    target = context.sibling(base.path, draft=False) if draft else base.path
    if published and PurePosixPath(published.path).suffix == PurePosixPath(base.path).suffix:
        target = published.path
    elif published:
        context.remove(published)
    context.replace_file(target, text, published, draft)
    if draft and draft.path != target:
        context.remove_after_move(draft)


def _rely_on(context: Context, *versions: Document | None) -> None:
    # If one of these files turns out to have been edited by hand since it was read, the change is prepared
    # again.
    for document in versions:
        if document is not None:
            context.changeset.rely_on(document.path)


def _no_draft_mark(context: Context, document: Document) -> Values:
    key = document.type.draft_key
    if key is None or not is_draft(document.type, context.tree(document)):
        return {}
    published = published_value(key)
    return {key.name: REMOVE if published is None else published}


def drop_equal_draft(
    context: Context, published: Document, draft: Document | None, live: Values, edited: Values
) -> bool:
    if draft is None or not same_values(live, edited):
        return False
    if draft.path != published.path:
        context.remove_other(draft)
    return True
