"""Tests of symbolic links in a site: only permitted targets are served, and nothing else is read
or written.
"""

import errno
import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from server.api.wsgi_server import check_accounts
from server.auth.accounts import Accounts
from server.auth.session_key import session_key
from server.commands.cli import main
from server.errors import SetupError
from server.site.site import Site
from server.storage.links import has_links, may_point_to, open_file
from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, make, schema, write

FILES = {
    **collection("note", {"title": STRING}, drafts=True),
    **collection("page", {"title": STRING}, files=["docs/{name}.yaml"]),
    "content/notes/one.yaml": "title: One\n",
    "content/notes/secret.draft.yaml": "title: Not yet\n",
    "content/uploads/a.txt": "text",
    "docs/home.yaml": "title: Home\n",
    "site.yaml": "roles: {public: {note: [find, findOne], page: [find]}}\n",
}
# Committed links and their targets. All of these links are rejected.
REFUSED = {
    "content/uploads/key.txt": "../../.bifolio/jwt.key",
    "content/uploads/accounts.db": "../../.bifolio/accounts.db",
    "content/uploads/site.txt": "../../site.yaml",
    "content/uploads/draft.txt": "../notes/secret.draft.yaml",
    "content/uploads/schema.json": "../../content-types/note.json",
    "content/uploads/all": "..",
    "content/uploads/git": "../../.git",
    "content/uploads/state": "../../.bifolio",
    "content/uploads/passwd": "/etc/passwd",
    "content/uploads/a.txt.yaml": "../../site.yaml",
    "content/uploads/site": "../..",
    "content/notes/settings.yaml": "../../site.yaml",
    "content/notes/schema.json": "../../content-types/note.json",
    "content/notes/page.yaml": "../../docs/home.yaml",
    "content/notes/state": "../../.bifolio",
    "content/types": "../content-types",
    "docs/settings.yaml": "../site.yaml",
    "docs/hidden.yaml": "../.hidden.yaml",
}
LOOPS = {
    "content/notes/itself.yaml": "itself.yaml",
    "content/notes/up": "..",
    "content/notes/ping.yaml": "pong.yaml",
    "content/notes/pong.yaml": "ping.yaml",
}


def link(root: Path, links: dict[str, str]) -> None:
    for path, target in links.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(target)


def checked(root: Path) -> list[tuple[str, str]]:
    """Return the path and message of each problem that `bifolio check` finds."""
    told = CliRunner().invoke(main, ["check", "--site", str(root), "--format", "json"])
    return [(problem["path"], problem["message"]) for problem in json.loads(told.stdout)["problems"]]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    root = tmp_path / "site"
    write(root, {**FILES, ".hidden.yaml": "title: Hidden\n"})
    commit_all(root)
    Accounts(root).close()  # Create keys and accounts before the links exist.
    session_key(root)
    link(root, REFUSED | LOOPS)
    api = make(root, {})
    yield api
    api.accounts.close()


def test_a_link_to_what_is_no_content_is_not_served(api: Api) -> None:
    titles = [note["title"] for note in api.get("/api/notes?status=draft&sort=title").data]
    assert titles == ["Not yet", "One"]
    assert [page["title"] for page in api.get("/api/pages").data] == ["Home"]
    assert [file["name"] for file in api.get("/api/upload/files").body] == ["a.txt"]
    for path in REFUSED:
        for below in ("", "/jwt.key", "/config", "/notes/secret.draft.yaml", "/.bifolio/jwt.key"):
            assert api.get(f"/{path.removeprefix('content/')}{below}").status == 404, path
    problems = {problem.path: problem for problem in api.site.problems}
    assert problems.keys() == REFUSED.keys() | LOOPS.keys()
    for path in REFUSED:
        assert "a symbolic link" in problems[path].message


def test_check_has_one_clear_line_for_each_refused_link(api: Api) -> None:
    told = checked(api.root)
    assert sorted(path for path, _ in told) == sorted(REFUSED | LOOPS)
    assert (
        "content/uploads/key.txt",
        "is a symbolic link to .bifolio/jwt.key, which is not inside content/uploads",
    ) in told


def test_nothing_is_written_through_a_refused_link(api: Api) -> None:
    before = {path: (api.root / path).read_bytes() for path in ("site.yaml", "docs/home.yaml")}
    for name in ("settings", "schema", "page"):
        assert api.put(f"/api/notes/{name}", {"title": "x"}).status == 404
    one = api.root / "content/notes/one.yaml"
    one.unlink()
    one.symlink_to("../../site.yaml")
    api.site.refresh()
    assert api.get("/api/notes/one").data["title"] == "One"  # the last valid version
    for answer in (api.put("/api/notes/one", {"title": "x"}), api.ask("DELETE", "/api/notes/one")):
        assert (answer.error["status"], answer.error["name"]) == (409, "ConflictError")
        assert re.match(r"content/notes/one\.yaml:? is a symbolic link", answer.error["message"])
        assert re.search("; (fix the file first|replace it with the document)", answer.error["message"])
    assert {path: (api.root / path).read_bytes() for path in before} == before


