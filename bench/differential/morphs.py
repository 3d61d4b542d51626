"""Random values for morph relations, and for multiple relations to the same target."""

from typing import Any

from bench.differential.bodies import Body
from bench.differential.model import Attribute, Type, to_many
from bench.differential.values import Chance
from bench.differential.world import Document, World


def morphs(type_: Type) -> list[str]:
    return [n for n, found in type_.attributes.items() if str(found.get("relation")).startswith("morph")]


def morph_value(chance: Chance, world: World, attribute: Attribute) -> Any:
    """Return a value for a morph relation, in one of the possible forms."""
    found = list(world.documents.values())
    if attribute.get("morphBy"):
        found = world.of(attribute["target"])
    few = chance.sample(found, min(len(found), chance.choice((1, 1, 2, 3))))
    items = [_item(chance, document, typed=not attribute.get("morphBy")) for document in few]
    one = items[0] if items else None
    many: tuple[Any, ...] = (
        items, {"set": items}, {"connect": items}, {"disconnect": items}, {"set": []}, {"connect": []}, [],
    )  # fmt: skip
    single: tuple[Any, ...] = (one, {"set": items}, {"connect": items}, {"disconnect": items}, items)
    common: tuple[Any, ...] = (None, None, "nothere", {}, [None], {"__type": "api::nope.nope", "id": 1})
    return chance.choice((*(many if to_many(attribute) else single) * 3, *common))


def _item(chance: Chance, document: Document, *, typed: bool) -> Any:
    """Return a reference to a document with its type. In rare cases, a key is missing or superfluous."""
    made: dict[str, Any] = {"documentId": document.reference}
    if chance.random() < 0.1:
        made = {"id": document.number()}
    if typed and chance.random() < 0.92:
        made["__type"] = document.uid
    if chance.random() < 0.15:
        made["position"] = chance.choice(({"start": True}, {"end": True}, {"before": document.reference}))
    return made


def groups(type_: Type) -> list[list[str]]:
    made: dict[str, list[str]] = {}
    for name, found in type_.attributes.items():
        if "target" in found and not str(found.get("relation")).startswith("morph"):
            made.setdefault(found["target"], []).append(name)
    return [names for names in made.values() if len(names) > 1]


def same_targets(chance: Chance, world: World, type_: Type) -> Body | None:
    """Return a body in which multiple relations have the same few targets."""
    every = groups(type_)
    if not every:
        return None
    names = chance.choice(every)
    pool = [document.reference for document in world.of(type_.attributes[names[0]]["target"])][-3:]
    if not pool:
        return None
    chosen = chance.sample(names, min(len(names), chance.choice((1, 2, 2, 2, 3))))
    return {name: _link(chance, type_.attributes[name], pool) for name in chosen}


def _link(chance: Chance, attribute: Attribute, pool: list[str]) -> Any:
    one = chance.choice(pool)
    if not to_many(attribute):
        return chance.choice((one, one, {"connect": [one]}, {"set": [one]}, {"disconnect": [one]}, None))
    few = chance.sample(pool, chance.randint(1, len(pool)))
    position = {"documentId": one, "position": chance.choice(({"start": True}, {"end": True}))}
    forms: tuple[Any, ...] = (
        few, few, {"set": few}, {"connect": few}, {"disconnect": [one]}, {"connect": [position]}, [],
    )  # fmt: skip
    return chance.choice(forms)
