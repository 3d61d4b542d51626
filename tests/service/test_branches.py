"""Operations on branches and uncommitted changes through `server.service`."""

import pytest

from server.auth.owner import OWNER
from server.auth.permissions import Actor
from server.errors import ForbiddenError, MergeConflictError, NotFoundError, ValidationError
from server.history.merging.conflicts import read_resolution
from server.history.past import PastStates
from server.query.ast import Page
from server.service.branches import SiteBranches
from server.service.document_write import Verb
from server.service.read import Caller
from server.service.uncommitted import commit_files, find_uncommitted, list_uncommitted
from tests.git import git
from tests.service.sites import Service

PUBLIC = Actor("public")


@pytest.fixture
def branches(service: Service) -> SiteBranches:
    return SiteBranches(service.writes.past, service.writes)


def rename(service: Service, title: str, branch: str = "") -> None:
    """Change the title of the only note."""
    operation = service.operation(Verb.UPDATE, "note", "fog", {"title": title})
    service.write(operation, caller=service.caller(branch=branch))


def test_a_branch_is_made_written_merged_and_deleted(service: Service, branches: SiteBranches) -> None:
    made = branches.create(service.caller(), "spring")
    assert made.commit == git(service.root, "rev-parse", "HEAD").strip()
    rename(service, "Mist", "spring")
    changes = branches.changes(service.caller(), "spring")
    assert [change.document_id for change in changes.documents] == ["fog"]

    merged = branches.merge(service.caller(), "spring", read_resolution(None), message="Let it be spring")
    assert (merged.result, merged.document_count) == ("fast-forward", 1)
    assert service.read("note", "fog")["title"] == "Mist"
    branches.delete(service.caller(), "spring")
    assert [branch.name for branch in branches.all(service.caller())] == [branches.served] == ["main"]


def test_the_owner_is_the_committer_of_the_settings_on_each_branch(
    service: Service, branches: SiteBranches
) -> None:
    branches.create(service.caller(), "spring")
    for branch in ("spring", ""):
        owner, data = service.caller(OWNER, branch), {"text": "by the owner"} if branch else {"title": "Mist"}
        service.write(service.operation(Verb.UPDATE, "note", "fog", data), caller=owner)
    branches.merge(service.caller(OWNER), "spring", read_resolution(None))
    authors = git(service.root, "log", "-3", "--format=%an <%ae>").splitlines()
    assert authors == ["Bifolio <bifolio@localhost>"] * 3


def test_a_conflict_is_ended_as_it_is_resolved(service: Service, branches: SiteBranches) -> None:
    branches.create(service.caller(), "spring")
    rename(service, "Mist", "spring")
    rename(service, "Haze")
    with pytest.raises(MergeConflictError) as raised:
        branches.merge(service.caller(), "spring", read_resolution(None))
    assert raised.value.details["conflicts"]
    assert service.read("note", "fog")["title"] == "Haze"
    assert git(service.root, "status", "--short") == ""


def test_branches_are_for_who_may_use_them(service: Service, branches: SiteBranches) -> None:
    public = service.caller(PUBLIC)
    for refused in (
        lambda: branches.all(public),
        lambda: branches.create(public, "spring"),
        lambda: branches.delete(public, "main"),
        lambda: branches.changes(public, "main"),
        lambda: branches.merge(public, "main", read_resolution(None)),
    ):
        with pytest.raises(ForbiddenError):
            refused()
    # Creating a branch from a commit that no branch points to needs permission to read the history.
    maker = service.caller(Actor("token:make", frozenset({"branch.create"})))
    with pytest.raises(ForbiddenError):
        branches.create(maker, "spring", git(service.root, "rev-parse", "HEAD").strip())
    branches.create(maker, "spring", "main")


def test_an_edit_by_hand_is_shown_and_committed(service: Service) -> None:
    past: PastStates = service.writes.past
    (service.root / "content/notes/fog.json").write_text('{"title": "Mist", "text": "thick"}')
    service.site.refresh()
    caller: Caller = service.caller()
    listed = list_uncommitted(service.site, past, caller, Page(0, 10, 1))
    assert [(one.change.path, names) for one, names in listed.files] == [
        ("content/notes/fog.json", ["title"])
    ]
    found = find_uncommitted(service.site, past, caller, "content/notes/fog.json")
    assert found.attributes is not None
    assert found.lines is not None
    assert (found.attributes["title"].before, found.attributes["title"].after) == ("Fog", "Mist")
    with pytest.raises(NotFoundError):
        find_uncommitted(service.site, past, caller, "content/notes/rain.json")

    with pytest.raises(ForbiddenError):
        commit_files(service.writes, service.caller(PUBLIC), ["content/notes/fog.json"], "Mist")
    with pytest.raises(ValidationError):
        commit_files(service.writes, caller, ["content/notes/rain.json"], "Mist")
    made = commit_files(service.writes, caller, ["content/notes/fog.json"], "Mist")
    assert git(service.root, "log", "-1", "--format=%H %an %s").strip() == f"{made} token:full Mist"
    assert git(service.root, "status", "--short") == ""
