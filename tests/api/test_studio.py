"""Tests of signing in to the studio over HTTP: keys, sessions, the cookie and the requests that the cookie
authorizes.
"""

import os
import re
import time
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import brotli
import pytest

from server.api.studio import routes
from server.auth.owner import KEY_TTL_S, make_key
from tests.sites import Answer, Api, collection, documents, make

PAGE = {"Bifolio-Studio": "1", "Sec-Fetch-Site": "same-origin"}
SESSION = "/studio/-/session"
PERSON = {"username": "ann", "email": "ann@example.org", "password": "secret12", "role": "editor"}
ANN = {"identifier": "ann", "password": "secret12"}
FILES: dict[str, str | bytes] = {
    **collection("note", {"text": "string"}, drafts=True),
    **documents("notes", a={"text": "x"}),
    "site.yaml": "roles: {public: {auth: [callback]}, authenticated: {}, editor: {note: [find, readDraft]}}",
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = make(tmp_path, FILES)
    assert api.ask("POST", "/api/users", json=PERSON).status == 201
    return api


def ask(api: Api, method: str, path: str, **options: Any) -> Answer:
    """Send a request as the studio's page does, with the cookies of the test client."""
    return api.ask(method, path, "public", headers={**PAGE, **options.pop("headers", {})}, **options)


def sign_in(api: Api, **form: object) -> Answer:
    return ask(api, "POST", SESSION, json=form or {"key": make_key(api.root)})


def test_the_page_and_its_files_hold_nothing_but_themselves(api: Api) -> None:
    page = api.get("/studio", "public")
    assert page.status == 200
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<style| style=| on[a-z]+=", page.text)
    # The policy allows the inline script by its hash.
    [inline] = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>([^<]+)</script>", page.text)
    assert f"script-src 'self' 'sha256-{b64encode(sha256(inline.encode()).digest()).decode()}';" in policy
    [script] = re.findall(r'src="([^"]+)"', page.text)
    found = api.get(f"/{script}", "public")
    assert found.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert "immutable" in found.headers["Cache-Control"]
    assert (
        api.get("/studio/-/other/main.js", "public").headers["Cache-Control"].startswith("public, max-age=0")
    )
    for path in ("/studio/-/x/nothing.js", "/studio/-/x/../routes.py", "/studio/-/", "/studio/-/x"):
        assert api.get(path, "public").status == 404


def test_files_are_sent_as_small_as_they_get(api: Api) -> None:
    plain = api.get("/studio/-/x/vendor/preact.js", "public", headers={"Accept-Encoding": "identity"})
    small = api.get("/studio/-/x/vendor/preact.js", "public", headers={"Accept-Encoding": "gzip, br"})
    assert small.headers["Content-Encoding"] == "br"
    assert "Accept-Encoding" in small.headers["Vary"]
    assert int(small.headers["Content-Length"]) == len(small.raw) < 6_000
    assert brotli.decompress(small.raw) == plain.raw
    assert "Content-Encoding" not in plain.headers


def test_a_used_key_keeps_the_session_of_somebody_who_is_signed_in(api: Api) -> None:
    key = make_key(api.root)
    name, value = sign_in(api, key=key).headers["Set-Cookie"].partition(";")[0].split("=")
    again = sign_in(api, key=key)
    assert again.status == 204
    assert again.headers["Set-Cookie"].startswith(f"{name}={value};")
    api.client.set_cookie(name, f"{value}x")
    assert sign_in(api, key=key).status == 400


@pytest.mark.parametrize("path", ["/studio", "/studio/note", "/studio/note/a"])
def test_the_page_names_the_modules_that_it_begins_with(api: Api, path: str) -> None:
    links = re.findall(r'<link rel="(modulepreload|ahead)".* href="([^"]+)">', api.get(path, "public").text)
    how = {name.partition("/-/")[2].partition("/")[2]: how for how, name in links}
    assert all(api.get(f"/studio/-/x/{name}", "public").status == 200 for name in how)
    assert {how[name] for name in ("app.js", "home.js", "vendor/preact.js")} == {"modulepreload"}
    # The home page does not need these modules to render.
    later = "ahead" if path == "/studio" else "modulepreload"
    lists = ("documents/pages.js", "documents/list-page.js", "documents/document-page.js")
    assert {how[name] for name in lists} == {later}
    # The main script and modules that are loaded on demand are not preloaded.
    assert not {"main.js", "vendor/codemirror.js", "site/problems-page.js"} & how.keys()


@pytest.mark.parametrize(
    ("path", "up"), [("/studio", ""), ("/studio/note", "../"), ("/studio/note/a", "../../")]
)
def test_every_place_in_the_page_is_the_page(api: Api, path: str, up: str) -> None:
    text = api.get(path, "public").text
    assert f'src="{up}studio/-/' in text
    [first] = re.findall(r'data-url="([^"]+)"', text)
    assert urljoin(f"https://example.org/site{path}", first) == "https://example.org/site/access"


def test_a_key_is_good_for_one_sign_in(api: Api) -> None:
    key = make_key(api.root)
    answer = sign_in(api, key=key)
    assert answer.status == 204
    assert ask(api, "GET", "/access").data["caller"] == {"kind": "owner", "name": ""}
    assert ask(api, "POST", "/api/notes", json={"data": {"text": "y"}}).status == 201
    api.client.delete_cookie(answer.headers["Set-Cookie"].partition("=")[0])
    again = sign_in(api, key=key)
    assert again.error["message"].startswith("This key has already been used")
    assert again.error["message"].endswith("stop the server with Ctrl-C and start it again")
    assert key not in "".join(map(str, (api.root / ".bifolio").rglob("*")))


@pytest.mark.parametrize("key", ["", "nonsense", 1, None, {}, "../../accounts"])
def test_other_keys_are_refused(api: Api, key: object) -> None:
    assert sign_in(api, key=key).status == 400
    assert api.client.get_cookie("bifolio_studio") is None


def test_a_key_is_no_good_after_an_hour(api: Api) -> None:
    key = make_key(api.root)
    for path in (api.root / ".bifolio/studio").iterdir():
        os.utime(path, (time.time() - KEY_TTL_S - 1,) * 2)
    assert sign_in(api, key=key).status == 400
    make_key(api.root)
    assert len(list((api.root / ".bifolio/studio").iterdir())) == 1  # Keys that are too old are deleted.


@pytest.mark.parametrize(
    "where", [{"Host": name} for name in ("bifolio.example.org", "127.0.0.1.example.org:1337", "[::1", "[x]")]
)
def test_a_key_is_good_at_the_machine_alone(api: Api, where: dict[str, str]) -> None:
    answer = ask(api, "POST", SESSION, json={"key": make_key(api.root)}, headers=where)
    assert answer.status == 403


def test_the_session_of_the_owner_is_good_at_the_machine_alone(api: Api) -> None:
    sign_in(api)
    cookie = api.client.get_cookie("bifolio_studio")
    assert cookie
    headers = {**PAGE, "Cookie": f"bifolio_studio={cookie.value}"}
    client = api.app.test_client(use_cookies=False)
    assert client.get("/access", headers=headers).status_code == 200
    assert client.get("/access", headers={**headers, "Host": "evil.example"}).status_code == 401
    elsewhere = {"REMOTE_ADDR": "203.0.113.5"}
    assert client.get("/access", headers=headers, environ_base=elsewhere).status_code == 401


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(api: Api) -> None:
    given = sign_in(api).headers["Set-Cookie"]
    assert re.fullmatch(
        r"bifolio_studio=\S+; Expires=[^;]+; Max-Age=2592000; HttpOnly; Path=/; SameSite=Strict", given
    )
    secure = ask(api, "POST", SESSION, json={"key": make_key(api.root)}, base_url="https://localhost")
    assert "; Secure;" in secure.headers["Set-Cookie"]
    other_port = ask(api, "POST", SESSION, json={"key": make_key(api.root)}, base_url="http://localhost:8080")
    assert other_port.headers["Set-Cookie"].startswith("bifolio_studio_8080=")


def test_a_user_signs_in_with_a_password_and_gets_the_rights_of_the_role(api: Api) -> None:
    assert sign_in(api, **ANN).status == 204
    told = ask(api, "GET", "/access").data
    assert told["caller"] == {"kind": "user", "name": "ann", "email": "ann@example.org", "role": "editor"}
    assert told["permissions"] == {"note": ["find", "readDraft"]}
    assert ask(api, "GET", "/api/notes?status=draft").status == 200
    assert ask(api, "GET", "/api/notes").headers["Cache-Control"] == "private, no-cache"
    assert ask(api, "POST", "/api/notes", json={"data": {"text": "y"}}).status == 403
    assert sign_in(api, identifier="ann", password="wrong").status == 400


def test_passwords_are_asked_for_where_the_site_lets_users_log_in(tmp_path: Path) -> None:
    api = make(tmp_path, {**FILES, "site.yaml": "roles: {public: {}, editor: {note: [find]}}"})
    api.ask("POST", "/api/users", json=PERSON)
    assert sign_in(api, **ANN).status == 403


def test_sign_ins_are_counted_with_all_other_logins(api: Api) -> None:
    wrong = {**ANN, "password": "guess"}
    for _ in range(5):
        sign_in(api, **wrong)
        api.ask("POST", "/api/auth/local", "public", json=wrong)
    answer = sign_in(api, **ANN)
    assert answer.status == 429
    assert int(answer.headers["Retry-After"]) > 0


def test_the_cookie_speaks_for_requests_of_the_page_alone(api: Api) -> None:
    sign_in(api)
    drafts = "/api/notes?status=draft"
    assert ask(api, "GET", drafts).status == 200
    assert api.get(drafts, "public").status == 403  # without the header, the caller is the public
    for told in (
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "none"},
    ):
        assert ask(api, "GET", drafts, headers=told).status == 403
        assert ask(api, "POST", "/api/notes", json={"data": {"text": "y"}}, headers=told).status == 403


