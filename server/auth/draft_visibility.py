"""Who may see drafts, and what is shown to whoever may not (spec.md 7.3)."""

from server.auth.permissions import Actor, may_find, subject_of
from server.documents.path_rules import Claim
from server.schema.model import Type

# The answer to these publication filters tells what a draft holds, so that it takes readDraft.
DRAFT_REVEALING_FILTERS = ("modified", "unmodified")


def may_read_drafts(actor: Actor, type_: Type) -> bool:
    """Whether there are drafts of a type, and the actor may see them."""
    return type_.draft_publish and has_draft_permission(actor, type_.uid)


def has_draft_permission(actor: Actor, uid: str) -> bool:
    """Whether the actor has `readDraft` for a type, which may have no drafts or be gone."""
    return actor.may(subject_of(uid), "readDraft")


def may_see_all(actor: Actor, type_: Type) -> bool:
    """Whether the actor may see all documents of a type, drafts too."""
    return may_find(actor, type_.uid) and (not type_.draft_publish or may_read_drafts(actor, type_))


def may_see_file(actor: Actor, claim: Claim) -> bool:
    """Whether the actor may see a file: it may find the type, and read drafts if the file may hold one.

    In some types, only what a file says tells whether it is a draft.
    """
    drafted = claim.draft or (claim.type.draft_key is not None and claim.type.draft_publish)
    return may_find(actor, claim.type.uid) and (not drafted or may_read_drafts(actor, claim.type))
