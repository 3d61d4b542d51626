"""Filters: every operator on every attribute type, nulls, negation, relations, invalid filters."""

import itertools
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.query.operators import OPERATORS
from server.schema.model import ATTRIBUTE_TYPES
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

# Three values for each attribute type, in ascending order, as written in files.
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
    """A site with a content type for each attribute type. Each content type has four documents."""
    files: dict[str, Any] = {}
    for kind in VALUES:
        files |= collection(f"a-{kind}", {"v": attribute_of(kind)}) | documents(f"a-{kind}s", **rows(kind))
    return Api.of(load(tmp_path_factory.mktemp("typed"), files))


def shown(value: Any) -> str:
    """Return a value as a string, as text operators and queries see it."""
    return value if isinstance(value, str) else json.dumps(value)


# An independent definition of each operator: a function of (value, operand) that returns whether it matches.
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
def test_only_null_operators_match_null(typed: Api, kind: str) -> None:
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


def test_the_tables_are_complete() -> None:
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


# --- random filters, compared with SQL semantics -------------------------------------------------

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
    """Return the rows of a SQL left join for an attribute: a single row of nulls if the attribute is
    empty.
    """
    value, table = row.get(name), JOINS[name]
    found = value if isinstance(value, list) else [value]
    rows_ = found if table is None else [table[i] for i in found if i in table]
    return rows_ or [NULL_ROW]


def verdicts(filter_: Any, row: dict[str, Any]) -> set[bool | None]:
    """Return the possible results of a filter on the joined rows, in SQL's three-valued logic."""
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
    """Evaluate the right-hand side of a filter on one column."""
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
def test_any_filter_matches_like_sql(things: Api, filter_: dict[str, Any]) -> None:
    wanted = [name for name, row in THINGS.items() if True in verdicts(filter_, row)]
    assert things.get(f"/api/things?{bracketed({'filters': filter_})}").ids == wanted


# --- forms of filters ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("filters[i]=1", ["t0", "t4"]),
        ("filters[i][0]=1&filters[i][1]=3", ["t0", "t2", "t4"]),
        ("filters[i][]=1&filters[i][]=3", ["t0", "t2", "t4"]),
        ("filters[i]=1&filters[i]=3", ["t0", "t2", "t4"]),
        ("filters[i][$eq][0]=1&filters[i][$eq][1]=3", ["t0", "t2", "t4"]),
        ("filters[i][$ne][0]=1&filters[i][$ne][1]=3", ["t1"]),
        ("filters[i][$in]=2", ["t1"]),
        ("filters[i][0][$gt]=1&filters[i][0][$lt]=3", ["t1"]),
        ("filters[0][i]=1&filters[1][s]=a", ["t0"]),
        ("filters[$and][0][i]=1&filters[$and][1][s]=a", ["t0"]),
        ("filters[$or][0][s]=b&filters[$or][1][s]=A", ["t1", "t3"]),
        ("filters[$or][s]=b", ["t3"]),
        ("filters[s][$or][0]=a&filters[s][$or][1][$eq]=b", ["t0", "t3"]),
        ("filters[s][$not][$in][0]=a&filters[s][$not][$in][1]=b", ["t1", "t4"]),
        ("filters[s][$eq]", ["t2", "t5"]),
        ("filters[s]", ["t2", "t5"]),
        ("filters[s][$ne]", ["t0", "t1", "t3", "t4"]),
        ("filters[s]=", []),
        ("filters[i]=+1", ["t0", "t4"]),
        ("filters=", ["t0", "t1", "t2", "t3", "t4", "t5"]),
        ("filters[documentId]=t3", ["t3"]),
        ("filters[locale]=en&filters[i]=2", ["t1"]),
        ("filters[createdAt][$lt]=2024-01-01T00:00:02Z", ["t0", "t1"]),
        ("filters[createdAt][$gt]=1704067203000", ["t4", "t5"]),
        ("filters[createdAt][$gt]=2024-01-01", ["t1", "t2", "t3", "t4", "t5"]),
        ("filters[owner]=ann", ["t0", "t1"]),
        (f"filters[owner]={'9' * 5000}", []),
        ("filters[owner][$eq]=ann", ["t0", "t1"]),
        ("filters[owner][$ne]=ann", ["t2", "t4"]),
        ("filters[owner][0]=ann&filters[owner][1]=ben", ["t0", "t1", "t2"]),
        ("filters[owner][$notIn][0]=ann", ["t2", "t4"]),
        ("filters[owner][$not][name]=Ann", ["t2"]),
        ("filters[owner]", ["t3", "t5"]),
        ("filters[owner][id][$null]=true", ["t3", "t5"]),
        ("filters[owner][id][$notNull]=true", ["t0", "t1", "t2", "t4"]),
        ("filters[tags]=red", ["t0", "t1", "t4"]),
        ("filters[owner][$not]=ann", ["t2", "t4"]),
        ("filters[owner][$not][0]=ann", ["t2", "t4"]),
        ("filters[tags][0][name]=red", ["t0", "t1", "t4"]),
        ("filters[tags][things][s]=b", ["t1", "t3", "t4"]),
        ("filters[parts][n]=2", ["t0", "t3"]),
        ("filters[parts][$null]=true", ["t1", "t5"]),
        ("filters[$not][parts][$null]=true", ["t0", "t2", "t3", "t4"]),
    ],
)
def test_every_form(things: Api, query: str, wanted: list[str]) -> None:
    assert things.get(f"/api/things?{query}").ids == wanted


