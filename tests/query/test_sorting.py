"""Sorting: every form of the parameter, nulls, ties, paths through relations, and invalid keys."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import MakeApi
from tests.sites import (
    INTEGER,
    STRING,
    Api,
    bracketed,
    collection,
    component,
    documents,
    load,
    relation,
    translated,
)

PEOPLE = {"p0": {"name": "Zoe"}, "p1": {"name": "amy"}, "p2": {"name": "Bo"}, "p3": {"name": None}}
TYPES: Mapping[str, Any] = {
    "s": (STRING, [None, "a", "B", "b", "é", "", "a b"]),
    "i": (INTEGER, [None, 0, 1, -1, 10, 9]),
    "f": ({"type": "float"}, [None, 0.5, 2, -1.25]),
    "n": ({"type": "decimal"}, [None, 9.5, 10, 10.25]),
    "big": ({"type": "biginteger"}, [None, 9007199254740993, 9007199254740992, 5]),
    "d": ({"type": "date"}, [None, "2024-02-01", "2024-01-02", "2023-12-31"]),
    "t": ({"type": "time"}, [None, "10:00:00.000", "09:30:00.500"]),
    "b": ({"type": "boolean"}, [None, True, False]),
    "part": ({"type": "component", "component": "x.part"}, [None, {"k": 1}, {"k": 2}, {"k": None}]),
    "parts": (
        {"type": "component", "component": "x.part", "repeatable": True},
        [[], [{"k": 3}], [{"k": 1}, {"k": 9}], [{"k": None}], [{"k": 2}, {"k": None}]],
    ),
    "owner": (relation("manyToOne", "person"), [None, *PEOPLE, "gone"]),
    "next": (relation("oneToOne", "row"), [None, "r01", "r02"]),
    "friends": (relation("manyToMany", "person"), [[], ["p0"], ["p1", "p0"], ["p3"], ["p2", "p3", "gone"]]),
}
_CHOICE = random.Random(7)
ROWS: dict[str, dict[str, Any]] = {
    f"r{i:02d}": {name: _CHOICE.choice(values) for name, (_, values) in TYPES.items()} for i in range(40)
}
WAYS = ("s", "i", "f", "n", "big", "d", "t", "b", "part.k", "parts.k", "owner.name", "friends.name", "id")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Api:
    files = {
        **collection("row", {name: attribute for name, (attribute, _) in TYPES.items()}),
        **collection("person", {"name": STRING}),
        **component("x.part", {"k": INTEGER}),
        **documents("rows", **ROWS),
        **documents("persons", **PEOPLE),
    }
    return Api.of(load(tmp_path_factory.mktemp("rows"), files))


def value(row: Mapping[str, Any], way: str, descending: bool) -> Any:
    """Return the sort key of a row. Of several values, the one that sorts first counts; null sorts lowest."""
    name, _, inner = way.partition(".")
    held = row.get(name)
    if not inner:
        return held
    held = held if isinstance(held, list) else [held]
    held = [h for h in held if h != "gone"]
    found = [PEOPLE[h][inner] if isinstance(h, str) else (h or {}).get(inner) for h in held]
    filled = [v for v in found if v is not None]
    if not filled or (not descending and len(filled) < len(found)):
        return None
    return max(filled) if descending else min(filled)


def plainly(keys: list[tuple[str, str]]) -> list[str]:
    """Sort ROWS in a simple way, and return their names. Nulls come first if ascending; ties are in order of
    creation.
    """
    names = list(ROWS)
    for way, order in reversed(keys):
        descending = order.lower() == "desc"
        rank = {n: value({**ROWS[n], "id": n}, way, descending) for n in ROWS}
        nulls = [n for n in names if rank[n] is None]
        rest = sorted((n for n in names if rank[n] is not None), key=lambda n: rank[n], reverse=descending)
        names = rest + nulls if descending else nulls + rest
    return names


keys = st.lists(
    st.tuples(st.sampled_from(WAYS), st.sampled_from(["asc", "desc", "ASC", "DESC"])), min_size=1, max_size=3
)


@given(keys=keys, listed=st.booleans())
def test_any_keys_sort_like_a_plain_sort(rows: Api, keys: list[tuple[str, str]], listed: bool) -> None:
    written = [f"{way}:{order}" for way, order in keys]
    sort = written if listed else ",".join(written)
    query = bracketed({"sort": sort, "pagination": {"pageSize": 100}})
    assert rows.get(f"/api/rows?{query}").ids == plainly(keys)


def test_a_repeated_key_is_ignored(rows: Api) -> None:
    query = bracketed({"sort": "s," * 5000 + "id:desc", "pagination": {"pageSize": 100}})
    assert rows.get(f"/api/rows?{query}").ids == plainly([("s", "asc"), ("id", "desc")])


def test_many_paths_to_the_same_documents_cost_no_more(make_api: MakeApi) -> None:
    """Ten documents are all related to each other. A naive implementation would do ten times the work at each
    step.
    """
    names = [f"n{i}" for i in range(10)]
    api = make_api(
        {
            **collection("node", {"rank": INTEGER, "near": relation("manyToMany", "node")}),
            **documents("nodes", **{n: {"rank": i, "near": names} for i, n in enumerate(names)}),
        }
    )
    assert api.get(f"/api/nodes?sort={'near.' * 12}rank").ids == names


@pytest.mark.parametrize("steps", range(1, 6))
def test_a_path_sorts_by_the_first_of_all_reachable_values(make_api: MakeApi, steps: int) -> None:
    """Compare the results with a traversal of every edge, in a graph with cycles, dead ends and null
    values.
    """
    chance = random.Random(steps)
    names = [f"n{i:02d}" for i in range(30)]
    near = {name: chance.sample(names, chance.choice([0, 0, 1, 2, 3])) for name in names}
    ranks = {name: chance.choice([None, *range(40), *range(40)]) for name in names}
    nodes = {name: {"rank": ranks[name], "near": near[name]} for name in names}
    schema = collection("node", {"rank": INTEGER, "near": relation("manyToMany", "node")})
    api = make_api({**schema, **documents("nodes", **nodes)})

    def key(name: str, *, descending: bool) -> int:
        ends = {name}
        for _ in range(steps):
            ends = {other for end in ends for other in near[end]}
        found = [ranks[end] for end in ends]
        filled = [rank for rank in found if rank is not None]
        if not filled or (not descending and len(filled) < len(found)):
            return -1
        return max(filled) if descending else min(filled)

    for order in ("asc", "desc"):
        down = order == "desc"
        wanted = sorted(names, key=lambda name: key(name, descending=down), reverse=down)
        path = "near." * steps + "rank"
        assert api.get(f"/api/nodes?sort={path}:{order}&pagination[pageSize]=100").ids == wanted


def test_ten_keys_are_accepted(rows: Api) -> None:
    ten = ["s", "i", "f", "n", "big", "d", "t", "b", "owner.name", "id"]
    assert rows.get(f"/api/rows?sort={','.join(ten)}").status == 200
    error = rows.get(f"/api/rows?sort={','.join(ten)},next.i").error
    assert (error["status"], error["name"]) == (400, "ValidationError")
    assert error["message"] == "The query has 11 sort keys; the limit is 10"


@pytest.mark.parametrize("way", WAYS)
def test_pages_of_a_sorted_list_are_consistent(rows: Api, way: str) -> None:
    for order in ("asc", "desc"):
        found = [
            name
            for page in range(1, 8)
            for name in rows.get(
                f"/api/rows?sort={way}:{order}&pagination[pageSize]=6&pagination[page]={page}"
            ).ids
        ]
        assert found == plainly([(way, order)])


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("sort=i", [("i", "asc")]),
        ("sort=i:desc", [("i", "desc")]),
        ("sort=%20i%20:%20desc%20", [("i", "desc")]),
        ("sort=s:asc,i:desc", [("s", "asc"), ("i", "desc")]),
        ("sort=s,,i", [("s", "asc"), ("i", "asc")]),
        ("sort[0]=s:desc&sort[1]=i", [("s", "desc"), ("i", "asc")]),
        ("sort[]=s:desc&sort[]=i", [("s", "desc"), ("i", "asc")]),
        ("sort[0]=s:desc,b&sort[1]=i", [("s", "desc"), ("b", "asc"), ("i", "asc")]),
        ("sort[s]=desc&sort[i]=asc", [("s", "desc"), ("i", "asc")]),
        ("sort[s]=", [("s", "asc")]),
        ("sort[0][s]=desc&sort[1][i]=asc", [("s", "desc"), ("i", "asc")]),
        ("sort[owner][name]=desc", [("owner.name", "desc")]),
        ("sort[owner.name]=desc", [("owner.name", "desc")]),
        ("sort=owner.name:desc", [("owner.name", "desc")]),
        ("sort=", []),
        ("sort[]=", []),
        ("", []),
    ],
)
def test_every_form(rows: Api, query: str, keys: list[tuple[str, str]]) -> None:
    assert rows.get(f"/api/rows?pagination[pageSize]=100&{query}").ids == plainly(keys)


@pytest.mark.parametrize(
    ("query", "message", "path"),
    [
        ("sort=zzz", "Invalid key zzz", None),
        ("sort[zzz]=asc", "Invalid key zzz", None),
        ("sort=owner.zzz", "Invalid key zzz at owner", "owner"),
        ("sort=i.zzz", "Invalid key zzz at i", "i"),
        ("sort=owner", "Invalid key owner", "owner"),
        ("sort=part", "Invalid key part", "part"),
        ("sort=createdBy.id", "Invalid key createdBy", "createdBy"),
        ("sort=owner.", "Invalid key  at owner", "owner"),
        ("sort[owner]=DESC", "Invalid key DESC at owner", "owner"),
        ("sort=part:asc", "Invalid key asc at part", "part"),
        ("sort=owner:", "Invalid key owner", "owner"),
    ],
)
def test_attributes_that_can_not_be_sorted_by_are_named(
    rows: Api, query: str, message: str, path: str | None
) -> None:
    error = rows.get(f"/api/rows?{query}").error
    assert (error["status"], error["name"], error["message"]) == (400, "ValidationError", message)
    assert (error["details"]["path"], error["details"]["param"]) == (path, "sort")


@pytest.mark.parametrize("query", ["sort=i:up", "sort=i:asc:desc", "sort[i]=up", "sort[0][i]=x"])
def test_an_order_is_asc_or_desc(rows: Api, query: str) -> None:
    error = rows.get(f"/api/rows?{query}").error
    assert (error["status"], error["name"]) == (400, "ValidationError")


@pytest.mark.parametrize("query", ["sort[i][0]=desc", "sort[0][i][0]=x"])
def test_a_list_in_place_of_an_order_is_ignored(rows: Api, query: str) -> None:
    assert rows.get(f"/api/rows?{query}").ids == rows.get("/api/rows").ids


def test_the_least_deep_of_several_mistakes_is_reported(rows: Api) -> None:
    error = rows.get("/api/rows?sort=i.deeper.nope,nope,i:up").error
    assert error["message"] == "Invalid key nope"


def test_an_empty_order_is_ignored(rows: Api) -> None:
    for query in ("sort=i:", "sort[0]=i:", "sort=i:asc,i: "):
        assert rows.get(f"/api/rows?{query}").error["message"].startswith("Invalid order."), query
    assert rows.get("/api/rows?sort[i]=").ids == rows.get("/api/rows?sort=i:asc").ids


def test_the_depth_of_paths_is_limited(rows: Api) -> None:
    assert rows.get(f"/api/rows?sort={'next.' * 19}i").status == 200
    error = rows.get(f"/api/rows?sort={'next.' * 3000}i").error
    assert (error["status"], error["name"]) == (400, "ValidationError")
    assert "limit is 20 levels" in error["message"]


def test_ids_sort_by_creation(make_api: MakeApi) -> None:
    made = {name: {} for name in ("c", "a", "d", "b")}
    api = make_api({**collection("note", {}), **documents("notes", **made)})
    assert api.get("/api/notes?sort=id").ids == ["c", "a", "d", "b"]
    assert api.get("/api/notes?sort=id:desc").ids == ["b", "d", "a", "c"]
    assert api.get("/api/notes?sort=documentId").ids == ["a", "b", "c", "d"]
    assert api.get("/api/notes?sort=createdAt:desc").ids == ["b", "d", "a", "c"]


def test_the_default_order_is_by_creation_then_id(make_api: MakeApi) -> None:
    at = {"createdAt": "2024-01-01T00:00:00Z"}
    early = {"createdAt": "2023-01-01T00:00:00Z"}
    api = make_api({**collection("note", {}), **documents("notes", b=at, a=at, c=early)})
    assert api.get("/api/notes").ids == ["c", "a", "b"]


def test_a_list_over_all_locales_is_sorted_as_one(make_api: MakeApi) -> None:
    api = make_api(
        {
            **collection("page", {"title": translated(STRING)}, localized=True),
            "site.yaml": "locales: {default: en, available: [en, fr]}",
            "content/pages/a.md": "---\ntitle: B\n---\n",
            "content/pages/a.fr.md": "---\ntitle: D\n---\n",
            "content/pages/b.md": "---\ntitle: C\n---\n",
            "content/pages/b.fr.md": "---\ntitle: A\n---\n",
        }
    )
    titles = [d["title"] for d in api.get("/api/pages?locale=*&sort=title").data]
    assert titles == ["A", "B", "C", "D"]
