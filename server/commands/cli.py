"""The main command and the table of its subcommands, whose modules are imported only when needed."""

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
from server.errors import as_sentence, with_fix
from server.schema.spelling import suggestion
from server.storage.git.command import DEFAULT_TIMEOUT_S, git_if_possible


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command's module, function, and summary for `--help`."""

    module: str
    name: str
    summary: str


# The summaries are listed here because `bifolio --help` must not import the commands.
COMMANDS: Mapping[str, CommandEntry] = {
    "serve": CommandEntry("server.commands.serve", "serve_command", "Serve a site."),
    "init": CommandEntry(
        "server.commands.init", "init", "Create an empty site, or a site from existing files."
    ),
    "check": CommandEntry("server.commands.check", "check", "Report problems in content and schemas."),
    "lsp": CommandEntry("server.commands.lsp", "lsp", "Start a language server for an editor."),
    "mcp": CommandEntry("server.commands.mcp", "mcp", "Let an agent read and write the site."),
    "mv": CommandEntry("server.commands.mv", "mv", "Rename a document or media file and update references."),
    "migrate": CommandEntry(
        "server.commands.migrate", "migrate", "Change schemas together with all documents."
    ),
    "log": CommandEntry("server.commands.history", "log", "Show the history of documents."),
    "diff": CommandEntry("server.commands.history", "diff", "Show changes in documents, by attribute."),
    "blame": CommandEntry(
        "server.commands.history", "blame_command", "Show the commit that last changed each line."
    ),
    "changes": CommandEntry(
        "server.commands.changes", "changes", "List changes since a commit or date, for scripts."
    ),
    "export": CommandEntry("server.commands.export", "export_command", "Export the API as static files."),
    "redirects": CommandEntry(
        "server.commands.redirects", "redirects", "Print redirects from former addresses of documents."
    ),
    "import": CommandEntry("server.commands.import_strapi", "import_", "Import content from another system."),
    "merge-driver": CommandEntry(
        "server.commands.merge_driver", "merge_driver", "Let git merge documents attribute by attribute."
    ),
    "media": CommandEntry(
        "server.commands.media",
        "media",
        "Move media to or from a bucket; remove unused objects.",
    ),
    "types": CommandEntry("server.commands.types", "types", "Generate types for TypeScript and Python."),
    "schema": CommandEntry("server.commands.schema", "schema", "Generate JSON Schemas for editors."),
    "search": CommandEntry("server.commands.search", "search", "Search documents, best matches first."),
    "webhook": CommandEntry("server.commands.webhook", "webhook", "List, test and replay webhooks."),
    "token": CommandEntry("server.commands.accounts", "token", "Create, list and revoke API tokens."),
    "user": CommandEntry(
        "server.commands.accounts", "user", "Create, list and block users; set roles and passwords."
    ),
    "key": CommandEntry("server.commands.accounts", "key", "Replace the key that signs sessions."),
}


WINDOWS_MESSAGE = (
    "bifolio: Bifolio does not run on Windows, which has no fcntl. Use WSL 2 or Docker (docs/platforms.md)."
)


class _Commands(click.Group):
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
            hint = "run bifolio --help" if name == "help" else suggestion(name, COMMANDS)
            ctx.fail(as_sentence(with_fix(f'No such command "{name}"', hint)))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def _load(entry: CommandEntry) -> click.Command:
    # Garbage collection skips the imported modules, because they are never unloaded.
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
    help="Show the version and exit.",
)
def main() -> None:
    """A content server whose documents are files in git."""


# --- version --------------------------------------------------------------------------------------

_PACKAGE = Path(__file__).parent.parent
# `make dist` writes this file, because an installed package has no git repository.
_COMMIT = _PACKAGE / "commit.txt"


def describe() -> str:
    # Like `0.1.0 (commit 24834d8, Python 3.11.7)`.
    commit = _commit()
    return f"{__version__} ({f'commit {commit}, ' if commit else ''}Python {platform.python_version()})"


def _commit() -> str:
    # A git repository in a parent folder belongs to a different project.
    if (_PACKAGE.parent / ".git").exists():
        printed = git_if_possible(_PACKAGE.parent, "rev-parse", "--short", "HEAD", seconds=DEFAULT_TIMEOUT_S)
        return (printed or "").strip()
    return _COMMIT.read_text(encoding="ascii").strip() if _COMMIT.is_file() else ""
