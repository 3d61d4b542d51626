"""Actors and their permissions."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from server.errors import ForbiddenError
from server.schema.model import Schema, Type

TOKEN_PREFIX = "bifolio_"  # Prefix of every API token.
WRITE_ACTIONS = ("create", "update", "delete", "updateDraft")
DRAFT_ACTIONS = ("create", "update")  # `updateDraft` allows these actions if only a draft is written.
READ_ACTIONS = ("find", "findOne", "readDraft")
# Permission subjects other than content types. A content type may have the same name.
SITE_SUBJECTS = BRANCH, SOURCE, PROBLEMS = "branch", "source", "problems"


@dataclass(frozen=True, slots=True)
class Actor:
    """The sender of a request, with permissions such as `article.find`.

    `everything` grants all permissions. `reading` grants all READ_ACTIONS.
    """

    name: str
    permissions: frozenset[str] = frozenset()
    everything: bool = False
    reading: bool = False
    user_id: int | None = None

    def may(self, subject: str, action: str) -> bool:
        """Whether the actor may perform an action, such as `find`, on a subject, such as `article`."""
        if self.everything or (self.reading and action in READ_ACTIONS):
            return True
        return f"{subject}.{action}" in self.permissions


def require(actor: Actor, type_: Type, action: str) -> None:
    """Raise ForbiddenError if the actor may not perform an action on a type."""
    if not actor.may(type_.singular, action):
        raise ForbiddenError(actor=actor.name, permission=f"{type_.singular}.{action}")


def may_draft(actor: Actor, type_: Type, action: str) -> bool:
    """Whether the permission `updateDraft` allows the actor an action on a type. It only allows actions that
    change nothing but a draft.
    """
    return type_.draft_publish and action in DRAFT_ACTIONS and actor.may(type_.singular, "updateDraft")


def may_write(actor: Actor, types: Iterable[Type]) -> bool:
    """Whether the actor has any write permission for any of the types."""
    return any(actor.may(type_.singular, action) for type_ in types for action in WRITE_ACTIONS)


def may_find(actor: Actor, uid: str) -> bool:
    """Whether the actor may find documents of the type with this uid."""
    return actor.may(subject_of(uid), "find")


def may_branch(actor: Actor, action: str, schema: Schema) -> bool:
    """Whether the actor may perform an action on branches."""
    return may_of_site(actor, BRANCH, action, schema)


def may_source(actor: Actor, action: str, schema: Schema) -> bool:
    """Whether the actor may perform an action on source files.

    The actor also needs the permissions for the documents in these files.
    """
    return may_of_site(actor, SOURCE, action, schema)


def may_of_site(actor: Actor, subject: str, action: str, schema: Schema) -> bool:
    """Whether the actor may perform an action on a subject that is not a content type, such as `branch`.

    If a content type has the same name as the subject, permissions with this name apply only to the content
    type.
    """
    if subject in schema.subjects and not (actor.everything or actor.reading):
        return False
    return actor.may(subject, action)


def require_of_site(actor: Actor, subject: str, action: str, schema: Schema) -> None:
    """Raise ForbiddenError unless `may_of_site` allows the action."""
    if not may_of_site(actor, subject, action, schema):
        raise ForbiddenError(actor=actor.name, permission=f"{subject}.{action}")


def require_branch(actor: Actor, action: str, schema: Schema) -> None:
    """Raise ForbiddenError if the actor may not perform an action on branches."""
    require_of_site(actor, BRANCH, action, schema)


def require_source(actor: Actor, action: str, schema: Schema) -> None:
    """Raise ForbiddenError if the actor may not perform an action on source files."""
    require_of_site(actor, SOURCE, action, schema)


# Saves 0.3 µs of the 2.9 µs for sending an event to one stream.
@lru_cache(maxsize=512)
def subject_of(uid: str) -> str:
    """Return the name that permissions use for a type, such as `article` for `api::article.article` or
    `upload` for media.
    """
    plugin, _, name = uid.partition("::")
    return "upload" if uid.startswith("plugin::upload") else name.rpartition(".")[2] or plugin
