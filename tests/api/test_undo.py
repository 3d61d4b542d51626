"""Tests of `Prefer: undo` and `POST /batch/undo/ID`: an undo restores every byte."""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.api.app import create_app
from server.auth.accounts import Accounts
from server.storage.undo import digest
from tests.api.test_actions import DRAFT, FILES, GOEMON
from tests.conftest import MakeApi
from tests.git import commit_all, git
from tests.sites import STRING, Answer, Api, collection, load, relation

ODD = "\ufeff---\r\ntitle: 'Odd' # why\r\nslug: odd\r\nunknown:   [1,2]\r\nsecret: hidden\r\n---\r\n\r\nText"
SITE = {
    **FILES,
    "content/articles/goemon.draft.md": DRAFT,
    "content/articles/goemon.fr.md": GOEMON,
    "content/articles/odd.md": ODD,
}
PREFER = {"Prefer": "undo"}


def contents(api: Api) -> dict[str, bytes]:
    found = (api.root / "content").rglob("*")
    return {str(path.relative_to(api.root)): path.read_bytes() for path in found if path.is_file()}


def op(method: str, path: str, data: Any = None) -> dict[str, Any]:
    return {"method": method, "path": f"/api/{path}", **({} if data is None else {"body": {"data": data}})}


def batch(api: Api, *operations: Any, who: str = "full", prefer: str = "undo") -> Answer:
    sent = {"operations": operations}
    return api.ask("POST", "/batch", who, json=sent, headers={"Prefer": prefer})


def undo(api: Api, id_: str, who: str = "full", **options: Any) -> Answer:
    return api.ask("POST", f"/batch/undo/{id_}", who, **options)


def test_every_byte_comes_back(make_api: MakeApi) -> None:
    api = make_api(SITE)
    before = contents(api)
    made = batch(
        api,
        op("DELETE", "articles/goemon?locale=*"),
        op("PUT", "articles/odd", {"title": "Even", "author": "ada"}),
        op("POST", "articles", {"title": "New"}),
        op("POST", "home/actions/unpublish"),
        op("PUT", "authors/ada", {"name": "Eve"}),
    )
    assert made.headers["Preference-Applied"] == "undo"
    assert made.headers["Bifolio-Undo"] == made.body["undo"]["id"]
    assert made.body["undo"]["expires"] > time.strftime("%Y-%m-%dT%H", time.gmtime())
    assert len(contents(api).keys() ^ before.keys()) == 6
    assert undo(api, made.body["undo"]["id"]).data == {"files": 8}
    assert contents(api) == before
    assert api.get("/api/articles/odd").data["title"] == "Odd"
    assert sorted(api.get("/api/articles").ids) == ["goemon", "odd"]


@pytest.mark.parametrize(
    ("method", "path", "data"),
    [
        ("PUT", "articles/odd", {"title": "Even"}),
        ("PUT", "articles/odd?status=draft", {"title": "Even"}),
        ("PUT", "articles/goemon", {"slug": "shared"}),
        ("POST", "articles", {"title": "New"}),
        ("DELETE", "articles/odd", None),
        ("DELETE", "home", None),
        ("PUT", "home", {"title": "House"}),
        ("POST", "articles/odd/actions/unpublish", None),
        ("POST", "articles/goemon/actions/discard", None),
    ],
)
def test_a_single_write_is_undone_and_done_again(
    make_api: MakeApi, method: str, path: str, data: Any
) -> None:
    api = make_api(SITE)
    before = contents(api)
    body = {} if data is None else {"json": {"data": data}}
    made = api.ask(method, f"/api/{path}", headers=PREFER, **body)
    after = contents(api)
    assert after != before
    undone = undo(api, made.headers["Bifolio-Undo"], headers=PREFER)
    assert contents(api) == before
    assert undo(api, undone.body["undo"]["id"]).status == 200  # undo the undo
    assert contents(api) == after


