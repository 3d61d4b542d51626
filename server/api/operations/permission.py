"""Who may use an operation: predicates of an actor, the schema, and the content type of the path.

Each says who may use it at all. What a request asks for may take more, which its handler checks.
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
    """Allow everybody."""
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
    """Return whether an actor may find some documents or files, which events are about."""
    with suppress(ForbiddenError):
        return bool(subjects_of(actor, schema))
    return False


def may_attend_any(actor: Actor, schema: Schema, type_: Type | None) -> bool:
    """Return whether an actor may see who is present at documents of some type."""
    with suppress(ForbiddenError):
        return bool(types_to_attend(actor, schema))
    return False
