"""Tests for merges of branches that lack kept migrations, or that bring them."""

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from server.history.merging.late_migrations import MAX_MIGRATIONS
from server.site.check.survey import survey_site
from server.site.migrations.plan import Plan
from tests.git import commit_all, git
from tests.site.migrations.helpers import apply, migrate
from tests.sites import STRING, Answer, Api, collection, component, make, opened, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

FILES = {
    "site.yaml": "locales: {available: [en, fr]}\nsearch: {index: false}\n",
    ".gitignore": ".bifolio/\n",
    **collection("author", {"name": STRING}),
    **collection(
        "note",
        {
            "title": {"type": "string", "required": True},
            "summary": STRING,
            "number": STRING,
            "body": {"type": "richtext"},
        },
        localized=True,
        drafts=True,
    ),
    "content/authors/ann.yaml": "name: Ann Lee\n",
    "content/notes/one.md": "---\n# A comment\ntitle: One\nsummary: Short\nnumber: '1'\n---\nText\n",
    "content/notes/two.json": '{"title": "Two", "summary": "Long"}\n',
    "content/notes/three.yaml": "title: Three\n",
}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    write(tmp_path, FILES)
    commit_all(tmp_path)
    git(tmp_path, "branch", "next")
    made = make(tmp_path, {})
    yield made
    made.accounts.close()


def merge(api: Api, into: str = "", **body: Any) -> Answer:
    """Merge the branch `next` into main, or main into it."""
    name = "main" if into else "next"
    return api.ask(
        "POST", f"/branches/{name}/merge", "full", json={**body, **({"into": into} if into else {})}
    )


def on_main(api: Api, operation: str, **arguments: Any) -> Plan:
    """Migrate main, and commit the changes."""
    plan = migrate(api.root, operation, **arguments)
    git(api.root, "add", "-A")
    git(api.root, "commit", "-qm", operation)
    api.site.refresh()
    return plan


def on_branch(api: Api, operation: str, **arguments: Any) -> Plan:
    return migrate(api.root, operation, branch="next", **arguments)


def put(api: Api, path: str, branch: str = "", **data: Any) -> None:
    assert api.put(f"/api/{path}{f'?branch={branch}' if branch else ''}", data).status == 200


def commit(api: Api, files: dict[str, str], name: str = "next") -> None:
    """Commit files by hand. For a branch that is not checked out, use a separate worktree."""
    folder = api.root if name == "main" else api.root.with_name("worktree")
    if name != "main":
        git(api.root, "worktree", "add", "-q", str(folder), name)
    write(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "by hand")
    if name == "main":
        api.site.refresh()
    else:
        git(api.root, "worktree", "remove", "--force", str(folder))


def lacking(root: Path) -> list[tuple[str, str]]:
    """Return the documents in which `bifolio check` misses migrations, with its messages."""
    problems = survey_site(opened(root)).problems
    return [(problem.path, problem.message) for problem in problems if problem.rule == "migration"]


def applied(name: str, documents: int) -> dict[str, Any]:
    return {"name": name, "documents": documents, "applied": True}


ODD = {
    "a null byte": 'operation: wrap\ntype: note\nattributes: [summary]\ncomponent: "a.\\0b"\n',
    "a long name": f"operation: wrap\ntype: note\nattributes: [summary]\ncomponent: a.{'b' * 300}\n",
    "a path": "operation: wrap\ntype: note\nattributes: [summary]\ncomponent: a.../../../../victim\n",
    "a missing key": "operation: wrap\ntype: note\ncomponent: a.b\n",
    "not YAML": "operation: wrap\n? [\n",
    "another list": "operation: wrap\ntype: note\nattributes: {summary: x}\ncomponent: a.b\n",
    "odd options": "operation: wrap\ntype: note\nattributes: [summary]\ncomponent: a.b\n",
}


@pytest.mark.parametrize("into", ["", "next"])
@pytest.mark.parametrize("case", ODD)
def test_a_migration_that_can_not_be_planned_is_a_conflict(api: Api, case: str, into: str) -> None:
    schema = json.loads(api.read("content-types/note.json"))
    if case == "odd options":  # the site can be served, but wrap expects a mapping
        schema["attributes"]["summary"]["pluginOptions"] = ["x"]
        text = {"content-types/note.json": json.dumps(schema)}
        commit(api, text, "main")
        git(api.root, "branch", "-f", "next")
    put(api, "notes/two", summary="Edited")
    put(api, "notes/one", "next", number="2")
    commit(api, {"migrations/0001-odd.yaml": ODD[case]}, "main" if into else "next")
    before = git(api.root, "rev-parse", "main", "next"), git(api.root, "status", "--porcelain")
    refused = merge(api, into)
    assert (refused.status, refused.error["name"]) == (409, "ConflictError")
    assert "0001-odd" in refused.error["message"]
    assert (git(api.root, "rev-parse", "main", "next"), git(api.root, "status", "--porcelain")) == before
    put(api, "notes/two", title="Still")


