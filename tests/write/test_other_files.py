"""Files in the folder of a document: a write only replaces the document's known files, and leaves all
others.
"""

import pytest

from server.auth.permissions import Actor
from server.errors import ConflictError
from server.write.prepare import update
from server.write.request import Address, WriteRequest
from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, write, write_to

FILES: dict[str, str | bytes] = {
    **collection("note", {"title": STRING, "n": {"type": "integer"}}, drafts=True, localized=True),
    **collection("home", {"title": STRING}, drafts=True, single=True),
    "site.yaml": "locales: {available: [en, fr]}\n",
}
BROKEN = "---\ntitle: [words of a person\n---\nand more\n"
OTHER = "documentId: b\ntitle: B\n"
WHOLE = "---\ntitle: words of a person\n---\n"


def edit(api: Api, path: str, text: str) -> None:
    """Change a file by hand."""
    write(api.root, {path: text})
    api.site.refresh()


@pytest.mark.parametrize(
    ("files", "path", "status"),
    [
        ({"notes/a.md": WHOLE, "notes/a.draft.md": BROKEN}, "notes/a", "draft"),
        ({"notes/a.draft.md": WHOLE, "notes/a.md": BROKEN}, "notes/a", "published"),
        ({"notes/a.draft.yaml": "title: D\n", "notes/a.yaml": OTHER}, "notes/a", "published"),
        ({"notes/a.yaml": "title: A\n", "notes/a.draft.yaml": OTHER}, "notes/a", "draft"),
        ({"home.draft.md": BROKEN}, "home", "draft"),
        ({"home.md": BROKEN}, "home", "published"),
    ],
)  # fmt: skip
def test_no_file_of_another_hand_is_replaced(
    make_api: MakeApi, files: dict[str, str], path: str, status: str
) -> None:
    api = make_api({**FILES, **{f"content/{name}": text for name, text in files.items()}})
    answer = api.put(f"/api/{path}?status={status}", {"title": "of the API"})
    assert answer.status == 409, answer.body
    assert {name: api.read(f"content/{name}") for name in files} == files


@pytest.mark.parametrize("ending", ["md", "yaml"])
def test_what_is_published_and_was_broken_since_is_not_replaced_by_its_draft(
    make_api: MakeApi, ending: str
) -> None:
    api = make_api({**FILES, "content/notes/a.md": WHOLE, f"content/notes/a.draft.{ending}": _draft(ending)})
    edit(api, "content/notes/a.md", BROKEN)
    answer = api.put("/api/notes/a", {})
    assert answer.status == 409
    assert "content/notes/a.md, line " in answer.body["error"]["message"]
    assert api.read("content/notes/a.md") == BROKEN
    assert api.read(f"content/notes/a.draft.{ending}") == _draft(ending)


def _draft(ending: str) -> str:
    return "---\ntitle: draft\n---\n" if ending == "md" else "title: draft\n"


def test_a_file_that_somebody_is_at_work_on_is_not_deleted(make_api: MakeApi) -> None:
    api = make_api({**FILES, "content/notes/a.md": WHOLE})
    conflict = f"---\n<<<<<<< HEAD\n{WHOLE[4:-4]}=======\ntitle: theirs\n>>>>>>> branch\n---\n"
    edit(api, "content/notes/a.md", conflict)
    assert api.ask("DELETE", "/api/notes/a").status == 409
    assert api.read("content/notes/a.md") == conflict


def test_no_copy_that_claims_the_document_is_deleted_with_it(make_api: MakeApi) -> None:
    copy = "documentId: a\ntitle: a copy\n"
    api = make_api({**FILES, "content/notes/a.yaml": "title: A\n", "content/notes/b.yaml": copy})
    answer = api.ask("DELETE", "/api/notes/a")
    assert answer.status == 409
    assert "content/notes/b.yaml" in answer.body["error"]["message"]
    assert api.read("content/notes/b.yaml") == copy


@pytest.mark.parametrize(
    ("locale", "draft", "path", "text"),
    [
        ("en", True, "content-types/note.json", None),
        ("fr", False, "site.yaml", "locales: {available: [en]}\n"),
    ],
)
def test_a_write_that_the_site_has_no_place_for_any_more_is_refused(
    make_api: MakeApi, locale: str, draft: bool, path: str, text: str | None
) -> None:
    api = make_api({**FILES, "content/notes/a.yaml": "title: A\n"})
    address = Address(api.site.state.schema.types["api::note.note"], "a", locale, draft)
    asked = WriteRequest(address, Actor("full", everything=True), {"title": "B"})
    edit(api, path, text or api.read(path).replace('"draftAndPublish": true', '"draftAndPublish": false'))
    with pytest.raises(ConflictError):
        write_to(api.site, update, asked)
    assert [file.name for file in (api.root / "content/notes").iterdir()] == ["a.yaml"]
