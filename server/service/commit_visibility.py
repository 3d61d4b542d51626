"""The messages of commits as callers may read them (docs/history.md)."""

from server.auth.draft_visibility import may_see_all, may_see_file
from server.auth.permissions import Actor, may_find
from server.history.versions import Timeline
from server.schema.model import UPLOAD
from server.storage.git.log import Commit
from server.storage.media import SIDECAR_SUFFIX, media_key

NEUTRAL_MESSAGE = "Changed documents"
_DOCUMENT = "Bifolio-Document: "


def message_for(actor: Actor, commit: Commit, timeline: Timeline) -> str:
    """Return the message of a commit if the actor may see all that the commit changed.

    Otherwise return a neutral one: whoever wrote the message, it may name what the actor may not see. Of the
    trailers, those stay that name documents and media which the actor may see.
    """
    if actor.everything or _sees_all(actor, commit, timeline):
        return commit.message
    seen = _names(actor, commit, timeline) if _DOCUMENT in commit.message else ()
    trailers = [
        line
        for line in commit.message.splitlines()
        if line.startswith(_DOCUMENT) and line.removeprefix(_DOCUMENT) in seen
    ]
    return "\n".join((NEUTRAL_MESSAGE, "", *trailers)) if trailers else NEUTRAL_MESSAGE


def _sees_all(actor: Actor, commit: Commit, timeline: Timeline) -> bool:
    if len(commit.parents) > 1:  # Its message tells of all that was merged, its files only of conflicts.
        types = timeline.schema.content_types
        return may_find(actor, UPLOAD) and all(may_see_all(actor, type_) for type_ in types)
    subjects = timeline.subjects(commit)
    if subjects.others or (subjects.media and not may_find(actor, UPLOAD)):
        return False
    return all(may_see_file(actor, claim) for claim in subjects.claims)


def _names(actor: Actor, commit: Commit, timeline: Timeline) -> set[str]:
    """Return what trailers call the documents and media of a commit that an actor may see."""
    names = set()
    for change in commit.changes:
        claim = timeline.claims.get(change.path)
        if claim is not None and may_see_file(actor, claim):
            names.add(f"{claim.type.singular}/{claim.document_id}")
        elif claim is None and may_find(actor, UPLOAD) and (inside := media_key(change.path)):
            names.add(f"upload/{inside.removesuffix(SIDECAR_SUFFIX)}")
    return names
