"""`bifolio merge-driver install` and `uninstall`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from server.tools.merge_driver.install import (
    ATTRIBUTES,
)
from server.tools.merge_driver.install import (
    install as install_driver,
)
from server.tools.merge_driver.install import (
    uninstall as uninstall_driver,
)
from server.tools.terminal import check_site, one_line_errors

_HINTS = (
    f"Commit {ATTRIBUTES}. It applies to every clone.",
    "git's config is not copied to clones: run `bifolio merge-driver install` in each clone.",
)


def _tell(changed: bool, what: str, otherwise: str) -> None:
    click.echo(what if changed else otherwise)


def _site_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    path = click.Path(path_type=Path)
    return click.argument("root", metavar="[SITE]", type=path, envvar="BIFOLIO_SITE", default=".")(command)


@click.command()
@_site_argument
@one_line_errors
def install(root: Path) -> None:
    """Let git merge this site's documents attribute by attribute.

    Adds lines to .gitattributes in the site's folder, and the driver to the config of this clone. SITE is the
    site's folder, by default $BIFOLIO_SITE or the current folder.
    """
    check_site(root)
    done = install_driver(root.resolve())
    _tell(done.attributes, f"{ATTRIBUTES}: {len(done.patterns)} patterns", f"{ATTRIBUTES}: unchanged")
    _tell(done.config, "git config: merge.bifolio", "git config: unchanged")
    for hint in _HINTS:
        click.echo(hint)


@click.command()
@_site_argument
@one_line_errors
def uninstall(root: Path) -> None:
    """Let git merge this site's documents line by line again.

    Removes what `install` has added. SITE is the site's folder, by default $BIFOLIO_SITE or the current
    folder.
    """
    check_site(root)
    done = uninstall_driver(root.resolve())
    _tell(done.attributes, f"{ATTRIBUTES}: lines removed", f"{ATTRIBUTES}: unchanged")
    _tell(done.config, "git config: merge.bifolio removed", "git config: unchanged")
    if done.attributes:
        click.echo(f"Commit {ATTRIBUTES}.")
