"""Tests of renewable sessions (`auth.refresh`): tokens, rotation, cookies, devices and signing out."""

import json
from pathlib import Path
from typing import Any

import pytest

from server.api.routes.login import device_name
from tests.sites import Answer, Api, make, schema

ROLES = """
roles:
  public: {auth: [callback, register, resetPassword, refresh]}
  authenticated:
    {note: [find], user: [me], auth: [changePassword, logout, getSessions, revokeSession]}
"""
ANN = {"username": "ann", "email": "ann@example.org", "password": "secret12"}
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"


def site(tmp_path: Path, auth: str) -> Api:
    files = {"content-types/note.json": schema("note", {"text": "string"}), "site.yaml": f"{auth}\n{ROLES}"}
    api = make(tmp_path, files)
    api.ask("POST", "/api/auth/local/register", "public", json=ANN)
    return api


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return site(tmp_path, "auth: {refresh: true}")


def login(api: Api, headers: Any = None, **form: Any) -> Answer:
    body = {"identifier": "ann", "password": "secret12", **form}
    return api.ask("POST", "/api/auth/local", "public", json=body, headers=headers or {})


def refresh(api: Api, token: Any) -> Answer:
    return api.ask("POST", "/api/auth/refresh", "public", json={"refreshToken": token})


def sessions(api: Api, jwt: str) -> list[dict[str, Any]]:
    return list(api.get("/api/auth/sessions", jwt).body["data"])


def test_without_the_setting_there_are_no_such_paths(tmp_path: Path) -> None:
    api = site(tmp_path, "")
    body = login(api).body
    assert set(body) == {"jwt", "user"}
    assert refresh(api, "x").status == 404
    for method, path in (("POST", "logout"), ("GET", "sessions"), ("DELETE", "sessions/x")):
        for who in (body["jwt"], "public", "of.no.user"):
            assert api.ask(method, f"/api/auth/{path}", who).status == 404


def test_a_login_gives_two_tokens_of_which_one_is_for_requests(api: Api) -> None:
    body = login(api).body
    assert set(body) == {"jwt", "refreshToken", "user"}
    assert api.get("/api/users/me", body["jwt"]).status == 200
    assert api.get("/api/users/me", body["refreshToken"]).status == 401


def test_registering_gives_both_tokens_as_well(api: Api) -> None:
    bob = {"username": "bob", "email": "bob@example.org", "password": "secret12"}
    body = api.ask("POST", "/api/auth/local/register", "public", json=bob).body
    assert api.get("/api/users/me", body["jwt"]).body["username"] == "bob"
    assert refresh(api, body["refreshToken"]).status == 200


def test_each_refresh_token_is_good_once(api: Api) -> None:
    first = login(api).body["refreshToken"]
    answer = refresh(api, first)
    assert set(answer.body) == {"jwt", "refreshToken"}
    assert api.get("/api/users/me", answer.body["jwt"]).status == 200
    again = refresh(api, first)
    assert (again.status, again.error["message"]) == (401, "Invalid refresh token")
    assert refresh(api, answer.body["refreshToken"]).status == 200


@pytest.mark.parametrize("token", [None, "", 5])
def test_no_refresh_token_at_all_is_a_bad_request(api: Api, token: object) -> None:
    error = refresh(api, token).error
    assert (error["status"], error["name"], error["message"]) == (
        400,
        "BadRequestError",
        "Missing refresh token",
    )


@pytest.mark.parametrize("kind", ["nonsense", "jwt"])
def test_other_tokens_do_not_refresh(api: Api, kind: str) -> None:
    assert refresh(api, login(api).body.get(kind, "a.b.c")).status == 401


def test_a_token_of_before_the_setting_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIFOLIO_JWT_SECRET", "the same key " * 4)
    jwt = login(site(tmp_path / "before", "")).body["jwt"]
    api = site(tmp_path / "after", "auth: {refresh: true}")
    assert api.get("/api/users/me", login(api).body["jwt"]).status == 200
    assert api.get("/api/users/me", jwt).status == 401


@pytest.mark.parametrize(
    ("settings", "header"), [("refresh: true, cookie: true", ""), ("refresh: true", "httpOnly")]
)
def test_the_refresh_token_can_be_a_cookie(tmp_path: Path, settings: str, header: str) -> None:
    api = site(tmp_path, f"auth: {{{settings}}}")
    headers = {"X-Strapi-Refresh-Cookie": header} if header else {}
    answer = login(api, headers)
    assert set(answer.body) == {"jwt", "user"}
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("strapi_up_refresh=")
    assert {"HttpOnly", "SameSite=Lax", "Path=/api/auth"} <= set(cookie.split("; "))
    renewed = api.ask("POST", "/api/auth/refresh", "public", headers=headers)
    assert set(renewed.body) == {"jwt"}
    out = api.ask("POST", "/api/auth/logout", renewed.body["jwt"], headers=headers)
    assert "1970" in out.headers["Set-Cookie"]
    assert api.ask("POST", "/api/auth/refresh", "public", headers=headers).status == 400


def test_a_token_that_came_in_a_cookie_is_in_no_body(api: Api) -> None:
    login(api, {"X-Strapi-Refresh-Cookie": "httpOnly"})
    renewed = api.ask("POST", "/api/auth/refresh", "public")
    assert set(renewed.body) == {"jwt"}
    assert "HttpOnly" in renewed.headers["Set-Cookie"]
    assert api.ask("POST", "/api/auth/refresh", "public").status == 200


