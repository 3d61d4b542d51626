"""Permission checks for reading drafts (spec.md 7.3)."""

from server.auth.permissions import Actor, forbidden, may_find, permission_subject, require, require_source
from server.documents.path_rules import PathClaim
from server.errors import ForbiddenError
from server.schema.model import Schema, Type

# Values of `publicationFilter` whose results depend on drafts. They require the permission `readDraft`.
DRAFT_REVEALING_FILTERS = ("modified", "unmodified")


def may_read_drafts(actor: Actor, type_: Type) -> bool:
    return type_.draft_publish and has_draft_permission(actor, type_.uid)


def has_draft_permission(actor: Actor, uid: str) -> bool:
    # This also works for a content type that has no drafts or has been deleted.
    return actor.may(permission_subject(uid), "readDraft")


def may_see_all(actor: Actor, type_: Type) -> bool:
    return may_find(actor, type_.uid) and (not type_.draft_publish or may_read_drafts(actor, type_))


def may_see_file(actor: Actor, claim: PathClaim) -> bool:
    # With `options.draftWhen`, only the content says whether a file is a draft, so `readDraft` is needed for
    # all of the type's files.
    drafted = claim.draft or (claim.type.draft_key is not None and claim.type.draft_publish)
    return may_find(actor, claim.type.uid) and (not drafted or may_read_drafts(actor, claim.type))


def require_document_source(actor: Actor, type_: Type, schema: Schema, *, draft: bool) -> None:
    """Raise ForbiddenError if the actor may not read the source files of a content type.

    If `draft` is set, the actor must also be allowed to read drafts.
    """
    # With `options.draftWhen` (`draft_key`), any file can contain a draft.
    require_source(actor, "read", schema)
    require(actor, type_, "find" if type_.kind == "singleType" else "findOne")
    if (draft or type_.draft_key) and type_.draft_publish and not may_read_drafts(actor, type_):
        raise forbidden(actor, type_.singular, "readDraft")


def may_read_source_of(actor: Actor, type_: Type, schema: Schema, *, draft: bool) -> bool:
    try:
        require_document_source(actor, type_, schema, draft=draft)
    except ForbiddenError:
        return False
    return True
