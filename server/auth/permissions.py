"""Actors (identities with permissions), and checks of whether an actor may do an action."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from server.errors import ForbiddenError
from server.schema.model import Schema, Type

TOKEN_PREFIX = "bifolio_"  # Every API token begins so.
WRITE_ACTIONS = ("create", "update", "delete", "updateDraft")
DRAFT_ACTIONS = ("create", "update")  # `updateDraft` allows these actions if they write only a draft.
READ_ACTIONS = ("find", "findOne", "readDraft")
# Permission subjects that a content type can share its name with.
SITE_SUBJECTS = BRANCH, SOURCE, PROBLEMS = "branch", "source", "problems"


@dataclass(frozen=True, slots=True)
class Actor:
    """Identity of a caller: a role or a token. `everything` and `reading` are sets of permissions."""

    name: str
    permissions: frozenset[str] = frozenset()
    everything: bool = False
    reading: bool = False
    user_id: int | None = None

    def may(self, subject: str, action: str) -> bool:
        """Whether the actor may do an action (`find`) on a subject (`article`)."""
        if self.everything or (self.reading and action in READ_ACTIONS):
            return True
        return f"{subject}.{action}" in self.permissions


def require(actor: Actor, type_: Type, action: str) -> None:
    """Raise ForbiddenError if the actor may not do an action on a type."""
    if not actor.may(type_.singular, action):
        raise ForbiddenError(actor=actor.name, permission=f"{type_.singular}.{action}")


def may_draft(actor: Actor, type_: Type, action: str) -> bool:
    """Whether the actor may do an action on a type if it writes only a draft."""
    return type_.draft_publish and action in DRAFT_ACTIONS and actor.may(type_.singular, "updateDraft")


def may_write(actor: Actor, types: Iterable[Type]) -> bool:
    """Whether the actor may do any write action on any of the types."""
    return any(actor.may(type_.singular, action) for type_ in types for action in WRITE_ACTIONS)


def may_find(actor: Actor, uid: str) -> bool:
    """Whether the actor may find documents of a type, given its uid."""
    return actor.may(subject_of(uid), "find")


def may_branch(actor: Actor, action: str, schema: Schema) -> bool:
    """Whether the actor may do an action on branches."""
    return may_of_site(actor, BRANCH, action, schema)


def may_source(actor: Actor, action: str, schema: Schema) -> bool:
    """Whether the actor may do an action on source files, besides its permissions for the documents."""
    return may_of_site(actor, SOURCE, action, schema)


def may_of_site(actor: Actor, subject: str, action: str, schema: Schema) -> bool:
    """Whether the actor may do an action on a subject that is not a content type.

    If a content type has the same name, a role's permissions count only for the content type.
    """
    if subject in schema.subjects and not (actor.everything or actor.reading):
        return False
    return actor.may(subject, action)


def require_of_site(actor: Actor, subject: str, action: str, schema: Schema) -> None:
    """Raise ForbiddenError if the actor may not do an action on a subject that is not a content type."""
    if not may_of_site(actor, subject, action, schema):
        raise ForbiddenError(actor=actor.name, permission=f"{subject}.{action}")


def require_branch(actor: Actor, action: str, schema: Schema) -> None:
    """Raise ForbiddenError if the actor may not do an action on branches."""
    require_of_site(actor, BRANCH, action, schema)


def require_source(actor: Actor, action: str, schema: Schema) -> None:
    """Raise ForbiddenError if the actor may not do an action on source files."""
    require_of_site(actor, SOURCE, action, schema)


# Saves 0.3 µs of 2.9 of an event to one stream.
@lru_cache(maxsize=512)
def subject_of(uid: str) -> str:
    """Return the permission subject of a type: `api::article.article` → `article`, files → `upload`."""
    plugin, _, name = uid.partition("::")
    return "upload" if uid.startswith("plugin::upload") else name.rpartition(".")[2] or plugin