@pytest.mark.parametrize("path", ["local", "local/register", "reset-password"])
def test_no_form_of_another_page_signs_anybody_in(tmp_path: Path, path: str) -> None:
    form = {"identifier": "ann", "username": "bob", "email": "bob@example.org", "password": "secret12"}
    wanted = ("username", "email", "password") if "register" in path else ("identifier", "password")
    sent = {name: form[name] for name in wanted}
    with_cookies = site(tmp_path / "a", "auth: {refresh: true, cookie: true}")
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain"):
        data: Any = json.dumps(sent) if kind == "text/plain" else sent
        url = f"/api/auth/{path}"
        refused = with_cookies.ask("POST", url, "public", data=data, content_type=kind)
        assert (refused.status, "Set-Cookie" in refused.headers) == (400, False)
    if path != "reset-password":
        without = site(tmp_path / "b", "auth: {refresh: true}")
        assert without.ask("POST", f"/api/auth/{path}", "public", data=sent).status == 200


def test_sessions_are_listed_with_the_current_one_first(api: Api) -> None:
    login(api, deviceId="phone")
    jwt = login(api, {"User-Agent": FIREFOX}, deviceId="desk").body["jwt"]
    listed = sessions(api, jwt)
    assert (listed[0]["deviceId"], listed[0]["current"]) == ("desk", True)
    # None: the session that began with the registration
    assert {s["deviceId"] for s in listed} == {"desk", "phone", None}
    assert listed[0]["deviceName"] == "Firefox on Linux"
    assert "token" not in json.dumps(listed).lower()


def test_a_session_that_was_revoked_has_ended_with_its_tokens(api: Api) -> None:
    phone, desk = login(api, deviceId="phone").body, login(api, deviceId="desk").body
    (found,) = [s["id"] for s in sessions(api, desk["jwt"]) if s["deviceId"] == "phone"]
    assert api.ask("DELETE", f"/api/auth/sessions/{found}", desk["jwt"]).body == {"data": {}}
    assert refresh(api, phone["refreshToken"]).status == 401
    assert api.get("/api/users/me", phone["jwt"]).status == 401
    again = api.ask("DELETE", f"/api/auth/sessions/{found}", desk["jwt"])
    assert (again.status, again.error["message"]) == (404, "Session not found")
    assert api.get("/api/users/me", desk["jwt"]).status == 200


def test_nobody_ends_the_session_of_another(api: Api) -> None:
    bob = {"username": "bob", "email": "bob@example.org", "password": "secret12"}
    other = api.ask("POST", "/api/auth/local/register", "public", json=bob).body
    ann = login(api).body
    own = sessions(api, ann["jwt"])[0]["id"]
    assert api.ask("DELETE", f"/api/auth/sessions/{own}", other["jwt"]).status == 404
    assert api.ask("POST", "/api/auth/logout", other["jwt"], json=ann).status == 200
    assert api.get("/api/users/me", ann["jwt"]).status == 200


@pytest.mark.parametrize(
    ("body", "left"), [({}, {"desk"}), ({"deviceId": "desk"}, {"phone"}), ({"scope": "all"}, set())]
)
def test_logging_out_ends_this_session_those_of_a_device_or_all(api: Api, body: Any, left: set[str]) -> None:
    made = {device: login(api, deviceId=device).body for device in ("phone", "desk")}
    assert api.ask("POST", "/api/auth/logout", made["phone"]["jwt"], json=body).body == {"ok": True}
    assert {d for d in made if api.get("/api/users/me", made[d]["jwt"]).status == 200} == left
    assert {d for d in made if refresh(api, made[d]["refreshToken"]).status == 200} == left


def test_a_token_that_is_no_users_has_no_sessions(api: Api) -> None:
    for method, path in (("POST", "logout"), ("GET", "sessions"), ("DELETE", "sessions/x")):
        error = api.ask(method, f"/api/auth/{path}").error
        assert (error["status"], error["message"]) == (401, "Missing authentication")


def test_a_changed_password_ends_all_sessions_but_the_new_one(api: Api) -> None:
    old = login(api).body
    form = {"currentPassword": "secret12", "password": "secret34", "passwordConfirmation": "secret34"}
    new = api.ask("POST", "/api/auth/change-password", old["jwt"], json=form).body
    assert refresh(api, old["refreshToken"]).status == 401
    assert api.get("/api/users/me", old["jwt"]).status == 401
    assert len(sessions(api, new["jwt"])) == 1


def test_a_blocked_user_is_given_no_token(api: Api) -> None:
    body = login(api).body
    api.ask("PUT", f"/api/users/{body['user']['id']}", json={"blocked": True})
    assert refresh(api, body["refreshToken"]).status == 401


def test_a_session_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = site(tmp_path, "auth: {refresh: true, idle: 1m}")
    body = login(api).body
    monkeypatch.setattr("server.auth.logins.now", lambda: "2999-01-01T00:00:00.000Z")
    assert refresh(api, body["refreshToken"]).status == 401


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) Version/17.5 Mobile/15E148 Safari/604.1",
            "Safari on iOS",
        ),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0", "Edge on Windows"),
        ("curl/8.5.0", None),
        ("", None),
    ],
)
def test_a_device_is_called_by_its_browser_and_system(agent: str, name: str | None) -> None:
    assert device_name(agent) == name
