"""Checks of unsaved texts: the problems are those that `bifolio check` finds after the texts are saved."""

import shutil
from pathlib import Path

import pytest

from server.service.opening import Mode, open_site
from server.site.check.unsaved import (
    SavedSite,
    configuration_problems,
    problems_in_text,
)
from tests.site.unsaved import compare_edits, saved, unsaved
from tests.sites import STRING, collection, relation, write

ROOT = Path(__file__).parents[2]
FILES = {
    **collection("author", {"name": {**STRING, "required": True}}),
    **collection("article", {"title": STRING, "author": relation("manyToOne", "author")}),
    "content/authors/ann.yaml": "name: Ann\n",
    "content/articles/a.md": "---\ntitle: A\nauthor: ann\n---\nText\n",
    "content/uploads/a.txt": "a",
    "content/uploads/a.txt.yaml": "caption: A\n",
}


@pytest.mark.parametrize("seed", range(3))
def test_random_edits_have_the_problems_that_they_have_once_saved(tmp_path: Path, seed: int) -> None:
    compare_edits(own_site(tmp_path / "open"), own_site(tmp_path / "saved"), seed, steps=12)


def own_site(folder: Path) -> Path:
    """Copy this repository's own site to a folder."""
    for name in ("site.yaml", "content-types", "content"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name)
    return folder


def test_a_file_that_is_not_on_disk_yet_is_checked(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    site = open_site(tmp_path, Mode.READ).site
    text = "---\ntitle: B\nauthor: bob\n---\n"
    [problem] = problems_in_text(
        SavedSite.from_site(site).with_texts({"content/articles/b.md": text}), "content/articles/b.md"
    )
    assert (problem.line, problem.rule) == (3, "dangling")
    texts = {"content/articles/b.md": text, "content/authors/bob.yaml": "name: Bob\n"}
    assert unsaved(site, texts) == []


def test_a_problem_in_one_file_can_be_caused_by_the_unsaved_text_of_another(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    site = open_site(tmp_path, Mode.READ).site
    [problem] = unsaved(site, {"content/authors/ann.yaml": "name: Ann\ndocumentId: anna\n"})
    assert problem.startswith("content/articles/a.md:3:9: author: the document")


def test_a_file_that_became_invalid_while_the_site_was_open_has_no_document(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    site = open_site(tmp_path, Mode.READ).site
    write(tmp_path, {"content/authors/ann.yaml": "name: [Ann\n"})
    site.refresh()
    assert site.state.snapshot.tables["api::author.author"].versions
    assert unsaved(site, {}) == saved(tmp_path) != []


def test_the_description_of_a_media_file_is_checked(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    site = open_site(tmp_path, Mode.READ).site
    text = "caption: A\nfocus: 3\n"
    found = unsaved(site, {"content/uploads/a.txt.yaml": text})
    write(tmp_path, {"content/uploads/a.txt.yaml": text})
    assert found == saved(tmp_path) != []


def test_unsaved_settings_and_schemas_are_checked(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "site.yaml": "name: A\n"})
    assert configuration_problems(tmp_path, {}).problems == ()
    found = configuration_problems(tmp_path, {"site.yaml": "nam: A\n"})
    assert [str(problem) for problem in found.problems] == [
        'site.yaml:1:1: unknown key "nam". Did you mean "name"?'
    ]
    text = '{"info": {"singularName": "x", "pluralName": "xs"}, "attributes": {"a": {"type": "Strin"}}}'
    [problem] = configuration_problems(tmp_path, {"content-types/x.json": text}).problems
    assert (problem.path, problem.rule) == ("content-types/x.json", "schema")
