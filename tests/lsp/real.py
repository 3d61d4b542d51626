"""`python -m tests.lsp.real FOLDER` makes random edits in real repositories without saving them, and compares
the language server's problems with those that `bifolio check` finds once the same texts are saved.

FOLDER contains the trees that bench/real/trees.py lists. The exit status is 1 if the problems differ.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.real.trees import TREES, Tree, commit, find, unpack
from tests.site.unsaved import compare_edits

STEPS = 2  # edits in each tree; after each, the saved copy is opened and checked, which takes seconds


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.lsp.real")
    parser.add_argument("folder", type=Path)
    parser.add_argument("trees", nargs="*")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_intermixed_args()
    os.environ.update(GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="gc.auto", GIT_CONFIG_VALUE_0="0")
    status = 0
    for tree in TREES:
        source = find(tree, options.folder)
        if source is None or tree.defines_types or (options.trees and tree.name not in options.trees):
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="bifolio-lsp-") as folder:
            try:
                _compare(tree, source, Path(folder), options.seed, options.steps)
            except AssertionError as error:
                status = 1
                print(f"{tree.name}: DIFFERENT: {error}")
        print(f"{tree.name}: {options.steps} edits in {time.monotonic() - began:.0f} s", flush=True)
    return status


def _compare(tree: Tree, source: Path, folder: Path, seed: int, steps: int) -> None:
    root = unpack(source, tree.name, folder)
    command = [sys.executable, "-m", "server", "init", str(root), "--yes"]
    subprocess.run(command, check=True, capture_output=True)
    commit(root, "content types")
    copy = folder / "saved"
    shutil.copytree(root, copy, symlinks=True)
    compare_edits(root, copy, seed, steps, with_fixes=False)


if __name__ == "__main__":
    sys.exit(main())
