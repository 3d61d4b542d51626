"""A walk with Neovim, set up as in docs/lsp.md: it shows a problem, completes a relation and goes to it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.ci import IN_CI
from tests.lsp.sites import FILES
from tests.sites import write

WALK = Path(__file__).with_name("walk.lua")


@pytest.mark.skipif(not (shutil.which("nvim") or IN_CI), reason="nvim is not installed")
def test_neovim_checks_completes_and_goes_to_a_definition(tmp_path: Path) -> None:
    site, result, configuration = tmp_path / "site", tmp_path / "result.json", tmp_path / "init.lua"
    write(site, {**FILES, "content/articles/new.md": "---\ntitle: New\nauthor: nobody\n---\nText\n"})
    configuration.write_text(example_for(neovim_version()))
    command_file = tmp_path / "bin/bifolio"
    command_file.parent.mkdir()
    command_file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m server "$@"\n')
    command_file.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{command_file.parent}:{os.environ['PATH']}",
        "WALK_SITE": str(site),
        "WALK_CONFIGURATION": str(configuration),
        "WALK_RESULT": str(result),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
    }
    command = ["nvim", "--headless", "--clean", "-c", f"luafile {WALK}"]
    subprocess.run(command, env=environment, capture_output=True, timeout=300, check=True)
    assert json.loads(result.read_text()) == {
        "diagnostic": [
            2,
            8,
            'author: the document "nobody" of type api::author.author does not exist. '
            "Fix the id, or remove it.",
        ],
        "completed": "author: bob",
        "definition": str(site / "content/authors/bob.yaml"),
    }
    assert (site / "content/articles/new.md").read_text() == "---\ntitle: New\nauthor: bob\n---\nText\n"


def blocks(language: str) -> list[str]:
    """Return the examples in docs/lsp.md in a language."""
    page = (Path(__file__).parents[2] / "docs/lsp.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)


def neovim_version() -> tuple[int, int]:
    version = subprocess.run(["nvim", "--version"], capture_output=True, text=True, timeout=60, check=True)
    found = re.match(r"NVIM v(\d+)\.(\d+)", version.stdout)
    assert found is not None
    return int(found[1]), int(found[2])


def example_for(version: tuple[int, int]) -> str:
    newest, middle, oldest = blocks("lua")
    return newest if version >= (0, 11) else middle if version >= (0, 8) else oldest


def test_the_examples_of_configurations_can_be_read(tmp_path: Path) -> None:
    [settings] = map(json.loads, blocks("json"))
    assert settings["bifolio.command"].endswith("/bifolio")
    [languages] = map(tomllib.loads, blocks("toml"))
    assert {language["language-servers"][0] for language in languages["language"]} == {"bifolio"}
    assert len(blocks("lua")) == 3


@pytest.mark.skipif(not (shutil.which("nvim") or IN_CI), reason="nvim is not installed")
def test_the_examples_for_neovim_are_valid_lua(tmp_path: Path) -> None:
    for number, example in enumerate(blocks("lua")):
        path = tmp_path / f"{number}.lua"
        path.write_text(example)
        check = f"lua local f, wrong = loadfile('{path}') if not f then print(wrong) vim.cmd('cquit') end"
        command = ["nvim", "--headless", "--clean", "-c", check, "-c", "qall!"]
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr.decode()
