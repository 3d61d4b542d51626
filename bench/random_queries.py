"""Random queries, among which `bench.worst` searches for the most expensive ones."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from bench.sites import WORDS

# maximum number of steps in a path through relations; the remaining nesting levels are needed for brackets
LEVELS = 18
MOST_PARTS = 900
RELATIONS = {
    "articles": {"author": "authors", "category": "categories", "tags": "tags", "related": "articles"},
    "authors": {"articles": "articles"},
    "categories": {"articles": "articles"},
    "tags": {"articles": "articles"},
}
SEARCH, FILES = "/search", "/api/upload/files"
_TARGETS = [*RELATIONS, "articles", "articles", SEARCH, FILES]
_OPERATORS = (
    "$eq",
    "$ne",
    "$contains",
    "$containsi",
    "$notContainsi",
    "$startsWith",
    "$endsWithi",
    "$lt",
    "$gte",
)
_LOGIC = ("", "[$not]", "[$or][{}]", "[$and][{}]", "[$or][{}][$not]")
_OTHER = (
    "locale=*", "pagination[pageSize]=100", "populate=*", "publicationFilter=modified", "fields=id",
    "pagination[page]=90", f"filters[id][$in]={','.join(map(str, range(90)))}",
)  # fmt: skip


@dataclass(frozen=True)
class Query:
    """A query string, and the plural API id or another path that it is for."""

    target: str
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        return self.target if self.target.startswith("/") else f"/api/{self.target}"

    @property
    def string(self) -> str:
        return "&".join(quote(part, safe="[]$=:,.*_-") for part in self.parts)


class Chance:
    """Generator of random queries. The same seed produces the same queries."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.pick = self._random.choice

    def query(self) -> Query:
        target = self.pick(_TARGETS)
        return Query(target, tuple(self._part(target) for _ in range(self.pick([1, 2, 4, 8]))))

    def changed(self, query: Query) -> Query:
        """Return a copy of the query with a part removed, or with a few or very many parts added."""
        parts, how = list(query.parts), self.pick(["less", "more", "more", "many"])
        if how == "less":
            parts.remove(self.pick(parts))
        elif how == "more":
            parts.extend(self._part(query.target) for _ in range(self.pick([1, 2, 5])))
        else:
            make = self.pick(self._kinds(query.target))
            parts.extend(make(query.target) for _ in range(self.pick([10, 50, 200])))
        return Query(query.target, tuple(parts[-MOST_PARTS:]) or query.parts)

    def _part(self, target: str) -> str:
        return self.pick(self._kinds(target))(target)

    def _kinds(self, target: str) -> list[Callable[[str], str]]:
        if target == SEARCH:
            return [lambda _: f"q={self._words([1, 5, 20, 60])[:490]}"]
        if target == FILES:
            return [lambda _: f"filters[$or][{self._number()}][name][$contains]={self._words([1])}"]
        return [
            self._populate,
            self._filter,
            self._sort,
            lambda _: self.pick([*_OTHER, f"_q={self._words([1, 2])}"]),
        ]

    def _number(self) -> int:
        return self._random.randrange(300)

    def _words(self, counts: list[int]) -> str:
        return " ".join(self._random.choices(WORDS, k=self.pick(counts))) + self.pick(["", "", "zz"])

    def _steps(self, target: str, counts: list[int]) -> tuple[list[str], str]:
        steps = []
        for _ in range(self.pick(counts)):
            steps.append(self.pick(list(RELATIONS[target])))
            target = RELATIONS[target][steps[-1]]
        return steps, target

    def _column(self, target: str) -> str:
        return self.pick(
            ["title", "slug", "summary", "body"] if target == "articles" else ["name", "slug", "bio"]
        )

    def _condition(self, target: str, counts: list[int]) -> str:
        steps, end = self._steps(target, counts)
        path = "".join(f"[{name}]" for name in (*steps, self._column(end)))
        return f"{path}[{self.pick(_OPERATORS)}]={self._words([0, 1, 1, 2])}"

    def _filter(self, target: str) -> str:
        return (
            f"filters{self.pick(_LOGIC).format(self._number())}{self._condition(target, [0, 0, 1, 2, 6, 14])}"
        )

    def _sort(self, target: str) -> str:
        steps, end = self._steps(target, [0, 1, 2, 6, LEVELS])
        path = ".".join((*steps, self._column(end)))
        return f"sort[{self._random.randrange(10)}]={path}:{self.pick(['asc', 'desc'])}"

    def _populate(self, target: str) -> str:
        if self.pick([True, False]):
            return f"populate[{self._number()}]={'.'.join(self._steps(target, [1, 2, 3, 6, LEVELS])[0])}"
        steps, end = self._steps(target, [1, 1, 2, 3, 8])
        options = ["[count]=true", "[fields]=id", f"[sort]={self._column(end)}", "[populate]=*"]
        option = self.pick([*options, f"[filters]{self._condition(end, [0, 1, 2])}"])
        return f"populate{'[populate]'.join(f'[{name}]' for name in steps)}{option}"
