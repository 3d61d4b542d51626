"""The report that is printed after an import."""

from collections.abc import Iterator, Sequence

from server.paths import TYPES
from server.schema.model import UPLOAD
from server.tools.importer.importing import ImportResult
from server.tools.importer.locales import roles_lines
from server.tools.importer.merge import OUTCOMES
from server.tools.importer.project_config import lines_of
from server.tools.importer.uploads import DESCRIPTIONS

MAX_SHOWN_NOTES = 20  # maximum number of notes of one kind that are shown
_HEADINGS = ("", "documents", "files", *OUTCOMES)
_NAMES = {TYPES: "content types and components", UPLOAD: "media", DESCRIPTIONS: "descriptions of media"}


def report(imported: ImportResult, *, dry_run: bool) -> Iterator[str]:
    """Yield the lines of the report on an import."""
    yield imported.source.title
    yield ""
    yield from _table(imported)
    yield ""
    yield _sum(imported, dry_run=dry_run)
    yield from _removed_lines(imported)
    yield from _kept_lines(imported)
    yield from _notes(imported)
    yield from _roles(imported)
    yield from _project(imported)


def _table(imported: ImportResult) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [_HEADINGS]
    for subject, counts in imported.merge.counts.items():
        documents = str(counts.document_count) if counts.document_count else ""
        files = [str(counts.files[outcome] or "") for outcome in OUTCOMES]
        rows.append((_name(subject, imported), documents, str(sum(counts.files.values())), *files))
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADINGS))]
    for row in rows:
        cells = (
            c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        yield f"  {'  '.join(cells)}".rstrip()


def _name(subject: str, imported: ImportResult) -> str:
    if subject in _NAMES:
        return _NAMES[subject]
    info = imported.source.schemas[subject]["info"] if subject in imported.source.schemas else {}
    single = imported.source.schemas.get(subject, {}).get("kind") == "singleType"
    return str(info.get("singularName" if single else "pluralName", subject))


def _sum(imported: ImportResult, *, dry_run: bool) -> str:
    if not imported.file_count:
        return "Nothing to write: all files already match the content of Strapi."
    files = f"{imported.file_count} file{'s' * (imported.file_count != 1)}"
    return f"{files} would be written." if dry_run else f"{files} written."


def _removed_lines(imported: ImportResult) -> Iterator[str]:
    if imported.merge.removed:
        yield "Removed, because Strapi no longer contains this draft or locale:"
        yield from _shorten([f"  {path}" for path in imported.merge.removed])


def _kept_lines(imported: ImportResult) -> Iterator[str]:
    if imported.merge.kept:
        yield "Kept unchanged (use --overwrite to replace them):"
        yield from _shorten([f"  {path} {why}" for path, why in imported.merge.kept])


def _notes(imported: ImportResult) -> Iterator[str]:
    by_subject: dict[str, list[str]] = {}
    for subject, sentence, count in imported.source.notes:
        times = f" ({count})" if count > 1 else ""
        by_subject.setdefault(subject, []).append(f"{sentence}{times}")
    if by_subject:
        yield "Not imported, or changed during the import:"
    for subject, sentences in by_subject.items():
        yield from _shorten([f"  {subject}: {sentence}" for sentence in sentences])


def _roles(imported: ImportResult) -> Iterator[str]:
    if imported.source.roles:
        yield "Roles from Strapi, in the syntax of site.yaml (nobody can read anything until you add them):"
        yield from (f"  {line}" for line in roles_lines(imported.source.roles))


def _project(imported: ImportResult) -> Iterator[str]:
    project = imported.source.project
    if imported.had_settings and project.api:
        yield "Settings of the project, in the syntax of site.yaml:"
        yield from (f"  {line}" for line in lines_of(project))
    if project.unreadable:
        yield "Settings that the project computes at run time; set them by hand if you need them:"
        yield from _shorten([f"  {line}" for line in project.unreadable])


def _shorten(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:MAX_SHOWN_NOTES]
    if len(lines) > MAX_SHOWN_NOTES:
        yield f"  … and {len(lines) - MAX_SHOWN_NOTES} more"
