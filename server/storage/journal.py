"""Writes the files of a change so that a crash leaves either all of them as they were or all changed.

New contents are staged in .quire/journal/, synced, and exchange their places with what they replace, which
is then compared with what it was when it was read: an edit by hand that came in between is put back, and
the whole change with it. A record of intent is written before, and synced where there are several files;
`storage.recovery` carries it out after a crash. There is one writer at a time, by the site's write lock;
whatever it finds left over is therefore from a writer that was killed.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from server.errors import ApiError, ConflictError, StorageError
from server.paths import FOLDER, state_folder
from server.storage.durable import SYNCS_ALL, copy, make_folders, mode_of_new, stage, sync_folder, take
from server.storage.exchange import Reader, exchange, is_unchanged, open_reader, put_new, take_away
from server.storage.files import FileMark, Signature, below_file, digest_of, file_mark, link_mark
from server.storage.intent import Step, write_intent
from server.storage.links import LEADS_ASTRAY, inner_path, may_lead, opened_folder
from server.storage.recovery import RECORD, UNDONE, Recovery
from server.storage.write_lock import WriteLock

_EACH = 100  # files that are synced one by one; it takes less to sync more of them with all there are
_KEPT = 64  # files that a change has replaced and are kept open, in case that .quire/ is deleted


@dataclass(frozen=True, slots=True)
class Write:
    """One file of a change: its new bytes, or the file `source` that becomes it, or neither to delete it.

    `before` is the signature that the file had when it was read, None where there was none, and `read` the
    bytes, None where they were not: it must still be so when the file is replaced.
    """

    path: str
    data: bytes | None
    before: Signature | None
    source: Path | None = None
    read: bytes | None = None

    @property
    def deletes(self) -> bool:
        """Whether the file is to be gone."""
        return self.data is None and self.source is None


@dataclass(frozen=True, slots=True)
class _Staged:
    """A write, its target, and what stands there (`before`) and is to (`after`), None for no file.

    `aside` is the name in the journal of the new file and, once that is in place, of the one before.
    """

    write: Write
    target: Path
    aside: Path
    before: FileMark | None
    after: FileMark | None

    def check(self) -> None:
        """Raise ConflictError where the target is not as it was, OSError where it may not be written."""
        _check(self.write.path, self.target, self.before, link_mark(self.target))

    def is_unedited(self) -> bool:
        """Whether what is aside is the file that this step made, as it made it."""
        return self.after is not None and is_unchanged(self.aside, self.after, self.write.data)

    def intended(self, root: Path) -> Step:
        """The step of a record of intent for it, of the site at `root`."""
        digests = (_digest(self.write.read), _digest(self.write.data))
        return Step(str(self.target.relative_to(root)), self.aside.name, self.before, self.after, *digests)


@dataclass(frozen=True, slots=True)
class _Done:
    """A step that was done. `former` is what was there just before, still open, None beyond _KEPT.

    What is aside is `exact` where it is the very file that was replaced, not one that was there just before.
    """

    step: _Staged
    former: Reader | None
    exact: bool

    @property
    def holds_an_edit(self) -> bool:
        """Whether what is aside is neither old nor new: somebody put it in the place of the old."""
        known = (self.step.before, self.step.after, None)
        return self.exact and link_mark(self.step.aside) not in known


class _NotUndone(Exception):
    """A change failed, and could not be taken back for now; a later writer does that."""


class Journal:
    """The writer of one site's files. `folder` is its .quire/."""

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

        `permit` is called shortly before the first file is replaced, and may raise an ApiError. Raises
        ConflictError where a file is not as it was read, StorageError where the disk or its permissions
        refuse. In each case every file is as it was.
        """
        staged: list[_Staged] = []
        made: list[Path] = []
        try:
            state_folder(self.root)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self.sweep()
            together = len(writes) > _EACH and SYNCS_ALL
            for write in writes:
                staged.append(self._stage(write, self._target(write), synced=not together))
            if together:
                os.sync()
            with _naming(*(step.target for step in staged[:1])):
                record = self._record(staged)
            for step in staged:
                if step.after:
                    made += make_folders(step.target.parent)
            if permit:
                permit()
            self._replace_counted(staged, record)
        except _NotUndone as error:
            raise StorageError(f"The files could not be written, nor put back yet: {error}") from error
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
            raise ConflictError(f"{write.path} {LEADS_ASTRAY if link else 'leads out of the site'}")
        return target

    def _stage(self, write: Write, target: Path, *, synced: bool) -> _Staged:
        """A write with its staged file, with the mode that its target has or a new file gets."""
        before = _expected(write, target)
        aside = self.folder / f"{self._name()}.staged"
        if write.deletes:
            return _Staged(write, target, aside, before, None)
        with _naming(target):
            mode = stat.S_IMODE(_mode(write.path, target)) if write.before else self._new_mode()
            if write.source is not None:
                take(write.source, aside, mode, synced=synced)
            else:
                stage(write.data or b"", aside, mode, synced=synced)
        return _Staged(write, target, aside, before, link_mark(aside))

    def _new_mode(self) -> int:
        """The mode that a new file gets, by the umask of the process. It is asked once."""
        if self._mode_of_new is None:
            self._mode_of_new = mode_of_new(self.folder / f"{self._name()}.mode")
        return self._mode_of_new

    def _record(self, staged: list[_Staged]) -> Path:
        """Write the record of intent, synced where it has to outlast the machine: there are several files."""
        steps = [step.intended(self.root) for step in staged]
        path = self.folder / f"{self._name()}{RECORD}"
        write_intent(path, steps, synced=len(steps) > 1)
        if len(steps) > 1:
            sync_folder(self.folder)
        return path

    def _replace_counted(self, staged: list[_Staged], record: Path) -> None:
        """Put everything in place, counted before: a process that sees a part knows that it is one."""
        number = self.lock.number
        self.lock.count(number + 1)
        try:
            self._replace_all(staged, record)
        except (OSError, ConflictError):
            with suppress(FileNotFoundError):
                self.lock.count(number)
            raise

    def _replace_all(self, staged: list[_Staged], record: Path) -> None:
        """Put everything in place; on an error, take back what was done already."""
        done: list[_Done] = []
        with ExitStack() as kept:
            try:
                for step in staged:
                    _replace(step, done, kept, self.left)
                for folder in {step.target.parent for step in staged}:
                    sync_folder(folder)
                for one in done:
                    _confirm(one)
            except (OSError, ConflictError) as error:
                self._undo(done, record, error)
                if done:  # Programs may have opened files that were in their places for a moment.
                    with suppress(OSError):
                        undone, names = record.with_suffix(UNDONE), [step.aside.name for step in staged]
                        self.left.replaced.keep(undone, names)
                raise

    def _undo(self, done: list[_Done], record: Path, error: Exception) -> None:
        """Take back what was done. A crash from here on must not carry it out, but take it back as well."""
        with suppress(FileNotFoundError):  # It was deleted with all of .quire/.
            record.rename(record.with_suffix(UNDONE))
        try:
            for one in reversed(done):
                _take_back(one, self.left)
        except OSError:
            raise _NotUndone(str(error)) from error

    def _is_lost(self, error: OSError) -> bool:
        """Whether an error is that something is missing which was in .quire/ when the write began."""
        above = f"{self.folder.parent}/"
        names = (str(error.filename), str(error.filename2))
        return isinstance(error, FileNotFoundError) and any(name.startswith(above) for name in names)

    def _clean(self, staged: list[_Staged], made: list[Path]) -> None:
        """Remove what a change that failed has staged and made."""
        for suffix in (RECORD, UNDONE):
            for record in self.folder.glob(f"{os.getpid()}-{self._run}-*{suffix}"):
                record.unlink(missing_ok=True)
        for step in staged:
            step.aside.unlink(missing_ok=True)
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()


def _replace(step: _Staged, done: list[_Done], kept: ExitStack, left: Recovery) -> None:
    """Put a step's file in place, and what was there aside; add it to `done`, its open file to `kept`."""
    step.check()  # beforehand, since its folder may be gone with it
    with opened_folder(step.target.parent) as folder:
        former = open_reader(step.target, kept) if step.before else None
        if former and not former.hold():
            raise _conflict(step.write.path, "was open in another program")
        step.check()
        if former and not former.says(step.write.read):
            raise _conflict(step.write.path, "was changed")
        try:
            one = _Done(step, former if len(done) < _KEPT else None, _put(step, folder))
        except FileExistsError as error:
            raise _conflict(step.write.path, "appeared") from error
        except FileNotFoundError as error:
            if step.after and not os.path.lexists(step.aside):
                raise
            raise _conflict(step.write.path, "was removed") from error
        done.append(one)
    if one.holds_an_edit or (former and former.is_awaited):
        _take_back(one, left)  # At once, since the editor may read what it has saved.
        raise _conflict(step.write.path, "was changed")
    if former:
        former.release()
        if one.former is None:
            former.file.close()


