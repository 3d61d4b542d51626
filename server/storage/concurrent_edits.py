"""Replaces files without losing what another program writes to them at the same time.

A new file exchanges its place with the old one. Then the old one is compared with what it was when it was
read. If an editor has saved it in between, or waits to open it, the exchange is taken back, and the change is
refused with 409. `storage.exchange` has the system calls, `storage.replaced` the files put aside.
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
from server.storage.exchange import Reader, exchange, is_unchanged, open_reader, put_new, take_away
from server.storage.files import FileMark, below_file, digest_of, file_mark, link_mark
from server.storage.intent import Step, Write
from server.storage.links import open_folder
from server.storage.recovery import Recovery

_MAX_OPEN_FILES = 64  # Replaced files that a change keeps open, in case somebody deletes .bifolio/.


@dataclass(frozen=True, slots=True)
class StagedFile:
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
        _require_unchanged(self.write.path, self.target, self.before, link_mark(self.target))

    def is_unedited(self) -> bool:
        """Whether what is aside is the file that this step made, as it made it."""
        return self.after is not None and is_unchanged(self.aside, self.after, self.write.data)

    def intended(self, root: Path) -> Step:
        """The step of a record of intent for it, of the site at `root`."""
        digests = (_digest(self.write.read), _digest(self.write.data))
        return Step(str(self.target.relative_to(root)), self.aside.name, self.before, self.after, *digests)


@dataclass(frozen=True, slots=True)
class Replacement:
    """A step that was done. `former` is what was there just before, still open, None beyond _MAX_OPEN_FILES.

    What is aside is `exact` where it is the very file that was replaced, not one that was there just before.
    """

    step: StagedFile
    former: Reader | None
    exact: bool

    @property
    def holds_an_edit(self) -> bool:
        """Whether what is aside is neither old nor new: somebody put it in the place of the old."""
        known = (self.step.before, self.step.after, None)
        return self.exact and link_mark(self.step.aside) not in known


def replace(step: StagedFile, done: list[Replacement], kept: ExitStack, left: Recovery) -> None:
    """Put a step's file in place, and what was there aside; add it to `done`, its open file to `kept`."""
    step.check()  # beforehand, since its folder may be gone with it
    with open_folder(step.target.parent) as folder:
        former = open_reader(step.target, kept) if step.before else None
        if former and not former.hold():
            raise _conflict(step.write.path, "was open in another program")
        step.check()
        if former and not former.says(step.write.read):
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
    if one.holds_an_edit or (former and former.is_awaited):
        take_back(one, left)  # At once, since the editor may read what it has saved.
        raise _conflict(step.write.path, "was changed")
    if former:
        former.release()
        if one.former is None:
            former.file.close()


def confirm(done: Replacement) -> None:
    """Raise ConflictError where a file that was replaced has been changed, by who had opened it before."""
    step = done.step
    if not (done.exact and step.before and os.path.lexists(step.aside)):
        return
    if not is_unchanged(step.aside, step.before, step.write.read):
        raise _conflict(step.write.path, "was changed")


def _put(step: StagedFile, folder: int) -> bool:
    """Put a step's file in place; whether what is aside then is the very file that was there."""
    with naming(step.target):
        if step.after is None:
            return take_away(step.target, folder, step.aside)
        if step.before is None:
            put_new(step.aside, step.target, folder)
            return False
        return exchange(step.aside, step.target, folder)


@contextmanager
def naming(*target: Path) -> Iterator[None]:
    """Let an OSError of the block name the file that is written, not the one that is to take its place."""
    try:
        yield
    except (FileNotFoundError, FileExistsError):  # These say which of both it is about.
        raise
    except OSError as error:
        if error.errno is None or not target:
            raise
        raise OSError(error.errno, error.strerror, str(target[0])) from error


def take_back(done: Replacement, left: Recovery) -> None:
    """Let the target of a step be what it was, unless somebody has edited meanwhile what was put there.

    Of two edits, one of what was there before and one of what was put there, the one in place stays, and
    the other is put aside: to exchange them once more could take a third one away.
    """
    step, target = done.step, done.step.target
    if link_mark(target) != step.after:
        if done.holds_an_edit:
            left.replaced.put_aside(step.aside, step.write.path)
        return
    with open_folder(target.parent) as folder:
        if not step.aside.parent.is_dir() or (step.before and not os.path.lexists(step.aside)):
            _take_back_without(done, folder)  # .bifolio/ was deleted.
        elif step.after is None:
            with suppress(FileExistsError):
                put_new(step.aside, target, folder)
        elif step.before is None:
            if take_away(target, folder, step.aside) and not step.is_unedited():
                left.replaced.put_aside(step.aside, step.write.path)
        elif exchange(step.aside, target, folder) and not step.is_unedited():
            left.replaced.put_aside(step.aside, step.write.path)


def _take_back_without(done: Replacement, folder: int) -> None:
    """Take a step back whose file in the journal is gone: what was there before is still open, as a rule."""
    if done.step.before is None:
        os.unlink(done.step.target.name, dir_fd=folder)
    elif done.former:
        done.former.file.seek(0)
        copy(done.former.file, done.step.target.name, folder)


def expected_mark(write: Write, target: Path) -> FileMark | None:
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
    _require_unchanged(write.path, target, write.before and write.before[:3], found)
    return file_mark(itself) if write.deletes and itself else found


def _require_unchanged(path: str, target: Path, before: FileMark | None, found: FileMark | None) -> None:
    """Raise ConflictError where a file is not as it was read, OSError where it may not be written."""
    if found != before:
        raise _conflict(path, "was changed" if before and found else "was removed" if before else "appeared")
    if found and not mode_of(path, target, follow=False) & 0o222:
        raise OSError(errno.EACCES, "the file is read-only", str(target))


def mode_of(path: str, target: Path, *, follow: bool = True) -> int:
    """The mode of a file that was there just before, or of a link itself. Raises ConflictError, OSError."""
    try:
        return os.stat(target, follow_symlinks=follow).st_mode
    except FileNotFoundError as error:
        raise _conflict(path, "was removed") from error


def _conflict(path: str, what: str) -> ConflictError:
    return ConflictError(f"{path} {what} while this was being written; nothing was changed, try again")


def _digest(data: bytes | None) -> str:
    return "" if data is None else digest_of(data).hex()
