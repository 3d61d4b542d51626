"""Replacement of files that keeps simultaneous edits by other programs.

A new file is swapped with the old one, which is then compared with what was read. If an editor saved it in
between, or waits to open it, the swap is rolled back and the change refused with 409. `storage.exchange` has
the system calls, `storage.replaced` the replaced files.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from server.errors import ConflictError
from server.storage.durable import copy
from server.storage.exchange import Reader, exchange, is_unchanged, move_aside, open_reader, put_new
from server.storage.files import FileMark, below_file, digest_of, file_mark, link_mark
from server.storage.intent import Step, Write
from server.storage.links import open_folder
from server.storage.recovery import Recovery

_MAX_OPEN_FILES = 64  # Replaced files kept open during a change, in case .bifolio/ is deleted.


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A write, its target, and the target's mark before and after it, None for no file.

    `aside` is the path in the journal of the new file and, after the swap, of the old one.
    """

    write: Write
    target: Path
    aside: Path
    before: FileMark | None
    after: FileMark | None

    def check(self) -> None:
        """Raise ConflictError if the target has changed, OSError if it is read-only."""
        _require_unchanged(self.write.path, self.target, self.before, link_mark(self.target))

    def is_unedited(self) -> bool:
        """Whether `aside` is the file that this step staged, unchanged."""
        return self.after is not None and is_unchanged(self.aside, self.after, self.write.data)

    def as_step(self, root: Path) -> Step:
        """Return the step as a record of intent has it, for the site at `root`."""
        digests = (_digest(self.write.read), _digest(self.write.data))
        return Step(str(self.target.relative_to(root)), self.aside.name, self.before, self.after, *digests)


@dataclass(frozen=True, slots=True)
class Replacement:
    """A finished step. `former` is the old file, still open; None beyond _MAX_OPEN_FILES.

    `exact`: `aside` is the replaced file itself, not a link or copy made just before.
    """

    step: StagedFile
    former: Reader | None
    exact: bool

    @property
    def holds_an_edit(self) -> bool:
        """Whether `aside` is neither the old nor the new file: another program had replaced the target."""
        expected = (self.step.before, self.step.after, None)
        return self.exact and link_mark(self.step.aside) not in expected


def replace(step: StagedFile, done: list[Replacement], open_files: ExitStack, recovery: Recovery) -> None:
    """Swap in a step's file. Appends to `done`; `kept` keeps the old file open. Raises ConflictError."""
    step.check()  # before the folder is opened, which may be deleted too
    with open_folder(step.target.parent) as folder:
        former = open_reader(step.target, open_files) if step.before else None
        if former and not former.hold():
            raise _conflict(step.write.path, "was open in another program")
        step.check()
        if former and not former.has_bytes(step.write.read):
            raise _conflict(step.write.path, "was changed")
        try:
            one = Replacement(step, former if len(done) < _MAX_OPEN_FILES else None, _put(step, folder))
        except FileExistsError as error:
            raise _conflict(step.write.path, "appeared") from error
        except FileNotFoundError as error:
            if step.after and not os.path.lexists(step.aside):
                raise
            raise _conflict(step.write.path, "was removed") from error
        done.append(one)
    if one.holds_an_edit or (former and former.has_waiting_writer):
        roll_back(one, recovery)  # At once, since the editor may reread the file it saved.
        raise _conflict(step.write.path, "was changed")
    if former:
        former.release()
        if one.former is None:
            former.file.close()


def confirm(replacement: Replacement) -> None:
    """Raise ConflictError if a program that had the replaced file open has changed it."""
    step = replacement.step
    if not (replacement.exact and step.before and os.path.lexists(step.aside)):
        return
    if not is_unchanged(step.aside, step.before, step.write.read):
        raise _conflict(step.write.path, "was changed")


def _put(step: StagedFile, folder: int) -> bool:
    """Put a step's file in place; return whether `aside` is then the replaced file itself."""
    with naming(step.target):
        if step.after is None:
            return move_aside(step.target, folder, step.aside)
        if step.before is None:
            put_new(step.aside, step.target, folder)
            return False
        return exchange(step.aside, step.target, folder)


@contextmanager
def naming(*target: Path) -> Iterator[None]:
    """Context manager: make an OSError name the target instead of the staged file."""
    try:
        yield
    except (FileNotFoundError, FileExistsError):  # Callers distinguish these by the original name.
        raise
    except OSError as error:
        if error.errno is None or not target:
            raise
        raise OSError(error.errno, error.strerror, str(target[0])) from error


def roll_back(replacement: Replacement, recovery: Recovery) -> None:
    """Restore the old target of a step, unless another program has edited the new one.

    If both were edited, the one in place stays and the other goes to unsaved/: another swap could displace a
    third edit.
    """
    step, target = replacement.step, replacement.step.target
    if link_mark(target) != step.after:
        if replacement.holds_an_edit:
            recovery.replaced.put_aside(step.aside, step.write.path)
        return
    with open_folder(target.parent) as folder:
        if not step.aside.parent.is_dir() or (step.before and not os.path.lexists(step.aside)):
            _roll_back_from_open_file(replacement, folder)  # .bifolio/ was deleted.
        elif step.after is None:
            with suppress(FileExistsError):
                put_new(step.aside, target, folder)
        elif step.before is None:
            if move_aside(target, folder, step.aside) and not step.is_unedited():
                recovery.replaced.put_aside(step.aside, step.write.path)
        elif exchange(step.aside, target, folder) and not step.is_unedited():
            recovery.replaced.put_aside(step.aside, step.write.path)


def _roll_back_from_open_file(replacement: Replacement, folder: int) -> None:
    """Restore the old target from its open file, since the journal's copy is gone."""
    if replacement.step.before is None:
        os.unlink(replacement.step.target.name, dir_fd=folder)
    elif replacement.former:
        replacement.former.file.seek(0)
        copy(replacement.former.file, replacement.step.target.name, folder)


def expected_mark(write: Write, target: Path) -> FileMark | None:
    """Return the mark of a write's target, after comparing it with the signature that was read.

    For a link that is to be deleted, this is the mark of the link itself: its target may change.
    """
    try:
        itself = os.lstat(target)
        mark = file_mark(os.stat(target) if stat.S_ISLNK(itself.st_mode) else itself)
    except FileNotFoundError:
        itself, mark = None, None
    except NotADirectoryError as error:
        raise below_file(write.path) from error
    _require_unchanged(write.path, target, write.before and write.before[:3], mark)
    return file_mark(itself) if write.deletes and itself else mark


def _require_unchanged(path: str, target: Path, before: FileMark | None, mark: FileMark | None) -> None:
    if mark != before:
        raise _conflict(path, "was changed" if before and mark else "was removed" if before else "appeared")
    if mark and not mode_of(path, target, follow=False) & 0o222:
        raise OSError(errno.EACCES, "the file is read-only", str(target))


def mode_of(path: str, target: Path, *, follow: bool = True) -> int:
    """Return the mode of a file or, without `follow`, of a link. Raises ConflictError, OSError."""
    try:
        return os.stat(target, follow_symlinks=follow).st_mode
    except FileNotFoundError as error:
        raise _conflict(path, "was removed") from error


def _conflict(path: str, event: str) -> ConflictError:
    return ConflictError(f"{path} {event} during this write; nothing was changed, try again")


def _digest(data: bytes | None) -> str:
    return "" if data is None else digest_of(data).hex()
