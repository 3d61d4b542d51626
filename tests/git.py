"""git in tests: as a person without settings of their own, at a time that is given."""

import os
import subprocess
from pathlib import Path

TIME = "2024-01-01T00:00:00Z"


def git(folder: Path, *arguments: str, at: str = TIME) -> str:
    """Run a git command in a folder; what it printed. Raises CalledProcessError where it fails."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{who}_NAME": "T", f"GIT_{who}_EMAIL": "t@example.org", f"GIT_{who}_DATE": at}
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=environment)
    return done.stdout


def commit_all(folder: Path, *, at: str = TIME) -> None:
    """Make a folder a repository whose first commit has all of its files."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first", at=at)
