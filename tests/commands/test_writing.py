"""Tests of commands that write: their commits, their check of the git remote, and their events."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner, Result

from server.commands.cli import main
from server.events.database import EventDatabase
from server.service.opening import Mode, open_site
from server.site.commits.message import Authorship
from server.site.parts import ReadOnlySiteError
from server.write.context import Context
from tests.git import commit_all, git
from tests.history.remote.machines import at_remote, head, machines
from tests.servers import free_port, serving
from tests.sites import STRING, collection, opened, relation, write, write_to
from tests.waiting import until

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

SETTINGS = "git: {{commit: {0}, committer: Site <site@example.org>}}\nsearch: {{index: false}}\n"
PUBLIC = "roles: {public: {author: [find, findOne]}}\n"
FILES = {
    ".gitignore": ".bifolio/\n",
    **collection("author", {"name": STRING}),
    **collection("article", {"author": relation("manyToOne", "author"), "title": STRING}),
    "content/authors/ann.md": "---\nname: Ann\n---\n",
    "content/authors/bob.md": "---\nname: Bob\n---\n",
    "content/articles/a.yaml": "author: ann\n",
    "content/articles/b.yaml": "author: authors/bob.md\n",
    "content/articles/c.yaml": "author: authors/ann.md\n",
    "content/uploads/a.txt": "a",
}
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that creates a site in a git repository whose owner is Ada."""

    def made(commit: str = "each", more: str = "") -> Path:
        root = tmp_path / "site"
        write(root, {**FILES, "site.yaml": SETTINGS.format(commit) + more})
        commit_all(root)
        own(root)
        return root

    return made


def own(root: Path) -> None:
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@example.org")


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--site", str(root)])


def status(root: Path) -> str:
    return git(root, "status", "--short")


def last(root: Path) -> str:
    """Return the last commit's author, committer, message and actor."""
    form = "%an <%ae>|%cn|%s|%(trailers:key=Bifolio-Actor,valueonly)"
    return git(root, "log", "-1", f"--format={form}").strip()


# --- commits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mv", "author/ann", "author/anna"), "Rename authors/ann to authors/anna"),
        (("mv", "content/authors/ann.md", "content/authors/2024/"), "Rename authors/ann to authors/2024/ann"),
        (("mv", "content/uploads/a.txt", "content/uploads/b.txt"), "Rename uploads/a.txt to uploads/b.txt"),
        (("check", "--fix"), "Fix 2 problems"),
    ],
)
def test_a_command_makes_a_commit_in_the_name_of_who_runs_it(
    make: Make, arguments: tuple[str, ...], message: str
) -> None:
    root = make()
    before = head(root)
    assert run(root, *arguments).exit_code == 0
    assert status(root) == ""
    assert last(root) == f"Ada <ada@example.org>|Site|{message}|command"
    assert head(root, "HEAD^") == before