def test_a_relation_is_filtered_by_numeric_id(things: Api) -> None:
    number = things.get("/api/persons/ann").data["id"]
    assert things.get(f"/api/things?filters[owner]={number}").ids == ["t0", "t1"]
    assert things.get(f"/api/things?filters[owner][id]={number}").ids == ["t0", "t1"]


def test_a_document_id_of_digits_is_a_document_id(make_api: MakeApi) -> None:
    made = documents("years", **{"2023": {}, "2024": {}}) | documents(
        "posts", a={"year": "2023"}, b={"year": "2024"}, c={}
    )
    schema = collection("year", {}) | collection("post", {"year": relation("manyToOne", "year")})
    api = make_api({**schema, **made})
    assert api.get("/api/posts?filters[year]=2024").ids == ["b"]
    assert api.get("/api/posts?filters[year][$ne]=2024").ids == ["a"]
    assert api.get("/api/posts?filters[$not][year]=2024").ids == ["a"]
    assert api.get("/api/posts?filters[year][$in][0]=2024&filters[year][$in][1]=2023").ids == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "message", "key", "path"),
    [
        ("filters[zzz]=1", "Invalid key zzz", "zzz", None),
        ("filters[owner][zzz]=1", "Invalid key zzz at owner", "zzz", "owner"),
        ("filters[owner][name][zzz]=1", "Invalid key zzz at owner.name", "zzz", "owner.name"),
        ("filters[i][$zzz]=1", "Invalid key $zzz at i", "$zzz", "i"),
        ("filters[$zzz]=1", "Invalid key $zzz", "$zzz", None),
        ("filters[$eq]=1", "Invalid key $eq", "$eq", None),
        ("filters[$or][0][zzz]=1", "Invalid key zzz", "zzz", None),
        ("filters[i][$or][0][zzz]=1", "Invalid key zzz at i", "zzz", "i"),
        ("filters[parts][zzz]=1", "Invalid key zzz at parts", "zzz", "parts"),
        ("filters[i]=abc&filters[zzz]=1", "Invalid key zzz", "zzz", None),
        ("filters[$eq]=1&filters[zzz]=1", "Invalid key zzz", "zzz", None),
        ("filters[createdBy][id]=1", "Invalid key createdBy", "createdBy", "createdBy"),
        (
            "filters[owner][updatedBy][id]=1",
            "Invalid key updatedBy at owner.updatedBy",
            "updatedBy",
            "owner.updatedBy",
        ),
        ("filters[parts][createdBy][id]=1", "Invalid key createdBy at parts", "createdBy", "parts"),
        ("filters[$or][0]=text&filters[$or][1][zzz]=1", "Invalid key zzz", "zzz", None),
        ("filters[owner][$null]=x&filters[owner][zzz]=1", "Invalid key zzz at owner", "zzz", "owner"),
    ],
)
def test_unknown_keys_are_named_in_errors(
    things: Api, query: str, message: str, key: str, path: str | None
) -> None:
    error = things.get(f"/api/things?{query}").error
    assert (error["status"], error["name"], error["message"]) == (400, "ValidationError", message)
    details = {"key": key, "path": path, "source": "query", "param": "filters"}
    assert {name: value for name, value in error["details"].items() if name != "suggestion"} == details


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("filters=abc", "must be an object"),
        ("filters[i]=abc", '"abc" at i: expected a whole number'),
        ("filters[i]=1.5", "whole number"),
        ("filters[i]=", "whole number"),
        (f"filters[i]={'9' * 5000}", "whole number"),
        ("filters[i][$in][0]=1&filters[i][$in][1]=x", '"x" at i'),
        ("filters[i][$between]=1", "two values"),
        ("filters[i][$between][0]=1&filters[i][$between][1]=2&filters[i][$between][2]=3", "two values"),
        ("filters[i][$gt][0]=1&filters[i][$gt][1]=2", "one value for $gt"),
        ("filters[i][$null]=maybe", "true or false"),
        ("filters[i][$null]", "true or false"),
        ("filters[owner][$null]=2", "true or false"),
        ("filters[createdAt]=yesterday", "timestamp"),
        ("filters[createdAt]=2024-13-01", "timestamp"),
        ("filters[createdAt][$gt]=2023-02-29", "timestamp"),
        ("filters[s][$eq][a]=1", "a single value"),
        ("filters[$or]=1", "list of conditions"),
        ("filters[$not]=1", "Invalid key 1"),
        ("filters[$not]=", "Invalid"),
        ("filters[$and][0]=1", "Invalid key 1"),
        ("filters[owner][$gt][x]=1", "owner"),
    ],
)
def test_invalid_filters_are_refused(things: Api, query: str, words: str) -> None:
    error = things.get(f"/api/things?{query}").error
    assert (error["status"], error["name"]) == (400, "ValidationError")
    assert words in error["message"]


