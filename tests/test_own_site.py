"""Tests of the repository's own site: every document is served, and there are no problems."""

import shutil
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from server.api.app import create_app
from server.auth.accounts import Accounts
from server.site.site import Site
from tests.sites import opened

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    root = tmp_path_factory.mktemp("site")
    for name in ("content", "content-types"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "site.yaml", root)
    return opened(root)


@pytest.fixture(scope="module")
def client(site: Site) -> FlaskClient:
    return create_app(site, Accounts(site.root)).test_client()


def test_nothing_is_wrong(site: Site) -> None:
    assert [str(problem) for problem in site.problems] == []


def test_every_file_is_a_document(site: Site) -> None:
    files = {p.relative_to(site.root).as_posix() for p in (site.root / "content").rglob("*") if p.is_file()}
    documents = {d.path for table in site.state.snapshot.tables.values() for _, d in table.versions.items()}
    unserved = {
        f for f in files - documents if not (f.startswith("content/uploads/") and f.endswith(".yaml"))
    }
    assert unserved == set()


def test_every_type_answers_with_everything_populated(site: Site, client: FlaskClient) -> None:
    for api_id in site.state.schema.endpoints:
        answer = client.get(f"/api/{api_id}?populate=*")
        assert answer.status_code == 200, api_id
        assert answer.json["data"], api_id


def test_the_magazine_has_two_languages(client: FlaskClient) -> None:
    here = client.get("/api/articles/2024--samphire?populate=localizations").json["data"]
    assert here["locale"] == "en"
    assert [other["locale"] for other in here["localizations"]] == ["fr"]


def test_a_title_that_looks_like_a_time_is_text(client: FlaskClient) -> None:
    assert client.get("/api/articles/2024--sixteen-forty-two").json["data"]["title"] == "16:42"
