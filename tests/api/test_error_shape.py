"""Tests that errors on all routes have the body `{data: null, error: {status, name, message, details}}`."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from werkzeug.http import HTTP_STATUS_CODES

from server import errors
from server.api.operations.table import OPERATIONS
from tests.sites import STRING, Answer, Api, collection, load

FILES = {
    **collection("note", {"text": STRING}, drafts=True),
    **collection("home", {"title": STRING}, single=True),
    "content/notes/a.md": "---\ntext: a\n---\n",
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return Api.of(load(tmp_path_factory.mktemp("site"), FILES))


def check(answer: Answer, status: int) -> None:
    """Require that the response is an error envelope with the given status."""
    assert answer.status == status, answer.body
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    # Errors of POST /mcp are JSON-RPC errors as well.
    assert answer.body.keys() - {"jsonrpc", "id"} == {"data", "error"}
    assert answer.body["data"] is None
    error = {key: value for key, value in answer.body["error"].items() if key != "code"}
    assert list(error) == ["status", "name", "message", "details"]
    assert error["status"] == answer.status
    assert error["name"].endswith("Error")
    assert isinstance(error["message"], str)
    assert error["message"]
    assert isinstance(error["details"], dict)
    assert "Traceback" not in json.dumps(error)
    assert "not for clients" not in json.dumps(error)


NAMES = {
    "<api_id>": "notes",
    "<document_id>": "a",
    "<user:key>": "99",
    "<any(unpublish,discard):action>": "discard",
}


def routes(api: Api) -> list[tuple[str, str]]:
    """Return every method and path of the app. Most variables in the paths are replaced by names that don't
    exist.
    """
    found = set()
    for operation in OPERATIONS:
        path = operation.rule
        for variable in re.findall("<.*?>", path):
            path = path.replace(variable, NAMES.get(variable, "none"))
        found |= {(operation.method, path), ("OPTIONS", path)}
        found |= {("HEAD", path)} if operation.method == "GET" else set()
    found |= {(method, "/api/none") for method in ("DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT")}
    assert len(found) > 75
    return sorted(found)


# Routes that are open to everybody, with their status. All other routes must reject the request.
OPEN = {
    "/": 200,
    "/admin": 302,
    "/admin/": 302,
    "/api": 404,
    "/api/": 404,
    "/_health": 204,
    "/_health/live": 204,
    "/_health/ready": 200,
    "/api/none": 404,
    "/api/notes/actions/discard": 404,  # `note` is not a single type.
    "/api/notes/actions/unpublish": 404,
    "/docs": 200,
    "/docs/": 302,
    "/docs/none": 404,
    "/events/reload.js": 200,
    "/feeds/none.none": 404,
    "/invitation": 400,  # Whoever has the code of an invitation may use it.
    "/git/hook": 404,  # BIFOLIO_GIT_HOOK_SECRET is not set.
    "/access": 200,
    "/mcp": 404,  # `mcp.enabled` is not set.
    "/llms.txt": 404,  # `llms.enabled` is not set.
    "/openapi.json": 200,
    "/sitemap.xml": 404,  # No type has a URL on the website.
    "/sitemap-none.xml": 404,
    "/studio": 200,
    "/studio/none": 200,  # The studio itself shows which page does not exist.
    "/studio/-/none/none": 404,
    "/studio/-/session": 403,  # Only the studio's own pages may send this request.
    "/uploads/none": 404,
    # Sessions exist only if `auth.refresh` is set.
    "/api/auth/logout": 404,
    "/api/auth/refresh": 404,
    "/api/auth/sessions": 404,
    "/api/auth/sessions/none": 404,
}
# Content routes accept all methods, so that a 405 response can list the allowed ones.
NO_METHODS = {("/api/notes", m) for m in ("DELETE", "PATCH", "PUT", "TRACE")}
NO_METHODS |= {("/api/none", m) for m in ("DELETE", "PATCH", "POST", "PUT", "TRACE")}


def check_refused(api: Api, who: str, opened: dict[str, int], refused: int) -> None:
    """Require that every route responds to a caller without permissions with exactly one status."""
    for method, path in routes(api):
        answer = api.ask(method, path, who)
        status = 405 if (path, method) in NO_METHODS else opened.get(path, refused)
        if method == "OPTIONS":
            assert answer.status == 200, path
        elif method == "HEAD" or status < 400:
            assert (answer.status, method != "HEAD" or answer.body == b"") == (status, True), path
        else:
            check(answer, status)


def test_every_route_refuses_the_public_in_the_same_words(api: Api) -> None:
    check_refused(api, "public", OPEN, 403)


def test_every_route_refuses_a_bad_token_in_the_same_words(api: Api) -> None:
    # These responses depend on the caller's permissions, so invalid credentials are rejected.
    check_refused(api, "nonsense", {**OPEN, "/": 401, "/access": 401, "/openapi.json": 401}, 401)


def test_every_route_refuses_methods_that_it_does_not_have(api: Api) -> None:
    for path in {path for _, path in routes(api)}:
        check(api.ask("PATCH", path), 405)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/notes", "GET POST HEAD"),
        ("PATCH", "/api/notes/", "GET POST HEAD"),
        ("FOO", "/api/notes", "GET POST HEAD"),
        ("PROPFIND", "/api/notes/a", "GET PUT DELETE HEAD"),
        ("TRACE", "/api/users/me", "GET PUT HEAD"),
        ("CONNECT", "/api/upload", "POST"),
        ("FOO", "/api/none", ""),
        ("POST", "/api/notes/a", "GET PUT DELETE HEAD"),
        ("TRACE", "/api/notes/a", "GET PUT DELETE HEAD"),
        ("POST", "/api/home", "GET PUT DELETE HEAD"),
        ("PUT", "/api/home/a", ""),
        ("DELETE", "/api/nothing", ""),
        ("PUT", "/api/users", "GET POST HEAD"),
        ("TRACE", "/api/auth/local", "POST"),
        ("DELETE", "/api/users/me", "GET PUT HEAD"),
        ("PUT", "/api/users/count", "GET HEAD"),
        ("GET", "/api/auth/local", "POST"),
        ("GET", "/api/upload", "POST"),
        ("POST", "/_health", "GET HEAD"),
        ("PUT", "/batch?dryRun=true", "POST"),
        ("PUT", "/problems/fix?branch=next", "POST"),
        ("POST", "/source/notes?dryRun=true", "GET PUT HEAD"),
    ],
)
def test_405_says_which_methods_there_are(api: Api, method: str, path: str, allowed: str) -> None:
    answer = api.ask(method, path)
    check(answer, 405)
    assert set(answer.headers["Allow"].split(", ")) == {*allowed.split(), "OPTIONS"}
    told = api.ask("OPTIONS", path)
    assert told.status == 200
    assert set(told.headers["Allow"].split(", ")) == {*allowed.split(), "OPTIONS"}


@pytest.mark.parametrize(
    "path", ["/api/notes", "/api/notes/a", "/api/home", "/api/users", "/api/upload/files"]
)
@pytest.mark.parametrize(
    "query", ["filters[zzz]=1", "filters=x", "a=%zz", "a=%00", "[" * 3000, "sort=zzz", "fields=zzz"]
)
def test_bad_queries(api: Api, path: str, query: str) -> None:
    check(api.get(f"{path}?{query}"), 400)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "application/json"),
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b"null", "application/json"),
        (b'{"data": 1}', "application/json"),
        (b'{"data": {"zzz": 1}}', "application/json"),
        (b'{"data": {"text": 1}}', "application/json"),
        (b"\xff", "application/json"),
        (b"text=x", "application/x-www-form-urlencoded"),
        (b"x", "multipart/form-data"),
        (b"x", "multipart/form-data; boundary=y"),
        (b"<x/>", "application/xml"),
        (b"[" * 60_000, "application/json"),
    ],
)
def test_bad_bodies(api: Api, data: bytes, kind: str) -> None:
    for method, path, status in (
        ("POST", "/api/notes", 400),
        ("PUT", "/api/notes/a", 400),
        ("PUT", "/api/home", 400),
        ("POST", "/api/users", 400),
        ("POST", "/api/auth/local", 400),
        ("POST", "/api/auth/local/register", 400),
        ("POST", "/api/upload", 400),
        ("POST", "/api/upload?id=1", 404),
        ("PUT", "/api/users/99", 404),
    ):
        check(api.ask(method, path, data=data, headers={"Content-Type": kind}), status)
    assert api.get("/api/notes").ids == ["a"]


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("GET", "/", "startPage"),
        ("POST", "/api/users", "createUser"),
        ("PUT", "/api/users/1", "updateUser"),
        ("DELETE", "/api/users/1", "deleteUser"),
    ],
)
def test_what_nobody_expected(
    api: Api, method: str, path: str, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boom(**_: object) -> str:
        raise RuntimeError("not for clients")

    monkeypatch.setitem(api.app.view_functions, operation, boom)
    check(api.ask(method, path), 500)


def test_the_tree_of_errors_has_names_and_sentences() -> None:
    def below(kind: type) -> Iterator[type]:
        for child in kind.__subclasses__():
            yield child
            yield from below(child)

    found: list[Any] = [errors.ApiError, *below(errors.ApiError)]
    assert len(found) > 10
    for kind in found:
        assert kind.status in HTTP_STATUS_CODES
        assert kind.name.endswith("Error")
        assert kind.default
        if "__init__" not in vars(kind):  # the other errors receive their message as an argument
            assert kind().message == kind.default
        assert kind.__name__ in (errors.__doc__ or "") or kind is errors.ApiError
