"""`bifolio import strapi`."""

import sys
from pathlib import Path

import click

from server.errors import SetupError
from server.tools.importer.importing import ImportOptions, import_source
from server.tools.importer.project_config import NO_SETTINGS, read_project
from server.tools.importer.readers.archive import Archive
from server.tools.importer.readers.download import FULL_ACCESS
from server.tools.importer.readers.remote import Remote
from server.tools.importer.report import report
from server.tools.importer.source import SourceReader
from server.tools.terminal import check_folder, one_line_errors, site_option


@click.group("import")
def import_() -> None:
    """Import content from another system."""


@import_.command("strapi")
@click.argument("source")
@site_option
@click.option(
    "--token",
    envvar="STRAPI_TOKEN",
    show_envvar=True,
    help="A full-access API token of Strapi, if SOURCE is a URL.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be written, without writing.")
@click.option(
    "--overwrite", is_flag=True, help="Also replace files that were edited here since the last import."
)
@click.option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of the Strapi project; also imports the settings in its config/api.",
)
@one_line_errors
def import_strapi(
    source: str, root: Path, token: str | None, dry_run: bool, overwrite: bool, project: Path | None
) -> None:
    """Import from Strapi 5.

    SOURCE is an archive from `strapi export --no-encrypt`, or the URL of a running Strapi. Run the command
    again to import later changes. Exits with status 1 if it skipped files that were edited in this site.
    """
    check_folder(root)
    imported = import_source(
        root,
        _reader(source, token),
        ImportOptions(dry_run, overwrite, read_project(project) if project else NO_SETTINGS),
        _say,
    )
    for line in report(imported, dry_run=dry_run):
        click.echo(line)
    if imported.merge.kept:
        sys.exit(1)


def _reader(source: str, token: str | None) -> SourceReader:
    if not source.startswith(("http://", "https://")):
        return Archive(Path(source))
    if not token:
        raise SetupError(source, None, "--token is required to import from a URL", FULL_ACCESS)
    return Remote(source, token)


def _say(what: str, done: int, total: int) -> None:
    # Each line overwrites the previous one.
    if sys.stderr.isatty():
        shown = f"{what} {done:,} of {total:,}" if total else what
        click.echo(f"\r\033[K{shown}…" if done + 1 < total or not total else "\r\033[K", nl=False, err=True)
