"""Generator of random filters and sort orders."""

from collections.abc import Sequence
from typing import Any

from bench.differential.model import (
    MOMENTS,
    NUMBERS,
    OWN,
    TEXT,
    Attribute,
    Attributes,
    Type,
    hidden,
    scalars,
    to_many,
)
from bench.differential.values import PLAIN, Chance, Values
from bench.differential.world import World

_EQUAL = ("$eq", "$ne", "$in", "$notIn", "$null", "$notNull")
_ORDER = ("$lt", "$lte", "$gt", "$gte", "$between")
_PATTERN = ("$contains", "$notContains", "$startsWith", "$endsWith")
_FOLDED = ("$eqi", "$nei", "$containsi", "$notContainsi", "$startsWithi", "$endsWithi")
_DEEP = 3  # maximum depth of relations and components
_FEW_ROWS = ("json", "blocks")


class Filters:
    """Generator of conditions on documents."""

    def __init__(self, world: World, chance: Chance) -> None:
        self.world, self.chance, self.values = world, chance, Values(chance)

    def tree(self, type_: Type) -> dict[str, Any]:
        """Return a value of the `filters` parameter for a content type."""
        attributes = {**OWN, **type_.attributes}
        roll = self.chance.random()
        if roll < 0.2:
            name = self.chance.choice(("$and", "$or"))
            many = range(self.chance.randint(1, 3))
            return {name: [self._one(attributes, type_.uid, 0) for _ in many]}
        if roll < 0.27:
            return {"$not": self._one(attributes, type_.uid, 0)}
        made = self._one(attributes, type_.uid, 0)
        return {**made, **self._one(attributes, type_.uid, 0)} if roll > 0.85 else made

    def _one(self, attributes: Attributes, uid: str, deep: int) -> dict[str, Any]:
        """Return a condition on one attribute, or rarely a list of conditions."""
        if deep and self.chance.random() < 0.05:
            return {"$or": [self._one(attributes, uid, _DEEP) for _ in range(2)]}
        name = self._name(attributes, deep)
        if name is None or self.chance.random() < 0.05:
            return {"id": self._number(uid)} if uid.startswith("api::") else {"id": {"$notNull": "true"}}
        found = attributes[name]
        if name == "documentId":
            return {name: self._identity(uid)}
        if found["type"] in ("relation", "media", "component"):
            return {name: self._through(found, deep)}
        return {name: self.scalar(found, list(self.world.said(uid, name)))}

    def _name(self, attributes: Attributes, deep: int) -> str | None:
        through = [
            name
            for name, found in attributes.items()
            if deep < _DEEP and not hidden(found) and self.world.model.inside(found) is not None
        ]
        if through and self.chance.random() < 0.35:
            return self.chance.choice(through)
        own = [name for name in scalars(attributes) if attributes[name]["type"] not in _FEW_ROWS]
        rare = [name for name in scalars(attributes) if attributes[name]["type"] in _FEW_ROWS]
        if rare and (not own or self.chance.random() < 0.03):
            return self.chance.choice(rare)
        return self.chance.choice(own) if own else None

    def _through(self, attribute: Attribute, deep: int) -> Any:
        roll, uid = self.chance.random(), attribute.get("target", attribute.get("component", "media"))
        if roll < 0.1:
            return {self.chance.choice(("$null", "$notNull")): self.chance.choice(("true", "false"))}
        if roll < 0.2 and attribute["type"] == "relation":
            return self._identity(uid)
        if roll < 0.25 and attribute["type"] == "relation":
            return {"id": self._number(uid)}
        return self._one(self.world.model.inside(attribute) or {}, uid, deep + 1)

    def _identity(self, uid: str) -> Any:
        found = [document.reference for document in self.world.of(uid)] or ["none"]
        one = self.chance.choice(found)
        return self.chance.choice(
            (one, {"$eq": one}, {"$in": [one, self.chance.choice(found)]}, {"$ne": one})
        )

    def _number(self, uid: str) -> Any:
        found = self.world.of(uid)
        one = self.chance.choice(found).number() if found else "0"
        return self.chance.choice(
            (one, {"$eq": one}, {"$in": [one]}, {"$notIn": [one]}, {"$notNull": "true"})
        )

    def scalar(self, attribute: Attribute, pool: Sequence[Any]) -> Any:
        """Return a condition on a scalar attribute. `pool` contains existing values of the attribute."""
        roll = self.chance.random()
        if roll < 0.1:
            return self._text(attribute, pool)
        operator = self._operator(attribute)
        made = {operator: self._operand(operator, attribute, pool)}
        if roll < 0.15:
            return {"$not": made}
        if roll < 0.22:
            other = self._operator(attribute)
            made[other] = self._operand(other, attribute, pool)
        return made

    def _operator(self, attribute: Attribute) -> str:
        kind = attribute["type"]
        usual = {
            **dict.fromkeys(TEXT, _EQUAL + _PATTERN + _FOLDED),
            **dict.fromkeys((*NUMBERS, *MOMENTS), _EQUAL + _ORDER),
            "boolean": _EQUAL,
        }.get(kind, _EQUAL)
        few = self.chance.random() < 0.06
        return self.chance.choice(_EQUAL + _ORDER + _PATTERN + _FOLDED if few else usual)

    def _operand(self, operator: str, attribute: Attribute, pool: Sequence[Any]) -> Any:
        if operator in ("$null", "$notNull"):
            return self.chance.choice(("true", "true", "false", "1", "0"))
        if operator in ("$in", "$notIn"):
            few = [self._text(attribute, pool) for _ in range(self.chance.randint(1, 3))]
            return few[0] if self.chance.random() < 0.15 else few
        if operator == "$between":
            return [self._text(attribute, pool), self._text(attribute, pool)]
        made = self._text(attribute, pool)
        if operator not in _EQUAL + _ORDER and len(made) > 2:
            return self._part(operator, made)
        return made

    def _part(self, operator: str, text: str) -> str:
        # Operators that ignore case sometimes get a value in the opposite case.
        cut = self.chance.randint(1, len(text) - 1)
        if "starts" in operator:
            text = text[:cut]
        elif "ends" in operator:
            text = text[cut:]
        elif "ontains" in operator:
            text = text[cut // 2 : cut] or text[:1]
        folded = operator.endswith("i") and self.chance.random() < 0.4
        return text.swapcase() if folded else text

    def _text(self, attribute: Attribute, pool: Sequence[Any]) -> str:
        """Return a value for a query, which is usually taken from a document and rarely has the wrong
        type.
        """
        roll = self.chance.random()
        if pool and roll < 0.75:
            value = self.chance.choice(pool)
        elif roll < 0.97 or attribute["type"] in NUMBERS + MOMENTS + ("boolean",):
            value = self.values.good(attribute)
        else:
            value = self.chance.choice((*PLAIN, "5", "true", ""))
        if isinstance(value, bool):
            return self.chance.choice(("true", "1") if value else ("false", "0"))
        return value if isinstance(value, str) else str(value)


def sort_tree(world: World, chance: Chance, attributes: Attributes, max_keys: int = 3) -> Any:
    """Return a value of the `sort` parameter, in one of its forms."""
    paths = sorted({_sort_path(world, chance, attributes) for _ in range(chance.randint(1, max_keys))})
    chance.shuffle(paths)
    ways = [chance.choice(("asc", "desc", "asc", "desc", "ASC", "DESC")) for _ in paths]
    written = [
        path if way == "asc" and chance.random() < 0.5 else f"{path}:{way}"
        for path, way in zip(paths, ways, strict=True)
    ]
    roll = chance.random()
    if roll < 0.35:
        return ",".join(written)
    if roll < 0.7:
        return written
    nested = [_nested(path.split("."), way) for path, way in zip(paths, ways, strict=True)]
    return nested if len(nested) > 1 or roll < 0.85 else nested[0]


def _nested(names: Sequence[str], way: str) -> Any:
    return {names[0]: _nested(names[1:], way)} if names else way


def _sort_path(world: World, chance: Chance, attributes: Attributes, deep: int = 0) -> str:
    every = {**OWN, **attributes}
    del every["documentId"]  # The two servers sort documentIds in different ways.
    through = [n for n, found in every.items() if not hidden(found) and _one(world, found)]
    if deep < 2 and through and chance.random() < 0.2:
        name = chance.choice(through)
        return f"{name}.{_sort_path(world, chance, world.model.inside(every[name]) or {}, deep + 1)}"
    return chance.choice([n for n in scalars(every) if every[n]["type"] not in _FEW_ROWS])


def _one(world: World, attribute: Attribute) -> bool:
    return world.model.inside(attribute) is not None and not to_many(attribute)
