"""`bifolio lsp`."""

import os
import sys
from pathlib import Path

import click

from server.lsp.server import serve_stdio


@click.command("lsp")
@click.option(
    "--site",
    "root",
    type=click.Path(path_type=Path),
    help="Use only the site in this folder. [default: the site that contains each open file]",
)
@click.option("--stdio", is_flag=True, hidden=True)  # Some editors pass this option to every server.
def lsp(root: Path | None, stdio: bool) -> None:
    """Start a language server, which communicates with an editor through standard input and output.

    It checks files while you type, completes keys and values, explains them, and renames documents
    (docs/lsp.md).
    """
    status = serve_stdio(root)
    sys.stderr.flush()
    os._exit(status)  # Don't wait for threads that may be waiting for git or the disk.
