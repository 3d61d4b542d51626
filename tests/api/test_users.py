"""Users over HTTP: registering, logging in, passwords, sessions, and who may see whom."""

import logging
import re
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.making import Made, make, schema

SITE = """
roles:
  public:
    auth: [callback, register, forgotPassword, resetPassword, emailConfirmation, sendEmailConfirmation]
  authenticated: {note: [find], user: [me, updateMe], auth: [changePassword]}
  editor: {note: [find, create]}
"""
FILES: dict[str, str | bytes] = {
    "content-types/note.json": schema("note", {"text": "string"}),
    "site.yaml": SITE,
}
ANN = {"username": "ann", "email": "Ann@Example.org", "password": "secret12"}


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return make(tmp_path, FILES)


def register(made: Made, **changes: str) -> Any:
    return made.client.post("/api/auth/local/register", json={**ANN, **changes})


def login(made: Made, password: str = "secret12", identifier: str = "ann") -> Any:
    return made.client.post("/api/auth/local", json={"identifier": identifier, "password": password})


def mailed(caplog: pytest.LogCaptureFixture, name: str) -> str:
    """The code of a mail, which goes out in the background: to the log, where there is no server."""
    for _ in range(400):
        found = re.search(rf"{name}: (\S+)", caplog.text)
        if found:
            return found[1]
        time.sleep(0.01)
    raise AssertionError("there is no mail")


