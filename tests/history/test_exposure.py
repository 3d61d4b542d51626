"""Tests that a merge without full access never shows a value that one of the branches hides.

In each case, the branch `next` hides the word `walrus`, but the schemas on main would show it.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.git import commit_all, git
from tests.site.migrations.helpers import migrate
from tests.sites import STRING, Api, Files, collection, component, make, relation, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

SITE = "search: {index: false}\nroles:\n  public:\n    note: [find, findOne]\n    author: [find, findOne]\n"
SECRET = {"type": "string", "private": True}
JSON = {"type": "json"}
TEXT = {"type": "richtext"}
NAMES = ("note", "author", "memo")
EDITOR = ("find", "findOne", "create", "update", "delete", "readDraft")
URLS = ("/api/notes?populate=*&locale=*", "/api/notes?populate[box][populate]=*", "/api/authors?populate=*")


def note(attributes: Mapping[str, Any], **options: Any) -> dict[str, str]:
    return collection("note", {"title": STRING, **attributes}, **options)


def part(name: str, **options: Any) -> dict[str, Any]:
    return {"type": "component", "component": name, **options}


def zone(*names: str) -> dict[str, Any]:
    return {"type": "dynamiczone", "components": list(names)}


@dataclass(frozen=True)
class Case:
    """Files on each branch. The files of `next` are committed after its schemas."""

    base: Files
    ours: Files
    theirs: Files
    migrates: Callable[[Path], object] | None = None
    removed: tuple[str, ...] = field(default=())


def serve(root: Path, case: Case) -> Api:
    write(root, {"site.yaml": SITE, ".gitignore": ".bifolio/\n", **case.base})
    write(root, {"content/notes/old.yaml": "title: Old\n"})
    commit_all(root)
    git(root, "checkout", "-qb", "next")
    write(root, case.theirs)
    _commit(root)
    git(root, "checkout", "-q", "main")
    if case.migrates:
        case.migrates(root)
    for path in case.removed:
        (root / path).unlink()
    write(root, case.ours)
    _commit(root)
    api = make(root, {})
    may = [f"{name}.{action}" for name in NAMES for action in EDITOR]
    api.token("editor", may=[*may, "branch.find", "branch.merge"])
    return api


def _commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "change")


def shown(api: Api) -> str:
    public = "".join(api.get(url, "public").raw.decode() for url in URLS)
    return public + api.get("/redirects").raw.decode()


def split(root: Path) -> None:
    code = 'ATTRIBUTES = {"first": {"type": "string"}}\ndef split(value):\n    return {"first": value}\n'
    migrate(root, "split", attribute="note.source", file="cut.py", code=code)


NEW = "content/notes/new.yaml"
LOOK = component("shared.look", {"label": STRING, "secret": SECRET})
OPEN_LOOK = component("meta.look", {"label": STRING, "secret": STRING})
IN_LOOK = {NEW: "title: New\nlook:\n  label: a\n  secret: walrus\n"}
OTHERS: dict[str, Any] = {"otherKeys": "extra"}
ALIASES = SITE + "redirects: {aliases: root}\nurls: {note: 'https://example.org/{documentId}'}\n"

CASES = {
    "a skipped split leaves a key to otherKeys": Case(
        note({"source": SECRET, "extra": JSON}, **OTHERS),
        {},
        {NEW: "title: New\nsource: walrus\n"},
        split,
    ),
    "an attribute removed by hand goes to otherKeys": Case(
        note({"source": SECRET, "extra": JSON}, **OTHERS),
        note({"extra": JSON}, **OTHERS),
        {NEW: "title: New\nsource: walrus\n"},
    ),
    "a password removed by hand goes to otherKeys": Case(
        note({"source": {"type": "password"}, "extra": JSON}, **OTHERS),
        note({"extra": JSON}, **OTHERS),
        {NEW: "title: New\nsource: walrus\n"},
    ),
    "an attribute renamed by hand goes to otherKeys": Case(
        note({"source": SECRET, "extra": JSON}, **OTHERS),
        note({"origin": SECRET, "extra": JSON}, **OTHERS),
        {NEW: "title: New\nsource: walrus\n"},
    ),
    "a component removed by hand goes to otherKeys": Case(
        {**LOOK, **note({"look": part("shared.look"), "extra": JSON}, **OTHERS)},
        note({"extra": JSON}, **OTHERS),
        IN_LOOK,
    ),
    "unknown keys go to otherKeys": Case(
        note({}), note({"extra": JSON}, **OTHERS), {NEW: "title: New\nsource: walrus\n"}
    ),
    "hidden otherKeys become an attribute": Case(
        note({"extra": {**JSON, "private": True}}, **OTHERS),
        note({"extra": {**JSON, "private": True}, "source": STRING}, **OTHERS),
        {NEW: "title: New\nsource: walrus\n"},
    ),
    "hidden otherKeys have another name": Case(
        note({"extra": {**JSON, "private": True}}, **OTHERS),
        note({"rest": JSON}, otherKeys="rest"),
        {NEW: "title: New\nsource: walrus\n"},
    ),
    "the component has another uid": Case(
        {**LOOK, **note({"look": part("shared.look")})},
        {**OPEN_LOOK, **note({"look": part("meta.look")})},
        IN_LOOK,
    ),
    "a repeatable component has another uid": Case(
        {**LOOK, **note({"look": part("shared.look", repeatable=True)})},
        {**OPEN_LOOK, **note({"look": part("meta.look", repeatable=True)})},
        {NEW: "title: New\nlook:\n  - label: a\n    secret: walrus\n"},
    ),
    "a nested component has another uid": Case(
        {**LOOK, **component("shared.box", {"look": part("shared.look")}),
         **note({"box": part("shared.box")})},
        {**OPEN_LOOK, **component("shared.box", {"look": part("meta.look")})},
        {NEW: "title: New\nbox:\n  look:\n    secret: walrus\n"},
    ),
    "a component is public in another place": Case(
        {**LOOK, **component("shared.box", {"look": part("shared.look", private=True)}),
         **note({"box": part("shared.box")})},
        {**component("shared.box", {"look": part("meta.look")}), **OPEN_LOOK},
        {NEW: "title: New\nbox:\n  look:\n    secret: walrus\n"},
    ),
    "a component in a dynamic zone is made again with the same uid": Case(
        {**LOOK, **note({"looks": zone("shared.look")})},
        component("shared.look", {"label": STRING, "secret": STRING}),
        {NEW: "title: New\nlooks:\n  - __component: shared.look\n    secret: walrus\n"},
    ),
    "a component becomes json": Case(
        {**LOOK, **note({"look": part("shared.look")})}, note({"look": JSON}), IN_LOOK
    ),
    "a list of components becomes an array": Case(
        {**LOOK, **note({"look": part("shared.look", repeatable=True)})},
        note({"look": {"type": "array"}}),
        {NEW: "title: New\nlook:\n  - secret: walrus\n"},
    ),
    "json becomes a component": Case(
        note({"look": {**JSON, "private": True}}),
        {**OPEN_LOOK, **note({"look": part("meta.look")})},
        IN_LOOK,
    ),
    "an attribute has another type": Case(
        note({"source": SECRET}), note({"source": {"type": "text"}}), {NEW: "title: New\nsource: walrus\n"}
    ),
    "a renamed attribute is made public": Case(
        note({"source": SECRET}),
        note({"origin": STRING}),
        {NEW: "title: New\nsource: walrus\n"},
        lambda root: migrate(root, "rename", attribute="note.source", to="origin"),
    ),
    "a renamed component is made public": Case(
        {**LOOK, **note({"look": part("shared.look")})},
        OPEN_LOOK,
        IN_LOOK,
        lambda root: migrate(root, "rename-component", component="shared.look", to="meta.look"),
    ),
    "a wrapped attribute is made public": Case(
        note({"source": SECRET}),
        component("shared.box", {"source": STRING}),
        {NEW: "title: New\nsource: walrus\n"},
        lambda root: migrate(root, "wrap", type="note", attributes=["source"], component="shared.box"),
    ),
    "a moved attribute is made public": Case(
        {**collection("author", {"name": STRING}),
         **note({"source": SECRET, "author": relation("oneToOne", "author")}),
         "content/authors/ann.yaml": "name: Ann\n"},
        collection("author", {"name": STRING, "source": STRING}),
        {NEW: "title: New\nauthor: ann\nsource: walrus\n"},
        lambda root: migrate(root, "move", attribute="note.source", to="author", via="author"),
    ),
    "a retyped attribute is made public": Case(
        note({"source": {"type": "text", "private": True}}),
        note({"source": STRING}),
        {NEW: "title: New\nsource: walrus\n"},
        lambda root: migrate(root, "retype", attribute="note.source", type="string"),
    ),
    "a renamed type is made public": Case(
        {**collection("memo", {"title": SECRET})},
        collection("author", {"title": STRING}),
        {"content/memos/new.yaml": "title: walrus\n"},
        lambda root: migrate(root, "rename-type", type="memo", to="author", plural="authors"),
    ),
    "the text belongs to another attribute": Case(
        note({"draft": {**TEXT, "private": True}, "body": TEXT}, body="draft"),
        note({"draft": {**TEXT, "private": True}, "body": TEXT}, body="body"),
        {"content/notes/new.md": "---\ntitle: New\n---\nwalrus\n"},
    ),
    "the text belongs to a new attribute": Case(
        note({"draft": {**TEXT, "private": True}}),
        note({"body": TEXT}),
        {"content/notes/new.md": "---\ntitle: New\n---\nwalrus\n"},
    ),
    "the file name belongs to another attribute": Case(
        note({"source": SECRET, "label": STRING}, fileName="{source}"),
        note({"source": SECRET, "label": STRING}, fileName="{label}"),
        {"content/notes/walrus.yaml": "title: New\ndocumentId: new\n"},
    ),
    "a type without drafts": Case(
        note({}, drafts=True), note({}), {"content/notes/new.draft.yaml": "title: walrus\n"}
    ),
    "another key marks drafts": Case(
        note({}, drafts=True, draftWhen={"draft": True}),
        note({}, drafts=True),
        {NEW: "title: walrus\ndraft: true\n"},
    ),
    "the folder belongs to another type": Case(
        {**note({"source": SECRET}), **collection("author", {"source": STRING})},
        {
            "content-types/note.json": note({"source": SECRET})["content-types/note.json"].replace(
                '"notes"', '"papers"'
            ),
            "content-types/author.json": collection("author", {"source": STRING})[
                "content-types/author.json"
            ].replace('"authors"', '"notes"'),
        },
        {NEW: "title: New\nsource: walrus\n"},
    ),
    "a pattern of files of another type covers the file": Case(
        {**note({"source": SECRET}, files=["posts/secret/{name}.yaml"]),
         **collection("author", {"source": STRING}, files=["posts/{name}.yaml"])},
        note({"source": SECRET}, files=["papers/{name}.yaml"]),
        {"posts/secret/new.yaml": "title: New\nsource: walrus\n"},
    ),
    "the inverse side of a private relation becomes public": Case(
        {**collection("author", {"name": STRING, "notes": relation("oneToMany", "note", mappedBy="author",
                                                                     private=True)}),
         **note({"author": relation("manyToOne", "author", inversedBy="notes", private=True)}),
         "content/authors/ann.yaml": "name: Ann\n"},
        collection("author", {"name": STRING, "notes": relation("oneToMany", "note", mappedBy="author")}),
        {"content/notes/walrus.yaml": "title: New\nauthor: ann\n"},
    ),
    "a private relation becomes public": Case(
        {**collection("author", {"name": STRING}),
         **note({"author": relation("manyToOne", "author", private=True)}),
         "content/authors/walrus.yaml": "name: Ann\n"},
        note({"author": relation("manyToOne", "author")}),
        {NEW: "title: New\nauthor: walrus\n"},
    ),
    "a relation to a type without permission becomes text": Case(
        {**collection("memo", {"title": STRING}), **note({"memo": relation("manyToOne", "memo")}),
         "content/memos/walrus.yaml": "title: Memo\n"},
        note({"memo": STRING}),
        {NEW: "title: New\nmemo: walrus\n"},
    ),
    "a relation to a type without permission goes to otherKeys": Case(
        {**collection("memo", {"title": STRING}), "content/memos/walrus.yaml": "title: Memo\n",
         **note({"memo": relation("manyToOne", "memo"), "extra": JSON}, **OTHERS)},
        note({"extra": JSON}, **OTHERS),
        {NEW: "title: New\nmemo: walrus\n"},
    ),
    "private aliases become redirects": Case(
        note({"aliases": {**JSON, "private": True}}),
        {**note({}), "site.yaml": ALIASES},
        {NEW: "title: New\naliases: [/walrus]\n"},
    ),
    "a new locale claims the file": Case(
        note({}, localized=True, files=["posts/{locale}/{name}.yaml"]),
        {"site.yaml": SITE + "locales: {available: [en, fr]}\n"},
        {"posts/fr/new.yaml": "title: walrus\n"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_merge_that_shows_a_hidden_value_needs_full_access(tmp_path: Path, name: str) -> None:
    api = serve(tmp_path, CASES[name])
    head = git(tmp_path, "rev-parse", "main")
    refused = api.ask("POST", "/branches/next/merge", "editor", json={})
    assert refused.status == 403, f"LEAK {name}: {'walrus' in shown(api)} {refused.text[:90]}"
    assert "full access" in refused.error["message"]
    assert git(tmp_path, "rev-parse", "main") == head
    api.accounts.close()


STRICT = {
    "an attribute": Case(note({"source": SECRET}), note({}), {NEW: "title: New\nsource: walrus\n"}),
    "an attribute of a component": Case(
        {**LOOK, **note({"look": part("shared.look")})}, component("shared.look", {"label": STRING}), IN_LOOK
    ),
    "a component": Case({**LOOK, **note({"look": part("shared.look")})}, note({}), IN_LOOK),
    "other keys": Case(
        note({"extra": {**JSON, "private": True}}, **OTHERS), note({}), {NEW: "title: New\nsource: walrus\n"}
    ),
}


@pytest.mark.parametrize("name", STRICT)
def test_a_branch_without_a_hidden_attribute_is_no_way_around(tmp_path: Path, name: str) -> None:
    api = serve(tmp_path, STRICT[name])
    git(tmp_path, "branch", "between", "main")
    write(tmp_path, {**OPEN_LOOK, **note({"source": STRING, "look": part("meta.look")})})
    _commit(tmp_path)
    api.site.refresh()
    first = api.ask("POST", "/branches/next/merge", "editor", json={"into": "between"})
    second = api.ask("POST", "/branches/between/merge", "editor", json={})
    assert "walrus" not in shown(api)
    assert (first.status, second.data["result"]) == (403, "nothing")
    api.accounts.close()


HARMLESS = {
    "a new attribute": Case(note({"source": SECRET}), note({"source": SECRET, "label": STRING}), {}),
    "a hidden attribute": Case(note({"label": STRING}), note({"label": SECRET}), {}),
    "a component with another uid": Case(
        {**LOOK, **note({"look": part("shared.look")})},
        {**component("meta.look", {"label": STRING, "secret": SECRET}), **note({"look": part("meta.look")})},
        {},
    ),
    "components that hide different attributes": Case(
        {
            **LOOK,
            **component("shared.view", {"label": SECRET, "secret": STRING}),
            **note({"looks": zone("shared.look", "shared.view")}),
        },
        note({"looks": zone("shared.look", "shared.view"), "label": STRING}),
        {},
    ),
    "a renamed component": Case(
        {**LOOK, **note({"look": part("shared.look")})},
        {},
        {},
        lambda root: migrate(root, "rename-component", component="shared.look", to="meta.look"),
    ),
    "hidden other keys": Case(
        note({"source": SECRET, "extra": {**JSON, "private": True}}, **OTHERS),
        note({"extra": {**JSON, "private": True}}, **OTHERS),
        {},
    ),
    "a hidden attribute that a migration drops": Case(
        note({"source": SECRET, "extra": JSON}, **OTHERS),
        {},
        {},
        lambda root: migrate(root, "drop", lossy=True, attribute="note.source"),
    ),
    "a wrapped hidden attribute": Case(
        note({"source": SECRET}),
        {},
        {},
        lambda root: migrate(root, "wrap", type="note", attributes=["source"], component="shared.box"),
    ),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_schema_that_hides_as_much_needs_no_full_access(tmp_path: Path, name: str) -> None:
    case = HARMLESS[name]
    api = serve(tmp_path, replace(case, theirs={NEW: "title: New\n"}, ours={**case.ours, "x.txt": "x"}))
    assert api.ask("POST", "/branches/next/merge", "editor", json={}).status == 200
    assert '"title":"New"' in shown(api)
    api.accounts.close()