# --- into a branch with migrations ----------------------------------------------------------------


def test_a_branch_from_before_a_rename_is_brought_along(api: Api) -> None:
    put(api, "notes/one", "next", summary="Edited")
    commit(api, {"content/notes/new.fr.draft.yaml": "title: New\nsummary: Nouveau # x\n"})
    on_main(api, "rename", attribute="note.summary", to="teaser")
    made = merge(api)
    assert made.status == 200, made.data
    assert made.data["result"] == "merge"
    assert made.data["migrations"] == [applied("0001-rename-teaser", 2)]
    assert api.read("content/notes/new.fr.draft.yaml") == "title: New\nteaser: Nouveau # x\n"
    assert "# A comment\ntitle: One\nteaser: Edited\n" in api.read("content/notes/one.md")
    assert api.get("/api/notes/one").data["teaser"] == "Edited"
    assert lacking(api.root) == []
    assert git(api.root, "status", "--porcelain") == ""
    assert len(git(api.root, "log", "-1", "--format=%P").split()) == 2
    git(api.root, "fsck", "--strict")


def test_both_sides_edit_a_document_whose_type_and_attributes_are_renamed(api: Api) -> None:
    put(api, "notes/one", "next", summary="Edited")
    on_main(api, "rename", attribute="note.summary", to="teaser")
    on_main(api, "rename-type", type="note", to="memo", plural="memos")
    on_main(api, "wrap", type="memo", attributes=["teaser"], component="shared.look")
    put(api, "memos/one", number="2")
    git(api.root, "commit", "-qam", "ours")
    made = merge(api)
    assert made.status == 200, made.data
    names = ("0001-rename-teaser", "0002-rename-type-memo", "0003-wrap-shared-look")
    assert made.data["migrations"] == [applied(name, 1) for name in names]
    memo = api.get("/api/memos/one?populate=*").data
    assert (memo["number"], memo["look"]["teaser"]) == ("2", "Edited")
    assert git(api.root, "ls-files", "content/notes") == ""


def test_exchanged_names_are_brought_along(api: Api) -> None:
    put(api, "notes/one", "next", summary="Edited")
    for old, new in (("summary", "x"), ("number", "summary"), ("x", "number")):
        on_main(api, "rename", attribute=f"note.{old}", to=new)
    assert merge(api).status == 200
    note = api.get("/api/notes/one").data
    assert (note["number"], note["summary"]) == ("Edited", "1")


def test_a_branch_from_before_another_default_locale_keeps_its_locales(api: Api) -> None:
    commit(api, {"content/notes/three.fr.yaml": "title: Trois\n", "content/notes/two.json": '{"title": "2"}'})
    on_main(api, "set-locale", locale="fr")
    assert merge(api).status == 200
    assert api.read("content/notes/three.yaml") == "title: Trois\n"
    assert api.read("content/notes/three.en.yaml") == "title: Three\n"
    assert api.read("content/notes/two.en.json") == '{"title": "2"}'


def test_conflicts_are_reported_with_the_new_names(api: Api) -> None:
    put(api, "notes/one", "next", summary="Theirs")
    on_main(api, "rename", attribute="note.summary", to="teaser")
    put(api, "notes/one", teaser="Ours")
    git(api.root, "commit", "-qam", "ours")
    refused = merge(api)
    assert refused.status == 409
    [conflict] = refused.error["details"]["conflicts"]
    assert conflict["document"] == "note/one/en"
    assert conflict["attributes"].keys() == {"teaser"}
    made = merge(api, resolve={"documents": {"note/one/en": "theirs"}})
    assert made.status == 200, made.data
    assert api.get("/api/notes/one").data["teaser"] == "Theirs"


