"""Renaming: the editor's changes give the same files as `bifolio mv`."""

import shutil
from pathlib import Path

import pytest

from server.errors import ConflictError, ValidationError
from server.lsp.new_document import new_document
from server.lsp.positions import uri_of
from server.lsp.renaming import prepare_rename, rename, will_rename
from server.lsp.view import EditorCapabilities
from server.service.authorship import caller_of_command, writes_of_command
from server.service.opening import Mode, open_site
from server.service.renaming import rename_content
from server.write.renaming.rename import RenameRequest
from tests.lsp.edits import apply_workspace_edit
from tests.lsp.sites import FILES, view_of
from tests.sites import write

ARTICLE = "content/articles/a.md"
AUTHOR = {"position": {"line": 2, "character": 9}}  # of the article


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "site", FILES)
    return tmp_path / "site"


def files(root: Path) -> dict[str, bytes]:
    content = root / "content"
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in content.rglob("*") if p.is_file()}


def moved(root: Path, old: str, new: str) -> dict[str, bytes]:
    """Return the files of a copy of a site after `bifolio mv`."""
    copy = root.parent / "copy"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".bifolio"))
    opened = open_site(copy, Mode.COMMAND)
    rename_content(writes_of_command(opened), caller_of_command(opened), RenameRequest(old, new))
    return files(copy)


@pytest.mark.parametrize(
    ("path", "position", "old", "new"),
    [
        (ARTICLE, AUTHOR, "author/ann", "anna"),
        (ARTICLE, {"position": {"line": 3, "character": 8}}, "tag/fog", "mist"),
        (ARTICLE, {"position": {"line": 1, "character": 8}}, "article/a", "alpha"),
        (
            "content/articles/2024/b.json",
            {"position": {"line": 0, "character": 12}},
            "article/2024--b",
            "2024--c",
        ),
        ("content/uploads/fog.png.yaml", {"position": {}}, "content/uploads/fog.png", "sea/mist.png"),
    ],
)
def test_a_rename_makes_the_files_that_mv_makes(
    root: Path, path: str, position: dict[str, object], old: str, new: str
) -> None:
    kind = old.rpartition("/")[0]
    wanted = moved(root, old, f"{kind}/{new}")
    before = files(root)
    edit = rename(view_of(root), path, {**position, "newName": new}, {})
    assert files(root) == before  # nothing is written behind the editor's back
    apply_workspace_edit(edit)
    assert files(root) == wanted


def test_unsaved_texts_are_renamed_too(root: Path) -> None:
    text = "---\ntitle: First\nauthor: bob  # not saved\n---\n"
    edit = rename(view_of(root, {ARTICLE: text}), ARTICLE, {**AUTHOR, "newName": "rob"}, {ARTICLE: 7})
    changed, renamed = edit["documentChanges"]
    assert changed["textDocument"] == {"uri": uri_of(root / ARTICLE), "version": 7}
    [one] = changed["edits"]
    assert (one["newText"], one["range"]["start"]) == ("r", {"line": 2, "character": 8})
    assert renamed["newUri"].endswith("content/authors/rob.yaml")


def test_what_can_be_renamed(root: Path) -> None:
    view = view_of(root)
    found = prepare_rename(view, ARTICLE, AUTHOR)
    assert found == {
        "range": {"start": {"line": 2, "character": 8}, "end": {"line": 2, "character": 11}},
        "placeholder": "ann",
    }
    title = prepare_rename(view, ARTICLE, {"position": {"line": 1, "character": 9}})
    assert title is not None
    assert title["placeholder"] == "a"
    assert prepare_rename(view, ARTICLE, {"position": {"line": 3, "character": 1}}) is None
    assert prepare_rename(view, ARTICLE, {"position": {"line": 7, "character": 1}}) is None


def test_a_rename_that_is_not_possible_is_refused(root: Path) -> None:
    with pytest.raises(ConflictError, match="already exists"):
        rename(view_of(root), ARTICLE, {**AUTHOR, "newName": "bob"}, {})
    with pytest.raises(ValidationError):
        rename(view_of(root), ARTICLE, {**AUTHOR, "newName": "a/../b"}, {})
    for name, character in (("guides/ts files?", " "), ("a#b", "#"), ("100%", "%"), ("a(b)", r"\(")):
        with pytest.raises(ValidationError, match=f'contains "{character}", .* can contain letters'):
            rename(view_of(root), ARTICLE, {**AUTHOR, "newName": name}, {})
    assert rename(view_of(root), ARTICLE, {**AUTHOR, "newName": "zoë-2.0_b"}, {})
    with pytest.raises(ValidationError, match="bifolio mv"):
        rename(view_of(root, client=EditorCapabilities()), ARTICLE, {**AUTHOR, "newName": "x"}, {})


