"""Tests of changes between a write and its response: the response is a success, because a client would repeat
a write that seems to have failed.
"""

import io
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.git import commit_all
from tests.history.remote.machines import hook
from tests.sites import Answer, Api, collection, documents, write
from tests.waiting import until

FILES = {
    ".gitignore": ".bifolio/\n",
    "site.yaml": "locales: {default: en, available: [en, fr]}\ngit: {commit: each}\n",
    **collection("note", {"title": "string", "text": "string"}, localized=True),
    **documents("notes", tide={"title": "Tide"}),
    "content/uploads/old.bin": "12345",
    "content/uploads/old.bin.yaml": "documentId: oldfile\nalternativeText: Old\n",
}
Request = Callable[[Api], Answer]


@pytest.fixture
def api(make_api: MakeApi, tmp_path: Path) -> Api:
    write(tmp_path, FILES)
    commit_all(tmp_path)
    return make_api(FILES)


@contextmanager
def waiting_for_commit(api: Api, request: Request) -> Iterator[Future[Answer]]:
    """Start a request whose write waits for its commit until the block ends."""
    began, end = api.root / ".git/began", api.root / ".git/end"
    hook(api.root / ".git", "pre-commit", f"touch {began}; while [ ! -e {end} ]; do sleep 0.02; done")
    other = Api(api.site, api.app, api.accounts, api.app.test_client(), api.tokens)
    with ThreadPoolExecutor(1) as threads:
        try:
            answer = threads.submit(request, other)
            until(began.exists)
            yield answer
        finally:
            end.touch()


def rename_type(root: Path) -> None:
    schema = json.loads((root / "content-types/note.json").read_text())
    schema["info"] |= {"singularName": "memo", "pluralName": "memos"}
    (root / "content-types/memo.json").write_text(json.dumps(schema))
    (root / "content-types/note.json").unlink()
    (root / "content/notes").rename(root / "content/memos")


def rename_attribute(root: Path) -> None:
    path = root / "content-types/note.json"
    path.write_text(path.read_text().replace('"title"', '"heading"'))


def change_locale(root: Path) -> None:
    path = root / "site.yaml"
    path.write_text(path.read_text().replace("default: en", "default: fr"))


def create(api: Api) -> Answer:
    return api.post("/api/notes", {"title": "Ebb"})


def update(api: Api) -> Answer:
    return api.put("/api/notes/tide", {"title": "Ebb"})


def batch(api: Api) -> Answer:
    operation = {"method": "POST", "path": "/api/notes", "body": {"data": {"title": "Ebb"}}}
    return api.ask("POST", "/batch", json={"operations": [operation]})


def replace_source(api: Api) -> Answer:
    return api.put("/source/notes/tide", {"text": '{"title": "Ebb"}'}, headers={"If-Match": "*"})


@pytest.mark.parametrize("change", [rename_type, rename_attribute, change_locale])
@pytest.mark.parametrize("request_", [create, update, batch, replace_source])
def test_a_write_shows_what_it_wrote_if_the_schema_changes_before_its_commit(
    api: Api, request_: Request, change: Callable[[Path], Any]
) -> None:
    with waiting_for_commit(api, request_) as waiting:
        change(api.root)
        api.site.refresh()
    answer = waiting.result()
    assert answer.status == (201 if request_ is create else 200), answer.text
    if request_ is replace_source:
        assert answer.data["text"] == '{"title": "Ebb"}'
    else:
        shown = answer.data[0]["body"]["data"] if request_ is batch else answer.data
        assert shown["title"] == "Ebb"
    assert answer.headers["Bifolio-Commit"] != "pending"


def upload(api: Api) -> Answer:
    return api.ask("POST", "/api/upload", data={"files": (io.BytesIO(b"12345"), "new.bin")})


def describe(api: Api) -> Answer:
    form = {"fileInfo": json.dumps({"alternativeText": "New"})}
    return api.ask("POST", "/api/upload?id=oldfile", data=form)


def move(api: Api) -> Answer:
    return api.ask("POST", "/api/upload/files/oldfile/move", json={"fileName": "moved.bin"})


@pytest.mark.parametrize("request_", [upload, describe, move])
def test_a_write_of_a_file_shows_it_if_the_file_disappears_before_the_commit(
    api: Api, request_: Request
) -> None:
    with waiting_for_commit(api, request_) as waiting:
        for path in (api.root / "content/uploads").iterdir():
            path.unlink()
        api.site.refresh()
    answer = waiting.result()
    assert answer.status == (201 if request_ is upload else 200), answer.text
    shown = answer.data if request_ is move else answer.body[0] if request_ is upload else answer.body
    assert shown["size"] == 0.01
    text = {upload: None, describe: "New", move: "Old"}[request_]
    assert (shown["ext"], shown["alternativeText"]) == (".bin", text)
    assert answer.headers["Bifolio-Commit"] != "pending"


@pytest.mark.parametrize("path", ["/settings", "/roles/editor"])
def test_a_write_of_settings_shows_them_if_another_program_breaks_the_file(api: Api, path: str) -> None:
    data = {"name": "Torn"} if path == "/settings" else {"permissions": {"note": ["find"]}}
    with waiting_for_commit(api, lambda api: api.put(path, data, headers={"If-Match": "*"})) as waiting:
        (api.root / "site.yaml").write_bytes(b"name: \xff")
    answer = waiting.result()
    assert answer.status == 200, answer.text
    row = next(row for row in answer.data if (row.get("key") or row["name"]) in ("name", "editor"))
    assert row.get("value") == "Torn" or row.get("permissions") == data["permissions"]
