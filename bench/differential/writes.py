"""Generator of random writes to existing or new documents, which are grouped by area."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from bench.differential import edges, morphs, protocol
from bench.differential.bodies import Bodies, Body
from bench.differential.linking import Links, leads_somewhere
from bench.differential.looking import requests
from bench.differential.model import LOCALES, Attribute, Attributes, Type, hidden
from bench.differential.populating import Populates
from bench.differential.reads import V4
from bench.differential.request import GET, Query, Request, flatten
from bench.differential.returning import RoundTrips
from bench.differential.steps import Step
from bench.differential.values import Chance, Values, wrong
from bench.differential.world import Document, Version, World

_FORM = "application/x-www-form-urlencoded"


class Writes:
    """Generator of the writes in one conversation, to a few documents of one or two types."""

    def __init__(self, world: World, chance: Chance, prefix: str) -> None:
        self.world, self.chance = world, chance
        self.values = Values(chance, prefix)
        self.bodies, self.links = Bodies(world, self.values), Links(world, chance)
        types = sorted(world.model.types.values(), key=lambda type_: type_.uid)
        weights = [1 + len(type_.attributes) for type_ in types]
        self._types = chance.choices(types, weights, k=2)

    def step(self, areas: Mapping[str, int]) -> Step | None:
        """Return a write in one of the areas, or None if no content type fits."""
        area = self.chance.choices(list(areas), list(areas.values()))[0]
        every = list(self.world.model.types.values())
        others = self.chance.sample(every, len(every)) if area in _RARE else []
        for type_ in (self.chance.choice(self._types), *others):
            found = self.world.of(type_.uid)[-4:]
            document = self.chance.choice(found) if found and self.chance.random() < 0.85 else None
            made = _AREAS[area][0](self, type_, document)
            if made:
                return replace(made, area=area)
        return None

    def _send(
        self, type_: Type, document: Document | None, body: Body, query: Query = (), data: Any = None
    ) -> Step:
        # Some steps also have parameters for the response.
        path = type_.path if type_.single or not document else f"{type_.path}/{document.reference}"
        method = "PUT" if type_.single or document else "POST"
        version = dict(query).get("locale", LOCALES[0]), dict(query).get("status", "published")
        roll = self.chance.random()
        if roll < 0.15:
            query += flatten("populate", Populates(self.world, self.chance).tree(type_))
        elif roll < 0.2:
            query += flatten("fields", Populates(self.world, self.chance).fields(type_.attributes))
        headers = V4 if self.chance.random() < 0.03 else ()
        sent = {"data": body} if data is None else data
        request = Request(method, path, query, sent, headers=headers)
        return self._step(type_, document, request, body, version)

    def _step(
        self, type_: Type, document: Document | None, request: Request, body: Body, version: Version
    ) -> Step:
        """Return the step for a write, with the requests that read its effect."""
        known = next(iter(self.world.of(type_.uid)), None) if type_.single else document
        told = known or self.world.new(type_.uid)

        def done() -> None:
            self.world.documents[told.name] = told
            told.versions.add(version)
            told.said |= {n: value for n, value in body.items() if _is_said(type_, n, value)}

        path = type_.path if type_.single else f"{type_.path}/{told.reference}"
        locale: Query = (("locale", version[0]),) if type_.localized else ()
        read = Request("GET", path, (*locale, ("status", version[1])))
        return Step(
            area="",
            request=request,
            captures={} if known else {f"doc:{told.name}": "data.documentId"},
            learns=((read, f"id:{told.name}:{version[1]}:{version[0]}", "data.id"),),
            looks=self._looks(type_, body),
            done=done,
        )

    def _looks(self, type_: Type, names: Iterable[str]) -> tuple[Request, ...]:
        """Return the requests that read the documents of a type and of related types."""
        # Related types are included, because publishing a document can remove relations to it from related
        # documents.
        types = {type_.uid: type_}
        types |= {
            t.uid: t for t in self.world.model.types.values() if type_.uid in self._targets(t.attributes)
        }
        for name in names:
            target = self.world.model.types.get(type_.attributes.get(name, {}).get("target", ""))
            if target:
                types[target.uid] = target
        return tuple(request for one in types.values() for request in requests(self.world, one))

    def _targets(self, attributes: Attributes) -> set[str]:
        found = {str(attribute.get("target")) for attribute in attributes.values()}
        for attribute in attributes.values():
            kinds = [attribute.get("component"), *attribute.get("components", ())]
            for inner in (self.world.model.components[kind] for kind in kinds if kind):
                found |= self._targets(inner)
        return found

    def _good(self, type_: Type, document: Document | None, locale: str = LOCALES[0]) -> Body:
        """Return a valid body, with all required attributes of a new document, or a few attributes of an
        existing one.
        """
        version = (locale, "published")
        if document is None or type_.single:
            return self.bodies.body(type_.attributes, version, 0.5)
        names = self.chance.sample(
            list(type_.attributes), min(len(type_.attributes), self.chance.randint(1, 3))
        )
        return self.bodies.body({name: type_.attributes[name] for name in names}, version, 1.0)

    def _base(self, type_: Type, document: Document | None) -> Body:
        if document and not type_.single:
            return {}
        needed = {name: found for name, found in type_.attributes.items() if found.get("required")}
        return self.bodies.body(needed, (LOCALES[0], "published"))

    def _pick(self, type_: Type, *kinds: str) -> str | None:
        found = [name for name, attribute in type_.attributes.items() if attribute["type"] in kinds]
        return self.chance.choice(found) if found else None

    def create(self, type_: Type, document: Document | None) -> Step:
        return self._send(type_, None, self._good(type_, None))

    def update(self, type_: Type, document: Document | None) -> Step:
        return self._send(type_, document, self._good(type_, document))

    def relations(self, type_: Type, document: Document | None) -> Step | None:
        name = self._pick(type_, "relation")
        if name is None or not leads_somewhere(self.world, type_.attributes[name]):
            return self._inner_link(type_, document, "relation")
        if self.chance.random() < 0.2:
            return self._inner_link(type_, document, "relation") or self._link(type_, document, name)
        return self._link(type_, document, name)

    def media(self, type_: Type, document: Document | None) -> Step | None:
        name = self._pick(type_, "media")
        if name is None or self.chance.random() < 0.2:
            return self._inner_link(type_, document, "media")
        return self._link(type_, document, name)

    def _link(self, type_: Type, document: Document | None, name: str) -> Step:
        path = f"{type_.path}/{document.reference}" if document and not type_.single else type_.path
        value = self.links.value(type_.attributes[name], path, name)
        return self._send(type_, document, {**self._base(type_, document), name: value})

    def _inner_link(self, type_: Type, document: Document | None, kind: str) -> Step | None:
        """Write a relation or media attribute inside a component."""
        places = []
        for name, attribute in type_.attributes.items():
            inner = self.world.model.components.get(attribute.get("component", ""), {})
            places += [(name, attribute, n) for n, found in inner.items() if found["type"] == kind]
        if not places:
            return None
        name, attribute, inside = self.chance.choice(places)
        found = self.world.model.components[attribute["component"]]
        value = self.links.value(found[inside], type_.path, name)
        component = {**self.bodies.body(found, (LOCALES[0], "published"), 0.2), inside: value}
        made = [component] if attribute.get("repeatable") else component
        return self._send(type_, document, {**self._base(type_, document), name: made})

    def components(self, type_: Type, document: Document | None) -> Step | None:
        name = self._pick(type_, "component", "dynamiczone")
        if name is None:
            return None
        attribute = type_.attributes[name]
        value = self._component(type_, document, name, attribute)
        return self._send(type_, document, {**self._base(type_, document), name: value})

    def _component(self, type_: Type, document: Document | None, name: str, attribute: Attribute) -> Any:
        version, roll = (LOCALES[0], "published"), self.chance.random()
        path = f"{type_.path}/{document.reference}" if document and not type_.single else type_.path
        seen = f"{path}?populate[{name}][populate]=*&status=draft"
        many = attribute["type"] == "dynamiczone" or attribute.get("repeatable")
        if roll < 0.2 and (document or type_.single):
            return {GET: seen, "at": f"data.{name}"}
        if roll < 0.5 and (document or type_.single):
            return self._by_number(attribute, seen, name, bool(many))
        if roll < 0.6:
            return self.chance.choice(
                (None, [], {}, "x", 5, [None], [{}], [5], {"id": 987654}, [{"id": 987654}])
            )
        if roll < 0.68 and attribute["type"] == "dynamiczone":
            kinds = [{"__component": "no.such"}, {"__component": 5}, {"name": "x"}]
            return [self.chance.choice(kinds), *self.bodies.zone(attribute, version)][:2]
        if roll < 0.75:
            return self._wrong_component(attribute)
        if attribute["type"] == "dynamiczone":
            return self.bodies.zone(attribute, version)
        return self.bodies.component(attribute, version)

    def _by_number(self, attribute: Attribute, seen: str, name: str, many: bool) -> Any:
        """Return components, one of which is identified by its number. The others are omitted or new."""
        version = (LOCALES[0], "published")
        kind = attribute.get("component") or self.chance.choice(attribute["components"])
        part = self.bodies.body(self.world.model.components[kind], version, 0.4)
        at = f"data.{name}.0.id" if many else f"data.{name}.id"
        changed = {"id": {GET: seen, "at": at}, **part}
        if attribute["type"] == "dynamiczone":
            changed["__component"] = {GET: seen, "at": f"data.{name}.0.__component"}
        if not many:
            return changed
        other = {GET: seen, "at": f"data.{name}.1"}
        new = self.bodies.entry(kind, version) if "components" in attribute else part
        return self.chance.choice(([changed], [changed, new], [new, changed], [other, changed]))

    def _wrong_component(self, attribute: Attribute) -> Any:
        kind = attribute.get("component") or self.chance.choice(attribute["components"])
        attributes = self.world.model.components[kind]
        part = self.bodies.body(attributes, (LOCALES[0], "published"), 0.3)
        if "components" in attribute:
            part["__component"] = kind
        for name, found in attributes.items():
            if found["type"] not in ("relation", "media", "component") and self.chance.random() < 0.4:
                part[name] = wrong(self.chance, found)
        part |= {"nope": 1} if self.chance.random() < 0.15 else {}
        many = bool(attribute.get("repeatable") or "components" in attribute)
        return [part] if many == (self.chance.random() < 0.9) else part

    def drafts(self, type_: Type, document: Document | None) -> Step | None:
        """Write a draft, or publish it."""
        if not type_.drafts and self.chance.random() < 0.8:
            return None
        roll = self.chance.random()
        if roll < 0.5:
            return self._send(type_, document, self._good(type_, document), (("status", "draft"),))
        if roll < 0.8:
            return self._send(type_, document, self._base(type_, document))
        if roll < 0.9:
            body = {
                **self._good(type_, document),
                "publishedAt": self.chance.choice((None, "2020-01-01T00:00:00.000Z")),
            }
            return self._send(type_, document, body, self.chance.choice(((), (("status", "draft"),))))
        status = self.chance.choice(("published", "nope", "", "modified"))
        return self._send(type_, document, self._good(type_, document), (("status", status),))

    def locales(self, type_: Type, document: Document | None) -> Step | None:
        """Write a version in a random locale, which is rarely the default locale."""
        if not type_.localized and self.chance.random() < 0.8:
            return None
        locale = self.chance.choice((*LOCALES, *LOCALES[1:], *LOCALES[1:], "es", "*", ""))
        body = self._good(type_, document, locale if locale in LOCALES else LOCALES[0])
        query: Query = (("locale", locale),)
        if self.chance.random() < 0.15:
            query, body = (), {**body, "locale": locale}
        if type_.drafts and self.chance.random() < 0.25:
            query += (("status", "draft"),)
        return self._send(type_, document, {**self._base(type_, None), **body}, query)

    def validation(self, type_: Type, document: Document | None) -> Step:
        """Write values that are invalid or must be converted, or a body that is not an object."""
        roll, base = self.chance.random(), self._base(type_, document)
        if roll < 0.06:
            data: Any = self.chance.choice(
                ({}, {"data": None}, {"data": []}, {"data": "x"}, [], {"nope": 1}, {"data": 5})
            )
            return self._send(type_, document, {}, data=data)
        if roll < 0.12:
            own = (
                "nope",
                "id",
                "documentId",
                "createdAt",
                "updatedAt",
                "createdBy",
                "localizations",
                "__component",
            )
            value = self.chance.choice((1, "x", None, {"a": 1}, "2020-01-01T00:00:00.000Z"))
            return self._send(type_, document, {**base, self.chance.choice(own): value})
        names = [
            n for n, found in type_.attributes.items() if "relation" not in found and found["type"] != "media"
        ]
        few = self.chance.sample(names, min(len(names), self.chance.choice((1, 1, 1, 2))))
        made = {name: wrong(self.chance, type_.attributes[name]) for name in few}
        query: Query = (("status", "draft"),) if type_.drafts and self.chance.random() < 0.3 else ()
        return self._send(type_, document, {**base, **made}, query)

    def unique(self, type_: Type, document: Document | None) -> Step | None:
        """Write a value that a different document may already have."""
        names = [n for n, found in type_.attributes.items() if found.get("unique") or found["type"] == "uid"]
        if not names:
            return None
        name = self.chance.choice(names)
        pool = [value for value in self.world.said(type_.uid, name) if isinstance(value, str | int)]
        value = self.chance.choice(pool) if pool else "one"
        query: Query = (("status", "draft"),) if type_.drafts and self.chance.random() < 0.3 else ()
        if type_.localized and self.chance.random() < 0.3:
            query += (("locale", "fr"),)
        return self._send(type_, document, {**self._base(type_, document), name: value}, query)

    def delete(self, type_: Type, document: Document | None) -> Step:
        """Delete a document, one of its locales, or a missing document."""
        name = document.reference if document else "nothere"
        query: Query = ()
        if type_.localized and self.chance.random() < 0.6:
            query = (("locale", self.chance.choice((*LOCALES, "*", "es"))),)
        if self.chance.random() < 0.15:
            query += (("status", self.chance.choice(("draft", "published"))),)
        path = type_.path if type_.single else f"{type_.path}/{name}"
        return Step("", Request("DELETE", path, query), looks=self._looks(type_, type_.attributes))

    def form(self, type_: Type, document: Document | None) -> Step:
        body = self._good(type_, document)
        flat = {n: v for n, v in body.items() if v is not None and not isinstance(v, dict | list)}
        written = {n: str(v).lower() if isinstance(v, bool) else v for n, v in flat.items()}
        made = self._send(type_, document, flat, data={"data": written})
        return replace(made, request=replace(made.request, kind=_FORM, headers=()))

    def populated(self, type_: Type, document: Document | None) -> Step | None:
        """Send a document back exactly as it was read."""
        if document is None and not type_.single:
            return None
        path = type_.path if type_.single or not document else f"{type_.path}/{document.reference}"
        populate = self.chance.choice(("", "?populate=*", "?populate=*&status=draft", "?status=draft"))
        names = [n for n, found in type_.attributes.items() if not hidden(found)]
        few = self.chance.sample(names, min(len(names), 4))
        at = {name: {GET: path + populate, "at": f"data.{name}"} for name in few}
        body: Any = {GET: path + populate, "at": "data"} if self.chance.random() < 0.5 else at
        return self._send(type_, document, {}, data={"data": body})

    def round_trip(self, type_: Type, document: Document | None) -> Step | None:
        if document is None and not type_.single:
            return None
        body, query = RoundTrips(self.world, self.chance, self.bodies).body(type_, document)
        return self._send(type_, document, dict.fromkeys(type_.attributes), query, data={"data": body})

    def rules(self, type_: Type, document: Document | None) -> Step | None:
        """Write defaults, or values that test the limits of lengths, bounds, patterns and uniqueness."""
        names = [n for n, found in type_.attributes.items() if found["type"] in edges.SIMPLE]
        if not names:
            return None
        few = self.chance.sample(names, min(len(names), self.chance.choice((0, 1, 1, 1, 2))))
        made = {name: self._edge(type_, name) for name in few}
        parts = [n for n, found in type_.attributes.items() if found["type"] == "component"]
        if parts and self.chance.random() < 0.3:
            name = self.chance.choice(parts)
            made = {name: self._edged_component(type_.attributes[name])}
        query: Query = (("status", "draft"),) if type_.drafts and self.chance.random() < 0.3 else ()
        if type_.localized and self.chance.random() < 0.2:
            query += (("locale", "fr"),)
        return self._send(type_, document, {**self._base(type_, document), **made}, query)

    def _edge(self, type_: Type, name: str) -> Any:
        said = list(self.world.said(type_.uid, name))
        return edges.edge(self.chance, type_.attributes[name], said)

    def _edged_component(self, attribute: Attribute) -> Any:
        inner = self.world.model.components[attribute["component"]]
        part = self.bodies.body(inner, (LOCALES[0], "published"), 0.3, depth=3)
        name = self.chance.choice([n for n, found in inner.items() if found["type"] in edges.SIMPLE])
        part[name] = edges.edge(self.chance, inner[name], [])
        if not attribute.get("repeatable"):
            return part
        return [part] * self.chance.randint(0, attribute.get("max", 2) + 1)

    def blocks(self, type_: Type, document: Document | None) -> Step | None:
        name = self._pick(type_, "blocks")
        if name is None:
            return None
        value = edges.with_null_inside(self.chance, self.values.good(type_.attributes[name]))
        return self._send(type_, document, {**self._base(type_, document), name: value})

    def morph(self, type_: Type, document: Document | None) -> Step | None:
        names = morphs.morphs(type_)
        if not names:
            return None
        name = self.chance.choice(names)
        value = morphs.morph_value(self.chance, self.world, type_.attributes[name])
        return self._send(type_, document, {**self._base(type_, document), name: value})

    def same_targets(self, type_: Type, document: Document | None) -> Step | None:
        body = morphs.same_targets(self.chance, self.world, type_)
        if body is None:
            return None
        query: Query = (("status", "draft"),) if type_.drafts and self.chance.random() < 0.3 else ()
        return self._send(type_, document, {**self._base(type_, document), **body}, query)

    def content_type(self, type_: Type, document: Document | None) -> Step:
        made = self._send(type_, document, self._good(type_, document))
        return replace(made, request=protocol.with_content_type(self.chance, made.request))


def _is_said(type_: Type, name: str, value: Any) -> bool:
    return isinstance(value, str | int | float) or type_.attributes.get(name, {}).get("type") == "relation"


_Make = Callable[[Writes, Type, Document | None], Step | None]
_AREAS: Mapping[str, tuple[_Make, int]] = {
    "write create": (Writes.create, 8),
    "write update": (Writes.update, 10),
    "write relations": (Writes.relations, 22),
    "write components": (Writes.components, 14),
    "write media": (Writes.media, 8),
    "write drafts": (Writes.drafts, 10),
    "write locales": (Writes.locales, 10),
    "write validation": (Writes.validation, 14),
    "write unique": (Writes.unique, 4),
    "write delete": (Writes.delete, 5),
    "write form": (Writes.form, 2),
    "write populated": (Writes.populated, 5),
    "write round trip": (Writes.round_trip, 20),
    "write rules": (Writes.rules, 20),
    "write blocks": (Writes.blocks, 6),
    "write morph": (Writes.morph, 8),
    "write same targets": (Writes.same_targets, 10),
    "write content types": (Writes.content_type, 6),
}
# Few content types are suitable for these areas.
_RARE = ("write blocks", "write morph", "write same targets")
# weights of the areas
AREAS: Mapping[str, int] = {area: weight for area, (_, weight) in _AREAS.items()}
