"""Tests of writes to documents whose files have an error: each is visible at once, or refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.api.app import create_app
from server.errors import ConflictError
from server.write.renaming.rename import RenameRequest, rename
from tests.api.test_undo import batch, op, undo
from tests.git import commit_all, git
from tests.sites import Answer, Api, collection, make, opened, relation, schema, translated, write_to

NOTE = "content/notes/a.md"
TEXT = "---\ntitle: Title\nnum: 1\nlead: Lead\n---\n\nText.\n"
BROKEN: dict[str, bytes] = {
    "wrong type": TEXT.replace("num: 1", "num: ten").encode(),
    "YAML": TEXT.replace("title: Title", "title: [Title").encode(),
    "null byte": TEXT.encode() + b"x\0y\n",
    "conflict": TEXT.encode() + b"<<<<<<< a\nB\n=======\nC\n>>>>>>> b\n",
    "not UTF-8": TEXT.encode() + b"\xff\n",
    "empty": b"",
    "wrong id": TEXT.replace("num: 1", "num: 1\ndocumentId: [a]").encode(),
    "wrong component": TEXT.replace("num: 1", "num: 1\npart: 3").encode(),
}
ATTRIBUTES = {
    "title": "string",
    "num": "integer",
    "lead": "string",
    "secret": {"type": "integer", "private": True},
    "part": {"type": "component", "component": "a.part"},
    "text": "richtext",
    "friend": relation("manyToOne", "note", inversedBy="friends"),
    "friends": relation("oneToMany", "note", mappedBy="friend"),
}
FILES = {
    "content-types/components/a/part.json": json.dumps(
        {"info": {}, "attributes": {"n": {"type": "integer"}}}
    ),
    **collection("note", ATTRIBUTES, body="text"),
    **collection("post", ATTRIBUTES | {"friend": "string", "friends": "string"}, drafts=True),
    "content-types/home.json": schema("home", {"num": "integer"}, single=True),
    NOTE: TEXT,
    "content/notes/b.md": TEXT,
    "content/posts/p.yaml": "title: P\nnum: 1\n",
    "content/posts/p.draft.yaml": "title: Draft\nnum: 1\n",
    "content/home.json": '{"num": 1}',
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


def break_file(api: Api, data: bytes | str, path: str = NOTE) -> None:
    """Write a file by hand, and let the server notice."""
    (api.root / path).write_bytes(data if isinstance(data, bytes) else data.encode())
    api.site.refresh()


def reopened(api: Api) -> Api:
    """Return the same site as after a restart, when only valid files are served."""
    site = opened(api.root)
    app = create_app(site, api.accounts)
    return Api(site, app, api.accounts, app.test_client(), api.tokens)


def refused(answer: Answer, path: str = NOTE) -> bool:
    assert answer.status == 409, answer.body
    message = answer.error["message"]
    return bool(message.startswith(path)) and message.endswith(
        ("fix the file first", "save the file as UTF-8 first")
    )


WRITES: dict[str, Callable[[Api], Answer]] = {
    "update": lambda api: api.put("/api/notes/a", {"lead": "New"}),
    "without a change": lambda api: api.put("/api/notes/a", {"lead": "Lead"}),
    "delete": lambda api: api.ask("DELETE", "/api/notes/a"),
    "relation": lambda api: api.put("/api/notes/b", {"friends": ["a"]}),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_write_that_would_not_be_visible_is_refused(
    api: Api, data: bytes, write: Callable[[Api], Answer]
) -> None:
    break_file(api, data)
    assert refused(write(api))
    assert (api.root / NOTE).read_bytes() == data
    assert api.get("/api/notes/a").data["lead"] == "Lead"


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_document_that_is_not_served_is_neither_deleted_nor_created_again(api: Api, data: bytes) -> None:
    break_file(api, data)
    api = reopened(api)
    assert api.get("/api/notes/a").status == 404
    assert refused(api.ask("DELETE", "/api/notes/a"))
    assert refused(api.put("/api/notes/a", {"num": 2}))
    assert (api.root / NOTE).read_bytes() == data
    (api.root / NOTE).unlink()
    assert api.ask("DELETE", "/api/notes/a").status == 204


def test_nothing_is_left_after_a_deletion_beside_the_broken_file_of_another_document(api: Api) -> None:
    break_file(api, BROKEN["wrong type"])
    api = reopened(api)
    assert api.ask("DELETE", "/api/notes/b").status == 204
    assert api.ask("DELETE", "/api/notes/none").status == 204


@pytest.mark.parametrize("line", ["num: ten", "title: [x"])
def test_a_broken_file_is_found_by_the_id_in_it(api: Api, line: str) -> None:
    break_file(api, f"---\n{line}\ndocumentId: other\n---\n", "content/notes/c.md")
    assert refused(api.ask("DELETE", "/api/notes/other"), "content/notes/c.md")
    assert api.ask("DELETE", "/api/notes/c").status == 204
    api = reopened(api)
    assert refused(api.ask("DELETE", "/api/notes/other"), "content/notes/c.md")


def test_the_single_type_of_a_broken_file(api: Api) -> None:
    break_file(api, '{"num": "ten"}', "content/home.json")
    for each in (api, reopened(api)):
        assert refused(each.ask("DELETE", "/api/home"), "content/home.json")
    api = reopened(api)
    assert refused(api.put("/api/home", {"num": 2}), "content/home.json")
    assert {path for path in api.files if "home" in path} == {"home.json"}


@pytest.mark.parametrize("number", [1, 10, None])
def test_a_write_that_mends_the_value_is_visible(api: Api, number: int | None) -> None:
    break_file(api, BROKEN["wrong type"].replace(b"Title", b"By hand"))
    made = api.put("/api/notes/a", {"num": number})
    assert (made.data["num"], made.data["title"]) == (number, "By hand")
    assert made.data == api.get("/api/notes/a").data == reopened(api).get("/api/notes/a").data


def test_a_component_is_mended(api: Api) -> None:
    break_file(api, BROKEN["wrong component"])
    assert api.put("/api/notes/a?populate=*", {"part": {"n": 3}}).data["part"]["n"] == 3
    assert reopened(api).get("/api/notes/a?populate=*").data["part"]["n"] == 3


def test_a_value_that_is_still_wrong_is_named_with_its_line(api: Api) -> None:
    break_file(api, "---\ntitle: T\nnum: ten\nsecret: s\n---\n")
    assert (
        "a.md, line 3: the value of num is invalid" in api.put("/api/notes/a", {"secret": 1}).error["message"]
    )
    assert "a.md, line 4: a value is invalid" in api.put("/api/notes/a", {"num": 1}).error["message"]
    assert api.put("/api/notes/a", {"num": 2, "secret": 1}).data["num"] == 2


def test_a_batch_may_mend_a_file_first(api: Api) -> None:
    break_file(api, BROKEN["wrong type"])
    lead, mend = op("PUT", "notes/a", {"lead": "New"}), op("PUT", "notes/a", {"num": 1})
    made = batch(api, lead, mend)
    assert refused(made)
    assert made.error["details"]["operation"] == 0
    assert batch(api, mend, lead).status == 200
    assert reopened(api).get("/api/notes/a").data["lead"] == "New"
    break_file(api, BROKEN["wrong type"])
    assert batch(api, mend, op("DELETE", "notes/a")).status == 200
    assert not (api.root / NOTE).exists()


POST, DRAFT = "content/posts/p.yaml", "content/posts/p.draft.yaml"
BROKEN_POST = "title: By hand\nnum: ten\n"


@pytest.mark.parametrize(
    ("method", "path", "data"),
    [
        ("POST", "/api/posts/p/actions/unpublish", None),
        ("POST", "/api/posts/p/actions/discard", None),
        ("PUT", "/api/posts/p", {"lead": "New"}),
        ("PUT", "/api/posts/p", {}),
        ("DELETE", "/api/posts/p", None),
    ],
)
@pytest.mark.parametrize("file", [POST, DRAFT])
def test_both_versions(api: Api, method: str, path: str, data: Any, file: str) -> None:
    break_file(api, BROKEN_POST, file)
    before = {path: api.read(f"content/{path}") for path in api.files}
    for each in (api, reopened(api)):
        if each is api or method != "PUT" or file == POST:
            answer = each.ask(method, path, json=None if data is None else {"data": data})
            assert refused(answer, file)
            assert {path: each.read(f"content/{path}") for path in each.files} == before


def test_a_broken_draft_is_not_replaced(api: Api) -> None:
    break_file(api, BROKEN_POST, DRAFT)
    for each in (api, reopened(api)):
        assert refused(each.put("/api/posts/p?status=draft", {"lead": "New"}), DRAFT)


def test_publishing_may_mend_the_draft(api: Api) -> None:
    break_file(api, BROKEN_POST, DRAFT)
    made = api.put("/api/posts/p", {"num": 1})
    assert (made.data["num"], made.data["title"]) == (1, "By hand")
    assert made.data == reopened(api).get("/api/posts/p").data
    assert "posts/p.draft.yaml" not in api.files


def test_a_draft_of_a_broken_file(api: Api) -> None:
    (api.root / DRAFT).unlink()
    break_file(api, BROKEN_POST, POST)
    assert refused(api.put("/api/posts/p?status=draft", {"lead": "New"}), POST)
    assert api.put("/api/posts/p?status=draft", {"num": 5}).data["num"] == 5
    assert reopened(api).get("/api/posts/p?status=draft").data["num"] == 5


def test_an_undo_does_not_break_the_file_again(api: Api) -> None:
    break_file(api, BROKEN["wrong type"])
    made = batch(api, op("PUT", "notes/a", {"num": 1}))
    answer = undo(api, made.headers["Bifolio-Undo"])
    assert answer.status == 409
    assert NOTE in answer.error["message"]
    assert reopened(api).get("/api/notes/a").data["num"] == 1


def replace(api: Api, data: Any) -> Answer:
    return api.ask("PUT", "/source/notes/a", json={"data": data}, headers={"If-Match": "*"})


@pytest.mark.parametrize("kind", ["wrong type", "YAML", "null byte", "conflict", "wrong id", "empty"])
def test_the_source_may_mend_the_file(api: Api, kind: str) -> None:
    break_file(api, BROKEN[kind])
    broken = BROKEN[kind].decode()
    assert replace(api, {"text": broken}).status in (400, 409)
    assert refused(replace(api, {"otherKeys": "x: 1\n"}))
    assert (api.root / NOTE).read_bytes() == BROKEN[kind]
    assert "num: 7" in replace(api, {"text": TEXT.replace("num: 1", "num: 7")}).data["text"]
    assert reopened(api).get("/api/notes/a").data["num"] == 7


def test_a_broken_file_is_not_renamed(api: Api) -> None:
    break_file(api, BROKEN["wrong type"])
    with pytest.raises(ConflictError, match="fix the file first"):
        write_to(api.site, rename, RenameRequest("note/a", "z"))
    with pytest.raises(ConflictError, match="fix the file first"):
        write_to(api.site, rename, RenameRequest(NOTE, "content/notes/z.md"))


def test_another_locale(tmp_path: Path) -> None:
    files = {
        "site.yaml": "locales: {available: [en, fr]}\n",
        **collection("page", {"title": translated({"type": "string"}), "num": "integer"}, localized=True),
        "content/pages/a.yaml": "title: A\nnum: 1\n",
        "content/pages/a.fr.yaml": "title: A\nnum: ten\n",
    }
    api = make(tmp_path, files)
    assert refused(api.put("/api/pages/a?locale=fr", {"title": "B"}), "content/pages/a.fr.yaml")
    assert refused(api.ask("DELETE", "/api/pages/a?locale=*"), "content/pages/a.fr.yaml")
    assert api.ask("DELETE", "/api/pages/a?locale=en").status == 204


def test_a_branch(tmp_path: Path) -> None:
    api = make(tmp_path, {**FILES, NOTE: BROKEN["wrong type"]})
    commit_all(tmp_path)
    git(tmp_path, "branch", "other")
    assert refused(api.ask("DELETE", "/api/notes/a?branch=other"))
    assert refused(api.put("/api/notes/a?branch=other", {"num": 3}))
    assert api.ask("DELETE", "/api/notes/b?branch=other").status == 204


def test_a_restoration(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    commit_all(tmp_path)
    break_file(api, BROKEN["wrong type"].replace(b"Lead", b"By hand"))
    for fields in (["lead"], ["title"]):
        for each in (api, reopened(api)):
            answer = each.ask("POST", "/history/notes/a/restore", json={"at": "HEAD", "fields": fields})
            assert refused(answer), answer.body
    made = api.ask("POST", "/history/notes/a/restore", json={"at": "HEAD", "fields": ["num"]})
    assert (made.data["num"], made.data["lead"]) == (1, "By hand")
