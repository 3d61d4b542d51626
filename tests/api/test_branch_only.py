"""Tokens that may write only to branches."""

import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.api.operations.operation import Operation
from server.api.operations.table import OPERATIONS
from server.auth.accounts import Accounts
from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, make, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

FILES = {
    "site.yaml": "search: {index: false}\n",
    **collection("note", {"title": STRING}, drafts=True),
    **collection("home", {"title": STRING}, single=True),
    "content/notes/one.md": "---\ntitle: One\n---\n",
    "content/home.yaml": "title: Welcome\n",
}
VALUES = {
    "pluralApiId": "notes",
    "singularApiId": "home",
    "documentId": "one",
    "type": "note",
    "name": "next",
    "client": "0123456789abcdef",
}
WRITES = [
    operation
    for operation in OPERATIONS
    if operation.method != "GET" and not operation.always_fails and not operation.id.startswith("studio")
]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    write(tmp_path, FILES)
    commit_all(tmp_path)
    git(tmp_path, "branch", "next")
    made = make(tmp_path, {})
    made.tokens["agent"] = made.accounts.create_token("agent", "full-access", branch_only=True)
    yield made
    made.accounts.close()


def path_of(operation: Operation) -> str:
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: VALUES.get(found[1], "1"), operation.path)


@pytest.mark.parametrize("operation", WRITES, ids=lambda operation: operation.id)
def test_every_operation_that_names_no_branch_is_refused(api: Api, operation: Operation) -> None:
    before = git(api.root, "for-each-ref"), git(api.root, "status", "--porcelain")
    answer = api.ask(operation.method, path_of(operation), "agent", json={})
    if operation.branch_only:
        assert "only to branches" not in answer.text
    else:
        assert (answer.status, answer.error["name"]) == (403, "ForbiddenError")
        assert answer.error["message"].startswith("This token may write only to branches; ")
        assert (git(api.root, "for-each-ref"), git(api.root, "status", "--porcelain")) == before


def test_a_write_to_a_branch_is_accepted_and_its_merge_is_not(api: Api) -> None:
    assert api.put("/api/notes/one?branch=next", {"title": "Two"}, "agent").status == 200
    assert api.ask("POST", "/branches", "agent", json={"name": "agent/one"}).status == 201
    assert api.put("/api/notes/one?branch=agent/one", {"title": "Three"}, "agent").status == 200
    assert api.ask("POST", "/branches/next/merge", "agent", json={}).status == 403
    assert api.get("/api/notes/one").data["title"] == "One"
    assert api.get("/api/notes/one?at=next", "agent").data["title"] == "Two"


def test_the_served_branch_can_not_be_named(api: Api) -> None:
    served = git(api.root, "branch", "--show-current").strip()
    error = api.put(f"/api/notes/one?branch={served}", {"title": "Two"}, "agent").error
    assert error["message"] == (
        "This token may write only to branches; name a branch other than the served one: ?branch=NAME"
    )
    assert api.get("/api/notes/one").data["title"] == "One"


def test_a_dry_run_of_the_served_branch_shows_what_it_would_write(api: Api) -> None:
    answer = api.put("/api/notes/one?dryRun=true", {"title": "Two"}, "agent")
    assert [file["path"] for file in answer.data["files"]] == ["content/notes/one.md"]
    assert api.get("/api/notes/one").data["title"] == "One"


def test_other_tokens_write_as_before(api: Api) -> None:
    assert api.put("/api/notes/one", {"title": "Two"}).status == 200


def test_the_caller_learns_of_it(api: Api) -> None:
    assert api.get("/access", "agent").data["caller"] == {
        "kind": "token",
        "name": "agent",
        "branchOnly": True,
    }
    assert "branchOnly" not in api.get("/access").data["caller"]


def test_a_database_of_an_older_release_gets_the_column(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    accounts = Accounts(tmp_path)
    text = accounts.create_token("old", "read-only")
    accounts.close()
    connection = sqlite3.connect(tmp_path / ".bifolio/accounts.db")
    connection.execute("DROP INDEX tokens_branch_only")
    connection.execute("ALTER TABLE tokens DROP COLUMN branch_only")
    connection.commit()
    connection.close()
    accounts = Accounts(tmp_path)
    found = accounts.find_token(text)
    accounts.close()
    assert found is not None
    assert (found.name, found.branch_only) == ("old", False)
