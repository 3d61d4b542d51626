"""Generator of queries with one random mistake each."""

from bench.differential.model import Type, scalars
from bench.differential.values import Chance

_Pairs = list[tuple[str, str]]
_ADDED: tuple[tuple[str, str], ...] = (
    ("filters[nope]", "1"),
    ("filters[nope][$eq]", "1"),
    ("filters[$nope]", "1"),
    ("filters", "text"),
    ("filters[$and]", "text"),
    ("filters[$or][0]", "text"),
    ("filters[$not]", "1"),
    ("filters[id][$eq]", "abc"),
    ("filters[documentId][$nope]", "1"),
    ("filters[createdAt][$gt]", "yesterday"),
    ("filters[createdBy][id]", "1"),
    ("filters[localizations][id]", "1"),
    ("sort", "nope"),
    ("sort", "nope:asc"),
    ("sort", "createdAt:up"),
    ("sort", ":asc"),
    ("sort", ""),
    ("sort[0]", ""),
    ("sort[createdAt]", "up"),
    ("sort[nope]", "asc"),
    ("sort", "createdBy.id"),
    ("fields", "nope"),
    ("fields[0]", "nope"),
    ("fields[0]", "*"),
    ("fields[a]", "id"),
    ("fields", "id,nope"),
    ("populate", "nope"),
    ("populate", "nope.nope"),
    ("populate[nope]", "true"),
    ("populate[0]", "nope"),
    ("populate", "true"),
    ("populate", "false"),
    ("populate[0]", ""),
    ("populate[createdBy]", "true"),
    ("populate", "localizations"),
    ("pagination[page]", "abc"),
    ("pagination[page]", "-1"),
    ("pagination[page]", "0"),
    ("pagination[page]", "1.5"),
    ("pagination[pageSize]", "abc"),
    ("pagination[pageSize]", "0"),
    ("pagination[pageSize]", "-1"),
    ("pagination[start]", "-1"),
    ("pagination[start]", "abc"),
    ("pagination[limit]", "abc"),
    ("pagination[limit]", "0"),
    ("pagination[nope]", "1"),
    ("pagination[withCount]", "maybe"),
    ("pagination", "5"),
    ("locale", "zz"),
    ("locale", ""),
    ("locale", "EN"),
    ("locale[0]", "en"),
    ("locale", "not a locale"),
    ("status", "published "),
    ("status", ""),
    ("status[0]", "draft"),
    ("publicationFilter", "nope"),
    ("publicationFilter", ""),
    ("_q", ""),
    ("_q[0]", "tide"),
    ("nope", "1"),
    ("nope[a][b]", "1"),
    ("page", "2"),
    ("limit", "1"),
    ("where[id]", "1"),
    ("hasPublishedVersion", "true"),
)
_OPERATORS = (
    "$eq", "$eqi", "$ne", "$lt", "$gte", "$in", "$notIn", "$between", "$contains", "$startsWith",
    "$null", "$notNull", "$not", "$and", "$or",
)  # fmt: skip
_OPERANDS = (
    "",
    "abc",
    "5",
    "1.5",
    "-1",
    "true",
    "null",
    "2024-02-30",
    "2024-02-03",
    "[]",
    "{}",
    "%",
    "_",
    "\\",
)


def spoil(chance: Chance, type_: Type, query: _Pairs) -> _Pairs:
    # Some of these only look like mistakes.
    roll = chance.random()
    if roll < 0.45 or not query:
        added = chance.choice(_ADDED)
        kept = [pair for pair in query if pair[0].partition("[")[0] != added[0].partition("[")[0]]
        return [*chance.sample(kept, min(1, len(kept))), added]
    if roll < 0.7:
        name = chance.choice([*scalars(type_.attributes), *type_.attributes])
        operator, operand = chance.choice(_OPERATORS), chance.choice(_OPERANDS)
        index = "[0]" if chance.random() < 0.2 else ""
        return [(f"filters[{name}][{operator}]{index}", operand)]
    i = chance.randrange(len(query))
    key, value = query[i]
    return [*query[:i], _changed(chance, key, value), *query[i + 1 :]]


def _changed(chance: Chance, key: str, value: str) -> tuple[str, str]:
    names = key.rstrip("]").replace("]", "").split("[")
    roll = chance.random()
    if roll < 0.3 and len(names) > 1:  # This removes a level.
        del names[chance.randrange(1, len(names))]
    elif roll < 0.6:  # This adds a level.
        names.insert(chance.randint(1, len(names)), chance.choice(("0", "nope", "$eq", "name", "id")))
    elif roll < 0.8:
        names[-1] = chance.choice(("nope", "$nope", "id", "password", "0"))
    else:
        value = chance.choice(("", "nope", "5", "*", "a.b", "true", "x" * 50))
    return names[0] + "".join(f"[{name}]" for name in names[1:]), value
