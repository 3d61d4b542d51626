"""Tests of what the responses of all routes have in common, on different sites."""

import gzip
import json
import logging
import re
from collections.abc import Callable, Iterator
from functools import partial, wraps
from inspect import Signature, signature
from itertools import product
from pathlib import Path
from typing import Any

import brotli
import pytest
from flask import request
from werkzeug.datastructures import Headers
from werkzeug.test import TestResponse

from server.api.operations.content import parse_content_path
from server.api.operations.table import OPERATIONS
from server.api.request import state_of
from server.api.response import FAST_COMPRESSION_BYTES
from tests.conftest import MakeApi
from tests.failures import require_all
from tests.sites import STRING, Api, collection, component, documents, load

USUAL_HEADERS = "Content-Type,Authorization,Origin,Accept"
ORIGIN, OTHER = "https://mine.org", "https://other.org"
LONG = "many words " * 300
FILES = {
    **collection("note", {"title": STRING, "text": {"type": "richtext"}}),
    **collection("home", {"title": STRING}, single=True),
    **component("page.seo", {"title": STRING}),
    **documents("notes", a={"title": "A", "text": LONG}, b={"title": "B"}),
    "content/home.json": '{"title": "Home"}',
    "content/uploads/a.txt": "text of a file",
    "site.yaml": """
search: {index: false}
roles:
  public:
    note: [find, findOne]
    home: [find]
    locale: [find]
    auth: [callback, register, emailConfirmation, connect]
  authenticated: {user: [me]}
""",
}
SITES = {
    "plain": "",
    "limited": "api: {rate_limit: 100000 per minute}\n",
    "origins": f"api: {{cors: ['{ORIGIN}', 'https://second.org']}}\n",
    "both": f"api: {{cors: ['{ORIGIN}'], rate_limit: 100000 per minute}}\n",
}
# One path for each readable route, with the expected status.
READS = {
    "/": ("/", 200),
    "/_health": ("/_health", 204),
    "/_health/live": ("/_health/live", 204),
    "/_health/ready": ("/_health/ready", 200),
    "/metrics": ("/metrics", 200),
    "/admin": ("/admin", 302),
    "/admin/": ("/admin/", 302),
    "/api": ("/api", 404),
    "/api/": ("/api/", 404),
    "/api/auth/<provider>/callback": ("/api/auth/github/callback", 400),
    "/api/auth/sessions": ("/api/auth/sessions", 404),  # without auth.refresh
    "/api/auth/email-confirmation": ("/api/auth/email-confirmation?confirmation=none", 400),
    "/api/connect/<path:provider>": ("/api/connect/github", 400),
    "/api/content-type-builder/components": ("/api/content-type-builder/components", 200),
    "/api/content-type-builder/components/<uid>": ("/api/content-type-builder/components/page.seo", 200),
    "/api/content-type-builder/content-types": ("/api/content-type-builder/content-types", 200),
    "/api/content-type-builder/content-types/<uid>": (
        "/api/content-type-builder/content-types/api::note.note",
        200,
    ),
    "/api/i18n/locales": ("/api/i18n/locales", 200),
    "/api/upload/files": ("/api/upload/files", 200),
    "/api/upload/files/page": ("/api/upload/files/page", 200),
    "/api/upload/files/<file:key>": ("/api/upload/files/none", 404),
    "/api/upload/files/<file:key>/usage": ("/api/upload/files/a.txt/usage", 200),
    "/api/upload/folders": ("/api/upload/folders", 200),
    "/api/users": ("/api/users", 200),
    "/api/users-permissions/permissions": ("/api/users-permissions/permissions", 200),
    "/api/users-permissions/roles": ("/api/users-permissions/roles", 200),
    "/api/users-permissions/roles/<key>": ("/api/users-permissions/roles/1", 200),
    "/api/users/<user:key>": ("/api/users/1", 200),
    "/api/users/count": ("/api/users/count", 200),
    "/api/users/me": ("/api/users/me", 401),  # an API token is not a user
    "/access": ("/access", 200),
    "/docs": ("/docs", 200),
    "/docs/": ("/docs/", 302),
    "/docs/<name>": ("/docs/page.css", 200),
    "/branches": ("/branches", 409),  # the site is not in a git repository
    "/branches/<path:name>/changes": ("/branches/main/changes", 409),
    "/branches/<path:name>/problems": ("/branches/main/problems", 409),
    "/events": ("/events", 200),
    "/events/activity": ("/events/activity", 200),
    "/events/tags": ("/events/tags?of=/api/notes", 200),
    "/events/reload.js": ("/events/reload.js", 200),
    "/source/<api_id>": ("/source/home", 200),
    "/source/<api_id>/<document_id>": ("/source/notes/a", 200),
    "/overview": ("/overview", 200),
    "/presence": ("/presence", 200),
    "/history": ("/history", 409),
    "/history/<api_id>": ("/history/home", 409),
    "/history/uncommitted": ("/history/uncommitted", 409),
    "/history/uncommitted/diff": ("/history/uncommitted/diff", 409),
    "/history/<api_id>/<document_id>": ("/history/notes/a", 409),
    "/history/<api_id>/<document_id>/<what>": ("/history/notes/a/diff", 409),
    "/feeds/<name>.<format>": ("/feeds/none.rss", 404),
    "/openapi.json": ("/openapi.json", 200),
    "/problems": ("/problems", 200),
    "/redirects": ("/redirects", 200),
    "/llms.txt": ("/llms.txt", 404),
    "/sitemap.xml": ("/sitemap.xml", 404),
    "/sitemap-<number>.xml": ("/sitemap-1.xml", 404),
    "/studio": ("/studio", 200),
    "/studio/<path:place>": ("/studio/note", 200),
    "/studio/-/<version>/<path:name>": ("/studio/-/x/page.css", 200),
    "/tokens": ("/tokens", 200),
    "/webhooks": ("/webhooks", 200),
    "/webhooks/<name>/deliveries": ("/webhooks/none/deliveries", 404),
    "/webhooks/<name>/deliveries/<delivery>": ("/webhooks/none/deliveries/none", 404),
    "/users": ("/users", 200),
    "/users/<key>": ("/users/99", 404),
    "/users/<key>/sessions": ("/users/99/sessions", 404),
    "/roles": ("/roles", 200),
    "/settings": ("/settings", 200),
    "/search": ("/search?q=many", 200),
    "/uploads/<path:path>": ("/uploads/a.txt", 200),
    "nothing below /api": ("/api/none/of/these", 404),
    "a list": ("/api/notes", 200),
    "a list, asked wrongly": ("/api/notes?sort=none", 400),
    "a document": ("/api/notes/a", 200),
    "a document, in the previous format": ("/api/notes/a/", 200),
    "no document": ("/api/notes/none", 404),
    "a single type": ("/api/home", 200),
    "below a single type": ("/api/home/a", 404),
}
FILE, EVERYBODYS = (
    ("/uploads/<path:path>",),
    (
        "/docs",
        "/docs/<name>",
        "/events/reload.js",
        "/studio",
        "/studio/<path:place>",
        "/studio/-/<version>/<path:name>",
    ),
)


