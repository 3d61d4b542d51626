"""Tests of attacks: no file and no request lets callers exceed their permissions.

Other modules test forged tokens, symbolic links, password guessing, secrets, and that failed requests change
nothing.
"""

import io
import random
import struct
import zlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from server.auth.users import Users
from tests.sites import STRING, Answer, Api, collection, load
from tests.torture import LONG, SEED

FILES: dict[str, str | bytes] = {
    **collection("note", {"title": STRING, "hidden": {"type": "string", "private": True}}, drafts=True),
    **collection("home", {"title": STRING}, single=True),
    "content/notes/a.json": '{"title": "A", "hidden": "s3cret-value"}',
    "content/notes/a.draft.json": '{"title": "A, yet unrevealed", "hidden": "s3cret-value"}',
    "content/notes/d.draft.json": '{"title": "D, yet unrevealed"}',
    "content/home.json": '{"title": "Home"}',
    "content/uploads/a.txt": "text",
    "content/uploads/page.html": "<script>alert(1)</script>",
    "content/uploads/draw.svg": '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
    "site.yaml": """
roles:
  public: {note: [find, findOne], auth: [callback]}
  authenticated: {note: [find], user: [me]}
  editor:
    note: [find, findOne, create, update, delete, readDraft]
    home: [find, update]
    upload: [upload, find]
""",
}
# The permissions of each caller. None: the caller's credentials are invalid.
MAY: dict[str, frozenset[str] | None] = {
    "public": frozenset({"note.find", "note.findOne", "auth.callback"}),
    "user": frozenset({"note.find", "user.me"}),
    "editor": frozenset(
        {f"note.{action}" for action in ("find", "findOne", "create", "update", "delete", "readDraft")}
        | {"home.find", "home.update", "upload.upload", "upload.find"}
    ),
    "reader": frozenset(
        {f"{name}.{action}" for name in ("note", "home") for action in ("find", "findOne", "readDraft")}
        | {"upload.find", "upload.findOne", "user.find", "user.findOne", "role.find", "role.findOne"}
        | {"locale.find", "content-type.find", "content-type.findOne"}
    ),
    "custom": frozenset({"home.find", "user.count"}),
    "expired": None,
    "revoked": None,
    "blocked": None,
    "cut": None,
}
# The permission that each request needs.
NEEDS: dict[tuple[str, str], str] = {
    ("GET", "/api/notes"): "note.find",
    ("HEAD", "/api/notes"): "note.find",
    ("GET", "/api/notes/"): "note.find",
    ("GET", "/api/notes/a"): "note.findOne",
    ("GET", "/api/notes?status=draft"): "note.readDraft",
    ("GET", "/api/notes/d?status=draft"): "note.readDraft",
    ("GET", "/api/notes?publicationFilter=modified"): "note.readDraft",
    ("POST", "/api/notes"): "note.create",
    ("POST", "/api/notes?status=draft"): "note.create",
    ("PUT", "/api/notes/a"): "note.update",
    ("PUT", "/api/notes/none"): "note.update",
    ("DELETE", "/api/notes/none"): "note.delete",
    ("GET", "/api/home"): "home.find",
    ("PUT", "/api/home"): "home.update",
    ("DELETE", "/api/home"): "home.delete",
    ("GET", "/api/upload/files"): "upload.find",
    ("GET", "/api/upload/files/none"): "upload.findOne",
    ("DELETE", "/api/upload/files/none"): "upload.destroy",
    ("POST", "/api/upload"): "upload.upload",
    ("POST", "/api/upload?id=none"): "upload.upload",
    ("GET", "/api/users"): "user.find",
    ("GET", "/api/users/count"): "user.count",
    ("GET", "/api/users/me"): "user.me",
    ("PUT", "/api/users/me"): "user.updateMe",
    ("GET", "/api/users/1"): "user.findOne",
    ("POST", "/api/users"): "user.create",
    ("PUT", "/api/users/99"): "user.update",
    ("DELETE", "/api/users/99"): "user.destroy",
    ("GET", "/api/users-permissions/roles"): "role.find",
    ("GET", "/api/users-permissions/roles/1"): "role.findOne",
    ("GET", "/api/i18n/locales"): "locale.find",
    ("GET", "/api/content-type-builder/content-types"): "content-type.find",
    ("POST", "/api/auth/local"): "auth.callback",
    ("POST", "/api/auth/local/register"): "auth.register",
    ("POST", "/api/auth/change-password"): "auth.changePassword",
    ("POST", "/api/auth/forgot-password"): "auth.forgotPassword",
    ("POST", "/api/auth/reset-password"): "auth.resetPassword",
    ("POST", "/api/auth/send-email-confirmation"): "auth.sendEmailConfirmation",
    ("GET", "/api/auth/email-confirmation"): "auth.emailConfirmation",
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    yield from make_api(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def other_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A separate site on which random requests may delete anything."""
    yield from make_api(tmp_path_factory.mktemp("site"))


def make_api(folder: Path) -> Iterator[Api]:
    api = Api.of(load(folder, FILES))
    users = Users(api.accounts)
    roles = {"user": "authenticated", "editor": "editor", "blocked": "editor", "leaver": "authenticated"}
    for name, role in roles.items():
        users.create(name, f"{name}@x.org", "secret12", role=role, confirmed=True)
        form = {"identifier": name, "password": "secret12"}
        api.tokens[name] = api.ask("POST", "/api/auth/local", "public", json=form).body["jwt"]
    users.update(3, {"blocked": True})
    api.token("reader", "read-only")
    api.token("custom", may=["home.find", "user.count"])
    api.token("expired", "full-access", expires=timedelta(seconds=-1))
    api.token("revoked", "full-access")
    api.accounts.revoke_token("revoked")
    api.tokens["cut"] = api.tokens["full"][:-1]
    yield api
    api.accounts.close()


@pytest.mark.parametrize("who", MAY)
@pytest.mark.parametrize(("method", "path"), NEEDS)
def test_who_may_do_what(api: Api, who: str, method: str, path: str) -> None:
    body = {} if method in ("GET", "HEAD", "DELETE") else {"json": {"data": {"zzz": "X"}}}
    answer, may = api.ask(method, path, who, **body), MAY[who]
    if may is None:
        assert answer.status == 401
    elif NEEDS[method, path] in may:
        # The requests have no valid body, so they change nothing that later requests depend on.
        assert answer.status in (200, 204, 400, 404, 405), answer.body
    else:
        assert answer.status == 403, answer.body
    assert b"s3cret-value" not in answer.raw
    if "note.readDraft" not in (may or ()):
        assert b"yet unrevealed" not in answer.raw


PRIVATE = (
    "fields=hidden",
    "fields=*",
    "sort=hidden",
    "filters[hidden]=s3cret-value",
    "filters[hidden][$startsWith]=s",
    "filters[$or][0][hidden][$notNull]=true",
    "populate=hidden",
    "populate=*",
    "_q=s3cret-value",
    "filters[title][$contains]=yet unrevealed",
    "_q=yet unrevealed",
    "filters[title]=D, yet unrevealed",
    "sort=title",
)


@pytest.mark.parametrize("who", ["public", "user", "custom"])
@pytest.mark.parametrize("query", PRIVATE)
def test_what_is_private_or_a_draft_is_told_to_nobody(api: Api, who: str, query: str) -> None:
    asked = [f"/api/notes?{quote(query, safe='=&[]$')}", f"/api/notes/a?{quote(query, safe='=&[]$')}"]
    asked += ["/search?q=yet", "/search?q=s3cret", "/search?q=hidden:s3cret", "/search?q=yet&status=draft"]
    for path in (*asked, "/openapi.json", "/api/notes/d"):
        for headers in ({}, {"Strapi-Response-Format": "v4"}):
            answer = api.get(path, who, headers=headers)
            found = answer.raw.replace(quote("yet unrevealed").encode(), b"")
            assert b"s3cret-value" not in found.replace(query.encode(), b""), path
            if answer.status == 200 and path.startswith("/api/notes") and who != "custom":
                data = answer.data if isinstance(answer.data, list) else [answer.data]
                titles = {each.get("attributes", each).get("title") for each in data}
                assert titles <= {"A", None}
                # Filtering by a hidden value must not reveal any document.
                assert len(data) == 0 or "yet" not in query


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_no_answer_about_a_login_or_oneself_is_kept(api: Api, method: str) -> None:
    paths = {str(rule) for rule in api.app.url_map.iter_rules() if "/auth/" in str(rule)} | {"/api/users/me"}
    assert len(paths) > 10
    for path in paths:
        for who in ("public", "leaver", "full", "cut"):  # One of the requests ends the session.
            answer = api.ask(method, path.replace("<provider>", "github"), who, json={})
            assert answer.headers["Cache-Control"] == "no-store", path
            assert "Authorization" in answer.headers["Vary"], path


# --- files ----------------------------------------------------------------------------------------

PATHS = (
    "../site.yaml",
    "..%2fsite.yaml",
    "%2e%2e/site.yaml",
    "%2e%2e%2fsite.yaml",
    "..%252fsite.yaml",
    "..%5csite.yaml",
    "....//site.yaml",
    "a.txt/../../../site.yaml",
    "/etc/passwd",
    "//etc/passwd",
    "%2fetc%2fpasswd",
    "a.txt%00",
    "a.txt%00.png",
    "%00",
    ".%2e/.bifolio/jwt.key",
    "../../.bifolio/jwt.key",
    "..%c0%afsite.yaml",
    "./a.txt",
    "~root/.bashrc",
    "file:///etc/passwd",
    "content/uploads/a.txt",
    "%e2%80%8ba.txt",
    "a.txt%0d%0aX: y",
    "-rf",
    "$(id)",
)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_leads_to_no_file_but_media(api: Api, path: str) -> None:
    for start in ("/uploads/", "/docs/", "/api/notes/", "/api/upload/files/"):
        answer = api.get(start + path)
        assert answer.status in (400, 404, 405), (start + path, answer.raw[:100])
        assert b"roles:" not in answer.raw
        assert b"root:" not in answer.raw


def upload(api: Api, name: str, data: bytes, mime: str = "application/octet-stream") -> Answer:
    form = {"files": (io.BytesIO(data), name, mime)}
    return api.ask("POST", "/api/upload", data=form, content_type="multipart/form-data")


def elsewhere(api: Api) -> set[Path]:
    """Return all paths in the site except uploads and Bifolio's internal files."""
    return {p for p in api.root.rglob("*") if not {"uploads", ".bifolio"} & set(p.parts)}


@pytest.mark.parametrize(
    "name",
    [
        "../../x.txt",
        "..\\..\\x.txt",
        "/etc/x.txt",
        "C:\\x.txt",
        "x\x00.txt",
        "$(id).txt",
        "-rf",
        "con.txt",
        "..",
        ".htaccess",
        "x" * 500 + ".txt",
        "é" * 300 + ".txt",
        "a\r\nX-Y: z.txt",
        "\u202etxt.exe",
        "x.yaml",
        "x.txt.yaml",
    ],
)
def test_an_upload_stays_in_its_folder_under_a_plain_name(api: Api, name: str) -> None:
    outside = {
        path for path in api.root.rglob("*") if "uploads" not in path.parts and ".bifolio" not in path.parts
    }
    answer = upload(api, name, b"text")
    assert answer.status in (201, 400), answer.body
    assert elsewhere(api) == outside
    for path in (api.root / "content/uploads").iterdir():
        assert path.is_file()
        assert path.name.isascii()
        assert path.name.isprintable()
        assert not set(path.name) & set('$`;|&()<>"\\: ')
        assert len(path.name) < 200
        assert not path.name.startswith((".", "-"))


@pytest.mark.parametrize("path", ["page.html", "draw.svg"])
def test_an_upload_runs_no_script_on_the_origin_of_the_site(api: Api, path: str) -> None:
    headers = api.get(f"/uploads/{path}", "public").headers
    assert "sandbox" in headers["Content-Security-Policy"]
    assert "script-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_a_picture_that_unpacks_to_gigabytes_is_not_unpacked(api: Api) -> None:
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\0" * 10_000_000, 9)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    answer = upload(api, "bomb.png", bomb, "image/png")
    assert answer.status == 201, answer.body
    assert answer.body[0]["formats"] is None
    assert answer.body[0]["width"] is None


# --- anything -------------------------------------------------------------------------------------

WORDS = (
    "filters",
    "sort",
    "populate",
    "fields",
    "pagination",
    "page",
    "pageSize",
    "start",
    "limit",
    "status",
    "locale",
    "_q",
    "$or",
    "$and",
    "$not",
    "$eq",
    "$in",
    "$between",
    "$null",
    "$contains",
    "title",
    "hidden",
    "id",
    "documentId",
    "on",
    "count",
    "publicationFilter",
    "publicationStatus",
    "0",
    "1",
    "-1",
    "99999999999999999999",
    "1e400",
    "nan",
    "true",
    "null",
    "*",
    "",
    "a",
    "d",
    "draft",
    "zzz",
    "__proto__",
    "%00",
    "%ff",
    "é",
    "'",
    '"',
    "]",
    "[",
    "&",
    "=",
    "%",
    ";",
    "\\",
    "../",
    "{}",
    "x" * 300,
)
METHODS = ("GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
STARTS = (
    "/api/notes",
    "/api/notes/a",
    "/api/home",
    "/api/users",
    "/api/users/me",
    "/api/users/1",
    "/api/upload",
    "/api/upload/files",
    "/api/auth/local",
    "/api/auth/local/register",
    "/search",
    "/openapi.json",
    "/uploads/a.txt",
    "/api/i18n/locales",
    "/api/content-type-builder/content-types",
    "/api/users-permissions/roles",
    "/",
    "/api",
    "/api//notes",
)


def value_of(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(7 if depth < 4 else 4)
    if kind < 3:
        return chance.choice([*WORDS, 1, -1, 2**70, 1.5, True, None, "\ud800", "\u0000"])
    if kind < 5:
        return [value_of(chance, depth + 1) for _ in range(chance.randrange(3))]
    return {chance.choice([*WORDS, "data", "set", "connect"]): value_of(chance, depth + 1) for _ in range(2)}


def query_of(chance: random.Random) -> str:
    parts = []
    for _ in range(chance.randrange(4)):
        key = chance.choice(WORDS[:24]) + "".join(
            f"[{chance.choice(WORDS)}]" for _ in range(chance.randrange(4))
        )
        parts.append(f"{key}={chance.choice(WORDS)}")
    raw = "&".join(parts)
    return raw if chance.random() < 0.5 and raw.isascii() else quote(raw, safe="=&[]$%")


@pytest.mark.parametrize("seed", range(SEED, SEED + (40 if LONG else 4)))
def test_no_request_is_answered_with_an_error_that_nobody_expected(other_api: Api, seed: int) -> None:
    api = other_api
    chance = random.Random(seed)
    for _ in range(250):
        method, who = chance.choice(METHODS), chance.choice(("public", "reader", "editor", "full", "cut"))
        path = chance.choice(STARTS) + chance.choice(("", "", "", "/", f"/{quote(chance.choice(WORDS))}"))
        # The test client would interpret the part after two leading slashes as a host.
        path = "/" + path.lstrip("/")
        options: dict[str, Any] = {}
        if method in ("POST", "PUT") and chance.random() < 0.8:
            options["json"] = {"data": value_of(chance)} if chance.random() < 0.7 else value_of(chance)
        if chance.random() < 0.2:
            names = (
                "If-None-Match",
                "If-Match",
                "Range",
                "Accept-Encoding",
                "Origin",
                "Strapi-Response-Format",
            )
            options["headers"] = {name: chance.choice(("*", '"', "bytes=9-1", "x" * 50)) for name in names}
        asked = (method, f"{path}?{query_of(chance)}", who, options)
        answer = api.ask(method, asked[1], who, **options)
        assert answer.status < 500, asked
        if answer.status >= 400 and method != "HEAD":
            assert answer.body.keys() == {"data", "error"}, asked
            assert answer.body["error"]["status"] == answer.status
        assert b"argon2" not in answer.raw, asked
        assert b"s3cret-value" not in answer.raw, asked
        assert b"yet unrevealed" not in answer.raw or who not in ("public", "cut"), asked
