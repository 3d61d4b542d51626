"""Options for passwords: they are checked against the password that was sent, never against its hash."""

from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, component

CODE = {"type": "password", "minLength": 4, "maxLength": 8, "regex": "^[a-z]+$"}
FILES = {
    **collection(
        "door",
        {"name": STRING, "code": CODE, "lock": {"type": "component", "component": "x.lock"}},
        drafts=True,
    ),
    **component("x.lock", {"code": CODE}),
}


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(FILES)


def within(code: str, place: str) -> dict[str, Any]:
    return {"code": code} if place == "code" else {"lock": {"code": code}}


@pytest.mark.parametrize("place", ["code", "lock.code"])
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("abc", "must be at least 4 characters"),
        ("abcdefghi", "must be at most 8 characters"),
        ("abc1", 'must match the following: "/^[a-z]+$/"'),
    ],
)
def test_the_text_that_is_sent_is_judged(api: Api, place: str, code: str, message: str) -> None:
    error = api.post("/api/doors", within(code, place)).error
    [wrong] = error["details"]["errors"]
    assert (".".join(wrong["path"]), message in wrong["message"]) == (place, True)
    assert code not in str(error)


@pytest.mark.parametrize("place", ["code", "lock.code"])
def test_the_hash_is_not_judged(api: Api, place: str) -> None:
    made = api.post("/api/doors", within("sesame", place)).data["documentId"]
    assert api.put(f"/api/doors/{made}", {"name": "N"}).status == 200
    draft = api.post("/api/doors?status=draft", within("sesame", place)).data["documentId"]
    assert api.put(f"/api/doors/{draft}", {}).status == 200
    assert not api.site.problems


def test_a_draft_keeps_to_the_upper_bound_alone(api: Api) -> None:
    assert api.post("/api/doors?status=draft", {"code": "a1"}).status == 201
    assert api.post("/api/doors?status=draft", {"code": "abcdefghi"}).status == 400
