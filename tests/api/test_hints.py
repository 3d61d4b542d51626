"""Tests of the hints that a server logs, once each, about requests that probably don't do what the client
intends.
"""

from functools import partial
from pathlib import Path

import pytest

from server.api.hints import OTHER_NAMES, WITH_EFFECT, Hints, OnceLog
from server.errors import ForbiddenError
from tests.servers import free_port, get, serving
from tests.sites import STRING, Api, collection, load, relation, write

FILES = {
    **collection("page", {"title": STRING, "author": relation("manyToOne", "author")}),
    **collection("author", {"name": STRING}),
    "site.yaml": "roles: {public: {page: [find], author: [find]}}\n",
}
PAGED = "/api/pages?populate=author&pagination%5Bpage%5D=1"


def test_the_first_refusal_of_all_workers_is_one_line_with_the_name_of_the_setting(tmp_path: Path) -> None:
    write(tmp_path / "site", FILES)
    port = free_port()
    with (
        (tmp_path / "log").open("wb") as output,
        serving(tmp_path / "site", port, "--workers", "2", output=output),
    ):
        assert get(port, "/api/pages?populate=author")[0] == 200
        assert "rejected" not in (tmp_path / "log").read_text()
        assert {get(port, PAGED)[0] for _ in range(20)} == {400}
    told = [line for line in (tmp_path / "log").read_text().splitlines() if "rejected" in line]
    assert len(told) == 1
    assert "api.populate_with_pagination: allow in site.yaml" in told[0]


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api.of(load(tmp_path, FILES))


def test_a_refusal_names_the_permission_in_the_log_and_not_in_the_response(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    api.token("desk", may=["page.find"])
    for _ in range(3):
        refused = api.post("/api/pages", {"title": "A"}, "public")
        assert (refused.status, refused.body["error"]["message"]) == (403, "Forbidden")
        assert "page.create" not in str(refused.body)
        assert api.get("/api/authors/ida", "public").status == 403
        assert api.post("/api/pages", {"title": "A"}, "desk").status == 403
        assert api.get("/api/users", "public").status == 403
    refusal = "a request was rejected (logged only once): "
    assert [record.getMessage() for record in caplog.records] == [
        f"{refusal}the role public does not have the permission page.create (to grant it, edit roles in "
        "site.yaml; see "
        "docs/access.md)",
        f"{refusal}the role public does not have the permission author.findOne (to grant it, edit roles in "
        "site.yaml; see "
        "docs/access.md)",
        f"{refusal}the token desk does not have the permission page.create (to create a token with "
        "this permission, run `bifolio token "
        "create`; see docs/access.md)",
        f"{refusal}the role public does not have the permission user.find (to grant it, edit roles in "
        "site.yaml; see docs/access.md)",
    ]
    api.accounts.close()


def test_the_log_names_the_role_that_an_agent_was_started_with(caplog: pytest.LogCaptureFixture) -> None:
    Hints().note_error(ForbiddenError(actor="agent:editor", permission="page.create"))
    assert "the role editor does not have the permission page.create" in caplog.text


def test_a_token_without_bearer_is_refused_with_what_to_write(api: Api) -> None:
    headers = {"Authorization": api.tokens["full"]}
    for path in ("/api/pages", "/api/content-type-builder/content-types"):
        refused = api.get(path, "public", headers=headers)
        assert refused.status == 401
        message = "Write Bearer before the token: Authorization: Bearer bifolio_…"
        assert refused.body["error"]["message"] == message
    assert api.get("/api/pages", "public", headers={"Authorization": "other"}).status == 200
    api.accounts.close()


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        (
            "password%3Dwalrus",
            'the unknown query parameter "password" was ignored (logged only once): '
            "docs/querying.md lists the parameters",
        ),
        (
            "filter[title]=x",
            'the unknown query parameter "filter" was ignored (logged only once): did you mean "filters"?',
        ),
        (
            "limit=3",
            'the unknown query parameter "limit" was ignored (logged only once): did you mean '
            '"pagination[limit]"?',
        ),
        (
            "a%0Ab=3",
            'the unknown query parameter "a\\nb" was ignored (logged only once): docs/querying.md lists '
            "the parameters",
        ),
        ("publicationState=preview", 'did you mean "status"?'),
        ("filters[title]=x&sort=title&pagination[limit]=3&_q=x&locale=en&status=published", None),
    ],
)
def test_a_parameter_without_effect_is_logged_once(
    api: Api, caplog: pytest.LogCaptureFixture, query: str, hint: str | None
) -> None:
    for page in ("", "&fields=title", "&sort=title:asc"):
        assert api.get(f"/api/pages?{query}{page}").status == 200
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == (hint is not None)
    assert hint is None or logged[0].endswith(hint)
    api.accounts.close()


def test_what_a_client_can_have_logged_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    once = OnceLog(3)
    for i in range(10):
        once.warn_once(f"{i}\udcff", partial(str, i))
    assert [record.getMessage() for record in caplog.records] == ["0", "1", "2"]


def test_other_names_are_none_of_ours() -> None:
    assert WITH_EFFECT.isdisjoint(OTHER_NAMES)
    assert {meant.partition("[")[0] for meant in OTHER_NAMES.values()} <= WITH_EFFECT
