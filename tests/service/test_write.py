"""Writes through `server.service`: commands and their results, with real files but without HTTP."""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pytest

from server.auth.permissions import Actor
from server.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    OverlapError,
    PreconditionError,
    ValidationError,
)
from server.service.document_write import Operation, Verb
from server.service.undo import undo_write
from server.service.write import Command
from server.storage.intent import Write
from server.storage.undo import Permit
from server.write.context import Context
from tests.git import git
from tests.service.sites import Service


def test_a_document_is_made_changed_and_deleted(service: Service) -> None:
    made = service.write(service.operation(Verb.CREATE, "tag", data={"name": "Sea"}))
    [tag] = made.documents
    assert json.loads(tag.render().body)["data"]["name"] == "Sea"
    assert made.commit == git(service.root, "rev-parse", "HEAD").strip()
    assert made.undo is None
    assert service.site.state is made.state

    service.write(service.operation(Verb.UPDATE, "tag", tag.document_id, {"name": "Lake"}))
    assert service.read("tag", tag.document_id)["name"] == "Lake"

    deletion = service.write(service.operation(Verb.DELETE, "tag", tag.document_id))
    assert deletion.documents[0].render().body == b""
    assert git(service.root, "ls-files", "content/tags") == ""
    with pytest.raises(NotFoundError):
        service.write(service.operation(Verb.UPDATE, "tag", tag.document_id, {"name": "Bay"}))


def test_a_single_type_is_made_by_its_first_update(service: Service) -> None:
    with pytest.raises(ValidationError, match='home does not support the operation "create"'):
        service.write(service.operation(Verb.CREATE, "home", data={"title": "Hello"}))
    service.write(service.operation(Verb.UPDATE, "home", data={"title": "Hello"}))
    assert service.read("home")["title"] == "Hello"


def test_what_an_actor_may_not_do_changes_nothing(service: Service) -> None:
    reader = service.caller(Actor("token:read", frozenset({"tag.find", "tag.findOne", "note.updateDraft"})))
    for operation in (
        service.operation(Verb.CREATE, "tag", data={"name": "Sea"}),
        service.operation(Verb.DELETE, "note", "fog"),
        service.operation(Verb.UNPUBLISH, "note", "fog"),
    ):
        with pytest.raises(ForbiddenError):
            service.write(operation, caller=reader)
    assert git(service.root, "status", "--short") == ""


def test_a_version_that_has_changed_is_refused_or_merged(service: Service) -> None:
    made = service.write(service.operation(Verb.CREATE, "tag", data={"name": "Sea", "note": "wet"}))
    id_, etag = made.documents[0].document_id, made.documents[0].render().etag
    service.write(service.operation(Verb.UPDATE, "tag", id_, {"name": "Lake"}))

    def late(merge: bool, **values: str) -> Operation:
        operation = service.operation(Verb.UPDATE, "tag", id_, values)
        return Operation(operation.type, operation.verb, id_, data=values, if_match=etag, merge=merge)

    with pytest.raises(PreconditionError):
        service.write(late(False, note="deep"))
    with pytest.raises(OverlapError):
        service.write(late(True, name="Bay"))
    [merged] = service.write(late(True, note="deep")).documents
    assert merged.merged
    said = service.read("tag", id_)
    assert (said["name"], said["note"]) == ("Lake", "deep")


def test_a_draft_is_published_by_nobody_and_discarded(service: Service) -> None:
    draft = service.operation(Verb.UPDATE, "note", "fog", {"title": "Mist"})
    service.write(Operation(draft.type, Verb.UPDATE, "fog", {"status": "draft"}, draft.data))
    assert service.read("note", "fog")["title"] == "Fog"
    [left] = service.write(service.operation(Verb.DISCARD, "note", "fog")).documents
    assert json.loads(left.render().body)["data"]["title"] == "Fog"
    service.write(service.operation(Verb.UNPUBLISH, "note", "fog"))
    with pytest.raises(NotFoundError):
        service.read("note", "fog")


def test_a_batch_refers_to_what_it_makes_and_is_made_or_not(service: Service) -> None:
    made = service.write(
        service.operation(Verb.CREATE, "tag", data={"name": "Sea"}),
        service.operation(Verb.UPDATE, "tag", "{{0.documentId}}", {"note": "{{0.documentId}} is wet"}),
    )
    first, second = made.documents
    assert first.document_id == second.document_id
    assert service.read("tag", first.document_id)["note"] == f"{first.document_id} is wet"
    assert git(service.root, "rev-list", "--count", "HEAD").strip() == "2"

    with pytest.raises(NotFoundError) as raised:
        service.write(
            service.operation(Verb.CREATE, "tag", data={"name": "Bay"}),
            service.operation(Verb.UPDATE, "tag", "nobody", {"name": "X"}),
        )
    assert raised.value.details["operation"] == 1
    assert git(service.root, "rev-list", "--count", "HEAD").strip() == "2"
    assert git(service.root, "status", "--short") == ""


