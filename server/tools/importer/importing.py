"""Import of a source in one atomic write. After a crash, the import can be run again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from server.config.model import FILE
from server.errors import ApiError, SetupError
from server.paths import STATE_FOLDER, folder_in_state, state_folder
from server.storage.changeset import Changeset
from server.storage.intent import Write
from server.storage.journal import Journal
from server.tools.importer import record as records
from server.tools.importer.files import merge_documents
from server.tools.importer.locales import settings_text
from server.tools.importer.merge import Merge
from server.tools.importer.project_config import NO_SETTINGS, ProjectSettings
from server.tools.importer.schemas import merge_schemas
from server.tools.importer.source import ReportProgress, Source, SourceReader
from server.tools.importer.uploads import merge_uploads


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import, which `bifolio import strapi` takes."""

    dry_run: bool = False
    overwrite: bool = False
    project: ProjectSettings = NO_SETTINGS


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The imported content, and the changes to the site."""

    source: Source
    merge: Merge
    file_count: int  # number of files written
    had_settings: bool = True  # whether site.yaml existed before the import


def import_source(
    root: Path, reader: SourceReader, options: ImportOptions, report_progress: ReportProgress
) -> ImportResult:
    """Import the content of a source into a site. If this raises SetupError, nothing has been imported."""
    root = root.resolve()
    if not options.dry_run and next((root / STATE_FOLDER / "journal").glob("*"), None):
        _commit(root, [])  # This completes or undoes a write that was interrupted by a crash.
    report_progress("Reading", 0, 0)
    source = replace(reader.read(), project=options.project)
    before = records.read_record(root)
    had_settings = (root / FILE).exists()

    def begin() -> Merge:
        made = Merge(root, Changeset(root), replace(before, files=dict(before.files)), options.overwrite)
        text = settings_text(root, source)
        if text is not None:
            made.changeset.put(FILE, text)
        return made

    merge, site_model = merge_schemas(root, source.schemas, source.notes, begin)
    if not site_model.settings.api.populate_with_pagination:
        what = "set api.populate_with_pagination: allow to combine populate and pagination, as Strapi does"
        source.notes.add(FILE, what)
    with _staging(root, options) as folder:
        merge_uploads(merge, source, reader, folder, report_progress)
        merge_documents(merge, source, site_model, report_progress)
        if merge.record.files != before.files:
            merge.changeset.put(records.PATH, merge.record.text())
        writes = merge.changeset.writes()
        if writes and not options.dry_run:
            report_progress("Writing", 0, 0)
            _commit(root, writes)
    written = merge.changed_file_count + any(path == FILE for path, _ in merge.changeset.texts())
    return ImportResult(source, merge, written, had_settings)


def _commit(root: Path, writes: list[Write]) -> None:
    try:
        journal = Journal(root, state_folder(root))
        with journal.writing():
            journal.recover()
            journal.commit(writes)
    except OSError as error:
        raise SetupError(str(root), None, f"can't be written to: {error.strerror}") from error
    except ApiError as error:
        where = str(error.details.get("path") or root)
        raise SetupError(where, None, error.message, "nothing was imported; run the command again") from error


@contextmanager
def _staging(root: Path, options: ImportOptions) -> Iterator[Path | None]:
    # Media files are downloaded to the site's file system, so that they can be moved to their final paths.
    if options.dry_run:
        yield None
        return
    try:
        folder = folder_in_state(root, "import")
    except OSError as error:
        raise SetupError(str(root), None, f"can't be written to: {error.strerror}") from error
    yield folder
    # This is skipped after an error, so that the next import can use the files again.
    for left in folder.iterdir():
        left.unlink()
    folder.rmdir()
