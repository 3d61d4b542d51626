"""Tests of the table of operations, which defines Flask's rules, `Allow` headers, body limits and areas."""

import re
from collections.abc import Iterator

import pytest

from server.api.entrance import Entrance
from server.api.operations.operation import Operation
from server.api.operations.table import AREAS, OPERATIONS, area_of, methods_at, operations_at
from server.api.serving.bodies import MAX_BODY_BYTES, MEDIUM_BODY_BYTES, SMALL_BODY_BYTES
from server.schema.model import Schema
from tests.sites import STRING, Api, collection, make

FILES = {
    **collection("note", {"title": STRING}, drafts=True),
    **collection("home", {"title": STRING}, single=True),
    "content/home.json": '{"title": "Home"}',
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    api = make(tmp_path_factory.mktemp("site"), FILES)
    api.token("reader", may=["note.find"])
    api.token("drafter", may=["note.updateDraft"])
    api.token("uploader", may=["upload.upload"])
    api.token("merger", may=["branch.merge"])
    yield api
    api.accounts.close()


@pytest.fixture(scope="module")
def schema(api: Api) -> Schema:
    return api.site.state.schema


def path_of(operation: Operation) -> str:
    """Return an example path for an operation."""
    api_id = "home" if operation.kind == "singleType" else "notes"
    path = operation.described_path.replace("{pluralApiId}", api_id).replace("{singularApiId}", api_id)
    return re.sub(r"\{.*?\}", "x", path)


def test_each_rule_of_flask_is_an_operation_and_each_operation_a_rule(api: Api) -> None:
    rules = {
        (rule.endpoint, rule.rule, method)
        for rule in api.app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD"}
    }
    assert rules == {(o.id, o.rule, o.method) for o in OPERATIONS if not o.runs_inline}


def test_ids_are_unique() -> None:
    assert len({operation.id for operation in OPERATIONS}) == len(OPERATIONS)


def test_each_path_is_in_the_area_of_its_operations() -> None:
    for area in AREAS:
        for operation in area.operations:
            assert area_of(path_of(operation)) is area, operation.id


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_the_table_finds_the_operation_that_flask_finds(
    operation: Operation, api: Api, schema: Schema
) -> None:
    path = path_of(operation)
    slashes = ("", "/") if operation.slash else ("",)
    for slash in slashes:
        found = [o.id for o, _ in operations_at(path + slash, schema) if o.method == operation.method]
        assert operation.id in found
        if not operation.runs_inline:
            routed, _ = api.app.url_map.bind("").match(path + slash, operation.method)
            assert routed in found
    if not operation.always_fails:
        allowed = api.ask("OPTIONS", path).headers["Allow"]
        assert allowed == ", ".join(methods_at(path, schema))
        assert operation.method in allowed


def test_paths_that_nothing_is_at_have_no_methods(schema: Schema) -> None:
    for path in (
        "",
        "/",
        "/x",
        "/api/x",
        "/api/notes/a/b",
        "/api/home/a",
        "/batch/x",
        "/history/commit/a/b/c",
    ):
        assert methods_at(path, schema) == (("GET", "HEAD", "OPTIONS") if path == "/" else ()), path


@pytest.mark.parametrize(
    ("method", "path", "who", "most"),
    [
        ("POST", "/api/notes", "full", MAX_BODY_BYTES),
        ("POST", "/api/notes/", "full", MAX_BODY_BYTES),
        ("PUT", "/api/notes/a", "full", MAX_BODY_BYTES),
        ("PUT", "/api/notes/a", "drafter", MAX_BODY_BYTES),
        ("PUT", "/api/notes/a", "reader", SMALL_BODY_BYTES),
        ("PUT", "/api/home", "full", MAX_BODY_BYTES),
        ("POST", "/api/home", "full", SMALL_BODY_BYTES),
        ("POST", "/api/notes/a/actions/discard", "full", SMALL_BODY_BYTES),
        ("POST", "/api/none", "full", SMALL_BODY_BYTES),
        ("POST", "/batch", "full", MAX_BODY_BYTES),
        ("POST", "/batch", "reader", SMALL_BODY_BYTES),
        ("POST", "/mcp", "full", MAX_BODY_BYTES),
        ("POST", "/mcp", "uploader", MAX_BODY_BYTES),
        ("POST", "/mcp", "reader", SMALL_BODY_BYTES),
        ("POST", "/batch/undo/a", "full", SMALL_BODY_BYTES),
        ("PUT", "/source/home", "full", MEDIUM_BODY_BYTES),
        ("PUT", "/source/notes/a", "reader", SMALL_BODY_BYTES),
        ("POST", "/history/commit", "full", MEDIUM_BODY_BYTES),
        ("POST", "/problems/fix", "full", MEDIUM_BODY_BYTES),
        ("POST", "/git/hook", "public", MEDIUM_BODY_BYTES),
        ("POST", "/branches/a/b/merge", "full", MAX_BODY_BYTES),
        ("POST", "/branches/a/b/merge", "merger", MAX_BODY_BYTES),
        ("POST", "/branches/a/b/merge", "reader", SMALL_BODY_BYTES),
        ("POST", "/api/users", "full", SMALL_BODY_BYTES),
    ],
)
def test_a_large_body_is_read_from_who_may_use_the_operation(
    api: Api, method: str, path: str, who: str, most: int
) -> None:
    entrance = api.app.wsgi_app
    assert isinstance(entrance, Entrance)
    credentials = {} if who == "public" else {"HTTP_AUTHORIZATION": f"Bearer {api.tokens[who]}"}
    assert entrance.max_body_bytes({"REQUEST_METHOD": method, "PATH_INFO": path, **credentials}) == most


def test_an_upload_may_be_as_large_as_the_site_says(api: Api) -> None:
    entrance = api.app.wsgi_app
    assert isinstance(entrance, Entrance)
    for who, most in (("uploader", api.site.state.settings.api.upload_limit), ("reader", SMALL_BODY_BYTES)):
        token = f"Bearer {api.tokens[who]}"
        asked = {"REQUEST_METHOD": "POST", "PATH_INFO": "/api/upload", "HTTP_AUTHORIZATION": token}
        assert entrance.max_body_bytes(asked) == most