def test_nothing_is_offered_where_it_is_not_wanted_or_nothing_was_done(make_api: MakeApi) -> None:
    api = make_api(SITE)
    assert "undo" not in batch(api, op("PUT", "authors/ada", {"name": "Eve"}), prefer="merge").body
    same = batch(api, op("PUT", "authors/ada", {"name": "Eve"}))
    assert "undo" not in same.body
    assert "Preference-Applied" not in same.headers
    refused = batch(api, op("PUT", "authors/ada", {"name": "Ada"}), op("PUT", "authors/none", {"name": "X"}))
    assert refused.status == 404
    assert not list((api.root / ".bifolio").glob("undo/*"))


def test_what_was_changed_since_is_named_and_stays(make_api: MakeApi) -> None:
    api = make_api(SITE)
    id_ = batch(api, op("DELETE", "articles/odd"), op("PUT", "authors/ada", {"name": "Eve"})).body["undo"][
        "id"
    ]
    path = api.root / "content/authors/ada.json"
    written = path.read_bytes()
    path.write_bytes(written + b" ")
    before = contents(api)
    error = undo(api, id_).error
    assert (error["status"], error["details"]) == (409, {"files": ["content/authors/ada.json"]})
    (api.root / "content/articles/odd.md").write_text("---\ntitle: Other\n---\n")
    assert undo(api, id_).error["details"] == {
        "files": ["content/articles/odd.md", "content/authors/ada.json"]
    }
    (api.root / "content/articles/odd.md").unlink()
    assert contents(api) == before
    path.write_bytes(written)  # restore the written file by hand
    assert undo(api, id_).status == 200


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-20],
        lambda data: data.replace(b'"before": "', b'"before": 5, "b": "'),
        lambda data: b"[" * 100_000,
        lambda data: (
            b'{"caller": "token:full", "permits": [], "files": [{"path": 1, "before": 2, "after": 3}]}'
        ),
        lambda data: data.replace(b"articles/odd", b"articles/eve"),
    ],
)
def test_what_is_damaged_can_not_be_undone(make_api: MakeApi, damage: Callable[[bytes], bytes]) -> None:
    api = make_api(SITE)
    id_ = batch(api, op("PUT", "articles/odd", {"title": "Even"})).body["undo"]["id"]
    before = contents(api)
    [kept] = (api.root / ".bifolio/undo").iterdir()
    kept.write_bytes(damage(kept.read_bytes()))
    answer = undo(api, id_)
    assert (answer.status, answer.error["name"]) == (404, "NotFoundError")
    assert contents(api) == before


def test_one_that_was_taken_back_half_seen_is_as_good_as_done(make_api: MakeApi) -> None:
    api = make_api(SITE)
    before = contents(api)
    id_ = batch(api, op("DELETE", "articles/odd")).body["undo"]["id"]
    (api.root / "content/articles/odd.md").write_bytes(before["content/articles/odd.md"])
    assert undo(api, id_).data == {"files": 0}
    assert undo(api, id_).status == 404


def test_what_others_have_taken_since_is_not_taken_from_them(make_api: MakeApi) -> None:
    api = make_api(SITE)
    id_ = batch(api, op("DELETE", "articles/odd")).body["undo"]["id"]
    made = api.post("/api/articles", {"title": "New", "slug": "odd"}).data["documentId"]
    assert (
        "now contains an id or unique value that was in content/articles/odd.md"
        in undo(api, id_).error["message"]
    )
    api.put(f"/api/articles/{made}", {"slug": "even"})
    (api.root / "content/articles/odd.json").write_text('{"title": "O"}')
    api.site.refresh()
    assert undo(api, id_).error["status"] == 409
    (api.root / "content/articles/odd.json").unlink()
    api.site.refresh()
    assert undo(api, id_).status == 200


def test_it_is_for_its_caller_alone_and_while_that_one_may(make_api: MakeApi) -> None:
    api = make_api({**SITE, "site.yaml": FILES["site.yaml"] + "roles: {public: {author: [update]}}\n"})
    api.token("other", "full-access")
    deleting = ["article.delete", "article.create", "article.readDraft", "author.update"]
    api.token("some", may=deleting)
    id_ = batch(api, op("DELETE", "articles/odd"), who="some").body["undo"]["id"]
    for who in ("other", "public"):
        assert undo(api, id_, who).status == 404
    assert undo(api, "../" + id_, "some").status in (404, 405)
    assert undo(api, "none", "some").status == 404
    api.accounts.revoke_token("some")
    assert undo(api, id_, "some").status == 401
    for missing in deleting[:3]:
        api.token("some", may=[one for one in deleting if one != missing])
        refused = undo(api, id_, "some")
        assert (refused.status, refused.error["details"]) == (403, {"permission": missing})
        api.accounts.revoke_token("some")
    assert "content/articles/odd.md" not in contents(api)
    assert "Bifolio-Undo" not in batch(api, op("PUT", "authors/ada", {"name": "Eve"}), who="public").headers
    api.token("reader", "read-only")
    assert undo(api, id_, "reader").status == 403


