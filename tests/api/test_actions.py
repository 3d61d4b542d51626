"""Tests of `POST /api/…/actions/unpublish` and `…/discard`: their effect on the files, and their
responses.
"""

import json
import subprocess
from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Answer, Api, collection, relation, translated

GOEMON = """---
# who wrote this?
title:   "Goémon"   # kept as it is
slug: goemon
author: ada
secret: 'x'
unknown: {a: 1}
createdAt: 2024-01-02T03:04:05Z
updatedAt: 2024-02-03T04:05:06Z
publishedAt: 2024-02-04T04:05:06Z
---

Text\u0020
"""
DRAFT = GOEMON.replace("Goémon", "Goémon again").replace("publishedAt: 2024-02-04T04:05:06Z\n", "")
FILES = {
    "site.yaml": "locales: {available: [en, fr]}\n",
    **collection(
        "article",
        {
            "title": translated({"type": "string", "required": True}),
            "slug": {"type": "string", "unique": True},
            "secret": {"type": "string", "private": True},
            "text": translated({"type": "richtext"}),
            "author": relation("manyToOne", "author"),
        },
        drafts=True,
        localized=True,
    ),
    **collection("author", {"name": STRING}),
    **collection("home", {"title": STRING}, drafts=True, single=True),
    "content/authors/ada.json": '{"name": "Ada"}',
    "content/articles/goemon.md": GOEMON,
    "content/home.json": '{"title": "Home", "publishedAt": "2024-01-01T00:00:00Z"}',
}
WITH_DRAFT = {**FILES, "content/articles/goemon.draft.md": DRAFT}
ALL = ("find", "findOne", "create", "update", "delete", "readDraft", "updateDraft")


def act(api: Api, path: str, who: str = "full", **options: Any) -> Answer:
    return api.ask("POST", f"/api/{path}", who, **options)


def error(answer: Answer) -> tuple[int, str]:
    return answer.error["status"], answer.error["message"]


def head(api: Api, path: str) -> str:
    return str(api.get(path).headers["ETag"])


# --- unpublish -----------------------------------------------------------------------------------


def test_what_was_published_becomes_the_draft_in_every_byte_but_its_publication(make_api: MakeApi) -> None:
    api = make_api(FILES)
    answer = act(api, "articles/goemon/actions/unpublish?populate=author")
    assert (answer.data["title"], answer.data["publishedAt"]) == ("Goémon", None)
    assert answer.data["author"]["name"] == "Ada"
    assert answer.headers["ETag"] == head(api, "/api/articles/goemon?status=draft&populate=author")
    assert api.files == {"authors/ada.json", "articles/goemon.draft.md", "home.json"}
    assert api.read("content/articles/goemon.draft.md") == GOEMON.replace(
        "publishedAt: 2024-02-04T04:05:06Z\n", ""
    )
    assert api.get("/api/articles/goemon").status == 404
    assert api.get("/api/articles").ids == []


def test_a_draft_of_its_own_stays_untouched(make_api: MakeApi) -> None:
    api = make_api(WITH_DRAFT)
    assert act(api, "articles/goemon/actions/unpublish/").data["title"] == "Goémon again"
    assert "articles/goemon.md" not in api.files
    assert api.read("content/articles/goemon.draft.md") == DRAFT


def test_the_time_at_which_it_was_made_stays_where_the_file_does_not_say_it(make_api: MakeApi) -> None:
    api = make_api({**FILES, "content/articles/old.md": "---\ntitle: Old\n---\n"})
    before = api.get("/api/articles/old").data["createdAt"]
    assert act(api, "articles/old/actions/unpublish").data["createdAt"] == before
    assert api.read("content/articles/old.draft.md") == f"---\ntitle: Old\ncreatedAt: {before}\n---\n"


