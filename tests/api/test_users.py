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
    auth:
      [callback, connect, register, forgotPassword, resetPassword, emailConfirmation, sendEmailConfirmation]
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


def test_a_reset_confirms_the_address_that_the_code_was_sent_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = make(tmp_path, {**FILES, "site.yaml": SITE + "auth: {confirm_email: true}\n"})
    register(made)
    with caplog.at_level(logging.WARNING):
        made.client.post("/api/auth/forgot-password", json={"email": "ann@example.org"})
    form = {"code": mailed(caplog, "code"), "password": "secret56", "passwordConfirmation": "secret56"}
    assert made.client.post("/api/auth/reset-password", json=form).json["user"]["confirmed"]
    assert login(made, "secret56").status_code == 200


def test_nobody_who_is_blocked_is_sent_a_code(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    register(made)
    register(made, username="ben", email="ben@example.org")
    made.send("PUT", "/api/users/1", json={"blocked": True})
    with caplog.at_level(logging.WARNING):
        for name in ("ann", "ben"):
            asked = made.client.post("/api/auth/forgot-password", json={"email": f"{name}@example.org"})
            assert asked.json == {"ok": True}
        mailed(caplog, "code")  # that to ben, who asked last
    assert caplog.text.count("Hello ") == 1
    assert "Hello ben," in caplog.text


def test_nobody_is_sent_mail_without_end(made: Made) -> None:
    statuses = [
        made.client.post("/api/auth/forgot-password", json={"email": address}).status_code
        for address in ("ann@example.org", "Ann@Example.org") * 3
    ]
    assert statuses == [200] * 5 + [429]
    other = made.client.post("/api/auth/forgot-password", json={"email": "ben@example.org"})
    assert other.status_code == 200


def test_guessing_the_current_password_has_an_end(made: Made) -> None:
    session = as_user(register(made).json["jwt"])
    form = {"currentPassword": "wrong one", "password": "secret34", "passwordConfirmation": "secret34"}
    statuses = [
        made.client.post("/api/auth/change-password", json=form, **session).status_code for _ in range(11)
    ]
    assert statuses == [400] * 10 + [429]


def test_an_address_can_have_to_be_confirmed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = make(tmp_path, {**FILES, "site.yaml": SITE + "auth: {confirm_email: true}\n"})
    with caplog.at_level(logging.WARNING):
        assert "jwt" not in register(made).json
    assert login(made).json["error"]["message"] == "Your account email is not confirmed"
    code = mailed(caplog, "confirmation")
    assert made.client.get(f"/api/auth/email-confirmation?confirmation={code}").status_code == 200
    session = as_user(login(made).json["jwt"])
    assert made.client.get("/api/users/me", **session).status_code == 200
    assert made.send("PUT", "/api/users/1", json={"confirmed": False}).status_code == 200
    assert made.client.get("/api/users/me", **session).status_code == 401


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


@pytest.mark.usefixtures("real_passwords")
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


def person(name: str, **changes: Any) -> dict[str, Any]:
    return {"username": name, "email": f"{name}@example.org", "password": "secret12", "role": 1, **changes}


@pytest.fixture
def three(made: Made) -> Made:
    """A site with the users cyx, box and alx, who were made in that order."""
    for name in ("cyx", "box", "alx"):
        assert made.send("POST", "/api/users", json=person(name)).status_code == 201
    return made


def names(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.json
    return [user["username"] for user in answer.json]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["cyx", "box", "alx"]),
        ("sort=username&limit=2", ["alx", "box"]),
        ("sort=username&start=1", ["box", "cyx"]),
        ("sort=username&start=1&limit=1", ["box"]),
        ("start=3", []),
        ("limit=0", []),
        ("limit=-1", ["cyx", "box", "alx"]),
        ("sort=username&pagination[start]=2", ["cyx"]),
        ("_q=BOX@", ["box"]),
    ],
)
def test_a_part_of_the_users(three: Made, query: str, found: list[str]) -> None:
    assert names(three.send("GET", f"/api/users?{query}")) == found


@pytest.mark.parametrize(
    ("query", "count"), [("", 3), ("filters[username][$in]=box", 1), ("_q=example", 3), ("limit=1", 3)]
)
def test_some_users_are_counted(three: Made, query: str, count: int) -> None:
    assert three.send("GET", f"/api/users/count?{query}").json == count


WRONG_QUERIES = (
    "limit=x", "start=-2", "limit[]=1", "filters[nothing]=1", "filters[password][$ne]=x", "sort=password",
    "fields=password", "populate=nothing", "pagination[page]=x", "_q[]=x", "status=nothing",
)  # fmt: skip


@pytest.mark.parametrize("query", WRONG_QUERIES)
def test_a_wrong_query_is_refused_before_anything_is_written(three: Made, query: str) -> None:
    asked = (("POST", "", person("new")), ("PUT", "/1", {"username": "new"}), ("DELETE", "/1", None))
    for method, path, body in asked:
        assert three.send(method, f"/api/users{path}?{query}", json=body).status_code == 400
    for path in ("", "/count", "/1"):
        assert three.send("GET", f"/api/users{path}?{query}").status_code == 400
    assert names(three.send("GET", "/api/users")) == ["cyx", "box", "alx"]


@pytest.mark.parametrize("query", ["_q=nothing", "_q=", "pagination[page]=2", "filters[id]=0", "start=7"])
def test_what_a_query_chooses_from_does_not_matter_to_a_write(three: Made, query: str) -> None:
    assert three.send("POST", f"/api/users?{query}", json=person("new")).json["username"] == "new"
    assert three.send("PUT", f"/api/users/4?{query}", json={"username": "newer"}).json["username"] == "newer"
    assert three.send("DELETE", f"/api/users/4?{query}").json["username"] == "newer"


