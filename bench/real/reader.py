"""Reader for the files in a tree that uses none of Bifolio's code. It uses packages from npm, which are
installed once in a cache folder.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients.npm import install, missing_node

HERE = Path(__file__).parent
FILES = ("package.json", "read.mjs")


@dataclass(frozen=True, slots=True)
class Reading:
    """Content of one file: its keys, and the body if it is a Markdown file.

    `typed` contains the values with the types of YAML 1.2, TOML or JSON. `text` contains the text of each
    YAML scalar.
    """

    path: str
    format: str = ""
    typed: dict[str, Any] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)
    body: str | None = None
    error: str | None = None


def install_reader() -> tuple[Path, str | None]:
    """Install the npm packages, unless they are already installed. Return their folder, and what is missing
    on this machine (None if nothing is missing).
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home, "bifolio", "real")
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copy(HERE / name, folder)
    return folder, missing_node((18, 0)) or install(folder)


def read(reader: Path, root: Path, paths: Iterable[str]) -> dict[str, Reading]:
    """Read files in a tree. Return their contents by path."""
    request = json.dumps({"root": str(root), "paths": list(paths)})
    done = subprocess.run(
        ["node", str(reader / "read.mjs")], input=request.encode(), stdout=subprocess.PIPE, check=True
    )
    readings = (Reading(**json.loads(line)) for line in done.stdout.splitlines())
    return {reading.path: reading for reading in readings}
