"""Tests of `POST /api/content-type-builder/changes`, which changes content types with their documents."""

import json
from pathlib import Path
from typing import Any

import pytest

from server.site.migrations.schema_changes import CHANGES, MAX_CHANGES
from server.storage.undo import MAX_WRITE_BYTES
from tests.git import commit_all, git
from tests.sites import INTEGER, STRING, Answer, Api, collection, component, documents, make, relation, write

PATH = "/api/content-type-builder/changes"
NOTE = """\
# Notes of the town.
kind: collectionType
info: {singularName: note, pluralName: notes, displayName: Note}
options: {draftAndPublish: true}
attributes:
  # The heading.
  title: {type: string}
  count:
    type: string  # of pages
  tag: {type: relation, relation: manyToOne, target: api::tag.tag, inversedBy: notes}
"""
FILES: dict[str, str] = {
    "site.yaml": "# ours\nsearch: {weights: {note.title: 3}}\nroles: {public: {note: [find]}}\n",
    "content-types/note.yaml": NOTE,
    **collection("tag", {"name": STRING, "notes": relation("oneToMany", "note", mappedBy="tag")}),
    **collection("empty", {"name": STRING}),
    **component("shared.seo", {"title": STRING}),
    "content/notes/a.yaml": "title: A  # first\ncount: '1'\ntag: red\n",
    "content/notes/b.yaml": "title: B\ncount: many\n",
    "content/notes/c.draft.yaml": "count: '3'\n",
    **documents("tags", red={"name": "Red"}),
}
ALL = [
    f"{type_}.{action}" for type_ in ("note", "tag", "empty") for action in ("find", "findOne", "readDraft")
]
EDITOR = [*ALL, "content-type.find", "content-type.write", "source.read"]


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = make(tmp_path, FILES)
    api.token("editor", may=EDITOR)
    return api


def plan(api: Api, *changes: dict[str, Any], who: str = "editor", **more: Any) -> Answer:
    before = files_of(api)
    answer = api.post(f"{PATH}?dryRun=true", {"changes": list(changes), **more}, who)
    assert files_of(api) == before
    return answer


def change(api: Api, *changes: dict[str, Any], tag: str = "*", **more: Any) -> Answer:
    data = {"changes": list(changes), **more}
    return api.post(PATH, data, "editor", headers={"If-Match": tag})


def files_of(api: Api) -> dict[str, bytes]:
    roots = ("content", "content-types", "migrations", "site.yaml")
    found = [path for root in roots for path in (api.root / root, *(api.root / root).rglob("*"))]
    return {path.relative_to(api.root).as_posix(): path.read_bytes() for path in found if path.is_file()}


ZONE = ["a.one", "a.two"]
LOCALIZED = {"pluginOptions": {"i18n": {"localized": True}}}
RENAME = {"operation": "rename", "attribute": "note.title", "to": "headline"}
DROP = {"operation": "drop", "attribute": "note.count"}
RETYPE = {"operation": "retype", "attribute": "note.count", "type": "integer"}


def test_a_plan_shows_the_diffs_of_schemas_settings_and_documents(api: Api) -> None:
    answer = plan(api, RENAME)
    [step] = answer.data["changes"]
    assert step == {
        "change": "rename note.title headline",
        "documents": 2,
        "files": ["content-types/note.yaml", "migrations/0001-rename-headline.yaml", "site.yaml"],
        "notes": [],
        "warnings": [],
        "losses": [],
        "lost": 0,
    }
    files = {file["path"]: file for file in answer.data["files"]}
    assert answer.data["total"] == len(files) == 5
    assert next(iter(files)) == "content-types/note.yaml"
    lines = files["content-types/note.yaml"]["lines"]
    assert [line for line in lines if line[0] in "+-"] == [
        "-  title: {type: string}",
        "+  headline: {type: string}",
    ]
    assert "+headline: A  # first" in files["content/notes/a.yaml"]["lines"]
    assert files["migrations/0001-rename-headline.yaml"]["action"] == "create"
    # The role may not read settings.
    assert files["site.yaml"]["lines"] == []
    shown = {file["path"]: file["lines"] for file in plan(api, RENAME, who="full").data["files"]}
    assert shown["site.yaml"] == [
        "@@ -2 +2 @@",
        "-search: {weights: {note.title: 3}}",
        "+search: {weights: {note.headline: 3}}",
    ]