@pytest.fixture(scope="module")
def apis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Api]]:
    made = {}
    for name, more in SITES.items():
        files = {**FILES, "site.yaml": FILES["site.yaml"] + more}
        api = made[name] = Api.of(load(tmp_path_factory.mktemp(name), files))
        user = {"username": "ann", "email": "ann@example.org", "password": "secret12"}
        api.client.post("/api/auth/local/register", json=user)
    yield made
    for api in made.values():
        api.accounts.close()


Ask = Callable[..., TestResponse]


@pytest.fixture
def ask(apis: dict[str, Api]) -> Ask:
    def ask(site: str, name: str, method: str = "GET", **headers: str) -> TestResponse:
        api = apis[site]
        sent = {
            "Authorization": f"Bearer {api.tokens['full']}",
            "Origin": ORIGIN,
            **{key.replace("_", "-"): value for key, value in headers.items()},
        }
        if name == "a document, in the previous format":
            sent["Strapi-Response-Format"] = "v4"
        return api.client.open(READS[name][0], method=method, headers=sent, buffered=True)

    return ask


def of_every_read(check: Callable[..., None]) -> Callable[..., None]:
    """Decorator: run `check(ask, site, name, …)` for each site and read, and report all failures
    in one test.
    """

    @wraps(check)
    def test(ask: Ask, **more: Any) -> None:
        require_all(partial(check, ask, **more), product(SITES, READS))

    kept = [p for p in signature(check).parameters.values() if p.name not in ("site", "name")]
    test.__signature__ = Signature(kept)  # type: ignore[attr-defined]
    return test


def only(headers: Headers, name: str) -> str:
    """Return the header's value. The header must occur exactly once."""
    (value,) = headers.getlist(name)
    return value


