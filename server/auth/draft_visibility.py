"""Checks whether an actor may read drafts (spec.md 7.3)."""

from server.auth.permissions import Actor, may_find, require, require_source, subject_of
from server.documents.path_rules import Claim
from server.errors import ForbiddenError
from server.schema.model import Schema, Type

# Values of `publicationFilter` whose results depend on drafts. They require the permission `readDraft`.
DRAFT_REVEALING_FILTERS = ("modified", "unmodified")


def may_read_drafts(actor: Actor, type_: Type) -> bool:
    """Whether a content type has drafts and the actor may read these drafts."""
    return type_.draft_publish and has_draft_permission(actor, type_.uid)


def has_draft_permission(actor: Actor, uid: str) -> bool:
    """Whether the actor has the permission `readDraft` for a content type, even if the content type has no
    drafts or has been deleted.
    """
    return actor.may(subject_of(uid), "readDraft")


def may_see_all(actor: Actor, type_: Type) -> bool:
    """Whether the actor may read all documents of a content type, including drafts."""
    return may_find(actor, type_.uid) and (not type_.draft_publish or may_read_drafts(actor, type_))


def may_see_file(actor: Actor, claim: Claim) -> bool:
    """Whether the actor may see a document's file. The actor needs the permission `find` for the document's
    content type. If the file may contain a draft, the actor also needs `readDraft`.

    If the content type uses `options.draftWhen`, the content of a file determines whether it is a draft. In
    this case, the actor needs `readDraft` for all the type's files, because the content is not checked here.
    """
    drafted = claim.draft or (claim.type.draft_key is not None and claim.type.draft_publish)
    return may_find(actor, claim.type.uid) and (not drafted or may_read_drafts(actor, claim.type))


def require_source_of(actor: Actor, type_: Type, schema: Schema, *, draft: bool) -> None:
    """Raise ForbiddenError if the actor may not read the source files of a content type's documents.

    The actor needs the permission `source.read`, and the permission to read a document of the type. If
    `draft` is set, or the content of a file determines whether it is a draft (`options.draftWhen`), the actor
    also needs `readDraft`.
    """
    require_source(actor, "read", schema)
    require(actor, type_, "find" if type_.kind == "singleType" else "findOne")
    if (draft or type_.draft_key) and type_.draft_publish and not may_read_drafts(actor, type_):
        raise ForbiddenError(actor=actor.name, permission=f"{type_.singular}.readDraft")


def may_read_source_of(actor: Actor, type_: Type, schema: Schema, *, draft: bool) -> bool:
    """Whether the actor may read the source files of a content type's documents."""
    try:
        require_source_of(actor, type_, schema, draft=draft)
    except ForbiddenError:
        return False
    return True
