"""`make real REAL=dir` serves real repositories in place, and checks what Bifolio reads and writes.

The folder `dir` contains the trees that are listed in bench/real/trees.py. Each tree is an archive
NAME.tar.gz or NAME.tar.xz, or a folder NAME. For each tree, this command:

1. runs `bifolio init`, `bifolio check` and a server
2. compares the language server's problems in unsaved texts with those of `bifolio check`
3. compares the values of all documents with the values that packages from npm read
4. writes documents back, first unchanged and then with one attribute changed

The exit status is 1 if there is a difference that is not declared in bench/real/known.py.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.real.reader import install_reader
from bench.real.report import print_report
from bench.real.run import run
from bench.real.trees import TREES, find
from tests.ci import skipped
from tests.signals import restore_in_children

DOCUMENTS = 40  # number of documents that are written in each tree
AT_ONCE = 2


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.real", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the trees are")
    parser.add_argument("trees", nargs="*", help="their names (default: all that are there)")
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help="how many to write of each tree")
    parser.add_argument("--all", action="store_true", help="write all documents, rename all attributes")
    options = parser.parse_args()
    restore_in_children()
    wanted = [tree for tree in TREES if not options.trees or tree.name in options.trees]
    sources = {tree: path for tree in wanted if (path := find(tree, options.folder)) is not None}
    for tree in wanted:
        if tree not in sources:
            print(f"{tree.name} is missing: {tree.url}, {tree.commit or 'any commit'}, {tree.subfolder}")
    if not sources:
        print(f"No tree in {options.folder}. Name a folder with make real REAL=dir: it has an archive")
        print("NAME.tar.gz or NAME.tar.xz, or a folder NAME, of each repository to look at.")
        return 0
    reader, reason = install_reader()
    if reason is not None:
        return skipped("real", reason)
    limit = None if options.all else options.documents
    with tempfile.TemporaryDirectory(prefix="bifolio-real-") as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        running = [
            pool.submit(run, tree, path, Path(folder), reader, limit) for tree, path in sources.items()
        ]
        return 0 if print_report([future.result() for future in running]) else 1


if __name__ == "__main__":
    sys.exit(main())
