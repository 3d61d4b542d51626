"""Recently replaced files, kept in case an editor still writes to them."""

import filecmp
import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from server.paths import STATE_FOLDER
from server.storage.exchange import Reader, open_reader, put_new
from server.storage.files import digest_of, link_mark
from server.storage.intent import Step, read_intent, write_intent

log = logging.getLogger("bifolio")

UNSAVED_FOLDER = "unsaved"  # folder name in .bifolio/
RETENTION_S = 2.0  # Longer than any program takes from looking up a file's name to opening the file.
_DONE_SUFFIX = ".kept"  # suffix of the record of a finished write
_RESTORED_SUFFIX = ".restored"  # suffix of the record of a copy of an edit


class ReplacedFiles:
    """Store of a site's recently replaced files. `journal` is the journal's folder."""

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self.folder = journal.parent / "replaced"
        self._due_at = 0.0  # when the next sweep is due, on the clock of time.monotonic()
        self._swept_ns = 0  # the mtime of the folder at the last sweep

    def keep(self, record: Path, names: Iterable[str]) -> None:
        """Move a finished write's record and old files to .bifolio/replaced/. Raises OSError."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        # The record is moved first, so that `names` includes the old files even if this process is killed.
        os.rename(record, self.folder / record.with_suffix(_DONE_SUFFIX).name)
        for name in names:
            with suppress(FileNotFoundError):
                os.rename(self.journal / name, self.folder / name)
        self._due_at = min(self._due_at, time.monotonic() + RETENTION_S)

    def copy_edit(self, file: Path, path: str) -> None:
        """Save a copy of an edited file before it is moved back to `path`, where it may be overwritten."""
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        with suppress(OSError):  # Ignore failures, so that the edit is moved back even if the disk is full.
            step = Step(path, f"{name}.edit", link_mark(file), None)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            write_intent(self.folder / f"{name}{_RESTORED_SUFFIX}", [step], synced=False)
            shutil.copyfile(file, self.folder / step.journal_name)
        self._due_at = min(self._due_at, time.monotonic() + RETENTION_S)

    def names(self) -> set[str]:
        return {step.journal_name for record in self._records() for step in read_intent(record) or ()}

    def sweep_if_due(self) -> None:
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
        """Delete the files that were replaced more than `retention_s` seconds ago.

        Files that were edited after their replacement are moved to .bifolio/unsaved/ instead.
        """
        self._due_at, self._swept_ns = float("inf"), self._changed_ns()
        for record in (*self._records(), *sorted(self.folder.glob(f"*{_RESTORED_SUFFIX}"))):
            release = self._release_copy if record.suffix == _RESTORED_SUFFIX else self._release
            with suppress(OSError):  # Another process may be sweeping at the same time.
                # If the age is negative, the clock was set back. These files are also deleted, or they could
                # stay for hours.
                is_young = 0 <= time.time() - record.stat().st_ctime < retention_s
                released = [not is_young and release(step) for step in read_intent(record) or ()]
                if all(released):
                    record.unlink(missing_ok=True)
                    continue
            self._due_at = time.monotonic() + RETENTION_S

    def _release_copy(self, step: Step) -> bool:
        copy, mark = self.folder / step.journal_name, link_mark(self.folder / step.journal_name)
        is_whole = mark is not None and step.before is not None and mark[1] == step.before[1]
        if is_whole and not _has_same_bytes(copy, self.journal.parent.parent / step.target):
            self.move_to_unsaved(copy, step.target)
        copy.unlink(missing_ok=True)
        return True

    def move_to_unsaved(self, file: Path, path: str) -> None:
        kept = move_to_unsaved(self.journal.parent, file, path)
        log.warning("%s was edited during a write; the other version is in %s", path, kept)

    def _records(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{_DONE_SUFFIX}"))

    def _release(self, step: Step) -> bool:
        file = self.folder / step.journal_name
        if not os.path.lexists(file):
            file = self.journal / step.journal_name
        with ExitStack() as held:
            reader = open_reader(file, held)
            if reader and not reader.acquire_lease(wait_s=0):
                return False
            if _is_known(reader, file, step):
                if reader and reader.has_waiting_writer:
                    return False
                file.unlink(missing_ok=True)
                return True
        self.move_to_unsaved(file, step.target)
        return True


def move_to_unsaved(state: Path, file: Path, path: str) -> Path:
    """Move a file to an unused path in .bifolio/unsaved/, and return the new path. Raises OSError."""
    folder = state / UNSAVED_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    first = target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    number = 1
    try:
        while not _is_put(file, target, descriptor):
            number += 1
            target = first.with_stem(f"{first.stem}-{number}")
    finally:
        os.close(descriptor)
    return Path(STATE_FOLDER, target.relative_to(state))


def _has_same_bytes(file: Path, other: Path) -> bool:
    try:
        return filecmp.cmp(file, other, shallow=False)
    except OSError:
        return False


def _is_known(reader: Reader | None, file: Path, step: Step) -> bool:
    current = reader.mark if reader else link_mark(file)
    if current is None:
        return True
    versions = ((step.before, step.before_digest), (step.after, step.after_digest))
    if reader is None or not (step.before_digest or step.after_digest):
        return current in (step.before, step.after)
    digest = digest_of(reader.read()).hex()
    return any(digest == expected if expected else current == mark for mark, expected in versions)


def _is_put(file: Path, target: Path, folder: int) -> bool:
    try:
        put_new(file, target, folder)
    except FileExistsError:
        return False
    return True
