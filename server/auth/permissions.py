"""Actors and their permission checks."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from server.errors import ForbiddenError
from server.schema.model import Schema, Type

TOKEN_PREFIX = "bifolio_"  # Every API token begins with this prefix.
WRITE_ACTIONS = ("create", "update", "delete", "updateDraft")
# The permission `updateDraft` allows these actions if they change only a draft.
DRAFT_ACTIONS = ("create", "update")
READ_ACTIONS = ("find", "findOne", "readDraft")
# Subjects that are not content types. A content type can have the same name (see `may_of_site`).
SITE_SUBJECTS = BRANCH, SOURCE, PROBLEMS, REDIRECTS, SETTINGS = (
    "branch", "source", "problems", "redirects", "settings",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Actor:
    """The sender of a request, with permissions such as `article.find`.

    - `everything`: whether the actor has all permissions.
    - `reading`: whether the actor has permission for all READ_ACTIONS.
    - `branch_only`: whether the actor may write only to branches other than the served one.
    """

    name: str
    permissions: frozenset[str] = frozenset()
    everything: bool = False
    reading: bool = False
    user_id: int | None = None
    branch_only: bool = False

    def may(self, subject: str, action: str) -> bool:
        if self.everything or (self.reading and action in READ_ACTIONS):
            return True
        return f"{subject}.{action}" in self.permissions


def require(actor: Actor, type_: Type, action: str) -> None:
    if not actor.may(type_.singular, action):
        raise ForbiddenError(actor=actor.name, permission=f"{type_.singular}.{action}")


def may_draft(actor: Actor, type_: Type, action: str) -> bool:
    return type_.draft_publish and action in DRAFT_ACTIONS and actor.may(type_.singular, "updateDraft")


def may_write(actor: Actor, types: Iterable[Type]) -> bool:
    return any(actor.may(type_.singular, action) for type_ in types for action in WRITE_ACTIONS)


def may_find(actor: Actor, uid: str) -> bool:
    return actor.may(subject_of(uid), "find")


def may_branch(actor: Actor, action: str, schema: Schema) -> bool:
    return may_of_site(actor, BRANCH, action, schema)


def may_source(actor: Actor, action: str, schema: Schema) -> bool:
    # This does not check the permissions for the documents in the source files.
    return may_of_site(actor, SOURCE, action, schema)


def may_of_site(actor: Actor, subject: str, action: str, schema: Schema) -> bool:
    """Return whether the actor is allowed to perform an action on a subject that is not a content type."""
    # If a content type has the same name, permissions such as `branch.find` refer only to that content type.
    if subject in schema.subjects and not (actor.everything or actor.reading):
        return False
    return actor.may(subject, action)


def require_of_site(actor: Actor, subject: str, action: str, schema: Schema) -> None:
    if not may_of_site(actor, subject, action, schema):
        raise ForbiddenError(actor=actor.name, permission=f"{subject}.{action}")


def require_branch(actor: Actor, action: str, schema: Schema) -> None:
    require_of_site(actor, BRANCH, action, schema)


def require_source(actor: Actor, action: str, schema: Schema) -> None:
    require_of_site(actor, SOURCE, action, schema)


# The cache saves 0.3 of the 2.9 µs that sending an event to one stream takes.
@lru_cache(maxsize=512)
def subject_of(uid: str) -> str:
    """Return the name that permissions use for a content type, such as `article` or `upload`."""
    plugin, _, name = uid.partition("::")
    return "upload" if uid.startswith("plugin::upload") else name.rpartition(".")[2] or plugin