def as_user(token: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {token}"}}


def test_registering_logs_in_and_gives_the_rights_of_the_role(made: Made) -> None:
    answer = register(made)
    assert answer.status_code == 200
    assert answer.json["user"]["email"] == "ann@example.org"
    session = as_user(answer.json["jwt"])
    assert made.client.get("/api/users/me", **session).json["username"] == "ann"
    assert made.client.get("/api/notes", **session).status_code == 200
    assert made.client.post("/api/notes", json={"data": {"text": "x"}}, **session).status_code == 403
    assert made.client.put("/api/users/me", json={"username": "anna"}, **session).json["username"] == "anna"
    assert made.client.put("/api/users/me", json={"role": "editor"}, **session).status_code == 400


def test_a_password_is_nowhere_to_be_seen(made: Made) -> None:
    register(made)
    for path in ("/api/users", "/api/users?populate=role", "/api/users/1"):
        text = made.send("GET", path).get_data(as_text=True)
        assert "argon2" not in text
        assert "password" not in text
    assert b"secret12" not in (made.root / ".quire/accounts.db").read_bytes()
    assert made.send("GET", "/api/users?filters[password][$notNull]=true").status_code == 400


def test_a_changed_password_ends_older_sessions(made: Made) -> None:
    old = register(made).json["jwt"]
    form = {"currentPassword": "secret12", "password": "secret34", "passwordConfirmation": "secret34"}
    new = made.client.post("/api/auth/change-password", json=form, **as_user(old)).json["jwt"]
    assert made.client.get("/api/users/me", **as_user(old)).status_code == 401
    assert made.client.get("/api/users/me", **as_user(new)).status_code == 200
    assert login(made).status_code == 400
    assert login(made, "secret34").status_code == 200


def test_a_forgotten_password_is_reset_with_a_code_that_works_once(
    made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    register(made)
    with caplog.at_level(logging.WARNING):
        known = made.client.post("/api/auth/forgot-password", json={"email": "ann@example.org"})
        unknown = made.client.post("/api/auth/forgot-password", json={"email": "nobody@example.org"})
    assert (known.status_code, known.json) == (unknown.status_code, unknown.json) == (200, {"ok": True})
    form = {"code": mailed(caplog, "code"), "password": "secret56", "passwordConfirmation": "secret56"}
    assert made.client.post("/api/auth/reset-password", json=form).status_code == 200
    assert made.client.post("/api/auth/reset-password", json=form).status_code == 400
    assert login(made, "secret56").status_code == 200


def test_an_address_can_have_to_be_confirmed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = make(tmp_path, {**FILES, "site.yaml": SITE + "auth: {confirm_email: true}\n"})
    with caplog.at_level(logging.WARNING):
        assert "jwt" not in register(made).json
    assert login(made).json["error"]["message"] == "Your account email is not confirmed"
    code = mailed(caplog, "confirmation")
    assert made.client.get(f"/api/auth/email-confirmation?confirmation={code}").status_code == 200
    assert login(made).status_code == 200


def test_a_blocked_user_is_out_at_once(made: Made) -> None:
    answer = register(made).json
    assert made.send("PUT", f"/api/users/{answer['user']['id']}", json={"blocked": True}).json["blocked"]
    assert made.client.get("/api/users/me", **as_user(answer["jwt"])).status_code == 401
    assert login(made).json["error"]["message"] == "Your account has been blocked by an administrator"


def test_guessing_has_an_end(made: Made) -> None:
    register(made)
    statuses = [login(made, "wrong").status_code for _ in range(12)]
    assert statuses[0] == 400
    assert statuses[-1] == 429
    assert login(made).json["error"]["name"] == "RateLimitError"


def test_an_unknown_name_takes_as_long_as_a_wrong_password(made: Made) -> None:
    register(made)

    def took(identifier: str) -> float:
        began = time.perf_counter()
        assert login(made, "wrong", identifier).json["error"]["message"] == "Invalid identifier or password"
        return time.perf_counter() - began

    known = min(took("ann") for _ in range(3))
    unknown = min(took(f"nobody{i}") for i in range(3))
    assert 0.3 < unknown / known < 3


def test_tokens_that_nobody_gave_are_refused(made: Made) -> None:
    register(made)
    claims = {"id": 1, "s": 0, "exp": int(time.time()) + 1000}
    forged = [
        jwt.encode(claims, "another key that is long enough here", "HS256"),
        jwt.encode(claims, None, "none"),
        "a.b.c",
    ]
    key = (made.root / ".quire/jwt.key").read_text()
    forged.append(jwt.encode({**claims, "exp": int(time.time()) - 10}, key, "HS256"))
    for token in forged:
        assert made.client.get("/api/users/me", **as_user(token)).status_code == 401
    assert (made.root / ".quire/jwt.key").stat().st_mode & 0o777 == 0o600


def test_users_are_listed_filtered_and_sorted_as_content_is(made: Made) -> None:
    for name in ("cy", "bo", "al"):
        data = {
            "username": name + "x",
            "email": f"{name}@example.org",
            "password": "secret12",
            "role": "editor",
        }
        assert made.send("POST", "/api/users", json=data).status_code == 201
    found = made.send(
        "GET", "/api/users?sort=username&fields=username&filters[email][$ne]=bo@example.org"
    ).json
    assert [user["username"] for user in found] == ["alx", "cyx"]
    assert made.send("GET", "/api/users/count").json == 3
    one = made.send("GET", "/api/users/1?populate=role").json
    assert one["role"]["type"] == "editor"
    assert made.send("DELETE", "/api/users/1").json["username"] == "cyx"
    assert made.send("GET", "/api/users/1").status_code == 404
    roles = made.send("GET", "/api/users-permissions/roles").json["roles"]
    assert {role["type"]: role["nb_users"] for role in roles} == {
        "public": 0,
        "authenticated": 0,
        "editor": 2,
    }


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"email": "no"}, ["email"]),
        ({"username": "x", "password": "y"}, ["password", "username"]),
        ({"password": ""}, ["password"]),
        ({"username": "a\x00bc"}, ["username"]),
    ],
)
def test_forms_that_are_no_good(made: Made, changes: dict[str, str], paths: list[str]) -> None:
    error = register(made, **changes).json["error"]
    assert sorted(entry["path"][0] for entry in error["details"]["errors"]) == paths


@pytest.mark.parametrize("key", ["nobody", "-1", "1.0", "99", "9" * 40])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_user_that_there_is_not_is_not_found(made: Made, method: str, key: str) -> None:
    answer = made.send(method, f"/api/users/{key}", json={})
    assert answer.status_code == 404
    assert answer.json["error"]["name"] == "NotFoundError"
