"""Plans for migrations."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from server.errors import ConflictError, SetupError, ValidationError
from server.site.configure import Configuration
from server.site.migrations import attributes, scripts, types, wrap
from server.site.migrations.arguments import (
    ATTRIBUTE,
    ATTRIBUTES,
    CODE,
    COMPONENT,
    CONVERTED_TYPE,
    FILE_NAME,
    LOCALE_CODE,
    NEW_COMPONENT,
    TARGET,
    TYPE,
    TYPE_ID,
    Arguments,
)
from server.site.migrations.claims import require_same_documents
from server.site.migrations.draft import MIGRATIONS, Draft, PermitFile, permit_all
from server.site.migrations.loss_details import describe_losses
from server.site.migrations.migration import (
    Migration,
    migration_paths,
    migration_text,
    new_migration_path,
    read_migration,
)
from server.site.migrations.retype import retype
from server.write.context import Context

log = logging.getLogger("bifolio")

# `is_new` is False for a migration that already has a file and has already changed the schema.
Planner = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Operation:
    """A kind of migration, such as `rename`.

    `names_file` is the name of the argument whose value becomes part of the migration's file name.
    """

    plan: Planner
    arguments: Arguments
    names_file: str
    # whether it executes a Python file of the site
    runs_code: bool = False
    # whether the changes to a document depend on other documents
    needs_all_documents: bool = False


OPERATIONS: Mapping[str, Operation] = {
    "rename": Operation(attributes.rename, Arguments({"attribute": TARGET, "to": ATTRIBUTE}), "to"),
    "retype": Operation(
        retype,
        Arguments({"attribute": TARGET, "type": CONVERTED_TYPE}, {"from": CONVERTED_TYPE}),
        "attribute",
    ),
    "wrap": Operation(
        wrap.wrap,
        Arguments({"type": TYPE, "attributes": ATTRIBUTES, "component": COMPONENT}, {"as": ATTRIBUTE}),
        "component",
    ),
    "unwrap": Operation(wrap.unwrap, Arguments({"attribute": TARGET}), "attribute"),
    "move": Operation(
        wrap.move,
        Arguments({"attribute": TARGET, "to": TYPE}, {"via": ATTRIBUTE}),
        "attribute",
        needs_all_documents=True,
    ),
    "rename-component": Operation(
        types.rename_component, Arguments({"component": COMPONENT, "to": NEW_COMPONENT}), "to"
    ),
    "rename-type": Operation(
        types.rename_type,
        Arguments({"type": TYPE, "to": TYPE_ID, "plural": TYPE_ID}, {"from-plural": TYPE_ID}),
        "to",
    ),
    "set-locale": Operation(
        types.set_locale, Arguments({"locale": LOCALE_CODE}), "locale", needs_all_documents=True
    ),
    "split": Operation(
        scripts.split,
        Arguments({"attribute": TARGET, "file": FILE_NAME}, {"code": CODE}),
        "attribute",
        runs_code=True,
    ),
    "script": Operation(
        scripts.script, Arguments({"type": TYPE, "file": FILE_NAME}, {"code": CODE}), "type", runs_code=True
    ),
    "drop": Operation(attributes.drop, Arguments({"attribute": TARGET}), "attribute"),
}
ARGUMENTS: Mapping[str, Arguments] = {name: found.arguments for name, found in OPERATIONS.items()}


@dataclass(frozen=True, slots=True)
class NewMigration:
    """A request for a new migration. If `lossy` is set, the migration may lose values."""

    migration: Migration
    lossy: bool = False


@dataclass(frozen=True, slots=True)
class ApplyMigrations:
    """A request to apply migrations to the documents to which they have not been applied.

    If `lossy` is set, values may be lost. Migrations that run Python code are skipped unless `run_scripts` is
    set.
    """

    lossy: bool = False
    run_scripts: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A migration, and the files that it changes.

    `losses` describes the lost values, up to a limit, and `loss_count` counts all of them. `warnings` are
    problems that the site has after the migration.
    """

    migration: Migration
    documents: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    loss_count: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of one or more migrations, in order."""

    steps: tuple[Step, ...]

    @property
    def paths(self) -> list[str]:
        return sorted({path for step in self.steps for path in (*step.documents, *step.files)})


def plan_new_migration(request: NewMigration, context: Context, permit: PermitFile = permit_all) -> Plan:
    """Plan a new migration.

    `permit` is called with the path of each document before it is read. Raises ValidationError if the
    migration is impossible, or if it would lose values and `lossy` is not set.
    """
    migration, operation = request.migration, OPERATIONS[request.migration.operation]
    try:
        operation.arguments.check(migration.arguments)
    except ValueError as error:
        raise ValidationError(str(error)) from error
    draft = Draft(context, request.lossy, permit=permit)
    before = draft.configuration()
    operation.plan(draft, migration, is_new=True)
    draft.require_possible()
    require_same_documents(draft, before)
    path = new_migration_path(draft.paths, migration, str(migration.arguments[operation.names_file]))
    kept = replace(migration, arguments={**migration.arguments, **draft.more_arguments})
    draft.put(path, migration_text(kept))
    return Plan((step_of(draft, migration, before),))


def step_of(draft: Draft, migration: Migration, before: Configuration) -> Step:
    """Convert a draft to a step of a plan. `before` is the configuration before the draft's edits."""
    return Step(
        migration,
        documents=tuple(sorted(draft.documents)),
        files=tuple(each for each in draft.changed_paths if each not in draft.documents),
        notes=tuple(draft.notes),
        losses=tuple(describe_losses(draft, before)),
        loss_count=len(draft.losses),
        warnings=tuple(draft.warnings),
    )


def plan_unapplied(request: ApplyMigrations, context: Context) -> Plan:
    """Plan the migrations that have not been applied to all documents.

    Raises ValidationError if a migration is invalid or impossible, or if it would lose values and `lossy` is
    not set.
    """
    steps, known = [], set[str]()
    for migration in migrations_of_site(context):
        if OPERATIONS[migration.operation].runs_code and not request.run_scripts:
            continue
        draft = Draft(context, request.lossy)
        with unexpected_errors_refused():
            OPERATIONS[migration.operation].plan(draft, migration, is_new=False)
        draft.require_possible()
        if draft.documents:
            steps.append(Step(migration, tuple(sorted(draft.documents)), notes=tuple(draft.notes)))
            known |= draft.documents
    return Plan(tuple(steps))


@contextmanager
def unexpected_errors_refused() -> Iterator[None]:
    """Context manager: convert any unexpected error into a ValidationError."""
    try:
        yield
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        OSError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        log.warning("a migration can't be planned", exc_info=True)
        raise ValidationError(f"unexpected error ({type(error).__name__}: {error})") from error


def migrations_of_site(context: Context) -> list[Migration]:
    try:
        return read_migrations(context)
    except SetupError as error:
        raise ValidationError(str(error)) from error


def read_migrations(context: Context) -> list[Migration]:
    """Return the site's migrations, in order of their numbers. Raises SetupError if one is invalid."""
    found = []
    for path in migration_paths(context.changeset.list_files((MIGRATIONS,))):
        try:
            text = context.changeset.text(path)
        except ConflictError as error:
            raise SetupError(path, None, error.message.removeprefix(f"{path} ")) from error
        found.append(read_migration(path, text, ARGUMENTS))
    return found
