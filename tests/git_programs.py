"""Programs that replace git in tests, so that some git commands are slow or fail."""

import os
import shlex
import shutil
from pathlib import Path

import pytest

GIT = shutil.which("git") or "git"


def fake_git(patch: pytest.MonkeyPatch, folder: Path, **instead: str) -> None:
    """Make git commands run lines of a shell script first.

    Each keyword is the name of a git command, with `_` for `-`.
    """
    folder.mkdir(exist_ok=True)
    cases = "".join(f"{name.replace('_', '-')}) {lines} ;;\n" for name, lines in instead.items())
    program = folder / "git"
    program.write_text(
        f'#!/bin/sh\nfor word; do case "$word" in\n{cases}esac; done\nexec {shlex.quote(GIT)} "$@"\n'
    )
    program.chmod(0o755)
    patch.setenv("PATH", str(folder), prepend=os.pathsep)


def failing_git(patch: pytest.MonkeyPatch, folder: Path, *commands: str) -> None:
    """Make git commands fail as if the repository were damaged."""
    fake_git(patch, folder, **dict.fromkeys(commands, "echo 'fatal: it is damaged' >&2; exit 128"))