def test_changes_are_applied_as_one_commit_and_served_at_once(api: Api) -> None:
    (api.root / ".gitignore").write_text(".bifolio/\n")
    write(api.root, {"site.yaml": FILES["site.yaml"] + "git: {commit: each}\n"})
    commit_all(api.root)
    api.site.refresh()
    added = {
        "operation": "add",
        "attribute": "note.subtitle",
        "definition": {"type": "string", "maxLength": 80},
        "before": "count",
    }
    wanted = (
        RENAME,
        added,
        {"operation": "options", "attribute": "note.headline", "options": {"maxLength": 9}},
    )
    tag = plan(api, *wanted).headers["ETag"]
    answer = change(api, *wanted, tag=tag)
    assert answer.status == 200, answer.text
    assert [step["change"] for step in answer.data["changes"]] == [
        "rename note.title headline",
        "add note.subtitle",
        "options note.headline",
    ]
    note = api.get("/api/notes/a", "full").data
    assert (note["headline"], note["subtitle"]) == ("A", None)
    assert api.read("content-types/note.yaml") == NOTE.replace(
        "  title: {type: string}\n",
        "  headline: {type: string, maxLength: 9}\n  subtitle:\n    maxLength: 80\n    type: string\n",
    )
    head = git(api.root, "log", "-2", "--format=%H %s").splitlines()
    assert head[0] == (
        f"{answer.headers['Bifolio-Commit']} "
        "Change content types: rename note.title, add note.subtitle, options note.headline"
    )
    assert len(head) == 2
    assert git(api.root, "status", "--porcelain") == ""


def test_a_branch_is_changed_without_the_served_files(api: Api) -> None:
    (api.root / ".gitignore").write_text(".bifolio/\n")
    commit_all(api.root)
    git(api.root, "branch", "rework")
    api.token("brancher", may=[*EDITOR, "branch.update"])
    before = files_of(api)
    answer = api.post(f"{PATH}?branch=rework", {"changes": [RENAME]}, "brancher", headers={"If-Match": "*"})
    assert answer.status == 200, answer.text
    assert files_of(api) == before
    assert "headline" in git(api.root, "show", "rework:content-types/note.yaml")
    assert "headline: B" in git(api.root, "show", "rework:content/notes/b.yaml")


def test_a_change_after_the_plan_is_not_overwritten(api: Api) -> None:
    tag = plan(api, DROP).headers["ETag"]
    write(api.root, {"content/notes/b.yaml": "title: B\ncount: 2\n"})
    answer = change(api, DROP, tag=tag, lossy=True)
    assert (answer.status, answer.error["name"]) == (412, "PreconditionFailedError")
    assert answer.error["details"]["version"] == plan(api, DROP).headers["ETag"].strip('"').split(".")[0]
    # Another file does not matter.
    tag = plan(api, DROP).headers["ETag"]
    write(api.root, {"content/tags/blue.json": '{"name": "Blue"}'})
    assert change(api, DROP, tag=tag, lossy=True).status == 200
    assert api.read("content/notes/b.yaml") == "title: B\n"


def test_a_write_needs_the_version_of_a_plan(api: Api) -> None:
    answer = api.post(PATH, {"changes": [RENAME]}, "editor")
    assert (answer.status, "If-Match" in answer.error["message"]) == (400, True)


def test_lost_values_are_listed_and_must_be_allowed(api: Api) -> None:
    [step] = plan(api, RETYPE).data["changes"]
    assert step["lost"] == 1
    assert step["losses"] == [
        'content/notes/b.yaml:2:8: the value of "count" can\'t be converted to integer (found "many", in "B")'
    ]
    before = files_of(api)
    refused = change(api, RETYPE)
    assert refused.status == 400
    assert "content/notes/b.yaml:2:8" in refused.error["message"]
    assert files_of(api) == before
    assert change(api, RETYPE, lossy=True).status == 200
    assert api.get("/api/notes/a", "full").data["count"] == 1


def test_all_changes_are_made_or_none(api: Api) -> None:
    before = files_of(api)
    answer = change(api, RENAME, {**DROP, "attribute": "note.cuont"})
    assert answer.status == 400
    assert answer.error["message"] == 'api::note.note has no attribute "cuont"; did you mean "count"?'
    assert answer.error["details"]["change"] == 1
    assert files_of(api) == before


