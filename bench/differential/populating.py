"""Generator of random `populate` parameters, in all forms that the parameter can have."""

from collections.abc import Mapping
from typing import Any

from bench.differential.filtering import Filters, sort_tree
from bench.differential.model import OWN, Attribute, Attributes, Type, compounds, hidden, scalars
from bench.differential.values import Chance
from bench.differential.world import World

_DEEP = 3


class Populates:
    """Generator of values for the `populate` parameter."""

    def __init__(self, world: World, chance: Chance) -> None:
        self.world, self.chance = world, chance
        self._filters = Filters(world, chance)

    def tree(self, type_: Type) -> Any:
        attributes = dict(type_.attributes)
        if type_.localized:
            attributes["localizations"] = {"type": "relation", "relation": "oneToMany", "target": type_.uid}
        return self._any(attributes, 0)

    def _any(self, attributes: Attributes, deep: int) -> Any:
        names = compounds(attributes)
        roll = self.chance.random()
        if not names or roll < 0.12:
            return "*"
        few = self.chance.sample(names, self.chance.randint(1, min(3, len(names))))
        if roll < 0.25:
            return ",".join(few)
        if roll < 0.5:
            return [self._path(attributes, name, deep) for name in few]
        return {name: self._inside(attributes[name], deep) for name in few}

    def _path(self, attributes: Attributes, name: str, deep: int) -> str:
        inner = self.world.model.inside(attributes[name])
        names = compounds(inner) if inner else []
        if names and deep < _DEEP and self.chance.random() < 0.5:
            return f"{name}.{self._path(inner or {}, self.chance.choice(names), deep + 1)}"
        return name

    def _inside(self, attribute: Attribute, deep: int) -> Any:
        if attribute["type"] == "dynamiczone":
            return self._zone(attribute, deep)
        inner = self.world.model.inside(attribute)
        roll = self.chance.random()
        if inner is None or roll < 0.2:
            return "true"
        made: dict[str, Any] = {}
        if self.chance.random() < 0.35 and scalars(inner):
            made["fields"] = self.fields(inner)
        if self.chance.random() < 0.5 and compounds(inner) and deep < _DEEP:
            made["populate"] = self._any(inner, deep + 1)
        uid = attribute.get("target", attribute.get("component", "media"))
        if attribute["type"] != "component" and self.chance.random() < 0.25:
            made["filters"] = self._filters._one(inner, uid, 1)
        if attribute["type"] != "component" and self.chance.random() < 0.3:
            made["sort"] = sort_tree(self.world, self.chance, inner, 2)
        return made or "true"

    def _zone(self, attribute: Attribute, deep: int) -> Any:
        roll = self.chance.random()
        if roll < 0.2:
            return "true"
        if roll < 0.5:
            return {"populate": "*"}
        kinds = self.chance.sample(
            attribute["components"], self.chance.randint(1, len(attribute["components"]))
        )
        made = {}
        for kind in kinds:
            found = {"type": "component", "component": kind}
            made[kind] = self._inside(found, deep + 1)
        return {"on": made}

    def zones(self, type_: Type) -> list[str]:
        morph = ("morphToOne", "morphToMany")
        return [
            name
            for name, found in type_.attributes.items()
            if found["type"] == "dynamiczone" or found.get("relation") in morph
        ]

    def on_tree(self, type_: Type) -> Any:
        """Return a `populate` parameter with separate options for each kind of item, such as the components
        in a dynamic zone.
        """
        names = self.zones(type_)
        if not names:
            return "*"
        name = self.chance.choice(names)
        kinds = type_.attributes[name].get("components") or sorted(self.world.model.types)
        few = self.chance.sample(kinds, self.chance.randint(1, min(3, len(kinds))))
        made: dict[str, Any] = {"on": {kind: self._on(kind) for kind in few}}
        if self.chance.random() < 0.1:
            made["populate"] = "*"
        return {name: made}

    def _on(self, kind: str) -> Any:
        """Return the options for one component or content type."""
        model = self.world.model
        inner = model.types[kind].attributes if kind in model.types else model.components[kind]
        made: dict[str, Any] = {}
        if self.chance.random() < 0.5 and scalars(inner):
            made["sort"] = sort_tree(self.world, self.chance, inner, 2)
        if self.chance.random() < 0.4 and scalars(inner):
            made["fields"] = self.fields(inner)
        if self.chance.random() < 0.3 and compounds(inner):
            made["populate"] = self._any(inner, 2)
        if self.chance.random() < 0.25:
            made["filters"] = self._filters._one(inner, kind, 2)
        return made or ("true" if self.chance.random() < 0.5 else {"populate": "*"})

    def fields(self, attributes: Attributes) -> Any:
        names = [n for n in (*OWN, *scalars(attributes)) if n in attributes or self.chance.random() < 0.3]
        names = [n for n in names if n != "documentId" or self.chance.random() < 0.3] or ["documentId"]
        few = self.chance.sample(names, self.chance.randint(1, min(4, len(names))))
        return few if self.chance.random() < 0.6 else ",".join(few)


def deep_populate(components: Mapping[str, Attributes], attributes: Attributes, deep: int = 0) -> Any:
    """Return a `populate` parameter that populates all values of a document, and the documentIds of related
    documents.
    """
    made: dict[str, Any] = {}
    for name in compounds(attributes):
        found = attributes[name]
        if found["type"] == "relation" and str(found["relation"]).startswith("morph"):
            made[name] = "true"
        elif found["type"] in ("relation", "media"):
            made[name] = {"fields": ["documentId"]}
        elif found["type"] == "dynamiczone":
            inner = {kind: _component(components, kind, deep) for kind in found["components"]}
            made[name] = {"on": inner}
        elif not hidden(found):
            made[name] = _component(components, found["component"], deep)
    return made


def _component(components: Mapping[str, Attributes], kind: str, deep: int) -> Any:
    inner = deep_populate(components, components[kind], deep + 1) if deep < _DEEP else {}
    return {"populate": inner} if inner else "true"