# --- attributes that can't be filtered by --------------------------------------------------------


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Api:
    private = {"type": "string", "private": True}
    attributes = {
        "name": STRING,
        "pw": {"type": "password"},
        "hidden": private,
        "part": {"type": "component", "component": "x.part"},
        "zone": {"type": "dynamiczone", "components": ["x.part"]},
        "friend": relation("manyToOne", "person"),
        "secretly": relation("manyToOne", "person", private=True),
        "anything": {"type": "relation", "relation": "morphToOne"},
    }
    files = {
        **collection("person", attributes),
        **component("x.part", {"open": STRING, "pw": {"type": "password"}, "hidden": private}),
        **documents(
            "persons", ann={"name": "Ann", "pw": "tulip", "hidden": "tulip", "part": {"hidden": "tulip"}}
        ),
    }
    return Api.of(load(tmp_path_factory.mktemp("secrets"), files))


@pytest.mark.parametrize(
    "way",
    ["pw", "hidden", "part.pw", "part.hidden", "friend.pw", "friend.hidden", "friend.part.pw", "secretly"],
)
def test_secrets_can_not_be_filtered_or_sorted_by(secrets: Api, way: str) -> None:
    brackets = "".join(f"[{name}]" for name in way.split("."))
    value = "[name]=Ann" if way == "secretly" else "=tulip"
    for query, param in (
        (f"filters{brackets}{value}", "filters"),
        (f"filters{brackets}[$null]=true", "filters"),
        (f"filters[$or][0]{brackets}{value}", "filters"),
        (f"sort={way}", "sort"),
        (f"sort{brackets}=asc", "sort"),
        (f"populate[friend][filters]{brackets}{value}", "populate"),
        (f"populate[friend][sort]={way}", "populate"),
    ):
        error = secrets.get(f"/api/persons?{query}").error
        assert error["message"].startswith("Invalid key"), query
        assert error["details"] == {"key": way.split(".")[-1], "path": way, "source": "query", "param": param}


def test_relations_to_any_type_can_not_be_filtered_by(secrets: Api) -> None:
    for query in ("filters[zone][open]=x", "filters[anything][name]=x", "filters[zone][$null]=true"):
        assert secrets.get(f"/api/persons?{query}").error["status"] == 400


