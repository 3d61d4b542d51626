"""Plans for schema changes. Some of these changes are stored as migrations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from server.errors import ApiError, ForbiddenError, ValidationError
from server.schema.spelling import suggestion
from server.site.migrations.claims import require_same_documents
from server.site.migrations.draft import Draft, PermitFile
from server.site.migrations.migration import HIDDEN_ARGUMENTS, Migration
from server.site.migrations.plan import (
    OPERATIONS,
    NewMigration,
    Plan,
    Step,
    plan_new_migration,
    step_of,
    unexpected_errors_refused,
)
from server.site.migrations.schema_edits import SCHEMA_EDITS, require_free_name
from server.write.context import Context

MAX_CHANGES = 50
# Migrations that run no code, and change more than site.yaml.
_MIGRATIONS = tuple(name for name, each in OPERATIONS.items() if not each.runs_code and name != "set-locale")
CHANGES = (*SCHEMA_EDITS, *_MIGRATIONS)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """An edit of a schema, or a migration."""

    operation: str
    arguments: Mapping[str, Any]


def read_schema_changes(data: object) -> list[SchemaChange]:
    """Parse schema changes.

    Raises ValidationError with the number of the first invalid change.
    """
    if not isinstance(data, list) or not data or len(data) > MAX_CHANGES:
        raise ValidationError(
            f"changes must be a list of 1 to {MAX_CHANGES} changes, such as "
            '{"operation": "rename", "attribute": "article.title", "to": "headline"}'
        )
    found = []
    for number, each in enumerate(data):
        try:
            found.append(_read(each))
        except ValueError as error:
            raise ValidationError(f"changes[{number}]: {error}", {"change": number}) from error
    return found


def _read(data: object) -> SchemaChange:
    name = data.get("operation") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(name, str) or name not in CHANGES:
        hint = suggestion(name, CHANGES) if isinstance(name, str) else ""
        raise ValueError(f"operation must be one of {', '.join(CHANGES)}" + (f"; {hint}" if hint else ""))
    given = {key: value for key, value in data.items() if key != "operation"}
    if name in SCHEMA_EDITS:
        SCHEMA_EDITS[name].check(given)
    else:
        for key in HIDDEN_ARGUMENTS:
            if key in given:
                raise ValueError(f"{key} is unknown")
        OPERATIONS[name].arguments.check(given)
    return SchemaChange(name, given)


def plan_schema_changes(changes: Sequence[SchemaChange], context: Context, permit: PermitFile) -> Plan:
    """Plan schema changes. Each change is planned as if the changes before it had been made.

    Losing values is allowed; the plan lists the lost values. `permit` is called with the path of each
    document before it is read. Raises ValidationError with the number of the first impossible change.
    """
    steps: list[Step] = []
    for number, change in enumerate(changes):
        try:
            with unexpected_errors_refused():
                steps += _plan(change, context, permit)
        except ForbiddenError:
            raise
        except ApiError as error:
            error.details["change"] = number
            raise
    return Plan(tuple(steps))


def _plan(change: SchemaChange, context: Context, permit: PermitFile) -> Sequence[Step]:
    if change.operation not in SCHEMA_EDITS:
        if change.operation == "rename-type":
            require_free_name(str(change.arguments["to"]))
        migration = Migration(change.operation, change.arguments)
        return plan_new_migration(NewMigration(migration, lossy=True), context, permit).steps
    edit, draft = SCHEMA_EDITS[change.operation], Draft(context, lossy=True, permit=permit)
    before = draft.configuration()
    edit.plan(draft, change.arguments)
    draft.require_possible()
    require_same_documents(draft, before)
    name = edit.named_by
    return [step_of(draft, Migration(change.operation, {name: change.arguments[name]}), before)]
