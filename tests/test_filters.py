"""Filters: every operator on every kind of attribute, null, negation, relations, and what is refused."""

import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.operators import OPERATORS
from server.schema import ATTRIBUTE_TYPES
from tests.conftest import MakeApi
from tests.sites import (
    INTEGER,
    STRING,
    Api,
    Files,
    bracketed,
    collection,
    component,
    documents,
    load,
    relation,
)

# Of each type, three values in ascending order, as a file has them.
VALUES: Mapping[str, tuple[Any, Any, Any]] = {
    "string": ("Alpha", "alphabet", "beta"),
    "text": ("A line", "a line", "two\nlines"),
    "richtext": ("# A", "# a", "b"),
    "enumeration": ("blue", "green", "red"),
    "email": ("A@x.org", "a@x.org", "b@x.org"),
    "uid": ("a", "a-1", "b"),
    "date": ("2024-01-02", "2024-02-01", "2024-11-30"),
    "time": ("09:00:00.000", "10:00:00.000", "10:00:00.500"),
    "datetime": ("2024-01-02T03:04:05.000Z", "2024-01-02T03:04:05.006Z", "2025-01-01T00:00:00.000Z"),
    "timestamp": ("2024-01-02T03:04:05.000Z", "2024-01-02T03:04:05.006Z", "2025-01-01T00:00:00.000Z"),
    "integer": (-3, 5, 10),
    "biginteger": (5, 10, 9007199254740993),
    "float": (-1.5, 2, 10.25),
    "decimal": (-1.5, 9.1, 10.1),
    "boolean": (False, True, True),
}
NAMES = ("low", "mid", "high", "none")


def attribute_of(kind: str) -> dict[str, Any]:
    return {"type": kind, "enum": ["blue", "green", "red"]} if kind == "enumeration" else {"type": kind}


def rows(kind: str) -> dict[str, Any]:
    return {name: {"v": value} for name, value in zip(NAMES, (*VALUES[kind], None), strict=True)}


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Api:
    """A site with one content type for each type of attribute, and four documents each."""
    files: dict[str, Any] = {}
    for kind in VALUES:
        files |= collection(f"a-{kind}", {"v": attribute_of(kind)}) | documents(f"a-{kind}s", **rows(kind))
    return Api.of(load(tmp_path_factory.mktemp("typed"), files))


def shown(value: Any) -> str:
    """A value as text operators see it, and as a query has it."""
    return value if isinstance(value, str) else json.dumps(value)


# What each operator should find, said once more and plainly: (value, operand) → whether it matches.
SENTENCES: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda v, o: v == o,
    "$eqi": lambda v, o: shown(v).lower() == shown(o).lower(),
    "$ne": lambda v, o: v != o,
    "$nei": lambda v, o: shown(v).lower() != shown(o).lower(),
    "$lt": lambda v, o: v < o,
    "$lte": lambda v, o: v <= o,
    "$gt": lambda v, o: v > o,
    "$gte": lambda v, o: v >= o,
    "$in": lambda v, o: v == o,
    "$notIn": lambda v, o: v != o,
    "$between": lambda v, o: v == o,
    "$contains": lambda v, o: shown(o) in shown(v),
    "$containsi": lambda v, o: shown(o).lower() in shown(v).lower(),
    "$notContains": lambda v, o: shown(o) not in shown(v),
    "$notContainsi": lambda v, o: shown(o).lower() not in shown(v).lower(),
    "$startsWith": lambda v, o: shown(v).startswith(shown(o)),
    "$startsWithi": lambda v, o: shown(v).lower().startswith(shown(o).lower()),
    "$endsWith": lambda v, o: shown(v).endswith(shown(o)),
    "$endsWithi": lambda v, o: shown(v).lower().endswith(shown(o).lower()),
}


@pytest.mark.parametrize("kind", VALUES)
def test_every_operator_on_every_type(typed: Api, kind: str) -> None:
    values = dict(zip(NAMES[:3], VALUES[kind], strict=True))
    for (operator, matches), operand in itertools.product(SENTENCES.items(), values.values()):
        given = [shown(operand)] * 2 if operator == "$between" else shown(operand)
        query = bracketed({"filters": {"v": {operator: given}}})
        wanted = [name for name, value in values.items() if matches(value, operand)]
        assert typed.get(f"/api/a-{kind}s?{query}").ids == wanted, (operator, operand)


