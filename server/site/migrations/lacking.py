"""Documents to which migrations have not been applied."""

from collections.abc import Iterator
from dataclasses import dataclass

from server.errors import SetupError, ValidationError
from server.problems import Problem
from server.site.migrations.draft import Draft
from server.site.migrations.migration import Migration
from server.site.migrations.plan import (
    OPERATIONS,
    migrations_of_site,
    read_migrations,
    unexpected_errors_refused,
)
from server.write.context import Context

LACKING_FIX = "run bifolio migrate apply"


@dataclass(frozen=True, slots=True)
class UnmigratedDocuments:
    """A migration, and the documents to which it has not been applied.

    `documents` maps the path of each document to the number of the first line that the migration would
    change.
    """

    migration: Migration
    documents: dict[str, int]
    errors: tuple[str, ...] = ()


def find_unmigrated(context: Context) -> list[UnmigratedDocuments]:
    """Return all migrations of the site, each with the documents to which it has not been applied.

    For a migration that runs a script, the documents are not determined. Raises ValidationError if the file
    of a migration is invalid.
    """
    return _unmigrated_by(context, migrations_of_site(context))


def _unmigrated_by(context: Context, migrations: list[Migration]) -> list[UnmigratedDocuments]:
    found = []
    for migration in migrations:
        operation = OPERATIONS[migration.operation]
        draft = Draft(context, lossy=True)
        if operation.runs_code:
            found.append(UnmigratedDocuments(migration, {}))
            continue
        try:
            with unexpected_errors_refused():
                operation.plan(draft, migration, is_new=False)
            unclear = tuple(draft.describe_findings(draft.refusals))
        except ValidationError as error:  # If its type no longer exists, there is nothing to migrate.
            unclear = () if "unknown type" in error.message else (error.message,)
        lines = {path: _first_change(draft.original_texts.get(path) or "", draft.text_or_none(path) or "")
                 for path in sorted(draft.documents)}  # fmt: skip
        found.append(UnmigratedDocuments(migration, lines, unclear))
    return found


def _first_change(old: str, new: str) -> int:
    pairs = zip(old.split("\n"), new.split("\n"), strict=False)
    return next((line for line, (before, after) in enumerate(pairs, 1) if before != after), 1)


def unmigrated_problems(context: Context) -> Iterator[Problem]:
    """Yield a problem for each document to which a migration has not been applied.

    If the file of a migration is invalid, yield only a problem about this file.
    """
    try:
        migrations = read_migrations(context)
    except SetupError as error:
        place, what, fix = (error.path, error.line), error.message, error.fix
        yield Problem(*place, what, fix, "warning", error.column, rule="migration")
        return
    found = _unmigrated_by(context, migrations)
    missing: dict[str, tuple[int, list[str]]] = {}
    for one in found:
        for path, line in one.documents.items():
            missing.setdefault(path, (line, []))[1].append(one.migration.label)
    for path, (line, labels) in missing.items():
        plural = "migration" if len(labels) == 1 else "migrations"
        what = f"the document lacks the {plural} {', '.join(labels)}"
        yield Problem(path, line, what, LACKING_FIX, "warning", rule="migration")
