"""Tests of users over HTTP: registration, login, passwords, sessions, and which users a caller can see."""

import logging
import re
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.sites import Api, make, schema, write
from tests.waiting import computing_less_than

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
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


def register(api: Api, **changes: str) -> Any:
    return api.ask("POST", "/api/auth/local/register", "public", json={**ANN, **changes})


def login(api: Api, password: str = "secret12", identifier: str = "ann") -> Any:
    return api.ask("POST", "/api/auth/local", "public", json={"identifier": identifier, "password": password})


def mailed(caplog: pytest.LogCaptureFixture, name: str) -> str:
    """Wait for an email and return the code in it. Without a mail server, emails are written to the log."""
    for _ in range(400):
        found = re.search(rf"{name}: (\S+)", caplog.text)
        if found:
            return found[1]
        time.sleep(0.01)
    raise AssertionError("there is no mail")


def as_user(token: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {token}"}}


def test_registering_logs_in_and_gives_the_rights_of_the_role(api: Api) -> None:
    answer = register(api)
    assert answer.status == 200
    assert answer.body["user"]["email"] == "ann@example.org"
    session = as_user(answer.body["jwt"])
    assert api.get("/api/users/me", "public", **session).body["username"] == "ann"
    assert api.get("/api/notes", "public", **session).status == 200
    assert api.ask("POST", "/api/notes", "public", json={"data": {"text": "x"}}, **session).status == 403
    assert (
        api.ask("PUT", "/api/users/me", "public", json={"username": "anna"}, **session).body["username"]
        == "anna"
    )
    assert api.ask("PUT", "/api/users/me", "public", json={"role": "editor"}, **session).status == 400


def test_a_password_is_nowhere_to_be_seen(api: Api) -> None:
    register(api)
    for path in ("/api/users", "/api/users?populate=role", "/api/users/1"):
        text = api.get(path).text
        assert "argon2" not in text
        assert "password" not in text
    assert b"secret12" not in (api.root / ".bifolio/accounts.db").read_bytes()
    assert api.get("/api/users?filters[password][$notNull]=true").status == 400


def test_a_changed_password_ends_older_sessions(api: Api) -> None:
    old = register(api).body["jwt"]
    form = {"currentPassword": "secret12", "password": "secret34", "passwordConfirmation": "secret34"}
    new = api.ask("POST", "/api/auth/change-password", "public", json=form, **as_user(old)).body["jwt"]
    assert api.get("/api/users/me", "public", **as_user(old)).status == 401
    assert api.get("/api/users/me", "public", **as_user(new)).status == 200
    assert login(api).status == 400
    assert login(api, "secret34").status == 200


def test_a_forgotten_password_is_reset_with_a_code_that_works_once(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    register(api)
    with caplog.at_level(logging.WARNING):
        known = api.ask("POST", "/api/auth/forgot-password", "public", json={"email": "ann@example.org"})
        unknown = api.ask("POST", "/api/auth/forgot-password", "public", json={"email": "nobody@example.org"})
    assert (known.status, known.body) == (unknown.status, unknown.body) == (200, {"ok": True})
    form = {"code": mailed(caplog, "code"), "password": "secret56", "passwordConfirmation": "secret56"}
    assert api.ask("POST", "/api/auth/reset-password", "public", json=form).status == 200
    assert api.ask("POST", "/api/auth/reset-password", "public", json=form).status == 400
    assert login(api, "secret56").status == 200


@pytest.mark.parametrize(
    ("password", "again", "paths"),
    [
        ("", "secret12", ["password", "passwordConfirmation"]),
        (None, "secret12", ["password", "passwordConfirmation"]),
        ("secret12", 5, ["passwordConfirmation", "passwordConfirmation"]),
        ("secret12", "", ["passwordConfirmation"]),
        ("secret12", "secret34", ["code", "passwordConfirmation"]),
    ],
)
def test_every_mistake_in_a_reset_is_told_at_once(
    api: Api, password: Any, again: Any, paths: list[str]
) -> None:
    form = {"password": password, "passwordConfirmation": again, "code": "" if "code" in paths else "x"}
    error = api.ask("POST", "/api/auth/reset-password", "public", json=form).body["error"]
    assert [entry["path"] for entry in error["details"]["errors"]] == [[path] for path in paths]
    assert "Passwords do not match" in [entry["message"] for entry in error["details"]["errors"]]


def test_a_reset_confirms_the_address_that_the_code_was_sent_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api = make(tmp_path, {**FILES, "site.yaml": SITE + "auth: {confirm_email: true}\n"})
    register(api)
    with caplog.at_level(logging.WARNING):
        api.ask("POST", "/api/auth/forgot-password", "public", json={"email": "ann@example.org"})
    form = {"code": mailed(caplog, "code"), "password": "secret56", "passwordConfirmation": "secret56"}
    assert api.ask("POST", "/api/auth/reset-password", "public", json=form).body["user"]["confirmed"]
    assert login(api, "secret56").status == 200


def test_nobody_who_is_blocked_is_sent_a_code(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    register(api)
    register(api, username="ben", email="ben@example.org")
    api.ask("PUT", "/api/users/1", json={"blocked": True})
    with caplog.at_level(logging.WARNING):
        for name in ("ann", "ben"):
            asked = api.ask(
                "POST", "/api/auth/forgot-password", "public", json={"email": f"{name}@example.org"}
            )
            assert asked.body == {"ok": True}
        mailed(caplog, "code")  # the email to ben, who sent the last request
    assert caplog.text.count("Hello ") == 1
    assert "Hello ben," in caplog.text


def test_nobody_is_sent_mail_without_end(api: Api) -> None:
    statuses = [
        api.ask("POST", "/api/auth/forgot-password", "public", json={"email": address}).status
        for address in ("ann@example.org", "Ann@Example.org") * 3
    ]
    assert statuses == [200] * 5 + [429]
    other = api.ask("POST", "/api/auth/forgot-password", "public", json={"email": "ben@example.org"})
    assert other.status == 200


def test_guessing_the_current_password_has_an_end(api: Api) -> None:
    session = as_user(register(api).body["jwt"])
    form = {"currentPassword": "wrong one", "password": "secret34", "passwordConfirmation": "secret34"}
    statuses = [
        api.ask("POST", "/api/auth/change-password", "public", json=form, **session).status for _ in range(11)
    ]
    assert statuses == [400] * 10 + [429]


def test_an_address_can_have_to_be_confirmed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    api = make(tmp_path, {**FILES, "site.yaml": SITE + "auth: {confirm_email: true}\n"})
    with caplog.at_level(logging.WARNING):
        assert "jwt" not in register(api).body
    assert login(api).body["error"]["message"] == "Your account email is not confirmed"
    code = mailed(caplog, "confirmation")
    assert api.get(f"/api/auth/email-confirmation?confirmation={code}", "public").status == 200
    session = as_user(login(api).body["jwt"])
    assert api.get("/api/users/me", "public", **session).status == 200
    assert api.ask("PUT", "/api/users/1", json={"confirmed": False}).status == 200
    assert api.get("/api/users/me", "public", **session).status == 401


def test_a_blocked_user_is_out_at_once(api: Api) -> None:
    answer = register(api).body
    assert api.ask("PUT", f"/api/users/{answer['user']['id']}", json={"blocked": True}).body["blocked"]
    assert api.get("/api/users/me", "public", **as_user(answer["jwt"])).status == 401
    assert login(api).body["error"]["message"] == "Your account has been blocked by an administrator"


def test_guessing_has_an_end(api: Api) -> None:
    register(api)
    statuses = [login(api, "wrong").status for _ in range(12)]
    assert statuses[0] == 400
    assert statuses[-1] == 429
    assert login(api).body["error"]["name"] == "RateLimitError"


@pytest.mark.usefixtures("real_passwords")
def test_an_unknown_name_takes_as_long_as_a_wrong_password(api: Api) -> None:
    register(api)

    def took(identifier: str) -> float:
        began = time.process_time()
        assert login(api, "wrong", identifier).body["error"]["message"] == "Invalid identifier or password"
        return time.process_time() - began

    known = min(took("ann") for _ in range(3))
    unknown = min(took(f"nobody{i}") for i in range(3))
    assert 0.3 < unknown / known < 3


def test_tokens_that_nobody_gave_are_refused(api: Api) -> None:
    register(api)
    claims = {"id": 1, "s": 0, "exp": int(time.time()) + 1000}
    forged = [
        jwt.encode(claims, "another key that is long enough here", "HS256"),
        jwt.encode(claims, None, "none"),
        "a.b.c",
    ]
    key = (api.root / ".bifolio/jwt.key").read_text()
    forged.append(jwt.encode({**claims, "exp": int(time.time()) - 10}, key, "HS256"))
    for token in forged:
        assert api.get("/api/users/me", "public", **as_user(token)).status == 401
    assert (api.root / ".bifolio/jwt.key").stat().st_mode & 0o777 == 0o600


def test_users_are_listed_filtered_and_sorted_as_content_is(api: Api) -> None:
    for name in ("cy", "bo", "al"):
        data = {
            "username": name + "x",
            "email": f"{name}@example.org",
            "password": "secret12",
            "role": "editor",
        }
        assert api.ask("POST", "/api/users", json=data).status == 201
    found = api.get("/api/users?sort=username&fields=username&filters[email][$ne]=bo@example.org").body
    assert [user["username"] for user in found] == ["alx", "cyx"]
    assert api.get("/api/users/count").body == 3
    one = api.get("/api/users/1?populate=role").body
    assert one["role"]["type"] == "editor"
    assert api.ask("DELETE", "/api/users/1").body["username"] == "cyx"
    assert api.get("/api/users/1").status == 404
    roles = api.get("/api/users-permissions/roles").body["roles"]
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
def test_forms_that_are_no_good(api: Api, changes: dict[str, str], paths: list[str]) -> None:
    error = register(api, **changes).body["error"]
    assert sorted(entry["path"][0] for entry in error["details"]["errors"]) == paths


@pytest.mark.parametrize("key", ["nobody", "-1", "1.0", "99", "9" * 40])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_user_that_there_is_not_is_not_found(api: Api, method: str, key: str) -> None:
    answer = api.ask(method, f"/api/users/{key}", json={})
    assert answer.status == 404
    assert answer.body["error"]["name"] == "NotFoundError"


def person(name: str, **changes: Any) -> dict[str, Any]:
    return {"username": name, "email": f"{name}@example.org", "password": "secret12", "role": 1, **changes}


@pytest.fixture
def three(api: Api) -> Api:
    """A site with the users cyx, box and alx, created in this order."""
    for name in ("cyx", "box", "alx"):
        assert api.ask("POST", "/api/users", json=person(name)).status == 201
    return api


def names(answer: Any) -> list[str]:
    assert answer.status == 200, answer.body
    return [user["username"] for user in answer.body]


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
def test_a_part_of_the_users(three: Api, query: str, found: list[str]) -> None:
    assert names(three.get(f"/api/users?{query}")) == found


@pytest.mark.parametrize(
    ("query", "count"), [("", 3), ("filters[username][$in]=box", 1), ("_q=example", 3), ("limit=1", 3)]
)
def test_some_users_are_counted(three: Api, query: str, count: int) -> None:
    assert three.get(f"/api/users/count?{query}").body == count


def test_no_count_tells_who_has_an_address(three: Api) -> None:
    three.token("counter", may=["user.count"])
    assert three.get("/api/users/count", "counter").body == 3
    for query in ("filters[email][$startsWith]=a", "filters[email]=nobody@example.org", "_q=example"):
        assert three.get(f"/api/users/count?{query}", "counter").status == 403, query


WRONG_QUERIES = (
    "limit=x", "start=-2", "limit[]=1", "filters[nothing]=1", "filters[password][$ne]=x", "sort=password",
    "fields=password", "populate=nothing", "pagination[page]=x", "_q[]=x", "status=nothing",
)  # fmt: skip


@pytest.mark.parametrize("query", WRONG_QUERIES)
def test_a_wrong_query_is_refused_before_anything_is_written(three: Api, query: str) -> None:
    asked = (("POST", "", person("new")), ("PUT", "/1", {"username": "new"}), ("DELETE", "/1", None))
    for method, path, body in asked:
        assert three.ask(method, f"/api/users{path}?{query}", json=body).status == 400
    for path in ("", "/count", "/1"):
        assert three.get(f"/api/users{path}?{query}").status == 400
    assert names(three.get("/api/users")) == ["cyx", "box", "alx"]


@pytest.mark.parametrize("query", ["_q=nothing", "_q=", "pagination[page]=2", "filters[id]=0", "start=7"])
def test_what_a_query_chooses_from_does_not_matter_to_a_write(three: Api, query: str) -> None:
    assert three.ask("POST", f"/api/users?{query}", json=person("new")).body["username"] == "new"
    assert three.ask("PUT", f"/api/users/4?{query}", json={"username": "newer"}).body["username"] == "newer"
    assert three.ask("DELETE", f"/api/users/4?{query}").body["username"] == "newer"


def test_one_user_is_shown_where_the_filters_fit(api: Api) -> None:
    session = as_user(register(api).body["jwt"])
    for path, options in (("/api/users/1", {}), ("/api/users/me", {"who": "public", **session})):
        for query, status in (("_q=", 200), ("_q=ann", 200), ("_q=bob", 404), ("filters[blocked]=true", 404)):
            url = f"{path}?{query}"
            assert api.get(url, **options).status == status, url


def test_a_token_is_no_user(api: Api) -> None:
    reader = api.accounts.create_token("reader", "custom", ["note.find"])
    assert api.get("/api/users/me").body["error"]["message"] == "Unauthorized"
    assert api.ask("PUT", "/api/users/me", json={"username": "x"}).status == 401
    assert api.get("/api/users/me", "public", **as_user(reader)).status == 403


def test_unknown_keys_are_ignored_for_users_and_refused_at_registration(api: Api) -> None:
    api.ask("POST", "/api/users", json=person("ann", provider="x", zzz=1))
    answer = api.ask("PUT", "/api/users/1", json={"zzz": 1, "username": "anna", "id": 9, "provider": "x"})
    assert (answer.body["id"], answer.body["username"], answer.body["provider"]) == (1, "anna", "local")
    for key in ("role", "confirmed", "blocked", "provider", "zzz"):
        error = register(api, username="bob", email="bob@example.org", **{key: "1"}).body["error"]
        assert (error["status"], error["message"]) == (400, f"Invalid parameters: {key}")


@pytest.mark.parametrize(
    ("role", "path", "message", "value"),
    [
        (None, ["role"], "role is a required field", None),
        ("", ["role"], "role does not exist", ""),
        ([], ["role"], "role does not exist", []),
        ({}, ["role", "connect"], "role.connect is a required field", ...),
        ({"connect": []}, ["role", "connect"], "Users must have a role", []),
        ({"connect": 3}, ["role", "connect"], "role.connect must be a list", 3),
        ({"connect": [{}]}, ["role", "connect", "0"], "Relation entry must include an id or documentId", {}),
        ({"disconnect": [1]}, ["role", "connect"], "role.connect is a required field", ...),
        (99, ["role"], "role does not exist", 99),
        (True, ["role"], "role does not exist", True),
        (1.5, ["role"], "role does not exist", 1.5),
    ],
)
def test_every_user_has_a_role(api: Api, role: Any, path: list[str], message: str, value: Any) -> None:
    error = api.ask("POST", "/api/users", json=person("ann", role=role)).body["error"]
    assert error["message"] == message
    [entry] = error["details"]["errors"]
    assert (entry["path"], entry["message"], entry.get("value", ...)) == (path, message, value)
    assert api.ask("POST", "/api/users", json=person("ann")).status == 201
    changed = api.ask("PUT", "/api/users/1", json={"role": role})
    if role in ({}, {"connect": []}):  # These values change nothing.
        assert (changed.status, changed.body["role"]["type"]) == (200, "authenticated")
    else:
        assert changed.status == 400


def test_the_last_role_of_a_user_is_not_removed(api: Api) -> None:
    api.ask("POST", "/api/users", json=person("ann"))
    error = api.ask("PUT", "/api/users/1", json={"role": {"disconnect": [{"id": 1}]}}).body["error"]
    [entry] = error["details"]["errors"]
    assert (entry["path"], error["message"]) == (["role", "disconnect"], "Cannot remove role")


@pytest.mark.parametrize(
    ("changes", "messages", "value"),
    [
        ({"username": ""}, ["username must be at least 1 characters", "username is a required field"], ""),
        ({"username": ["x"]}, ["username must be a string"], ["x"]),
        ({"email": ""}, ["email is a required field"], ""),
        ({"password": ""}, ["password must be at least 1 characters", "password is a required field"], None),
        ({"confirmed": "x"}, ["confirmed must be true or false"], "x"),
    ],
)
def test_errors_of_a_new_user_quote_what_was_sent(
    api: Api, changes: dict[str, Any], messages: list[str], value: Any
) -> None:
    errors = api.ask("POST", "/api/users", json=person("ann", **changes)).body["error"]["details"]["errors"]
    assert [entry["message"] for entry in errors] == messages
    assert [entry["value"] for entry in errors] == [value] * len(messages)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"username": ""}, "username must be at least 1 characters"),
        ({"email": ""}, "email must be at least 1 characters"),
        ({"password": {}}, "Password must be at least 1 character"),
    ],
)
def test_errors_of_a_changed_user(api: Api, changes: dict[str, Any], message: str) -> None:
    api.ask("POST", "/api/users", json=person("ann"))
    assert api.ask("PUT", "/api/users/1", json=changes).body["error"]["message"] == message