def test_values_that_a_migration_would_lose_prevent_the_merge(api: Api) -> None:
    commit(api, {"content/notes/three.yaml": "title: Three\nnumber: '3'\n"})
    put(api, "notes/one", "next", summary="Edited")
    on_main(api, "drop", attribute="note.number", lossy=True)
    head = git(api.root, "rev-parse", "HEAD")
    refused = merge(api)
    assert refused.status == 409
    assert (
        "0001-drop-note-number would lose values that the merged branch has changed"
        in refused.error["message"]
    )
    assert refused.error["details"] == {"files": ["content/notes/three.yaml"]}
    assert git(api.root, "rev-parse", "HEAD") == head
    commit(api, {"content/notes/three.yaml": "title: Three\n"})
    made = merge(api)
    assert made.status == 200, made.data
    assert "number" not in api.read("content/notes/one.md")
    assert "summary: Edited" in api.read("content/notes/one.md")


CODE = (
    "ATTRIBUTES = {'first': {'type': 'string'}, 'last': {'type': 'string'}}\n"
    "def split(value):\n    first, _, last = value.partition(' ')\n"
    "    return {'first': first, 'last': last}\n"
)


def test_code_is_not_executed_by_a_merge(api: Api) -> None:
    commit(api, {"content/authors/bob.yaml": "name: Bob Ray\n"})
    on_main(api, "split", attribute="author.name", file="names.py", code=CODE)
    on_main(api, "rename", attribute="author.first", to="given")
    made = merge(api)
    assert made.status == 200, made.data
    assert made.data["migrations"] == [
        {"name": name, "documents": 0, "applied": False}
        for name in ("0001-split-author-name", "0002-rename-given")
    ]
    assert api.read("content/authors/bob.yaml") == "name: Bob Ray\n"
    apply(api.root, scripts=True)
    assert api.read("content/authors/bob.yaml") == "given: Bob\nlast: Ray\n"


@pytest.mark.parametrize("into", ["", "next"])
def test_a_conflict_because_of_a_split_names_the_migration_and_the_branch_that_lacks_it(
    api: Api, into: str
) -> None:
    commit(api, {"content/authors/ann.yaml": "name: Anne Lee\n"})
    on_main(api, "split", attribute="author.name", file="names.py", code=CODE)
    refused = merge(api, into)
    assert refused.status == 409
    side = "The target branch" if into else "The merged branch"
    assert refused.error["message"].startswith(f"{side} lacks 0001-split-author-name. ")
    assert "bifolio migrate apply --scripts --write" in refused.error["message"]
    missing = {"name": "0001-split-author-name", "lackedBy": "ours" if into else "theirs"}
    assert refused.error["details"]["migrations"] == [missing]
    git(api.root, "checkout", "-q", "next")
    git(api.root, "merge", "-q", "-s", "ours", "--no-commit", "main")
    git(api.root, "checkout", "main", "--", "migrations", "content-types")
    apply(api.root, scripts=True)
    commit_all(api.root)
    git(api.root, "checkout", "-q", "main")
    assert merge(api).status == 200
    assert api.read("content/authors/ann.yaml") == "first: Anne\nlast: Lee\n"


def test_a_migration_that_is_not_possible_on_the_branch_prevents_the_merge(api: Api) -> None:
    on_branch(api, "rename", attribute="note.summary", to="lead")
    on_main(api, "rename", attribute="note.summary", to="teaser")
    refused = merge(api)
    assert refused.status == 409
    assert 'has no attribute "summary"' in refused.error["message"]


# --- from a branch with migrations ----------------------------------------------------------------


@pytest.mark.parametrize("into", ["", "next"])
def test_documents_of_the_target_are_brought_along(api: Api, into: str) -> None:
    def migrating(operation: str, **arguments: Any) -> Plan:
        return (on_main if into else on_branch)(api, operation, **arguments)

    migrating("rename", attribute="note.summary", to="teaser")
    other = "next" if into else "main"
    commit(api, {"content/notes/new.yaml": "title: New\nsummary: s\n"}, other)
    put(api, "notes/two", into, summary="Longer")
    if not into:
        git(api.root, "commit", "-qam", "ours")
    made = merge(api, into)
    assert made.status == 200, made.data
    assert made.data["migrations"] == [applied("0001-rename-teaser", 2)]
    target = into or "main"
    assert git(api.root, "show", f"{target}:content/notes/new.yaml") == "title: New\nteaser: s\n"
    assert '"teaser": "Longer"' in git(api.root, "show", f"{target}:content/notes/two.json")
    assert "teaser: Short" in git(api.root, "show", f"{target}:content/notes/one.md")
    assert git(api.root, "status", "--porcelain") == ""
    if not into:
        assert "Bifolio-Document: note/new" in git(api.root, "log", "-1", "--format=%B")


