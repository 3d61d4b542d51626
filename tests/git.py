"""git for tests, without the user's own settings and with a fixed time."""

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

TIME = "2024-01-01T00:00:00Z"


def git(folder: Path, *arguments: str, at: str = TIME) -> str:
    """Run a git command in a folder and return its output. Raises CalledProcessError if the command fails.

    The command starts no maintenance, for example after a commit, and creates repositories without sample
    hooks. Both take as long as the command itself.
    """
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    environment["GIT_TEMPLATE_DIR"] = _template()
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{who}_NAME": "T", f"GIT_{who}_EMAIL": "t@example.org", f"GIT_{who}_DATE": at}
    command = ["git", "-c", "maintenance.auto=false", *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=environment)
    return done.stdout


@cache
def _template() -> str:
    """Create the folder that git copies into new repositories. It has git's usual folders, but no files."""
    folder = tempfile.mkdtemp(prefix="bifolio-git-template-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("hooks", "info"):
        Path(folder, name).mkdir()
    return folder


def commit_all(folder: Path, *, at: str = TIME) -> None:
    """Create a repository in a folder, with a first commit that contains all files."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first", at=at)
