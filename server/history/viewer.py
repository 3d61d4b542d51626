"""Visibility of values in earlier versions of documents."""

from dataclasses import dataclass
from typing import Any

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import Actor, may_find
from server.documents.document import PUBLISHED
from server.schema.model import Attribute, Type
from server.site.site import State


@dataclass(frozen=True, slots=True)
class Viewer:
    """An actor that views earlier versions; `state` determines which documents are drafts."""

    actor: Actor
    state: State

    def attributes(self, type_: Type) -> list[Attribute]:
        """Return the attributes of a type whose history is visible."""
        return [attribute for attribute in type_.attributes.values() if self.sees(attribute)]

    def sees(self, attribute: Attribute) -> bool:
        """Return whether the history of an attribute is visible.

        Private attributes, passwords, derived relations and relations to types that the actor may not find
        are not.
        """
        if attribute.private or attribute.derived or attribute.type == "password":
            return False
        return attribute.type != "relation" or not attribute.target or may_find(self.actor, attribute.target)

    def related(self, attribute: Attribute, targets: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the visible targets of a relation.

        Unpublished ones are visible only to actors that may read drafts.
        """
        if attribute.type != "relation":
            return targets
        return tuple(
            t for t in targets if self._may_name(*(t if isinstance(t, tuple) else (attribute.target, t)))
        )

    def _may_name(self, uid: str, document_id: str) -> bool:
        type_ = self.state.schema.types.get(uid)
        if type_ is None or not may_find(self.actor, uid):
            return False
        if not type_.draft_publish or may_read_drafts(self.actor, type_):
            return True
        settings, claims = self.state.settings, self.state.snapshot.claims
        locales = (settings.locales.default, *settings.locales.available)
        return any((uid, document_id, locale, PUBLISHED) in claims for locale in locales)