def _confirm(done: _Done) -> None:
    """Raise ConflictError where a file that was replaced has been changed, by who had opened it before."""
    step = done.step
    if not (done.exact and step.before and os.path.lexists(step.aside)):
        return
    if not is_unchanged(step.aside, step.before, step.write.read):
        raise _conflict(step.write.path, "was changed")


def _put(step: _Staged, folder: int) -> bool:
    """Put a step's file in place; whether what is aside then is the very file that was there."""
    with _naming(step.target):
        if step.after is None:
            return take_away(step.target, folder, step.aside)
        if step.before is None:
            put_new(step.aside, step.target, folder)
            return False
        return exchange(step.aside, step.target, folder)


@contextmanager
def _naming(*target: Path) -> Iterator[None]:
    """Let an OSError of the block name the file that is written, not the one that is to take its place."""
    try:
        yield
    except (FileNotFoundError, FileExistsError):  # These say which of both it is about.
        raise
    except OSError as error:
        if error.errno is None or not target:
            raise
        raise OSError(error.errno, error.strerror, str(target[0])) from error


def _take_back(done: _Done, left: Recovery) -> None:
    """Let the target of a step be what it was, unless somebody has edited meanwhile what was put there.

    Of two edits, one of what was there before and one of what was put there, the one in place stays, and
    the other is put aside: to exchange them once more could take a third one away.
    """
    step, target = done.step, done.step.target
    if link_mark(target) != step.after:
        if done.holds_an_edit:
            left.replaced.put_aside(step.aside, step.write.path)
        return
    with opened_folder(target.parent) as folder:
        if not step.aside.parent.is_dir() or (step.before and not os.path.lexists(step.aside)):
            _take_back_without(done, folder)  # .quire/ was deleted.
        elif step.after is None:
            with suppress(FileExistsError):
                put_new(step.aside, target, folder)
        elif step.before is None:
            if take_away(target, folder, step.aside) and not step.is_unedited():
                left.replaced.put_aside(step.aside, step.write.path)
        elif exchange(step.aside, target, folder) and not step.is_unedited():
            left.replaced.put_aside(step.aside, step.write.path)


