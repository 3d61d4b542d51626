"""Tests of `bifolio mv`: its output, the paths that it accepts, and its use next to a running server."""

import json
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner, Result

from server.commands.cli import main
from server.site.site import Site
from tests.git import commit_all, git
from tests.servers import free_port, serving
from tests.sites import STRING, collection, relation, write
from tests.waiting import until

FILES = {
    "site.yaml": "roles: {public: {author: [find, findOne], article: [find, findOne]}}\n",
    **collection("author", {"name": STRING}),
    **collection("article", {"author": relation("manyToOne", "author")}),
    "content/authors/2024/ann.md": "---\nname: Ann\n---\n",
    "content/authors/own.md": "---\ndocumentId: q1\n---\n",
    "content/articles/a.yaml": "author: 2024--ann   # she\n",
    "content/uploads/a.txt": "a",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["mv", "--site", str(root), *arguments])


def test_what_was_done_is_said(root: Path) -> None:
    result = run(root, "author/2024--ann", "author/ann")
    assert result.output.splitlines() == [
        "content/authors/2024/ann.md → content/authors/ann.md",
        "content/articles/a.yaml: reference updated",
        "documentId: 2024--ann → ann",
    ]
    assert result.exit_code == 0
    assert (root / "content/articles/a.yaml").read_text() == "author: ann   # she\n"
    assert not (root / "content/authors/2024").exists()


def test_a_dry_run_says_the_same_and_changes_nothing(root: Path) -> None:
    def files() -> dict[str, str]:
        return {str(path): path.read_text() for path in (root / "content").rglob("*") if path.is_file()}

    before = files()
    dry = run(root, "--dry-run", "author/2024--ann", "author/ann")
    assert (dry.exit_code, files()) == (0, before)
    assert dry.output == run(root, "author/2024--ann", "author/ann").output
    assert files() != before
    assert run(root, "--dry-run", "author/none", "author/x").exit_code == 1


def test_links_in_texts_are_listed(root: Path) -> None:
    write(
        root,
        {
            **collection("note", {"title": STRING, "body": {"type": "richtext"}}),
            "content/notes/deep/one.md": (
                "---\ntitle: '[x](../../authors/own.md)'\n---\nSee [her](../../authors/own.md#top) and\n"
                "[her](../../authors/own), ![](/uploads/a.txt) or <img src='../../uploads/a.txt'>.\n\n"
                "[other](own.md) [away](https://example.org/authors/own.md)\n\n[ref]: ../../authors/own.md\n"
            ),
        },
    )
    said = run(root, "content/authors/own.md", "content/authors/2024/mine.md").output.splitlines()
    note = "content/notes/deep/one.md"
    assert [line for line in said if "the link was not updated" in line] == [
        f"{note}:{line}: the link was not updated; change it by hand: {old} → {new}"
        for line, old, new in (
            (2, "../../authors/own.md", "../../authors/2024/mine.md"),
            (4, "../../authors/own.md", "../../authors/2024/mine.md"),
            (5, "../../authors/own", "../../authors/2024/mine"),
            (9, "../../authors/own.md", "../../authors/2024/mine.md"),
        )
    ]
    said = run(root, "content/uploads/a.txt", "content/uploads/b c.txt").output.splitlines()
    assert said[1:] == [
        f"{note}:5: the link was not updated; change it by hand: /uploads/a.txt → /uploads/b%20c.txt",
        f"{note}:5: the link was not updated; change it by hand: ../../uploads/a.txt → "
        "../../uploads/b%20c.txt",
    ]


def test_links_to_the_former_address_are_counted(root: Path) -> None:
    text = {"title": STRING, "body": {"type": "richtext"}}
    write(
        root,
        {
            "site.yaml": "urls: {page: 'https://example.org/{name}/'}\n",
            **collection("page", text),
            "content/pages/fog/index.md": "---\ntitle: Fog\n---\n[self](/fog/)\n",
            "content/pages/b.md": "---\ntitle: B\n---\n[x](/fog/#top) [y](/fog) [z](/f) [u](/fog/index/)\n",
        },
    )
    arguments = ("content/pages/fog/index.md", "content/pages/mist.md")
    said = "4 links lead to the old URL /fog/index/, in 2 files; change to /mist/"
    assert run(root, "--dry-run", *arguments).output.splitlines()[-1] == said
    assert run(root, *arguments).output.splitlines()[-1] == said
    assert "old URL" not in run(root, "content/authors/own.md", "content/authors/mine.md").output


def test_a_renamed_document_is_as_old_as_before(root: Path) -> None:
    def created(name: str) -> str:
        site = Site(root)
        site.load()
        [author] = site.state.snapshot.claims["api::author.author", name, "en", "published"]
        return author.created_at

    write(root, {".gitignore": ".bifolio/\n"})
    commit_all(root)
    assert created("2024--ann") == "2024-01-01T00:00:00.000Z"
    assert run(root, "author/2024--ann", "author/ann").exit_code == 0
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Rename", at="2025-01-01T00:00:00Z")
    assert created("ann") == "2024-01-01T00:00:00.000Z"


def test_an_id_that_stays(root: Path) -> None:
    assert run(root, "content/authors/own.md", "content/authors/mine.md").output.splitlines() == [
        "content/authors/own.md → content/authors/mine.md",
        "documentId: unchanged, because the files contain it",
    ]


def test_paths_as_seen_from_the_current_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "content/authors")
    assert run(root, "2024/ann.md", "zoe.md").exit_code == 0
    assert (root / "content/authors/zoe.md").exists()
    assert run(root, "../uploads/a.txt", "../uploads/b.txt").output == (
        "content/uploads/a.txt → content/uploads/b.txt\n"
    )
    assert run(root, "author/zoe", "ann").exit_code == 0
    monkeypatch.chdir(root)
    (root / "content/authors/2025").mkdir()
    assert run(root, "content/authors/ann.md", "content/authors/2025").exit_code == 0
    assert (root / "content/authors/2025/ann.md").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("author/non", "x"), 'author/non: author "non" does not exist. Nothing was changed.'),
        (
            ("x", "y"),
            "x: No file or document has the name x; write a document as TYPE/ID. Nothing was changed.",
        ),
    ],
)
def test_what_is_refused_in_one_line(root: Path, arguments: tuple[str, str], message: str) -> None:
    result = run(root, *arguments)
    assert (result.output, result.exit_code) == (f"bifolio: {message}\n", 1)


def test_a_folder_that_is_no_site(tmp_path: Path) -> None:
    assert "is not a site" in run(tmp_path, "author/a", "author/b").output


def test_beside_a_running_server(root: Path) -> None:
    with serving(root, free_port()) as address:
        assert run(root, "author/2024--ann", "author/ann").exit_code == 0

        def shown() -> bool:
            with urlopen(f"{address}/api/articles/a?populate=author", timeout=10) as answer:
                author = json.loads(answer.read())["data"]["author"]
            return bool(author and author["documentId"] == "ann")

        until(shown)