def test_a_relation_gets_its_other_side(api: Api) -> None:
    raw = {"type": "relation", "relation": "manyToMany", "target": "api::tag.tag", "inversedBy": "related"}
    answer = change(api, {"operation": "add", "attribute": "note.topics", "definition": raw})
    assert answer.data["changes"][0]["notes"] == [
        "api::tag.tag gets the attribute related, the other side of this relation"
    ]
    assert json.loads(api.read("content-types/tag.json"))["attributes"]["related"] == {
        "type": "relation",
        "relation": "manyToMany",
        "target": "api::note.note",
        "mappedBy": "topics",
    }


def test_documents_that_would_become_invalid_are_named(api: Api) -> None:
    options = {"required": True, "unique": True, "maxLength": 3}
    write(api.root, {"content/notes/d.yaml": "title: A\ncount: '1'\n"})
    api.site.refresh()
    required = {"operation": "options", "attribute": "note.count", "options": options}
    [step] = plan(api, required).data["changes"]
    assert step["warnings"] == [
        'content/notes/b.yaml:2:8: "count" must be at most 3 characters',
        'content/notes/d.yaml:2:8: "count" is not unique',
    ]
    added = {"operation": "add", "attribute": "note.text", "definition": {"type": "text", "required": True}}
    [step] = plan(api, added).data["changes"]
    # Drafts may lack required values.
    assert step["warnings"] == [f'content/notes/{name}.yaml: "text" is required' for name in "abd"]


def test_types_and_components_are_created_and_deleted(api: Api) -> None:
    story = {
        "operation": "add-type",
        "type": "story",
        "plural": "stories",
        "display": "Story",
        "drafts": True,
    }
    seo = {"operation": "add-component", "component": "shared.hero", "display": "Hero"}
    raw = {"type": "component", "component": "shared.hero"}
    added = {"operation": "add", "attribute": "story.hero", "definition": raw}
    answer = change(api, story, seo, added, {"operation": "delete-type", "type": "empty"})
    assert answer.status == 200, answer.text
    described = {one["uid"]: one["schema"] for one in api.get("/api/content-type-builder/content-types").data}
    assert described["api::story.story"]["attributes"] == {"hero": raw}
    assert described["api::story.story"]["draftAndPublish"] is True
    assert "api::empty.empty" not in described
    assert not (api.root / "content-types/empty.json").exists()
    refused = change(api, {"operation": "delete-component", "component": "shared.hero"})
    assert refused.status == 400
    assert "content-types/story.json:12:5: attributes.hero uses shared.hero" in refused.error["message"]
    dropped = {"operation": "drop", "attribute": "story.hero"}
    assert change(api, dropped, {"operation": "delete-component", "component": "shared.hero"}).status == 200


def test_options_of_a_type_and_its_attributes_change(tmp_path: Path) -> None:
    api = make(tmp_path, {
        **collection("page", {"text": STRING, "zone": {"type": "dynamiczone", "components": ZONE}}),
        **component("a.one", {"x": STRING}), **component("a.two", {"x": STRING}),
        "site.yaml": "locales: {available: [en, fr], default: en}\n",
        "content/pages/p.yaml": "text: A\nzone: [{__component: a.one}]\n",
    })  # fmt: skip
    api.token("editor", "full-access")
    options = {
        "operation": "type-options",
        "type": "page",
        "display": "Leaf",
        "drafts": True,
        "localized": True,
    }
    answer = change(api, options)
    [step] = answer.data["changes"]
    assert step["warnings"] == []
    assert step["notes"] == [
        "all locales of a document share the values of these attributes until they are localized, too: "
        "text, zone"
    ]
    write(api.root, {"content/pages/p.fr.yaml": "text: B\n"})
    api.site.refresh()
    schema = json.loads(api.read("content-types/page.json"))
    assert schema["info"]["displayName"] == "Leaf"
    assert (schema["options"]["draftAndPublish"], schema["pluginOptions"]) == (
        True,
        LOCALIZED["pluginOptions"],
    )
    assert api.get("/api/pages/p?locale=fr", "full").data["text"] == "B"
    text = {"operation": "options", "attribute": "page.text"}
    assert change(api, {**text, "options": LOCALIZED}).data["changes"][0]["warnings"] == []
    shared = {"pluginOptions": {"i18n": {"localized": False}}}
    assert change(api, {**text, "options": shared}).data["changes"][0]["warnings"] == [
        'content/pages/p.yaml:1:7: "text" differs from the value in content/pages/p.fr.yaml'
    ]
    zone = {"operation": "options", "attribute": "page.zone", "options": {"components": ["a.two"]}}
    assert change(api, zone).data["changes"][0]["warnings"] == [
        'content/pages/p.yaml:2:1: "zone" can\'t contain a.one'
    ]


