"""Tests for the files that commands write: links in a cloned site don't lead outside it."""

import os
import shutil
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from server.commands.cli import main
from server.errors import SetupError
from server.paths import folder_in_state
from server.tools.generated_files import create_file, delete_file, replace_file
from tests.git import git
from tests.sites import STRING, collection, write

URL = "https://example.org/bifolio.git"
TEXT = "Not of this site\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    write(tmp_path / "victim", {"profile": TEXT})
    write(tmp_path / "site", {"site.yaml": "name: Site\n", **collection("note", {"title": STRING})})
    return tmp_path / "site"


def run(site: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments], env={"BIFOLIO_SITE": str(site)})


def link(site: Path, path: str, target: str) -> None:
    (site / path).parent.mkdir(parents=True, exist_ok=True)
    (site / path).symlink_to(site.parent / target)


SCHEMAS = ("schema", "--json-schema")


@pytest.mark.parametrize(
    ("path", "target", "command"),
    [
        ("out/yaml/note.json", "victim/profile", (*SCHEMAS, "out")),
        ("out/yaml/note.json", "victim/new", (*SCHEMAS, "out")),
        ("out/yaml", "victim", (*SCHEMAS, "out")),
        (".vscode/settings.json", "victim/profile", (*SCHEMAS, "out", "--vscode")),
        (".vscode", "victim", (*SCHEMAS, "out", "--vscode")),
        ("note.ts", "victim/profile", ("types", "--out", "note.ts")),
        (".github", "victim", ("init", ".", "--ci", "--yes", "--from", URL)),
    ],
)
def test_a_link_in_a_clone_is_refused(
    site: Path, monkeypatch: pytest.MonkeyPatch, path: str, target: str, command: tuple[str, ...]
) -> None:
    link(site, path, target)
    monkeypatch.chdir(site)
    done = run(site, *command)
    assert done.exit_code == 1
    assert f"{path}: is a symbolic link, so nothing is written there. Remove the link." in done.output
    assert "Traceback" not in done.output
    assert os.listdir(site.parent / "victim") == ["profile"]
    assert (site.parent / "victim/profile").read_text() == TEXT


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_the_merge_driver_does_not_write_through_a_link(site: Path, command: str) -> None:
    git(site, "init", "-q")
    link(site, ".gitattributes", "victim/profile")
    done = run(site, "merge-driver", command)
    assert done.exit_code == 1
    assert ".gitattributes: is a symbolic link, so nothing is written there." in done.output
    assert (site.parent / "victim/profile").read_text() == TEXT
    assert (site / ".gitattributes").is_symlink()


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_the_merge_driver_has_no_temporary_file_that_a_clone_could_contain(site: Path) -> None:
    git(site, "init", "-q")
    link(site, ".gitattributes.bifolio", "victim/profile")
    done = run(site, "merge-driver", "install")
    assert done.exit_code == 0
    assert not (site / ".gitattributes").is_symlink()
    assert (site.parent / "victim/profile").read_text() == TEXT


def test_outdated_json_schemas_are_not_deleted_through_a_link(site: Path) -> None:
    assert run(site, *SCHEMAS, str(site / "out")).exit_code == 0
    shutil.move(site / "out/yaml", site.parent / "victim/yaml")
    (site.parent / "victim/yaml/note.json").rename(site.parent / "victim/yaml/old.json")
    link(site, "out/yaml", "victim/yaml")
    assert run(site, *SCHEMAS, str(site / "out")).exit_code == 1
    assert [path.name for path in (site.parent / "victim/yaml").iterdir()] == ["old.json"]


def test_a_link_in_the_path_that_the_user_typed_is_followed(site: Path) -> None:
    (site.parent / "elsewhere").mkdir()
    link(site, "out", "elsewhere")
    assert run(site, *SCHEMAS, str(site / "out")).exit_code == 0
    assert (site.parent / "elsewhere/yaml/note.json").is_file()
    assert run(site, "types", "--out", str(site / "out/note.ts")).exit_code == 0
    assert (site.parent / "elsewhere/note.ts").is_file()


def test_the_state_folder_has_no_link_that_leads_out(site: Path) -> None:
    link(site, ".bifolio/import", "victim")
    link(site, ".bifolio/.gitignore", "victim/new")
    with pytest.raises(OSError, match="is a symbolic link"):
        folder_in_state(site, "import")
    assert os.listdir(site.parent / "victim") == ["profile"]


def test_a_replaced_file_keeps_its_mode_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1", "b/c": "1"})
    (tmp_path / "a").chmod(0o604)
    (tmp_path / "plain").write_text("1")
    for path in ("a", "new/file"):
        replace_file(tmp_path, path, b"2")
        assert (tmp_path / path).read_bytes() == b"2"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o604
    assert (tmp_path / "new/file").stat().st_mode == (tmp_path / "plain").stat().st_mode
    with pytest.raises(SetupError, match="b: can't be written: it is not a regular file"):
        replace_file(tmp_path, "b", b"2")
    with pytest.raises(SetupError, match="a/b: can't be written: Not a directory"):
        replace_file(tmp_path, "a/b", b"2")
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "new", "plain"]


def test_a_new_file_replaces_none(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1"})
    with pytest.raises(SetupError, match="a: can't be written: File exists"):
        create_file(tmp_path, "a", b"2")
    assert (tmp_path / "a").read_text() == "1"
    delete_file(tmp_path, "a")
    delete_file(tmp_path, "a")
    assert os.listdir(tmp_path) == []
