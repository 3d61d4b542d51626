"""The source text of a document's file through `server.service`."""

import pytest

from server.auth.permissions import Actor
from server.errors import ForbiddenError, NotFoundError, PreconditionError, ValidationError
from server.service.source import (
    NewSource,
    find_source,
    read_source,
    replace_source,
    sibling_files,
    try_source,
)
from tests.git import git
from tests.service.sites import Service


def test_a_text_is_read_tried_and_replaced(service: Service) -> None:
    file = find_source(service.caller(), "notes", "fog", {}, service.site.state.schema, to_write=True)
    source = read_source(service.site, file)
    assert (file.document.path, source.problem) == ("content/notes/fog.json", None)
    assert [document.path for document in sibling_files(file)] == ["content/notes/fog.json"]

    new = NewSource(source.version, text=source.text.replace("Fog", "Mist"))
    [change] = try_source(service.writes, file, new)
    assert change.action == "update"
    assert service.read("note", "fog")["title"] == "Fog"

    after, _, commit = replace_source(service.writes, file, new, "Clear it up")
    assert "Mist" in read_source(service.site, after).text
    assert service.read("note", "fog")["title"] == "Mist"
    assert git(service.root, "log", "-1", "--format=%H %s").strip() == f"{commit} Clear it up"
    with pytest.raises(PreconditionError):
        replace_source(service.writes, file, new)


def test_a_text_that_is_not_the_document_is_refused(service: Service) -> None:
    file = find_source(service.caller(), "notes", "fog", {}, service.site.state.schema, to_write=True)
    with pytest.raises(ValidationError):
        replace_source(service.writes, file, NewSource("*", text="{"))
    assert git(service.root, "status", "--short") == ""


def test_a_text_is_for_who_may_read_and_write_it(service: Service) -> None:
    reader = service.caller(Actor("token:read", frozenset({"source.read", "note.findOne"})))
    find_source(reader, "notes", "fog", {}, service.site.state.schema)
    for params, to_write in (({}, True), ({"status": "draft"}, False)):
        with pytest.raises(ForbiddenError):
            find_source(reader, "notes", "fog", params, service.site.state.schema, to_write=to_write)
    with pytest.raises(ForbiddenError):
        find_source(service.caller(Actor("public")), "notes", "fog", {}, service.site.state.schema)
    with pytest.raises(NotFoundError):
        find_source(service.caller(), "notes", "rain", {}, service.site.state.schema)
