"""git for tests, without the user's own settings and with a fixed time."""

import os
import subprocess
from pathlib import Path

TIME = "2024-01-01T00:00:00Z"


def git(folder: Path, *arguments: str, at: str = TIME) -> str:
    """Run a git command in a folder and return its output. Raises CalledProcessError if the command fails."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{who}_NAME": "T", f"GIT_{who}_EMAIL": "t@example.org", f"GIT_{who}_DATE": at}
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=environment)
    return done.stdout


def commit_all(folder: Path, *, at: str = TIME) -> None:
    """Create a repository in a folder, with a first commit that contains all files."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first", at=at)
