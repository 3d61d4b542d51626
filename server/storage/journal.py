"""Writes the files of a change so that a crash leaves either all of them as they were or all changed.

New contents are staged in .bifolio/journal/, synced, and exchange their places with what they replace, which
is then compared with what it was when it was read: an edit by hand that came in between is put back, and
the whole change with it. A record of intent is written before, and synced where there are several files;
`storage.recovery` carries it out after a crash. There is one writer at a time, by the site's write lock;
whatever it finds left over is therefore from a writer that was killed.
"""

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from server.errors import ApiError, ConflictError, StorageError
from server.paths import STATE_FOLDER, state_folder
from server.storage.concurrent_edits import (
    Replacement,
    StagedFile,
    confirm,
    expected_mark,
    mode_of,
    naming,
    replace,
    take_back,
)
from server.storage.durable import SYNCS_ALL, make_folders, mode_of_new, stage, sync_folder, take
from server.storage.files import link_mark
from server.storage.intent import Write, write_intent
from server.storage.links import BROKEN_LINK, inner_path, may_lead
from server.storage.recovery import RECORD_SUFFIX, UNDONE_SUFFIX, Recovery
from server.storage.write_lock import WriteLock

_MAX_SINGLE_SYNCS = 100  # To sync more files than this one by one takes longer than one sync of all.


class _NotUndone(Exception):
    """A change failed, and could not be taken back for now; a later writer does that."""