@pytest.mark.parametrize("key", ["9", "abc"])
def test_a_user_that_is_not_there_is_not_changed(api: Api, key: str) -> None:
    error = api.ask("PUT", f"/api/users/{key}", json={"username": "x"}).body["error"]
    assert (error["status"], error["message"]) == (404, "User not found")


def test_a_login_quotes_what_was_sent_but_no_password(api: Api) -> None:
    answer = api.ask("POST", "/api/auth/local", "public", json={"identifier": "", "password": ["secret"]})
    assert [entry["value"] for entry in answer.body["error"]["details"]["errors"]] == ["", None]


EDITOR = 6355361361238431  # the id of the role


@pytest.mark.parametrize(
    "role",
    [
        EDITOR,
        str(EDITOR),
        "editor",
        "role-editor",
        {"connect": [{"id": EDITOR}]},
        {"set": [EDITOR]},
        {"id": EDITOR, "documentId": "role-editor"},
    ],
)
def test_a_role_is_named_in_many_ways(api: Api, role: Any) -> None:
    assert api.ask("POST", "/api/users", json=person("ann", role=role)).body["role"]["type"] == "editor"


def test_the_id_of_a_role_does_not_depend_on_other_roles(api: Api) -> None:
    def ids() -> dict[str, int]:
        roles = api.get("/api/users-permissions/roles").body["roles"]
        return {role["type"]: role["id"] for role in roles}

    before, text = ids(), api.read("site.yaml")
    assert (before["authenticated"], before["public"], before["editor"]) == (1, 2, EDITOR)
    write(api.root, {"site.yaml": text.replace("roles:\n", "roles:\n  another: {}\n")})
    api.site.refresh()
    assert {**ids(), "another": 0} == {**before, "another": 0}
    write(api.root, {"site.yaml": text.replace("  editor:", "  writer:")})
    api.site.refresh()
    assert EDITOR not in ids().values()
    answer = api.ask("POST", "/api/users", json=person("ann", role=EDITOR))
    assert (answer.status, answer.body["error"]["message"]) == (400, "role does not exist")


