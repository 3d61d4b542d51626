"""Tests of requests that one request to the server causes."""

from pathlib import Path
from typing import cast

from server.api.entrance import Entrance
from server.api.mcp.rest_client import RestClient
from tests.branches import site_with_branch
from tests.mcp.sites import FILES
from tests.sites import Api, opened, write


def test_a_request_does_not_inherit_the_branch_of_another(tmp_path: Path) -> None:
    api = site_with_branch(tmp_path, {**FILES, ".gitignore": ".bifolio/\n"})
    environ = {"HTTP_AUTHORIZATION": f"Bearer {api.tokens['full']}"}
    with api.app.test_request_context("/mcp"):  # as in the handler of POST /mcp
        rest = RestClient(cast(Entrance, api.app.wsgi_app), environ)
        for query, title in (({"branch": "next"}, "There"), ({}, "Here")):
            sent = {"data": {"title": title}}
            assert rest.send("PUT", "/api/articles/fog", query, sent).status == 200
    assert api.get("/api/articles/fog").data["title"] == "Here"
    assert api.get("/api/articles/fog?at=next").data["title"] == "There"
    api.accounts.close()


def test_a_request_has_the_identity_of_the_one_that_it_serves_and_no_cookies(tmp_path: Path) -> None:
    api = Api.of(opened(_site(tmp_path)))
    app = cast(Entrance, api.app.wsgi_app)
    cookies = {"HTTP_COOKIE": "bifolio_studio=owner_x", "HTTP_BIFOLIO_STUDIO": "1"}
    for environ, name in (({}, "public"), ({"HTTP_AUTHORIZATION": f"Bearer {api.tokens['full']}"}, "token")):
        caller = RestClient(app, {**environ, **cookies}).send("GET", "/access").body["data"]["caller"]
        assert caller["kind"] == name
    assert RestClient(app, {"HTTP_AUTHORIZATION": "Studio owner_x"}).send("GET", "/access").status == 200
    api.accounts.close()


def _site(root: Path) -> Path:
    write(root, FILES)
    return root