def test_an_operation_alone_takes_texts_as_they_are(service: Service) -> None:
    made = service.write(
        service.operation(Verb.CREATE, "tag", data={"name": "Sea", "note": "{{0.documentId}}"})
    )
    assert service.read("tag", made.documents[0].document_id)["note"] == "{{0.documentId}}"


def test_a_dry_run_says_what_would_change_and_writes_nothing(service: Service) -> None:
    operation = service.operation(Verb.UPDATE, "note", "fog", {"title": "Mist"})
    tried = service.writes.write(Command(service.caller(), [operation], dry_run=True))
    assert tried.files is not None
    [file] = tried.files
    assert (file.path, file.action) == ("content/notes/fog.json", "update")
    assert any(line.startswith("+") and "Mist" in line for line in file.lines)
    assert git(service.root, "status", "--short") == ""
    writer = Actor("token:write", frozenset({"note.update", "note.find"}))
    with pytest.raises(ForbiddenError):  # The caller may not see files.
        service.writes.write(Command(service.caller(writer), [operation], dry_run=True))


def test_a_write_is_taken_back_and_back_again(service: Service) -> None:
    before = (service.root / "content/notes/fog.json").read_bytes()
    offer = service.write(service.operation(Verb.UPDATE, "note", "fog", {"title": "Mist"}), undo=True).undo
    assert offer is not None
    after = (service.root / "content/notes/fog.json").read_bytes()

    undone = undo_write(service.writes, service.caller(), offer.id, can_redo=True)
    assert undone.result == ("content/notes/fog.json",)
    assert (service.root / "content/notes/fog.json").read_bytes() == before
    assert git(service.root, "log", "-1", "--format=%s").strip() == "Undo a change"
    with pytest.raises(NotFoundError):
        undo_write(service.writes, service.caller(), offer.id)

    assert undone.undo is not None
    undo_write(service.writes, service.caller(), undone.undo.id)
    assert (service.root / "content/notes/fog.json").read_bytes() == after


def test_a_write_that_can_be_undone_runs_inside_a_context(service: Service) -> None:
    entered: list[str] = []

    @contextmanager
    def around(writes: Collection[Write]) -> Iterator[None]:
        entered.extend(write.path for write in writes)
        yield

    def prepare(_: None, context: Context) -> None:
        context.changeset.put("content/tags/sea.yaml", "name: Sea\n")

    permits = (Permit("api::tag.tag", Verb.CREATE, draft=False),)
    outcome = service.writes.save(service.caller(), prepare, None, permits=permits, around=around)
    assert entered == ["content/tags/sea.yaml"]
    assert outcome.undo is not None


def test_what_was_changed_since_is_not_taken_back(service: Service) -> None:
    offer = service.write(service.operation(Verb.UPDATE, "note", "fog", {"title": "Mist"}), undo=True).undo
    assert offer is not None
    service.write(service.operation(Verb.UPDATE, "note", "fog", {"title": "Haze"}))
    with pytest.raises(ConflictError):
        undo_write(service.writes, service.caller(), offer.id)


def test_another_branch_is_written_to_by_a_commit(service: Service) -> None:
    git(service.root, "branch", "spring")
    operation = service.operation(Verb.UPDATE, "note", "fog", {"title": "Mist"})
    caller = service.caller(branch="spring")
    made = service.write(operation, caller=caller, undo=True)
    assert made.commit == git(service.root, "rev-parse", "spring").strip()
    assert json.loads(made.documents[0].render().body)["data"]["title"] == "Mist"
    assert made.undo is None
    assert service.read("note", "fog")["title"] == "Fog"
    assert service.caller(branch="main").branch is None
    with pytest.raises(NotFoundError):
        service.caller(branch="autumn")
    with pytest.raises(ForbiddenError):
        service.caller(Actor("public"), branch="spring")


def test_the_message_of_a_command_is_that_of_its_commit(service: Service) -> None:
    operation = service.operation(Verb.UPDATE, "note", "fog", {"title": "Mist"})
    service.writes.write(Command(service.caller(), [operation], message="Say it otherwise"))
    said = git(service.root, "log", "-1", "--format=%an: %B")
    assert said.startswith("token:full: Say it otherwise\n")
    assert "Bifolio-Document: note/fog" in said


def test_a_response_fits_the_schema_that_was_written(service: Service) -> None:
    """The attribute is renamed after the request has been parsed, but before its write is prepared."""
    caller, change = service.caller(), service.operation(Verb.UPDATE, "note", "fog", {"title": "Mist"})
    fields = Operation(change.type, Verb.UPDATE, "fog", {"fields": ["title", "text"]}, {"title": "Haze"})
    path = service.root / "content-types/note.json"
    path.write_text(path.read_text().replace('"text"', '"a_text"'))
    service.site.refresh()
    [written] = service.write(change, caller=caller).documents
    assert json.loads(written.render_within_limits().body)["data"]["title"] == "Mist"
    [written] = service.write(fields, caller=caller).documents
    shown = json.loads(written.render_within_limits().body)
    assert (set(shown["data"]), shown["data"]["documentId"]) == ({"id", "documentId"}, "fog")
    assert "The content type was changed during this write" in shown["meta"]["note"]
    assert service.read("note", "fog")["title"] == "Haze"
