"""`bifolio merge-driver run`, which git calls."""

import sys
from pathlib import Path

import click

from server.tools.merge_driver.run import MergeFiles, parse_labels, run_driver

_FILE = click.Path(path_type=Path)


@click.command()
@click.option("--base", "is_ancestor", is_flag=True, help="The result is the base of another merge.")
@click.argument("base", metavar="%O", type=_FILE)
@click.argument("ours", metavar="%A", type=_FILE)
@click.argument("theirs", metavar="%B", type=_FILE)
@click.argument("size", metavar="%L", type=click.IntRange(1, 1000))
@click.argument("path", metavar="%P")
@click.argument("labels", metavar="[%S %X %Y]", nargs=-1)
def run(
    base: Path, ours: Path, theirs: Path, size: int, path: str, labels: tuple[str, ...], is_ancestor: bool
) -> None:
    """Merge one file. This command is called by git.

    Writes the result to the file %A, as git expects. Exits with status 1 if there are conflicts.
    """
    files = MergeFiles(base, ours, theirs, size, path, parse_labels(labels), is_ancestor)
    sys.exit(0 if run_driver(files, Path()) else 1)
