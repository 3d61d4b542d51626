"""Atomic replacement of files that other programs may be editing."""

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

# At most this many old files are kept open, so that they can be restored even if .bifolio/ is deleted.
_MAX_OPEN_FILES = 64


@dataclass(frozen=True, slots=True)
class StagedFile:
    """Prepared replacement of the file `target`.

    `before` is the mark (mtime, size and inode) of the old file, or None if `target` is new. `after` is the
    mark of the new file, or None if `target` will be deleted. The replacement swaps the new file at
    `journal_path` with the old file.
    """

    write: Write
    target: Path
    journal_path: Path
    before: FileMark | None
    after: FileMark | None

    def check(self) -> None:
        """Raise ConflictError if `target` has changed, or OSError if it is read-only."""
        _require_unchanged(self.write.path, self.target, self.before, link_mark(self.target))

    def is_unedited(self) -> bool:
        return self.after is not None and is_unchanged(self.journal_path, self.after, self.write.data)

    def is_applied(self) -> bool:
        """Return True if `target` is the new file or, if it was to be deleted, no longer exists."""
        mark = link_mark(self.target)
        if mark == self.after or mark is None or self.after is None:
            return mark == self.after
        return mark[1:] == self.after[1:] and is_unchanged(self.target, mark, self._new_bytes())

    def _new_bytes(self) -> bytes:
        data, source = self.write.data, self.write.source
        return source.read_bytes() if data is None and source else data or b""

    def as_step(self, root: Path) -> Step:
        digests = (_digest(self.write.read), _digest(self.write.data))
        return Step(
            str(self.target.relative_to(root)), self.journal_path.name, self.before, self.after, *digests
        )


@dataclass(frozen=True, slots=True)
class Replacement:
    """Completed replacement. If `old_file` is not None, the old file is kept open for a rollback.

    `has_original` is True if the file at `step.journal_path` is the old file itself, rather than a link or
    copy.
    """

    step: StagedFile
    old_file: Reader | None
    has_original: bool

    @property
    def has_concurrent_edit(self) -> bool:
        expected = (self.step.before, self.step.after, None)
        return self.has_original and link_mark(self.step.journal_path) not in expected


def replace(step: StagedFile, done: list[Replacement], open_files: ExitStack, recovery: Recovery) -> None:
    """Replace the target of `step`, and append the result to `done`.

    Raises ConflictError if another program has changed the target or is writing to it.
    """
    step.check()  # Check first, because opening the folder fails if the folder was deleted.
    with open_folder(step.target.parent) as folder:
        old_file = open_reader(step.target, open_files) if step.before else None
        if old_file and not old_file.acquire_lease():
            raise _conflict(step.write.path, "was open in another program")
        step.check()
        if old_file and not old_file.has_bytes(step.write.read):
            raise _conflict(step.write.path, "was changed")
        try:
            one = Replacement(
                step, old_file if len(done) < _MAX_OPEN_FILES else None, _apply_step(step, folder)
            )
        except FileExistsError as error:
            raise _conflict(step.write.path, "appeared") from error
        except FileNotFoundError as error:
            if step.after and not os.path.lexists(step.journal_path):
                raise
            raise _conflict(step.write.path, "was removed") from error
        done.append(one)
    if one.has_concurrent_edit or (old_file and old_file.has_waiting_writer):
        roll_back(one, recovery)  # Roll back at once, because the editor may reread the file it saved.
        raise _conflict(step.write.path, "was changed")
    if old_file:
        old_file.release()
        if one.old_file is None:
            old_file.file.close()


def require_unedited(replacement: Replacement) -> None:
    step = replacement.step
    if not (replacement.has_original and step.before and os.path.lexists(step.journal_path)):
        return
    if not is_unchanged(step.journal_path, step.before, step.write.read):
        raise _conflict(step.write.path, "was changed")


