"""Tests of documents rendered as JSON: all types of values, components, ids, and the Strapi 4 response
format.
"""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.service.render import dumps
from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, component, documents, load, relation

ALL = {
    "s": STRING,
    "txt": {"type": "text"},
    "rich": {"type": "richtext"},
    "enu": {"type": "enumeration", "enum": ["red", "blue"], "default": "red"},
    "mail": {"type": "email"},
    "slug": {"type": "uid"},
    "pw": {"type": "password"},
    "d": {"type": "date"},
    "t": {"type": "time"},
    "dt": {"type": "datetime"},
    "ts": {"type": "timestamp"},
    "i": {"type": "integer"},
    "big": {"type": "biginteger"},
    "f": {"type": "float"},
    "dec": {"type": "decimal"},
    "b": {"type": "boolean"},
    "a": {"type": "array"},
    "j": {"type": "json"},
    "blocks": {"type": "blocks"},
    "hidden": {"type": "string", "private": True},
}
FULL: dict[str, Any] = {
    "s": 'He said "é" \\ 🦪\u2028',
    "txt": "two\nlines",
    "rich": "# Title\n\n*text*",
    "enu": "blue",
    "mail": "a@x.org",
    "slug": "a-1",
    "pw": "secret",
    "d": "2024-02-29",
    "t": "10:20",
    "dt": "2024-02-29T10:20:30+02:00",
    "ts": "2024-02-29",
    "i": -5,
    "big": 12345678901234567890123,
    "f": 0.1,
    "dec": 1.5,
    "b": False,
    "a": [1, "x", None],
    "j": {"k": [1.5, {"z": None}], "e": ""},
    "blocks": [{"type": "paragraph", "children": [{"type": "text", "text": "Hello"}]}],
    "hidden": "secret",
}
PART = {
    "n": {"type": "integer"},
    "pw": {"type": "password"},
    "inner": {"type": "component", "component": "x.inner"},
}
FILES = {
    **collection("note", ALL),
    **documents("notes", full=FULL, empty={}),
    **collection(
        "page",
        {
            "title": STRING,
            "part": {"type": "component", "component": "x.part"},
            "parts": {"type": "component", "component": "x.part", "repeatable": True},
            "zone": {"type": "dynamiczone", "components": ["x.part"]},
            "note": relation("manyToOne", "note"),
            "notes": relation("manyToMany", "note"),
            "cover": {"type": "media"},
        },
    ),
    **component("x.part", PART),
    **component("x.inner", {"text": STRING}),
    **documents(
        "pages",
        p={
            "title": "P",
            "part": {"n": 1, "pw": "secret", "inner": {"text": "in"}},
            "parts": [{"n": 1}, {"n": 1}],
            "zone": [{"__component": "x.part", "n": 1}],
            "note": "empty",
            "notes": ["empty", "full"],
        },
        q={},
    ),
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return Api.of(load(tmp_path_factory.mktemp("site"), FILES))


def test_every_type_of_value(api: Api) -> None:
    found = api.get("/api/notes/full").data
    assert found == {
        "id": found["id"],
        "documentId": "full",
        **{k: v for k, v in FULL.items() if k not in ("pw", "hidden")},
        "t": "10:20:00.000",
        "dt": "2024-02-29T08:20:30.000Z",
        "ts": "2024-02-29T00:00:00.000Z",
        "big": "12345678901234567890123",
        "createdAt": "2024-01-01T00:00:00.000Z",
        "updatedAt": found["updatedAt"],
        "publishedAt": "2024-01-01T00:00:00.000Z",  # the same as createdAt, because the type has no drafts
        "locale": "en",
    }


def test_a_document_without_values_has_every_key(api: Api) -> None:
    found = api.get("/api/notes/empty").data
    assert list(found)[:3] == ["id", "documentId", "s"]
    assert found.keys() == api.get("/api/notes/full").data.keys()
    assert found["enu"] == "red"
    assert {found[k] for k in FULL if k in found} == {None, "red"}


def test_nothing_secret_is_ever_shown(api: Api) -> None:
    for path in (
        "/api/notes",
        "/api/pages?populate[0]=*&populate[1]=part.inner",
        "/api/pages?populate[notes]=true",
    ):
        for headers in ({}, {"Strapi-Response-Format": "v4"}):
            assert "secret" not in json.dumps(api.get(path, headers=headers).body)


def test_components_have_ids_of_their_own(api: Api) -> None:
    found = api.get("/api/pages/p?populate=part.inner,parts,zone").data
    assert found["part"].keys() == {"id", "n", "inner"}
    assert found["part"]["inner"].keys() == {"id", "text"}
    assert found["zone"][0].keys() == {"id", "n", "__component"}
    ids = [
        found["part"]["id"],
        found["part"]["inner"]["id"],
        *(c["id"] for c in found["parts"] + found["zone"]),
    ]
    assert len(set(ids)) == 5
    assert all(0 < i < 2**53 for i in [found["id"], *ids])


def test_what_is_empty(api: Api) -> None:
    found = api.get("/api/pages/q?populate=*").data
    assert [found[k] for k in ("part", "parts", "zone", "note", "notes", "cover")] == [
        None,
        [],
        [],
        None,
        [],
        None,
    ]


def test_ids_are_the_same_in_every_copy(api: Api, make_api: MakeApi) -> None:
    copy = make_api(FILES)
    for path in ("/api/notes?fields=id", "/api/pages?fields=title&populate[parts][fields]=n"):
        assert api.get(path).body == copy.get(path).body


# --- the Strapi 4 response format -----------------------------------------------------------------


def test_the_previous_format_wraps_attributes(api: Api) -> None:
    v4 = {"Strapi-Response-Format": "v4"}
    found = api.get("/api/pages/p?populate=*", headers=v4).data
    assert found.keys() == {"id", "documentId", "attributes"}
    inside = found["attributes"]
    assert inside["title"] == "P"
    assert inside["note"]["data"]["attributes"]["s"] is None
    assert [n["documentId"] for n in inside["notes"]["data"]] == ["empty", "full"]
    assert inside["cover"] == {"data": None}
    assert inside["part"]["n"] == 1
    assert inside["zone"][0]["__component"] == "x.part"
    assert api.get("/api/pages/q?populate=*", headers=v4).data["attributes"]["notes"] == {"data": []}
    listed = api.get("/api/pages?fields=title", headers={"strapi-response-format": "V4"}).body
    assert [d["attributes"] for d in listed["data"]] == [{"title": "P"}, {"title": None}]
    assert listed["meta"]["pagination"]["total"] == 2


@pytest.mark.parametrize("value", ["v5", "", "4"])
def test_any_other_format_is_the_flat_one(api: Api, value: str) -> None:
    assert "title" in api.get("/api/pages/p", headers={"Strapi-Response-Format": value}).data


# --- JSON ----------------------------------------------------------------------------------------

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
values = st.recursive(
    leaves, lambda v: st.lists(v) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), v)
)


