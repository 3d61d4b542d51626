"""Tests of `PUT /source`, which saves exactly what was sent: a document's whole file, or only its
non-attribute keys.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.api.test_source import FILES as SHOWN
from tests.sites import STRING, Answer, Api, collection, make, translated

HASH = "$argon2id$v=19$m=65536,t=3,p=1$+ojMNBqQdwkq0J9omDSDHw$dN3ssMB5BfIAW2W4GCdKqMlUlShaypOJz24ConMfsbs"
POST = "content/posts/one.md"
FILES: dict[str, str | bytes] = {
    **SHOWN,
    **collection(
        "page",
        {
            "title": {"type": "string", "required": True, "maxLength": 9},
            "slug": {"type": "uid"},
            "code": {"type": "string", "pluginOptions": {"i18n": {"localized": False}}},
            "lead": translated(STRING),
        },
        localized=True,
        drafts=True,
        draftWhen={"draft": True},
    ),
    "content/pages/a.yaml": (
        "title: A\nslug: a\ncode: '1'\nupdatedAt: 2024-01-22T08:00:00.000Z\nx: 1  # theirs\n"
    ),
    "content/pages/a.fr.yaml": "title: A fr\nslug: a\ncode: '1'\n",
    "content/pages/b.yaml": "title: B\nslug: b\ncode: '2'\n",
    "content/doors/front.yaml": f"name: Front\nkey: {HASH}\nlogins:\n- name: a\n  code: open sesame\n",
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


def replace(api: Api, path: str, data: Any, who: str = "full", tag: str = "", mark: str = "") -> Answer:
    """Replace a document's file if its entity tag is still `tag`. By default, use the current entity tag."""
    tag = tag or api.get(path, "full").headers["ETag"]
    return api.ask("PUT", path + mark, who, json={"data": data}, headers={"If-Match": tag})


def test_a_text_is_written_as_it_was_sent(api: Api) -> None:
    text = api.read(POST).replace("'One'", "'Two'").replace("# written by hand", "# by another hand")
    answer = replace(api, "/source/posts/one", {"text": text})
    assert answer.data["text"] == text == api.read(POST)
    assert api.get("/api/posts/one").data["title"] == "Two"
    assert answer.headers["ETag"] == api.get("/source/posts/one").headers["ETag"]
    crlf = text.replace("\n", "\r\n")
    assert replace(api, "/source/posts/one", {"text": crlf}).data["text"] == crlf


def test_other_keys_are_written_and_all_else_stays(api: Api) -> None:
    before = api.read(POST)
    source = api.get("/source/posts/one").data["otherKeys"]
    answer = replace(api, "/source/posts/one", {"otherKeys": source.replace("weight: 5", "weight: 6")})
    assert answer.status == 200
    assert api.read(POST) == before.replace("weight: 5 ", "weight: 6 ")
    assert replace(api, "/source/posts/one", {"otherKeys": ""}).data["otherKeys"] == ""
    assert "weight" not in api.read(POST)
    assert replace(api, "/source/places/a?locale=fr", {"otherKeys": "y = [1, 2]\n"}).status == 200
    assert api.read("content/places/a.fr.toml") == 'name = "A fr"\ny = [1, 2]\n'
    assert replace(api, "/source/places/a", {"otherKeys": '{"x": [1], "z": null}'}).status == 200


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("title: Stolen\n", "is defined by"),
        ("documentId: other\n", "is defined by"),
        ("weight: [5\n", "line 1"),
        ("- a list\n", "must be a mapping"),
    ],
)
def test_other_keys_are_nothing_else(api: Api, keys: str, message: str) -> None:
    before = api.read(POST)
    refused = replace(api, "/source/posts/one", {"otherKeys": keys})
    assert (refused.status, api.read(POST)) == (400, before)
    assert message in refused.error["message"]


def test_the_last_value_of_a_key_that_stands_twice_counts(api: Api) -> None:
    before = api.read("content/pages/a.yaml")
    assert replace(api, "/source/pages/a", {"text": "title: A\ntitle: B\n"}).status == 200
    assert api.get("/api/pages/a").data["title"] == "B"
    assert replace(api, "/source/pages/a", {"text": before}).status == 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: [A\n", "line 1"),
        ("", "empty"),
        ("- a\n", "must be a mapping"),
        ("title: {a: 1}\n", "title must be a string (found a mapping)"),
        ("title: far too long a title\nslug: a\n", "title must be at most 9 characters"),
        ("slug: a\n", "title must be defined."),
        ("title: A\nslug: b\n", "must be unique"),
        ("title: A\ndocumentId: b\n", "a different document"),
        ("title: A\ndraft: true\n", "would make the file draft"),
        ("title: A\0\n", ""),
    ],
)
def test_what_can_not_be_the_document_is_refused_and_nothing_is_written(
    api: Api, text: str, message: str
) -> None:
    before = {path: api.read(f"content/{path}") for path in api.files}
    refused = replace(api, "/source/pages/a", {"text": text})
    assert refused.status == 400
    assert message in refused.error["message"]
    assert {path: api.read(f"content/{path}") for path in api.files} == before