def test_links_from_content_to_content_are_served_in_both_places(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    link(
        tmp_path,
        {
            "content/notes/two.yaml": "one.yaml",
            "content/uploads/b.txt": "a.txt",
            "content/uploads/more": "other",
            "content/uploads/other/c.txt": "../a.txt",
            "docs/about.yaml": "home.yaml",
        },
    )
    api = make(tmp_path, {})
    assert api.site.problems == ()
    assert set(api.get("/api/notes").ids) == {"one", "two"}
    assert len(api.get("/api/pages").data) == 2
    for path in ("a.txt", "b.txt", "more/c.txt", "other/c.txt"):
        assert api.get(f"/uploads/{path}").raw == b"text"
    assert api.put("/api/notes/two", {"title": "Both"}).status == 200
    api.site.refresh()
    assert (tmp_path / "content/notes/two.yaml").is_symlink()
    assert [api.get(f"/api/notes/{name}").data["title"] for name in ("one", "two")] == ["Both", "Both"]


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("content-types/a.json", "../site.yaml"),
        ("content-types/a.json", "../content/notes/a.json"),
        ("content-types/inner", "../content"),
        ("content-types/a.json", "/etc/hostname"),
        ("content-types/a.json", "a.json"),
    ],
)
def test_a_schema_that_is_a_link_out_of_its_folder_is_refused(tmp_path: Path, path: str, target: str) -> None:
    write(tmp_path, {**FILES, "content/notes/a.json": schema("other", {"title": STRING})})
    link(tmp_path, {path: target})
    with pytest.raises(SetupError, match=rf"{path}: is a symbolic link"):
        Site(tmp_path)
    ((named, message),) = checked(tmp_path)
    assert (named, message.startswith("is a symbolic link")) == (path, True)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("../outside.yaml", "is a symbolic link that points outside the site's folder"),
        ("/etc/hostname", "is a symbolic link that points outside the site's folder"),
        (
            "content/uploads/settings.yaml",
            "is a symbolic link to content/uploads/settings.yaml, which can't contain settings",
        ),
        (
            "content/notes/settings.yaml",
            "is a symbolic link to content/notes/settings.yaml, which can't contain settings",
        ),
        (
            ".bifolio/settings.yaml",
            "is a symbolic link to .bifolio/settings.yaml, which can't contain settings",
        ),
        ("nothing.yaml", "is a symbolic link to a missing file"),
        ("site.yaml", "is a symbolic link that forms a cycle"),
    ],
)
def test_settings_that_are_a_link_to_what_others_write_are_refused(
    tmp_path: Path, target: str, told: str
) -> None:
    names = ("content/uploads", "content/notes", ".bifolio")
    settings = {f"{folder}/settings.yaml": "roles: {public: {note: [find, delete]}}\n" for folder in names}
    types = {path: text for path, text in FILES.items() if path.startswith("content-types/")}
    write(tmp_path / "site", {**types, **settings})
    write(tmp_path, {"outside.yaml": "name: outside"})
    link(tmp_path / "site", {"site.yaml": target})
    with pytest.raises(SetupError, match=f"site.yaml: {told}") as raised:
        Site(tmp_path / "site")
    assert "\n" not in str(raised.value)
    assert any(path == "site.yaml" and what.startswith(told) for path, what in checked(tmp_path / "site"))


def test_settings_may_be_a_link_to_a_file_of_the_site(tmp_path: Path) -> None:
    write(tmp_path, {"settings/live.yaml": "name: Live\n"})
    link(tmp_path, {"site.yaml": "settings/live.yaml"})
    assert Site(tmp_path).state.settings.name == "Live"


def test_the_folder_of_schemas_may_not_be_a_link_itself(tmp_path: Path) -> None:
    write(tmp_path / "outside", {"note.json": schema("note", {"title": STRING})})
    (tmp_path / "site").mkdir()
    link(tmp_path / "site", {"content-types": "../outside"})
    with pytest.raises(SetupError, match="content-types: is a symbolic link"):
        Site(tmp_path / "site")


@pytest.mark.parametrize("folder", ["content", "content/uploads", "content/notes"])
def test_a_folder_that_is_a_link_to_keys_is_not_looked_into(tmp_path: Path, folder: str) -> None:
    write(tmp_path, {**collection("note", {"title": STRING}), ".bifolio/jwt.key": "k" * 64})
    link(tmp_path, {folder: os.path.relpath(tmp_path / ".bifolio", (tmp_path / folder).parent)})
    api = make(tmp_path, {})
    assert [problem.path for problem in api.site.problems] == [folder]
    for path in ("/uploads/jwt.key", "/uploads/accounts.db"):
        assert api.get(path).status == 404


