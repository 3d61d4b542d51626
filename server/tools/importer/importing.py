"""An import: a source is read, every file is decided on, and all changes are committed as one step.

Until that step nothing of the site is touched; it is done or not done, through a crash as well, so
that there is no such thing as half an import. One that broke off is simply run again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from server.config.model import FILE
from server.errors import ApiError, SetupError
from server.paths import FOLDER, state_folder
from server.storage.changeset import Changeset
from server.storage.journal import Journal, Write
from server.tools.importer import record as records
from server.tools.importer.files import offer_documents
from server.tools.importer.locales import settings_text
from server.tools.importer.merge import Merge
from server.tools.importer.schemas import fit
from server.tools.importer.source import Reader, Say, Source
from server.tools.importer.uploads import offer_uploads


@dataclass(frozen=True, slots=True)
class Options:
    """How an import is to be done."""

    dry_run: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import came to."""

    source: Source
    merge: Merge
    files: int  # how many files were written


def run(root: Path, reader: Reader, options: Options, say: Say) -> Imported:
    """Import a source into the site at `root`. Raises SetupError where that can't be."""
    root = root.resolve()
    if not options.dry_run and next((root / FOLDER / "journal").glob("*"), None):
        _commit(root, [])  # what a crash left is finished first
    say("Reading", 0, 0)
    source = reader.read()
    before = records.read_record(root)

    def begin() -> Merge:
        made = Merge(root, Changeset(root), replace(before, files=dict(before.files)), options.overwrite)
        text = settings_text(root, source)
        if text is not None:
            made.changeset.put(FILE, text)
        return made

    merge, fitted = fit(root, source.schemas, source.notes, begin)
    if not fitted.settings.populate_with_pagination:
        what = "populate in a paged list is refused here until api.populate_with_pagination is allow"
        source.notes.add(FILE, what)
    with _staging(root, options) as folder:
        offer_uploads(merge, source, reader, folder, say)
        offer_documents(merge, source, fitted, say)
        if merge.record.files != before.files:
            merge.changeset.put(records.PATH, merge.record.text())
        writes = merge.changeset.writes()
        if writes and not options.dry_run:
            say("Writing", 0, 0)
            _commit(root, writes)
    return Imported(source, merge, merge.written + any(path == FILE for path, _ in merge.changeset.texts()))


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
        raise SetupError(where, None, error.message, "nothing was imported; run it again") from error


@contextmanager
def _staging(root: Path, options: Options) -> Iterator[Path | None]:
    """A folder on the site's disk, for files until they are moved to their places; None for a dry run."""
    if options.dry_run:
        yield None
        return
    try:
        folder = state_folder(root) / "import"
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise SetupError(str(root), None, f"can't be written to: {error.strerror}") from error
    yield folder
    for left in folder.iterdir():  # kept after an error: what was fetched need not be fetched again
        left.unlink()
    folder.rmdir()