def test_two_branches_with_migrations_of_the_same_number(api: Api) -> None:
    put(api, "notes/two", "next", summary="Theirs")
    on_branch(api, "rename", attribute="note.number", to="count")
    on_main(api, "rename", attribute="note.summary", to="teaser")
    commit(api, {"content/notes/new.yaml": "title: New\nteaser: s\nnumber: '9'\n"}, "main")
    made = merge(api)
    assert made.status == 200, made.data
    assert made.data["migrations"] == [applied("0001-rename-count", 2), applied("0001-rename-teaser", 2)]
    assert api.read("content/notes/new.yaml") == "title: New\nteaser: s\ncount: '9'\n"
    assert api.get("/api/notes/two").data["teaser"] == "Theirs"
    assert api.get("/api/notes/one").data["count"] == "1"
    assert lacking(api.root) == []


def test_two_branches_with_migrations_of_the_same_name(api: Api) -> None:
    on_branch(api, "rename", attribute="author.name", to="label")
    on_main(api, "rename", attribute="note.number", to="label")
    made = merge(api)
    assert made.status == 200, made.data
    kept = sorted(path.name for path in (api.root / "migrations").iterdir())
    assert kept == ["0001-rename-label.yaml", "0002-rename-label.yaml"]
    assert "note.number" in api.read("migrations/0001-rename-label.yaml")
    assert api.get("/api/authors/ann").data["label"] == "Ann Lee"
    assert api.get("/api/notes/one").data["label"] == "1"


# --- permissions ----------------------------------------------------------------------------------

EDITOR = ("branch.merge", "branch.find", "note.find", "note.findOne", "note.update", "note.readDraft")


def merge_as(api: Api, may: Iterable[str]) -> Answer:
    name = f"editor {len(api.tokens)}"
    api.token(name, may=may)
    return api.ask("POST", "/branches/next/merge", name, json={})


@pytest.mark.parametrize("is_fast_forward", [True, False])
def test_a_branch_that_brings_a_migration_needs_full_access(api: Api, is_fast_forward: bool) -> None:
    on_branch(api, "rename", attribute="note.summary", to="teaser")
    if not is_fast_forward:
        commit(api, {"content/authors/bob.yaml": "name: Bob\n"}, "main")
    head = git(api.root, "rev-parse", "main")
    assert merge_as(api, EDITOR).status == 403
    assert git(api.root, "rev-parse", "main") == head
    assert "summary" in api.read("content/notes/one.md")
    assert merge(api).status == 200


def test_a_migration_without_other_changes_needs_full_access(api: Api) -> None:
    on_main(api, "rename", attribute="note.summary", to="teaser")
    git(api.root, "branch", "-f", "next")
    text = "operation: rename\nattribute: note.number\nto: count\n"
    commit(api, {"migrations/0002-rename-count.yaml": text})
    assert merge_as(api, EDITOR).status == 403
    commit(api, {"content/authors/bob.yaml": "name: Bob\n"}, "main")
    assert merge_as(api, EDITOR).status == 403


def test_an_impossible_migration_is_not_explained_without_full_access(api: Api) -> None:
    on_branch(api, "drop", attribute="note.summary", lossy=True)
    commit(api, {"content/notes/two.json": '{"title": "Two", "summary": "Changed"}'}, "main")
    refused = merge_as(api, EDITOR)
    assert (refused.status, refused.error["details"]) == (403, {})
    assert merge(api).status == 409


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("retype", {"attribute": "note.number", "type": "integer"}),
        ("drop", {"attribute": "note.number", "lossy": True}),
        ("rename", {"attribute": "note.number", "to": "size"}),
    ],
)
def test_only_full_access_is_told_why_a_migration_is_impossible(
    api: Api, operation: str, arguments: dict[str, Any]
) -> None:
    commit(api, {"content/notes/hidden.draft.yaml": "title: Draft\nnumber: many\nsize: large\n"})
    on_main(api, operation, **arguments)
    refused = merge_as(api, EDITOR)
    assert (refused.status, refused.error["details"]) == (409, {})
    assert not re.search("hidden|number|size", refused.text)
    explained = merge(api)
    assert (explained.status, "hidden.draft.yaml" in explained.text) == (409, True)


