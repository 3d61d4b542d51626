"""Media in request bodies: numbers, documentIds and objects; `set`, `connect` and `disconnect`."""

from pathlib import Path
from typing import Any

import pytest

from tests.sites import Api, make, schema

MEDIA = {"one": {"type": "media"}, "many": {"type": "media", "multiple": True}}
FILES: dict[str, str | bytes] = {
    "content-types/components/parts/row.json": '{"attributes": {"pic": {"type": "media"}}}',
    "content-types/post.json": schema(
        "post", {"title": "string", **MEDIA, "row": {"type": "component", "component": "parts.row"}}
    ),
    "content/posts/p.md": "---\ntitle: P\none: a.txt\nmany: [a.txt, b.txt]\n---\n",
    **{f"content/uploads/{name}.txt": name for name in "abc"},
    "content/uploads/c.txt.yaml": "documentId: '7'\n",
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


@pytest.fixture
def numbers(api: Api) -> dict[str, int]:
    return {file["name"][0]: file["id"] for file in api.get("/api/upload/files").body}


def put(api: Api, name: str, value: Any) -> list[str] | None:
    """Send a PUT request. Return the files in the attribute afterwards, or None if the request was
    rejected.
    """
    answer = api.put(f"/api/posts/p?populate={name}", {name: value})
    if answer.status != 200:
        assert answer.status == 400, answer.body
        return None
    found = answer.data[name]
    return [file["name"][0] for file in (found if isinstance(found, list) else [found] if found else [])]


def test_a_file_is_named_by_number_document_id_or_object(api: Api, numbers: dict[str, int]) -> None:
    c, b = numbers["c"], numbers["b"]
    populated = api.get("/api/posts/p?populate=many").data["many"][1]
    listed = api.get(f"/api/upload/files/{b}?populate=related").body
    for value in (c, str(c), "7", {"id": c}, {"documentId": "7"}, {"id": 1, "documentId": "7"}):
        assert put(api, "one", value) == put(api, "many", value) == ["c"], value
        assert put(api, "one", [value]) == put(api, "many", [value]) == ["c"], value
    for value in (populated, listed, [listed], {"set": [{"id": b, "anything": 1}]}):
        assert put(api, "one", value) == put(api, "many", value) == ["b"], value
    assert put(api, "many", [{"id": c}, b, None, c]) == ["c", "b"]
    assert put(api, "one", [c, b]) == ["c"]


@pytest.mark.parametrize("value", [None, [], {}, [None], {"set": []}, {"set": None}])
def test_nothing_clears(api: Api, value: Any) -> None:
    assert put(api, "one", value) == put(api, "many", value) == []


@pytest.mark.parametrize(
    "value", [{"connect": []}, {"connect": None}, {"disconnect": []}, {"connect": [None]}]
)
def test_to_add_and_take_away_nothing_changes_nothing(api: Api, value: Any) -> None:
    assert (put(api, "one", value), put(api, "many", value)) == (["a"], ["a", "b"])


def test_operations(api: Api, numbers: dict[str, int]) -> None:
    a, b, c = (numbers[name] for name in "abc")
    rows: list[tuple[Any, list[str], list[str]]] = [
        ({"connect": [c]}, ["a"], ["a", "b", "c"]),
        ({"connect": {"documentId": "7"}}, ["a"], ["a", "b", "c"]),
        ({"connect": [{"id": c, "position": {"start": True}}]}, ["a"], ["a", "b", "c"]),
        ({"disconnect": [{"id": a}]}, [], ["b"]),
        ({"disconnect": a}, [], ["b"]),
        ({"disconnect": [c, 987654]}, ["a"], ["a", "b"]),
        ({"connect": [c], "disconnect": [a]}, ["c"], ["b", "c"]),
        ({"set": [b], "connect": [c], "disconnect": [b]}, ["b"], ["b"]),
        ({"set": [], "connect": [c]}, [], []),
        ({"set": None, "connect": [c]}, ["a"], ["a", "b", "c"]),
    ]
    for value, one, many in rows:
        assert put(api, "one", [a]) == ["a"]
        assert put(api, "many", [a, b]) == ["a", "b"]
        assert (put(api, "one", value), put(api, "many", value)) == (one, many), value


@pytest.mark.parametrize(
    "value",
    [
        "nope", 12345, 1.5, True, False, "", [[]], [{}], {"id": None}, {"id": "nope"}, {"id": "7"},
        {"documentId": 7}, {"documentId": None}, [{"name": "a.txt"}], {"id": 1, "documentId": "nope"},
        {"connect": ["nope"]}, {"connect": [{}]}, {"disconnect": ["nope"]},
        {"disconnect": [{"documentId": "nope"}]}, {"set": True},
    ],
)  # fmt: skip
def test_what_is_no_file_is_refused_by_its_path(api: Api, value: Any) -> None:
    for name, body in (("one", value), ("many", value), ("row", {"pic": value})):
        answer = api.put("/api/posts/p", {name: body})
        path = ["row", "pic"] if name == "row" else [name]
        assert [error["path"] for error in answer.body["error"]["details"]["errors"]] == [path], answer.body
    assert put(api, "many", {"connect": []}) == ["a", "b"]


def test_keys_that_no_file_has_are_refused(api: Api, numbers: dict[str, int]) -> None:
    for value in (
        {"id": numbers["c"], "nope": 1},
        [{"documentId": "7", "nope": 1}],
        {"nope": [numbers["c"]]},
    ):
        error = api.put("/api/posts/p", {"many": value}).body["error"]
        assert (error["message"], error["details"]["path"]) == ("Invalid key nope at many", "many")