def test_what_is_not_published_can_be_unpublished_and_published_again(make_api: MakeApi) -> None:
    api = make_api(FILES)
    for _ in range(2):
        assert act(api, "articles/goemon/actions/unpublish").status == 200
    api.put("/api/articles/goemon?status=draft", {"title": "New"})
    assert api.put("/api/articles/goemon", {}).data["title"] == "New"
    assert "articles/goemon.md" in api.files


def test_single_types(make_api: MakeApi) -> None:
    api = make_api(FILES)
    assert act(api, "home/actions/unpublish").data["publishedAt"] is None
    assert json.loads(api.read("content/home.draft.json"))["title"] == "Home"
    assert "home.json" not in api.files
    assert error(act(api, "home/actions/discard"))[0] == 400
    assert act(api, "homes/actions/unpublish").status == 404
    assert act(api, "home/x/actions/unpublish").status == 404
    assert act(api, "articles/actions/unpublish").status == 404


def test_files_that_say_themselves_that_they_are_drafts_keep_their_names(make_api: MakeApi) -> None:
    post = collection("post", {"title": STRING}, drafts=True, draftWhen={"draft": True})
    text = "---\ntitle: A # a\npublishedAt: 2024-01-01T00:00:00Z\n---\n"
    api = make_api({**post, "content/posts/a.md": text})
    assert act(api, "posts/a/actions/unpublish").data["publishedAt"] is None
    assert api.read("content/posts/a.md") == "---\ntitle: A # a\ndraft: true\n---\n"


# --- discard -------------------------------------------------------------------------------------


def test_a_draft_is_discarded_by_its_file_alone(make_api: MakeApi) -> None:
    api = make_api(WITH_DRAFT)
    answer = act(api, "articles/goemon/actions/discard?fields=title")
    assert answer.data["title"] == "Goémon"
    assert answer.headers["ETag"] == head(api, "/api/articles/goemon?status=draft&fields=title")
    assert "articles/goemon.draft.md" not in api.files
    assert api.read("content/articles/goemon.md") == GOEMON


def test_what_can_not_be_discarded_is_refused(make_api: MakeApi) -> None:
    api = make_api({**FILES, "content/articles/new.draft.md": "---\ntitle: New\n---\n"})
    status, message = error(act(api, "articles/goemon/actions/discard"))
    assert (status, message) == (400, "This document has no draft to discard")
    status, message = error(act(api, "articles/new/actions/discard"))
    assert status == 400
    assert message.startswith("This document is not published")
    assert error(act(api, "articles/none/actions/discard")) == (404, "Not Found")
    assert error(act(api, "articles/none/actions/unpublish")) == (404, "Not Found")
    status, message = error(act(api, "authors/ada/actions/unpublish"))
    assert (status, message) == (
        400,
        "The content type author does not use drafts, so there is nothing to unpublish",
    )
    assert error(act(api, "articles/goemon/actions/unpublish?status=draft"))[0] == 400
    assert error(act(api, "articles/goemon/actions/unpublish?locale=xx"))[0] == 400
    assert act(api, "articles/goemon/actions/archive").status == 405
    assert api.get("/api/articles/goemon/actions/unpublish").status in (404, 405)


# --- locales -------------------------------------------------------------------------------------


def in_french(files: dict[str, str]) -> dict[str, str]:
    """Return the files of the site with an additional French version of the article `goemon`."""
    here = {k: v for k, v in files.items() if k.startswith("content/articles/goemon")}
    return {
        **files,
        **{
            k.replace("goemon", "goemon.fr")
            if "draft" not in k
            else k.replace("goemon.draft", "goemon.fr.draft"): v
            for k, v in here.items()
        },
    }


def test_one_locale_or_all(make_api: MakeApi) -> None:
    api = make_api(in_french(FILES))
    assert act(api, "articles/goemon/actions/unpublish?locale=fr").data["locale"] == "fr"
    assert {f for f in api.files if "goemon" in f} == {"articles/goemon.md", "articles/goemon.fr.draft.md"}
    assert act(api, "articles/goemon/actions/unpublish?locale=*").data["locale"] == "en"
    assert {f for f in api.files if "goemon" in f} == {
        "articles/goemon.draft.md",
        "articles/goemon.fr.draft.md",
    }


