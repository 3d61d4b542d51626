"""The command line: a table of commands, each loaded when it is called; errors are one line, and status 1."""

from collections.abc import Mapping
from importlib import import_module
from typing import cast

import click

from server import __version__

# What each command is: its module, and its name there.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "serve": ("server.commands.serve", "serve_command"),
    "init": ("server.commands.init", "init"),
    "check": ("server.commands.check", "check"),
    "export": ("server.commands.export", "export_command"),
    "import": ("server.commands.import_strapi", "import_"),
    "types": ("server.commands.types", "types"),
    "search": ("server.commands.search", "search"),
    "token": ("server.commands.accounts", "token"),
    "user": ("server.commands.accounts", "user"),
}


class _Commands(click.Group):
    """The commands of the table, in its order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        return cast(click.Command, getattr(import_module(module), name))


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="quire")
def main() -> None:
    """A content server whose documents are files in git."""
