"""Tests of shell completion for commands, options and values (docs/completion.md)."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bifolio(tmp_path: Path) -> dict[str, str]:
    """An environment in whose PATH the command `bifolio` runs the code in this repository."""
    program = tmp_path / "bin" / "bifolio"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m server "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def bash(environment: dict[str, str], line: str) -> set[str]:
    """Return the completions that bash offers at the end of a line after loading the completion script."""
    words = line.split(" ")
    script = f"""
        eval "$(_BIFOLIO_COMPLETE=bash_source bifolio)"
        COMP_WORDS=({" ".join(word or "''" for word in words)}) COMP_CWORD={len(words) - 1}
        _bifolio_completion bifolio
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("bifolio s", {"serve", "schema", "search"}),
        ("bifolio import ", {"strapi"}),
        ("bifolio webhook re", {"replay"}),
        ("bifolio serve --w", {"--workers"}),
        ("bifolio token create build --type ", {"full-access", "read-only", "custom"}),
        ("bifolio check --format g", {"github", "gitlab"}),
        ("bifolio ch", {"check", "changes"}),
        ("bifolio changes --st", {"--status"}),
        ("bifolio changes --since 0 --status ", {"published", "draft"}),
    ],
)
def test_bash(bifolio: dict[str, str], line: str, offered: set[str]) -> None:
    assert bash(bifolio, line) == offered


@pytest.mark.parametrize(
    ("shell", "begins"), [("zsh", "#compdef bifolio"), ("fish", "function _bifolio_completion;")]
)
def test_the_script_of_another_shell(bifolio: dict[str, str], shell: str, begins: str) -> None:
    asked = {**bifolio, "COMP_WORDS": "bifolio s", "COMP_CWORD": "s" if shell == "fish" else "1"}
    for what, expected in (("source", begins), ("complete", "plain")):
        told = subprocess.run(
            ["bifolio"],
            env={**asked, "_BIFOLIO_COMPLETE": f"{shell}_{what}"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.startswith(expected)
        assert what == "source" or {"serve", "search"} <= set(told.stdout.replace(",", "\n").split())
