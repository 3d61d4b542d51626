"""Reads through `server.service`, in a process that does not use HTTP."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from server.auth.permissions import Actor
from server.errors import ForbiddenError, NotFoundError
from server.service.opening import Mode, open_site
from server.service.read import Reader
from tests.sites import STRING, collection, documents, write

FILES = {
    **collection("note", {"title": STRING, "secret": {"type": "string", "private": True}}),
    **documents("notes", fog={"title": "Fog"}, sun={"title": "Sun", "secret": "hush"}),
}
PUBLIC = Actor("public", frozenset({"note.find"}))


def reader(root: Path, actor: Actor) -> Reader:
    write(root, FILES)
    state = open_site(root, Mode.READ).site.state
    return Reader(state, state.schema.types["api::note.note"], actor)


def test_a_list_is_found_sorted_and_without_what_is_private(tmp_path: Path) -> None:
    found = reader(tmp_path, PUBLIC).get({"sort": "title:desc", "fields": ["title"]})
    listed = json.loads(found.body)
    assert [document["title"] for document in listed["data"]] == ["Sun", "Fog"]
    assert listed["meta"]["pagination"]["total"] == 2
    assert b"hush" not in found.body
    assert found.etag.startswith('"')


def test_what_an_actor_may_not_do_is_refused(tmp_path: Path) -> None:
    read = reader(tmp_path, PUBLIC)
    with pytest.raises(ForbiddenError):
        read.get({}, "fog")
    with pytest.raises(NotFoundError):
        Reader(read.state, read.type, Actor("public", frozenset({"note.findOne"}))).get({}, "rain")


def test_the_service_loads_no_http() -> None:
    """No module of the service may import Flask, werkzeug or the API."""
    folder = Path(__file__).parents[2] / "server" / "service"
    names = sorted(f"server.service.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__")
    program = (
        f"import sys, {', '.join(names)}\n"
        "print([m for m in sys.modules if m.startswith(('flask', 'werkzeug', 'server.api'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr
