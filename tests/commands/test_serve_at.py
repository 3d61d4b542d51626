"""Tests of `bifolio serve --at`, which serves a past commit of the whole site, read-only."""

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.auth.accounts import Accounts
from tests.api.test_upload import picture
from tests.commands.test_cli import run
from tests.git import commit_all, git
from tests.history.test_past import commit
from tests.servers import free_port, start, stop, wait
from tests.sites import STRING, collection, documents, write
from tests.waiting import until

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

SITE = """\
name: {}
roles: {{public: {{note: {}, upload: [find, upload], auth: [callback, register]}}}}
search: {{index: false}}
"""
OLD, NEW = picture(), picture(700, 500)
FIRST = {
    "site.yaml": SITE.format("Then", "[find]"),
    **collection("note", {"title": STRING}),
    **documents("notes", a={"title": "Before"}, gone={"title": "Gone"}),
    "content/uploads/a.png": OLD,
}
SINCE = {
    "site.yaml": SITE.format("Now", "[find, findOne, create, update, delete]"),
    **collection("note", {"name": STRING}),
    **documents("notes", a={"name": "After"}, new={"name": "New"}),
    "content/uploads/a.png": NEW,
}


def make_site(root: Path) -> str:
    """Create a site in which everything has changed since its first commit. Return the first
    commit's hash.
    """
    write(root, FIRST)
    commit_all(root)
    (root / "content/notes/gone.json").unlink()
    write(root, SINCE)
    commit(root, 1)
    return git(root, "rev-parse", "HEAD~1").strip()


class Server:
    """A server that serves a site at a past commit, and its output."""

    def __init__(self, folder: Path, name: str) -> None:
        self.root, self.log, self.port = folder / "site", folder / "log", free_port()
        with self.log.open("wb") as out:
            self.process = start(self.root, self.port, "--workers=1", f"--at={name}", output=out)
        wait(self.process, self.port)
        until(lambda: "Ctrl-C stops it" in self.log.read_text(), 15)

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    make_site(tmp_path / "site")
    running = Server(tmp_path, "main~1")
    yield running
    stop(running.process)


def test_everything_is_as_it_was_for_whoever_may_read_it_today(server: Server) -> None:
    first = git(server.root, "rev-parse", "HEAD~1").strip()
    printed = server.log.read_text()
    assert "Then: 1 content type" in printed
    assert f"commit {first[:10]} of 2024-01-01T00:00:00" in printed
    assert "first" in printed
    titles = [note["title"] for note in json.loads(server.ask("/api/notes?sort=title")[1])["data"]]
    assert titles == ["Before", "Gone"]
    assert server.ask("/api/notes/a")[0] == 200  # only the role's current permissions allow this
    assert server.ask("/api/notes/new")[0] == 404
    assert server.ask("/uploads/a.png") == (200, OLD)
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/uploads/a.png", timeout=10) as answer:
        # Everybody may read the response, so caches may store it.
        assert answer.headers["Cache-Control"] == "public, max-age=3600"
    assert [hit["documentId"] for hit in json.loads(server.ask("/search?q=gone")[1])["data"]] == ["gone"]
    assert json.loads(server.ask("/", Accept="application/json")[1])["name"] == "Then"
    described = server.ask("/openapi.json")[1]
    assert b'"title"' in described
    assert server.ask("/docs")[0] == 200


def test_a_commit_can_be_asked_for_on_top(server: Server) -> None:
    token = Accounts(server.root).create_token("t", "full-access", [], None)
    status, body = server.ask("/api/notes?at=main&sort=name", Authorization=f"Bearer {token}")
    assert (status, [note["name"] for note in json.loads(body)["data"]]) == (200, ["After", "New"])
    assert server.ask("/api/notes?at=main")[0] == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/notes"),
        ("PUT", "/api/notes/a"),
        ("DELETE", "/api/notes/a"),
        ("POST", "/api/upload"),
        ("POST", "/batch"),
        ("POST", "/history/notes/a/restore"),
        ("POST", "/branches"),
    ],
)
def test_nothing_can_be_written(server: Server, method: str, path: str) -> None:
    body = json.dumps({"data": {"title": "x" * 100_000}}).encode()
    status, answer = server.ask(path, method, body, **{"Content-Type": "application/json"})
    assert status == 403
    assert "because it is served as it was at commit" in json.loads(answer)["error"]["message"]
    assert git(server.root, "status", "--short", "content") == ""


def test_access_says_which_commit_is_served_and_offers_no_writes(server: Server) -> None:
    first = git(server.root, "rev-parse", "HEAD~1").strip()
    token = Accounts(server.root).create_token("t", "full-access", [], None)
    told = json.loads(server.ask("/access", Authorization=f"Bearer {token}")[1])["data"]
    assert told["site"]["servedAt"] == {"commit": first, "date": "2024-01-01T00:00:00.000Z"}
    assert told["permissions"]["note"] == ["find", "findOne"]
    assert told["permissions"]["upload"] == ["find", "findOne"]
    assert told["permissions"]["history"] == ["read"]
    assert "register" in told["permissions"]["auth"]


def test_users_can_register_and_log_in(server: Server) -> None:
    kind = {"Content-Type": "application/json"}
    ann = {"username": "ann", "email": "ann@example.org", "password": "a-long-password-1"}
    body = json.dumps(ann).encode()
    assert server.ask("/api/auth/local/register", "POST", body, **kind)[0] == 200
    body = json.dumps({"identifier": "ann", "password": ann["password"]}).encode()
    status, answer = server.ask("/api/auth/local", "POST", body, **kind)
    assert (status, bool(json.loads(answer)["jwt"])) == (200, True)


def test_a_commit_that_is_made_later_changes_nothing(server: Server) -> None:
    git(server.root, "commit", "-q", "--allow-empty", "-m", "later")
    write(server.root, {"site.yaml": SITE.format("Later", "[]")})
    # The current permissions apply, not those of the past commit.
    until(lambda: server.ask("/api/notes")[0] == 403)
    assert json.loads(server.ask("/", Accept="application/json")[1])["name"] == "Then"


@pytest.mark.parametrize("name", ["nothing", "--all", "-x", "", "a\nb", "2029-01-01x"])
def test_a_name_of_no_commit_is_one_line(tmp_path: Path, name: str) -> None:
    make_site(tmp_path / "site")
    done = run("serve", "--site", str(tmp_path / "site"), "--at", name)
    assert done.exit_code == 1
    assert done.output.startswith("bifolio: --at: ")
    assert len(done.output.splitlines()) == 1


def test_a_site_in_no_repository_is_one_line(tmp_path: Path) -> None:
    write(tmp_path / "site", FIRST)
    done = run("serve", "--site", str(tmp_path / "site"), "--at", "main")
    assert (done.exit_code, "git init" in done.output) == (1, True)