def test_a_role_that_could_be_another_is_not_given(api: Api) -> None:
    text = api.read("site.yaml").replace("roles:\n", "roles:\n  '1': {}\n  role-editor: {}\n")
    write(api.root, {"site.yaml": text})
    api.site.refresh()
    for role in (
        "1",
        "role-editor",
        {"documentId": "role-editor"},
        {"id": 1, "documentId": "role-editor"},
        {"id": 3, "documentId": "role-public"},
        True,
    ):
        answer = api.ask("POST", "/api/users", json=person("ann", role=role))
        assert answer.status == 400, role
        assert "role" in answer.body["error"]["message"]
    for key in ("1", "role-editor"):
        assert api.get(f"/api/users-permissions/roles/{key}").body["role"]["type"] == key
    assert api.ask("POST", "/api/users", json=person("ann", role=1)).body["role"]["type"] == "authenticated"


def test_the_role_of_a_user_is_shown_to_those_who_may_find_roles(api: Api) -> None:
    may = ["user.create", "user.update", *api.site.state.settings.roles["public"]]
    maker = api.accounts.create_token("maker", "custom", may)
    assert "role" not in api.ask("POST", "/api/users", "public", json=person("ann"), **as_user(maker)).body
    assert "role" not in api.ask("PUT", "/api/users/1", "public", json={"role": 2}, **as_user(maker)).body
    assert api.get("/api/users/1?populate=role").body["role"]["type"] == "public"