@pytest.mark.parametrize("kind", VALUES)
def test_null_is_seen_by_null_operators_alone(typed: Api, kind: str) -> None:
    path = f"/api/a-{kind}s?filters[v]"
    for yes in ("true", "t", "1"):
        assert typed.get(f"{path}[$null]={yes}").ids == ["none"]
        assert typed.get(f"{path}[$notNull]={yes}").ids == ["low", "mid", "high"]
    assert typed.get(f"{path}[$null]=false").ids == ["low", "mid", "high"]
    assert typed.get(f"{path}[$notNull]=f").ids == ["none"]
    for operator in OPERATORS.keys() - {"$null", "$notNull"}:
        operand = [shown(VALUES[kind][0])] * (2 if operator == "$between" else 1)
        for filters in ({"v": {operator: operand}}, {"$not": {"v": {operator: operand}}}):
            assert "none" not in typed.get(f"/api/a-{kind}s?{bracketed({'filters': filters})}").ids


def test_the_tables_are_whole() -> None:
    scalar = {t.name for t in ATTRIBUTE_TYPES.values() if t.group in ("string", "date", "number")}
    assert set(VALUES) == scalar - {"password"} | {"boolean"}
    assert SENTENCES.keys() | {"$null", "$notNull"} == OPERATORS.keys()


def test_json_is_compared_as_its_text(make_api: MakeApi) -> None:
    attributes = {"j": {"type": "json"}, "a": {"type": "array"}, "b": {"type": "blocks"}}
    blocks = [{"type": "paragraph", "children": [{"type": "text", "text": "Hello"}]}]
    made = documents("notes", one={"j": {"k": "Été"}, "a": [1, "x"], "b": blocks}, two={})
    api = make_api({**collection("note", attributes), **made})
    for query in (
        "filters[j][$contains]=Été",
        "filters[j][$containsi]=éTÉ",
        'filters[j]={"k":"Été"}',
        'filters[a]=[1,"x"]',
        "filters[a][$startsWith]=[1",
        "filters[b][$contains]=Hello",
        "filters[j][$notNull]=true",
    ):
        assert api.get(f"/api/notes?{query}").ids == ["one"], query
    assert api.get("/api/notes?filters[j][$null]=true").ids == ["two"]


# --- any filter, against a plain reading of SQL --------------------------------------------------

PEOPLE = {"ann": {"name": "Ann"}, "ben": {"name": "Ben"}, "nobody": {"name": None}}
TAGS = {
    "red": {"name": "red", "n": 1},
    "Green": {"name": "Green", "n": None},
    "blue": {"name": "blue", "n": 2},
}
THINGS: Mapping[str, dict[str, Any]] = {
    "t0": {"s": "a", "i": 1, "owner": "ann", "tags": ["red"], "parts": [{"n": 1}, {"n": 2}]},
    "t1": {"s": "A", "i": 2, "owner": "ann", "tags": ["red", "Green"], "parts": []},
    "t2": {"s": None, "i": 3, "owner": "ben", "tags": [], "parts": [{"n": None}]},
    "t3": {"s": "b", "i": None, "owner": None, "tags": ["blue", "Green"], "parts": [{"n": 2}]},
    "t4": {"s": "ab", "i": 1, "owner": "nobody", "tags": ["red", "Green", "blue"], "parts": [{"n": 1}]},
    "t5": {"s": None, "i": None, "owner": "gone", "tags": ["gone"], "parts": []},
}
THING = {
    "s": STRING,
    "i": INTEGER,
    "owner": relation("manyToOne", "person"),
    "tags": relation("manyToMany", "tag", inversedBy="things"),
    "parts": {"type": "component", "repeatable": True, "component": "x.part"},
}
THING_SITE: Files = {
    **collection("thing", THING),
    **collection("person", {"name": STRING}),
    **collection(
        "tag", {"name": STRING, "n": INTEGER, "things": relation("manyToMany", "thing", mappedBy="tags")}
    ),
    **component("x.part", {"n": INTEGER}),
    **documents("things", **THINGS),
    **documents("persons", **PEOPLE),
    **documents("tags", **TAGS),
}


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return Api.of(load(tmp_path_factory.mktemp("things"), THING_SITE))


def operators(*values: Any) -> Any:
    one = st.sampled_from(values)
    return st.one_of(
        st.builds(lambda o, v: {o: v}, st.sampled_from(["$eq", "$ne", "$lt", "$gte", "$notContains"]), one),
        st.builds(
            lambda o, v: {o: v}, st.sampled_from(["$in", "$notIn"]), st.lists(one, min_size=1, max_size=2)
        ),
        st.builds(
            lambda o, v: {o: v}, st.sampled_from(["$null", "$notNull"]), st.sampled_from(["true", "false"])
        ),
        st.builds(lambda v: {"$not": {"$eq": v}}, one),
        one,
    )