PAGES = {
    **collection("page", {"text": STRING}),
    "site.yaml": "locales: {available: [en, fr], default: en}\nroles: {public: {page: [find, findOne]}}\n",
    "content/pages/p.yaml": "text: A\n",
}
DRAFTS = {"operation": "type-options", "type": "page", "drafts": True}
TRANSLATIONS = {"operation": "type-options", "type": "page", "localized": True}


@pytest.mark.parametrize(
    ("wanted", "added", "reason"),
    [
        (
            DRAFTS,
            "tides.draft.yaml",
            "this draft would become a published document. Publish or discard it first.",
        ),
        (TRANSLATIONS, "p.fr.yaml", "this translation would become another document. Delete it first."),
    ],
)
def test_drafts_and_translations_never_become_other_documents(
    tmp_path: Path, wanted: dict[str, Any], added: str, reason: str
) -> None:
    api = make(tmp_path, PAGES)
    api.token("editor", "full-access")
    path = f"content/pages/{added}"
    answer = undoable_change(api, wanted)
    write(api.root, {path: "text: Secret\n"})
    api.site.refresh()
    before = files_of(api)
    # By an undo, or by a change.
    undone = undo(api, answer)
    assert (undone.status, undone.error["details"]) == (409, {"files": [path]})
    assert f"{path}: {reason}" in undone.error["message"]
    [option] = wanted.keys() - DRAFTS.keys() or {"drafts"}
    refused = change(api, {**wanted, option: False})
    assert (refused.status, f"{path}: {reason}" in refused.error["message"]) == (400, True)
    assert files_of(api) == before
    assert [page["documentId"] for page in api.get("/api/pages").data] == ["p"]
    # Without the file, both are possible.
    (api.root / path).unlink()
    api.site.refresh()
    assert undo(api, answer).status == 200
    # A published document does not become a draft or a translation.
    write(api.root, {path: "text: Public\n"})
    api.site.refresh()
    refused = change(api, wanted)
    assert f"{path}: would become a" in refused.error["message"]
    assert refused.error["message"].endswith("Rename this file first.")


def test_renaming_a_type_does_not_publish_other_files(api: Api) -> None:
    renamed = {"operation": "rename-type", "type": "tag", "to": "topic", "plural": "topics"}
    write(api.root, {"content/topics/plan.yaml": "name: Secret\n"})
    assert (
        "content/topics/plan.yaml: would become a document of api::topic.topic. Move this file first."
        in (change(api, renamed).error["message"])
    )
    (api.root / "content/topics/plan.yaml").unlink()
    answer = undoable_change(api, renamed)
    write(api.root, {"content/tags/plan.yaml": "name: Secret\n"})
    undone = undo(api, answer)
    assert (undone.status, "content/tags/plan.yaml" in undone.error["message"]) == (409, False)
    (api.root / "content/tags/plan.yaml").unlink()
    assert undo(api, answer).status == 200


def test_the_undo_of_a_deletion_does_not_publish_a_draft(tmp_path: Path) -> None:
    api = make(tmp_path, PAGES)
    api.token("editor", "full-access")
    assert change(api, DRAFTS).status == 200
    write(api.root, {"content/pages/tides.draft.yaml": "text: Secret\n"})
    api.site.refresh()
    deleted = api.ask("DELETE", "/api/pages/tides", "editor", headers={"Prefer": "undo"})
    assert "Bifolio-Undo" in deleted.headers
    assert change(api, {**DRAFTS, "drafts": False}).status == 200
    refused = undo(api, deleted)
    assert refused.error["details"] == {"files": ["content/pages/tides.draft.yaml"]}
    assert [page["documentId"] for page in api.get("/api/pages").data] == ["p"]
    assert change(api, DRAFTS).status == 200
    assert undo(api, deleted).status == 200


UNDO = {"If-Match": "*", "Prefer": "undo"}
DELETE = [
    {"operation": "drop", "attribute": "tag.notes"},
    {"operation": "delete-type", "type": "note"},
]


def undoable_change(api: Api, *changes: dict[str, Any]) -> Answer:
    return api.post(PATH, {"changes": list(changes), "lossy": True}, "editor", headers=UNDO)


def undo(api: Api, answer: Answer) -> Answer:
    return api.post(f"/batch/undo/{answer.headers['Bifolio-Undo']}", None, "editor")


