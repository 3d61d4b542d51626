"""Tests that no read returns a password hash, even if its attribute has been removed from the schema."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import INTEGER, STRING, Api, collection, component, make

HASH = "$2b$10$abcdefghijklmnopqrstuuWZ0rBq0yAHHv1KJqOyL8SkHXGpQh9xe"
OTHER = "$argon2id$v=19$m=65536,t=3,p=1$+ojMNBqQdwkq0J9omDSDHw$dN3ssMB5BfIAW2W4GCdKqMlUlShaypOJz24ConMfsbs"
KINDS = ("string", "text", "richtext", "uid", "json")
LOCK = {"type": "component", "component": "x.lock"}
TYPES = {
    **collection("vault", {"name": STRING, **{kind: {"type": kind} for kind in KINDS}, "lock": LOCK}),
    **component("x.lock", {"pin": STRING, "count": INTEGER}),
}


def vault(value: str, name: str = "A") -> str:
    inside = {"pin": value}
    times = dict.fromkeys(("createdAt", "updatedAt"), "2024-02-29T10:20:30Z")
    held = {**dict.fromkeys(KINDS, value), "json": [{"a": value}], "lock": inside}
    return json.dumps({"name": name, **times, **held})


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[tuple[Api, Api]]:
    made = tuple(
        make(tmp_path / str(number), {**TYPES, "content/vaults/a.json": vault(value)})
        for number, value in enumerate((HASH, OTHER))
    )
    yield made[0], made[1]
    for api in made:
        api.accounts.close()


READS = (
    "/api/vaults",
    "/api/vaults/a?populate=*",
    "/search?q=abcdefghijklmnop",
    "/api/vaults?_q=argon2",
    "/api/vaults?filters[string][$startsWith]=$2b",
    "/api/vaults?filters[lock][pin][$contains]=argon",
    "/api/vaults?filters[json][$contains]=argon",
    "/api/vaults?sort=string",
)


@pytest.mark.parametrize("path", READS)
def test_no_read_shows_or_looks_into_a_hash(twins: tuple[Api, Api], path: str) -> None:
    one, other = (api.get(path) for api in twins)
    assert one.status == 200
    assert one.raw == other.raw
    assert "$" not in one.text


def test_a_write_leaves_a_hash_in_the_file_and_shows_none(make_api: MakeApi) -> None:
    api = make_api({**TYPES, "content/vaults/a.json": vault(HASH)})
    shown = api.get("/api/vaults/a?populate=*").data
    assert shown["string"] == shown["lock"]["pin"] == "(hidden)"
    sent: dict[str, Any] = {name: shown[name] for name in ("string", "json", "lock")}
    answer = api.put("/api/vaults/a?populate=*", {**sent, "name": "B"})
    assert (answer.data["name"], "$" in answer.text) == ("B", False)
    assert api.read("content/vaults/a.json").count(HASH) == 6
    assert "$" not in api.post("/api/vaults", {"string": HASH}).text


def test_a_hash_where_a_number_should_be_is_quoted_by_no_problem(make_api: MakeApi) -> None:
    api = make_api({**TYPES, "content/vaults/a.yaml": f"lock: {{count: '{HASH}'}}\n"})
    answer = api.get("/problems")
    assert answer.data[0]["message"] == 'lock.count must be a whole number (found "(hidden)")'
    assert "$2b" not in answer.text