def test_where_the_browser_names_the_origin_alone_that_decides(api: Api) -> None:
    sign_in(api)
    page = {"Bifolio-Studio": "1"}

    def status(method: str, path: str, **headers: str) -> int:
        body = {"data": {"text": "y"}} if method == "POST" else None
        return api.ask(method, path, "public", json=body, headers={**page, **headers}).status

    assert status("GET", "/api/notes") == 200
    assert status("POST", "/api/notes") == 403
    assert status("POST", "/api/notes", Origin="http://localhost") == 201
    for origin in ("http://localhost:3000", "https://evil.example", "null", "http://[", "localhost"):
        assert status("POST", "/api/notes", Origin=origin) == 403
        assert status("GET", "/api/notes", Origin=origin) == 403


def test_no_page_of_another_origin_is_let_read_with_the_cookie(api: Api) -> None:
    sign_in(api)
    answer = ask(api, "GET", "/api/notes", headers={"Origin": "https://evil.example"})
    assert "Access-Control-Allow-Credentials" not in answer.headers
    asked = {
        "Origin": "https://evil.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "bifolio-studio",
    }
    preflight = api.ask("OPTIONS", "/api/notes", "public", headers=asked)
    assert "Access-Control-Allow-Credentials" not in preflight.headers


def test_no_page_of_an_origin_that_the_site_names_may_use_the_cookie(api: Api) -> None:
    (api.root / "site.yaml").write_text("api: {cors: ['https://named.example']}\n" + api.read("site.yaml"))
    api.site.refresh()
    sign_in(api)
    for place in ("same-site", "cross-site"):
        headers = {"Origin": "https://named.example", "Sec-Fetch-Site": place}
        assert ask(api, "GET", "/api/notes", headers=headers).status == 403


