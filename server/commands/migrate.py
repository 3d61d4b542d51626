"""`bifolio migrate`."""

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from server.errors import ApiError, BusyError, SetupError, ValidationError
from server.service.authorship import caller_of_command, writes_of_command
from server.service.migrations import (
    Request,
    list_migrations,
    preview_migration,
    write_migration,
)
from server.service.opening import Mode, open_site
from server.service.read import Caller
from server.service.write import Writes
from server.site.migrations.lacking import LACKING_FIX
from server.site.migrations.migration import Migration
from server.site.migrations.plan import ApplyMigrations, NewMigration, Plan
from server.tools.terminal import check_site, print_commit_note, printable, site_option

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
NOT_WRITTEN = "Nothing was written. To make these changes, run the command again with --write."


@click.group("migrate")
def migrate() -> None:
    """Change schemas together with all documents, settings and references.

    Each command prints its plan: a summary and a unified diff. With --write, it also changes all files in one
    step and saves the migration in migrations/. You don't need to stop the server.
    """


def _migration_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(
        (
            site_option,
            click.option("--write", is_flag=True, help="Make the changes."),
            click.option("--lossy", is_flag=True, help="Allow values to be lost."),
            click.option("--branch", metavar="NAME", help="Commit the changes to another branch."),
            click.option(
                "--uncommitted", is_flag=True, help="Also change files that have uncommitted changes."
            ),
            click.option("--message", "-m", default="", help="The commit message."),
        )
    ):
        command = option(command)
    return command


def _print_errors(command: Callable[..., None]) -> Callable[..., None]:
    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (SetupError, BusyError) as error:
            click.echo(f"bifolio: {error}", err=True)
            sys.exit(1)
        except ApiError as error:
            click.echo(f"bifolio: {printable_lines(error.message)}\nNothing was changed.", err=True)
            sys.exit(1)

    return run


def printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def _run(
    request: Request, root: Path, *, write: bool, branch: str | None, uncommitted: bool, message: str
) -> None:
    writes, caller = _open(root, branch)
    if write:
        outcome = write_migration(writes, caller, request, message=message, uncommitted=uncommitted)
        _show(outcome.result)
        print_commit_note(outcome.commit)
        return
    preview = preview_migration(writes, caller, request)
    _show(preview.plan)
    for line in preview.diff():
        click.echo(printable(line))
    if preview.writes:
        click.echo(NOT_WRITTEN, err=True)


def _open(root: Path, branch: str | None) -> tuple[Writes, Caller]:
    check_site(root)
    opened = open_site(root, Mode.COMMAND)
    writes, caller = writes_of_command(opened), caller_of_command(opened)
    return writes, writes.on_branch(caller, branch) if branch else caller


def _show(plan: Plan) -> None:
    if not plan.steps:
        click.echo("✓ no document lacks a migration")
    for step in plan.steps:
        click.echo(printable(step.migration.label))
        for path in step.files:
            click.echo(f"  {printable(path)}")
        for folder, paths in _by_folder(step.documents):
            count = len(paths)
            click.echo(f"  {printable(folder)}: {count:,} {'document' if count == 1 else 'documents'}")
        for note in step.notes:
            click.echo(f"  {printable(note)}")


def _by_folder(paths: Iterable[str]) -> list[tuple[str, list[str]]]:
    def folder(path: str) -> str:
        return path.rpartition("/")[0]

    return [(name, list(found)) for name, found in groupby(sorted(paths, key=folder), key=folder)]


def _new(operation: str, arguments: dict[str, Any], root: Path, options: dict[str, Any]) -> None:
    lossy = options.pop("lossy")
    given = {name: value for name, value in arguments.items() if value not in (None, False, "")}
    _run(NewMigration(Migration(operation, given), lossy), root, **options)


# --- commands -------------------------------------------------------------------------------------


@migrate.command("rename")
@click.argument("attribute", metavar="TYPE.ATTRIBUTE")
@click.argument("new")
@_migration_options
@_print_errors
def rename(attribute: str, new: str, root: Path, **options: Any) -> None:
    """Rename an attribute: bifolio migrate rename article.title headline."""
    _new("rename", {"attribute": attribute, "to": new}, root, options)


@migrate.command("retype")
@click.argument("attribute", metavar="TYPE.ATTRIBUTE")
@click.argument("new_type", metavar="NEW_TYPE")
@_migration_options
@_print_errors
def retype(attribute: str, new_type: str, root: Path, **options: Any) -> None:
    """Convert an attribute and its values to another type.

    NEW_TYPE is an attribute type, such as integer. For relations, it is a kind such as manyToMany. For media
    and components, it is "one" or "many".
    """
    _new("retype", {"attribute": attribute, "type": new_type}, root, options)


