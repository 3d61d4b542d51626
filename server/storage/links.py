"""Rules for symbolic links: a link may point only to files of its own kind.

Everyone who can commit can add symbolic links. Without rules, such a link could expose or overwrite keys,
accounts or settings. Therefore:
- a link in content/uploads/, content/ or content-types/ must point to a target in the same folder;
- site.yaml must not be a link to a target in these folders;
- no link may point to a hidden name.

`link_problem` checks a path in advance. `open_file` checks the opened file again, because a file can be
replaced by a link after the first check.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from server.paths import CONTENT, SETTINGS, TYPES, UPLOADS
from server.problems import Problem

_FOLDERS = (UPLOADS, CONTENT, TYPES)  # Inner folders must come before their parent folders.
# Message if a disallowed link is found at a document's path.
BROKEN_LINK = "is a link that does not lead to content; replace it with the document, or remove it"
_DESCRIPTOR_FOLDER = "/proc/self/fd"  # On Linux, links here show which file each open descriptor refers to.
_DELETED_SUFFIX = " (deleted)"  # Linux appends this to the path of a file that was deleted or replaced.


def link_problem(path: str, shown: str, top: str) -> Problem | None:
    """Check the symbolic links in a path. Return a problem, or None if they are all allowed.

    `shown` is the path relative to the site, which is at `top`.
    """
    try:
        target = os.path.realpath(path, strict=True)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return Problem(shown, None, "a link that forms a cycle", "remove it")
        if not os.path.islink(path):
            return None  # A missing or unreadable file is reported elsewhere.
        if error.errno == errno.ENOENT:
            return Problem(shown, None, "a link to a missing file", "remove it or restore its target")
        return Problem(shown, None, f"a link that can't be followed: {error.strerror}", "remove it")
    inside = inner_path(target, top)
    if inside is None:
        return Problem(shown, None, "a link that leaves the site", "copy the file into the site")
    if inside != shown and not may_lead(shown, inside):
        wrong = f"is not in {_kind(shown) or 'the content'}" if shown != SETTINGS else "may not hold settings"
        message = f"a link to {inside or 'the site'}, which {wrong}"
        return Problem(shown, None, message, "put a copy in its place")
    return None


def has_links(top: str, path: str, plain: dict[str, bool]) -> bool:
    """Whether a path may contain a symbolic link.

    `plain` caches, for each folder, whether its path is free of symbolic links.
    """
    folder = os.path.dirname(path)
    if folder not in plain:
        plain[folder] = _is_plain(f"{top}/{folder}" if folder else top)
    return not plain[folder] or os.path.islink(f"{top}/{path}")


def _is_plain(folder: str) -> bool:
    """Whether a folder exists and no part of its path is a symbolic link."""
    try:
        return os.path.realpath(folder, strict=True) == folder
    except OSError:  # The folder is missing, or another process is replacing a link.
        return False


def may_lead(path: str, target: str) -> bool:
    """Whether a symbolic link at `path` may point to `target`. Both paths are relative to the site."""
    parts = target.split("/")
    if any(part.startswith(".") for part in parts):
        return False
    kind = _kind(path)
    if path == SETTINGS:
        return bool(target) and not _kind(target)  # Files that the API can write must not define permissions.
    if kind:
        return target == kind or target.startswith(f"{kind}/")
    return bool(target) and _kind(target) != TYPES and target != SETTINGS


def _kind(path: str) -> str:
    return next((kind for kind in _FOLDERS if path == kind or path.startswith(f"{kind}/")), "")


def inner_path(real: str, top: str) -> str | None:
    """Convert a real path to a path relative to the site at `top`. For the site itself, return "".

    Return None for a path outside the site.
    """
    if real == top:
        return ""
    above = top.rstrip("/") + "/"
    return real.removeprefix(above) if real.startswith(above) else None


def _check_opened(descriptor: int, full: str, top: str, path: str) -> None:
    """Raise OSError if an opened file must not be served as `path`.

    The check uses the file's descriptor. Therefore its result stays true if a link replaces the file later.
    """
    real = _real_path(descriptor, full)
    if real == full:
        return
    inside = None if real is None else inner_path(real, top)
    if inside is None or (inside != path and not may_lead(path, inside)):
        raise OSError(errno.ELOOP, "was replaced by a link to a file outside of the content", path)


def _real_path(descriptor: int, path: str) -> str | None:
    """Return the real path of an opened file, or None if it can't be determined.

    On systems without /proc, the path is resolved again, and the result must be the same file.
    """
    try:
        real = os.readlink(f"{_DESCRIPTOR_FOLDER}/{descriptor}")
        if real.endswith(_DELETED_SUFFIX) and not os.path.lexists(real):
            return real.removesuffix(_DELETED_SUFFIX)
    except OSError:
        return _resolve(descriptor, path)
    return real


def _resolve(descriptor: int, path: str) -> str | None:
    try:
        real = os.path.realpath(path, strict=True)
        return real if os.path.samestat(os.lstat(real), os.fstat(descriptor)) else None
    except OSError:
        return None


def open_file(root: Path, path: str) -> int:
    """Open a file in the site at `root` for reading, and return its descriptor. Raises OSError.

    `root` must not contain symbolic links. If the file is a named pipe, opening it does not block.
    """
    top = str(root)
    full = f"{top.rstrip('/')}/{path}"
    descriptor = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check_opened(descriptor, full, top, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_ordinary(root: Path, path: str) -> BufferedReader:
    """Open a regular file in the site at `root`.

    Raises OSError, including for folders, pipes and devices.
    """
    descriptor = open_file(root, path)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "not a regular file", path)
    return os.fdopen(descriptor, "rb")


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """Context manager: open a folder and yield its descriptor.

    Raises OSError, including for a path with symbolic links.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if _real_path(descriptor, str(folder)) != str(folder):
            raise OSError(errno.ELOOP, "was replaced by a link", str(folder))
        yield descriptor
    finally:
        os.close(descriptor)