LINKS = """---
title: Links
---

[a](a.md#top) [b](2024/b) [page](/blog/a/#top) [c](/blog/c) ![](/uploads/fog.png) [ann](/by/ann/)

```
[a](a.md) in code
```

Write `[a](a.md)` or ``a ` [a](a.md)``. <!-- [a](a.md) -->
"""


def test_a_rename_at_a_link_changes_all_links_outside_of_code(root: Path) -> None:
    write(root, {"content/articles/links.md": LINKS, "content/articles/2024/other.md": "[a](../a.md)\n"})
    view, link = view_of(root), {"position": {"line": 4, "character": 6}}
    found = prepare_rename(view, "content/articles/links.md", link)
    assert found is not None
    assert (found["placeholder"], found["range"]["start"]["character"]) == ("a", 4)
    apply_workspace_edit(rename(view, "content/articles/links.md", {**link, "newName": "2023--new"}, {}))
    assert (root / "content/articles/2023--new.md").exists()
    changed = LINKS.replace("[a](a.md#top)", "[a](2023--new.md#top)").replace("/blog/a/", "/blog/2023--new")
    assert (root / "content/articles/links.md").read_text() == changed
    assert (root / "content/articles/2024/other.md").read_text() == "[a](../2023--new.md)\n"


@pytest.mark.parametrize(("key", "new", "changes"), [
    ("content/uploads/fog.png.yaml", "sea/mist.png", {"/uploads/fog.png": "/uploads/sea/mist.png"}),
    ("content/authors/ann.yaml", "anna", {"/by/ann/": "/by/anna/"}),
    ("content/articles/2024/b.json", "2025--z", {"2024/b": "2025/z"}),
])  # fmt: skip
def test_links_to_what_is_renamed(root: Path, key: str, new: str, changes: dict[str, str]) -> None:
    write(root, {"content/articles/links.md": LINKS})
    apply_workspace_edit(rename(view_of(root), key, {"position": {}, "newName": new}, {}))
    wanted = LINKS
    for old, other in changes.items():
        wanted = wanted.replace(old, other)
    assert (root / "content/articles/links.md").read_text() == wanted


def test_relative_links_in_a_file_that_moves(root: Path) -> None:
    write(root, {"content/articles/links.md": LINKS})
    old, new = (uri_of(root / f"content/articles/{name}.md") for name in ("links", "x/l"))
    edit = will_rename(view_of(root), [{"oldUri": old, "newUri": new}], {})
    assert edit is not None
    apply_workspace_edit(edit)
    changed = LINKS.replace("(a.md#top)", "(../a.md#top)").replace("(2024/b)", "(../2024/b)")
    assert (root / "content/articles/links.md").read_text() == changed


def test_a_file_that_is_renamed_in_the_editor_takes_its_references_along(root: Path) -> None:
    wanted = moved(root, "content/authors/ann.yaml", "content/authors/anna.yaml")
    named = {
        "oldUri": uri_of(root / "content/authors/ann.yaml"),
        "newUri": uri_of(root / "content/authors/anna.yaml"),
    }
    edit = will_rename(view_of(root), [named], {})
    assert edit is not None
    apply_workspace_edit(edit)
    (root / "content/authors/ann.yaml").rename(root / "content/authors/anna.yaml")
    assert files(root) == wanted
    assert will_rename(view_of(root), [{"oldUri": "file:///a", "newUri": "file:///b"}, 3], {}) is None


def test_a_new_document_is_created_from_its_schema(root: Path) -> None:
    edit, uri = new_document(view_of(root), {"type": "article", "name": "2025/new", "locale": "fr"})
    assert uri.endswith("content/articles/2025/new.fr.md")
    apply_workspace_edit(edit)
    assert (root / "content/articles/2025/new.fr.md").read_text().startswith("---\ntitle:\nslug: new\n")
    for wrong in (
        {},
        {"type": "articl", "name": "x"},
        {"type": "tag", "name": "../x"},
        {"type": "tag", "name": "fog"},
    ):
        with pytest.raises(ValidationError):
            new_document(view_of(root), wrong)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a\\b", "backslash"),
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        ("x" * 300, "255 bytes"),
        ("é" * 130, "255 bytes"),
    ],
)
def test_a_new_document_needs_a_valid_file_name(root: Path, name: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        new_document(view_of(root), {"type": "tag", "name": name})
