"""What the commands of the command line share: the --site option, and errors as one line."""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from server.errors import SetupError

site_option = click.option(
    "--site",
    "root",
    type=click.Path(path_type=Path),
    envvar="QUIRE_SITE",
    default=".",
    show_default="$QUIRE_SITE, else this folder",
    help="The site's folder.",
)


def one_line_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Print a SetupError as one line and end with status 1."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except SetupError as error:
            click.echo(f"quire: {error}", err=True)
            sys.exit(1)

    return run


def check_folder(root: Path) -> None:
    """Raise SetupError where there is no such folder."""
    if not root.is_dir():
        raise SetupError(str(root), None, "there is no such folder", "name the site's folder with --site")