def test_a_type_is_deleted_with_its_documents_and_undone(api: Api) -> None:
    (api.root / ".gitignore").write_text(".bifolio/\n")
    write(api.root, {"site.yaml": FILES["site.yaml"] + "git: {commit: each}\n"})
    commit_all(api.root)
    api.site.refresh()
    before = files_of(api)
    dropped, step = plan(api, *DELETE).data["changes"]
    assert dropped["notes"] == ["api::tag.tag loses its relation notes to api::note.note"]
    assert (step["documents"], step["lost"]) == (3, 3)
    assert step["losses"] == [
        f"content/notes/{name}: this document would be deleted{title}"
        for name, title in (("a.yaml", ' ("A")'), ("b.yaml", ' ("B")'), ("c.draft.yaml", ""))
    ]
    assert step["notes"] == ["the role public loses its permissions for the type"]
    assert change(api, *DELETE).status == 400
    answer = undoable_change(api, *DELETE)
    assert answer.status == 200, answer.text
    assert not (api.root / "content/notes/a.yaml").exists()
    assert "note" not in api.read("site.yaml")
    assert api.get("/api/notes", "full").status == 404
    undone = undo(api, answer)
    assert undone.status == 200, undone.text
    assert files_of(api) == before
    assert api.get("/api/notes/a", "full").data["title"] == "A"
    assert api.get("/api/tags/red?populate=notes", "full").data["notes"][0]["title"] == "A"
    assert git(api.root, "log", "-2", "--format=%s").splitlines() == [
        "Undo a change",
        "Change content types: drop tag.notes, delete-type note",
    ]
    assert git(api.root, "status", "--porcelain") == ""


@pytest.mark.parametrize("changes", [[RENAME], [RETYPE], [DROP], [
    {"operation": "rename-type", "type": "note", "to": "memo", "plural": "memos"}]])  # fmt: skip
def test_a_schema_change_is_undone_with_all_documents(api: Api, changes: list[dict[str, Any]]) -> None:
    before = files_of(api)
    answer = undoable_change(api, *changes)
    assert files_of(api) != before
    assert undo(api, answer).status == 200
    assert files_of(api) == before
    assert api.get("/api/notes/a", "full").data["title"] == "A"
    assert undo(api, answer).status == 404


RENAME_TYPE = {"operation": "rename-type", "type": "note", "to": "memo", "plural": "memos"}


def grant(api: Api, role: str, permissions: dict[str, list[str]]) -> None:
    tag = api.get("/roles").headers["ETag"]
    data = {"data": {"permissions": permissions}}
    assert api.ask("PUT", f"/roles/{role}", json=data, headers={"If-Match": tag}).status == 200


def test_permissions_that_a_renamed_type_got_move_back_with_its_name(api: Api) -> None:
    write(api.root, {"site.yaml": "# ours\nroles:\n  public: {tag: [find]}  # open\n"})
    api.site.refresh()
    renamed = undoable_change(api, RENAME_TYPE)
    grant(api, "public", {"memo": ["find"]})
    assert "public: {tag: [find], memo: [find]}" in api.read("site.yaml")
    undone = api.post(f"/batch/undo/{renamed.headers['Bifolio-Undo']}", None, "editor", headers=UNDO)
    assert undone.status == 200
    assert api.read("site.yaml") == "# ours\nroles:\n  public: {tag: [find], note: [find]}  # open\n"
    assert api.get("/api/notes", "public").status == 200
    assert undo(api, undone).status == 200
    assert api.read("site.yaml") == "# ours\nroles:\n  public: {tag: [find], memo: [find]}  # open\n"
    assert api.get("/api/memos", "public").status == 200


def test_an_undo_says_which_later_settings_it_would_break(api: Api) -> None:
    renamed = undoable_change(api, RENAME_TYPE)
    grant(api, "public", {"memo": ["find", "findOne"]})
    before = files_of(api)
    refused = undo(api, renamed)
    assert (refused.status, refused.error["details"]) == (409, {"files": ["site.yaml"]})
    assert files_of(api) == before
    add = {"operation": "add-type", "type": "plan", "plural": "plans", "display": "Plan", "drafts": False}
    made = undoable_change(api, add)
    grant(api, "public", {"plan": ["find"]})
    before = files_of(api)
    refused = undo(api, made)
    assert (refused.status, 'unknown content type "plan"' in refused.error["message"]) == (409, True)
    assert files_of(api) == before