def test_a_document_in_another_locale_alone_is_shown_in_that(make_api: MakeApi) -> None:
    api = make_api({**FILES, "content/articles/fr.fr.md": "---\ntitle: F\n---\n"})
    assert act(api, "articles/fr/actions/unpublish").status == 404
    assert act(api, "articles/fr/actions/unpublish?locale=*").data["locale"] == "fr"


def test_what_locales_share_is_as_published_in_all_drafts(make_api: MakeApi) -> None:
    api = make_api(in_french(FILES))
    api.put("/api/articles/goemon?status=draft", {"slug": "other", "title": "Draft"})
    api.put("/api/articles/goemon?status=draft&locale=fr", {"title": "Ébauche"})
    act(api, "articles/goemon/actions/discard")
    french = api.get("/api/articles/goemon?status=draft&locale=fr").data
    assert (french["title"], french["slug"]) == ("Ébauche", "goemon")
    api.put("/api/articles/goemon?status=draft", {"slug": "other"})
    api.put("/api/articles/goemon?status=draft&locale=fr", {"title": "Goémon"})
    act(api, "articles/goemon/actions/discard")
    assert not [f for f in api.files if "draft" in f]
    assert [api.read(f"content/articles/goemon{at}.md") for at in ("", ".fr")] == [GOEMON, GOEMON]


def test_all_drafts_are_discarded(make_api: MakeApi) -> None:
    api = make_api(in_french(WITH_DRAFT))
    assert act(api, "articles/goemon/actions/discard?locale=*").status == 200
    assert {f for f in api.files if "goemon" in f} == {"articles/goemon.md", "articles/goemon.fr.md"}
    assert error(act(api, "articles/goemon/actions/discard?locale=*"))[0] == 400


# --- If-Match, roles -----------------------------------------------------------------------------


@pytest.mark.parametrize(("action", "status"), [("unpublish", "published"), ("discard", "draft")])
def test_a_version_that_others_have_changed_stays(make_api: MakeApi, action: str, status: str) -> None:
    api = make_api(WITH_DRAFT)
    address = f"/api/articles/goemon?status={status}"
    tag, before = head(api, address), api.files
    path = api.root / (
        "content/articles/goemon.md" if status == "published" else "content/articles/goemon.draft.md"
    )
    path.write_text(path.read_text().replace("Goémon", "Other"))
    api.site.refresh()
    answer = act(api, f"articles/goemon/actions/{action}", headers={"If-Match": tag})
    assert (answer.status, api.files) == (412, before)
    assert (
        act(api, f"articles/goemon/actions/{action}", headers={"If-Match": head(api, address)}).status == 200
    )


@pytest.mark.parametrize(
    ("may", "unpublish", "discard"),
    [
        (ALL, 200, 200),
        (("find", "findOne", "update"), 200, 200),
        (("find", "findOne", "readDraft", "updateDraft"), 403, 200),
        (("find", "findOne", "readDraft", "create", "delete"), 403, 403),
    ],
)
def test_roles(make_api: MakeApi, may: tuple[str, ...], unpublish: int, discard: int) -> None:
    api = make_api(WITH_DRAFT)
    api.token("role", may=[f"article.{action}" for action in may])
    assert act(api, "articles/goemon/actions/discard", "role").status == discard
    assert act(api, "articles/goemon/actions/unpublish", "role").status == unpublish
    assert act(api, "articles/goemon/actions/unpublish", "public").status == 403


def test_nothing_is_told_of_drafts_to_who_may_not_read_them(make_api: MakeApi) -> None:
    api = make_api(WITH_DRAFT)
    api.token("blind", may=["article.updateDraft", "article.find"])
    # The first request discards the draft. The second finds no draft, but gets the same response.
    for _ in range(2):
        answer = act(api, "articles/goemon/actions/discard", "blind")
        assert answer.data.keys() == {"id", "documentId"}
        assert "ETag" not in answer.headers
    assert "articles/goemon.draft.md" not in api.files


