"""Generator of round trips: read a document, change it a little, and send it back."""

from collections.abc import Iterator
from typing import Any

from bench.differential.bodies import Bodies
from bench.differential.editing import Edit
from bench.differential.model import LOCALES, Attribute, Attributes, Type, hidden, to_many
from bench.differential.populating import Populates
from bench.differential.request import GET, Query, flatten
from bench.differential.values import Chance
from bench.differential.world import Document, World

_OWN = ("id", "documentId", "createdAt", "updatedAt", "publishedAt", "locale", "localizations")


class RoundTrips:
    """Generator of request bodies for round trips."""

    def __init__(self, world: World, chance: Chance, bodies: Bodies) -> None:
        self.world, self.chance, self.bodies = world, chance, bodies

    def body(self, type_: Type, document: Document | None) -> tuple[Any, Query]:
        """Return a body copied from a response, and the query for the write."""
        # Most writes change the version that was read.
        version = self.chance.choice(sorted(document.versions)) if document else (LOCALES[0], "published")
        path = type_.path if type_.single or not document else f"{type_.path}/{document.reference}"
        query = self._version(type_, *version)
        read = "&".join("=".join(pair) for pair in (*query, *flatten("populate", self._populate(type_))))
        without = _OWN if self.chance.random() < 0.8 else self.chance.sample(_OWN, 4)
        body = {
            GET: f"{path}?{read}",
            "at": "data",
            "without": list(without),
            "plain": self.chance.random() < 0.5,
            "edits": [edit for _ in range(self.chance.randint(0, 2)) for edit in self._edits(type_)],
        }
        # Sometimes, a translation is created by sending a copy of a different locale.
        if self.chance.random() < 0.2:
            query = self._version(type_, self.chance.choice(LOCALES), version[1])
        return body, query

    def _version(self, type_: Type, locale: str, status: str) -> Query:
        query: Query = (("locale", locale),) if type_.localized else ()
        return (*query, ("status", status)) if type_.drafts else query

    def _populate(self, type_: Type) -> Any:
        roll = self.chance.random()
        if roll < 0.3:
            return "*"
        if roll < 0.4:
            return Populates(self.world, self.chance).tree(type_)
        return {name: self._whole(found) for name, found in type_.attributes.items() if _populated(found)}

    def _whole(self, attribute: Attribute) -> Any:
        if attribute["type"] != "component":
            return {"populate": "*"} if attribute["type"] == "dynamiczone" else "true"
        inner = self.world.model.components[attribute["component"]]
        deeper = {name: self._whole(found) for name, found in inner.items() if _populated(found)}
        return {"populate": deeper} if deeper else "true"

    def _edits(self, type_: Type) -> Iterator[Edit]:
        name = self.chance.choice(list(type_.attributes))
        yield from self._edit(name, type_.attributes[name], name)

    def _edit(self, name: str, attribute: Attribute, path: str) -> Iterator[Edit]:
        kind, version = attribute["type"], (LOCALES[0], "published")
        if kind == "component" and self.chance.random() < 0.6:
            inner: Attributes = self.world.model.components[attribute["component"]]
            inside = self.chance.choice(list(inner))
            at = f"{path}.0.{inside}" if attribute.get("repeatable") else f"{path}.{inside}"
            yield from self._edit(inside, inner[inside], at)
        elif to_many(attribute):
            verb = self.chance.choice(("append", "drop", "reverse"))
            more = self.bodies.value(name, attribute, version) if verb == "append" else None
            if verb != "append" or (isinstance(more, list) and more):
                yield (path, verb, more[0] if more else None)
        else:
            yield (path, "set", self.bodies.value(name, attribute, version))


def _populated(attribute: Attribute) -> bool:
    return attribute["type"] in ("relation", "media", "component", "dynamiczone") and not hidden(attribute)
