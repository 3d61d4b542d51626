"""Tests of `GET /access`, which lists the caller's permissions, content types and attributes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from server.config.model import ACTIONS
from tests.git import commit_all, git
from tests.sites import Api, Files, collection, component, make, relation, write

FILES = {
    **collection("note", {"text": "string", "author": relation("manyToOne", "author")}, drafts=True),
    **collection("author", {"name": "string", "seo": {"type": "component", "component": "shared.seo"}}),
    **component("shared.seo", {"about": {"type": "string"}}),
    "site.yaml": "roles: {public: {auth: [callback]}, editor: {note: [find, readDraft]}}",
}


def test_access_shows_what_its_caller_may_do_and_nothing_else(make_api: Callable[[Files], Api]) -> None:
    api = make_api(FILES)
    api.token("writer", may=["note.find", "note.create"])
    public = api.get("/access", "public").data
    assert public["permissions"] == {"auth": ["callback"]}
    assert (public["contentTypes"], public["components"]) == ([], [])
    assert public["site"]["locales"] == [{"code": "en", "name": "English (en)", "isDefault": True}]
    assert public["site"]["servedAt"] is None
    assert public["site"]["transformsImages"] is True
    writer = api.get("/access", "writer").data
    assert writer["caller"] == {"kind": "token", "name": "writer"}
    [note] = writer["contentTypes"]
    assert (note["path"], note["titleAttribute"]) == ("/api/notes", "text")
    # The caller has no permission to find authors, so the relation is left out.
    assert list(note["schema"]["attributes"]) == ["text"]
    full = api.get("/access").data
    assert [t["uid"] for t in full["contentTypes"]] == ["api::author.author", "api::note.note"]
    assert [c["uid"] for c in full["components"]] == ["shared.seo"]
    assert "readDraft" not in full["permissions"]["author"]  # The content type has no drafts.
    assert full["permissions"]["history"] == ["read", "restore", "commit"]
    assert full["permissions"]["source"] == [*ACTIONS["source"]]  # only actions that exist


def test_access_on_a_branch_has_the_content_types_of_the_branch(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    commit_all(tmp_path)
    git(tmp_path, "checkout", "-qb", "rework")
    write(tmp_path, collection("note", {"title": "string"}))
    commit_all(tmp_path)
    git(tmp_path, "checkout", "-q", "main")
    api = make(tmp_path, {})
    api.token("writer", may=["note.find", "branch.find"])
    api.token("stranger", may=["note.find"])

    def attributes(who: str, query: str = "") -> list[str]:
        [note] = api.get(f"/access{query}", who).data["contentTypes"]
        return [*note["schema"]["attributes"]]

    assert attributes("writer") == ["text"]
    assert attributes("writer", "?at=rework") == ["title"]
    assert api.get("/access?at=rework", "stranger").status == 403
    api.accounts.close()


@pytest.mark.parametrize("setting", ["enabled: false", "sign: true"])
def test_access_shows_whether_image_urls_can_have_parameters(
    make_api: Callable[[Files], Api], setting: str
) -> None:
    settings = f"{FILES['site.yaml']}\nmedia: {{transform: {{{setting}}}}}\n"
    api = make_api({**FILES, "site.yaml": settings})
    assert api.get("/access").data["site"]["transformsImages"] is False


def test_access_says_of_users_who_they_are(make_api: Callable[[Files], Api]) -> None:
    api = make_api(FILES)
    person = {"username": "ann", "email": "ann@example.org", "password": "secret12", "role": "editor"}
    api.ask("POST", "/api/users", json=person)
    form = {"identifier": "ann", "password": "secret12"}
    token = api.ask("POST", "/api/auth/local", "public", json=form).body["jwt"]
    told = api.get("/access", token).data
    assert told["caller"] == {"kind": "user", "name": "ann", "email": "ann@example.org", "role": "editor"}
    assert told["permissions"] == {"note": ["find", "readDraft"]}


def test_private_attributes_are_told_to_those_who_write_them(make_api: Callable[[Files], Api]) -> None:
    secret, key = {"type": "string", "private": True}, {"type": "password"}
    seo = {"type": "component", "component": "shared.seo"}
    api = make_api(
        {
            **collection("note", {"text": "string", "secret": secret, "key": key, "seo": seo}, drafts=True),
            **component("shared.seo", {"about": {"type": "string"}, "rank": secret}),
            "site.yaml": "roles: {public: {note: [find]}}",
        }
    )

    def names(who: str) -> list[list[str]]:
        told = api.get("/access", who).data
        return [list(t["schema"]["attributes"]) for t in (*told["contentTypes"], *told["components"])]

    for action in ("create", "update", "updateDraft"):
        api.token(action, may=[f"note.{action}"])
        assert names(action) == [["text", "secret", "key", "seo"], ["about", "rank"]]
    api.token("reader", "read-only")
    assert names("public") == names("reader") == [["text", "seo"], ["about"]]


def test_the_address_of_a_preview_is_told_to_editors_alone(make_api: Callable[[Files], Api]) -> None:
    preview = "preview: {note: 'https://example.org/draft?secret=s&id={documentId}'}\n"
    public = "roles: {public: {note: [find], author: [find]}, editor: {note: [find, readDraft]}}"
    api = make_api({**FILES, "site.yaml": preview + public})
    api.token("writer", may=["note.find", "note.updateDraft"])
    api.token("reader", may=["note.find", "note.readDraft"])

    def told(who: str) -> list[str | None]:
        return [t.get("preview") for t in api.get("/access", who).data["contentTypes"] if "note" in t["uid"]]

    assert told("public") == [None]
    for who in ("writer", "reader", "full"):
        assert told(who) == ["https://example.org/draft?secret=s&id={documentId}"], who
    assert "example.org" not in api.get("/access", "public").text