# --- batches, branches, messages -----------------------------------------------------------------


def test_actions_in_a_batch(make_api: MakeApi) -> None:
    api = make_api(WITH_DRAFT)
    tag = head(api, "/api/articles/goemon?status=draft")
    operations = [
        {"method": "POST", "path": "/api/articles", "body": {"data": {"title": "New", "slug": "new"}}},
        {"method": "POST", "path": "/api/articles/{{0.documentId}}/actions/unpublish?fields=title"},
        {"method": "POST", "path": "/api/articles/goemon/actions/discard", "ifMatch": tag},
        {"method": "POST", "path": "/api/home/actions/unpublish"},
        {"method": "PUT", "path": "/api/articles/goemon", "body": {"data": {"title": "{{1.documentId}}"}}},
    ]
    new, unpublished, discarded, home, last = api.ask("POST", "/batch", json={"operations": operations}).data
    assert [one["status"] for one in (new, unpublished, discarded, home, last)] == [201, 200, 200, 200, 200]
    made = new["documentId"]
    assert unpublished["body"]["data"]["title"] == "New"
    assert last["body"]["data"]["title"] == new["documentId"]
    assert api.files == {
        "articles/goemon.md",
        f"articles/{made}.draft.md",
        "authors/ada.json",
        "home.draft.json",
    }


def test_what_a_batch_can_not_do_is_refused(make_api: MakeApi) -> None:
    api = make_api(WITH_DRAFT)

    def refused(method: str, path: str, **more: str) -> tuple[int, str]:
        operations = [{"method": method, "path": path, **more}]
        return error(api.ask("POST", "/batch", json={"operations": operations}))

    assert refused("POST", "/api/articles/actions/unpublish")[0] == 400
    assert refused("PUT", "/api/articles/goemon/actions/unpublish")[0] == 400
    assert refused("POST", "/api/articles/goemon/actions/archive")[0] == 400
    assert refused("POST", "/api/articles/goemon")[1].endswith("use PUT or DELETE")
    assert refused("POST", "/api/articles/goemon/actions/discard", ifMatch='"x"')[0] == 412
    assert "articles/goemon.draft.md" in api.files


def git(root: Any, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def test_branches_and_the_messages_of_commits(make_api: MakeApi) -> None:
    files = {
        **WITH_DRAFT,
        "site.yaml": FILES["site.yaml"] + "git: {commit: each, committer: Q <q@example.org>}\n",
    }
    api = make_api(files)
    for args in (
        ["init", "-qb", "main"],
        ["add", "-A"],
        ["-c", "user.name=q", "-c", "user.email=q@q", "commit", "-qm", "x"],
        ["branch", "spring"],
    ):
        git(api.root, *args)
    api.site.refresh()
    assert act(api, "articles/goemon/actions/unpublish?branch=spring").status == 200
    assert "articles/goemon.md" in api.files
    assert git(api.root, "log", "-1", "--format=%s", "spring") == 'Unpublish article "Goémon"\n'
    assert "articles/goemon.md" not in git(api.root, "ls-tree", "-r", "--name-only", "spring")
    assert act(api, "articles/goemon/actions/discard").headers["Bifolio-Commit"]
    assert git(api.root, "log", "-1", "--format=%s") == 'Discard the draft of article "Goémon again"\n'
    act(api, "articles/goemon/actions/unpublish")
    assert git(api.root, "log", "-1", "--format=%s") == 'Unpublish article "Goémon"\n'


def test_what_an_action_would_change_in_files(make_api: MakeApi) -> None:
    api = make_api(FILES)
    files = act(api, "articles/goemon/actions/unpublish?dryRun=true").data["files"]
    assert [file["path"] for file in files] == [
        "content/articles/goemon.draft.md",
        "content/articles/goemon.md",
    ]
    assert "articles/goemon.md" in api.files
