"""Tests of the extension for VS Code (`make test-clients`): it is packaged with vsce, and the package runs
with the real vscode-languageclient and a real language server.

VS Code itself is replaced by a stub of its module `vscode`, because it is not on npm.
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.ci import skipped
from tests.clients.npm import install, missing_node
from tests.servers import ROOT
from tests.sites import STRING, collection, relation, write

EXTENSION = ROOT / "editors" / "vscode"
WALK = Path(__file__).parent / "vscode" / "walk.cjs"
SITE = {
    "site.yaml": "name: A\n",
    **collection("tag", {"name": STRING}),
    **collection(
        "post",
        {
            "title": STRING,
            "body": {"type": "richtext"},
            "mood": {"type": "enumeration", "enum": ["calm", "rough"]},
            "tags": relation("manyToMany", "tag"),
        },
    ),
    "content/tags/sea.yaml": "name: Sea\n",
    "content/posts/one.md": "---\ntitle: One\n---\n",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the unpacked extension."""
    if (reason := missing_node() or install(EXTENSION)) is not None:
        skipped("test-clients", reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("vscode")
    command = ["npm", "run", "package", "--silent", "--", "--out", str(folder / "bifolio.vsix")]
    done = subprocess.run(command, cwd=EXTENSION, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(folder / "bifolio.vsix") as file:
        file.extractall(folder)
    return folder / "extension"


def test_the_package_contains_what_the_extension_needs(package: Path) -> None:
    names = {path.name for path in package.iterdir()}
    assert names == {"LICENSE.txt", "extension.js", "node_modules", "package.json", "readme.md"}
    assert (package / "node_modules" / "vscode-languageclient").is_dir()
    assert not (package / "node_modules" / "@vscode").exists()


def test_the_extension_with_a_language_server(package: Path, tmp_path: Path) -> None:
    write(tmp_path, SITE)
    command = ["node", str(WALK), str(package), str(tmp_path), sys.executable]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