@given(values)
def test_any_json_value_comes_out_as_it_is(value: Any) -> None:
    assert json.loads(dumps(value)) == value


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_decimals_keep_their_digits(value: Decimal) -> None:
    assert Decimal(dumps({"v": value}).decode()[5:-1]) == value


def test_a_large_integer_takes_no_digits_of_its_neighbours() -> None:
    value = {"dec": Decimal("1.10000000000000000001"), "j": [2**70, {"big": -(2**64)}], "i": 2**63}
    assert dumps(value) == (
        b'{"dec":1.10000000000000000001,"j":[1180591620717411303424,{"big":-18446744073709551616}],'
        b'"i":9223372036854775808}'
    )


# --- one unusual file -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(name, text)
        for name, text in {
            "digits.json": '{"i": ' + "9" * 5000 + "}",
            "digits.yaml": "i: " + "9" * 5000,
            "exponent.yaml": "dec: 1e9999999",
            "surrogate.json": '{"s": "\\ud800"}',
            "surrogate-id.json": '{"documentId": "\\ud800"}',
            "surrogate-inside.json": '{"j": {"\\ud800": 1}}',
            "nested.json": '{"j": ' + "[" * 500 + "]" * 500 + "}",
        }.items()
    ],
)
def test_one_odd_file_leaves_the_others_alone(make_api: MakeApi, name: str, text: str) -> None:
    api = make_api({**collection("note", ALL), **documents("notes", fine={}), f"content/notes/{name}": text})
    assert "fine" in api.get("/api/notes").ids
    assert [p.path for p in api.site.problems] == [f"content/notes/{name}"]