def without(headers: Headers, *names: str) -> list[tuple[str, str]]:
    """Return the headers without the given ones and without those that differ in every response."""
    left_out = {"Date", "X-RateLimit-Remaining", "Retry-After", "X-RateLimit-Reset", "Expires", *names}
    return sorted((name, value) for name, value in headers.items() if name not in left_out)


def test_there_is_a_read_of_every_operation() -> None:
    read = {o.rule for o in OPERATIONS if o.method == "GET" and not o.kind}
    assert read == {name for name in READS if name.startswith("/")}


@of_every_read
def test_every_answer_has_the_headers_that_all_have(ask: Ask, site: str, name: str) -> None:
    answer = ask(site, name)
    assert answer.status_code == READS[name][1]
    headers = answer.headers
    assert only(headers, "X-Content-Type-Options") == "nosniff"
    assert only(headers, "Referrer-Policy") == "no-referrer"
    assert only(headers, "X-Frame-Options") == "SAMEORIGIN"
    listed = site in ("origins", "both")
    assert only(headers, "Access-Control-Allow-Origin") == (ORIGIN if listed else "*")
    assert (
        only(headers, "Access-Control-Expose-Headers")
        == "ETag, Preference-Applied, Bifolio-Commit, Bifolio-Undo, Cache-Tag"
    )
    vary = headers.get("Vary", "").split(", ")
    assert len(vary) == len(set(vary))
    assert ("Origin" in vary) == listed
    assert ("Authorization" in vary) == (name not in (*FILE, *EVERYBODYS))
    assert ("Accept-Encoding" in vary) == (name not in FILE and answer.status_code != 204)
    is_counted = site in ("limited", "both") and not name.startswith("/_health")
    assert ("X-RateLimit-Remaining" in headers) == is_counted
    control = only(headers, "Cache-Control")
    if name in (*FILE, *EVERYBODYS):
        assert control.startswith("public")
    else:
        assert control == ("private, no-cache" if answer.status_code == 200 else "no-store")
    names = [name.lower() for name, _ in headers]
    assert len(names) == len(set(names))


@of_every_read
def test_another_origin_is_told_nothing_where_origins_are_named(ask: Ask, site: str, name: str) -> None:
    headers = ask(site, name, Origin=OTHER).headers
    assert headers.get("Access-Control-Allow-Origin") == (None if site in ("origins", "both") else "*")


@of_every_read
def test_what_has_not_changed_is_not_sent_again(ask: Ask, site: str, name: str) -> None:
    answer = ask(site, name)
    if answer.status_code != 200:
        assert "ETag" not in answer.headers
        assert ask(site, name, If_None_Match="*").status_code == answer.status_code
        return
    tag = only(answer.headers, "ETag")
    again = ask(site, name, If_None_Match=f'"another", {tag}')
    assert (again.status_code, again.data) == (304, b"")
    of_body = ("Content-Type", "Content-Length", "Content-Disposition", "Last-Modified", "Accept-Ranges")
    assert without(again.headers, *of_body) == without(answer.headers, *of_body)
    assert ask(site, name, If_None_Match='"another"').status_code == 200


@pytest.mark.parametrize(("accepted", "decode"), [("gzip", gzip.decompress), ("br, gzip", brotli.decompress)])
@of_every_read
def test_long_texts_are_compressed_for_who_takes_it(
    ask: Ask, site: str, name: str, accepted: str, decode: Callable[[bytes], bytes]
) -> None:
    plain, answer = ask(site, name), ask(site, name, Accept_Encoding=accepted)
    if name in FILE or len(plain.data) < 1024:
        assert answer.data == plain.data
        assert without(answer.headers) == without(plain.headers)
        return
    assert only(answer.headers, "Content-Encoding") == accepted.partition(",")[0]
    assert int(only(answer.headers, "Content-Length")) == len(answer.data) < len(plain.data)
    assert decode(answer.data) == plain.data
    tag = only(answer.headers, "ETag")
    assert tag != only(plain.headers, "ETag")
    for known in (tag, only(plain.headers, "ETag")):
        assert ask(site, name, Accept_Encoding=accepted, If_None_Match=known).status_code == 304
    different = ("Content-Encoding", "Content-Length", "ETag")
    assert without(answer.headers, *different) == without(plain.headers, *different)


