"""Tests of `bifolio changes`, which lists changes for scripts, with and without a running server."""

import json
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from server.commands.cli import main
from server.events.database import EventDatabase
from tests.git import commit_all, git
from tests.servers import free_port, serving
from tests.sites import STRING, collection, write
from tests.waiting import until

FILES = {
    **collection("note", {"title": "string", "secret": {**STRING, "private": True}}, drafts=True),
    **collection("tag", {"name": "string"}),
    "content/notes/one.json": '{"title": "One"}',
    "content/notes/two.draft.json": '{"title": "Two"}',
    "content/tags/red.json": '{"name": "Red"}',
    "content/uploads/a.txt": "a",
}
needs_git = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    write(folder, FILES)
    return folder


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["changes", *arguments, "--site", str(root)])


def listed(root: Path, *arguments: str) -> list[list[str]]:
    """Return the columns of each printed change, without its number and time."""
    result = run(root, *arguments)
    assert result.exit_code == 0, result.output
    return [line.split("\t")[2:] for line in result.stdout.splitlines()]


def last(root: Path) -> str:
    return run(root, "--last").stdout.strip()


def edit_all(root: Path) -> None:
    write(root, {"content/notes/one.json": '{"title": "Uno"}', "content/tags/blue.json": '{"name": "Blue"}'})
    write(root, {"content/uploads/a.txt.yaml": "caption: A\n"})
    (root / "content/tags/red.json").unlink()


EDITED = [
    ["entry.update", "note", "one", "en", "published"],
    ["entry.publish", "note", "one", "en", "published"],
    ["entry.create", "tag", "blue", "en", "published"],
    ["entry.delete", "tag", "red", "en", "published"],
    ["media.update", "upload", "a.txt", "-", "-"],
]


def test_a_build_goes_on_where_it_was(root: Path, tmp_path: Path) -> None:
    saved = tmp_path / "last"
    assert run(root, "--since", "", "--save", str(saved)).exit_code == 3
    edit_all(root)
    first = run(root, "--since", saved.read_text(), "--save", str(saved))
    assert [line.split("\t")[2:7] for line in first.stdout.splitlines()] == EDITED
    assert [line.split("\t")[0] for line in first.stdout.splitlines()] == list("12345")
    assert run(root, "--since", saved.read_text(), "--save", str(saved)).stdout == ""
    write(root, {"content/tags/blue.json": '{"name": "Azure"}'})
    assert [row[-1] for row in listed(root, "--since", saved.read_text())] == ["name"]
    assert listed(root, "--since", "5") == listed(root, "--since", saved.read_text())


@needs_git
def test_since_a_commit(root: Path) -> None:
    commit_all(root)
    git(root, "tag", "spring")
    edit_all(root)
    changed = ("title", "title", "name", "-", "caption")
    expected = [[*row, name] for row, name in zip(EDITED, changed, strict=True)]
    assert listed(root, "--since", "spring") == expected
    git(root, "add", "-A")
    git(root, "commit", "-qm", "second")
    shutil.rmtree(root / ".bifolio")
    assert [row[:5] for row in listed(root, "--since", "spring")] == EDITED
    assert [row[:5] for row in listed(root, "--since", "HEAD~1")] == EDITED
    assert listed(root, "--since", "HEAD") == []
    write(root, {**collection("tag", {"name": "text"})})
    assert [row[:2] for row in listed(root, "--since", "HEAD")] == [["schema.update", "tag"]]


@needs_git
def test_since_a_date(root: Path) -> None:
    git(root, "init", "-q")
    for day in (1, 3):
        write(root, {"content/tags/red.json": json.dumps({"name": f"Red {day}"})})
        git(root, "add", "-A")
        git(root, "commit", "-qm", "x", f"--date=2030-05-0{day}T12:00:00Z", at=f"2030-05-0{day}T12:00:00Z")
    assert [row[:3] for row in listed(root, "--since", "2030-05-02")] == [["entry.update", "tag", "red"]]
    assert listed(root, "--since", "2030-05-04") == []
    assert run(root, "--since", "2030-05-01").exit_code == 3  # the day begins before the first commit