def _take_back_without(done: _Done, folder: int) -> None:
    """Take a step back whose file in the journal is gone: what was there before is still open, as a rule."""
    if done.step.before is None:
        os.unlink(done.step.target.name, dir_fd=folder)
    elif done.former:
        done.former.file.seek(0)
        copy(done.former.file, done.step.target.name, folder)


def _expected(write: Write, target: Path) -> FileMark | None:
    """The mark of what a write finds at its target, now that it is checked.

    It is that of a link itself where a link is to be deleted: what it leads to stays, and may change.
    """
    try:
        itself = os.lstat(target)
        found = file_mark(os.stat(target) if stat.S_ISLNK(itself.st_mode) else itself)
    except FileNotFoundError:
        itself, found = None, None
    except NotADirectoryError as error:
        raise below_file(write.path) from error
    _check(write.path, target, write.before and write.before[:3], found)
    return file_mark(itself) if write.deletes and itself else found


def _check(path: str, target: Path, before: FileMark | None, found: FileMark | None) -> None:
    """Raise ConflictError where a file is not as it was read, OSError where it may not be written."""
    if found != before:
        raise _conflict(path, "was changed" if before and found else "was removed" if before else "appeared")
    if found and not _mode(path, target, follow=False) & 0o222:
        raise OSError(errno.EACCES, "the file is read-only", str(target))


def _mode(path: str, target: Path, *, follow: bool = True) -> int:
    """The mode of a file that was there just before, or of a link itself. Raises ConflictError, OSError."""
    try:
        return os.stat(target, follow_symlinks=follow).st_mode
    except FileNotFoundError as error:
        raise _conflict(path, "was removed") from error


def _conflict(path: str, what: str) -> ConflictError:
    return ConflictError(f"{path} {what} while this was being written; nothing was changed, try again")


def _digest(data: bytes | None) -> str:
    return "" if data is None else digest_of(data).hex()


def _shown(error: OSError, root: Path) -> str:
    name = str(error.filename or "")
    return name.removeprefix(f"{root}/")
