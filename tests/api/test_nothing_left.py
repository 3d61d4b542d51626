"""Tests that a request that fails changes no file and no row of the accounts.

The tests send many kinds of mistakes to every route that writes. Most mistakes are detected late: in the
query, in the parameters for the response, in one of many values, or in one of several files.
"""

import hashlib
import io
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.auth.users import Users
from tests.sites import STRING, Api, collection, component, load, relation

MEDIA = {"type": "media", "multiple": True}
FILES: dict[str, str | bytes] = {
    **component("x.part", {"n": {"type": "integer", "required": True}}),
    **collection(
        "note",
        {
            "title": {"type": "string", "required": True, "unique": True, "maxLength": 50},
            "slug": {"type": "uid", "targetField": "title"},
            "count": {"type": "integer"},
            "others": relation("manyToMany", "note", inversedBy="back"),
            "back": relation("manyToMany", "note", mappedBy="others"),
            "files": MEDIA,
            "zone": {"type": "dynamiczone", "components": ["x.part"]},
        },
        drafts=True,
        localized=True,
    ),
    **collection("home", {"title": STRING, "main": relation("oneToOne", "note")}, single=True),
    "content/notes/a.yaml": "title: A\nothers: [b]\n",
    "content/notes/b.yaml": "title: B\n",
    "content/notes/b.draft.yaml": "title: B again\n",
    "content/home.yaml": "title: Home\n",
    "content/uploads/a.txt": "text",
    "site.yaml": "locales: {available: [en, fr]}\napi: {limits: {values: 1000000}}\n",
}
PERSON = {"username": "new", "email": "new@x.org", "password": "secret12", "role": 1}
# Mistakes in the parameters for the response, for the search and for the write.
QUERIES = (
    "populate=zzz", "fields=zzz", "populate[others][fields]=zzz", "populate[others][sort]=zzz",
    "fields[a][b]=1", "filters[zzz]=1", "filters[id][$eq]=1e400", "sort=zzz", "status=zzz", "a=%zz", "a=%ff",
    "locale=zz-zz-zz!", "publicationFilter=zzz", "pagination[page]=x",
    "populate[others][filters][title][zzz]=1", "[" * 2000,
)  # fmt: skip
BODIES: tuple[Any, ...] = (
    None, [], {}, 1, "x", {"data": None}, {"data": []}, {"data": "x"},
    {"data": {"title": "X", "zzz": 1}}, {"data": {"title": "X", "count": "many"}},
    {"data": {"title": "X", "count": "1e400"}}, {"data": {"title": "X", "id": 1}},
    {"data": {"title": "x" * 51}}, {"data": {"title": None}},
    {"data": {"title": "X", "others": ["a", "nobody"]}},
    {"data": {"title": "X", "back": {"connect": ["a", "nobody"]}}},
    {"data": {"title": "X", "others": {"connect": [{"documentId": "a", "position": {"before": "zzz"}}]}}},
    {"data": {"title": "X", "files": [99]}}, {"data": {"title": "X", "zone": [{"__component": "x.part"}]}},
    {"data": {"title": "X", "zone": [{"__component": "x.zzz"}]}},
    {"data": {"title": "\ud800"}}, {"data": {"title": "a\x00b"}}, {"data": {"title": "X", "slug": "a b"}},
)  # fmt: skip
PEOPLE: tuple[Any, ...] = (
    None, [], "x", {}, {**PERSON, "email": "no"}, {**PERSON, "username": "x"}, {**PERSON, "role": 99},
    {**PERSON, "password": "x"}, {**PERSON, "confirmed": "x"}, {**PERSON, "username": "ann"},
    {**PERSON, "email": "ANN@x.org"}, {**PERSON, "email": "x" * 100_000 + "@x.org"},
    {**PERSON, "username": "\ud800abc"}, {**PERSON, "username": "a\x00bc"},
)  # fmt: skip


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    api = Api.of(load(tmp_path, FILES))
    for name in ("ann", "bob"):
        Users(api.accounts).create(name, f"{name}@x.org", "secret12", role="authenticated", confirmed=True)
    yield api
    api.accounts.close()


def everything(api: Api) -> dict[str, Any]:
    """Return all files of the site except caches, and all rows of users and tokens."""
    found: dict[str, Any] = {}
    for path in api.root.rglob("*"):
        name = path.relative_to(api.root).as_posix()
        if path.is_file() and not name.startswith(
            (".bifolio/accounts.db", ".bifolio/cache", ".bifolio/formats")
        ):
            if name not in (".bifolio/jwt.key", ".bifolio/write.lock", ".bifolio/.gitignore"):
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        elif path.is_dir() and not name.startswith(".bifolio"):
            found[name] = "a folder"
    with sqlite3.connect(api.root / ".bifolio/accounts.db") as database:
        for table in ("users", "tokens", "logins"):
            found[table] = database.execute(f"SELECT * FROM {table}").fetchall()
    database.close()
    return found


