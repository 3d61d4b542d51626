"""Confidentiality of values that were private in earlier commits and are public now."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.git import commit_all, git
from tests.history.test_past import commit
from tests.sites import STRING, Api, collection, component, make, relation, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

SITE = "search: {index: false}\n"
STRING_TYPE: dict[str, object] = {"type": "string"}
BOX = {"type": "component", "component": "page.box"}
ARTICLE = "content/articles/a.yaml"


def schema(*, private: bool) -> dict[str, str]:
    secret = {**STRING_TYPE, "private": True} if private else STRING_TYPE
    attributes = {
        "title": STRING,
        "secret": secret,
        "box": BOX,
        "boxes": {**BOX, "repeatable": True},
        "zone": {"type": "dynamiczone", "components": ["page.box"]},
    }
    return {
        **component("page.box", {"label": STRING, "code": secret}),
        **collection("article", attributes),
        **collection("memo", attributes),
    }


def article(title: str, secret: str) -> str:
    box = f"{{label: L, code: {secret}}}"
    zone = f"[{{__component: page.box, label: L, code: {secret}}}]"
    return f"title: {title}\nsecret: {secret}\nbox: {box}\nboxes: [{box}]\nzone: {zone}\n"


def started(root: Path, path: str = ARTICLE) -> Api:
    """Return a site with two commits in which the value "walrus" is private."""
    write(root, {"site.yaml": SITE, **schema(private=True), path: article("One", "walrus")})
    commit_all(root)
    write(root, {path: article("One", "walrus2")})
    commit(root, 1)
    made = make(root, {})
    made.token("reader", may=["article.find", "article.findOne", "memo.find", "history.read"])
    return made


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    made = started(tmp_path)
    yield made
    made.accounts.close()


def publish(api: Api, *, committed: bool = True) -> None:
    write(api.root, {**schema(private=False), ARTICLE: article("Two", "seal")})
    if committed:
        commit(api.root, 2)
    api.site.refresh()


def read(api: Api, path: str, who: str = "reader") -> Any:
    answer = api.get(path, who)
    assert answer.status == 200, path
    assert "walrus" not in answer.text, path
    return answer


TITLE = {"title": {"from": "One", "to": "Two"}}


@pytest.mark.parametrize("who", ["reader", "full"])
@pytest.mark.parametrize("query", ["", "?to=main", "?from=main~1", "?from=main~1&to=main"])
def test_no_diff_shows_values_that_were_private_in_one_of_its_commits(api: Api, query: str, who: str) -> None:
    publish(api)
    assert read(api, f"/history/articles/a/diff{query}", who).data == TITLE


def test_an_uncommitted_schema_shows_no_value_that_is_private_in_the_last_commit(api: Api) -> None:
    publish(api, committed=False)
    for query in ("", "?from=main"):
        assert read(api, f"/history/articles/a/diff{query}").data == TITLE


def test_a_diff_backwards_shows_no_value_that_was_private(api: Api) -> None:
    publish(api)
    assert read(api, "/history/articles/a/diff?from=main&to=main~1").data == {
        "title": {"from": "Two", "to": "One"}
    }


def test_a_commit_with_an_invalid_schema_keeps_private_what_was_private_before(api: Api) -> None:
    write(api.root, {"content-types/article.json": "{"})
    commit(api.root, 2)
    publish(api)
    for query in ("", "?from=main~1", "?from=main~2"):
        read(api, f"/history/articles/a/diff{query}")


def test_changes_of_a_value_that_was_private_are_not_listed_by_name(api: Api) -> None:
    publish(api)
    entries = read(api, "/history/articles/a", "full").data
    assert [entry["attributes"] for entry in entries] == [
        ["title"],
        [],
        ["title", "box", "boxes", "zone"],
    ]


def test_the_title_of_a_deleted_document_stays_hidden_if_it_was_private(tmp_path: Path) -> None:
    hidden = collection("note", {"title": {"type": "string", "private": True}})
    write(tmp_path, {"site.yaml": SITE, **hidden, "content/notes/a.yaml": "title: walrus\n"})
    commit_all(tmp_path)
    (tmp_path / "content/notes/a.yaml").unlink()
    write(tmp_path, collection("note", {"title": STRING}))
    commit(tmp_path, 1)
    api = make(tmp_path, {})
    api.token("reader", may=["note.find", "history.read"])
    (deleted,) = read(api, "/history/notes?deleted=true").data
    assert deleted["title"] is None
    api.accounts.close()


PUBLIC = {"title": STRING, "secret": STRING}


def lines(secret: str) -> str:
    return f"title: One\nsecret: {secret}\n" + "".join(f"# the same line {n}\n" for n in range(20))


@pytest.mark.parametrize("committed", [True, False])
def test_values_that_were_private_in_an_earlier_type_stay_hidden(tmp_path: Path, committed: bool) -> None:
    write(tmp_path, {"site.yaml": SITE, **schema(private=True)})
    write(tmp_path, {**collection("article", PUBLIC), "content/memos/a.yaml": lines("walrus")})
    commit_all(tmp_path)
    (tmp_path / "content/articles").mkdir(parents=True)
    git(tmp_path, "mv", "content/memos/a.yaml", ARTICLE)
    write(tmp_path, {**collection("memo", PUBLIC), ARTICLE: lines("seal")})
    if committed:
        commit(tmp_path, 1)
    else:
        git(tmp_path, "add", "-A")
    api = make(tmp_path, {})
    api.token("reader", may=["article.find", "memo.find", "history.read"])
    paths = ["/history/articles/a/diff?from=main~1", "/history/articles/a/diff", "/history/articles/a"]
    if not committed:
        paths = ["/history/uncommitted", f"/history/uncommitted/diff?path={ARTICLE}"]
    for path in paths:
        assert "walrus" not in api.get(path, "reader").text, path
    if committed:
        assert api.get("/history/articles/a", "reader").data[0]["action"] == "rename"
        shown = {"secret": {"from": None, "to": "seal"}}
        assert api.get("/history/articles/a/diff", "reader").data == shown
    api.accounts.close()


def test_unread_keys_that_were_private_are_not_named(tmp_path: Path) -> None:
    private = {"type": "string", "private": True}
    old = {
        "title": STRING,
        "box": BOX,
        "gone": private,
        "open": STRING,
        "vault": relation("oneToOne", "vault"),
    }
    boxes = component(
        "page.box", {"label": STRING, "code": private, "pin": {"type": "integer", "private": True}}
    )
    file = "title: {}\ngone: walrus\nopen: x\nvault: v\nbox: {{label: [], code: walrus, pin: walrus}}\n"
    vaults = {**collection("vault", {"title": STRING}), "content/vaults/v.yaml": "title: V\n"}
    write(tmp_path, {"site.yaml": SITE, **boxes, **vaults, **collection("article", old)})
    write(tmp_path, {ARTICLE: file.format("One")})
    commit_all(tmp_path)
    boxes = component("page.box", {"label": STRING, "pin": {"type": "integer", "private": True}})
    write(tmp_path, {**boxes, **collection("article", {"title": STRING, "box": BOX})})
    write(tmp_path, {ARTICLE: "title: Two\nbox: {label: [], pin: walrus}\n"})
    commit(tmp_path, 1)
    api = make(tmp_path, {})
    api.token("reader", may=["article.find", "history.read"])
    for query in ("", "?from=main~1"):
        unread = read(api, f"/history/articles/a/diff{query}").body["meta"]["unread"]
        assert unread == {"from": ["open", "box.label"], "to": ["box.label"]}
    assert "vault" in read(api, "/history/articles/a/diff", "full").body["meta"]["unread"]["from"]
    api.accounts.close()


def test_blame_does_not_name_commits_in_which_the_value_was_private(api: Api) -> None:
    write(api.root, schema(private=False))
    commit(api.root, 2)
    api.site.refresh()
    assert set(read(api, "/history/articles/a/blame").data) == {"title", "box", "boxes", "zone"}
    write(api.root, {ARTICLE: article("Two", "walrus2")})
    last = {"commit": commit_id(api.root, 3)}
    api.site.refresh()
    blamed = api.get("/history/articles/a/blame", "reader").data
    assert blamed["secret"].items() >= last.items()


def commit_id(root: Path, hour: int) -> str:
    commit(root, hour)
    return git(root, "rev-parse", "HEAD").strip()