# --- locales -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Api:
    """A site with localized pages, whose titles differ by locale. Their categories have no locales."""
    page = {
        "title": {**STRING, "pluginOptions": {"i18n": {"localized": True}}},
        "category": relation("manyToOne", "category", inversedBy="pages"),
        "themes": relation("manyToMany", "theme", mappedBy="pages"),
    }
    files: dict[str, Any] = {
        **collection("page", page, localized=True),
        **collection("category", {"pages": relation("oneToMany", "page", mappedBy="category")}),
        **collection("theme", {"pages": relation("manyToMany", "page", inversedBy="themes")}),
        **documents("categorys", c={}, d={}),
        **documents("themes", x={"pages": ["one", "two"]}),
        "site.yaml": "locales: {default: en, available: [en, fr]}",
    }
    for name, en, fr in (("one", "Sea", "Mer"), ("two", "Land", "Terre")):
        files |= {
            f"content/pages/{name}.md": f"---\ntitle: {en}\ncategory: c\n---\n",
            f"content/pages/{name}.fr.md": f"---\ntitle: {fr}\ncategory: c\n---\n",
        }
    return Api.of(load(tmp_path_factory.mktemp("pages"), files))


@pytest.mark.parametrize("locale", ["en", "fr"])
def test_a_filter_through_a_type_without_locales_searches_every_locale(pages: Api, locale: str) -> None:
    for title in ("Sea", "Mer"):
        path = f"/api/pages?locale={locale}&filters[category][pages][title]={title}"
        assert sorted(pages.get(path).ids) == ["one", "two"]
        # A relation stored in a document without locales points to the default locale.
        path = f"/api/pages?locale={locale}&filters[themes][pages][title]={title}"
        assert sorted(pages.get(path).ids) == (["one", "two"] if title == "Sea" else [])


# --- partial dates -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("2024", "2024-01-01T00:00:00.000Z"),
        ("2024-05", "2024-05-01T00:00:00.000Z"),
        ("202405", "2024-05-01T00:00:00.000Z"),
        ("20240515", "2024-05-15T00:00:00.000Z"),
        ("2024-05-15T12", "2024-05-15T12:00:00.000Z"),
        ("2024-05-15T1230", "2024-05-15T12:30:00.000Z"),
        ("20240515T12+02", "2024-05-15T10:00:00.000Z"),
        ("2024-136", "2024-05-15T00:00:00.000Z"),
        ("2024-W20-3", "2024-05-15T00:00:00.000Z"),
        ("86400000", "1970-01-02T00:00:00.000Z"),
        ("-1", "1969-12-31T23:59:59.999Z"),
    ],
)
def test_a_partial_date_means_its_first_moment(make_api: MakeApi, said: str, means: str) -> None:
    day = datetime.fromisoformat(means)
    times = {name: day + timedelta(milliseconds=ms) for name, ms in (("before", -1), ("at", 0), ("after", 1))}
    rows = {n: {"at": t.isoformat(timespec="milliseconds").replace("+00:00", "Z")} for n, t in times.items()}
    api = make_api({**collection("event", {"at": {"type": "datetime"}}), **documents("events", **rows)})
    answer = api.get(f"/api/events?filters[at][$gte]={said.replace('+', '%2B')}&sort=at")
    assert [d["documentId"] for d in answer.data] == ["at", "after"]


@pytest.mark.parametrize("said", ["2024-13", "2024-400", "2024-W60", "noon", "2024-05-15T", "T12"])
def test_invalid_dates_are_refused(make_api: MakeApi, said: str) -> None:
    api = make_api({**collection("event", {"at": {"type": "datetime"}}), **documents("events", a={})})
    assert api.get(f"/api/events?filters[at][$gte]={said}").status == 400


@pytest.mark.parametrize("value", ["1e400", "-1e400", "1e999999", "9e9999", ".inf", "nan"])
@pytest.mark.parametrize(
    "form", ["[$eq]={}", "[$in]={}", "[$between]=1&filters[{name}][$between]={}", "[$gt]={}"]
)
def test_infinite_numbers_are_refused(make_api: MakeApi, value: str, form: str) -> None:
    api = make_api(collection("item", {"count": {"type": "integer"}, "size": {"type": "float"}}))
    for path, name in (("items", "id"), ("items", "count"), ("items", "size"), ("users", "id")):
        query = f"filters[{name}]" + form.format(value, name=name)
        assert api.get(f"/api/{path}?{query}").status == 400, (path, query)
    assert api.post("/api/items", {"count": value}).status == 400