def test_an_editor_merges_a_branch_that_lacks_a_migration(api: Api) -> None:
    put(api, "notes/one", "next", summary="Edited")
    on_main(api, "rename-type", type="note", to="memo", plural="memos")
    on_main(api, "rename", attribute="memo.summary", to="teaser")
    refused = merge_as(api, [name.replace("note.update", "note.create") for name in EDITOR])
    assert refused.status == 403
    made = merge_as(api, [name.replace("note", "memo") for name in EDITOR])
    assert made.status == 200, made.data
    assert api.get("/api/memos/one").data["teaser"] == "Edited"


def test_documents_that_only_a_migration_changes_need_their_permission(api: Api) -> None:
    put(api, "notes/one", "next", number="2")
    on_main(api, "rename", attribute="author.name", to="label")
    commit(api, {"content/authors/late.yaml": "name: Late\n"}, "main")
    on_main(api, "set-locale", locale="fr")  # brings all documents of the target branch along
    assert merge_as(api, EDITOR).status == 403
    assert api.read("content/authors/late.yaml") == "name: Late\n"
    made = merge_as(api, (*EDITOR, "author.update", "author.readDraft"))
    assert made.status == 200, made.data
    assert api.read("content/authors/late.yaml") == "label: Late\n"


def test_what_the_branch_hides_stays_hidden_after_unwrap(api: Api) -> None:
    write(api.root, {**component("shared.look", {"secret": STRING})})
    schema = json.loads(api.read("content-types/note.json"))
    schema["attributes"]["look"] = {"type": "component", "component": "shared.look", "private": True}
    commit(api, {"content-types/note.json": json.dumps(schema, indent=2)}, "main")
    git(api.root, "branch", "-f", "next")
    commit(api, {"content/notes/two.json": '{"title": "Two", "look": {"secret": "x"}}'})
    on_main(api, "unwrap", attribute="note.look")
    schema = json.loads(api.read("content-types/note.json"))
    assert schema["attributes"]["secret"].pop("private") is True
    commit(api, {"content-types/note.json": json.dumps(schema, indent=2)}, "main")
    refused = merge_as(api, EDITOR)
    assert refused.status == 403
    assert "requires full access" in refused.error["message"]
    assert merge(api).status == 200
    assert api.get("/api/notes/two").data["secret"] == "x"


# --- git ------------------------------------------------------------------------------------------


def test_check_and_apply_after_a_merge_with_git(api: Api) -> None:
    commit(api, {"content/notes/new.yaml": "title: New\nsummary: s\n"})
    on_main(api, "rename", attribute="note.summary", to="teaser")
    git(api.root, "merge", "-q", "-m", "merged", "next")
    message = "the document lacks the migration 0001-rename-teaser"
    assert lacking(api.root) == [("content/notes/new.yaml", message)]
    assert apply(api.root).paths == ["content/notes/new.yaml"]
    assert api.read("content/notes/new.yaml") == "title: New\nteaser: s\n"
    assert lacking(api.root) == []


def test_a_merge_applies_only_so_many_migrations(api: Api) -> None:
    text = "operation: rename\ntype: note\nattribute: none{0}\nto: other{0}\n"
    names = [f"migrations/{number:04d}-rename.yaml" for number in range(1, MAX_MIGRATIONS + 2)]
    commit(api, {name: text.format(number) for number, name in enumerate(names)})
    before = git(api.root, "rev-parse", "main")
    answer = merge(api)
    assert answer.status == 409
    assert f"differ by {MAX_MIGRATIONS + 1} migrations" in answer.error["message"]
    assert git(api.root, "rev-parse", "main") == before


def test_documents_that_a_merge_with_git_left_are_brought_along_by_the_next_merge(api: Api) -> None:
    commit(api, {"content/notes/new.yaml": "title: New\nsummary: s\n"})
    on_main(api, "rename", attribute="note.summary", to="teaser")
    git(api.root, "checkout", "-q", "next")
    git(api.root, "merge", "-q", "-m", "merged", "main")
    git(api.root, "checkout", "-q", "main")
    made = merge(api)
    assert made.status == 200, made.data
    assert made.data["result"] == "merge"
    assert made.data["migrations"] == [applied("0001-rename-teaser", 1)]
    assert api.read("content/notes/new.yaml") == "title: New\nteaser: s\n"
    assert git(api.root, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "text", ["operation: [a]\n", "operation: rename\n", "operation: wrap\ntype: note\nattributes: 5\n"]
)
def test_a_branch_with_an_invalid_migration_is_not_merged(api: Api, text: str) -> None:
    commit(api, {"migrations/0001-x.yaml": text})
    answer = merge(api)
    assert answer.status == 409
    assert "A migration is invalid: migrations/0001-x.yaml:1:" in answer.body["error"]["message"]
