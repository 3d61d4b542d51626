"""Tests of the whole app: all errors have the same envelope, and error messages reveal nothing internal."""

import gzip
from pathlib import Path

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, collection, documents

FILES = {**collection("note", {"text": STRING}), **documents("notes", a={"text": "x"})}


def test_health_answers_nothing(make_api: MakeApi) -> None:
    api = make_api(FILES)
    for method in ("GET", "HEAD"):
        answer = api.ask(method, "/_health", "public")
        assert (answer.status, answer.body) == (204, b"")


def test_an_unexpected_error_shows_no_trace(make_api: MakeApi, caplog: pytest.LogCaptureFixture) -> None:
    api = make_api(FILES)

    def boom() -> str:
        raise RuntimeError("the secret of line 7")

    api.app.view_functions["startPage"] = boom
    answer = api.get("/")
    assert answer.error == {
        "status": 500,
        "name": "InternalServerError",
        "message": "Internal Server Error",
        "details": {},
    }
    assert answer.body["data"] is None
    assert answer.headers["Content-Type"].startswith("application/json")
    assert "the secret of line 7" in caplog.text


def test_with_a_broken_accounts_database_content_is_served_and_nobody_is_known(make_api: MakeApi) -> None:
    api = make_api(FILES)
    api.accounts.close()
    for path in Path(api.site.root / ".bifolio").glob("accounts.db*"):
        path.unlink()
    (api.site.root / ".bifolio/accounts.db").write_bytes(b"no database at all" * 1000)
    assert api.get("/api/notes").error["status"] == 503
    assert api.get("/api/i18n/locales").error["status"] == 503
    assert api.get("/api/notes", "public").status < 500


def test_a_body_that_is_too_large_is_refused(make_api: MakeApi) -> None:
    api = make_api(FILES)
    big = b'{"data": {"text": "' + b"x" * (17 * 1024 * 1024) + b'"}}'
    answer = api.ask("POST", "/api/notes", data=big, headers={"Content-Type": "application/json"})
    assert (answer.error["status"], answer.error["name"]) == (413, "PayloadTooLargeError")
    assert api.get("/api/notes").ids == ["a"]


@pytest.mark.parametrize("path", ["/api/notes", "/batch", "/api/auth/local", "/api/upload", "/git/hook"])
def test_a_compressed_body_is_refused_as_one(make_api: MakeApi, path: str) -> None:
    api, data = make_api(FILES), gzip.compress(b'{"data": {"text": "y"}}')
    for coding in ("gzip", "br", "identity, gzip", "GZIP"):
        headers = {"Content-Type": "application/json", "Content-Encoding": coding}
        answer = api.ask("POST", path, data=data, headers=headers)
        assert (answer.error["status"], answer.error["name"]) == (415, "UnsupportedMediaTypeError")
        assert "Content-Encoding" in answer.error["message"]
        assert answer.headers["Accept-Encoding"] == "identity"
    assert api.get("/api/notes").ids == ["a"]


def test_a_body_may_be_said_to_be_as_it_is(make_api: MakeApi) -> None:
    api = make_api(FILES)
    assert api.post("/api/notes", {"text": "y"}, headers={"Content-Encoding": "identity"}).status == 201
    assert api.get("/api/notes", headers={"Content-Encoding": "gzip"}).status == 200


def test_a_site_may_limit_requests(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": "api: {rate_limit: 3 per minute}"})
    assert [api.get("/api/notes").status for _ in range(3)] == [200, 200, 200]
    answer = api.get("/api/notes")
    assert (answer.error["status"], answer.error["name"]) == (429, "RateLimitError")
    # Otherwise, an orchestrator would restart the server.
    assert api.get("/_health").status == 204


def test_any_origin_may_read_unless_the_site_says_otherwise(make_api: MakeApi) -> None:
    origin = {"Origin": "https://example.org"}
    api = make_api(FILES)
    for path in ("/api/notes", "/api/none"):
        headers = api.get(path, headers=origin).headers
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in headers
    asked = {
        **origin,
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "authorization",
    }
    answer = api.ask("OPTIONS", "/api/notes/a", "public", headers=asked)
    assert answer.status == 204
    assert "PUT" in answer.headers["Access-Control-Allow-Methods"]
    assert "authorization" in answer.headers["Access-Control-Allow-Headers"].lower()


def test_a_site_may_name_its_origins(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": "api: {cors: ['https://mine.org']}"})
    mine = api.get("/api/notes", headers={"Origin": "https://mine.org"}).headers
    assert mine["Access-Control-Allow-Origin"] == "https://mine.org"
    assert mine["Access-Control-Allow-Credentials"] == "true"
    asked = {"Origin": "https://mine.org", "Access-Control-Request-Method": "PUT"}
    preflight = api.ask("OPTIONS", "/api/notes/a", "public", headers=asked).headers
    assert preflight["Access-Control-Allow-Credentials"] == "true"
    other = api.get("/api/notes", headers={"Origin": "https://example.org"}).headers
    assert not {"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials"} & set(other.keys())


def test_every_answer_says_that_its_type_is_what_it_says(make_api: MakeApi) -> None:
    api = make_api(FILES)
    for path in ("/api/notes", "/api/none", "/_health"):
        assert api.get(path).headers["X-Content-Type-Options"] == "nosniff"