# The write, the caller's permissions for it, and the additional permissions for the undo.
ARTICLE = ["article.update", "article.readDraft"]
DRAFTING = ["article.updateDraft", "article.readDraft"]
GONE = ["article.delete", "article.readDraft"]
TAKES = {
    "a new document": ("POST", "articles", {"title": "New"}, ["article.create", *ARTICLE], "article.delete"),
    "a draft": ("POST", "articles?status=draft", {"title": "X"}, DRAFTING, "article.delete"),
    "a new locale": ("PUT", "articles/odd?locale=fr", {"title": "Impair"}, ARTICLE, "article.delete"),
    "a deletion": ("DELETE", "articles/odd", None, [*ARTICLE, "article.delete"], "article.create"),
    "a deleted locale": ("DELETE", "articles/goemon?locale=fr", None, GONE, "article.update"),
    "a single type": ("PUT", "home", {"title": "House"}, ["home.update", "home.readDraft"], "home.delete"),
    "an update": ("PUT", "articles/odd", {"title": "Even"}, ["article.update"], "article.readDraft"),
}  # fmt: skip
RELATED = {
    **collection("tag", {"name": STRING, "pages": relation("manyToMany", "page", mappedBy="tags")}),
    **collection(
        "page",
        {
            "title": STRING,
            "code": {"type": "string", "unique": True},
            "tags": relation("manyToMany", "tag", inversedBy="pages"),
        },
        drafts=True,
    ),
    "content/tags/sea.json": '{"name": "Sea"}',
    "content/pages/one.draft.md": "---\ntitle: One\n---\n",
    "content/pages/two.md": "---\ntitle: Two\n---\n",
}


@pytest.mark.parametrize(("method", "path", "data", "may", "takes"), TAKES.values(), ids=TAKES.keys())
def test_undo_takes_the_permission_of_what_it_does(
    make_api: MakeApi, method: str, path: str, data: Any, may: list[str], takes: str
) -> None:
    api = make_api({name: text for name, text in SITE.items() if name != "content/home.json"})
    before = contents(api)
    body = {} if data is None else {"json": {"data": data}}
    api.token("few", may=may)
    refused = api.ask(method, f"/api/{path}", "few", headers=PREFER, **body)
    assert (refused.status < 300, refused.headers.get("Bifolio-Undo")) == (True, None)
    assert "Preference-Applied" not in refused.headers
    assert list((api.root / ".bifolio/undo").iterdir()) == []
    reset(api, before)
    api.token("all", may=[*may, takes])
    id_ = api.ask(method, f"/api/{path}", "all", headers=PREFER, **body).headers["Bifolio-Undo"]
    after = contents(api)
    api.accounts.revoke_token("all")
    api.token("all", may=may)
    refused = undo(api, id_, "all")
    assert (refused.status, refused.error["details"]) == (403, {"permission": takes})
    assert contents(api) == after
    api.accounts.revoke_token("all")
    api.token("all", may=[*may, takes])
    assert undo(api, id_, "all").status == 200
    assert contents(api) == before


def reset(api: Api, files: dict[str, bytes]) -> None:
    """Restore the files in `content/` by hand."""
    for path in contents(api).keys() - files.keys():
        (api.root / path).unlink()
    for path, data in files.items():
        (api.root / path).write_bytes(data)
    api.site.refresh()


