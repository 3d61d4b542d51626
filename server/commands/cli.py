"""The command line: a table of commands, each of which is loaded when it is called."""

import gc
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import click

from server import __version__
from server.schema.spelling import suggestion
from server.storage.git.command import DEFAULT_TIMEOUT_S, git_if_possible


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """The module and name of a command, and what `bifolio --help` says of it."""

    module: str
    name: str
    summary: str


# `bifolio --help` prints these summaries, so that it need not load the commands.
COMMANDS: Mapping[str, CommandEntry] = {
    "serve": CommandEntry("server.commands.serve", "serve_command", "Serve a site."),
    "init": CommandEntry(
        "server.commands.init", "init", "Make a site: a new one, or one from a tree of files."
    ),
    "check": CommandEntry("server.commands.check", "check", "Say everything that is wrong with a site."),
    "mv": CommandEntry("server.commands.mv", "mv", "Rename a document or media file, and what refers to it."),
    "log": CommandEntry("server.commands.history", "log", "Show who changed which documents, and when."),
    "diff": CommandEntry("server.commands.history", "diff", "Show what differs in documents, by attribute."),
    "blame": CommandEntry(
        "server.commands.history", "blame_command", "Show which commit each line of a document is from."
    ),
    "changes": CommandEntry(
        "server.commands.changes", "changes", "List what has changed, for scripts: since a build, say."
    ),
    "export": CommandEntry(
        "server.commands.export", "export_command", "Write the API to a folder, as static files."
    ),
    "import": CommandEntry("server.commands.import_strapi", "import_", "Take over content from elsewhere."),
    "media": CommandEntry(
        "server.commands.media",
        "media",
        "Move media into a bucket and back; remove what nobody names.",
    ),
    "types": CommandEntry("server.commands.types", "types", "Write TypeScript types for the content types."),
    "search": CommandEntry(
        "server.commands.search", "search", "Find documents by their words, the best first."
    ),
    "webhook": CommandEntry(
        "server.commands.webhook", "webhook", "Webhooks: list and test them, and what came of deliveries."
    ),
    "token": CommandEntry("server.commands.accounts", "token", "API tokens: make, list and revoke them."),
    "user": CommandEntry(
        "server.commands.accounts", "user", "Users: make, list, block them; roles and passwords."
    ),
    "key": CommandEntry("server.commands.accounts", "key", "The key that signs logins: replace it."),
}


WINDOWS_MESSAGE = (
    "bifolio: Bifolio does not run on Windows itself, which has no fcntl: "
    "use WSL 2 or Docker, see docs/platforms.md"
)


class _Commands(click.Group):
    """The commands of the table, in the order of the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry and find_spec("fcntl") is None:
            click.echo(WINDOWS_MESSAGE, err=True)
            ctx.exit(1)
        return _load(entry) if entry else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            hint = "write bifolio --help" if name == "help" else suggestion(name, COMMANDS)
            ctx.fail(f'No such command "{name}"' + (f": {hint}" if hint else "."))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def _load(entry: CommandEntry) -> click.Command:
    """A command; the garbage collector does not go through its modules, now or later: all of them stay."""
    gc.disable()
    command = getattr(import_module(entry.module), entry.name)
    gc.freeze()
    gc.enable()
    return cast(click.Command, command)


def _show_version(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"bifolio {import_module('server.commands.cli').describe()}")
        ctx.exit()


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Say which this is.",
)
def main() -> None:
    """A content server whose documents are files in git."""


# --- version --------------------------------------------------------------------------------------

_PACKAGE = Path(__file__).parent.parent
# `make dist` writes it, so that an installed Bifolio knows its commit without git.
_COMMIT = _PACKAGE / "commit.txt"


def describe() -> str:
    """`0.1.0 (commit 24834d8, Python 3.11.7)`; without the commit where nothing tells it."""
    commit = _commit()
    return f"{__version__} ({f'commit {commit}, ' if commit else ''}Python {platform.python_version()})"


def _commit() -> str:
    if (_PACKAGE.parent / ".git").exists():  # A repository further up would be somebody else's.
        printed = git_if_possible(_PACKAGE.parent, "rev-parse", "--short", "HEAD", seconds=DEFAULT_TIMEOUT_S)
        return (printed or "").strip()
    return _COMMIT.read_text(encoding="ascii").strip() if _COMMIT.is_file() else ""
