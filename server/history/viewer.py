"""Rules that determine which values an actor may see in earlier versions of documents."""

from dataclasses import dataclass, replace
from typing import Any

from server.auth.draft_visibility import may_read_drafts, may_see_all
from server.auth.permissions import Actor, may_find
from server.documents.document import PUBLISHED
from server.schema.model import Attribute, Schema, Type
from server.site.site import State


@dataclass(frozen=True, slots=True)
class Viewer:
    """An actor who views earlier versions of documents.

    Attributes that are private in one of the `other_schemas` are hidden from the actor too.
    """

    actor: Actor
    state: State
    other_schemas: tuple[Schema, ...] = ()

    def also_hiding(self, *schemas: Schema | None) -> "Viewer":
        known = {id(schema) for schema in (self.state.schema, *self.other_schemas)}
        new = {id(one): one for one in schemas if one is not None and id(one) not in known}
        return replace(self, other_schemas=(*self.other_schemas, *new.values())) if new else self

    def attributes(self, type_: Type) -> list[Attribute]:
        return [attribute for attribute in type_.attributes.values() if self.sees(type_, attribute)]

    def sees(self, type_: Type, attribute: Attribute) -> bool:
        if attribute.derived or self.is_hidden_elsewhere(type_, attribute):
            return False
        return self._may_show(attribute)

    def _may_show(self, attribute: Attribute) -> bool:
        leads_to = attribute.target if attribute.type == "relation" else None
        return attribute.visible and (not leads_to or may_find(self.actor, leads_to))

    def may_see_key(self, type_: Type, path: str) -> bool:
        """Return whether the actor may see the key at `path`, such as `code` or, in a component, `box.code`.

        The key must be visible in each of the schemas.
        """
        return all(
            self._may_see_key(schema, type_.uid, path.split("."))
            for schema in (self.state.schema, *self.other_schemas)
        )

    def _may_see_key(self, schema: Schema, uid: str, keys: list[str]) -> bool:
        type_ = schema.types.get(uid)
        attribute = type_.attributes.get(keys[0]) if type_ else None
        if attribute is None or not self._may_show(attribute):
            return attribute is None
        components = attribute.component_uids if keys[1:] else ()
        return all(self._may_see_key(schema, component, keys[1:]) for component in components)

    def may_hide_values(self, type_: Type) -> bool:
        return any(
            self._may_miss(schema, type_.uid, set()) for schema in (self.state.schema, *self.other_schemas)
        )

    def _may_miss(self, schema: Schema, uid: str, seen: set[str]) -> bool:
        type_ = schema.types.get(uid)
        if type_ is None or uid in seen:
            return False
        seen.add(uid)
        for attribute in type_.attributes.values():
            target = schema.types.get(attribute.target or "")
            if attribute.derived:
                continue
            if attribute.type == "relation" and not (target and may_see_all(self.actor, target)):
                return True
            if not attribute.visible:
                return True
            if any(self._may_miss(schema, component, seen) for component in attribute.component_uids):
                return True
        return False

    def is_hidden_elsewhere(self, type_: Type, attribute: Attribute) -> bool:
        types = (schema.types.get(type_.uid) for schema in self.other_schemas)
        found = (one.attributes.get(attribute.name) for one in types if one)
        return any(one and not one.visible for one in found)

    def visible_targets(self, attribute: Attribute, targets: tuple[Any, ...]) -> tuple[Any, ...]:
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
