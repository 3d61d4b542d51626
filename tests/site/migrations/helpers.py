"""Helpers that apply migrations to real sites."""

from pathlib import Path
from typing import Any

from server.service.authorship import caller_of_command, writes_of_command
from server.service.migrations import Preview, Request, list_migrations, preview_migration, write_migration
from server.service.opening import Mode, open_site
from server.site.migrations.migration import Migration
from server.site.migrations.plan import ApplyMigrations, NewMigration, Plan


def migrate(root: Path, operation: str, lossy: bool = False, branch: str = "", **arguments: Any) -> Plan:
    """Apply a new migration. The arguments are those in the migration's file."""
    return _write(root, NewMigration(Migration(operation, arguments), lossy), branch)


def apply(root: Path, lossy: bool = False, scripts: bool = False) -> Plan:
    """Bring all documents along with the kept migrations."""
    return _write(root, ApplyMigrations(lossy, scripts), "")


def preview(root: Path, operation: str, lossy: bool = False, **arguments: Any) -> Preview:
    opened = open_site(root, Mode.COMMAND)
    request = NewMigration(Migration(operation, arguments), lossy)
    return preview_migration(writes_of_command(opened), caller_of_command(opened), request)


def lacking(root: Path) -> dict[str, tuple[str, ...]]:
    """Return the documents that lack each kept migration."""
    opened = open_site(root, Mode.COMMAND)
    kept = list_migrations(writes_of_command(opened), caller_of_command(opened))
    return {one.migration.label: tuple(one.documents) for one in kept}


def _write(root: Path, request: Request, branch: str) -> Plan:
    opened = open_site(root, Mode.COMMAND)
    writes, caller = writes_of_command(opened), caller_of_command(opened)
    if branch:
        caller = writes.on_branch(caller, branch)
    return write_migration(writes, caller, request, uncommitted=True).result


def files(root: Path) -> dict[str, bytes]:
    """Return the content of all files of a site by path, without its state and the kept migrations."""
    found = (path for path in root.rglob("*") if path.is_file())
    paths = {path.relative_to(root).as_posix(): path for path in found}
    return {
        name: path.read_bytes()
        for name, path in paths.items()
        if not name.startswith((".git/", ".bifolio/", "migrations/"))
    }
