"""Writes the files of a change so that a crash leaves either all of them as they were or all changed.

New contents are staged in .quire/journal/, synced, and renamed over their targets. Where a change
has several files, a record of intent is synced first. After a crash, a record that is whole is
carried out to the end, and one that is not is dropped. There is one writer at a time, by the site's
write lock; whatever it finds left over is therefore from a writer that was killed.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from server.errors import ApiError, ConflictError, StorageError
from server.paths import FOLDER, state_folder
from server.storage.durable import back_up, copy, make_folders, move, stage, sync_folder, take
from server.storage.files import Signature, signature
from server.storage.intent import Step, file_digest, read_intent, write_intent
from server.storage.links import LEADS_ASTRAY, inner_path, may_lead, opened_folder
from server.storage.write_lock import WriteLock

_RECORD = "intent"
_UNSAVED = "unsaved"
_KEPT = 64  # backups of a change that are kept open, in case that .quire/ is deleted


@dataclass(frozen=True, slots=True)
class Write:
    """One file of a change: its new bytes, or the file `source` that becomes it, or neither to delete it.

    `before` is the signature that the file had when it was read, None where there was none: it must
    still be so when the file is replaced.
    """

    path: str
    data: bytes | None
    before: Signature | None
    source: Path | None = None

    @property
    def deletes(self) -> bool:
        """Whether the file is to be gone."""
        return self.data is None and self.source is None


@dataclass(frozen=True, slots=True)
class _Staged:
    """A write, its target, the signature of what stands there, and its staged file, None where it deletes."""

    write: Write
    target: Path
    before: Signature | None
    temporary: Path | None

    def check(self) -> None:
        """Raise ConflictError where the target is not as it was, OSError where it may not be written."""
        _check(self.write.path, self.target, self.before, _signature_of(self.target))


@dataclass(frozen=True, slots=True)
class _Backup:
    """What a step has replaced: its second name, and the file itself, still open, None beyond _KEPT."""

    path: Path
    file: BufferedReader | None


class Journal:
    """The writer of one site's files. `folder` is its .quire/."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root.resolve()
        self.folder = folder / "journal"
        self.lock = WriteLock(folder / "write.lock", self.root)
        self._count = 0
        self._umask = _umask()

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

    def interrupted(self) -> list[str]:
        """The files that a crash left to be written by `recover`; call it under the lock."""
        steps = (step for record in self.folder.glob(f"*.{_RECORD}") for step in read_intent(record) or ())
        return sorted(step.target for step in steps if step.staged and (self.folder / step.staged).exists())

    def dropped(self) -> bool:
        """Whether a crash left a write that `recover` drops, before it had changed any file."""
        records = (read_intent(record) or () for record in self.folder.glob(f"*.{_RECORD}"))
        known = {step.staged for steps in records for step in steps}
        return any(staged.name not in known for staged in self.folder.glob("*.staged"))

    def unsaved(self) -> list[str]:
        """The files that `recover` put aside since somebody had edited the ones that they were to replace."""
        aside = self.folder.parent / _UNSAVED
        found = (path.relative_to(aside).as_posix() for path in aside.rglob("*") if path.is_file())
        return sorted(f"{FOLDER}/{_UNSAVED}/{path}" for path in found)

    def recover(self) -> int:
        """Carry out or drop what a crash left; call it under the lock. Returns how many files it changed."""
        if self.empty:
            return 0
        done = 0
        for record in sorted(self.folder.glob(f"*.{_RECORD}")):
            steps = read_intent(record)
            for step in steps or ():
                done += self._repeat(step)
            record.unlink(missing_ok=True)
        for stray in self.folder.iterdir():
            stray.unlink(missing_ok=True)
        self.lock.count(self.lock.number + 1)
        return done

    def _repeat(self, step: Step) -> int:
        """Carry out one step of a record again, if that is still to be done."""
        target = self.root / step.target
        untouched = _signature_of(target) == (tuple(step.before) if step.before else None)
        if step.staged is None:
            if untouched:
                with suppress(FileNotFoundError):
                    _remove(target)
            return int(untouched)
        staged = self.folder / step.staged
        if not staged.exists() or file_digest(staged) != step.digest:
            return 0  # It was renamed before the crash.
        if not untouched:  # Somebody has edited the file since: the edit stays, ours goes to a folder.
            self._put_aside(staged, step.target)
            return 0
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(staged, target)
        sync_folder(target.parent)
        return 1

    def _put_aside(self, staged: Path, path: str) -> None:
        """Keep a staged file for somebody to look at, under its path, numbered where that is taken."""
        folder = self.folder.parent / _UNSAVED
        folder.mkdir(mode=0o700, exist_ok=True)
        aside = first = folder / path
        aside.parent.mkdir(parents=True, exist_ok=True)
        number = 1
        while os.path.lexists(aside):
            number += 1
            aside = first.with_stem(f"{first.stem}-{number}")
        os.replace(staged, aside)

    def commit(self, writes: list[Write], permit: Callable[[], None] | None = None) -> None:
        """Make all of the writes, or none; call it under the lock. It counts as one write.

        `permit` is called shortly before the first file is replaced, and may raise an ApiError. Raises
        ConflictError where a file is not as it was read, StorageError where the disk or its permissions
        refuse. In each case every file is as it was.
        """
        staged: list[_Staged] = []
        made: list[Path] = []
        try:
            state_folder(self.root)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            for write in writes:
                target = self._target(write)
                before = _expected(write, target)
                staged.append(_Staged(write, target, before, self._stage(write, target)))
            record = self._record(staged) if len(staged) > 1 else None
            for step in staged:
                if step.temporary:
                    made += make_folders(step.target.parent)
            if permit:
                permit()
            self._replace_counted(staged)
            if record:
                _discard(record)
        except OSError as error:
            self._clean(staged, made)
            if self._is_lost(error):
                raise ConflictError(
                    f"{FOLDER}/ was deleted while this was being written; try again"
                ) from error
            reason = error.strerror or str(error)
            raise StorageError(
                f"The files could not be written: {reason}", {"path": _shown(error, self.root)}
            ) from error
        except ApiError:
            self._clean(staged, made)
            raise

    def _target(self, write: Write) -> Path:
        """The file to write: where a path has a link in it, what that leads to; a link itself to delete."""
        path = self.root / write.path
        target = path.parent.resolve() / path.name if write.deletes else path.resolve()
        inside = inner_path(str(target), str(self.root))
        if not inside or (inside != write.path and not may_lead(write.path, inside)):
            link = os.path.islink(path)
            raise ConflictError(f"{write.path} {LEADS_ASTRAY if link else 'leads out of the site'}")
        return target

    def _stage(self, write: Write, target: Path) -> Path | None:
        """The staged file of a write, with the mode that its target has or a new file gets."""
        if write.deletes:
            return None
        self._count += 1
        temporary = self.folder / f"{os.getpid()}-{self._count}.staged"
        mode = stat.S_IMODE(target.stat().st_mode) if write.before else 0o666 & ~self._umask
        if write.source is not None:
            return take(write.source, temporary, mode)
        return stage(write.data or b"", temporary, mode)

    def _record(self, staged: list[_Staged]) -> Path:
        """Write the record of intent, synced."""
        steps = [
            Step(
                str(step.target.relative_to(self.root)),
                step.temporary.name if step.temporary else None,
                file_digest(step.temporary) if step.temporary else None,
                step.before,
            )
            for step in staged
        ]
        self._count += 1
        path = self.folder / f"{os.getpid()}-{self._count}.{_RECORD}"
        write_intent(path, steps)
        sync_folder(self.folder)
        return path

    def _replace_counted(self, staged: list[_Staged]) -> None:
        """Rename everything into place, counted before: a process that sees a part knows that it is one."""
        number = self.lock.number
        self.lock.count(number + 1)
        try:
            self._replace_all(staged)
        except (OSError, ConflictError):
            with suppress(FileNotFoundError):
                self.lock.count(number)
            raise

    def _replace_all(self, staged: list[_Staged]) -> None:
        """Rename everything into place; on an error, put back what was replaced already."""
        undo: list[_Backup | None] = []
        with ExitStack() as opened:
            try:
                self._replace_each(staged, undo, opened)
            except (OSError, ConflictError):
                self._undo(undo, staged)
                raise
        for backup in undo:
            if backup:
                _discard(backup.path)

    def _replace_each(self, staged: list[_Staged], undo: list[_Backup | None], kept: ExitStack) -> None:
        """Rename everything into place; what was replaced is put into `undo`, its open files into `kept`."""
        for step in staged:
            target = step.target
            step.check()  # beforehand, since its folder may be gone with it
            with opened_folder(target.parent) as opened:
                step.check()
                several = len(staged) > 1 and step.before
                undo.append(self._back_up(target, kept, len(undo) < _KEPT) if several else None)
                if step.temporary:
                    move(step.temporary, target.name, opened)
                else:
                    os.unlink(target.name, dir_fd=opened)
        for folder in {step.target.parent for step in staged}:
            sync_folder(folder)

    def _back_up(self, target: Path, kept: ExitStack, keep: bool) -> _Backup:
        self._count += 1
        backup = self.folder / f"{os.getpid()}-{self._count}.backup"
        back_up(target, backup)
        file = kept.enter_context(backup.open("rb")) if keep and not backup.is_symlink() else None
        return _Backup(backup, file)

    def _undo(self, undo: list[_Backup | None], staged: list[_Staged]) -> None:
        """Put back what was replaced."""
        # The record is removed first: a crash from here on must not carry out what is being undone.
        for record in self.folder.glob(f"{os.getpid()}-*.{_RECORD}"):
            record.unlink(missing_ok=True)
        for backup, step in reversed(list(zip(undo, staged, strict=False))):
            if backup:
                _put_back(backup, step)
            elif step.before is None and step.temporary and not step.temporary.exists():
                with suppress(FileNotFoundError):
                    _remove(step.target)

    def _is_lost(self, error: OSError) -> bool:
        """Whether an error is that something is missing which was in .quire/ when the write began."""
        above = f"{self.folder.parent}/"
        names = (str(error.filename), str(error.filename2))
        return isinstance(error, FileNotFoundError) and any(name.startswith(above) for name in names)

    def _clean(self, staged: list[_Staged], made: list[Path]) -> None:
        """Remove what a change that failed has staged and made."""
        for step in staged:
            if step.temporary:
                step.temporary.unlink(missing_ok=True)
        for record in self.folder.glob(f"{os.getpid()}-*.{_RECORD}"):
            record.unlink(missing_ok=True)
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()


