"""Permission checks for operations. Handlers can check additional permissions."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from server.auth.permissions import (
    BRANCH,
    CONTENT_TYPE,
    PROBLEMS,
    SITE_SUBJECTS,
    Actor,
    has_site_permission,
    may_draft,
    may_write,
)
from server.errors import ForbiddenError
from server.events.presence import PUBLIC_ACTOR, types_with_presence
from server.events.reading import findable_subjects
from server.schema.model import Schema, Type

Permission = Callable[[Actor, Schema, Type | None], bool]


@dataclass(frozen=True, slots=True)
class PermissionCheck:
    """Check that an actor has the permissions for all `actions` on a subject."""

    subject: str
    actions: tuple[str, ...]

    def __call__(self, actor: Actor, schema: Schema, type_: Type | None) -> bool:
        if self.subject in SITE_SUBJECTS:
            return all(has_site_permission(actor, self.subject, action, schema) for action in self.actions)
        return all(actor.may(self.subject, action) for action in self.actions)


def may(subject: str, *actions: str) -> PermissionCheck:
    return PermissionCheck(subject, actions)


@dataclass(frozen=True, slots=True)
class TypePermissionCheck:
    """Check that an actor has the permission for an action on the content type in the path.

    - `drafts`: whether a permission that covers only drafts is sufficient.
    - `needs_drafts`: whether the check fails for content types without drafts.
    """

    action: str
    drafts: bool = True
    needs_drafts: bool = False

    def __call__(self, actor: Actor, schema: Schema, type_: Type | None) -> bool:
        if type_ is None or (self.needs_drafts and not type_.draft_publish):
            return False
        may_all = actor.may(type_.singular, self.action)
        return may_all or (self.drafts and may_draft(actor, type_, self.action))


def anyone(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    return True


def may_write_any(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    return may_write(actor, schema.content_types)


def may_check_branches(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    return may(BRANCH, "find")(actor, schema, type_) and may(PROBLEMS, "find")(actor, schema, type_)


def may_send_files(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    return may_write_any(actor, schema, type_) or actor.may("upload", "upload")


def may_undo(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    may = may_write(actor, schema.content_types) or actor.may("upload", "upload")
    may = may or actor.may(CONTENT_TYPE, "write")
    return actor.name != PUBLIC_ACTOR and may


def may_find_any(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    return any(actor.may(each.singular, "find") for each in schema.content_types)


def may_read_events(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    with suppress(ForbiddenError):
        return bool(findable_subjects(actor, schema))
    return False


def may_see_presence(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    with suppress(ForbiddenError):
        return bool(types_with_presence(actor, schema))
    return False