def test_roles_are_not_written_through_the_api(api: Api) -> None:
    for method, path in (("POST", ""), ("PUT", "/1"), ("DELETE", "/1")):
        answer = api.ask(method, f"/api/users-permissions/roles{path}", json={"name": "x"})
        assert answer.status == 405
        assert "site.yaml" in answer.body["error"]["message"]
        options = api.client.options(f"/api/users-permissions/roles{path}")
        assert answer.headers["Allow"] == options.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert api.get("/api/users-permissions/roles/99").body["error"]["message"] == "Role not found"


def test_a_new_password_is_another_one(api: Api) -> None:
    session = as_user(register(api).body["jwt"])
    form = {"currentPassword": "secret12", "password": "secret12", "passwordConfirmation": "secret12"}
    error = api.ask("POST", "/api/auth/change-password", "public", json=form, **session).body["error"]
    assert error["message"] == "Your new password must be different than your current password"
    assert login(api).status == 200


def test_no_other_site_is_there_to_log_in_with(api: Api) -> None:
    for path in ("auth/github/callback?access_token=x", "connect/github", "connect/github/callback"):
        error = api.get(f"/api/{path}", "public").body["error"]
        assert (error["status"], error["message"]) == (400, "This provider is disabled")
    assert api.get("/api/auth/local/callback", "public").body["error"]["message"] == "2 errors occurred"
    assert api.get("/api/connect", "public").status == 404


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
def test_a_very_long_text_is_refused_at_once(api: Api, path: str, name: str) -> None:
    who = {"identifier": "ann", "password": "secret12"} if path == "/api/auth/local" else ANN
    form = {**who, name: "a" * 60_000 + "@example.org"}
    with computing_less_than(1.5):
        answer = api.ask("POST", path, json=form)
    assert answer.status == 400
    assert name in {entry["path"][0] for entry in answer.body["error"]["details"]["errors"]}
    assert len(answer.raw) < 2000
    form[name] = "a" * 15_000_000
    assert api.ask("POST", path, json=form).error["name"] == "PayloadTooLargeError"
