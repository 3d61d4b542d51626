"""Shells complete commands, options and their values, as docs/completion.md says."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def quire(tmp_path: Path) -> dict[str, str]:
    """An environment whose path has a `quire` that is the one of this folder."""
    program = tmp_path / "bin" / "quire"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m server "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def bash(environment: dict[str, str], line: str) -> set[str]:
    """What bash offers at the end of a line, once it has read the script."""
    words = line.split(" ")
    script = f"""
        eval "$(_QUIRE_COMPLETE=bash_source quire)"
        COMP_WORDS=({" ".join(word or "''" for word in words)}) COMP_CWORD={len(words) - 1}
        _quire_completion quire
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("quire s", {"serve", "search"}),
        ("quire import ", {"strapi"}),
        ("quire webhook re", {"replay"}),
        ("quire serve --w", {"--workers"}),
        ("quire token create build --type ", {"full-access", "read-only", "custom"}),
        ("quire check --format g", {"github"}),
        ("quire ch", {"check", "changes"}),
        ("quire changes --st", {"--status"}),
        ("quire changes --since 0 --status ", {"published", "draft"}),
    ],
)
def test_bash(quire: dict[str, str], line: str, offered: set[str]) -> None:
    assert bash(quire, line) == offered


@pytest.mark.parametrize(
    ("shell", "begins"), [("zsh", "#compdef quire"), ("fish", "function _quire_completion;")]
)
def test_the_script_of_another_shell(quire: dict[str, str], shell: str, begins: str) -> None:
    asked = {**quire, "COMP_WORDS": "quire s", "COMP_CWORD": "s" if shell == "fish" else "1"}
    for what, expected in (("source", begins), ("complete", "plain")):
        told = subprocess.run(
            ["quire"],
            env={**asked, "_QUIRE_COMPLETE": f"{shell}_{what}"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.startswith(expected)
        assert what == "source" or {"serve", "search"} <= set(told.stdout.replace(",", "\n").split())