def test_where_git_names_nobody_the_committer_of_the_settings_is_the_author(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in ("user.name", "user.email"):
        git(root, "config", "--unset", name)
    git(root, "config", "user.useConfigOnly", "true")
    assert run(root, "mv", "author/ann", "author/anna").exit_code == 0
    assert last(root).startswith("Site <site@example.org>|Site|Rename authors/ann")


def test_who_the_environment_names_is_the_author(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make()
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Eve")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "eve@example.org")
    assert run(root, "mv", "author/ann", "author/anna").exit_code == 0
    assert last(root).startswith("Eve <eve@example.org>|")


def test_commits_that_are_off_are_left_to_people(make: Make) -> None:
    root = make("off")
    before = head(root)
    done = run(root, "mv", "author/ann", "author/anna")
    assert (done.exit_code, "not committed" in done.output, head(root)) == (0, False, before)
    assert " D content/authors/ann.md" in status(root)


def test_a_commit_that_is_to_wait_is_told_of_and_made_by_the_server(make: Make) -> None:
    root = make("30s")
    before = head(root)
    done = run(root, "mv", "author/ann", "author/anna")
    assert (done.exit_code, head(root)) == (0, before)
    assert "! the change is not committed yet; the running server of the site will commit it" in done.output
    opened(root).committer.flush()
    assert status(root) == ""
    assert last(root) == "Ada <ada@example.org>|Site|Rename authors/ann to authors/anna|command"


def test_mistyped_words_of_a_schema_are_fixed_in_a_commit(make: Make) -> None:
    root = make()
    path = root / "content-types/author.json"
    schema = json.loads(path.read_text())
    schema["attributes"]["name"]["requierd"] = True
    path.write_text(json.dumps(schema, indent=1))
    git(root, "commit", "-qam", "Mistype")
    assert run(root, "check", "--fix").exit_code == 0
    assert '"required": true' in path.read_text()
    assert status(root) == ""
    messages = git(root, "log", "-2", "--format=%an: %s").splitlines()
    assert messages == ["Ada: Fix 2 problems", "Ada: Fix 1 problem"]


def test_a_configuration_that_cannot_be_read_is_fixed_without_a_commit(make: Make) -> None:
    root = make()
    path = root / "content-types/author.json"
    path.write_text(path.read_text().replace('"string"', '"String"'))
    git(root, "commit", "-qam", "Mistype")
    run(root, "check", "--fix")
    assert '"string"' in path.read_text()
    assert status(root) == " M content-types/author.json\n"
    # Only the fixes in documents are committed. These were found once the schema was readable.
    assert last(root).endswith("Fix 2 problems|command")


# --- the git remote is checked before a write -----------------------------------------------------


def test_a_rename_is_at_the_remote_when_it_is_done(tmp_path: Path) -> None:
    with machines(tmp_path, "a", "b") as two:
        root = two["a"].root
        own(root)
        assert run(root, "mv", "note/one", "note/uno").exit_code == 0
        assert (two.tip, status(root)) == (head(root), "")
        assert "title: One" in at_remote(two, "content/notes/uno.md")
        assert last(root).startswith("Ada <ada@example.org>|Bifolio|Rename notes/one to notes/uno")
        assert two["b"].put("/api/notes/two", {"title": "Due"}).status == 200
        assert two["b"].get("/api/notes/uno").data["title"] == "One"


def test_what_another_machine_has_changed_is_not_lost_by_a_rename(tmp_path: Path) -> None:
    with machines(tmp_path, "a", "b") as two:
        root = two["b"].root
        assert two["a"].put("/api/notes/one", {"title": "Uno"}).status == 200
        refused = run(root, "mv", "note/one", "note/first")
        assert refused.exit_code == 1
        assert (
            "Another write changed the same values; read the document again and repeat your change. "
            "Nothing was changed" in refused.output
        )
        assert (two.tip, status(root)) == (head(root), "")
        # this machine has fetched the other change by now
        assert run(root, "mv", "note/one", "note/first").exit_code == 0
        assert "title: Uno" in at_remote(two, "content/notes/first.md")


def test_what_another_machine_has_written_elsewhere_is_taken_along(tmp_path: Path) -> None:
    with machines(tmp_path, "a", "b") as two:
        root = two["b"].root
        assert two["a"].put("/api/notes/two", {"title": "Due"}).status == 200
        assert run(root, "mv", "note/one", "note/first").exit_code == 0
        assert (two.tip, status(root)) == (head(root), "")
        assert "title: Due" in (root / "content/notes/two.md").read_text()


def test_without_the_remote_a_command_changes_nothing(tmp_path: Path) -> None:
    with machines(tmp_path, "a") as one:
        root = one["a"].root
        git(root, "remote", "set-url", "origin", str(tmp_path / "gone.git"))
        git(root, "update-ref", "-d", "refs/remotes/origin/main")
        before = head(root)
        refused = run(root, "mv", "note/one", "note/uno")
        assert (refused.exit_code, refused.output.strip().endswith(". Nothing was changed.")) == (1, True)
        assert (head(root), status(root)) == (before, "")


def test_whatever_writes_asks_the_remote_before_any_request_came(tmp_path: Path) -> None:
    """A worker's background job can write before any request has loaded the API's handlers."""

    def retitle(title: str, context: Context) -> None:
        path = "content/notes/one.md"
        context.changeset.put(path, context.changeset.text(path).replace("title: One", f"title: {title}"))

    with machines(tmp_path, "a") as one:
        site = opened(one["a"].root)
        write_to(site, retitle, "Uno")
        assert one.tip == head(site.root)
        assert "title: Uno" in at_remote(one, "content/notes/one.md")


def test_a_site_that_was_opened_for_reading_refuses_writes(make: Make) -> None:
    site = open_site(make(), Mode.READ).site
    with pytest.raises(ReadOnlySiteError, match="opened read-only"):
        site.write(Authorship("", "", ""), lambda _, context: context.changeset.put("a.txt", "a"), None)
    assert not (site.root / "a.txt").exists()


# --- events --------------------------------------------------------------------------------------------


def told(root: Path) -> list[tuple[str, str]]:
    """Return the events about authors."""
    found = EventDatabase(root).read(0, 1000)
    return sorted((event.kind, event.document_id) for event in found if event.uid == "api::author.author")


@pytest.mark.parametrize("commit", ["each", "off"])
def test_what_a_command_has_written_is_recorded_once_before_a_server_looks(make: Make, commit: str) -> None:
    root = make(commit, PUBLIC)
    assert run(root, "mv", "author/ann", "author/anna").exit_code == 0
    renamed = told(root)
    assert ("entry.create", "anna") in renamed
    events = EventDatabase(root).read(0, 1000)
    assert {(event.source, event.commit) for event in events} == {
        ("file", head(root) if commit == "each" else "")
    }
    with serving(root, free_port()) as address:
        (root / "content/authors/bob.md").write_text("---\nname: Rob\n---\n")
        until(lambda: ("entry.update", "bob") in told(root))
        assert status_of(address, "anna") == 200
    assert [one for one in told(root) if one[1] != "bob"] == renamed


@pytest.mark.parametrize("commit", ["each", "off"])
def test_what_a_command_writes_beside_a_server_is_recorded_once(make: Make, commit: str) -> None:
    root = make(commit, PUBLIC)
    with serving(root, free_port(), "--workers=2") as address:
        assert run(root, "mv", "author/ann", "author/anna").exit_code == 0
        renamed = told(root)
        assert ("entry.create", "anna") in renamed
        until(lambda: status_of(address, "anna") == 200)
        (root / "content/authors/bob.md").write_text("---\nname: Rob\n---\n")
        until(lambda: ("entry.update", "bob") in told(root))
        assert [one for one in told(root) if one[1] != "bob"] == renamed
    if commit == "each":
        assert status(root) == " M content/authors/bob.md\n"


def status_of(address: str, name: str) -> int:
    try:
        with urlopen(f"{address}/api/authors/{name}", timeout=10) as answer:
            return int(answer.status)
    except OSError as error:
        return int(getattr(error, "code", 0))