def test_a_draft_is_undone_by_those_who_may_only_write_drafts(make_api: MakeApi) -> None:
    api = make_api(SITE)
    api.token("author", may=["article.updateDraft", "article.readDraft"])
    before = contents(api)
    made = api.ask(
        "PUT", "/api/articles/goemon?status=draft", "author", json={"data": {"title": "X"}}, headers=PREFER
    )
    assert contents(api) != before
    assert undo(api, made.headers["Bifolio-Undo"], "author").status == 200
    assert contents(api) == before


def test_of_files_that_others_may_not_see_undo_tells_nothing(make_api: MakeApi) -> None:
    api = make_api(RELATED)
    everything = ["tag.update", "tag.find", "page.find", "page.readDraft"]
    api.token("some", may=everything)
    change = {"pages": ["one", "two"]}

    def made() -> str:
        answer = api.put("/api/tags/sea", {**change, "name": "Ocean"}, who="some", headers=PREFER)
        return str(answer.headers["Bifolio-Undo"])

    id_ = made()
    api.accounts.revoke_token("some")
    api.token("some", may=["tag.update", "tag.find", "page.find"])
    for name in ("one.draft", "two"):
        with (api.root / f"content/pages/{name}.md").open("a") as file:
            file.write("more")
    error = undo(api, id_, "some").error
    assert error["details"] == {"files": ["content/pages/two.md"]}
    assert error["message"] == (
        "Nothing was undone, because these files were changed later: content/pages/two.md, "
        "and files that you are not allowed to see"
    )
    api.accounts.revoke_token("some")
    api.token("some", may=["tag.update"])
    error = undo(api, id_, "some").error
    assert error["details"] == {"files": []}
    assert (
        error["message"]
        == "Nothing was undone, because files that you are not allowed to see were changed later"
    )


def test_who_has_taken_a_value_since_is_told_to_those_who_may_see_it(make_api: MakeApi) -> None:
    api = make_api({**RELATED, "content/pages/two.md": "---\ncode: a1\n---\n"})
    deleting = ["page.delete", "page.create", "page.readDraft"]
    api.token("some", may=deleting)
    id_ = api.ask("DELETE", "/api/pages/two", "some", headers=PREFER).headers["Bifolio-Undo"]
    (api.root / "content/pages/secret.md").write_text("---\ncode: a1\n---\n")
    api.site.refresh()
    error = undo(api, id_, "some").error
    assert error["status"] == 409
    assert error["message"] == (
        "Nothing was undone, because a different document now has an id or unique value that would be "
        "restored"
    )
    api.accounts.revoke_token("some")
    api.token("some", may=[*deleting, "page.find"])
    assert (
        "content/pages/secret.md now contains an id or unique value that"
        in undo(api, id_, "some").error["message"]
    )


