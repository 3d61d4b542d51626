"""`bifolio export --at`: the files must be the same as in an export from a checkout of the commit."""

import json
import shutil
from pathlib import Path

import pytest

from tests.commands.test_cli import run
from tests.commands.test_serve_at import SITE, make_site
from tests.git import git
from tests.sites import write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


def exported(folder: Path) -> dict[str, bytes]:
    """Return the files of an export. The commit id is removed from the manifest."""
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    manifest = json.loads(files.pop("bifolio-export.json"))
    manifest.pop("commit", None)
    return {**files, "bifolio-export.json": json.dumps(manifest).encode()}


def export(site: Path, target: Path, *options: str) -> str:
    done = run("export", str(target), "--site", str(site), "--everything", *options)
    assert done.exit_code == 0, done.output
    return done.output


def moved_into(tmp_path: Path, sub: str) -> Path:
    """Create a site in a subfolder of its repository. Everything has changed since its first commit."""
    root = tmp_path / "repository"
    make_site(root)
    if sub:
        git(root, "filter-branch", "-f", "--index-filter", _INTO.format(sub), "HEAD")
        git(root, "reset", "-q", "--hard")
    return root / sub


_INTO = (
    "git ls-files -s | sed 's-\\t-&{}/-' | GIT_INDEX_FILE=$GIT_INDEX_FILE.new git update-index --index-info"
    ' && mv "$GIT_INDEX_FILE.new" "$GIT_INDEX_FILE"'
)


@pytest.mark.parametrize("sub", ["", "site"])
def test_it_has_the_bytes_of_an_export_of_a_checkout(tmp_path: Path, sub: str) -> None:
    site = moved_into(tmp_path, sub)
    commit = git(site, "rev-parse", "HEAD~1").strip()
    git(tmp_path, "clone", "-q", str(tmp_path / "repository"), str(tmp_path / "checkout"))
    git(tmp_path / "checkout", "checkout", "-q", commit)
    export(tmp_path / "checkout" / sub, tmp_path / "wanted")
    before = git(site, "status", "--short", "--branch")
    printed = export(site, tmp_path / "public", "--at", "HEAD~1")
    assert f"commit {commit[:10]} of 2024-01-01" in printed
    assert exported(tmp_path / "public") == exported(tmp_path / "wanted")
    assert "uploads/small_a.png" in exported(tmp_path / "public")
    assert json.loads((tmp_path / "public/bifolio-export.json").read_bytes())["commit"] == commit
    assert git(site, "status", "--short", "--branch") == before


def test_later_exports_write_what_differs(tmp_path: Path) -> None:
    site = moved_into(tmp_path, "")
    export(site, tmp_path / "public")
    now = exported(tmp_path / "public")
    export(site, tmp_path / "public", "--at", "HEAD~1")
    assert exported(tmp_path / "public") != now
    assert " 0 written" in export(site, tmp_path / "public", "--at", "HEAD~1")
    export(site, tmp_path / "public")
    assert exported(tmp_path / "public") == now


def test_it_never_goes_into_the_site(tmp_path: Path) -> None:
    site = moved_into(tmp_path, "")
    done = run("export", str(site / "content"), "--site", str(site), "--at", "HEAD~1")
    assert (done.exit_code, "overlaps with a folder of the site" in done.output) == (1, True)


@pytest.mark.parametrize("name", ["nothing", "--all", ""])
def test_a_name_of_no_commit_is_one_line(tmp_path: Path, name: str) -> None:
    site = moved_into(tmp_path, "")
    done = run("export", str(tmp_path / "public"), "--site", str(site), "--at", name)
    assert (done.exit_code, len(done.output.splitlines())) == (1, 1)
    assert not (tmp_path / "public").exists()


def test_a_commit_before_there_was_a_site_is_one_line(tmp_path: Path) -> None:
    root = tmp_path / "site"
    write(root, {"README": "Soon."})
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    write(root, {"site.yaml": SITE.format("Now", "[]")})
    done = run("export", str(tmp_path / "public"), "--site", str(root), "--at", "HEAD")
    assert (done.exit_code, "does not contain a site" in done.output) == (1, True)