def test_a_deletion_says_how_many_documents_git_does_not_have(api: Api) -> None:
    (api.root / ".gitignore").write_text(".bifolio/\n")
    delete = {"operation": "delete-type", "type": "note"}
    drop = {"operation": "drop", "attribute": "tag.notes"}

    def notes() -> list[str]:
        kept: list[str] = plan(api, drop, delete).data["changes"][1]["notes"]
        return [note for note in kept if note.startswith("git ")]

    undo_only = "only an undo can restore it, for an hour"
    assert notes() == [f"git does not have the content of 3 of these 3 files; {undo_only}"]
    commit_all(api.root)
    assert notes() == []
    # One is new, and one has changed.
    write(api.root, {"content/notes/a.yaml": "title: Changed\n", "content/notes/d.yaml": "title: New\n"})
    api.site.refresh()
    assert notes() == [f"git does not have the content of 2 of these 4 files; {undo_only}"]
    # The id works after any time within the hour, in another session too.
    before = files_of(api)
    answer = undoable_change(api, drop, delete)
    assert not (api.root / "content/notes/d.yaml").exists()
    assert undo(api, answer).status == 200
    assert files_of(api) == before
    # Too large for an undo. The plan shows the lines of 60 other files.
    write(api.root, {f"content/notes/n{i}.yaml": "title: N\n" for i in range(60)})
    write(api.root, {"content/notes/z.yaml": f"title: {'x' * MAX_WRITE_BYTES}\n"})
    api.site.refresh()
    assert notes() == ["git does not have the content of 63 of these 65 files; nothing can restore it"]


def test_a_document_that_was_added_after_the_plan_is_not_deleted_with_its_type(api: Api) -> None:
    tag = plan(api, *DELETE).headers["ETag"]
    write(api.root, {"content/notes/new.yaml": "title: New\n"})
    before = files_of(api)
    assert change(api, *DELETE, tag=tag, lossy=True).status == 412
    assert files_of(api) == before
    answer = undoable_change(api, *DELETE)
    # The type exists again, with a document of its own.
    write(
        api.root,
        {"content-types/note.yaml": NOTE.partition("  tag:")[0], "content/notes/a.yaml": "title: Mine\n"},
    )
    api.site.refresh()
    before = files_of(api)
    assert undo(api, answer).status == 409
    assert files_of(api) == before


def test_an_undo_keeps_what_was_saved_with_the_new_schema(api: Api) -> None:
    answer = undoable_change(api, RENAME)
    write(api.root, {"content/notes/new.yaml": "headline: New\n"})
    api.site.refresh()
    before = files_of(api)
    refused = undo(api, answer)
    assert (refused.status, refused.error["details"]) == (409, {"files": ["content/notes/new.yaml"]})
    assert files_of(api) == before
    write(api.root, {"content/notes/new.yaml": "count: '4'\n"})
    api.site.refresh()
    assert undo(api, answer).status == 200
    answer = undoable_change(api, RETYPE)
    write(api.root, {"content-types/note.yaml": api.read("content-types/note.yaml") + "# More.\n"})
    assert "content-types/note.yaml" in undo(api, answer).error["message"]


def test_the_text_of_markdown_files_keeps_its_attribute(tmp_path: Path) -> None:
    text = {"type": "richtext"}
    about = "---\ntitle: About\n---\nWe report.\n"
    files = {
        **collection("page", {"title": STRING, "body": text, "notes": text}),
        "content/pages/about.md": about,
    }
    api = make(tmp_path, files)
    api.token("editor", "full-access")
    answer = undoable_change(api, {"operation": "rename", "attribute": "page.body", "to": "text"})
    assert api.get("/api/pages/about").data["text"] == "We report."
    # In the text of a Markdown file, a later document is the same in both schemas. A key is not.
    write(api.root, {"content/pages/new.md": about, "content/pages/old.yaml": "text: Old\n"})
    api.site.refresh()
    assert undo(api, answer).error["details"] == {"files": ["content/pages/old.yaml"]}
    (api.root / "content/pages/old.yaml").unlink()
    api.site.refresh()
    assert undo(api, answer).status == 200
    assert api.get("/api/pages/new").data["body"] == "We report."
    # The first `richtext` attribute is the text, unless the schema names another one.
    added = {"operation": "add", "attribute": "page.lead", "definition": text, "before": "title"}
    order = {"operation": "reorder", "type": "page", "attributes": ["lead", "notes", "title", "body"]}
    for wanted in (added, order):
        assert change(api, wanted).status == 200
        page = api.get("/api/pages/about").data
        assert (page["body"], page["lead"], page["notes"]) == ("We report.", None, None)