def _put_back(backup: _Backup, step: _Staged) -> None:
    """Let the target of a step be what it was, also where .quire/ was deleted with the backup."""
    try:
        _replace(backup.path, step.target)
    except FileNotFoundError:
        if backup.file and _signature_of(step.target) != step.before:
            with opened_folder(step.target.parent) as folder:
                copy(backup.file, step.target.name, folder)


def _replace(source: Path, target: Path) -> None:
    """Rename a file over a target in whose folder nothing is a link."""
    with opened_folder(target.parent) as folder:
        move(source, target.name, folder)


def _remove(target: Path) -> None:
    with opened_folder(target.parent) as folder:
        os.unlink(target.name, dir_fd=folder)


def _expected(write: Write, target: Path) -> Signature | None:
    """The signature of what a write finds at its target, now that it is checked.

    It is that of a link itself where a link is to be deleted: what it leads to stays, and may change.
    """
    found = _signature_of(target, follow_symlinks=True)
    _check(write.path, target, write.before, found)
    return _signature_of(target) if write.deletes else found


def _check(path: str, target: Path, before: Signature | None, found: Signature | None) -> None:
    """Raise ConflictError where a file is not as it was read, OSError where it may not be written."""
    if found != before:
        what = "was changed" if before and found else "was removed" if before else "appeared"
        raise ConflictError(f"{path} {what} while this was being written; nothing was changed, try again")
    if found and not os.lstat(target).st_mode & 0o222:
        raise OSError(errno.EACCES, "the file is read-only", str(target))


def _discard(path: Path) -> None:
    """Remove what a change that is done has left; where that fails, the next one does it."""
    with suppress(OSError):
        path.unlink()


def _signature_of(target: Path, *, follow_symlinks: bool = False) -> Signature | None:
    """The signature of a file, None where there is none. Raises OSError."""
    try:
        return signature(os.stat(target, follow_symlinks=follow_symlinks))
    except FileNotFoundError:
        return None


def _umask() -> int:
    """The umask of the process, which can be read only by setting it."""
    current = os.umask(0o022)
    os.umask(current)
    return current


def _shown(error: OSError, root: Path) -> str:
    name = str(error.filename or "")
    return name.removeprefix(f"{root}/")
