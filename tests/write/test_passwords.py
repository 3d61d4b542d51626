"""Passwords in request bodies: each is hashed exactly once, before the write, wherever it is in the body."""

from typing import Any

from server.auth.passwords import check_password
from server.documents.values import HashedPassword
from server.write.passwords import hash_passwords
from tests.conftest import MakeApi
from tests.sites import STRING, collection, component

PASSWORD = {"type": "password"}
FILES = {
    **collection(
        "door",
        {
            "name": STRING,
            "code": PASSWORD,
            "lock": {"type": "component", "component": "shared.lock"},
            "locks": {"type": "component", "component": "shared.lock", "repeatable": True},
            "parts": {"type": "dynamiczone", "components": ["shared.lock"]},
        },
    ),
    **component("shared.lock", {"label": STRING, "code": PASSWORD}),
}
DATA: dict[str, Any] = {
    "name": "front",
    "code": "one",
    "lock": {"label": "l", "code": "two"},
    "locks": [{"code": "three"}, {"code": None}],
    "parts": [{"__component": "shared.lock", "code": "four"}],
}


def codes(data: Any) -> list[Any]:
    return [data["code"], data["lock"]["code"], data["locks"][0]["code"], data["parts"][0]["code"]]


def test_passwords_are_hashed_before_the_write(make_api: MakeApi) -> None:
    api = make_api(FILES)
    schema = api.site.state.schema
    [found] = hash_passwords(schema, [(schema.subjects["door"], DATA)])
    assert all(isinstance(code, HashedPassword) for code in codes(found))
    assert [check_password(code, text) for code, text in zip(codes(found), codes(DATA), strict=True)] == [
        True
    ] * 4
    assert (found["name"], found["locks"][1], DATA["code"]) == ("front", {"code": None}, "one")


def test_they_are_hashed_once(make_api: MakeApi) -> None:
    api = make_api(FILES)
    door = api.post("/api/doors", DATA).data["documentId"]
    document = api.site.state.snapshot.get(api.site.state.schema.subjects["door"], door, "en", "published")
    assert document is not None
    kept = [
        document.get("code"),
        *(held.values[1] for held in (document.get("lock"), *document.get("parts"))),
    ]
    assert [check_password(code, text) for code, text in zip(kept, ("one", "two", "four"), strict=True)] == [
        True
    ] * 3
    for broken in (
        {"code": 5},
        {"code": "a\ud800"},
        {"lock": "x"},
        {"parts": [{"code": "x"}]},
        {"locks": [5]},
    ):
        assert api.post("/api/doors", broken).status == 400, broken


def test_a_body_has_few_passwords(make_api: MakeApi) -> None:
    api = make_api(FILES)
    assert api.post("/api/doors", {"locks": [{"code": "x"}] * 5, "parts": []}).status == 201
    for code in ("x", "odd\u200b"):
        error = api.post("/api/doors", {"code": code, "locks": [{"code": code}] * 10}).error
        assert (error["status"], error["name"]) == (400, "ValidationError")
        assert error["message"] == "The request body contains 11 passwords; the limit is 10"