@migrate.command("wrap")
@click.argument("attributes", metavar="TYPE.ATTRIBUTE,ATTRIBUTE…")
@click.option("--component", required=True, metavar="UID", help="The component, such as shared.seo.")
@click.option(
    "--as",
    "holder",
    metavar="NAME",
    help="The attribute that will hold the component. [default: the component's name]",
)
@_migration_options
@_print_errors
def wrap(attributes: str, component: str, holder: str | None, root: Path, **options: Any) -> None:
    """Put attributes into a component: bifolio migrate wrap page.metaTitle,metaText --component shared.seo.

    The component is created if it does not exist.
    """
    type_, _, names = attributes.rpartition(".")
    if not type_:
        what = "attributes must be TYPE.attribute,attribute, such as page.metaTitle,metaText"
        raise ValidationError(f'{what} (found "{attributes}")')
    given = {"type": type_, "attributes": names.split(","), "component": component, "as": holder}
    _new("wrap", given, root, options)


@migrate.command("unwrap")
@click.argument("attribute", metavar="TYPE.ATTRIBUTE")
@_migration_options
@_print_errors
def unwrap(attribute: str, root: Path, **options: Any) -> None:
    """Replace an attribute that contains a component with the attributes of that component."""
    _new("unwrap", {"attribute": attribute}, root, options)


@migrate.command("move")
@click.argument("attribute", metavar="TYPE.ATTRIBUTE")
@click.argument("target", metavar="TYPE2")
@click.option("--via", metavar="NAME", help="The relation between the types, if there are several.")
@_migration_options
@_print_errors
def move(attribute: str, target: str, via: str | None, root: Path, **options: Any) -> None:
    """Move an attribute into a component of its content type, out of one, or to a related content type."""
    _new("move", {"attribute": attribute, "to": target, "via": via}, root, options)


@migrate.command("rename-type")
@click.argument("type_", metavar="TYPE")
@click.argument("new")
@click.option("--plural", metavar="NAME", help="The new plural API id. [default: NEW followed by an s]")
@_migration_options
@_print_errors
def rename_type(type_: str, new: str, plural: str | None, root: Path, **options: Any) -> None:
    """Give a content type new API ids: bifolio migrate rename-type article story --plural stories."""
    _new("rename-type", {"type": type_, "to": new, "plural": plural or f"{new}s"}, root, options)


@migrate.command("rename-component")
@click.argument("component", metavar="UID")
@click.argument("new", metavar="NEW_UID")
@_migration_options
@_print_errors
def rename_component(component: str, new: str, root: Path, **options: Any) -> None:
    """Give a component a new uid: bifolio migrate rename-component shared.seo meta.seo."""
    _new("rename-component", {"component": component, "to": new}, root, options)


@migrate.command("set-locale")
@click.argument("locale")
@_migration_options
@_print_errors
def set_locale(locale: str, root: Path, **options: Any) -> None:
    """Make another locale the default, and rename files so that each document keeps its locale."""
    _new("set-locale", {"locale": locale}, root, options)


@migrate.command("split")
@click.argument("attribute", metavar="TYPE.ATTRIBUTE")
@click.option(
    "--with", "file", required=True, type=_FILE, metavar="FILE.py", help="The file that defines split."
)
@_migration_options
@_print_errors
def split(attribute: str, file: Path, root: Path, **options: Any) -> None:
    """Replace an attribute with several others. FILE.py defines ATTRIBUTES and the function split(value)."""
    given = {"attribute": attribute, "file": file.name, "code": _code(file)}
    _new("split", given, root, options)


@migrate.command("script")
@click.argument("type_", metavar="TYPE")
@click.argument("file", type=_FILE, metavar="FILE.py")
@_migration_options
@_print_errors
def script(type_: str, file: Path, root: Path, **options: Any) -> None:
    """Change all documents of a type with the function migrate(document) in FILE.py."""
    _new("script", {"type": type_, "file": file.name, "code": _code(file)}, root, options)


def _code(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SetupError(str(file), None, "is not UTF-8", "save the file as UTF-8") from error


@migrate.command("drop")
@click.argument("attribute", metavar="TYPE.ATTRIBUTE")
@_migration_options
@_print_errors
def drop(attribute: str, root: Path, **options: Any) -> None:
    """Remove an attribute, and its values from all documents. If there are any values, pass --lossy."""
    _new("drop", {"attribute": attribute}, root, options)


@migrate.command("apply")
@_migration_options
@click.option("--scripts", is_flag=True, help="Also run the Python code in kept migrations.")
@_print_errors
def apply(root: Path, lossy: bool, scripts: bool, **options: Any) -> None:
    """Apply the migrations in migrations/ to documents that have not been migrated yet.

    For example, documents from an older branch may not have been migrated.
    """
    _run(ApplyMigrations(lossy, scripts), root, **options)


@migrate.command("list")
@site_option
@click.option("--branch", metavar="NAME", help="List the migrations of another branch.")
@_print_errors
def list_(root: Path, branch: str | None) -> None:
    """List the migrations in migrations/, and the documents to which they have not been applied."""
    writes, caller = _open(root, branch)
    for one in list_migrations(writes, caller):
        click.echo(printable(f"{one.migration.label}: {one.migration}"))
        for path in one.documents:
            click.echo(printable(f"! {path} lacks it; {LACKING_FIX}"))
        for message in one.errors:
            click.echo(printable(f"! {message}"))
