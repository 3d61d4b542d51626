"""Guessing private values: an actor who may write a value but not read it must not learn whether a guess is
right.
"""

from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, component, documents

PRIVATE = {**STRING, "private": True}
PARTS = {"type": "component", "component": "x.part", "repeatable": True}
FILES = {
    **collection("note", {"text": STRING, "secret": PRIVATE, "parts": PARTS}),
    **collection("tale", {"text": STRING, "secret": PRIVATE, "parts": PARTS}, drafts=True),
    **component("x.part", {"label": STRING, "code": PRIVATE}),
}
VALUES = {"text": "x", "secret": "right", "parts": [{"label": "l", "code": "right"}]}
MAY = ("find", "findOne", "update", "readDraft", "updateDraft")


def site(make_api: MakeApi) -> Api:
    files = {**FILES, **documents("notes", a=VALUES), **documents("tales", a=VALUES)}
    api = make_api(files)
    api.token("editor", may=[f"{type_}.{action}" for type_ in ("note", "tale") for action in MAY])
    api.token("blind", may=[f"{type_}.{action}" for type_ in ("note", "tale") for action in MAY[:3]])
    return api


def body(where: str, value: str, part: Any) -> dict[str, Any]:
    if where == "secret":
        return {"secret": value}
    return {"parts": [{"id": part, "code": value}]}


@pytest.mark.parametrize("where", ["secret", "parts"])
@pytest.mark.parametrize(
    ("who", "url"),
    [
        ("editor", "/api/notes/a?"),
        ("editor", "/api/tales/a?"),
        ("editor", "/api/tales/a?status=draft&"),
        ("blind", "/api/tales/a?"),
    ],
)
def test_a_right_guess_is_answered_as_a_wrong_one(make_api: MakeApi, who: str, url: str, where: str) -> None:
    api = site(make_api)

    def guess(value: str) -> tuple[Any, ...]:
        before = api.get(f"{url}populate=parts", who)
        sent = body(where, value, before.data["parts"][0]["id"])
        made = api.put(f"{url}populate=parts", sent, who, headers={"Prefer": "undo"})
        after = api.get(f"{url}populate=parts", who)
        told = (
            made.status,
            made.data["updatedAt"] != before.data["updatedAt"],
            made.headers["ETag"] != before.headers["ETag"],
            "Bifolio-Undo" in made.headers,
            after.headers["ETag"] != before.headers["ETag"],
        )
        if "Bifolio-Undo" in made.headers:
            undone = api.ask("POST", f"/batch/undo/{made.headers['Bifolio-Undo']}", who)
            assert undone.status == 200
        return told

    assert guess("wrong") == guess("right")


def test_what_one_may_read_completely_is_not_written_if_it_stays_the_same(make_api: MakeApi) -> None:
    api = site(make_api)
    before = api.read("content/notes/a.json")
    assert api.put("/api/notes/a", {"text": "x"}, "editor").status == 200
    assert api.put("/api/notes/a", VALUES).status == 200  # an actor with full access may read the file
    assert api.read("content/notes/a.json") == before
