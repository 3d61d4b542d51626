"""Renamed documents: an old id leads to the current document if the caller may read it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from server.commands.cli import main
from tests.git import commit_all, git
from tests.sites import STRING, collection, make, relation, translated, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

ANN = "name: Ann\nborn: 1820 in a house by the sea\nwrote: many letters to the keepers of lights\n"
FILES = {
    "site.yaml": "locales: {available: [en, fr]}\nroles: {public: {author: [find, findOne]}}\n",
    **collection("author", dict.fromkeys(("name", "born", "wrote"), translated(STRING)), localized=True),
    **collection(
        "article",
        {
            "author": relation("manyToOne", "author"),
            "others": relation("manyToMany", "author"),
            "cover": {"type": "media"},
        },
        drafts=True,
    ),
    "content/authors/ann.yaml": ANN,
    "content/authors/ann.fr.yaml": ANN.replace("many", "beaucoup"),
    "content/articles/a.yaml": "author: ann   # she\ncover: a.txt\n",
    "content/uploads/a.txt": "A text that is long enough.",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    write(root, FILES)
    commit_all(root)
    return root


def rename(root: Path, *pairs: tuple[str, str], commit: bool = True, folder: str = "content") -> str:
    for before, after in pairs:
        git(root, "mv", f"{folder}/{before}", f"{folder}/{after}")
    if commit:
        git(root, "commit", "-qam", "rename")
    return git(root, "rev-parse", "HEAD")[:10]


def authors(before: str, after: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"authors/{before}{end}", f"authors/{after}{end}") for end in (".yaml", ".fr.yaml"))


def check(root: Path, *options: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, ["check", "--site", str(root), "--format", "json", *options])
    problems: list[dict[str, Any]] = json.loads(done.stdout)["problems"]
    return problems


def said(root: Path) -> list[tuple[str, str]]:
    return [(problem["message"], problem["fix"]) for problem in check(root)]


def test_check_names_the_commit_and_fix_writes_the_new_id(root: Path) -> None:
    commit = rename(root, *authors("ann", "winifred"), ("uploads/a.txt", "uploads/b.txt"))
    assert said(root) == [
        (
            f'author refers to "ann", which commit {commit} renamed to "winifred"',
            '--fix changes it to "winifred"',
        ),
        (f'cover refers to "a.txt", which commit {commit} renamed to "b.txt"', '--fix changes it to "b.txt"'),
    ]
    assert check(root, "--fix") == []
    assert (root / "content/articles/a.yaml").read_text() == "author: winifred   # she\ncover: b.txt\n"


def test_a_rename_that_is_not_committed_yet(root: Path) -> None:
    rename(root, *authors("ann", "winifred"), commit=False)
    what = 'author refers to "ann", which an uncommitted change renamed to "winifred"'
    assert said(root) == [(what, '--fix changes it to "winifred"')]


def test_renames_are_followed_to_the_current_name(root: Path) -> None:
    first = rename(root, *authors("ann", "bea"))
    rename(root, *authors("bea", "cleo"))
    write(root, {"content/authors/bea.yaml": "name: Another\n"})
    rename(root, *authors("cleo", "dora"), commit=False)
    assert said(root) == [
        (f'author refers to "ann", which commit {first} renamed to "dora"', '--fix changes it to "dora"')
    ]


def test_a_file_with_the_name_of_a_deleted_one_is_another_document(root: Path) -> None:
    rename(root, *authors("ann", "bea"))
    git(root, "rm", "-q", "content/authors/bea.yaml", "content/authors/bea.fr.yaml")
    git(root, "commit", "-qm", "remove")
    write(root, {"content/authors/bea.yaml": "name: Another\n"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "add")
    assert [what for what, _ in said(root)] == [
        'author: the document "ann" of type api::author.author does not exist'
    ]


def test_a_rename_with_many_changes_is_only_suggested(root: Path) -> None:
    git(root, "mv", "content/authors/ann.yaml", "content/authors/winifred.yaml")
    git(root, "rm", "-q", "content/authors/ann.fr.yaml")
    write(
        root,
        {"content/authors/winifred.yaml": ANN.replace("1820 in", "1830 near")},
    )
    commit = rename(root)
    what = f'author refers to "ann", which commit {commit} renamed to "winifred"'
    assert said(root) == [(what, 'change it to "winifred" if that is what you mean')]
    assert len(check(root, "--fix")) == 1


def test_the_404_of_a_former_id_names_the_new_one(root: Path) -> None:
    site = make(root, {})
    assert site.get("/api/authors/ann", "public").status == 200
    rename(root, *authors("ann", "winifred"))
    site.site.refresh()
    for path in ("/api/authors/ann", "/api/authors/ann?locale=fr&fields=name", "/api/authors/ann"):
        error = site.get(path, "public").error
        assert (error["status"], error["name"], error["message"]) == (404, "NotFoundError", "Not Found")
        assert error["details"] == {"renamedTo": "winifred"}
    assert site.get("/api/authors/nobody", "public").error["details"] == {}
    assert site.get("/api/authors/ann?at=HEAD").error["details"] == {}
    site.accounts.close()


def test_the_404_reveals_no_hidden_document(root: Path) -> None:
    write(root, {"content/articles/hidden.draft.yaml": "author: ann\ncover: a.txt\n"})
    git(root, "add", "-A")
    rename(root)
    rename(
        root,
        ("articles/hidden.draft.yaml", "articles/secret.draft.yaml"),
        ("articles/a.yaml", "articles/b.yaml"),
    )
    site = make(root, {})
    site.token("reader", may=["article.find", "article.findOne"])
    site.token("editor", may=["article.find", "article.findOne", "article.readDraft"])
    details = lambda path, who: site.get(path, who).error["details"]  # noqa: E731
    assert details("/api/articles/a", "reader") == {"renamedTo": "b"}
    assert details("/api/articles/hidden", "reader") == {}
    assert details("/api/articles/hidden", "editor") == {}
    assert details("/api/articles/hidden?status=draft", "editor") == {"renamedTo": "secret"}
    assert site.get("/api/articles/a", "public").status == 403
    assert details("/api/articles/a", "public") == {}
    site.accounts.close()


@pytest.mark.parametrize("marked", [False, True])
def test_the_404_does_not_confirm_the_former_id_of_a_draft(root: Path, marked: bool) -> None:
    """A draft that was renamed before it was published never was public under its old id."""
    ending, mark = ("", "draft: true\n") if marked else (".draft", "")
    text = "cover: a.txt\nauthor: ann\n# a long line that stays the same in all versions of the file\n"
    options = {"draftWhen": {"draft": True}} if marked else {}
    write(root, collection("note", {"cover": {"type": "media"}}, drafts=True, **options))
    write(root, {f"content/notes/merger{ending}.yaml": text + mark, "content/notes/old.yaml": text})
    git(root, "add", "-A")
    rename(root)
    git(root, "mv", f"content/notes/merger{ending}.yaml", "content/notes/new.yaml")
    write(root, {"content/notes/new.yaml": text})
    rename(root)
    rename(root, ("notes/old.yaml", "notes/newer.yaml"))
    site = make(root, {})
    site.token("reader", may=["note.find", "note.findOne"])
    site.token("editor", may=["note.find", "note.findOne", "note.readDraft"])
    details = lambda path, who: site.get(path, who).error["details"]  # noqa: E731
    for _ in range(2):
        assert details("/api/notes/merger", "reader") == {}
        assert details("/api/notes/merger", "editor") == {"renamedTo": "new"}
        assert details("/api/notes/old", "reader") == {"renamedTo": "newer"}
    site.accounts.close()


def test_the_404_names_no_rename_on_a_merged_branch(root: Path) -> None:
    """A name that a document had only on a branch was never public."""
    git(root, "checkout", "-qb", "side")
    write(root, {"content/authors/secret.yaml": ANN + "more: of her\n"})
    git(root, "add", "-A")
    rename(root)
    rename(root, ("authors/secret.yaml", "authors/bea.yaml"))
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--no-ff", "-m", "merge", "side")
    site = make(root, {})
    assert site.get("/api/authors/bea", "public").status == 200
    assert site.get("/api/authors/secret", "public").error["details"] == {}
    site.accounts.close()
