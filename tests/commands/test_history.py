"""Tests of `bifolio log`, `bifolio diff` and `bifolio blame`, which show the git history of documents."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from server.commands.cli import main
from tests.git import git
from tests.sites import STRING, collection, translated, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

FILES = {
    "site.yaml": "locales: {available: [en, fr]}\n",
    **collection(
        "note",
        {"title": translated(STRING), "body": translated({"type": "richtext"})},
        localized=True,
        drafts=True,
    ),
    "content/notes/one.md": "---\ntitle: One\n---\nFirst.\n\nLast.\n",
    "content/notes/one.fr.md": "---\ntitle: Un\n---\n",
    "content/notes/plan.draft.md": "---\ntitle: Plan\n---\n",
}


def commit(root: Path, day: int, message: str, author: str = "Ada <ada@x.org>") -> str:
    git(root, "add", "-A")
    at = f"2030-05-{day:02d}T00:00:00Z"
    git(root, "commit", "-qm", message, f"--author={author}", f"--date={at}", at=at)
    return git(root, "rev-parse", "HEAD").strip()[:8]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, 1, "Begin")
    return tmp_path


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--site", str(root)])


def test_log_names_commits_and_their_documents(root: Path) -> None:
    write(root, {"content/notes/one.md": "---\ntitle: One\n---\nFirst.\n\nEnd.\n"})
    second = commit(root, 2, "Say end", "Bo <bo@x.org>")
    write(root, {"README.md": "no document\n"})
    commit(root, 3, "Read me")
    assert run(root, "log").output.splitlines()[:3] == [
        f"{second} 2030-05-02 Bo               Say end",
        "    update content/notes/one.md",
        run(root, "log", "--author", "ada").output.splitlines()[0],
    ]
    assert "Say end" not in run(root, "log", "--since", "2030-05-03").output
    assert "Begin" not in run(root, "log", "--since", "HEAD~2").output
    for name in ("note/one", str(root / "content/notes/one.md"), "content/notes/one.md"):
        assert run(root, "log", name).output.splitlines()[:2] == [
            f"{second} 2030-05-02 Bo               update, en: body",
            "    Say end",
        ]


def test_log_is_short_where_a_commit_is_large(root: Path) -> None:
    write(root, {f"content/notes/n{number:02}.md": "---\ntitle: N\n---\n" for number in range(30)})
    commit(root, 2, "Many")
    lines = run(root, "log").output.splitlines()
    assert lines[10:12] == ["    create content/notes/n09.md", "    … and 20 more"]


def test_diff_shows_what_is_not_committed_and_what_two_commits_differ_in(root: Path) -> None:
    assert run(root, "diff").output == ""
    write(
        root,
        {
            "content/notes/one.md": "---\ntitle: Two\n---\nFirst.\n\nEnd.\n",
            "content/notes/new.md": "---\ntitle: New\n---\n",
        },
    )
    shown = run(root, "diff").output
    assert (
        shown == run(root, "diff", "note/new").output + run(root, "diff", "note/one", "--locale", "en").output
    )
    assert run(root, "diff", "note/one").output.splitlines() == [
        "note/one (en, published)",
        "  title",
        "    -One",
        "    +Two",
        "  body",
        "    @@ -1,3 +1,3 @@",
        "     First.",
        "     ",
        "    -Last.",
        "    +End.",
    ]
    commit(root, 2, "Change")
    assert run(root, "diff", "--from", "HEAD~1", "--to", "HEAD").output == shown
    assert run(root, "diff", "--from", "HEAD~1").output == shown
    assert run(root, "diff").output == ""


def test_blame_names_the_commit_of_each_line(root: Path) -> None:
    first = git(root, "rev-parse", "HEAD").strip()[:8]
    write(root, {"content/notes/one.md": "---\ntitle: One\n---\nFirst.\n\nEnd.\n"})
    second = commit(root, 2, "End", "Bo <bo@x.org>")
    lines = run(root, "blame", "note/one").output.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["title:", "body:", first, first, second]
    assert lines[-1] == f"{second} 2030-05-02 Bo                End."
    assert run(root, "blame", "note/plan").output.startswith(f"title: {first}")
    assert run(root, "blame", "note/one", "--locale", "fr").output.startswith("title: ")


@pytest.mark.parametrize("command", ["log", "diff", "blame"])
@pytest.mark.parametrize("name", ["note/none", "nothing/one", "content/notes/none.md", "note"])
def test_a_document_that_there_never_was(root: Path, command: str, name: str) -> None:
    result = run(root, command, name)
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    said = ("is neither the path nor the TYPE/ID of a document", "exists now or in the git history")
    assert any(words in result.output for words in said)


@pytest.mark.parametrize("name", ["main", "HEAD~0..HEAD"])
def test_a_commit_instead_of_a_document(root: Path, name: str) -> None:
    for command in ("diff", "log"):
        assert "bifolio diff --from COMMIT --to COMMIT" in run(root, command, name).output


def test_what_is_no_commit_and_no_repository(root: Path, tmp_path: Path) -> None:
    for arguments in (("log", "--since", "none"), ("diff", "--from", "--all"), ("diff", "--to", "none")):
        result = run(root, *arguments)
        assert result.exit_code == 1
        assert "is not a commit" in result.output or "option" in result.output
    shutil.rmtree(root / ".git")
    for command in ("log", "diff"):
        assert "git init" in run(root, command).output


def test_control_characters_do_nothing_to_the_terminal(root: Path) -> None:
    write(root, {"content/notes/one.md": '---\ntitle: "O\\u001b[31m"\n---\n'})
    commit(root, 2, "Red \x1b[31m", "E\x1bvil <e@x.org>")
    for arguments in (
        ("log",),
        ("log", "note/one"),
        ("diff", "note/one", "--from", "HEAD~1"),
        ("blame", "note/one"),
    ):
        assert "\x1b" not in run(root, *arguments).output