def test_since_a_date_of_the_log(root: Path) -> None:
    last(root)
    write(root, {"content/tags/red.json": '{"name": "Rot"}'})
    time.sleep(0.01)
    events = [json.loads(line) for line in run(root, "--since", "0", "--json").stdout.splitlines()]
    assert [event["documentId"] for event in events] == ["red"]
    assert listed(root, "--since", events[0]["createdAt"]) == listed(root, "--since", "0")
    assert listed(root, "--since", "2999-01-01") == []
    before = run(root, "--since", "2001-01-01")
    assert (before.exit_code, before.stdout) == (3, "")


def test_paths_are_those_of_deleted_documents_as_well(root: Path) -> None:
    last(root)
    edit_all(root)
    expected = [
        "content/notes/one.json",
        "content/tags/blue.json",
        "content/tags/red.json",
        "content/uploads/a.txt",
    ]
    assert run(root, "--since", "0", "--paths").stdout.splitlines() == expected
    write(root, {"site.yaml": "events: {bulk: 1}\n"})
    place = last(root)
    edited = {f"content/tags/t{number}.json": "{}" for number in range(3)}
    write(root, edited)
    assert [row[:2] for row in listed(root, "--since", place)] == [["site.update", "tag"]]
    assert run(root, "--since", place, "--paths").stdout.splitlines() == list(edited)


FILTERS: dict[tuple[str, ...], set[str]] = {
    ("--type", "tag"): {"blue", "red"},
    ("--type", "tag", "--type", "note"): {"one", "blue", "red"},
    ("--type", "tag,note", "--event", "entry.delete"): {"red"},
    ("--event", "media.*"): {"a.txt"},
    ("--status", "draft"): {"a.txt"},  # media files have no status, so they always match
    ("--locale", "fr"): {"a.txt"},
}


@pytest.mark.parametrize("options", FILTERS)
def test_some_changes_alone(root: Path, options: tuple[str, ...]) -> None:
    last(root)
    edit_all(root)
    assert {row[2] for row in listed(root, "--since", "0", *options)} == FILTERS[options]


REFUSED: dict[tuple[str, ...], tuple[int, str]] = {
    (): (2, "--since"),
    ("--last", "--since", "0"): (2, "--since"),
    ("--since", "0", "--paths", "--json"): (2, "can't be combined"),
    ("--since", "0", "--type", "tags"): (2, '--type contains the unknown value "tags"'),
    ("--since", "0", "--event", "entry.made"): (2, "--event"),
    ("--since", "nowhere"): (1, "nowhere" if not shutil.which("git") else "repository"),
    ("--since", "99"): (3, "Fetch everything"),
    ("--since", "00000000-1"): (3, "Fetch everything"),
    ("--since", "0", "--save", "/dev/null/x"): (1, "/dev/null/x"),
}


@pytest.mark.parametrize("options", REFUSED)
def test_what_can_not_be_told(root: Path, options: tuple[str, ...]) -> None:
    result = run(root, *options)
    status, said = REFUSED[options]
    assert result.exit_code == status, result.output
    assert said in result.stderr


def test_of_a_broken_file_nothing_is_said(root: Path) -> None:
    last(root)
    write(root, {"content/tags/red.json": '{"name": '})
    result = run(root, "--since", "0")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "content/tags/red.json" in result.stderr
    write(root, {"content/tags/red.json": '{"name": "Rot"}'})
    assert [row[:3] for row in listed(root, "--since", "0")] == [["entry.update", "tag", "red"]]


def test_beside_a_server(root: Path) -> None:
    port = free_port()
    with serving(root, port, "--workers", "1"):
        database = EventDatabase(root)
        until(lambda: database.path.exists())
        write(root, {"content/tags/red.json": '{"name": '})
        time.sleep(0.5)
        assert listed(root, "--since", "0") == []
        for number in range(5):
            write(root, {"content/tags/red.json": json.dumps({"name": str(number)})})
            assert len(listed(root, "--since", "0")) == number + 1
        time.sleep(0.5)
        assert [event.seq for event in database.read(0, 100)] == [1, 2, 3, 4, 5]
        database.close()