class Journal:
    """The writer of one site's files. `folder` is its .bifolio/."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root.resolve()
        self.folder = folder / "journal"
        self.lock = WriteLock(folder / "write.lock", self.root)
        self.left = Recovery(self.root, self.folder)
        # Replaced files outlast the process that has replaced them, and its number may come again.
        self._run = secrets.token_hex(4)
        self._count = 0
        self._mode_of_new: int | None = None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the site's write lock. Raises BusyError when it is not free for too long."""
        with self.lock.held():
            yield

    @property
    def empty(self) -> bool:
        """Whether nothing is left of any write, nor of one that is going on."""
        try:
            return not any(self.folder.iterdir())
        except OSError:
            return True

    def recover(self) -> int:
        """Finish or drop what a crash left; call it under the lock. Returns how many files it changed."""
        if self.empty:
            return 0
        done = self.left.recover()
        self.lock.count(self.lock.number + 1)
        return done

    def sweep(self) -> None:
        """Unlink files that were replaced some seconds ago, and put edits of them aside. It needs no lock."""
        self.left.replaced.sweep_if_due()

    def check(self, writes: list[Write]) -> None:
        """Raise ConflictError where `commit` would, since a link in the path of a write leads astray."""
        for write in writes:
            self._target(write)

    def commit(self, writes: list[Write], permit: Callable[[], None] | None = None) -> None:
        """Make all of the writes, or none; call it under the lock. It counts as one write.

        `permit` is called shortly before the first file is replaced, and once more when all are. It may raise
        an ApiError. Raises ConflictError if a file differs from what was read, and StorageError if the disk
        is full or refuses. Either way it puts every file back; if that fails too, StorageError says so,
        and recovery puts the files back later.
        """
        staged: list[StagedFile] = []
        made: list[Path] = []
        try:
            state_folder(self.root)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self.sweep()
            together = len(writes) > _MAX_SINGLE_SYNCS and SYNCS_ALL
            for write in writes:
                staged.append(self._stage(write, self._target(write), synced=not together))
            if together:
                os.sync()
            with naming(*(step.target for step in staged[:1])):
                record = self._record(staged)
            for step in staged:
                if step.after:
                    made += make_folders(step.target.parent)
            if permit:
                permit()
            self._replace_counted(staged, record, permit or (lambda: None))
        except _NotUndone as error:
            raise StorageError(f"The files could not be written, nor put back yet: {error}") from error
        except OSError as error:
            self._clean(staged, made)
            if self._is_lost(error):
                raise ConflictError(
                    f"{STATE_FOLDER}/ was deleted while this was being written; try again"
                ) from error
            reason = error.strerror or str(error)
            raise StorageError(
                f"The files could not be written: {reason}", {"path": _reason_of(error, self.root)}
            ) from error
        except ApiError:
            self._clean(staged, made)
            raise
        with suppress(OSError):  # The next writer does it.
            self.left.replaced.keep(record, [step.aside.name for step in staged])

    def _name(self) -> str:
        """A name for a file of the journal that no other file has had, of this process or another."""
        self._count += 1
        return f"{os.getpid()}-{self._run}-{self._count}"

    def _target(self, write: Write) -> Path:
        """The file to write: where a path has a link in it, what that leads to; a link itself to delete."""
        path = self.root / write.path
        target = path.parent.resolve() / path.name if write.deletes else path.resolve()
        inside = inner_path(str(target), str(self.root))
        if not inside or (inside != write.path and not may_lead(write.path, inside)):
            link = os.path.islink(path)
            raise ConflictError(f"{write.path} {BROKEN_LINK if link else 'leads out of the site'}")
        return target

    def _stage(self, write: Write, target: Path, *, synced: bool) -> StagedFile:
        """A write with its staged file, with the mode that its target has or a new file gets."""
        before = expected_mark(write, target)
        aside = self.folder / f"{self._name()}.staged"
        if write.deletes:
            return StagedFile(write, target, aside, before, None)
        with naming(target):
            mode = stat.S_IMODE(mode_of(write.path, target)) if write.before else self._new_mode()
            if write.source is not None:
                take(write.source, aside, mode, synced=synced)
            else:
                stage(write.data or b"", aside, mode, synced=synced)
        return StagedFile(write, target, aside, before, link_mark(aside))

    def _new_mode(self) -> int:
        """The mode that a new file gets, by the umask of the process. It is asked once."""
        if self._mode_of_new is None:
            self._mode_of_new = mode_of_new(self.folder / f"{self._name()}.mode")
        return self._mode_of_new

    def _record(self, staged: list[StagedFile]) -> Path:
        """Write the record of intent, synced where it has to outlast the machine: there are several files."""
        steps = [step.intended(self.root) for step in staged]
        path = self.folder / f"{self._name()}{RECORD_SUFFIX}"
        write_intent(path, steps, synced=len(steps) > 1)
        if len(steps) > 1:
            sync_folder(self.folder)
        return path

    def _replace_counted(self, staged: list[StagedFile], record: Path, permit: Callable[[], None]) -> None:
        """Put everything in place, counted before: a process that sees a part knows that it is one."""
        number = self.lock.number
        self.lock.count(number + 1)
        try:
            self._replace_all(staged, record, permit)
        except (OSError, ApiError):
            with suppress(FileNotFoundError):
                self.lock.count(number)
            raise

    def _replace_all(self, staged: list[StagedFile], record: Path, permit: Callable[[], None]) -> None:
        """Put everything in place; on an error, also of `permit`, take back what was done already."""
        done: list[Replacement] = []
        with ExitStack() as kept:
            try:
                for step in staged:
                    replace(step, done, kept, self.left)
                for folder in {step.target.parent for step in staged}:
                    sync_folder(folder)
                for one in done:
                    confirm(one)
                permit()
            except (OSError, ApiError) as error:
                self._undo(done, record, error)
                if done:  # Programs may have opened files that were in their places for a moment.
                    with suppress(OSError):
                        names = [step.aside.name for step in staged]
                        self.left.replaced.keep(record.with_suffix(UNDONE_SUFFIX), names)
                raise

    def _undo(self, done: list[Replacement], record: Path, error: Exception) -> None:
        """Take back what was done. A crash from here on must not carry it out, but take it back as well."""
        with suppress(FileNotFoundError):  # It was deleted with all of .bifolio/.
            record.rename(record.with_suffix(UNDONE_SUFFIX))
        try:
            for one in reversed(done):
                take_back(one, self.left)
        except OSError:
            raise _NotUndone(str(error)) from error

    def _is_lost(self, error: OSError) -> bool:
        """Whether an error is that something is missing which was in .bifolio/ when the write began."""
        above = f"{self.folder.parent}/"
        names = (str(error.filename), str(error.filename2))
        return isinstance(error, FileNotFoundError) and any(name.startswith(above) for name in names)

    def _clean(self, staged: list[StagedFile], made: list[Path]) -> None:
        """Remove what a change that failed has staged and made."""
        for suffix in (RECORD_SUFFIX, UNDONE_SUFFIX):
            for record in self.folder.glob(f"{os.getpid()}-{self._run}-*{suffix}"):
                record.unlink(missing_ok=True)
        for step in staged:
            step.aside.unlink(missing_ok=True)
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()


def _reason_of(error: OSError, root: Path) -> str:
    name = str(error.filename or "")
    return name.removeprefix(f"{root}/")
