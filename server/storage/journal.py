"""Write-ahead journal: several files change together or not at all, even after a crash."""

import errno
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
    errors_naming,
    expected_mark,
    mode_of,
    replace,
    require_unedited,
    roll_back,
)
from server.storage.durable import SYNCS_ALL, default_mode, make_folders, stage, stage_file, sync_folder
from server.storage.files import link_mark, storage_error
from server.storage.intent import Write, write_intent
from server.storage.links import BROKEN_LINK, inner_path, may_point_to
from server.storage.recovery import RECORD_SUFFIX, UNDONE_SUFFIX, Recovery
from server.storage.write_lock import WriteLock

MISSING_FOLDER = "The site's folder is missing, so nothing can be written"
_MAX_SINGLE_SYNCS = 100  # For more files, one sync of the whole system is faster than syncing each file.

# Errors of a file in the journal's folder that concern the folder.
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)


class _RollbackFailed(Exception):
    """Raised if a change and its rollback have both failed."""


class Journal:
    """Write-ahead journal of a site."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root.resolve()
        self.folder = folder / "journal"
        self.lock = WriteLock(folder / "write.lock", self.root)
        self.recovery = Recovery(self.root, self.folder)
        # This distinguishes files from those of an earlier process with the same process id.
        self._run = secrets.token_hex(4)
        self._count = 0
        self._mode_of_new: int | None = None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the write lock in a `with` block.

        Raises BusyError after a timeout, or StorageError if locking fails.
        """
        with ExitStack() as held:
            try:
                held.enter_context(self.lock.held())
            except FileNotFoundError as error:
                raise StorageError(MISSING_FOLDER) from error
            except OSError as error:
                raise storage_error("The site's write lock can't be acquired", error, self.root) from error
            yield

    @property
    def is_empty(self) -> bool:
        try:
            return not any(self.folder.iterdir())
        except OSError:
            return True

    def recover(self) -> int:
        """Finish or revert interrupted writes. Return the number of changed files.

        The caller must hold the write lock.
        """
        if self.is_empty:
            return 0
        count = self.recovery.recover()
        self.lock.set_counter(self.lock.counter + 1)
        return count

    def sweep(self) -> None:
        self.recovery.replaced.sweep_if_due()

    def check(self, writes: list[Write]) -> None:
        """Raise ConflictError if a path contains a forbidden symbolic link."""
        for write in writes:
            self._target(write)

    def commit(self, writes: list[Write], permit: Callable[[], None] | None = None) -> None:
        """Apply either all writes or none of them. The caller must hold the write lock.

        `permit` is called before the first replacement and after the last one. It can raise an ApiError to
        revert the writes. Raises ConflictError if a file has changed since it was read, or StorageError if
        the files can't be written.
        """
        staged: list[StagedFile] = []
        new_folders: list[Path] = []
        try:
            state_folder(self.root)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self.sweep()
            together = len(writes) > _MAX_SINGLE_SYNCS and SYNCS_ALL
            for write in writes:
                staged.append(self._stage(write, self._target(write), synced=not together))
            if together:
                os.sync()
            with self._errors_naming(*(step.target for step in staged[:1])):
                record = self._write_record(staged)
            for step in staged:
                if step.after:
                    new_folders += make_folders(step.target.parent)
            if permit:
                permit()
            self._replace_counted(staged, record, permit or (lambda: None))
        except _RollbackFailed as error:
            raise StorageError(f"The files have neither been written nor restored yet: {error}") from error
        except OSError as error:
            self._clean(staged, new_folders)
            if self._is_lost(error):
                raise ConflictError(f"{STATE_FOLDER}/ was deleted during this write; try again") from error
            raise storage_error("The files can't be written", error, self.root) from error
        except ApiError:
            self._clean(staged, new_folders)
            raise
        with suppress(OSError):  # If this fails, the next writer moves these files.
            self.recovery.replaced.keep(record, [step.journal_path.name for step in staged])

    def _name(self) -> str:
        self._count += 1
        return f"{os.getpid()}-{self._run}-{self._count}"

    def _target(self, write: Write) -> Path:
        path = self.root / write.path
        target = path.parent.resolve() / path.name if write.deletes else path.resolve()
        inside = inner_path(str(target), str(self.root))
        if not inside or (inside != write.path and not may_point_to(write.path, inside)):
            reason = BROKEN_LINK if os.path.islink(path) else "points outside the site's folder"
            raise ConflictError(f"{write.path} {reason}")
        return target

    def _stage(self, write: Write, target: Path, *, synced: bool) -> StagedFile:
        before = expected_mark(write, target)
        staged_path = self.folder / f"{self._name()}.staged"
        if write.deletes:
            return StagedFile(write, target, staged_path, before, None)
        with self._errors_naming(target):
            mode = stat.S_IMODE(mode_of(write.path, target)) if write.before else self._new_mode()
            if write.source is not None:
                stage_file(write.source, staged_path, mode, synced=synced)
            else:
                stage(write.data or b"", staged_path, mode, synced=synced)
        return StagedFile(write, target, staged_path, before, link_mark(staged_path))

    @contextmanager
    def _errors_naming(self, *target: Path) -> Iterator[None]:
        try:
            with errors_naming(*target):
                yield
        except OSError as error:
            if error.errno in _NOT_WRITABLE:
                raise OSError(error.errno, error.strerror, str(self.folder)) from error
            raise

    def _new_mode(self) -> int:
        if self._mode_of_new is None:
            self._mode_of_new = default_mode(self.folder / f"{self._name()}.mode")
        return self._mode_of_new

    def _write_record(self, staged: list[StagedFile]) -> Path:
        steps = [step.as_step(self.root) for step in staged]
        path = self.folder / f"{self._name()}{RECORD_SUFFIX}"
        write_intent(path, steps, synced=len(steps) > 1)
        if len(steps) > 1:
            sync_folder(self.folder)
        return path

    def _replace_counted(self, staged: list[StagedFile], record: Path, permit: Callable[[], None]) -> None:
        # Increase the write counter, which tells other processes that files may have been replaced.
        number = self.lock.counter
        self.lock.set_counter(number + 1)
        try:
            self._replace_all(staged, record, permit)
        except (OSError, ApiError):
            with suppress(FileNotFoundError):
                self.lock.set_counter(number)
            raise

    def _replace_all(self, staged: list[StagedFile], record: Path, permit: Callable[[], None]) -> None:
        done: list[Replacement] = []
        with ExitStack() as open_files:
            try:
                for step in staged:
                    replace(step, done, open_files, self.recovery)
                for folder in {step.target.parent for step in staged}:
                    sync_folder(folder)
                for one in done:
                    require_unedited(one)
                permit()
            except (OSError, ApiError) as error:
                self._undo(done, record, error)
                if done:  # Keep the new files for a while, because other programs may have opened them.
                    with suppress(OSError):
                        names = [step.journal_path.name for step in staged]
                        self.recovery.replaced.keep(record.with_suffix(UNDONE_SUFFIX), names)
                raise

    def _undo(self, done: list[Replacement], record: Path, error: Exception) -> None:
        # Rename the record first. After a crash, recovery then continues the rollback instead of finishing
        # the write.
        with suppress(FileNotFoundError):  # Another program deleted .bifolio/.
            record.rename(record.with_suffix(UNDONE_SUFFIX))
        try:
            for one in reversed(done):
                roll_back(one, self.recovery)
        except OSError:
            raise _RollbackFailed(str(error)) from error

    def _is_lost(self, error: OSError) -> bool:
        above = f"{self.folder.parent}/"
        names = (str(error.filename), str(error.filename2))
        return isinstance(error, FileNotFoundError) and any(name.startswith(above) for name in names)

    def _clean(self, staged: list[StagedFile], new_folders: list[Path]) -> None:
        for suffix in (RECORD_SUFFIX, UNDONE_SUFFIX):
            for record in self.folder.glob(f"{os.getpid()}-{self._run}-*{suffix}"):
                _unlink(record)
        for step in staged:
            _unlink(step.journal_path)
        for folder in reversed(new_folders):
            with suppress(OSError):
                folder.rmdir()


def _unlink(path: Path) -> None:
    with suppress(OSError):  # The folder may be the reason why the write failed.
        path.unlink()
