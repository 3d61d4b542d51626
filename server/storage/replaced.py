"""Replaced files: what a write has replaced or removed stays in .bifolio/replaced/ for RETENTION_S.

A program may have found a file by its name, or may wait to open it, while a write puts another file in its
place. What that program saves then goes into the replaced file, which has no name in the site any more. So
the file is compared once more before it is unlinked. An edited one goes to .bifolio/unsaved/.
"""

import logging
import os
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from server.paths import STATE_FOLDER
from server.storage.exchange import Reader, open_reader, put_new
from server.storage.files import digest_of, link_mark
from server.storage.intent import Step, read_intent

log = logging.getLogger("bifolio")

RETENTION_S = 2.0  # longer than any program takes from finding a file by its name to having it open
_DONE_SUFFIX = ".kept"  # Ends the name of a record whose change is done.


class ReplacedFiles:
    """The replaced files of one site, whose journal is the folder `journal`."""

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self.folder = journal.parent / "replaced"
        self._due_at = 0.0  # when the next sweep is due, on the monotonic clock
        self._swept_ns = 0  # when the folder last changed before the last sweep

    def keep(self, record: Path, asides: Iterable[str]) -> None:
        """Move a record of intent here, and the files that it names in the journal. Raises OSError.

        The record comes first: a writer that is killed in between leaves files that `names` has.
        """
        self.folder.mkdir(mode=0o700, exist_ok=True)
        os.rename(record, self.folder / record.with_suffix(_DONE_SUFFIX).name)
        for name in asides:
            with suppress(FileNotFoundError):
                os.rename(self.journal / name, self.folder / name)
        self._due_at = min(self._due_at, time.monotonic() + RETENTION_S)

    def names(self) -> set[str]:
        """The names of all files that records here are about."""
        return {step.aside for record in self._records() for step in read_intent(record) or ()}

    def sweep_if_due(self) -> None:
        """Call `sweep` if there may be something to unlink, also of a process that was killed since."""
        if self._due_at == float("inf") and self._changed_ns() != self._swept_ns:
            self._due_at = time.monotonic() + RETENTION_S
        if time.monotonic() >= self._due_at:
            self.sweep()

    def _changed_ns(self) -> int:
        try:
            return self.folder.stat().st_mtime_ns
        except OSError:
            return 0

    def sweep(self, retention_s: float = RETENTION_S) -> None:
        """Unlink the files that were kept for long enough, and put edits aside. It needs no lock."""
        self._due_at, self._swept_ns = float("inf"), self._changed_ns()
        for record in self._records():
            with suppress(OSError):  # Another process may be sweeping as well.
                # A clock that was set back must not keep files for hours.
                is_young = 0 <= time.time() - record.stat().st_ctime < retention_s
                released = [not is_young and self._release(step) for step in read_intent(record) or ()]
                if all(released):
                    record.unlink(missing_ok=True)
                    continue
            self._due_at = time.monotonic() + RETENTION_S

    def put_aside(self, file: Path, path: str) -> None:
        """Move an edited file to .bifolio/unsaved/, and log it: under its path, numbered if that is taken."""
        folder = self.journal.parent / "unsaved"
        folder.mkdir(mode=0o700, exist_ok=True)
        first = aside = folder / path
        aside.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(aside.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        number = 1
        try:
            while not _is_put(file, aside, descriptor):
                number += 1
                aside = first.with_stem(f"{first.stem}-{number}")
        finally:
            os.close(descriptor)
        kept = aside.relative_to(self.journal.parent)
        log.warning(
            "%s was edited while it was being written; %s/%s has the other version", path, STATE_FOLDER, kept
        )

    def _records(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{_DONE_SUFFIX}"))

    def _release(self, step: Step) -> bool:
        """Unlink the file of a step, or put it aside if it was edited; False while a program has it open."""
        file = self.folder / step.aside
        if not os.path.lexists(file):
            file = self.journal / step.aside
        with ExitStack() as held:
            reader = open_reader(file, held)
            if reader and not reader.hold(wait_s=0):
                return False
            if _is_known(reader, file, step):
                if reader and reader.is_awaited:
                    return False
                file.unlink(missing_ok=True)
                return True
        self.put_aside(file, step.target)
        return True


def _is_known(reader: Reader | None, file: Path, step: Step) -> bool:
    """Whether a file is what was there before a step, or after it, or is gone."""
    found = reader.mark if reader else link_mark(file)
    if found is None:
        return True
    versions = ((step.before, step.before_digest), (step.after, step.after_digest))
    if reader is None or not (step.before_digest or step.after_digest):
        return found in (step.before, step.after)
    digest = digest_of(reader.read()).hex()
    return any(digest == known if known else found == mark for mark, known in versions)


def _is_put(file: Path, aside: Path, folder: int) -> bool:
    """Rename a file to a name in an opened folder; False if the name is taken."""
    try:
        put_new(file, aside, folder)
    except FileExistsError:
        return False
    return True