def logic(leaf: Any) -> Any:
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(lambda f: {"$not": f}, inner),
            st.builds(
                lambda o, f: {o: f}, st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1, max_size=2)
            ),
        ),
        max_leaves=3,
    )


strings, numbers = operators("a", "A", "b", "red"), operators("1", "2", "3")
in_person = logic(st.builds(lambda f: {"name": f}, operators("Ann", "Ben")))
in_tag = logic(
    st.one_of(
        st.builds(lambda f: {"name": f}, operators("red", "Green")),
        st.builds(lambda f: {"n": f}, numbers),
        st.builds(lambda f, g: {"name": f, "n": g}, operators("red", "blue"), numbers),
    )
)
absent = st.sampled_from([{"$null": "true"}, {"$null": "false"}, {"$notNull": "true"}])
filters = logic(
    st.one_of(
        st.builds(lambda f: {"s": f}, strings),
        st.builds(lambda f: {"i": f}, numbers),
        st.builds(lambda f, g: {"s": f, "i": g}, strings, numbers),
        st.builds(lambda f: {"owner": f}, in_person | absent),
        st.builds(lambda f: {"tags": f}, in_tag | absent),
        st.builds(lambda f: {"parts": f}, st.builds(lambda f: {"n": f}, numbers) | absent),
    )
)

JOINS = {"owner": PEOPLE, "tags": TAGS, "parts": None}
NULL_ROW: dict[str, Any] = {}


def joined(row: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The rows that a left join of an attribute gives for a row: one of nulls where there is none."""
    value, table = row.get(name), JOINS[name]
    found = value if isinstance(value, list) else [value]
    rows_ = found if table is None else [table[i] for i in found if i in table]
    return rows_ or [NULL_ROW]


def verdicts(filter_: Any, row: dict[str, Any]) -> set[bool | None]:
    """What a condition can come to on the joined rows of a row, in three-valued logic."""
    parts = []
    for key, value in filter_.items():
        if key == "$not":
            parts.append({None if v is None else not v for v in verdicts(value, row)})
        elif key in ("$and", "$or"):
            both = all_of if key == "$and" else any_of
            parts.append(combined([verdicts(item, row) for item in value], both))
        elif key in JOINS and value.keys() & {"$null", "$notNull"}:
            ((name, flag),) = value.items()
            parts.append({(joined(row, key) == [NULL_ROW]) == ((name == "$null") == (flag == "true"))})
        elif key in JOINS:
            parts.append(set().union(*(verdicts(value, other) for other in joined(row, key))))
        else:
            parts.append({compared(row.get(key), value)})
    return combined(parts, all_of)


def combined(parts: list[set[bool | None]], how: Callable[[Any], bool | None]) -> set[bool | None]:
    return {how(choice) for choice in itertools.product(*parts)}


def all_of(verdicts_: tuple[bool | None, ...]) -> bool | None:
    return False if False in verdicts_ else None if None in verdicts_ else True


def any_of(verdicts_: tuple[bool | None, ...]) -> bool | None:
    return True if True in verdicts_ else None if None in verdicts_ else False


def compared(value: Any, condition: Any) -> bool | None:
    """One column against what stands behind it in a filter."""
    if not isinstance(condition, dict):
        condition = {"$eq": condition}
    ((operator, operand),) = condition.items()
    if operator == "$not":
        inner = compared(value, operand)
        return None if inner is None else not inner
    if operator in ("$null", "$notNull"):
        return (value is None) == ((operator == "$null") == (operand == "true"))
    if value is None:
        return None
    if isinstance(value, int) and operator != "$notContains":
        operand = [int(o) for o in operand] if isinstance(operand, list) else int(operand)
    return {
        "$eq": lambda: value == operand,
        "$ne": lambda: value != operand,
        "$lt": lambda: value < operand,
        "$gte": lambda: value >= operand,
        "$in": lambda: value in operand,
        "$notIn": lambda: value not in operand,
        "$notContains": lambda: operand not in str(value),
    }[operator]()


@given(filter_=filters)
def test_any_filter_means_what_it_means_in_sql(things: Api, filter_: dict[str, Any]) -> None:
    wanted = [name for name, row in THINGS.items() if True in verdicts(filter_, row)]
    assert things.get(f"/api/things?{bracketed({'filters': filter_})}").ids == wanted
