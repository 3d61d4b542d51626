"""Tests of `/users` and `/tokens`, with which administrators manage users, sessions and API tokens."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from server.auth import mail
from server.auth.directory import open_directory
from server.auth.owner import OWNER
from server.auth.users import Users
from server.errors import UnavailableError, ValidationError
from server.index.user_index import UserIndex
from server.schema.model import USER
from server.service.people import People
from server.service.read import Caller, Reader
from server.service.user_management import UserManagement
from server.storage.write_lock import WriteLock
from tests.sites import STRING, Answer, Api, collection, make, write
from tests.waiting import until

SITE = """\
auth: {refresh: true}
roles:
  public: {auth: [callback]}
  authenticated: {note: [find], user: [me]}
  editor: {note: [find, findOne, update], user: [me]}
  clerk: {note: [find], user: [me, find, findOne, create, update, destroy], token: [read, create, revoke]}
  chief: {note: [find, delete], user: [find, update]}
"""
FILES = {**collection("note", {"title": STRING}), "site.yaml": SITE}
PEOPLE = {"ann": "authenticated", "edd": "editor", "cleo": "clerk", "chip": "chief"}
PASSWORD = "slack water"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    api = make(tmp_path, FILES)
    for name, role in PEOPLE.items():
        user = {"username": name, "email": f"{name}@example.org", "password": PASSWORD, "role": role}
        assert api.ask("POST", "/api/users", json=user).status == 201
        api.tokens[name] = sign_in(api, name).body["jwt"]
    yield api
    api.accounts.close()


def sign_in(api: Api, name: str, password: str = PASSWORD, agent: str = "") -> Answer:
    form, headers = {"identifier": name, "password": password}, {"User-Agent": agent}
    return api.ask("POST", "/api/auth/local", "public", json=form, headers=headers)


def rows(answer: Answer) -> dict[str, Any]:
    return {row["username"]: row for row in answer.data}


def number(api: Api, name: str) -> int:
    found = rows(api.get("/users"))[name]["id"]
    assert isinstance(found, int)
    return found


def change(api: Api, name: str, data: Any, who: str = "full", tag: str = "") -> Answer:
    row = rows(api.get("/users"))[name]
    tag = tag or row["version"]
    return api.ask("PUT", f"/users/{row['id']}", who, json={"data": data}, headers={"If-Match": f'"{tag}"'})


def test_users_are_listed_with_what_the_caller_may_do(api: Api) -> None:
    assert api.get("/api/notes", "ann").status == 200
    answer = api.get("/users", "cleo")
    found = rows(answer)
    assert list(found) == ["ann", "chip", "cleo", "edd"]
    assert found["ann"]["lastSeen"] > found["ann"]["createdAt"]
    assert found["edd"]["lastSeen"] is None
    assert found["ann"]["sessions"] == 1
    assert {name: row["changeable"] for name, row in found.items()} == {
        "ann": True,
        "chip": False,
        "cleo": True,
        "edd": False,
    }
    assert answer.body["meta"]["roles"] == {
        "authenticated": True,
        "editor": False,
        "clerk": True,
        "chief": False,
    }
    assert answer.body["meta"]["sendsMail"] is False
    assert answer.body["meta"]["passwordSignIn"] is True
    assert list(rows(api.get("/users?role=editor&q=ED"))) == ["edd"]
    page = api.get("/users?pageSize=2&page=2")
    assert list(rows(page)) == ["cleo", "edd"]
    assert page.body["meta"]["pagination"]["total"] == 4
    assert "argon2" not in answer.text
    assert api.get("/users", "ann").status == 403


def test_an_invited_user_chooses_a_password_once(api: Api) -> None:
    new = {"username": "nell", "email": "nell@example.org", "role": "authenticated"}
    made = api.post("/users", new, "cleo")
    assert made.status == 201
    assert (made.data["invited"], made.body["meta"]["sent"]) == (True, False)
    assert sign_in(api, "nell", "").status == 400
    link = made.body["meta"]["link"]
    address, _, code = link.partition("#")
    assert address == "http://localhost/studio/site/-/invitation"
    again = api.ask("POST", f"/users/{made.data['id']}/invitation", "cleo")
    assert again.status == 201
    form = {"code": code, "password": "flood tide"}
    assert (
        api.ask("POST", "/invitation", "public", json=form).error["message"].startswith("This invitation has")
    )
    form["code"] = again.body["meta"]["link"].partition("#")[2]
    assert api.ask("POST", "/invitation", "public", json={**form, "password": "short"}).status == 400
    assert api.ask("POST", "/invitation", "public", json=form).data == {"username": "nell"}
    assert api.ask("POST", "/invitation", "public", json=form).status == 400
    assert sign_in(api, "nell", "flood tide").status == 200
    assert rows(api.get("/users"))["nell"]["invited"] is False


def test_a_user_whose_invitation_cant_be_stored_is_not_created(api: Api) -> None:
    trigger = "BEFORE UPDATE OF reset_hash ON users BEGIN SELECT RAISE(ABORT, 'full'); END"
    with api.accounts.engine.writing() as connection:
        connection.execute(f"CREATE TRIGGER full {trigger}")
    data = {"username": "newcomer", "email": "newcomer@example.org"}
    assert api.post("/users", data).status >= 500
    with api.accounts.engine.writing() as connection:
        connection.execute("DROP TRIGGER full")
    assert api.post("/users", data).status == 201


def test_an_invitation_is_sent_if_there_is_a_mail_server(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(mail, "send", lambda settings, to, subject, text: sent.append((to, text)))
    (api.root / "site.yaml").write_text(SITE + "mail: {host: smtp.example.org}\n")
    api.site.refresh()
    made = api.post("/users", {"username": "nell", "email": "nell@example.org"})
    assert made.body["meta"]["sent"] is True
    until(lambda: bool(sent))
    assert sent[0][0] == "nell@example.org"
    assert made.body["meta"]["link"] in sent[0][1]


def test_links_begin_with_the_public_url(api: Api) -> None:
    settings = SITE + "mail: {host: smtp.example.org}\napi: {trusted_proxies: [127.0.0.1]}\n"
    write(api.root, {"site.yaml": settings})
    api.site.refresh()
    assert [problem.message for problem in api.site.problems] == [
        "links in invitations contain the Host header that the proxy sends"
    ]
    write(api.root, {"site.yaml": SITE + "public_url: https://cms.example.org/\n"})
    api.site.refresh()
    data, headers = {"username": "nell", "email": "nell@example.org"}, {"Host": "evil.example"}
    made = api.post("/users", data, headers=headers)
    assert made.body["meta"]["link"].startswith("https://cms.example.org/studio/site/-/invitation#")
    again = api.ask("POST", f"/users/{made.data['id']}/invitation", headers=headers)
    assert again.body["meta"]["link"].startswith("https://cms.example.org/studio/site/-/invitation#")


def test_an_invitation_needs_the_address_of_the_server(api: Api) -> None:
    data, headers = {"username": "nell", "email": "nell@example.org"}, {"Host": ""}
    for answer in (
        api.post("/users", data, headers=headers),
        api.ask("POST", f"/users/{number(api, 'ann')}/invitation", headers=headers),
    ):
        assert (answer.status, "The Host header is empty" in answer.error["message"]) == (400, True)
    assert "nell" not in rows(api.get("/users"))
    write(api.root, {"site.yaml": SITE + "public_url: https://cms.example.org\n"})
    api.site.refresh()
    assert api.post("/users", data, headers=headers).status == 201


def test_nobody_acts_on_users_or_gives_roles_that_can_do_more(api: Api) -> None:
    new = {"username": "nell", "email": "nell@example.org"}
    for role in ("editor", "chief"):
        assert api.post("/users", {**new, "role": role}, "cleo").status == 403
        old = {**new, "password": PASSWORD, "role": role}
        assert api.ask("POST", "/api/users", "cleo", json=old).status == 403
        assert change(api, "ann", {"role": role}, "cleo").status == 403
        assert change(api, "cleo", {"role": role}, "cleo").status == 403
        path = f"/api/users/{number(api, 'ann')}"
        assert api.ask("PUT", path, "cleo", json={"role": role}).status == 403
    for name in ("edd", "chip"):
        key = number(api, name)
        assert change(api, name, {"blocked": True}, "cleo").status == 403
        assert change(api, name, {"role": "authenticated"}, "cleo").status == 403
        for method, path in (
            ("DELETE", f"/users/{key}"),
            ("DELETE", f"/users/{key}/sessions"),
            ("POST", f"/users/{key}/invitation"),
            ("DELETE", f"/users/{key}/sessions/none"),
            ("DELETE", f"/api/users/{key}"),
        ):
            assert api.ask(method, path, "cleo").status == 403, path
        assert api.ask("PUT", f"/api/users/{key}", "cleo", json={"password": "mine mine"}).status == 403
        assert sign_in(api, name).status == 200
    answer = change(api, "ann", {"role": "clerk"}, "cleo")
    assert answer.data["role"] == "clerk"


def test_two_people_do_not_overwrite_each_other(api: Api) -> None:
    tag = rows(api.get("/users"))["ann"]["version"]
    assert change(api, "ann", {"role": "editor"}, tag=tag).status == 200
    answer = change(api, "ann", {"role": "chief"}, tag=tag)
    assert (answer.status, answer.error["message"]) == (412, "The user has changed since you read it")
    assert api.get(f"/users/{number(api, 'ann')}").data["role"] == "editor"
    missing = api.put(f"/users/{number(api, 'ann')}", {"role": "chief"})
    assert "If-Match" in missing.error["message"]


def delete_role(api: Api, role: str) -> Answer:
    tag = api.get("/roles").headers["ETag"]
    return api.ask("DELETE", f"/roles/{role}", headers={"If-Match": tag})


def test_nobody_gets_a_role_that_was_deleted_during_the_request(api: Api) -> None:
    state = api.site.state  # the state with which each of these requests began
    caller, index = Caller(state, OWNER), UserIndex(Users(api.accounts), api.root)
    chip, edd = number(api, "chip"), number(api, "edd")
    assert change(api, "edd", {"role": "authenticated"}).status == 200
    assert delete_role(api, "editor").status == 200
    managed = UserManagement(open_directory(api.root, state.settings, api.accounts), caller)
    reader = Reader(state, state.schema.types[USER], OWNER, users=lambda: index)
    people, new = People(Users(api.accounts), reader), {"username": "una", "email": "una@example.org"}
    requests = (
        lambda: managed.invite({**new, "role": "editor"}),
        lambda: managed.update(str(edd), {"role": "editor"}, "*"),
        lambda: people.create({**new, "password": PASSWORD, "role": "editor"}, {}),
        lambda: people.update(chip, {"role": "editor"}, {}),
    )
    for request in requests:
        with pytest.raises(ValidationError, match="The role editor does not exist"):
            request()
    roles = {name: row["role"] for name, row in rows(api.get("/users")).items()}
    assert roles == {"ann": "authenticated", "chip": "chief", "cleo": "clerk", "edd": "authenticated"}


def test_a_role_is_deleted_before_or_after_a_user_gets_it(api: Api) -> None:
    assert change(api, "edd", {"role": "authenticated"}).status == 200
    engine, lock = api.accounts.engine, WriteLock(api.root / ".bifolio/write.lock", api.root)

    def are_locked() -> bool:
        try:
            with engine.writing(timeout_s=0):
                return False
        except UnavailableError:
            return True

    new = {"username": "una", "email": "una@example.org", "role": "editor"}
    with ThreadPoolExecutor(2) as clients:
        with lock.held():  # The role's users are counted, but site.yaml can't be written yet.
            deleted = clients.submit(delete_role, api, "editor")
            until(are_locked, 5)
            invited = clients.submit(api.post, "/users", new)
        assert deleted.result().status == 200
        assert invited.result().status == 400
    assert "una" not in rows(api.get("/users"))


def test_a_blocked_user_is_signed_out(api: Api) -> None:
    assert change(api, "ann", {"blocked": True}, "cleo").data["blocked"] is True
    assert api.get("/api/notes", "ann").status == 401
    assert change(api, "cleo", {"blocked": True}, "cleo").error["message"] == "You can't block yourself"


def test_only_callers_who_can_do_the_same_can_sign_in_as_an_existing_user(api: Api) -> None:
    """Everybody may manage users with the role of new users, but not read what only these users can read."""
    key, new = number(api, "ann"), {"username": "nell", "email": "nell@example.org"}
    api.token("desk", may=("user.find", "user.create", "user.update", "token.read"))
    made = api.post("/users", new, "desk")
    assert api.ask("POST", f"/users/{made.data['id']}/invitation", "desk").status == 201
    assert api.ask("POST", f"/users/{key}/invitation", "desk").status == 403
    assert change(api, "ann", {"email": "mine@example.org"}, "desk").status == 403
    for data in ({"email": "mine@example.org"}, {"password": "mine mine"}):
        assert api.ask("PUT", f"/api/users/{key}", "desk", json=data).status == 403
    assert change(api, "ann", {"blocked": True}, "desk").status == 200
    assert api.ask("POST", f"/users/{key}/invitation", "cleo").status == 201


def test_sessions_of_users_who_can_do_more_are_not_listed(api: Api) -> None:
    assert api.get(f"/users/{number(api, 'edd')}/sessions", "cleo").status == 403
    assert len(api.get("/users/me/sessions", "edd").data) == 1


def test_an_invitation_does_not_outlast_a_new_role_or_blocking(api: Api) -> None:
    """The user manager who invited somebody must not sign in as that user after a promotion."""
    made = api.post("/users", {"username": "nell", "email": "nell@example.org"}, "cleo")
    for data in ({"role": "chief"}, {"blocked": True}, {"blocked": False}):
        code = api.ask("POST", f"/users/{made.data['id']}/invitation").body["meta"]["link"].partition("#")[2]
        assert change(api, "nell", data).status == 200
        form = {"code": code, "password": "flood tide"}
        assert api.ask("POST", "/invitation", "public", json=form).status == 400
    assert sign_in(api, "nell", "flood tide").status == 400


def test_a_new_role_ends_the_sessions(api: Api) -> None:
    assert change(api, "ann", {"role": "authenticated", "email": "ann@other.example"}).status == 200
    assert api.get("/api/notes", "ann").status == 200
    assert change(api, "ann", {"role": "editor"}).status == 200
    assert api.get("/api/notes", "ann").status == 401
    path = f"/api/users/{number(api, 'edd')}"
    assert api.ask("PUT", path, json={"role": "clerk"}).status == 200
    assert api.get("/api/notes", "edd").status == 401


@pytest.mark.parametrize("tag", ['""', '"2020-01-01T00:00:00.000Z"', "W/", '"*"'])
def test_a_change_with_another_version_is_refused(api: Api, tag: str) -> None:
    path = f"/users/{number(api, 'ann')}"
    body, headers = {"data": {"role": "editor"}}, {"If-Match": tag}
    assert api.ask("PUT", path, json=body, headers=headers).status == 412
    assert api.ask("PUT", path, json=body, headers={"If-Match": "*"}).status == 200


def test_sessions_are_listed_and_ended(api: Api) -> None:
    key = number(api, "ann")
    version = rows(api.get("/users"))["ann"]["version"]
    second = sign_in(api, "ann", agent="Firefox/1.0 (X11; Linux)").body["jwt"]
    found = api.get(f"/users/{key}/sessions", "cleo").data
    assert [session["deviceName"] for session in found] == ["Firefox on Linux", None]
    assert api.get(f"/users/{key}/sessions", "ann").data == found
    assert api.get(f"/users/{number(api, 'edd')}/sessions", "ann").status == 403
    assert api.ask("DELETE", f"/users/{key}/sessions/{found[0]['id']}", "cleo").status == 204
    assert api.get("/api/users/me", second).status == 401
    assert api.get("/api/users/me", "ann").status == 200
    assert api.ask("DELETE", f"/users/{key}/sessions", "ann").status == 204
    assert api.get("/api/users/me", "ann").status == 401
    assert api.get(f"/users/{key}/sessions", "cleo").data == []
    assert rows(api.get("/users"))["ann"]["version"] == version


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"username": "x"}, "username must be at least 3 characters"),
        ({"email": "x"}, "email must be a valid email"),
        ({"role": "none"}, "role does not exist"),
        ({"role": "public"}, "role does not exist"),
        ({"role": "role-editor"}, "role does not exist"),
        ({"role": ["editor"]}, "role does not exist"),
        ({"role": "1"}, "role does not exist"),
        ({"password": "123456789"}, "password is not a field"),
        ({"blocked": "yes"}, "blocked must be true or false"),
        ({"username": "edd"}, "Username already taken"),
        ({}, "The request body must look like"),
    ],
)
def test_an_invalid_change_is_refused(api: Api, data: Any, message: str) -> None:
    answer = change(api, "ann", data)
    assert answer.status == 400
    assert message in answer.error["message"]


def test_a_deleted_user_is_gone(api: Api) -> None:
    key = number(api, "ann")
    assert api.ask("DELETE", f"/users/{number(api, 'cleo')}", "cleo").status == 400
    assert api.ask("DELETE", f"/users/{key}", "cleo").status == 204
    assert api.get(f"/users/{key}").status == 404
    assert api.get("/api/notes", "ann").status == 401


def test_a_token_is_shown_once_and_can_do_no_more_than_its_maker(api: Api) -> None:
    new = {"name": "news", "type": "custom", "permissions": ["note.find"], "expires": "30d"}
    made = api.post("/tokens", new, "cleo")
    secret = made.body["meta"]["secret"]
    assert made.status == 201
    assert made.headers["Cache-Control"] == "no-store"
    assert api.get("/api/notes", secret).status == 200
    listed = api.get("/tokens", "cleo")
    assert secret not in listed.text
    found = {token["name"]: token for token in listed.data}
    assert found["news"]["lastUsed"] > found["news"]["createdAt"]
    assert (found["news"]["changeable"], found["full"]["changeable"]) == (True, False)
    for more in (
        {"type": "full-access"},
        {"type": "read-only"},
        {"type": "custom", "permissions": ["note.find", "note.delete"]},
    ):
        assert api.post("/tokens", {"name": "more", **more}, "cleo").status == 403
    assert api.post("/tokens", new, "cleo").status == 409
    assert api.ask("DELETE", "/tokens/full", "cleo").status == 403
    assert api.ask("DELETE", "/tokens/news", "cleo").status == 204
    assert api.get("/api/notes", secret).status == 401
    assert api.ask("DELETE", "/tokens/news", "cleo").status == 404


def test_a_token_of_the_same_name_does_not_inherit_the_last_use(api: Api) -> None:
    new = {"name": "news", "type": "custom", "permissions": ["note.find"], "branchOnly": True}
    for _ in range(2):
        secret = api.post("/tokens", new).body["meta"]["secret"]
        token = next(t for t in api.get("/tokens").data if t["name"] == "news")
        assert (token["lastUsed"], token["expiresAt"], token["branchOnly"]) == (None, None, True)
        api.get("/api/notes", secret)
        api.ask("DELETE", "/tokens/news")


def make_token(api: Api, name: str, who: str, **more: Any) -> Answer:
    return api.post("/tokens", {"name": name, "type": "custom", "permissions": ["note.find"], **more}, who)


def test_a_token_does_not_outlive_the_token_that_created_it(api: Api) -> None:
    may = ("token.create", "token.read", "note.find")
    api.tokens["brief"] = api.accounts.create_token("brief", "custom", may, timedelta(days=1))
    ends = next(token.expires_at for token in api.accounts.tokens() if token.name == "brief")
    assert make_token(api, "a", "brief").data["expiresAt"] == ends
    assert make_token(api, "b", "brief", expires="1y").data["expiresAt"] == ends
    assert make_token(api, "c", "brief", expires="1h").data["expiresAt"] < ends
    assert make_token(api, "d", "full").data["expiresAt"] is None


@pytest.mark.parametrize("is_deleted", [False, True])
def test_the_tokens_of_a_blocked_or_deleted_user_stop_working(api: Api, is_deleted: bool) -> None:
    may = ["token.create", "note.find"]
    first = make_token(api, "first", "cleo", permissions=may).body["meta"]["secret"]
    second = make_token(api, "second", first).body["meta"]["secret"]
    makers = {token["name"]: token["maker"] for token in api.get("/tokens").data}
    assert makers["first"] == makers["second"] == {"kind": "user", "name": "cleo"}
    assert makers["full"] is None
    api.token("reader", may=("token.read",))
    assert {"kind": "user", "name": ""} in [token["maker"] for token in api.get("/tokens", "reader").data]
    assert api.get("/api/notes", second).status == 200
    if is_deleted:
        assert api.ask("DELETE", f"/users/{number(api, 'cleo')}").status == 204
    else:
        assert change(api, "cleo", {"blocked": True}).status == 200
    assert [api.get("/api/notes", secret).status for secret in (first, second)] == [401, 401]
    if not is_deleted:
        assert change(api, "cleo", {"blocked": False}).status == 200
        assert api.get("/api/notes", second).status == 200


def test_names_of_tokens_differ_in_more_than_case(api: Api) -> None:
    assert make_token(api, "News", "full").status == 201
    assert make_token(api, "news", "full").status == 409


def test_a_token_that_is_created_twice_at_once_is_a_conflict(api: Api) -> None:
    with ThreadPoolExecutor(8) as clients:
        made = [answer.status for answer in clients.map(lambda _: make_token(api, "n", "full"), range(8))]
    assert sorted(made) == [201, *[409] * 7]


def test_a_token_with_a_name_from_an_older_release_can_be_revoked(api: Api) -> None:
    api.accounts.create_token("Boss <boss@example.org> 1/2", "read-only")
    path = "/tokens/" + quote("Boss <boss@example.org> 1/2", safe="")
    assert api.ask("DELETE", path).status == 204
    assert api.ask("DELETE", path).status == 404


def test_tokens_are_listed_in_pages(api: Api) -> None:
    names = [token["name"] for token in api.get("/tokens").data]
    api.token("zoe")
    answer = api.get("/tokens?page=2&pageSize=1")
    assert [token["name"] for token in answer.data] == [sorted([*names, "zoe"])[1]]
    assert answer.body["meta"]["pagination"]["total"] == len(names) + 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"name": "", "type": "custom"},
            "name must be 1 to 64 letters, digits, -, _ or ., and not only dots",
        ),
        ({"name": "..", "type": "read-only"}, "name must be"),
        ({"name": "a/b", "type": "read-only"}, "name must be"),
        ({"name": "Boss Person <boss@example.org>", "type": "read-only"}, "name must be"),
        ({"name": "a" * 65, "type": "read-only"}, "name must be"),
        ({"name": "\u0430", "type": "read-only"}, "name must be"),  # Cyrillic
        ({"name": "a", "type": "any"}, "type must be one of full-access, read-only, custom"),
        ({"name": "a", "type": "custom"}, "a custom token requires at least one permission"),
        ({"name": "a", "type": "custom", "permissions": ["none.find"]}, 'unknown content type "none"'),
        ({"name": "a", "type": "custom", "permissions": ["note.fly"]}, 'unknown action "fly"'),
        ({"name": "a", "type": "read-only", "expires": "soon"}, "expires must be a duration such as 30d"),
        ({"name": "a", "type": "read-only", "kind": "b"}, "kind is not one of"),
        (None, "The request body must look like"),
    ],
)
def test_an_invalid_token_is_refused(api: Api, data: Any, message: str) -> None:
    answer = api.post("/tokens", data)
    assert answer.status == 400
    assert message in answer.error["message"]