@pytest.mark.parametrize("accepted", ["", "br"])
@of_every_read
def test_a_head_has_the_headers_of_a_get(ask: Ask, site: str, name: str, accepted: str) -> None:
    got, head = (ask(site, name, method, Accept_Encoding=accepted) for method in ("GET", "HEAD"))
    assert head.data == b""
    assert head.status_code == got.status_code
    # A HEAD does not compress a large body only to learn its length.
    is_large = accepted and len(ask(site, name).data) > FAST_COMPRESSION_BYTES
    unknown = ("Content-Length",) if is_large else ()
    assert without(head.headers, *unknown) == without(got.headers, *unknown)


@of_every_read
def test_an_error_is_the_envelope(ask: Ask, site: str, name: str) -> None:
    answer = ask(site, name)
    if answer.status_code >= 400:
        assert only(answer.headers, "Content-Type") == "application/json; charset=utf-8"
        assert answer.json is not None
        assert answer.json["data"] is None
        assert answer.json["error"]["status"] == answer.status_code


@of_every_read
def test_a_browser_is_told_what_it_may_send(ask: Ask, site: str, name: str) -> None:
    asked = {
        "Access_Control_Request_Method": "PUT",
        "Access_Control_Request_Headers": "authorization, x-mine",
    }
    answer = ask(site, name, "OPTIONS", **asked)
    assert (answer.status_code, answer.data) == (204, b"")
    assert "PUT" in only(answer.headers, "Access-Control-Allow-Methods").split(", ")
    assert only(answer.headers, "Access-Control-Allow-Headers") == f"{USUAL_HEADERS},x-mine"
    assert only(answer.headers, "Access-Control-Max-Age") == "31536000"
    assert only(answer.headers, "Access-Control-Allow-Origin")
    assert "Content-Length" not in answer.headers
    assert "Access-Control-Request-Headers" in only(answer.headers, "Vary").split(", ")
    if site in ("origins", "both"):
        refused = ask(site, name, "OPTIONS", Origin=OTHER, **asked)
        assert [name for name, _ in refused.headers if name.startswith("Access-Control")] == []


def test_unreadable_accounts_are_told_once(apis: dict[str, Api], caplog: pytest.LogCaptureFixture) -> None:
    """If the accounts can't be read, every route that identifies the caller fails, but the error is logged
    only once.
    """
    api = apis["plain"]
    api.accounts.close()
    database = Path(api.site.root / ".bifolio/accounts.db")
    for path in database.parent.glob("accounts.db*"):
        path.rename(path.with_name(f"kept-{path.name}"))
    database.write_bytes(b"no database at all" * 1000)
    try:
        failed = 0
        for path, _ in READS.values():
            caplog.clear()
            answer = api.get(path, buffered=True)
            failed += answer.status == 503
            told = [r for r in caplog.records if r.levelno >= logging.ERROR]
            assert len(told) == (answer.status == 503), path
            if answer.status == 503:
                assert answer.body["error"]["name"] == "ServiceUnavailableError"
        assert failed > 20
    finally:
        api.accounts.close()
        database.unlink()
        for path in database.parent.glob("kept-*"):
            path.rename(path.with_name(path.name.removeprefix("kept-")))


def test_what_is_the_callers_is_kept_by_nobody(apis: dict[str, Api]) -> None:
    api = apis["plain"]
    form = {"identifier": "ann", "password": "secret12"}
    answers = [api.client.post("/api/auth/local", json=form)]
    token = {"Authorization": f"Bearer {answers[0].json['jwt']}"}
    answers += [api.client.open("/api/users/me", method=m, headers=token) for m in ("GET", "HEAD")]
    answers.append(api.client.post("/api/auth/local", json={}))
    answers.append(api.client.get("/api/users/me"))
    assert [answer.status_code for answer in answers] == [200, 200, 200, 400, 403]
    for answer in answers:
        assert only(answer.headers, "Cache-Control") == "no-store"
        assert "Authorization" in only(answer.headers, "Vary").split(", ")


def test_what_everybody_may_see_may_be_kept_by_everybody(make_api: MakeApi) -> None:
    api = make_api(FILES)
    for path in ("/api/notes", "/api/notes/a", "/api/home", "/api/i18n/locales", "/openapi.json"):
        assert only(api.get(path, "public").headers, "Cache-Control") == "public, max-age=0, must-revalidate"
        assert only(api.get(path).headers, "Cache-Control") == "private, no-cache"
    assert only(api.get("/search?q=many", "public").headers, "Cache-Control") == "private, no-cache"


