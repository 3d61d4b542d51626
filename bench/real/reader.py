"""Reader for a tree's files that uses packages from npm instead of Bifolio's code."""

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
    """The content of one file. Values in `typed` have the types of YAML 1.2, TOML or JSON; `text` contains
    the text of YAML scalars.
    """

    path: str
    format: str = ""
    typed: dict[str, Any] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)
    body: str | None = None
    error: str | None = None


def install_reader() -> tuple[Path, str | None]:
    """Install the npm packages if necessary. Return their folder, and what is missing on this machine."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home, "bifolio", "real")
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copy(HERE / name, folder)
    return folder, missing_node((18, 0)) or install(folder)


def read(reader: Path, root: Path, paths: Iterable[str]) -> dict[str, Reading]:
    request = json.dumps({"root": str(root), "paths": list(paths)})
    done = subprocess.run(
        ["node", str(reader / "read.mjs")], input=request.encode(), stdout=subprocess.PIPE, check=True
    )
    readings = (Reading(**json.loads(line)) for line in done.stdout.splitlines())
    return {reading.path: reading for reading in readings}
