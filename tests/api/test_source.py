"""Tests of `GET /source`: a document's file as it is stored, for callers with the permission to
read files.
"""

import json
from pathlib import Path

import pytest

from tests.sites import STRING, Api, collection, component, make

POST = """---
# written by hand
title: 'One'
weight: 5   # of the menu
build: {list: never}
secret: between us
---

The body.
"""
HASH = "$argon2id$v=19$m=65536,t=3,p=1$+ojMNBqQdwkq0J9omDSDHw$dN3ssMB5BfIAW2W4GCdKqMlUlShaypOJz24ConMfsbs"
FILES: dict[str, str | bytes] = {
    "site.yaml": "locales: {available: [en, fr]}\n",
    **component("shared.login", {"name": STRING, "code": {"type": "password"}}),
    **collection(
        "post",
        {"title": STRING, "secret": {"type": "string", "private": True}, "body": {"type": "richtext"}},
        drafts=True,
        format="md",
    ),
    **collection("home", {"title": STRING}, single=True),
    **collection(
        "place", {"name": {**STRING, "pluginOptions": {"i18n": {"localized": True}}}}, localized=True
    ),
    **collection(
        "door",
        {
            "name": STRING,
            "key": {"type": "password"},
            "logins": {"type": "component", "component": "shared.login", "repeatable": True},
        },
    ),
    "content/posts/one.md": POST,
    "content/posts/two.draft.md": "---\ntitle: Draft\n---\n",
    "content/home.yaml": "title: Home\n",
    "content/places/a.json": '{"name": "A", "x": [1]}',
    "content/places/a.fr.toml": 'name = "A fr"\nx = 1\n',
    "content/doors/front.yaml": (
        f"name: Front\n# {HASH}\nkey: {HASH}\nlogins:\n- name: a\n  code: open sesame\n"
    ),
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


def test_the_source_of_a_document_is_its_file(api: Api) -> None:
    answer = api.get("/source/posts/one")
    assert answer.data == {
        "path": "content/posts/one.md",
        "locale": "en",
        "status": "published",
        "text": POST,
        "otherKeys": "weight: 5\nbuild:\n  list: never\n",
        "problem": None,
    }
    assert answer.body["meta"]["files"] == [
        {"path": "content/posts/one.md", "locale": "en", "status": "published"}
    ]
    assert answer.headers["ETag"]
    assert answer.headers["Cache-Control"] == "private, no-cache"


def test_each_locale_and_draft_has_its_own_file(api: Api) -> None:
    found = api.get("/source/places/a?locale=fr")
    assert (found.data["path"], found.data["otherKeys"]) == ("content/places/a.fr.toml", "x = 1\n")
    assert [file["path"] for file in found.body["meta"]["files"]] == [
        "content/places/a.json",
        "content/places/a.fr.toml",
    ]
    assert json.loads(api.get("/source/places/a").data["otherKeys"]) == {"x": [1]}
    assert api.get("/source/posts/two").status == 404
    assert api.get("/source/posts/two?status=draft").data["path"] == "content/posts/two.draft.md"
    # Without a separate draft, the published version is also the draft.
    assert api.get("/source/posts/one?status=draft").data["path"] == "content/posts/one.md"
    assert api.get("/source/home").data["text"] == "title: Home\n"


def test_a_password_is_shown_to_nobody(api: Api) -> None:
    text = api.get("/source/doors/front").data["text"]
    assert "argon2" not in text
    assert "sesame" not in text
    assert "key: (hidden 1)\nlogins:\n- name: a\n  code: (hidden 2)\n" in text


def test_the_source_of_a_file_that_breaks_says_where(api: Api) -> None:
    broken = "---\ntitle: [One\n---\n"
    (api.root / "content/posts/one.md").write_text(broken)
    found = api.get("/source/posts/one").data
    assert found["text"] == broken
    assert found["problem"]["line"] == 2
    # A file that may contain a password is not shown at all.
    (api.root / "content/doors/front.yaml").write_text(f"key: [{HASH}\n")
    refused = api.get("/source/doors/front")
    assert refused.status == 409
    assert "argon2" not in refused.text


@pytest.mark.parametrize(
    ("may", "path", "status"),
    [
        ([], "/source/posts/one", 403),
        (["post.find", "post.findOne", "post.readDraft"], "/source/posts/one", 403),
        (["source.read"], "/source/posts/one", 403),
        (["source.read", "post.find"], "/source/posts/one", 403),
        (["source.read", "post.findOne"], "/source/posts/one", 200),
        (["source.read", "post.findOne"], "/source/posts/one?status=draft", 403),
        (["source.read", "post.findOne"], "/source/posts/two?status=draft", 403),
        (["source.read", "post.findOne", "post.readDraft"], "/source/posts/two?status=draft", 200),
        (["source.read", "home.find"], "/source/home", 200),
    ],
)
def test_it_takes_a_permission_of_its_own_beside_that_of_the_document(
    api: Api, may: list[str], path: str, status: int
) -> None:
    api.token("some", may=may)
    assert api.get(path, "some").status == status
    api.token("reader", "read-only")
    assert api.get(path, "reader").status == 403


def test_files_of_drafts_are_not_named_to_who_may_not_read_them(api: Api) -> None:
    (api.root / "content/posts/one.draft.md").write_text("---\ntitle: New\n---\n")
    api.site.refresh()
    api.token("some", may=["source.read", "post.findOne"])
    assert len(api.get("/source/posts/one", "some").body["meta"]["files"]) == 1
    assert len(api.get("/source/posts/one").body["meta"]["files"]) == 2


@pytest.mark.parametrize(
    "path",
    [
        "/source/posts/..%2f..%2fsite.yaml",
        "/source/posts/../../site.yaml",
        "/source/posts/%2e%2e/one",
        "/source/posts/none",
        "/source/none/one",
        "/source/posts",
        "/source/home/one",
        "/source/posts/one/more",
    ],
)
def test_nothing_but_documents_is_shown(api: Api, path: str) -> None:
    assert api.get(path).status == 404


def test_parameters_that_it_does_not_have_are_refused(api: Api) -> None:
    assert api.get("/source/posts/one?branch=main").status == 400
    # The content type is not localized, so the locale is ignored.
    assert api.get("/source/posts/one?locale=xx").status == 200
    assert api.get("/source/places/a?locale=xx").status == 400
    assert api.get("/source/posts/one?status=any").status == 400


def test_a_link_put_in_the_place_of_a_file_leads_nowhere(api: Api, tmp_path: Path) -> None:
    (api.root / ".secret").write_text("title: key\n")
    file = api.root / "content/home.yaml"
    file.unlink()
    file.symlink_to(api.root / ".secret")
    refused = api.get("/source/home")
    assert refused.status in (404, 409, 507)
    assert "key" not in refused.text


def test_a_file_that_is_larger_than_an_answer_may_be_is_refused(tmp_path: Path) -> None:
    large = {**FILES, "site.yaml": "api: {limits: {size: 2000}}\n"}
    api = make(tmp_path, {**large, "content/home.yaml": f"title: {'x' * 3000}\n"})
    assert api.get("/source/home").error["details"] == {"limit": "size"}


def test_a_type_that_is_called_source_is_apart(tmp_path: Path) -> None:
    api = make(
        tmp_path, {**FILES, **collection("source", {"name": STRING}), "content/sources/a.yaml": "name: A\n"}
    )
    api.token("some", may=["source.find", "source.findOne", "source.read", "post.findOne"])
    assert api.get("/api/sources/a", "some").status == 200
    assert api.get("/source/posts/one", "some").status == 403
    assert api.get("/source/sources/a").data["text"] == "name: A\n"