def test_authorization_wins_over_the_cookie(api: Api) -> None:
    sign_in(api)
    api.token("none")
    assert ask(api, "GET", "/api/notes").status == 200
    headers = {"Authorization": f"Bearer {api.tokens['none']}"}
    assert ask(api, "GET", "/api/notes", headers=headers).status == 403


@pytest.mark.parametrize("headers", [{"Bifolio-Studio": ""}, {"Sec-Fetch-Site": "cross-site"}])
def test_nobody_is_signed_in_or_out_by_another_page(api: Api, headers: dict[str, str]) -> None:
    told = {**PAGE, **headers}
    if not told["Bifolio-Studio"]:
        del told["Bifolio-Studio"]
    key = make_key(api.root)
    assert api.ask("POST", SESSION, "public", json={"key": key}, headers=told).status == 403
    sign_in(api, key=key)
    assert api.ask("DELETE", SESSION, "public", headers=told).status == 403
    assert ask(api, "GET", "/access").data["caller"]["kind"] == "owner"


@pytest.mark.parametrize("form", [{}, ANN])
def test_who_signs_out_is_out_on_the_server_too(api: Api, form: dict[str, str]) -> None:
    sign_in(api, **form)
    cookie = api.client.get_cookie("bifolio_studio")
    assert cookie
    assert ask(api, "DELETE", SESSION).status == 204
    assert api.client.get_cookie("bifolio_studio") is None
    assert ask(api, "GET", "/access").data["caller"]["kind"] == "public"
    api.client.set_cookie("bifolio_studio", cookie.value)
    assert ask(api, "GET", "/access").status == 401


