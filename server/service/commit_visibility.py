"""Filter for commit messages that could mention hidden content (docs/history.md)."""

from collections.abc import Collection

from server.auth.draft_visibility import may_see_all, may_see_file
from server.auth.permissions import Actor, may_find
from server.history.versions import Timeline
from server.schema.model import UPLOAD
from server.service.change_visibility import ChangeFilter
from server.storage.git.log import Commit
from server.storage.media import SIDECAR_SUFFIX, media_key

NEUTRAL_MESSAGE = "Changed documents"
_DOCUMENT = "Bifolio-Document: "


def visible_message(
    commit: Commit, timeline: Timeline, changes: ChangeFilter, hidden_paths: Collection[str] = ()
) -> str:
    """Return a commit's message, or a neutral message if the original could mention hidden content.

    `hidden_paths` contains the files whose changes are all hidden from the actor.
    """
    actor = changes.actor
    if actor.everything or (
        not hidden_paths and _sees_all(actor, commit, timeline) and changes.sees_all(commit)
    ):
        return commit.message
    visible_names = (
        _visible_names(commit, timeline, changes, hidden_paths) if _DOCUMENT in commit.message else ()
    )
    trailers = [
        line
        for line in commit.message.splitlines()
        if line.startswith(_DOCUMENT) and line.removeprefix(_DOCUMENT) in visible_names
    ]
    return "\n".join((NEUTRAL_MESSAGE, "", *trailers)) if trailers else NEUTRAL_MESSAGE


def _sees_all(actor: Actor, commit: Commit, timeline: Timeline) -> bool:
    # The message of a merge can mention any merged file, but git lists only the files that had conflicts.
    if len(commit.parents) > 1:
        types = timeline.schema.content_types
        return may_find(actor, UPLOAD) and all(may_see_all(actor, type_) for type_ in types)
    subjects = timeline.subjects(commit)
    if subjects.other_files or (subjects.media and not may_find(actor, UPLOAD)):
        return False
    return all(may_see_file(actor, claim) for claim in subjects.claims)


def _visible_names(
    commit: Commit, timeline: Timeline, changes: ChangeFilter, hidden_paths: Collection[str]
) -> set[str]:
    names = set()
    for change in commit.changes:
        claim, seen = timeline.claims.get(change.path), changes.visible_part(commit, change)
        if change.path in hidden_paths:
            continue
        if claim is not None and seen is not None and seen.path == change.path:
            names.add(f"{claim.type.singular}/{claim.document_id}")
        elif claim is None and may_find(changes.actor, UPLOAD) and (key := media_key(change.path)):
            names.add(f"upload/{key.removesuffix(SIDECAR_SUFFIX)}")
    return names