def test_one_user_is_shown_where_the_filters_fit(made: Made) -> None:
    session = as_user(register(made).json["jwt"])
    for path, asks in (("/api/users/1", made.send), ("/api/users/me", None)):
        for query, status in (("_q=", 200), ("_q=ann", 200), ("_q=bob", 404), ("filters[blocked]=true", 404)):
            url = f"{path}?{query}"
            answer = asks("GET", url) if asks else made.client.get(url, **session)
            assert answer.status_code == status, url


def test_a_token_is_no_user(made: Made) -> None:
    reader = made.accounts.create_token("reader", "custom", ["note.find"])
    assert made.send("GET", "/api/users/me").json["error"]["message"] == "Unauthorized"
    assert made.send("PUT", "/api/users/me", json={"username": "x"}).status_code == 401
    assert made.client.get("/api/users/me", **as_user(reader)).status_code == 403


def test_unknown_keys_are_ignored_for_users_and_refused_at_registration(made: Made) -> None:
    made.send("POST", "/api/users", json=person("ann", provider="x", zzz=1))
    answer = made.send("PUT", "/api/users/1", json={"zzz": 1, "username": "anna", "id": 9, "provider": "x"})
    assert (answer.json["id"], answer.json["username"], answer.json["provider"]) == (1, "anna", "local")
    for key in ("role", "confirmed", "blocked", "provider", "zzz"):
        error = register(made, username="bob", email="bob@example.org", **{key: "1"}).json["error"]
        assert (error["status"], error["message"]) == (400, f"Invalid parameters: {key}")


@pytest.mark.parametrize("role", [None, "", [], {}, {"connect": []}, {"disconnect": [1]}, 99, True, 1.5])
def test_every_user_has_a_role(made: Made, role: Any) -> None:
    error = made.send("POST", "/api/users", json=person("ann", role=role)).json["error"]
    assert [entry["path"] for entry in error["details"]["errors"]] == [["role"]]
    assert made.send("POST", "/api/users", json=person("ann")).status_code == 201
    assert made.send("PUT", "/api/users/1", json={"role": role}).status_code == 400


@pytest.mark.parametrize("role", [3, "3", "editor", "role-editor", {"connect": [{"id": 3}]}, {"set": [3]}])
def test_a_role_is_named_in_many_ways(made: Made, role: Any) -> None:
    assert made.send("POST", "/api/users", json=person("ann", role=role)).json["role"]["type"] == "editor"


def test_the_role_of_a_user_is_shown_to_those_who_may_find_roles(made: Made) -> None:
    maker = made.accounts.create_token("maker", "custom", ["user.create", "user.update"])
    assert "role" not in made.client.post("/api/users", json=person("ann"), **as_user(maker)).json
    assert "role" not in made.client.put("/api/users/1", json={"role": 2}, **as_user(maker)).json
    assert made.send("GET", "/api/users/1?populate=role").json["role"]["type"] == "public"


def test_roles_are_not_written_through_the_api(made: Made) -> None:
    for method, path in (("POST", ""), ("PUT", "/1"), ("DELETE", "/1")):
        answer = made.send(method, f"/api/users-permissions/roles{path}", json={"name": "x"})
        assert answer.status_code == 405
        assert "site.yaml" in answer.json["error"]["message"]
        options = made.client.options(f"/api/users-permissions/roles{path}")
        assert answer.headers["Allow"] == options.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert made.send("GET", "/api/users-permissions/roles/99").json["error"]["message"] == "Role not found"


def test_a_new_password_is_another_one(made: Made) -> None:
    session = as_user(register(made).json["jwt"])
    form = {"currentPassword": "secret12", "password": "secret12", "passwordConfirmation": "secret12"}
    error = made.client.post("/api/auth/change-password", json=form, **session).json["error"]
    assert error["message"] == "Your new password must be different than your current password"
    assert login(made).status_code == 200


def test_no_other_site_is_there_to_log_in_with(made: Made) -> None:
    for path in ("auth/github/callback?access_token=x", "connect/github", "connect/github/callback"):
        error = made.client.get(f"/api/{path}").json["error"]
        assert (error["status"], error["message"]) == (400, "This provider is disabled")
    assert made.client.get("/api/auth/local/callback").json["error"]["message"] == "2 errors occurred"
    assert made.client.get("/api/connect").status_code == 404


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/auth/local", "identifier"),
        ("/api/auth/local", "password"),
        ("/api/auth/local/register", "email"),
        ("/api/auth/local/register", "username"),
        ("/api/auth/local/register", "password"),
        ("/api/auth/forgot-password", "email"),
        ("/api/users", "email"),
        ("/api/users", "username"),
        ("/api/users", "password"),
    ],
)
def test_a_text_of_15_megabytes_is_refused_at_once(made: Made, path: str, name: str) -> None:
    who = {"identifier": "ann", "password": "secret12"} if path == "/api/auth/local" else ANN
    form = {**who, name: "a" * 15_000_000 + "@example.org"}
    began = time.perf_counter()
    answer = made.send("POST", path, json=form)
    assert answer.status_code == 400
    assert name in {entry["path"][0] for entry in answer.json["error"]["details"]["errors"]}
    assert len(answer.get_data()) < 2000
    assert time.perf_counter() - began < 1.5