@pytest.mark.parametrize("change", [{"password": "secret34"}, {"blocked": True}])
def test_a_session_ends_with_the_password_and_when_the_user_is_blocked(api: Api, change: Any) -> None:
    sign_in(api, **ANN)
    assert ask(api, "GET", "/api/notes").status == 200
    api.ask("PUT", "/api/users/1", json=change)
    assert ask(api, "GET", "/api/notes").status == 401
    # Signing out still works, so the browser can delete the cookie.
    assert ask(api, "DELETE", SESSION).status == 204


def test_what_was_signed_for_the_cookie_is_no_bearer_token_and_the_other_way_round(api: Api) -> None:
    sign_in(api, **ANN)
    cookie = api.client.get_cookie("bifolio_studio")
    assert cookie
    assert api.get("/api/notes", cookie.value).status == 401
    token = api.ask("POST", "/api/auth/local", "public", json=ANN).body["jwt"]
    api.client.set_cookie("bifolio_studio", token)
    assert ask(api, "GET", "/api/notes").status == 401


@pytest.mark.parametrize("form", [{}, ANN])
@pytest.mark.parametrize("elsewhere", [{}, {"REMOTE_ADDR": "203.0.113.5"}])
def test_what_the_cookie_holds_is_good_in_the_cookie_alone(
    api: Api, form: dict[str, str], elsewhere: dict[str, str]
) -> None:
    sign_in(api, **form)
    cookie = api.client.get_cookie("bifolio_studio")
    assert cookie
    client, headers = api.app.test_client(), {"Authorization": f"Studio {cookie.value}"}
    told = client.get("/access", headers=headers, environ_base=elsewhere).json
    assert told
    assert told["data"]["caller"]["kind"] == "public"
    assert client.delete("/api/notes/a", headers=headers, environ_base=elsewhere).status_code == 403


def test_the_page_frames_what_is_previewed_and_nothing_else(tmp_path: Path) -> None:
    api = make(tmp_path, {**collection("note", {"text": "string"}), **collection("page", {"text": "string"})})
    page = api.get("/studio", "public")
    assert "frame-src" not in page.headers["Content-Security-Policy"]  # default-src 'none' applies.
    setting = "preview: {note: 'https://Example.org/{documentId}', page: {url: /pages}}\n"
    (api.root / "site.yaml").write_text(setting)
    api.site.refresh()
    page = api.get("/studio", "public", headers={"If-None-Match": page.headers["ETag"]})
    assert page.status == 200  # Not 304, because a browser could then keep the old policy.
    policy = page.headers["Content-Security-Policy"]
    assert policy.endswith("frame-ancestors 'none'; frame-src 'self' https://example.org")
    assert api.get("/studio", "public", headers={"If-None-Match": page.headers["ETag"]}).status == 304


def test_modules_are_sent_without_the_comments_of_their_sources(api: Api) -> None:
    source = (Path(routes.__file__).parent / "page/router.js").read_text()
    sent = api.get("/studio/-/x/router.js", "public").text
    assert "/**" in source
    assert not re.search(r"^\s*(/\*\*|//)|/\*\* @", sent, re.MULTILINE)
    code = re.sub(r"/\*\* @.*?\*/ ?", "", source)
    kept = [line for line in code.splitlines() if not re.match(r"\s*(/?\*|//|$)", line)]
    assert [line for line in sent.splitlines() if line.strip()] == kept
    assert len(sent.splitlines()) == len(source.splitlines())
