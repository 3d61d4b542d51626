"""A walk with Neovim: it shows a problem, completes a relation and goes to its definition."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ci import IN_CI
from tests.lsp.sites import FILES
from tests.sites import write

WALK = Path(__file__).with_name("walk.lua")


@pytest.mark.skipif(not (shutil.which("nvim") or IN_CI), reason="nvim is not installed")
def test_neovim_checks_completes_and_goes_to_a_definition(tmp_path: Path) -> None:
    site, result = tmp_path / "site", tmp_path / "result.json"
    write(site, {**FILES, "content/articles/new.md": "---\ntitle: New\nauthor: nobody\n---\nText\n"})
    environment = {
        **os.environ,
        "WALK_SITE": str(site),
        "WALK_PYTHON": sys.executable,
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