def test_an_undo_of_a_schema_change_needs_its_permissions(api: Api) -> None:
    answer = undoable_change(api, RENAME)
    for missing in ("content-type.write", "source.read"):
        api.accounts.revoke_token("editor")
        api.token("editor", may=[each for each in EDITOR if each != missing])
        assert undo(api, answer).status == 403
    api.accounts.revoke_token("editor")
    api.token("editor", may=EDITOR)
    assert undo(api, answer).status == 200


def test_attributes_are_reordered_with_their_comments(api: Api) -> None:
    order = {"operation": "reorder", "type": "note", "attributes": ["tag", "count", "title"]}
    assert change(api, order).status == 200
    assert api.read("content-types/note.yaml").partition("attributes:\n")[2] == (
        "  tag: {type: relation, relation: manyToOne, target: api::tag.tag, inversedBy: notes}\n"
        "  count:\n    type: string  # of pages\n"
        "  # The heading.\n  title: {type: string}\n"
    )


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"operation": "split"}, "changes[0]: operation must be one of add, options"),
        ({"operation": "renam"}, 'did you mean "rename"?'),
        ({"operation": "add", "attribute": "note.x"}, "changes[0]: definition must be an object"),
        ({**RENAME, "code": "x"}, "changes[0]: code is unknown"),
        ({**RENAME, "to": "../x"}, "changes[0]: to must be the name of an attribute"),
        ({**RENAME, "to": "id"}, "an attribute can't be named \"id\""),
        ({**RENAME, "to": "count"}, 'already has an attribute "count"'),
        ({**RENAME, "attribute": "user.email"}, 'unknown type "user"'),
        ({"operation": "add", "attribute": "note.title", "definition": {"type": "text"}}, "already has"),
        ({"operation": "add", "attribute": "note.x", "definition": {"type": "strng"}},
         'Did you mean "string"?'),
        ({"operation": "add", "attribute": "note.x", "definition": {"type": "text", "requird": True}},
         'unknown option "requird"; did you mean "required"?'),
        ({"operation": "options", "attribute": "note.count", "options": {"type": "integer"}}, "use retype"),
        ({"operation": "options", "attribute": "note.tag", "options": {"target": "api::x.x"}},
         "documents refer to the old target; add another relation"),
        ({"operation": "options", "attribute": "note.tag", "options": LOCALIZED},
         "always has a separate value in each locale"),
        ({"operation": "options", "attribute": "note.title", "options": LOCALIZED},
         "api::note.note is not localized"),
        ({"operation": "options", "attribute": "note.title", "options": {"pluginOptions": {"i18n": {}}}},
         "pluginOptions must look like"),
        ({"operation": "type-options", "type": "shared.seo", "drafts": True}, "has no drafts or locales"),
        ({"operation": "type-options", "type": "note"}, "at least one option to change: display, drafts"),
        ({"operation": "type-options", "type": "note", "drafts": False},
         "c.draft.yaml: this draft would become a published document. Publish or discard it first"),
        ({"operation": "options", "attribute": "note.count", "options": {"maxLength": "x"}},
         "a whole number"),
        ({"operation": "add", "attribute": "note.x", "definition": {"type": "decimal", "default": "1,5"}},
         'default of attribute "x" must be a number (found "1,5")'),
        ({"operation": "options", "attribute": "note.title", "options": {"minLength": 9, "maxLength": 5}},
         'minLength of attribute "title" is 9, but maxLength is 5'),
        ({"operation": "reorder", "type": "note", "attributes": ["title"]}, "must name each attribute"),
        ({"operation": "add-type", "type": "Note", "plural": "noted"}, 'The API id "Note" is used in'),
        ({"operation": "add-type", "type": "user", "plural": "people"}, 'The API id "user" is reserved'),
        ({"operation": "add-type", "type": "source", "plural": "sources"}, "would no longer work"),
        ({"operation": "rename-type", "type": "tag", "to": "Branch", "plural": "bs"}, "would no longer work"),
        ({"operation": "add-type", "type": "x", "plural": "xs", "drafts": 3}, "drafts must be true or false"),
        ({"operation": "add-type", "type": "x", "plural": "xs", "files": "{name}.yaml"}, "files is unknown"),
        ({"operation": "add-component", "component": "shared.SEO"}, "shared.SEO already exists"),
        ({"operation": "delete-type", "type": "tag"}, "attributes.tag uses api::tag.tag"),
        ({"operation": "delete-type", "type": "shared.seo"}, "use delete-component"),
        ({"operation": "drop", "attribute": "note.tag"}, "api::tag.tag.notes shows the other side"),
    ],
)  # fmt: skip
def test_an_impossible_change_says_why(api: Api, wanted: dict[str, Any], said: str) -> None:
    answer = plan(api, wanted)
    assert answer.status == 400
    assert said in answer.error["message"]
    assert answer.error["details"]["change"] == 0


