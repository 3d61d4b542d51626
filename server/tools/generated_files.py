"""Functions that read, write and check generated files.

They do not follow symbolic links below the folder that the user names, because a cloned site can contain
links to other folders.
"""

import errno
import os
import secrets
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from server.errors import SetupError
from server.formats.regular_files import read_regular_file

MAX_GENERATED_BYTES = 100_000_000
_IS_LINK = "is a symbolic link, so nothing is written there"
_FIX_LINK = "remove the link"
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read_file(path: Path) -> bytes | None:
    """Return a file's content, or None if the file does not exist. Raises SetupError if it can't be read."""
    try:
        return read_regular_file(path, MAX_GENERATED_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(str(path), None, f"can't be read: {error.strerror}") from error


def require_current(path: Path, content: bytes, command: str) -> None:
    """Raise SetupError if a file is missing or does not have the given content.

    The error tells the user to run `command`.
    """
    existing = read_file(path)
    if existing == content:
        return
    fix = f"run `{command}`"
    if existing is None:
        raise SetupError(str(path), None, "the file does not exist", fix)
    lines = zip([*existing.splitlines(), b""], [*content.splitlines(), b""], strict=False)
    line = next((i for i, (old, new) in enumerate(lines, start=1) if old != new), None)
    raise SetupError(str(path), line, "is out of date", fix)


# --- files without links --------------------------------------------------------------------------


def create_file(top: Path, path: str, data: bytes) -> None:
    """Write a new file below the folder `top`. Raises SetupError if it exists already or can't be written."""
    with _opened_parent(top, path) as folder:
        _write_new(folder, PurePath(path).name, data, 0o666)


def replace_file(top: Path, path: str, data: bytes) -> None:
    """Write a file below the folder `top` atomically. An existing file keeps its mode.

    Raises SetupError if the file can't be written.
    """
    with _opened_parent(top, path) as folder:
        name = PurePath(path).name
        mode = _mode(folder, name)
        temporary = f".bifolio-{secrets.token_hex(8)}"
        try:
            _write_new(folder, temporary, data, 0o666 if mode is None else 0o600, mode)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


def delete_file(top: Path, path: str) -> None:
    with _opened_parent(top, path) as folder, suppress(FileNotFoundError):
        os.unlink(PurePath(path).name, dir_fd=folder)


def require_no_link(top: Path, path: str) -> None:
    for part in (*reversed(PurePath(path).parents[:-1]), PurePath(path)):
        if (top / part).is_symlink():
            raise SetupError(str(top / part), None, _IS_LINK, _FIX_LINK)


@contextmanager
def _opened_parent(top: Path, path: str) -> Iterator[int]:
    """Create and open a file's parent folder. Links below `top` are not followed.

    Converts an OSError in the `with` block to a SetupError.
    """
    folder = None
    try:
        top.mkdir(parents=True, exist_ok=True)
        folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in PurePath(path).parent.parts:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=folder)
            inner = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    except OSError as error:
        require_no_link(top, path)
        raise SetupError(str(top / path), None, f"can't be written: {error.strerror}") from error
    finally:
        if folder is not None:
            os.close(folder)


def _mode(folder: int, name: str) -> int | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return stat.S_IMODE(found.st_mode)


def _write_new(folder: int, name: str, data: bytes, initial_mode: int, mode: int | None = None) -> None:
    with open(os.open(name, _NEW_FILE_FLAGS, initial_mode, dir_fd=folder), "wb") as file:
        file.write(data)
        if mode is not None:
            os.fchmod(file.fileno(), mode)


# --- generated files ------------------------------------------------------------------------------


def _write_if_changed(top: Path, path: str, content: bytes) -> bool:
    require_no_link(top, path)
    if read_file(top / path) == content:
        return False
    replace_file(top, path, content)
    return True


def update_file(top: Path, path: str, content: bytes, command: str, *, check: bool) -> str:
    """Write a file that `command` generates, and return a message. Raises SetupError if it can't be written.

    If `check` is set, do not write the file, but raise SetupError if it is missing or outdated.
    """
    if check:
        require_current(top / path, content, command)
    wrote = not check and _write_if_changed(top, path, content)
    return f"wrote {top / path}" if wrote else f"{top / path} is up to date"


def update_folder(
    top: Path, files: Mapping[str, bytes], outdated: Collection[str], command: str, *, check: bool
) -> tuple[int, int]:
    """Write the generated `files` and delete the `outdated` ones. Return how many were written and deleted.

    If `check` is set, change nothing, but raise SetupError if there is anything to change. Also raises
    SetupError if a file can't be written.
    """
    if check:
        for path, content in files.items():
            require_current(top / path, content, command)
        for path in outdated:
            raise SetupError(
                str(top / path),
                None,
                "is left over: this file is no longer generated",
                f"run `{command}` to delete it",
            )
        return 0, 0
    for path in (*files, *outdated):
        require_no_link(top, path)  # Check before anything is written.
    written = sum(_write_if_changed(top, path, content) for path, content in files.items())
    for path in outdated:
        delete_file(top, path)
    return written, len(outdated)
