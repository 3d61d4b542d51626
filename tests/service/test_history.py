"""The history of a document through `server.service`."""

from dataclasses import replace

import pytest

from server.auth.permissions import Actor
from server.config.model import Settings
from server.errors import ForbiddenError, NotFoundError, QueueError
from server.index.budget import Budget, turns
from server.service.document_write import Verb
from server.service.history import DocumentHistory
from tests.git import git
from tests.service.sites import Service


def history(service: Service, action: str = "read") -> DocumentHistory:
    return service.histories.document_history(service.caller(), "notes", "fog", {}, action)


def test_versions_are_compared_and_an_earlier_one_is_written_again(service: Service) -> None:
    first = git(service.root, "rev-parse", "HEAD").strip()
    service.write(service.operation(Verb.UPDATE, "note", "fog", {"title": "Mist", "text": "thin"}))

    one = history(service)
    assert [version.action for version in one.versions] == ["update", "create"]
    compared = service.histories.compare(one, "", "", "")
    assert compared.since == first
    assert {name: (d.before, d.after) for name, d in compared.differences.items()} == {
        "title": ("Fog", "Mist"),
        "text": ("thick", "thin"),
    }
    origins = service.histories.origins(one)
    assert origins.attributes["title"].version == one.versions[0]

    tried = service.histories.restore(history(service, "restore"), first, "", ["title"], dry_run=True)
    assert tried.files is not None
    assert [file.path for file in tried.files] == ["content/notes/fog.json"]
    made = service.histories.restore(history(service, "restore"), first, "", ["title"])
    assert made.commit == git(service.root, "rev-parse", "HEAD").strip()
    said = service.read("note", "fog")
    assert (said["title"], said["text"]) == ("Fog", "thin")


def test_a_document_that_was_deleted_is_found_and_made_again(service: Service) -> None:
    first = git(service.root, "rev-parse", "HEAD").strip()
    service.write(service.operation(Verb.DELETE, "note", "fog"))
    type_, found = service.histories.deleted_documents(service.caller(), "notes")
    assert (type_.singular, [document_id for document_id, _ in found]) == ("note", ["fog"])
    [made] = service.histories.restore(history(service, "restore"), first, "", ["title"]).documents
    assert made.verb is Verb.CREATE
    assert service.read("note", "fog")["title"] == "Fog"


def test_reads_of_the_history_take_turns(service: Service) -> None:
    taken = turns(max_waiting=0)
    caller = replace(service.caller(), budget=Budget(Settings(), taken))
    reads = (
        lambda: service.histories.document_history(caller, "notes", "fog", {}),
        lambda: service.histories.commits(caller),
        lambda: service.histories.deleted_documents(caller, "notes"),
    )
    for read in reads:
        with taken, pytest.raises(QueueError):
            read()
        with caller.budget:
            read()


def test_the_history_is_for_who_may_read_it(service: Service) -> None:
    reader = service.caller(Actor("token:read", frozenset({"history.read", "note.find"})))
    one = service.histories.document_history(reader, "notes", "fog", {})
    for refused in (
        lambda: service.histories.document_history(reader, "notes", "fog", {}, "restore"),
        lambda: service.histories.restore(one, "HEAD", "", ["title"]),
        lambda: service.histories.document_history(service.caller(Actor("public")), "notes", "fog", {}),
    ):
        with pytest.raises(ForbiddenError):
            refused()
    with pytest.raises(NotFoundError):
        service.histories.document_history(reader, "notes", "rain", {})


def test_commits_are_listed_with_the_documents_that_a_caller_may_find(service: Service) -> None:
    service.write(service.operation(Verb.CREATE, "tag", data={"name": "Sea"}))
    service.write(service.operation(Verb.DELETE, "note", "fog"))
    everything = service.histories.commits(service.caller())
    assert [[(d.type.singular, d.action) for d in documents] for _, documents in everything] == [
        [("note", "delete")],
        [("tag", "create")],
        [("note", "create")],
    ]
    reader = service.caller(Actor("token:read", frozenset({"history.read", "note.find"})))
    for found in (
        service.histories.commits(service.caller(), type_="notes"),
        service.histories.commits(reader),
    ):
        assert [documents[0].document_id for _, documents in found] == ["fog", "fog"]
    [(newest, _)] = service.histories.commits(service.caller(), since="HEAD~1")
    assert newest.id == git(service.root, "rev-parse", "HEAD").strip()
