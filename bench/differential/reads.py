"""Generator of random reads, which are grouped by area."""

from collections.abc import Callable, Mapping
from typing import Any

from bench.differential import mistakes, protocol
from bench.differential.filtering import Filters, sort_tree
from bench.differential.model import FILE, LOCALES, Type, compounds, scalars
from bench.differential.populating import Populates
from bench.differential.request import PUBLIC, Request, flatten
from bench.differential.values import PLAIN, Chance
from bench.differential.world import World

_FILTERS = (
    "never-published", "has-published-version", "modified", "unmodified", "never-published-document",
    "has-published-version-document", "published-without-draft", "published-with-draft",
)  # fmt: skip
_ASK = ("reader", "reader", "editor", "read-only", PUBLIC, "wrong-token")
V4 = (("Strapi-Response-Format", "v4"),)


class Reads:
    """Generator of random reads."""

    def __init__(self, world: World, chance: Chance) -> None:
        self.world, self.chance = world, chance
        self.filters, self.populates = Filters(world, chance), Populates(world, chance)

    def request(self, area: str) -> Request:
        """Return a request in an area."""
        if area == "builder":
            return Request("GET", self.chance.choice(self._described()), who=self.chance.choice(_ASK))
        if area == "http":
            return self._http()
        type_ = self._type(area)
        made: dict[str, Any] = {}
        headers = V4 if area == "v4" else ()
        parts = list(_PARTS[area])
        if area in ("mixed", "v4", "access"):
            parts = self.chance.sample(parts, self.chance.randint(1, 4))
        for part in parts:
            part(self, type_, made)
        path = type_.path
        one = (
            not type_.single and area not in ("sort", "pagination", "search") and self.chance.random() < 0.25
        )
        if one:
            path += f"/{self._document(type_)}"
            made = {k: v for k, v in made.items() if k not in ("sort", "pagination") or area == "errors"}
        query = [pair for name, tree in made.items() for pair in flatten(name, tree)]
        query = [(key, self._version(value, made)) for key, value in query]
        if area == "errors":
            query = mistakes.spoil(self.chance, type_, query)
        if area == "forms":
            query = list(protocol.with_other_indices(self.chance, tuple(query)))
        who = self.chance.choice(_ASK) if area == "access" else "full"
        return Request("GET", path, tuple(query), headers=headers, who=who)

    def _described(self) -> list[str]:
        """Return API paths whose responses describe the site."""
        builder, model = "/api/content-type-builder", self.world.model
        paths = [
            "/api/i18n/locales",
            f"{builder}/content-types",
            f"{builder}/components",
            "/api/nothing-here",
        ]
        paths += [f"{builder}/content-types/{uid}" for uid in (*model.types, "api::nope.nope", FILE)]
        return paths + [f"{builder}/components/{uid}" for uid in (*model.components, "no.such")]

    def _http(self) -> Request:
        types = sorted(self.world.model.types.values(), key=lambda type_: type_.uid)
        names = {type_.uid: [d.reference for d in self.world.of(type_.uid)] for type_ in types}
        return protocol.http_request(self.chance, types, names)

    def _type(self, area: str) -> Type:
        types = sorted(self.world.model.types.values(), key=lambda type_: type_.uid)
        if area in ("sort", "pagination", "search", "filters"):
            types = [type_ for type_ in types if not type_.single]
        if area == "zones":
            types = [type_ for type_ in types if self.populates.zones(type_)] or types
        if area == "locale" and self.chance.random() < 0.8:
            types = [type_ for type_ in types if type_.localized] or types
        if area == "drafts" and self.chance.random() < 0.8:
            types = [type_ for type_ in types if type_.drafts] or types
        weights = [1 + len(type_.attributes) for type_ in types]
        return self.chance.choices(types, weights)[0]

    def _document(self, type_: Type) -> str:
        found = [document.reference for document in self.world.of(type_.uid)]
        return self.chance.choice(found) if found and self.chance.random() < 0.95 else "none"

    def _version(self, value: str, made: dict[str, Any]) -> str:
        if not value.startswith("«id:"):
            return value
        _, name, status, locale = value.strip("«»").split(":")
        locale, status = made.get("locale", locale), made.get("status", status)
        there = (locale, status) in self.world.documents[name].versions
        return f"«id:{name}:{status}:{locale}»" if there else value

    def _fields(self, type_: Type, made: dict[str, Any]) -> None:
        made["fields"] = self.populates.fields(type_.attributes)

    def _populate(self, type_: Type, made: dict[str, Any]) -> None:
        made["populate"] = self.populates.tree(type_)

    def _lists(self, type_: Type, made: dict[str, Any]) -> None:
        """Convert the values of some of the parameters that accept lists to lists."""
        few = scalars(type_.attributes) or ["documentId"]
        names = compounds(type_.attributes)
        made["fields"] = self.chance.sample(few, min(len(few), self.chance.randint(1, 3)))
        made["sort"] = [f"{name}:desc" for name in self.chance.sample(few, min(len(few), 2))]
        if names and self.chance.random() < 0.6:
            made["populate"] = self.chance.sample(names, min(len(names), 2))
        conditions = [self.filters.tree(type_) for _ in range(2)]
        made["filters"] = {self.chance.choice(("$or", "$and")): conditions}
        for name in self.chance.sample(list(made), len(made) - self.chance.randint(1, 2)):
            del made[name]

    def _on(self, type_: Type, made: dict[str, Any]) -> None:
        made["populate"] = self.populates.on_tree(type_)

    def _filter(self, type_: Type, made: dict[str, Any]) -> None:
        made["filters"] = self.filters.tree(type_)

    def _sort(self, type_: Type, made: dict[str, Any]) -> None:
        made["sort"] = sort_tree(self.world, self.chance, type_.attributes)

    def _sort_sometimes(self, type_: Type, made: dict[str, Any]) -> None:
        if self.chance.random() < 0.4:
            self._sort(type_, made)

    def _pages(self, type_: Type, made: dict[str, Any]) -> None:
        c = self.chance
        number = c.choice
        if c.random() < 0.6:
            made["pagination"] = {
                "page": number((1, 1, 2, 3, 50, 0)),
                "pageSize": number((1, 2, 5, 10, 100, 500)),
            }
        else:
            made["pagination"] = {"start": number((0, 1, 3, 100)), "limit": number((1, 2, 5, 100, 500, -1))}
        if c.random() < 0.3:
            made["pagination"].pop(c.choice(list(made["pagination"])))
        if c.random() < 0.3:
            made["pagination"]["withCount"] = c.choice(("true", "false", "1", "0"))
        self._sort_sometimes(type_, made)

    def _locale(self, type_: Type, made: dict[str, Any]) -> None:
        made["locale"] = self.chance.choice((*LOCALES, *LOCALES, "*", "es"))

    def _status(self, type_: Type, made: dict[str, Any]) -> None:
        if self.chance.random() < 0.75:
            made["status"] = self.chance.choice(("draft", "draft", "published"))
        if self.chance.random() < 0.4:
            made["publicationFilter"] = self.chance.choice(_FILTERS)
        if self.chance.random() < 0.5:
            self._populate(type_, made)

    def _search(self, type_: Type, made: dict[str, Any]) -> None:
        said = [
            v for d in self.world.of(type_.uid) for v in d.said.values() if isinstance(v, str | int | float)
        ]
        # Exclude references, because a number that identifies a file would be different on each server.
        said = [value for value in said if not str(value).startswith("«")]
        word = (
            str(self.chance.choice(said))
            if said and self.chance.random() < 0.7
            else self.chance.choice(PLAIN)
        )
        cut = self.chance.randint(0, max(len(word) - 3, 0))
        made["_q"] = word[cut : cut + self.chance.randint(2, 12)]