def test_timestamps_that_were_left_are_of_the_change_and_shared_values_reach_all_locales(api: Api) -> None:
    text = api.read("content/pages/a.yaml").replace("code: '1'", "code: '7'")
    answer = replace(api, "/source/pages/a", {"text": text})
    assert "updatedAt: 2024" not in answer.data["text"]
    assert "x: 1  # theirs" in answer.data["text"]
    assert "code: '7'" in api.read("content/pages/a.fr.yaml")


def test_a_version_has_to_be_named_and_there_still(api: Api) -> None:
    text = api.read(POST)
    unnamed = api.ask("PUT", "/source/posts/one", json={"data": {"text": text}})
    assert (unnamed.status, unnamed.error["message"].partition(";")[0]) == (
        400,
        "The If-Match header is missing",
    )
    tag = api.get("/source/posts/one").headers["ETag"]
    edited = text.replace("'One'", "'Edited'")
    (api.root / POST).write_text(edited)
    refused = replace(api, "/source/posts/one", {"text": text.replace("'One'", "'Mine'")}, tag=tag)
    assert (refused.status, api.read(POST)) == (412, edited)
    assert replace(api, "/source/posts/one", {"text": text}, tag='"none"').status == 412
    assert replace(api, "/source/posts/one", {"text": text}, tag="*").status == 200


def test_a_file_that_broke_can_be_repaired(api: Api) -> None:
    (api.root / POST).write_text("---\ntitle: [One\n---\n")
    fixed = replace(api, "/source/posts/one", {"text": "---\ntitle: One\n---\n"})
    assert fixed.data["problem"] is None
    assert api.get("/api/posts/one").data["title"] == "One"


def test_passwords_are_neither_shown_nor_lost_nor_moved(api: Api) -> None:
    door = "content/doors/front.yaml"
    text = api.get("/source/doors/front").data["text"]
    assert "argon2" not in text
    answer = replace(api, "/source/doors/front", {"text": text.replace("Front", "(hidden 1)")})
    assert answer.data["text"] == text.replace("Front", "(hidden 1)")
    assert HASH in api.read(door)
    assert "open sesame" in api.read(door)
    assert api.get("/api/doors/front").data["name"] == "(hidden 1)"
    kept = api.read(door)
    for other in ("(hidden 9)", "$argon2id$mine", "plain"):
        refused = replace(api, "/source/doors/front", {"text": text.replace("(hidden 1)", other)})
        assert (refused.status, api.read(door)) == (400, kept)
    gone = replace(api, "/source/doors/front", {"text": "name: Front\n"})
    assert gone.data["text"] == "name: Front\n" == api.read(door)


@pytest.mark.parametrize(
    ("may", "path", "status"),
    [
        (["source.read", "post.findOne", "post.update"], "/source/posts/one", 403),
        (["source.write", "post.findOne", "post.update"], "/source/posts/one", 403),
        (["source.read", "source.write", "post.findOne"], "/source/posts/one", 403),
        (["source.read", "source.write", "post.findOne", "post.updateDraft"], "/source/posts/one", 403),
        (["source.read", "source.write", "post.findOne", "post.update"], "/source/posts/one", 200),
        (
            ["source.read", "source.write", "post.findOne", "post.readDraft", "post.updateDraft"],
            "/source/posts/two?status=draft",
            200,
        ),
        (
            ["source.read", "source.write", "post.findOne", "post.readDraft", "post.updateDraft"],
            "/source/posts/one?status=draft",
            404,
        ),
        (
            ["source.read", "source.write", "post.findOne", "post.update"],
            "/source/posts/two?status=draft",
            403,
        ),
    ],
)
def test_it_takes_permissions(api: Api, may: list[str], path: str, status: int) -> None:
    api.token("some", may=may)
    source = api.get(path)
    text = source.data["text"].replace("title:", "title:  ")
    before = {name: api.read(f"content/{name}") for name in api.files}
    answer = replace(api, path, {"text": text}, "some", tag=source.headers["ETag"])
    assert answer.status == status
    after = {name: api.read(f"content/{name}") for name in api.files}
    assert (after != before) == (status == 200)


def test_a_dry_run_shows_the_lines_and_writes_nothing(api: Api) -> None:
    before = api.read(POST)
    data = {"text": before.replace("'One'", "'Two'")}
    tried = replace(api, "/source/posts/one", data, mark="?dryRun=true")
    assert [line for line in tried.data["files"][0]["lines"] if line[0] in "+-"] == [
        "-title: 'One'",
        "+title: 'Two'",
    ]
    assert api.read(POST) == before


@pytest.mark.parametrize(
    "body",
    [None, {}, {"text": "x"}, {"data": {}}, {"data": {"text": 1}}, {"data": {"text": "", "otherKeys": ""}}],
)
def test_a_body_that_says_something_else_is_refused(api: Api, body: Any) -> None:
    assert api.ask("PUT", "/source/posts/one", json=body, headers={"If-Match": "*"}).status == 400


def test_no_link_leads_a_text_out_of_the_content(api: Api, tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside.md"
    outside.write_text("---\ntitle: Out\n---\n")
    (api.root / POST).unlink()
    (api.root / POST).symlink_to(outside)
    refused = replace(api, "/source/posts/one", {"text": "---\ntitle: In\n---\n"}, tag="*")
    assert refused.status >= 400
    assert outside.read_text() == "---\ntitle: Out\n---\n"