def test_the_list_of_changes_is_bounded(api: Api) -> None:
    for data in ([], [RENAME] * (MAX_CHANGES + 1), "rename"):
        answer = api.post(f"{PATH}?dryRun=true", {"changes": data}, "editor")
        assert (answer.status, "must be a list of 1 to" in answer.error["message"]) == (400, True)
    assert "split" not in CHANGES
    assert "script" not in CHANGES


def test_long_plans_show_the_first_files_and_count_the_others(api: Api) -> None:
    write(api.root, {f"content/notes/n{i}.yaml": "title: N\ncount: 2\n" for i in range(100)})
    api.site.refresh()
    answer = plan(api, DROP)
    assert answer.data["total"] == 105
    assert len(answer.data["files"]) == 60
    assert answer.data["changes"][0]["lost"] == 103
    assert len(answer.data["changes"][0]["losses"]) == 20


@pytest.mark.parametrize("missing", ["content-type.write", "source.read", "note.findOne", "note.readDraft"])
def test_changes_need_permission_to_read_the_documents_that_they_touch(api: Api, missing: str) -> None:
    api.token("other", may=[each for each in EDITOR if each not in (missing, "tag.findOne")])
    changes: list[dict[str, Any]] = [
        RENAME, DROP, RETYPE,
        {"operation": "options", "attribute": "note.title", "options": {"maxLength": 1}},
        {"operation": "rename-type", "type": "note", "to": "memo", "plural": "memos"}, *DELETE[1:],
    ]  # fmt: skip
    for wanted in changes:
        for query in ("", "?dryRun=true"):
            answer = api.post(f"{PATH}{query}", {"changes": [wanted]}, "other", headers={"If-Match": "*"})
            assert answer.status == 403, answer.text
            assert answer.error["details"] == {"permission": missing}
            if missing.startswith("note."):
                assert answer.error["message"] == (
                    f"This change reads documents of api::note.note, so it needs the permission {missing}"
                )


def test_changes_need_no_permission_for_the_documents_of_other_types(api: Api) -> None:
    api.token("other", may=[each for each in EDITOR if not each.startswith("tag.")])
    added = {"operation": "add", "attribute": "empty.more", "definition": STRING}
    for wanted in (RENAME, RETYPE, DROP, added):
        assert plan(api, wanted, who="other").status == 200
    # A document that an earlier change has moved is still one of a type that the caller may not read.
    moved = {"operation": "rename-type", "type": "tag", "to": "topic", "plural": "topics"}
    later = {"operation": "options", "attribute": "topic.name", "options": {"maxLength": 1}}
    for changes in ([moved], [moved, later]):
        answer = api.post(f"{PATH}?dryRun=true", {"changes": changes}, "other")
        assert answer.error["details"] == {"permission": "tag.findOne"}


def test_passwords_are_not_shown(tmp_path: Path) -> None:
    api = make(tmp_path, {
        **collection("member", {"name": STRING, "key": {"type": "password"}, "age": INTEGER}),
        **documents("members", a={"name": "A", "key": "$argon2id$hunter2", "age": 3}),
    })  # fmt: skip
    moved = {"operation": "wrap", "type": "member", "attributes": ["key", "age"], "component": "shared.box"}
    renamed = {"operation": "rename-type", "type": "member", "to": "person", "plural": "people"}
    for wanted in (moved, renamed, {"operation": "drop", "attribute": "member.key"}):
        answer = plan(api, wanted, who="full")
        assert answer.status == 200, answer.text
        assert "hunter2" not in answer.text
    moved = {"operation": "drop", "attribute": "member.age"}
    assert 'has a value (found 3, in "A")' in plan(api, moved, who="full").text.replace("\\", "")