_Part = Callable[[Reads, Type, dict[str, Any]], None]
_ALL: tuple[_Part, ...] = (
    Reads._filter, Reads._sort, Reads._populate, Reads._fields, Reads._pages, Reads._locale, Reads._status,
)  # fmt: skip
_PARTS: Mapping[str, tuple[_Part, ...]] = {
    "filters": (Reads._filter,),
    "sort": (Reads._sort,),
    "populate": (Reads._populate,),
    "fields": (Reads._fields,),
    "pagination": (Reads._pages,),
    "locale": (Reads._locale, Reads._populate),
    "drafts": (Reads._status,),
    "search": (Reads._search,),
    "v4": _ALL,
    "errors": (Reads._filter, Reads._populate, Reads._sort_sometimes),
    "mixed": _ALL,
    "access": _ALL,
    "builder": (),
    "forms": (Reads._lists,),
    "zones": (Reads._on,),
    "http": (),
}
# weights of the areas
AREAS: Mapping[str, int] = {
    "filters": 20, "sort": 10, "populate": 20, "fields": 4, "pagination": 6, "locale": 8,
    "drafts": 8, "search": 4, "v4": 6, "errors": 8, "mixed": 12,
    "access": 8, "builder": 2, "forms": 8, "zones": 6, "http": 8,
}  # fmt: skip
