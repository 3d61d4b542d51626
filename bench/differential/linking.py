"""Generator of values for relations and media in bodies, in valid and invalid forms."""

from collections.abc import Callable, Sequence
from typing import Any

from bench.differential.model import FILE, Attribute, to_many
from bench.differential.request import GET
from bench.differential.values import Chance
from bench.differential.world import Document, World


class Links:
    """Generator of values for a relation or media attribute."""

    def __init__(self, world: World, chance: Chance) -> None:
        self.world, self.chance = world, chance

    def value(self, attribute: Attribute, path: str, name: str) -> Any:
        many = to_many(attribute)
        forms = _MANY if many else _ONE
        made = self.chance.choices([form for form, _ in forms], [weight for _, weight in forms])[0]
        return made(self, attribute, path, name)

    def _found(self, attribute: Attribute) -> list[Document]:
        return self.world.of(attribute.get("target", ""))

    def _names(self, attribute: Attribute, limit: int = 3) -> list[Any]:
        """Return some targets, in the different forms that a body can contain."""
        if attribute["type"] == "media":
            few = self.chance.sample(
                self.world.files, min(len(self.world.files), self.chance.randint(1, limit))
            )
            return [self._file(reference) for reference in few]
        found = self._found(attribute)
        few_documents = self.chance.sample(found, min(len(found), self.chance.randint(1, limit)))
        as_object = self.chance.random() < 0.5
        return [{"documentId": d.reference} if as_object else d.reference for d in few_documents]

    def _file(self, reference: str) -> Any:
        return {"id": reference} if self.chance.random() < 0.4 else reference

    def _list(self, attribute: Attribute, path: str, name: str) -> Any:
        return self._names(attribute)

    def _none(self, attribute: Attribute, path: str, name: str) -> Any:
        return self.chance.choice(([], None, {"set": []}, {"connect": []}, {"set": None}, {}))

    def _one(self, attribute: Attribute, path: str, name: str) -> Any:
        return next(iter(self._names(attribute, 1)), None)

    def _set(self, attribute: Attribute, path: str, name: str) -> Any:
        return {"set": self._names(attribute)}

    def _connect(self, attribute: Attribute, path: str, name: str) -> Any:
        made: dict[str, Any] = {"connect": self._names(attribute)}
        if self.chance.random() < 0.3:
            made["disconnect"] = self._names(attribute)
        if self.chance.random() < 0.1:
            made["set"] = self._names(attribute)
        return made

    def _disconnect(self, attribute: Attribute, path: str, name: str) -> Any:
        return {"disconnect": self._names(attribute)}

    def _positions(self, attribute: Attribute, path: str, name: str) -> Any:
        found = [document.reference for document in self._found(attribute)]
        few = self.chance.sample(found, min(len(found), self.chance.randint(1, 3)))
        return {"connect": [{"documentId": one, "position": self._position(found)} for one in few]}

    def _position(self, found: Sequence[str]) -> dict[str, Any]:
        where = self.chance.choice(("before", "after", "start", "end"))
        return {where: self.chance.choice(found) if where in ("before", "after") else True}

    def _version(self, attribute: Attribute, path: str, name: str) -> Any:
        """Return targets in which a locale or status is given."""
        extra = self.chance.choice(
            ({"locale": "fr"}, {"locale": "en"}, {"status": "draft"}, {"status": "published"})
        )
        names = [
            {**(n if isinstance(n, dict) else {"documentId": n}), **extra} for n in self._names(attribute)
        ]
        return self.chance.choice(({"connect": names}, {"set": names}, names))

    def _numbers(self, attribute: Attribute, path: str, name: str) -> Any:
        found = [document.number() for document in self._found(attribute)]
        few = self.chance.sample(found, min(len(found), 2))
        return self.chance.choice(
            (few, {"connect": [{"id": one} for one in few]}, [{"id": one} for one in few])
        )

    def _populated(self, attribute: Attribute, path: str, name: str) -> Any:
        made = {GET: f"{path}?populate[{name}]=true", "at": f"data.{name}"}
        return made if self.chance.random() < 0.7 else {"set": made}

    def _unknown(self, attribute: Attribute, path: str, name: str) -> Any:
        bad = self.chance.choice(("nothere", 987654, {"documentId": "nothere"}, {"id": 987654}))
        return self.chance.choice((bad, [bad], {"connect": [bad]}, {"set": [bad]}, {"disconnect": [bad]}))

    def _wrong(self, attribute: Attribute, path: str, name: str) -> Any:
        one = self._one(attribute, path, name)
        return self.chance.choice(
            (
                True, "", [None], [[]], {"documentId": None}, {"connect": "x"}, {"nope": [one]}, 1.5,
                {"connect": [{"position": {"start": True}}]}, [{}], [one, one], [{"name": "x"}],
                {"connect": [{"documentId": one, "position": {"before": "nothere"}}]},
                {"connect": [{"documentId": one, "position": {}}]}, {"connect": one},
                {"set": one}, {"disconnect": one},
            )
        )  # fmt: skip


_Form = Callable[[Links, Attribute, str, str], Any]
_EVERY: tuple[tuple[_Form, int], ...] = (
    (Links._set, 10), (Links._connect, 12), (Links._disconnect, 8), (Links._none, 8), (Links._populated, 8),
    (Links._unknown, 4), (Links._wrong, 6), (Links._version, 3), (Links._numbers, 2),
)  # fmt: skip
_MANY = (*_EVERY, (Links._list, 20), (Links._positions, 20), (Links._one, 2))
_ONE = (*_EVERY, (Links._one, 25), (Links._list, 3))


def leads_somewhere(world: World, attribute: Attribute) -> bool:
    target = FILE if attribute["type"] == "media" else attribute.get("target", "")
    return target == FILE or bool(world.of(target))
