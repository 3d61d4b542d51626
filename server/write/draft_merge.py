"""Draft merge: how a change affects the draft and the published version of a document in a locale.

- Normally, a change that publishes starts from the draft, if there is one. The draft's changes are published
  too, and the draft's file becomes the published file.
- An author without permission to read drafts must not publish a draft's changes. Such an author's change
  starts from the published version, and is applied to the draft separately.
- A change to a draft starts from the draft. If there is no draft, it starts from the published version and
  creates a draft.
- If a draft becomes identical to the published version, the draft is removed.

`documents.three_way_merge` merges two changes to the same attribute.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath

from server.documents.document import Document
from server.documents.file_keys import draft_mark, is_draft, published_value
from server.documents.values import same_values
from server.formats.edits import REMOVE
from server.write.context import Context, Values
from server.write.write_timestamps import (
    timestamp_of_change,
    timestamps_of_new_draft,
    timestamps_of_publishing,
)


@dataclass(frozen=True, slots=True)
class DraftMerge:
    """The versions of a document in a locale to which a change is applied.

    `draft` is the draft that the change edits or publishes. `hidden_draft` is a draft that the author of the
    change is not permitted to read, so the change must not publish it.
    """

    published: Document | None
    draft: Document | None
    hidden_draft: Document | None = None

    @property
    def base(self) -> Document | None:
        """Return the version from which the change starts. Return None if there is only a hidden draft."""
        return self.draft or self.published


def plan_merge(
    published: Document | None, draft: Document | None, *, of_draft: bool, blind: bool
) -> DraftMerge:
    """Return the versions to which a change is applied.

    `published` and `draft` are the existing versions. `of_draft` is set if the change writes a draft and
    publishes nothing. `blind` is set if the author of the change is not permitted to read drafts.
    """
    if blind and not of_draft:
        return DraftMerge(published, None, draft)
    return DraftMerge(published, draft)


def write_draft(
    context: Context,
    published: Document | None,
    draft: Document | None,
    new: Values,
    *,
    always: bool = False,
) -> None:
    """Write new values to the file of the draft. If there is no such file, it is created. If the values have
    not changed, nothing is written.

    If `always` is set, unchanged values are written too, with a new updatedAt.
    """
    base = draft or published
    changes = context.changes(base, new) if base else {}
    if base is None:
        return
    if not (changes or always):
        _rely_on(context, published, draft)
        return
    if draft is None:
        changes |= {**timestamps_of_new_draft(context, base), **draft_mark(base.type)}
    else:
        changes |= timestamp_of_change(context, base)
    text = context.changed(base, changes)
    path = draft.path if draft else context.sibling(base.path, draft=True)
    context.replace(path, text, draft, published)


def write_published(
    context: Context,
    published: Document | None,
    draft: Document | None,
    new: Values,
    *,
    always: bool = False,
) -> None:
    """Publish new values. If there is a draft, its file becomes the published file. If there is no draft and
    the values have not changed, nothing is written.

    If `always` is set, unchanged values are written too, with a new updatedAt.
    """
    base = draft or published
    changes = context.changes(base, new) if base else {}
    if base is None:
        return
    if not (changes or draft or always):
        _rely_on(context, published)
        return
    timestamps = timestamps_of_publishing(context, base, published)
    text = context.changed(base, {**changes, **timestamps, **_no_draft_mark(context, base)})
    target = context.sibling(base.path, draft=False) if draft else base.path
    if published and PurePosixPath(published.path).suffix == PurePosixPath(base.path).suffix:
        target = published.path
    elif published:
        context.remove(published)
    context.replace(target, text, published, draft)
    if draft and draft.path != target:
        context.remove(draft)


def _rely_on(context: Context, *versions: Document | None) -> None:
    """Record that nothing is written because the files of these versions already contain the new values.

    The change is prepared again if one of the files turns out to have been edited by hand in the meantime.
    """
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
    """Delete the draft's file if the draft is identical to the published version. Return whether it was
    identical.

    `edited` contains the values of the draft, and `live` contains the published values.
    """
    if draft is None or not same_values(live, edited):
        return False
    if draft.path != published.path:
        context.remove_other(draft)
    return True