def test_parts_of_a_file_are_still_answered(apis: dict[str, Api]) -> None:
    for api in apis.values():
        part = api.client.get("/uploads/a.txt", headers={"Range": "bytes=0-3"}, buffered=True)
        assert (part.status_code, part.data) == (206, b"text")
        assert only(part.headers, "Content-Range") == "bytes 0-3/14"
        none = api.client.get("/uploads/a.txt", headers={"Range": "bytes=99-"})
        assert (none.status_code, none.json["error"]["status"]) == (416, 416)
        assert only(none.headers, "Content-Range") == "bytes */14"


def test_a_write_has_an_entity_tag_and_is_kept_by_nobody(make_api: MakeApi) -> None:
    api = make_api(FILES)
    written = api.put("/api/notes/a", {"title": "C"})
    assert only(written.headers, "Cache-Control") == "no-store"
    assert only(written.headers, "ETag") == only(api.get("/api/notes/a").headers, "ETag")
    again = api.ask(
        "PUT",
        "/api/notes/a",
        json={"data": {"title": "D"}},
        headers={"If-None-Match": written.headers["ETag"]},
    )
    assert again.data["title"] == "D"  # only reads use If-None-Match


def test_a_request_sees_one_state(make_api: MakeApi) -> None:
    """If the site changes during a request, only the next request sees the change."""
    api = make_api(FILES)

    def titles() -> list[str]:
        before = state_of(request)
        (api.site.root / "content/notes/a.json").write_text('{"title": "New"}')
        api.site.refresh()
        after = state_of(request)
        note = before.schema.endpoints["notes"]
        return [next(iter(s.snapshot.list(note, "en", "published"))).get("title") for s in (before, after)]

    api.app.view_functions["startPage"] = titles
    assert api.get("/").body == ["A", "A"]
    assert api.get("/api/notes/a").data["title"] == "New"


# --- limits --------------------------------------------------------------------------------------


def test_requests_are_limited_on_every_route_together(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": FILES["site.yaml"] + "api: {rate_limit: 3 per minute}\n"})
    told = [api.get(path).headers for path in ("/api/notes", "/docs", "/api/none")]
    assert [only(headers, "X-RateLimit-Remaining") for headers in told] == ["2", "1", "0"]
    for path in ("/api/notes", "/api/users", "/search?q=x", "/docs", "/uploads/a.txt"):
        answer = api.get(path, headers={"Origin": ORIGIN}, buffered=True)
        assert (answer.status, answer.error["name"]) == (429, "RateLimitError")
        assert only(answer.headers, "X-RateLimit-Limit") == "3"
        assert only(answer.headers, "X-RateLimit-Remaining") == "0"
        assert re.fullmatch(r"\d{10}", only(answer.headers, "X-RateLimit-Reset"))
        assert 0 < int(only(answer.headers, "Retry-After")) <= 61
        assert only(answer.headers, "Access-Control-Allow-Origin") == "*"
    asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "PUT"}
    assert api.ask("OPTIONS", "/api/notes/a", "public", headers=asked).status == 204


def test_clients_are_counted_apart(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": FILES["site.yaml"] + "api: {rate_limit: 1 per minute}\n"})

    def status(address: str) -> int:
        return api.client.get("/api/notes", environ_base={"REMOTE_ADDR": address}).status_code

    assert [status("10.0.0.1"), status("10.0.0.1"), status("10.0.0.2")] == [200, 429, 200]


# --- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/notes", ("note", "")),
        ("/api/notes/", ("note", "")),
        ("/api/notes/a", ("note", "a")),
        ("/api/notes/a/", ("note", "a")),
        ("/api/notes/a b", ("note", "a b")),
        ("/api/home", ("home", "")),
        ("/api/home/", ("home", "")),
        ("/api/notes//", None),
        ("/api/notes/a/b", None),
        ("/api/notes/a//", None),
        ("/api//notes", None),
        ("/api/home/a", None),
        ("/api/note", None),
        ("/api/none", None),
        ("/api/", None),
        ("/api", None),
        ("/", None),
        ("", None),
        ("/other/notes", None),
    ],
)
def test_paths_of_content(apis: dict[str, Api], path: str, expected: tuple[str, str] | None) -> None:
    found = parse_content_path(path, apis["plain"].site.state.schema)
    assert (found and (found[0].singular, found[1])) == expected


@pytest.mark.parametrize("document_id", ["é", "%FF", "%C3%28", "a%00b", "a%2Fb", "%F0%9F%8C%8A"])
def test_odd_ids_are_not_found(apis: dict[str, Api], document_id: str) -> None:
    answer = apis["plain"].client.get(f"/api/notes/{document_id}")
    assert (answer.status_code, json.loads(answer.data)["error"]["name"]) == (404, "NotFoundError")
