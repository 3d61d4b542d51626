"""Random request bodies with valid values, for documents and components."""

from collections.abc import Sequence
from typing import Any

from bench.differential.model import Attribute, Attributes, to_many
from bench.differential.values import Chance, Values
from bench.differential.world import Version, World

Body = dict[str, Any]
_DEEP = 3  # maximum nesting depth of components
PICTURES = 3  # The first files, up to this number, are pictures.
# Strapi responds with 500 to any value for these relations.
_NEVER = ("morphToOne", "morphOne", "morphMany")


class Bodies:
    """Generator of valid request bodies, with relations as lists of documentIds."""

    def __init__(self, world: World, values: Values) -> None:
        self.world, self.values = world, values
        self.chance: Chance = values.chance
        # targets that are already used, for attributes whose targets must be unique
        self._taken: set[tuple[str, str]] = set()
        self._but = ""

    def body(
        self, attributes: Attributes, version: Version, share: float = 0.7, depth: int = 0, excluded: str = ""
    ) -> Body:
        """Return values for the required attributes and a share of the others.

        Relations to the document `excluded` are omitted.
        """
        made: Body = {}
        self._but = excluded or self._but
        for name, attribute in attributes.items():
            if attribute.get("relation") in _NEVER:
                continue
            if attribute.get("required") or self.chance.random() < share:
                value = self.value(name, attribute, version, depth)
                if value is not None or not attribute.get("required"):
                    made[name] = value
        return made

    def value(self, name: str, attribute: Attribute, version: Version, depth: int = 0) -> Any:
        """Return a valid value for any attribute."""
        if not attribute.get("required") and self.chance.random() < 0.1:
            return [] if to_many(attribute) else None
        match attribute["type"]:
            case "relation":
                return self.relation(name, attribute, version)
            case "media":
                return self.media(attribute)
            case "component":
                return self.component(attribute, version, depth)
            case "dynamiczone":
                return self.zone(attribute, version, depth)
        return self.values.good(attribute)

    def relation(self, name: str, attribute: Attribute, version: Version) -> Any:
        """Return the documentIds of existing documents, without duplicates."""
        kind = attribute["relation"]
        if kind.startswith("morph"):
            return self._any_type(attribute)
        found = self._targets(attribute, version)
        if kind in ("oneToOne", "oneToMany") and (attribute.get("inversedBy") or attribute.get("mappedBy")):
            found = [d for d in found if (f"{attribute['target']}.{name}", d) not in self._taken]
        few = self.chance.sample(
            found, min(len(found), self.chance.randint(1, 3) if to_many(attribute) else 1)
        )
        self._taken |= {(f"{attribute['target']}.{name}", d) for d in few}
        return few if to_many(attribute) else next(iter(few), None)

    def _targets(self, attribute: Attribute, version: Version) -> list[str]:
        target = self.world.model.types.get(attribute["target"])
        if target is None:
            return []
        locale = version[0] if target.localized else target.locales[0]
        found = self.world.of(target.uid)
        return [
            d.reference
            for d in found
            if locale in {code for code, _ in d.versions} and d.reference != self._but
        ]

    def _any_type(self, attribute: Attribute) -> Any:
        if attribute["relation"] != "morphToMany":
            return None
        found = [d for d in self.world.documents.values() if not self.world.type_of(d).drafts]
        few = self.chance.sample(found, min(len(found), 2))
        return {"set": [{"__type": d.uid, "documentId": d.reference} for d in few]}

    def media(self, attribute: Attribute) -> Any:
        files = self.world.files[:PICTURES] if attribute.get("allowedTypes") else self.world.files
        if to_many(attribute):
            return self.chance.sample(files, min(len(files), self.chance.randint(1, 3)))
        return self.chance.choice(files) if files else None

    def component(self, attribute: Attribute, version: Version, depth: int = 0) -> Any:
        """Return a value for a component attribute, which is one component or a list of them."""
        attributes = self.world.model.components[attribute["component"]]
        if depth >= _DEEP:
            return [] if to_many(attribute) else None
        if not to_many(attribute):
            return self.body(attributes, version, 0.6, depth + 1)
        least, most = attribute.get("min", 0), attribute.get("max", 3)
        many = range(self.chance.randint(max(least, 1), max(most, 1)))
        return [self.body(attributes, version, 0.6, depth + 1) for _ in many]

    def zone(self, attribute: Attribute, version: Version, deep: int = 0) -> list[Body]:
        kinds = self.chance.choices(attribute["components"], k=self.chance.randint(1, 3))
        return [self.entry(kind, version, deep) for kind in kinds]

    def entry(self, kind: str, version: Version, deep: int = 0) -> Body:
        inner = self.body(self.world.model.components[kind], version, 0.6, deep + 1)
        return {"__component": kind, **inner}


def some(chance: Chance, found: Sequence[str], limit: int) -> list[str]:
    return chance.sample(list(found), min(len(found), chance.randint(1, limit))) if found else []