def check(api: Api, before: dict[str, Any], method: str, path: str, **options: Any) -> bool:
    """Send a request and return whether it failed. A failed request must have changed nothing."""
    answer = api.ask(method, path, **options)
    assert answer.status != 500, (method, path, options)
    if answer.status >= 400:
        assert answer.body["error"]["status"] == answer.status
        assert everything(api) == before, (method, path, options)
    return answer.status >= 400


CONTENT = (
    ("POST", "/api/notes"), ("PUT", "/api/notes/a"), ("PUT", "/api/notes/b"), ("PUT", "/api/home"),
    ("PUT", "/api/notes/zzz"), ("DELETE", "/api/notes/a"), ("DELETE", "/api/home"),
)  # fmt: skip


@pytest.mark.parametrize(("method", "path"), CONTENT)
def test_a_wrong_query_changes_nothing(api: Api, method: str, path: str) -> None:
    before, refused = everything(api), 0
    for i, query in enumerate(QUERIES):
        for more in ("", "&status=draft", "&locale=fr"):
            body = {} if method == "DELETE" else {"json": {"data": {"title": f"New {i} {more}"}}}
            if check(api, before, method, f"{path}?{query}{more}", **body):
                refused += 1
            else:
                before = everything(api)
    assert refused > 5


@pytest.mark.parametrize(("method", "path"), [each for each in CONTENT if each[0] != "DELETE"])
def test_a_wrong_body_changes_nothing(api: Api, method: str, path: str) -> None:
    before = everything(api)
    for body in BODIES:
        if path == "/api/home" and isinstance(body, dict) and isinstance(body.get("data"), dict):
            body = {"data": {"title": "X", "main": "nobody"}}
        wrong = check(api, before, method, path, json=body)
        assert wrong or body == {"data": {"title": None}}, (body, everything(api))
    for data, kind in (
        (b"{", "application/json"),
        (b"\xff", "application/json"),
        (b"data[title]=%ff", "x-www"),
    ):
        assert check(api, before, method, path, data=data, headers={"Content-Type": kind})
    assert check(api, before, method, path, json={"data": {"title": "B"}}) or path != "/api/notes"


def test_a_document_that_could_not_be_read_again_is_not_written(api: Api) -> None:
    before = everything(api)
    zone = [{"__component": "x.part", "n": 1}] * 40_100  # more values than a file may contain
    answer = api.post("/api/notes", {"title": "New", "zone": zone})
    assert answer.status == 413, answer.body
    assert everything(api) == before


def test_a_wrong_user_changes_nothing(api: Api) -> None:
    before = everything(api)
    for method, path in (("POST", "/api/users"), ("PUT", "/api/users/2"), ("PUT", "/api/users/99")):
        for body in PEOPLE:
            if body != {} or path != "/api/users/2":  # an empty update of a user is valid and changes nothing
                assert check(api, before, method, path, json=body), (method, path, body)
    for query in ("fields=zzz", "populate=zzz", "sort=zzz", "filters[zzz]=1", "_q[]=x", "limit=x", "a=%zz"):
        for method, path in (("POST", "/api/users"), ("PUT", "/api/users/2"), ("DELETE", "/api/users/2")):
            assert check(api, before, method, f"{path}?{query}", json=PERSON)


def form(**fields: Any) -> dict[str, Any]:
    file = (io.BytesIO(b"text"), "new.txt")
    return {"data": {"files": file, **fields}, "content_type": "multipart/form-data"}


def test_a_wrong_upload_changes_nothing(api: Api) -> None:
    before = everything(api)
    mistakes: tuple[dict[str, Any], ...] = (
        {"fileInfo": "{"},
        {"fileInfo": "[1]"},
        {"ref": "api::note.note"},
        {"ref": "api::note.note", "refId": "zzz", "field": "files"},
        {"ref": "api::note.note", "refId": "a", "field": "title"},
        {"ref": "api::zzz.zzz", "refId": "a", "field": "files"},
    )
    for mistake in mistakes:
        assert check(api, before, "POST", "/api/upload", **form(**mistake)), mistake
    for query in ("id=99", "id=zzz"):
        assert check(api, before, "POST", f"/api/upload?{query}", **form())
    number = api.get("/api/upload/files").body[0]["id"]
    for query in ("fields=zzz", "populate=zzz", "filters[zzz]=1", "sort=zzz", "a=%zz"):
        assert check(api, before, "DELETE", f"/api/upload/files/zzz?{query}")
        for method, path, body in (("POST", "", form()), ("DELETE", f"/files/{number}", {})):
            if not check(api, before, method, f"/api/upload{path}?{query}", **body):
                before = everything(api)


def test_a_method_or_a_person_that_is_refused_changes_nothing(api: Api) -> None:
    names = {"<api_id>": "notes", "<document_id>": "a", "<user:key>": "1", "<key>": "1"}
    before, asked = everything(api), 0
    api.token("nothing", may=["home.find"])
    before = everything(api)
    for rule in api.app.url_map.iter_rules():
        path = re.sub("<.*?>", lambda found: names.get(found[0], "none"), rule.rule)
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            for who in ("public", "nothing", "nonsense"):
                assert check(api, before, method, path, who=who, json={"data": {"title": "X"}}), (
                    method,
                    path,
                )
                asked += 1
    assert asked > 200
