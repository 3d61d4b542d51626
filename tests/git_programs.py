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


def killed_ref_update(root: Path, *locks: str, empty: bool = False) -> str:
    """Return lines that kill `git update-ref` once, after it has locked HEAD and the refs `locks`."""
    folder = root / ".git"
    commit = "" if empty else "read verb ref commit rest; printf '%s\\n' $commit"
    branches = "".join(f"cp {folder}/content {folder}/{lock}.lock; " for lock in locks)
    fill = f"{commit or ':'} >{folder}/content; : >{folder}/HEAD.lock; {branches}"
    return f"if mkdir {folder}/killed; then {fill} kill -9 $$; fi"