def test_they_are_kept_for_an_hour_and_no_more_than_there_is_room_for(
    make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = make_api(SITE)
    folder = api.root / ".bifolio/undo"

    def write(name: str) -> str:
        return str(batch(api, op("PUT", "authors/ada", {"name": name})).body["undo"]["id"])

    first = write("1")
    assert [oct(path.stat().st_mode & 0o777) for path in (folder, *folder.iterdir())] == ["0o700", "0o600"]
    old = time.time() - 3601
    for path in folder.iterdir():
        assert first not in path.name
        os.utime(path, (old, old))
    assert undo(api, first).status == 404
    write("2")
    assert len(list(folder.iterdir())) == 1
    monkeypatch.setattr("server.storage.undo.MAX_WRITES", 3)
    ids = [write(str(n)) for n in range(3, 8)]
    assert len(list(folder.iterdir())) == 3
    assert undo(api, ids[0]).status == 404
    assert undo(api, ids[-1]).status == 200
    monkeypatch.setattr("server.storage.undo.MAX_WRITE_BYTES", 10)
    assert "undo" not in batch(api, op("PUT", "authors/ada", {"name": "Zoe"})).body


def test_a_link_is_not_offered_to_come_back(make_api: MakeApi, tmp_path: Path) -> None:
    api = make_api(SITE)
    (api.root / "content/articles/link.md").symlink_to("odd.md")
    api.site.refresh()
    assert "undo" not in batch(api, op("DELETE", "articles/link")).body


def test_on_branches_git_takes_a_write_back(make_api: MakeApi) -> None:
    settings = FILES["site.yaml"] + "git: {commit: each, committer: Q <q@example.org>}\n"
    api = make_api({**SITE, "site.yaml": settings})
    commit_all(api.root)
    git(api.root, "branch", "spring")
    api.site.refresh()
    made = api.ask("DELETE", "/api/articles/odd?branch=spring", headers=PREFER)
    assert (made.status, "Bifolio-Undo" in made.headers) == (204, False)
    assert undo(api, "x?branch=spring").status == 400
    id_ = batch(api, op("DELETE", "articles/odd")).body["undo"]["id"]
    undone = undo(api, id_)
    assert undone.headers["Bifolio-Commit"] == git(api.root, "rev-parse", "HEAD").strip()
    assert git(api.root, "log", "-1", "--format=%s").strip() == "Undo a change"
    assert git(api.root, "diff", "--stat", "HEAD~2") == ""


def test_another_process_of_the_site_undoes_it_after_a_restart(make_api: MakeApi) -> None:
    api = make_api(SITE)
    before = contents(api)
    id_ = batch(api, op("DELETE", "articles/odd"), op("PUT", "authors/ada", {"name": "Eve"})).body["undo"][
        "id"
    ]
    site = load(api.root, {})
    accounts = Accounts(site.root, site.state.settings.accounts)
    app = create_app(site, accounts)
    other = Api(site, app, accounts, app.test_client(), api.tokens)
    assert undo(other, id_).status == 200
    assert contents(api) == before
    assert undo(api, id_).status == 404
    api.site.refresh()
    assert api.get("/api/articles/odd").status == 200
    other.accounts.close()


def kept_file(api: Api) -> tuple[str, Path]:
    """Send an undoable write. Return its id and the file in which the undo is stored."""
    made = api.put("/api/authors/ada", {"name": "Eve"}, headers=PREFER)
    (file,) = (api.root / ".bifolio/undo").iterdir()
    return made.headers["Bifolio-Undo"], file


def changed_fields(file: Path, change: Callable[[Any], Any]) -> None:
    """Change a stored undo as if another version of Bifolio had written it, with a valid digest."""
    text = json.dumps(change(json.loads(file.read_text().partition("\n")[2])))
    file.write_text(f"{digest(text)}\n{text}")


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: {name: value for name, value in kept.items() if name != "permits"},
        lambda kept: {**kept, "files": [{**file, "mode": 1} for file in kept["files"]]},
        lambda kept: {**kept, "permits": [{"uid": "author"}]},
        lambda kept: {**kept, "files": 1},
        lambda kept: [kept],
        lambda kept: None,
    ],
)
def test_what_another_version_kept_is_not_found(make_api: MakeApi, change: Callable[[Any], Any]) -> None:
    api = make_api(SITE)
    id_, file = kept_file(api)
    changed_fields(file, change)
    before = contents(api)
    assert undo(api, id_).status == 404
    assert contents(api) == before


@pytest.mark.parametrize("what", ["pipe", "folder", "link"])
def test_what_is_in_the_place_of_a_kept_write_is_not_read(
    make_api: MakeApi, tmp_path: Path, what: str
) -> None:
    api = make_api(SITE)
    id_, file = kept_file(api)
    aside = file.replace(tmp_path / "aside")
    put: dict[str, Callable[[], None]] = {
        "pipe": lambda: os.mkfifo(file),
        "folder": file.mkdir,
        "link": lambda: file.symlink_to(aside),
    }
    put[what]()
    answers: list[int] = []
    asking = threading.Thread(target=lambda: answers.append(undo(api, id_).status), daemon=True)
    asking.start()
    asking.join(20)
    assert answers == [404]


def test_a_link_in_the_place_of_the_folder_is_not_followed(make_api: MakeApi, tmp_path: Path) -> None:
    api = make_api(SITE)
    id_, file = kept_file(api)
    elsewhere = file.parent.rename(tmp_path / "elsewhere")
    file.parent.symlink_to(elsewhere)
    assert undo(api, id_).status == 404
    made = api.put("/api/authors/ada", {"name": "Adam"}, headers=PREFER)
    assert (made.status, made.headers.get("Bifolio-Undo")) == (200, None)
    assert [path.name for path in elsewhere.iterdir()] == [file.name]
