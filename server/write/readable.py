"""Checks that keep a write from revealing values that its author may not read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from server.auth.draft_visibility import may_see_all
from server.auth.permissions import Actor
from server.schema.model import Attribute, Schema, Type


@dataclass(frozen=True, slots=True)
class ReadAccess:
    """The read permissions of a write's author.

    - `private_values`: whether the author may read private values
    - `all_versions`: whether the author may read all versions that the write changes
    """

    actor: Actor
    schema: Schema
    private_values: bool
    all_versions: bool = True

    def guesses(self, type_: Type, names: Iterable[str]) -> frozenset[str]:
        found = (name for name in names if name in type_.attributes)
        return frozenset(name for name in found if not self.covers(type_, [name]))

    def covers(self, type_: Type, names: Iterable[str]) -> bool:
        # This includes the attributes of components and the targets of relations.
        return self.all_versions and self._covers(type_.attributes, names, frozenset())

    def covers_target(self, type_: Type) -> bool:
        return may_see_all(self.actor, type_)

    def _covers(
        self, attributes: Mapping[str, Attribute], names: Iterable[str], outer: frozenset[str]
    ) -> bool:
        found = (attributes[name] for name in names if name in attributes)
        return all(self._covers_attribute(attribute, outer) for attribute in found)

    def _covers_attribute(self, attribute: Attribute, outer: frozenset[str]) -> bool:
        # `outer` stops the recursion, because a component can contain itself.
        if not self.private_values and not attribute.visible:
            return False
        if attribute.type == "relation":
            return all(map(self.covers_target, self._targets(attribute))) and self._covers_owner(attribute)
        components = {*attribute.component_uids} - outer
        return all(
            self._covers(attributes, attributes, outer | components)
            for attributes in (self.schema.types[uid].attributes for uid in components)
        )

    def _targets(self, attribute: Attribute) -> Iterable[Type]:
        if attribute.polymorphic:
            return self.schema.content_types
        return filter(None, [self.schema.types.get(attribute.target or "")])

    def _covers_owner(self, attribute: Attribute) -> bool:
        owner = self.schema.types.get(attribute.target or "")
        owning = owner.attributes.get(attribute.mapped_by or "") if owner else None
        return self.private_values or owning is None or owning.visible
