"""Repositories with an installed merge driver, and git commands that run the driver."""

import os
import subprocess
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner

from server.commands.cli import main
from tests.git import TIME
from tests.sites import STRING, Files, collection, component, relation, write

ROOT = Path(__file__).parents[3]
PATH = "content/notes/one.md"
SITE = {
    "site.yaml": "search: {index: false}\n",
    ".gitignore": ".bifolio/\n",
    **component("page.block", {"heading": STRING, "text": STRING}),
    **collection("tag", {"name": STRING}),
    **collection(
        "note",
        {
            "title": {"type": "string", "required": True},
            "summary": STRING,
            "number": {"type": "integer"},
            "data": {"type": "json"},
            "body": {"type": "richtext"},
            "tags": relation("manyToMany", "tag"),
            "blocks": {"type": "component", "component": "page.block", "repeatable": True},
        },
        drafts=True,
    ),
    "content/tags/sea.yaml": "name: Sea\n",
    "content/tags/sky.yaml": "name: Sky\n",
}
BASE = (
    "---\n# A comment\ntitle: 'One'\nsummary: Short  # kept\nnumber: 1\ntags: [sea]\n"
    "updatedAt: 2024-01-01T00:00:00.000Z\n---\nFirst\n\nSecond\n\nThird\n"
)


def environment() -> dict[str, str]:
    """Return the environment for git: without the user's settings, and with this checkout of Bifolio."""
    people = {
        f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    dates = {"GIT_AUTHOR_DATE": TIME, "GIT_COMMITTER_DATE": TIME}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_EDITOR": ":"}
    return {**os.environ, **people, **dates, **quiet, "PYTHONPATH": str(ROOT)}


def run_git(folder: Path, *arguments: str, status: int | None = 0) -> str:
    """Run a git command, and check its exit status unless `status` is None. Return its output."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment(), capture_output=True, check=False
    )
    output = (done.stdout + done.stderr).decode(errors="replace")
    assert status in (None, done.returncode), output
    return done.stdout.decode(errors="surrogateescape")


def bifolio(folder: Path, *arguments: str, status: int = 0) -> str:
    """Run a `bifolio` command, and check its exit status. Return its output, including error output.

    The command runs in this process, because a new one needs 0.4 s of processor time to import Bifolio.
    """
    with chdir(folder):
        done = CliRunner().invoke(main, arguments, env=environment())
    assert done.exit_code == status, done.output
    return done.output


def save(folder: Path, files: Files, message: str = "change") -> str:
    """Write files, commit them, and return the commit's id."""
    write(folder, files)
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-qm", message)
    return run_git(folder, "rev-parse", "HEAD").strip()


def create(folder: Path, files: Files, site: str = "") -> None:
    """Create a repository with files, and install the driver for the site in the folder `site`."""
    folder.mkdir(parents=True, exist_ok=True)
    run_git(folder, "init", "-qb", "main")
    write(folder, files)
    bifolio(folder / site, "merge-driver", "install")
    save(folder, {}, "first")


def diverge(folder: Path, ours: Files, theirs: Files) -> None:
    """Commit `theirs` on the branch `next`, and `ours` on the branch `main`, which is then checked out."""
    run_git(folder, "checkout", "-qb", "next")
    save(folder, theirs, "theirs")
    run_git(folder, "checkout", "-q", "main")
    save(folder, ours, "ours")
