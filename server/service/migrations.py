"""Planning and applying migrations (docs/migrate.md)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import partial

from server.errors import ConflictError
from server.service.read import Caller
from server.service.write import Outcome, Writes
from server.site.migrations.lacking import UnmigratedDocuments, find_unmigrated
from server.site.migrations.plan import (
    ApplyMigrations,
    NewMigration,
    Plan,
    plan_new_migration,
    plan_unapplied,
)
from server.storage.git.uncommitted import changed_paths
from server.storage.intent import Write
from server.write.context import Context

Request = NewMigration | ApplyMigrations
_MAX_NAMED_FILES = 20


@dataclass(frozen=True, slots=True)
class Preview:
    """A migration's plan, and the files that it would write."""

    plan: Plan
    writes: Sequence[Write]

    def diff(self) -> Iterator[str]:
        for write in sorted(self.writes, key=lambda each: each.path):
            old, new = (write.read or b"").decode(), (write.data or b"").decode()
            names = (
                "/dev/null" if write.before is None else f"a/{write.path}",
                "/dev/null" if write.deletes else f"b/{write.path}",
            )
            yield from unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="")


def preview_migration(writes: Writes, caller: Caller, request: Request) -> Preview:
    found, plan = writes.planned_files(caller, _plan, request)
    return Preview(plan, found)


def write_migration(
    writes: Writes, caller: Caller, request: Request, *, message: str = "", uncommitted: bool = False
) -> Outcome[Plan]:
    """Apply a new migration, or all stored migrations that have not been applied yet, in one write.

    Raises ValidationError if values would be lost, or ConflictError if uncommitted files would be changed and
    `uncommitted` is not set.
    """
    prepare = _plan if uncommitted or caller.branch else partial(_plan_committed, writes)
    return writes.save(caller, prepare, request, message=message or partial(_message, request))


def list_migrations(writes: Writes, caller: Caller) -> list[UnmigratedDocuments]:
    _, found = writes.planned_files(caller, _lacking, None)
    return found


def _lacking(_: None, context: Context) -> list[UnmigratedDocuments]:
    return find_unmigrated(context)


def _plan(request: Request, context: Context) -> Plan:
    return (
        plan_new_migration(request, context)
        if isinstance(request, NewMigration)
        else plan_unapplied(request, context)
    )


def _plan_committed(writes: Writes, request: Request, context: Context) -> Plan:
    plan = _plan(request, context)
    edited = sorted(changed_paths(writes.site.root, plan.paths))
    if edited:
        more = f" and {len(edited) - _MAX_NAMED_FILES:,} more" if len(edited) > _MAX_NAMED_FILES else ""
        names = ", ".join(edited[:_MAX_NAMED_FILES])
        raise ConflictError(
            f"These files have uncommitted changes: {names}{more}. Commit or discard the changes first, or "
            "pass --uncommitted to migrate the files anyway"
        )
    return plan


def _message(request: Request, plan: Plan) -> str:
    if isinstance(request, NewMigration):
        return f"Migrate: {request.migration}"
    return f"Apply migrations: {', '.join(step.migration.label for step in plan.steps)}"
