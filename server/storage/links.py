"""Rules for links: a link may lead only to files of its own kind.

Anybody who can commit can add links, and could use them to expose or overwrite keys, accounts or settings. So
a link in content/uploads/, content/ or content-types/ must stay in that folder, site.yaml may not lead into
them, and no link may lead to a hidden name.

`link_problem` checks links in advance. `open_file` checks again after opening, since a link may replace a
file in between.
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

_FOLDERS = (UPLOADS, CONTENT, TYPES)  # an inner folder before the one around it
# The message for a document's path that such a link has replaced.
BROKEN_LINK = "is a link that does not lead to content; replace it with the document, or remove it"
_DESCRIPTOR_FOLDER = "/proc/self/fd"  # Linux names the file of an open descriptor here.
_DELETED_SUFFIX = " (deleted)"  # Linux adds this to the path of a file that was removed or replaced.


def link_problem(path: str, shown: str, top: str) -> Problem | None:
    """Return the problem with a path's links, or None. `shown` is the path in the site at `top`."""
    try:
        target = os.path.realpath(path, strict=True)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return Problem(shown, None, "a link that forms a cycle", "remove it")
        if not os.path.islink(path):
            return None  # It is missing or unreadable, which is not a problem of links.
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
    """Whether a path may contain a link. `plain` caches which folders do not."""
    folder = os.path.dirname(path)
    if folder not in plain:
        plain[folder] = _is_plain(f"{top}/{folder}" if folder else top)
    return not plain[folder] or os.path.islink(f"{top}/{path}")


def _is_plain(folder: str) -> bool:
    """Whether a folder exists and its path contains no links."""
    try:
        return os.path.realpath(folder, strict=True) == folder
    except OSError:  # Without `strict`, too, if another process replaces a link meanwhile.
        return False


def may_lead(path: str, target: str) -> bool:
    """Whether a link may lead to a target; both paths are relative to the site."""
    parts = target.split("/")
    if any(part.startswith(".") for part in parts):
        return False
    kind = _kind(path)
    if path == SETTINGS:
        return bool(target) and not _kind(target)  # Files written through the API must not set permissions.
    if kind:
        return target == kind or target.startswith(f"{kind}/")
    return bool(target) and _kind(target) != TYPES and target != SETTINGS


def _kind(path: str) -> str:
    return next((kind for kind in _FOLDERS if path == kind or path.startswith(f"{kind}/")), "")


def inner_path(real: str, top: str) -> str | None:
    """Make a real path relative to the site at `top` ("" for the site itself); None if it is outside."""
    if real == top:
        return ""
    above = top.rstrip("/") + "/"
    return real.removeprefix(above) if real.startswith(above) else None


def _check_opened(descriptor: int, full: str, top: str, path: str) -> None:
    """Raise OSError if the opened file may not be served at this path of the site at `top`.

    The check uses the descriptor, so replacing the file by a link afterwards has no effect.
    """
    real = _real_path(descriptor, full)
    if real == full:
        return
    inside = None if real is None else inner_path(real, top)
    if inside is None or (inside != path and not may_lead(path, inside)):
        raise OSError(errno.ELOOP, "was replaced by a link to a file outside of the content", path)


def _real_path(descriptor: int, path: str) -> str | None:
    """Return the real path of an opened file; None if it is gone.

    Without /proc, the path is resolved again and must lead to the same file.
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
    """Open a file of the site at `root` for reading; return the descriptor. Raises OSError.

    `root` contains no links. Opening a named pipe does not wait for a writer.
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
    """Open a regular file of the site at `root`. Raises OSError, also for a folder, pipe or device."""
    descriptor = open_file(root, path)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "not a regular file", path)
    return os.fdopen(descriptor, "rb")


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """Context manager: open a folder whose path has no links. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if _real_path(descriptor, str(folder)) != str(folder):
            raise OSError(errno.ELOOP, "was replaced by a link", str(folder))
        yield descriptor
    finally:
        os.close(descriptor)
