"""Permissions of operations: predicates of an actor, the schema, and the content type of the path.

They decide who may use an operation at all. The handler checks what the request needs beyond that.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from server.auth.permissions import SITE_SUBJECTS, Actor, may_draft, may_of_site, may_write
from server.errors import ForbiddenError
from server.events.presence import PUBLIC_ACTOR, types_to_attend
from server.events.reading import subjects_of
from server.schema.model import Schema, Type

Permission = Callable[[Actor, Schema, Type | None], bool]


@dataclass(frozen=True, slots=True)
class May:
    """Permission for several actions on one subject."""

    subject: str
    actions: tuple[str, ...]

    def __call__(self, actor: Actor, schema: Schema, type_: Type | None) -> bool:
        """Return whether an actor may do all of the actions."""
        if self.subject in SITE_SUBJECTS:
            return all(may_of_site(actor, self.subject, action, schema) for action in self.actions)
        return all(actor.may(self.subject, action) for action in self.actions)


def may(subject: str, *actions: str) -> May:
    """Return the permission for several actions on one subject."""
    return May(subject, actions)


@dataclass(frozen=True, slots=True)
class MayOfType:
    """Permission for an action on the content type of the path.

    With `drafts`, permission for its drafts is enough. With `needs_drafts`, the type must have drafts.
    """

    action: str
    drafts: bool = True
    needs_drafts: bool = False

    def __call__(self, actor: Actor, schema: Schema, type_: Type | None) -> bool:
        """Return whether an actor may do the action on a type."""
        if type_ is None or (self.needs_drafts and not type_.draft_publish):
            return False
        may_all = actor.may(type_.singular, self.action)
        return may_all or (self.drafts and may_draft(actor, type_, self.action))


def anyone(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    """Return True: anyone may use the operation."""
    return True


def may_write_any(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    """Return whether an actor may write documents of some type."""
    return may_write(actor, schema.content_types)


def may_undo(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    """Return whether an actor other than the public may write documents of some type."""
    return actor.name != PUBLIC_ACTOR and may_write(actor, schema.content_types)


def may_find_any(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    """Return whether an actor may find documents of some type."""
    return any(actor.may(each.singular, "find") for each in schema.content_types)


def may_read_events(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    """Return whether an actor may find any documents or files that events are about."""
    with suppress(ForbiddenError):
        return bool(subjects_of(actor, schema))
    return False


def may_attend_any(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    """Return whether an actor may see the presence at documents of some type."""
    with suppress(ForbiddenError):
        return bool(types_to_attend(actor, schema))
    return False