def _apply_step(step: StagedFile, folder: int) -> bool:
    """Replace, create or delete the step's target. `folder` is the descriptor of the target's folder.

    Return True if the file at `step.journal_path` is now the old file itself, rather than a copy.
    """
    with errors_naming(step.target):
        if step.after is None:
            return move_aside(step.target, folder, step.journal_path)
        if step.before is None:
            put_new(step.journal_path, step.target, folder)
            return False
        return exchange(step.journal_path, step.target, folder)


@contextmanager
def errors_naming(*target: Path) -> Iterator[None]:
    """Context manager: if an OSError names a temporary file, raise it again with the target's path instead.

    FileNotFoundError and FileExistsError are not changed.
    """
    try:
        yield
    except (FileNotFoundError, FileExistsError):  # Callers handle these exceptions, so they are not changed.
        raise
    except OSError as error:
        if error.errno is None or not target:
            raise
        raise OSError(error.errno, error.strerror, str(target[0])) from error


def roll_back(replacement: Replacement, recovery: Recovery) -> None:
    """Restore the old file, unless another program has edited the new file.

    If an edited version can't stay at the target's path, it is saved in .bifolio/unsaved/.
    """
    step, target = replacement.step, replacement.step.target
    if not step.is_applied():  # The target was edited again, so swapping the files could displace this edit.
        if replacement.has_concurrent_edit:
            recovery.replaced.move_to_unsaved(step.journal_path, step.write.path)
        return
    with open_folder(target.parent) as folder:
        if not step.journal_path.parent.is_dir() or (step.before and not os.path.lexists(step.journal_path)):
            # .bifolio/ was deleted, so the old file is restored from the open file.
            _roll_back_from_open_file(replacement, folder)
        elif step.after is None:
            with suppress(FileExistsError):
                put_new(step.journal_path, target, folder)
        elif step.before is None:
            if move_aside(target, folder, step.journal_path) and not step.is_unedited():
                recovery.replaced.move_to_unsaved(step.journal_path, step.write.path)
        else:
            if replacement.has_concurrent_edit:
                recovery.replaced.copy_edit(step.journal_path, step.write.path)
            if exchange(step.journal_path, target, folder) and not step.is_unedited():
                recovery.replaced.move_to_unsaved(step.journal_path, step.write.path)


def _roll_back_from_open_file(replacement: Replacement, folder: int) -> None:
    if replacement.step.before is None:
        os.unlink(replacement.step.target.name, dir_fd=folder)
    elif replacement.old_file:
        replacement.old_file.file.seek(0)
        copy(replacement.old_file.file, replacement.step.target.name, folder)


def expected_mark(write: Write, target: Path) -> FileMark | None:
    """Return the mark (mtime, size and inode) of `target`, or None if `target` does not exist.

    Raises ConflictError if the file has changed since it was read for `write`, or OSError if it is read-only.
    """
    try:
        itself = os.lstat(target)
        mark = file_mark(os.stat(target) if stat.S_ISLNK(itself.st_mode) else itself)
    except FileNotFoundError:
        itself, mark = None, None
    except NotADirectoryError as error:
        raise below_file(write.path) from error
    _require_unchanged(write.path, target, write.before and write.before[:3], mark)
    # When a link is deleted, later changes to its target do not matter.
    return file_mark(itself) if write.deletes and itself else mark


def _require_unchanged(path: str, target: Path, before: FileMark | None, mark: FileMark | None) -> None:
    if mark != before:
        raise _conflict(path, "was changed" if before and mark else "was removed" if before else "appeared")
    if mark and not mode_of(path, target, follow=False) & 0o222:
        raise OSError(errno.EACCES, "the file is read-only", str(target))


def mode_of(path: str, target: Path, *, follow: bool = True) -> int:
    """Return the mode bits of the file `target`. Raises ConflictError if it has been removed."""
    try:
        return os.stat(target, follow_symlinks=follow).st_mode
    except FileNotFoundError as error:
        raise _conflict(path, "was removed") from error


def _conflict(path: str, event: str) -> ConflictError:
    return ConflictError(f"{path} {event} during this write, so nothing was changed; try again")


def _digest(data: bytes | None) -> str:
    return "" if data is None else digest_of(data).hex()
