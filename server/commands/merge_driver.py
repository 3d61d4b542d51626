"""`bifolio merge-driver`."""
# Subcommands are imported only when needed, because git starts `run` for each file that it merges.

from collections.abc import Mapping
from importlib import import_module
from typing import cast

import click

SUBCOMMANDS: Mapping[str, str] = {
    "install": "server.commands.merge_driver_install",
    "uninstall": "server.commands.merge_driver_install",
    "run": "server.commands.merge_driver_run",
}


class _Subcommands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = SUBCOMMANDS.get(cmd_name)
        return cast(click.Command, getattr(import_module(module), cmd_name)) if module else None


@click.group(cls=_Subcommands)
def merge_driver() -> None:
    """Let git merge documents attribute by attribute, the way Bifolio merges branches."""
