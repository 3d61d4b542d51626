"""Confidentiality of `/history`: two sites that differ only in hidden content must send the same
responses.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from server.auth.passwords import hash_password
from tests.git import commit_all, git
from tests.history.test_past import commit
from tests.sites import STRING, Api, collection, component, make, relation, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

SITE = "search: {index: false}\n"
WORDS = ("walrus", "narwhal")  # of equal length, so that the responses can't differ in length
ID = re.compile(r"[0-9a-f]{40}")
HISTORY = ("history.read", "history.restore")
EDITOR = ("article.find", "article.findOne", "article.create", "article.update", *HISTORY)


def memo(word: str) -> str:
    """Return a memo that is so similar to an article that git detects the change of type as a rename."""
    lines = "".join(f"line{n}: the same in both\n" for n in range(12))
    return f"title: A {word}\nbody: The {word} swims\nowner: {word}\n{lines}"


def types(memo_body: object = STRING) -> dict[str, str]:
    lines = {f"line{n}": STRING for n in range(12)}
    return {
        **collection("keeper", {"name": STRING}),
        **collection("tag", {"name": STRING}),
        **collection(
            "memo", {"title": STRING, "body": memo_body, "owner": relation("manyToOne", "keeper"), **lines}
        ),
        **collection(
            "article", {"title": STRING, "body": STRING, "owner": relation("manyToOne", "tag"), **lines}
        ),
    }


def moved(root: Path, word: str, schemas: dict[str, str]) -> Api:
    """Return a site in which the article `a` was, until the second commit, a memo that contains `word`."""
    people = {
        f"content/{kind}/{name}.yaml": f"name: {name}\n" for kind in ("keepers", "tags") for name in WORDS
    }
    write(root, {"site.yaml": SITE, **schemas, **people, "content/memos/a.yaml": memo(word)})
    commit_all(root)
    (root / "content/articles").mkdir()
    git(root, "mv", "content/memos/a.yaml", "content/articles/a.yaml")
    write(root, {"content/articles/a.yaml": memo("seal").replace("owner: seal\n", "")})
    commit(root, 1)
    write(
        root, {"content/articles/a.yaml": memo("seal").replace("owner: seal\n", "").replace("swims", "dives")}
    )
    commit(root, 2)
    made = make(root, {})
    made.token("editor", may=(*EDITOR, "tag.find"))
    made.token("clerk", may=(*EDITOR, "memo.find", "memo.findOne", "tag.find"))
    return made


Twins = Callable[..., tuple[Api, Api]]


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[Twins]:
    made: list[Api] = []

    def build(schemas: dict[str, str]) -> tuple[Api, Api]:
        one, other = (moved(tmp_path / word, word, schemas) for word in WORDS)
        made.extend((one, other))
        return one, other

    yield build
    for api in made:
        api.accounts.close()


READS = (
    "/history",
    "/history?type=article",
    "/history/articles?deleted=true",
    "/history/articles/a",
    "/history/articles/a/blame",
    "/history/articles/a/diff",
    "/history/articles/a/diff?from=main~2",
    "/history/articles/a/diff?from=main~2&to=main~1",
    "/history/articles/a/diff?to=main~1",
    "/history/articles/a/diff?to=main~2",
)


def answers(api: Api, who: str) -> dict[str, tuple[int, str]]:
    """Return the status and body of each path's response, with commit ids replaced by their position in the
    history.
    """
    found = {}
    ids = git(api.root, "rev-list", "--reverse", "main").split()
    for path in READS:
        answer = api.get(path, who)
        found[path] = answer.status, ID.sub(lambda id_: f"commit {ids.index(id_[0])}", answer.raw.decode())
    return found


def actions(api: Api, who: str) -> list[str]:
    return [version["action"] for version in api.get("/history/articles/a", who).data]


def restore(api: Api, who: str, at: str, path: str = "articles/a", **more: object) -> int:
    return api.ask("POST", f"/history/{path}/restore", who, json={"at": at, **more}).status


def test_history_in_a_hidden_type_is_not_revealed(twins: Twins) -> None:
    one, other = twins(types())
    assert answers(one, "editor") == answers(other, "editor")
    for api, word in zip((one, other), WORDS, strict=True):
        assert f" {word}" not in str(answers(api, "editor"))
        assert (actions(api, "editor"), actions(api, "clerk")) == (
            ["update", "create"],
            ["update", "rename", "create"],
        )
        before = api.read("content/articles/a.yaml")
        assert restore(api, "editor", "main~2") == 404
        assert api.read("content/articles/a.yaml") == before
        assert restore(api, "clerk", "main~2") == 200
        assert f"A {word}" in api.read("content/articles/a.yaml")


@pytest.mark.parametrize("body", [{"type": "string", "private": True}, {"type": "password"}])
def test_hidden_values_of_the_earlier_type_stay_hidden(twins: Twins, body: dict[str, object]) -> None:
    one, other = twins(types(body))
    for api, word in zip((one, other), WORDS, strict=True):
        for who in ("clerk", "full"):
            shown = answers(api, who)
            assert f"The {word} swims" not in str(shown)
            assert f"A {word}" in str(shown)
            assert restore(api, who, "main~2") == 200
            assert f"The {word} swims" not in api.read("content/articles/a.yaml")


def test_relations_of_the_earlier_type_do_not_name_hidden_documents(twins: Twins) -> None:
    for api, word in zip(twins(types()), WORDS, strict=True):
        for path, (status, text) in answers(api, "clerk").items():
            assert (status, '"owner"' in text) == (200, False), (path, word)


VALUES: tuple[tuple[object, str], ...] = (
    (STRING, "A text"),
    ("json", "{a: [1, {b: c}]}"),
    ("boolean", "true"),
    ("datetime", "2024-02-29T10:20:30.000Z"),
    ({"type": "blocks"}, "[{type: paragraph, children: [{type: text, text: a}]}]"),
    ({"type": "media"}, "a.txt"),
    ({"type": "media", "multiple": True}, "[a.txt]"),
    (relation("manyToOne", "tag"), "walrus"),
    (relation("manyToMany", "tag"), "[walrus]"),
    ({"type": "component", "component": "page.part"}, "{text: a}"),
    ({"type": "component", "component": "page.part", "repeatable": True}, "[{text: a}]"),
    ({"type": "dynamiczone", "components": ["page.part"]}, "[{__component: page.part, text: a}]"),
)


@pytest.mark.parametrize("shift", [1, 2, 3, 5, 8])
def test_attributes_of_the_earlier_type_may_have_any_type(tmp_path: Path, shift: int) -> None:
    kinds = [kind for kind, _ in VALUES]
    then = {f"a{n}": kind for n, kind in enumerate(kinds)}
    now = {f"a{n}": kind for n, kind in enumerate(kinds[shift:] + kinds[:shift])}
    text = "".join(f"a{n}: {value}\n" for n, (_, value) in enumerate(VALUES))
    write(
        tmp_path,
        {
            "site.yaml": SITE,
            **component("page.part", {"text": STRING}),
            **collection("tag", {"name": STRING}),
            **collection("memo", then),
            **collection("article", now),
            "content/tags/walrus.yaml": "name: Walrus\n",
            "content/uploads/a.txt": "a",
            "content/memos/a.yaml": text,
        },
    )
    commit_all(tmp_path)
    (tmp_path / "content/articles").mkdir()
    git(tmp_path, "mv", "content/memos/a.yaml", "content/articles/a.yaml")
    commit(tmp_path, 1)
    write(tmp_path, {"content/articles/a.yaml": ""})
    commit(tmp_path, 2)
    api = make(tmp_path, {})
    for path in READS:
        assert api.get(path).status == 200, path
    # The file is empty now. 409: with the values of the earlier type, it would still be invalid.
    assert restore(api, "full", "main~2") in (200, 201, 400, 409)
    api.accounts.close()


def vault(kind: str, *, inside: str = "") -> dict[str, str]:
    return {
        **component("page.lock", {"pin": {"type": inside or kind}}),
        **collection(
            "vault",
            {
                "name": STRING,
                "pin": {"type": kind},
                "lock": {"type": "component", "component": "page.lock"},
                "locks": {"type": "component", "component": "page.lock", "repeatable": True}
                if inside
                else {"type": "json"},
            },
        ),
    }


@pytest.mark.parametrize("kind", ["string", "text", "richtext", "json", "uid"])
@pytest.mark.parametrize("inside", ["", "string"])
def test_password_hashes_stay_hidden_after_a_change_of_the_attribute(
    tmp_path: Path, kind: str, inside: str
) -> None:
    one, other = hash_password("one"), "$2b$10$abcdefghijklmnopqrstuuWZ0rBq0yAHHv1KJqOyL8SkHXGpQh9xe"
    file = 'name: {}\npin: "{}"\nlock: {{pin: "{}"}}\nlocks: [{{pin: "{}"}}]\n'
    then = file.format("Then", one, one, other)
    write(tmp_path, {"site.yaml": SITE, **vault("password"), "content/vaults/a.yaml": then})
    commit_all(tmp_path)
    write(tmp_path, {"content/vaults/a.yaml": file.format("Then", other, other, one)})
    commit(tmp_path, 1)
    write(tmp_path, {**vault(kind, inside=inside), "content/vaults/a.yaml": file.format("Now", 1, 2, 3)})
    commit(tmp_path, 2)
    git(tmp_path, "branch", "older", "main~1")
    api = make(tmp_path, {})
    reads = [path.replace("articles", "vaults") for path in READS]
    for path in (*reads, "/history/vaults?deleted=true", "/branches/older/changes"):
        answer = api.get(path)
        assert answer.status == 200, path
        assert not re.search(r"\$argon2|\$2b\$", answer.raw.decode()), path
    assert api.get("/history/vaults/a/diff?from=main~2&to=main~1").data == {}
    for body in ({"at": "main~2"}, {"at": "main~1", "fields": ["pin", "lock", "name"]}):
        shown = api.ask("POST", "/history/vaults/a/restore", json=body)
        assert (shown.status, shown.data["name"]) == (200, "Then")
        assert "$" not in shown.raw.decode() + api.read("content/vaults/a.yaml")
    api.accounts.close()


def vaults(secret: dict[str, object], part: dict[str, object]) -> dict[str, str]:
    return {
        **component("page.part", {"name": STRING, "code": part}),
        **collection(
            "vault",
            {
                "name": STRING,
                "secret": secret,
                "parts": {"type": "component", "component": "page.part", "repeatable": True},
            },
        ),
    }


PRIVATE = {"type": "string", "private": True}


@pytest.mark.parametrize("hidden_on", ["main", "other"])
def test_a_branch_where_a_value_is_public_does_not_restore_it_from_where_it_is_private(
    tmp_path: Path, hidden_on: str
) -> None:
    """The branch `old` is older than the change that made the value private.

    This change was made either on the served branch or on another branch.
    """
    write(tmp_path, {"site.yaml": SITE, **vaults(STRING, STRING), "content/vaults/a.yaml": "name: Old\n"})
    commit_all(tmp_path)
    git(tmp_path, "branch", "old")
    if hidden_on != "main":
        git(tmp_path, "checkout", "-qb", hidden_on)
    kept = "name: Kept\nsecret: The walrus\nparts:\n  - name: One\n    code: The narwhal\n"
    write(tmp_path, {**vaults(PRIVATE, PRIVATE), "content/vaults/a.yaml": kept})
    commit(tmp_path, 1)
    git(tmp_path, "checkout", "-q", "main")
    api = make(tmp_path, {})
    may = ("vault.find", "vault.findOne", "vault.update", "branch.find", "branch.update", *HISTORY)
    api.token("editor", may=may)

    diff = api.get(f"/history/vaults/a/diff?from=old&to={hidden_on}", "editor")
    assert (diff.status, "Kept" in diff.raw.decode()) == (200, True)
    assert not re.search("walrus|narwhal", diff.raw.decode())
    for branch in {"old", "main"} - {hidden_on}:
        path = f"/history/vaults/a/restore?branch={branch}"
        restored = api.ask("POST", path, "editor", json={"at": hidden_on})
        assert (restored.status, restored.data["name"]) == (200, "Kept")
        file = "content/vaults/a.yaml"
        text = api.read(file) if branch == "main" else git(tmp_path, "show", f"{branch}:{file}")
        assert ("name: One" in text, re.search("walrus|narwhal", text)) == (True, None)
    api.accounts.close()


def test_a_value_that_was_private_then_is_not_restored_where_it_is_public_now(tmp_path: Path) -> None:
    private = vaults(PRIVATE, PRIVATE)
    write(tmp_path, {"site.yaml": SITE, **private, "content/vaults/a.yaml": "name: A\nsecret: The walrus\n"})
    commit_all(tmp_path)
    write(tmp_path, {**vaults(STRING, STRING), "content/vaults/a.yaml": "name: A\n"})
    commit(tmp_path, 1)
    api = make(tmp_path, {})
    assert "walrus" not in api.get("/history/vaults/a/diff?from=main~").raw.decode()
    assert restore(api, "full", "main~", "vaults/a") == 200
    assert "walrus" not in api.read("content/vaults/a.yaml")
    api.accounts.close()


EDITOR_ACTIONS = ("find", "findOne", "create", "update", "delete")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Api]:
    """A site whose branch `open` shows values, drafts and a content type that are hidden on `main`."""
    hidden = {
        **vaults(PRIVATE, PRIVATE),
        **collection("memo", {"title": STRING}, drafts=True),
        **collection("note", {"title": STRING}, drafts=True, draftWhen={"draft": True}),
        **collection("chest", {"title": STRING}),
    }
    base = {f"content/{name}/a.yaml": "title: Old\n" for name in ("memos", "notes", "chests")}
    write(tmp_path, {"site.yaml": SITE, **hidden, **base, "content/vaults/a.yaml": "name: Old\n"})
    commit_all(tmp_path)
    git(tmp_path, "checkout", "-qb", "open")
    shown = {
        **vaults(STRING, STRING),
        **collection("memo", {"title": STRING}),
        **collection("note", {"title": STRING}, drafts=True),
        "content/vaults/a.yaml": "name: Mine\n",
    }
    write(tmp_path, shown)
    commit(tmp_path, 1)
    git(tmp_path, "checkout", "-q", "main")
    write(
        tmp_path,
        {
            "content/vaults/b.yaml": "name: B\nsecret: walrus\nparts:\n  - code: narwhal\n",
            "content/memos/b.draft.yaml": "title: walrus\n",
            "content/notes/b.yaml": "title: walrus\ndraft: true\n",
        },
    )
    commit(tmp_path, 2)
    made = make(tmp_path, {})
    types = ("vault", "memo", "note")
    may = [f"{name}.{action}" for name in types for action in EDITOR_ACTIONS]
    made.token("editor", may=[*may, "branch.find", "branch.merge", "branch.update", *HISTORY])
    yield made
    made.accounts.close()


def test_a_merge_into_a_branch_that_shows_more_needs_full_access(opened: Api) -> None:
    before = git(opened.root, "rev-parse", "open")
    refused = opened.ask("POST", "/branches/main/merge", "editor", json={"into": "open"})
    assert (refused.status, "full access" in refused.error["message"]) == (403, True)
    assert git(opened.root, "rev-parse", "open") == before
    assert opened.ask("POST", "/branches/main/merge", json={"into": "open"}).status == 200


def test_a_merge_between_branches_that_hide_the_same_needs_no_full_access(opened: Api) -> None:
    git(opened.root, "branch", "next", "main~")
    assert opened.ask("POST", "/branches/next/merge", "editor", json={}).status == 200
    assert opened.put("/api/vaults/a?branch=next", {"name": "Next"}).status == 200
    assert opened.ask("POST", "/branches/next/merge", "editor", json={}).status == 200


def test_conflicts_and_changes_quote_no_value_that_one_side_hides(opened: Api) -> None:
    root = opened.root
    git(root, "checkout", "-q", "open")
    write(root, {"content/vaults/a.yaml": "name: Mine\nsecret: theirs\n"})
    commit(root, 3)
    git(root, "checkout", "-q", "main")
    write(root, {"content/vaults/a.yaml": "name: Old\nsecret: walrus\n"})
    commit(root, 4)
    for who in ("editor", "full"):
        answer = opened.ask("POST", "/branches/open/merge", who, json={"resolve": {"files": {}}})
        assert answer.status in (403, 409)
        assert "walrus" not in answer.raw.decode()
        answer = opened.ask("POST", "/branches/main/merge", who, json={"into": "open"})
        assert answer.status in (403, 409)
        assert "walrus" not in answer.raw.decode()
    git(root, "checkout", "-qB", "late", "main")
    write(root, {**vaults(STRING, STRING), "content/vaults/a.yaml": "name: Old\nsecret: harmless\n"})
    commit(root, 5)
    git(root, "checkout", "-q", "main")
    changes = opened.get("/branches/late/changes", "editor")
    assert (changes.status, "walrus" in changes.raw.decode()) == (200, False)


@pytest.mark.parametrize("path", ["memos/b.draft", "notes/b", "vaults/b"])
def test_history_on_a_branch_shows_no_draft_of_another(opened: Api, path: str) -> None:
    root, (name, document) = opened.root, path.split("/")
    git(root, "checkout", "-q", "open")
    write(root, {f"content/{name}/{document}.yaml": "title: Mine\n" if name != "vaults" else "name: Mine\n"})
    commit(root, 3)
    git(root, "checkout", "-q", "main")
    for answer in (
        opened.get(f"/history/{path}/diff?branch=open&from=open&to=main", "editor"),
        opened.ask("POST", f"/history/{path}/restore?branch=open", "editor", json={"at": "main"}),
    ):
        assert not re.search("walrus|narwhal", answer.raw.decode())
    assert not re.search("walrus|narwhal", git(root, "show", f"open:content/{name}/{document}.yaml"))


def test_a_draft_of_before_is_not_restored_where_the_type_no_longer_marks_drafts(tmp_path: Path) -> None:
    drafts = collection("note", {"title": STRING}, drafts=True, draftWhen={"draft": True})
    write(tmp_path, {"site.yaml": SITE, **drafts, "content/notes/a.yaml": "title: walrus\ndraft: true\n"})
    commit_all(tmp_path)
    write(tmp_path, collection("note", {"title": STRING}, drafts=True))
    write(tmp_path, {"content/notes/a.yaml": "title: Published\n"})
    commit(tmp_path, 1)
    api = make(tmp_path, {})
    may = [f"note.{action}" for action in EDITOR_ACTIONS]
    api.token("editor", may=[*may, *HISTORY])
    api.token("drafts", may=[*may, "note.readDraft", *HISTORY])
    diff = "/history/notes/a/diff?from=main~"
    assert "walrus" not in api.get(diff, "editor").raw.decode()
    assert "walrus" in api.get(diff, "drafts").raw.decode()
    assert restore(api, "editor", "main~", "notes/a") == 404
    assert "walrus" not in api.read("content/notes/a.yaml")
    api.accounts.close()


DRAFTED = {"drafts": True}
MARKED = {"drafts": True, "draftWhen": {"draft": True}}


def former_drafts(root: Path, path: str, before: dict[str, object], *, together: bool) -> Api:
    """Return a site with a content type whose documents could have drafts until the last commit.

    A draft was committed and later deleted: in the last commit if `together`, otherwise before it.
    """
    note = f"content/notes/{path}.yaml"
    write(root, {"site.yaml": SITE, **collection("note", {"title": STRING}, **before)})  # type: ignore[arg-type]
    write(root, {"content/notes/a.yaml": "title: Seen\n"})
    commit_all(root)
    write(root, {note: "title: walrus\ndraft: true\n"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Add walrus")
    (root / note).unlink()
    if not together:
        git(root, "commit", "-qam", "Remove walrus")
    write(root, collection("note", {"title": STRING}))
    write(root, {"content/notes/a.yaml": "title: Seen twice\n"})
    commit(root, 1)
    made = make(root, {})
    made.token("editor", may=["note.find", "note.findOne", *HISTORY])
    made.token("drafts", may=["note.find", "note.findOne", "note.readDraft", *HISTORY])
    return made


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(("path", "before"), [("b.draft", DRAFTED), ("b", MARKED)])
def test_a_former_draft_stays_hidden_when_its_type_has_no_drafts(
    tmp_path: Path, path: str, before: dict[str, object], together: bool
) -> None:
    api = former_drafts(tmp_path, path, before, together=together)
    paths = ("?type=note", "/notes?deleted=true", f"/notes/{path}", f"/notes/{path}/blame", "/notes/a")
    editor, drafts = ({one: api.get(f"/history{one}", who) for one in paths} for who in ("editor", "drafts"))
    for answer in editor.values():
        assert not re.search(f'walrus|{re.escape(path)}"', answer.raw.decode())
    assert [editor[one].status for one in paths] == [200, 200, 404, 404, 200]
    assert editor["/notes?deleted=true"].data == []
    assert [one["documentId"] for one in drafts["/notes?deleted=true"].data] == [path]
    assert drafts[f"/notes/{path}"].status == 200
    assert "Add walrus" in drafts["?type=note"].raw.decode()
    api.accounts.close()


def test_a_former_draft_appears_when_it_was_published(tmp_path: Path) -> None:
    api = former_drafts(tmp_path, "b.draft", DRAFTED, together=True)
    write(api.root, {"content/notes/b.draft.yaml": "title: Now public\n"})
    commit(api.root, 2)
    api.site.refresh()
    (version,) = api.get("/history/notes/b.draft", "editor").data
    assert (version["action"], version["attributes"]) == ("create", ["title"])
    (api.root / "content/notes/b.draft.yaml").unlink()
    commit(api.root, 3)
    api.site.refresh()
    (deleted,) = api.get("/history/notes?deleted=true", "editor").data
    assert (deleted["documentId"], deleted["title"]) == ("b.draft", "Now public")
    assert [one["action"] for one in api.get("/history/notes/b.draft", "editor").data] == ["delete", "create"]
    api.accounts.close()


def test_the_kept_file_of_a_former_draft_appears_when_the_type_loses_its_drafts(tmp_path: Path) -> None:
    note = "content/notes/b.yaml"
    drafts = collection("note", {"title": STRING}, drafts=True, draftWhen={"draft": True})
    write(tmp_path, {"site.yaml": SITE, **drafts, note: "title: walrus\ndraft: true\n"})
    commit_all(tmp_path)
    write(tmp_path, {**collection("note", {"title": STRING}), note: "title: Public\n"})
    commit(tmp_path, 1)
    api = make(tmp_path, {})
    api.token("editor", may=["note.find", "note.findOne", *HISTORY])
    (version,) = api.get("/history/notes/b", "editor").data
    assert (version["action"], version["attributes"]) == ("create", ["title"])
    assert [one["action"] for one in api.get("/history/notes/b").data] == ["update", "create"]
    listed = api.get("/history?type=note", "editor").data
    assert [one["documents"][0]["action"] for one in listed] == ["create"]
    api.accounts.close()


@pytest.mark.parametrize(
    ("before", "document"),
    [
        ({"title": STRING, **DRAFTED}, "b.draft"),
        ({"title": STRING, **MARKED}, "b"),
        ({"title": {"type": "string", "private": True}}, "b"),
    ],
)
def test_uncommitted_changes_show_nothing_that_the_committed_schema_hides(
    tmp_path: Path, before: dict[str, object], document: str
) -> None:
    note, options = f"content/notes/{document}.yaml", dict(before)
    committed = collection("note", {"title": options.pop("title")}, **options)  # type: ignore[arg-type]
    write(tmp_path, {"site.yaml": SITE, **committed, note: "title: walrus\ndraft: true\n"})
    commit_all(tmp_path)
    write(tmp_path, {**collection("note", {"title": STRING}), note: "title: Public\n"})
    api = make(tmp_path, {})
    api.token("editor", may=["note.find", "note.findOne", *HISTORY])
    listed, found = "/history/uncommitted", f"/history/uncommitted/diff?path={note}"
    assert "walrus" in api.get(found).raw.decode()
    assert api.get(listed, "editor").data == []
    assert api.get(found, "editor").status == 404
    write(tmp_path, {"content/notes/new.yaml": "title: New\n"})
    api.site.refresh()
    assert [one["path"] for one in api.get(listed, "editor").data] == ["content/notes/new.yaml"]
    api.accounts.close()


def linked(root: Path, *, linking: bool) -> Api:
    """Return a site with an article whose relations and private values are empty unless `linking`."""
    attributes = {
        "title": STRING,
        "one": relation("manyToOne", "post"),
        "about": {"type": "relation", "relation": "morphToMany"},
        "box": {"type": "component", "component": "page.box"},
    }
    relations = "one: plan\nabout: [{__type: api::vault.vault, documentId: v}]\n" if linking else ""
    write(
        root,
        {
            "site.yaml": SITE,
            **component("page.box", {"label": STRING, "code": {"type": "string", "private": True}}),
            **collection("article", attributes),
            **collection("post", {"title": STRING}, drafts=True),
            **collection("vault", {"title": STRING}),
            "content/posts/plan.draft.yaml": "title: Plan\n",
            "content/vaults/v.yaml": "title: V\n",
            "content/articles/a.yaml": f"title: A\nbox: {{label: L, code: x}}\n{relations}",
        },
    )
    commit_all(root)
    code = "y" if linking else "x"
    file = f"title: B\nbox: {{label: L, code: {code}}}\n{relations}"
    write(root, {"content/articles/a.yaml": file})
    commit(root, 1)
    made = make(root, {})
    made.token("reader", may=["article.find", "post.find", "history.read"])
    return made


def test_blame_shows_nothing_of_hidden_relations_and_private_values(tmp_path: Path) -> None:
    one, other = (linked(tmp_path / str(linking), linking=linking) for linking in (True, False))
    shown = [answers(api, "reader")["/history/articles/a/blame"] for api in (one, other)]
    assert shown[0] == shown[1]
    blamed = one.get("/history/articles/a/blame", "reader").data
    first, second = git(one.root, "rev-list", "--reverse", "main").split()
    assert {name: each["commit"] for name, each in blamed.items()} == {"title": second, "box": first}
    for api in (one, other):
        api.accounts.close()