def test_the_folder_of_keys_may_not_come_with_the_content(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    link(tmp_path, {".bifolio": "content/uploads"})
    site = Site(tmp_path)
    site.load()
    settings = site.state.settings
    for check in (lambda: check_accounts(tmp_path, settings), lambda: Api.of(site)):
        with pytest.raises(SetupError, match=r"\.bifolio.*a (symbolic )?link"):
            check()
    assert sorted(path.name for path in (tmp_path / "content/uploads").iterdir()) == ["a.txt"]
    assert checked(tmp_path) == [(".bifolio", "is a symbolic link, but must be a folder")]
    (tmp_path / ".bifolio").unlink()
    check_accounts(tmp_path, settings)
    commit_all(tmp_path)
    check_accounts(tmp_path, settings)
    git(tmp_path, "add", "-f", ".bifolio/jwt.key")
    with pytest.raises(SetupError, match="is tracked by git"):
        check_accounts(tmp_path, settings)
    assert checked(tmp_path) == [
        (".bifolio", "is tracked by git, although it contains the site's secret keys")
    ]


# --- changes between the check and the opening of a file ------------------------------------------


def test_what_was_swapped_for_a_link_is_not_opened(tmp_path: Path) -> None:
    """The check applies to the opened file, not to its name."""
    root = tmp_path.resolve()
    write(root, {"content/a.txt": "text", ".bifolio/jwt.key": "secret"})
    os.close(open_file(root, "content/a.txt"))
    link(root, {"content/b.txt": "../.bifolio/jwt.key", "content/c": "../.bifolio", "content/d.txt": "a.txt"})
    os.close(open_file(root, "content/d.txt"))
    for path in ("content/b.txt", "content/c/jwt.key"):
        with pytest.raises(OSError, match="outside the content"):
            open_file(root, path)


def test_a_file_that_is_replaced_while_it_is_opened_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, real = tmp_path.resolve(), os.readlink
    write(root, {"content/a.txt": "old", "content/.new": "new"})

    def replaced(path: str) -> str:
        if (root / "content/.new").exists():
            os.rename(root / "content/a.txt", root / "content/.old")
            os.rename(root / "content/.new", root / "content/a.txt")
        return real(path)

    monkeypatch.setattr(os, "readlink", replaced)
    with open(open_file(root, "content/a.txt")) as file:
        assert file.read() == "new"


def test_a_link_that_is_replaced_while_it_is_resolved_counts_as_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"elsewhere/one.yaml": "title: Elsewhere\n"})
    (tmp_path / "notes").symlink_to("elsewhere")

    def replaced(path: str) -> str:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)

    monkeypatch.setattr(os, "readlink", replaced)  # as if a folder had replaced the link
    assert has_links(str(tmp_path), "notes/one.yaml", {})


def test_no_race_of_links_gets_a_secret_out_or_a_file_overwritten(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    uploads, notes = tmp_path / "content/uploads", tmp_path / "content/notes"
    session_key(tmp_path)
    secret = (tmp_path / ".bifolio/jwt.key").read_bytes()
    write(tmp_path, {"elsewhere/one.yaml": "title: Elsewhere\n"})
    stop = threading.Event()

    def swap() -> None:
        """Repeatedly replace a file and a folder with links, and restore them."""
        (tmp_path / "spare.txt").write_text("text")
        os.symlink("../../.bifolio/jwt.key", tmp_path / "bad.txt")
        while not stop.is_set():
            os.replace(tmp_path / "bad.txt", uploads / "a.txt")
            os.symlink("../../.bifolio/jwt.key", tmp_path / "bad.txt")
            os.replace(tmp_path / "spare.txt", uploads / "a.txt")
            (tmp_path / "spare.txt").write_text("text")
            with suppress(OSError):  # A write may have just created the folder.
                os.rename(notes, tmp_path / "aside")
                os.symlink("../elsewhere", notes)
                os.unlink(notes)
            with suppress(OSError):
                os.rename(tmp_path / "aside", notes)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        answers = [api.get("/uploads/a.txt") for _ in range(300)]
        statuses = {api.put("/api/notes/one", {"title": f"T{i}"}).status for i in range(60)}
    finally:
        stop.set()
        thread.join()
    assert {answer.status for answer in answers} <= {200, 404}
    assert not [answer for answer in answers if secret in answer.raw]
    assert statuses <= {200, 404, 409, 507}
    assert (tmp_path / "elsewhere/one.yaml").read_text() == "title: Elsewhere\n"
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["one.yaml"]


@pytest.mark.parametrize(
    ("path", "target", "may"),
    [
        ("content/a.md", "content/b.md", True),
        ("content/a.md", "content/uploads/b.md", True),
        ("content/uploads/a.md", "content/uploads/b.md", True),
        ("content/uploads", "content/uploads", True),
        ("content/uploads/a.md", "content/uploadsb.md", False),
        ("content/uploads/a.md", "content/b.md", False),
        ("content/a.md", "content/.b.md", False),
        ("content/a.md", "contents/b.md", False),
        ("content/a.md", "", False),
        ("docs/a.md", "README.md", True),
        ("docs/a.md", "content/a.md", True),
        ("docs/a.md", "content-types/a.json", False),
        ("docs", "", False),
    ],
)
def test_where_a_link_may_lead(path: str, target: str, may: bool) -> None:
    assert may_point_to(path, target) is may
