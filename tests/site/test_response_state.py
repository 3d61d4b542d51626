"""Tests of responses to writes whose files another program changes before the response is rendered."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from server.auth.permissions import Actor
from server.site.commits.message import Authorship
from server.site.site import Site
from server.write import prepare
from server.write.renaming.rename import RenameRequest, rename
from server.write.request import Address, WriteRequest
from server.write.uploads import uploading
from tests.git import commit_all, git
from tests.sites import collection, documents, load

FILES = {
    ".gitignore": ".bifolio/\n",
    **collection("tag", {"name": "string"}, format="json"),
    **documents("tags", red={"name": "Red"}),
    "content/uploads/old.bin": "12345",
    "content/uploads/old.bin.yaml": "documentId: oldfile\ncaption: Old\n",
}
WRITER = Actor("test", everything=True)
EDITS: dict[str, Callable[[Path], Any]] = {
    "delete": Path.unlink,
    "change": lambda path: path.write_text('{"name": "By hand"}'),
    "break": lambda path: path.write_text('{"name": ["Not a string"]}'),
    "empty": lambda path: path.write_text(""),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("document_id", [None, "red"])
@pytest.mark.parametrize("settings", ["", "git: {commit: each}\n"])
def test_the_response_shows_what_was_written(
    tmp_path: Path, settings: str, document_id: str | None, edit: Callable[[Path], Any]
) -> None:
    site = load(tmp_path, {**FILES, "site.yaml": settings})
    if settings:
        commit_all(tmp_path)
        site.refresh()
    state, written, paths = write_and_edit(site, document_id, edit)
    document = state.snapshot.get(state.schema.types["api::tag.tag"], written, "en", "published")
    assert document is not None
    assert document.get("name") == "Blue"
    if settings:
        assert '"Blue"' in git(tmp_path, "show", f"HEAD:{paths[0]}")
    site.refresh()
    served = site.state.snapshot.get(document.type, written, "en", "published")
    assert (served is not None and served.get("name") == "Blue") == (edit is EDITS["nothing"])


def write_and_edit(
    site: Site, document_id: str | None, edit: Callable[[Path], Any]
) -> tuple[Any, str, list[str]]:
    """Write a document, and edit its file before the server reads it again."""
    paths: list[str] = []

    @contextmanager
    def keep(writes: Any) -> Iterator[None]:
        yield
        paths.extend(write.path for write in writes)
        edit(site.root / paths[0])

    address = Address(site.state.schema.types["api::tag.tag"], document_id, "en", draft=False)
    act = prepare.update if document_id else prepare.create
    request = WriteRequest(address, WRITER, {"name": "Blue"})
    state, written, _ = site.write(Authorship("test", "Test", "test@example.org", around=keep), act, request)
    return state, written, paths


WRITTEN_CAPTIONS = {"upload": "New", "describe": "Changed", "move": "Old"}


@pytest.mark.parametrize("action", WRITTEN_CAPTIONS)
@pytest.mark.parametrize("settings", ["", "git: {commit: each}\n"])
def test_the_response_shows_a_file_that_was_deleted_before_the_server_read_it(
    tmp_path: Path, settings: str, action: str
) -> None:
    site = load(tmp_path, {**FILES, "site.yaml": settings})
    if settings:
        commit_all(tmp_path)
        site.refresh()
    source, uploads = tmp_path / ".bifolio/incoming.bin", tmp_path / "content/uploads"
    source.write_text("12345")

    @contextmanager
    def delete_files(_: Any) -> Iterator[None]:
        yield
        for path in uploads.iterdir():
            path.unlink()

    authorship = Authorship("test", "Test", "test@example.org", around=delete_files)
    if action == "upload":
        received = uploading.ReceivedFile(source, "new.bin", {"caption": "New"})
        state, (path,), _ = site.write(authorship, uploading.upload, uploading.Upload((received,), WRITER))
    elif action == "describe":
        change = uploading.FileChange("oldfile", {"caption": "Changed"})
        state, path, _ = site.write(authorship, uploading.change_file, change)
    else:
        path = "content/uploads/moved.bin"
        state, _, _ = site.write(authorship, rename, RenameRequest("content/uploads/old.bin", path))
    file = state.snapshot.media[path.removeprefix("content/uploads/")]
    assert file.get("caption") == WRITTEN_CAPTIONS[action]
    assert (action == "upload") == (file.document_id != "oldfile")
    if action != "describe":  # The size of a file that was not written is unknown.
        assert file.get("size") == 0.01
