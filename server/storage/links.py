"""Rules that keep symbolic links from exposing secret keys or user accounts."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from server.paths import CONTENT, SETTINGS, TYPES, UPLOADS
from server.problems import Problem

_FOLDERS = (UPLOADS, CONTENT, TYPES)  # An inner folder must come before the folder that contains it.
# Message if a symbolic link that is not allowed is found at a document's path.
BROKEN_LINK = (
    "is a symbolic link that does not point to content; replace it with the document, or remove the link"
)
# On Linux, each link in this folder shows which file an open descriptor refers to.
_DESCRIPTOR_FOLDER = "/proc/self/fd"
_OPEN_ATTEMPTS = 3  # A file that is replaced while it is opened can have another path for a moment.
_DELETED_SUFFIX = " (deleted)"  # Linux appends this to the path of a file that was deleted or replaced.


def link_problem(path: str, displayed_path: str, top: str) -> Problem | None:
    """Return a problem if `path` contains a forbidden or broken symbolic link, and otherwise None.

    `displayed_path` is the same path relative to `top`, the site's folder.
    """
    try:
        target = os.path.realpath(path, strict=True)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return Problem(displayed_path, None, "is a symbolic link that forms a cycle", "remove the link")
        if not os.path.islink(path):
            return None  # Missing or unreadable files are reported elsewhere.
        if error.errno == errno.ENOENT:
            fix = "remove the link, or restore its target"
            return Problem(displayed_path, None, "is a symbolic link to a missing file", fix)
        message = f"is a symbolic link that can't be followed: {error.strerror}"
        return Problem(displayed_path, None, message, "remove the link")
    inside = inner_path(target, top)
    if inside is None:
        message = "is a symbolic link that points outside the site's folder"
        return Problem(displayed_path, None, message, "copy the file into the site")
    if inside != displayed_path and not may_point_to(displayed_path, inside):
        outside = f"is not inside {_kind(displayed_path) or 'the content'}"
        wrong = "can't contain settings" if displayed_path == SETTINGS else outside
        message = f"is a symbolic link to {inside or 'the site'}, which {wrong}"
        return Problem(displayed_path, None, message, "replace the link with a copy")
    return None


def has_links(top: str, path: str, link_free: dict[str, bool]) -> bool:
    """Return True if `path`, relative to `top`, may contain a symbolic link. `link_free` is a cache."""
    folder = os.path.dirname(path)
    if folder not in link_free:
        link_free[folder] = _is_plain(f"{top}/{folder}" if folder else top)
    return not link_free[folder] or os.path.islink(f"{top}/{path}")


def _is_plain(folder: str) -> bool:
    try:
        return os.path.realpath(folder, strict=True) == folder
    except OSError:  # The folder is missing, or another process is replacing a link.
        return False


def may_point_to(path: str, target: str) -> bool:
    """Return True if a symbolic link at `path` may point to `target`. Both paths are relative to the site."""
    parts = target.split("/")
    if any(part.startswith(".") for part in parts):
        return False
    kind = _kind(path)
    if path == SETTINGS:
        # site.yaml defines permissions, so it must not be a link to a file that the API can write.
        return bool(target) and not _kind(target)
    if kind:
        return target == kind or target.startswith(f"{kind}/")
    return bool(target) and _kind(target) != TYPES and target != SETTINGS


def _kind(path: str) -> str:
    return next((kind for kind in _FOLDERS if path == kind or path.startswith(f"{kind}/")), "")


def inner_path(real: str, top: str) -> str | None:
    """Return the path `real` relative to the folder `top`, or None if it is not inside this folder.

    Neither path may contain symbolic links.
    """
    if real == top:
        return ""
    above = top.rstrip("/") + "/"
    return real.removeprefix(above) if real.startswith(above) else None


def _is_allowed(descriptor: int, full: str, top: str, path: str) -> bool:
    real = _real_path(descriptor, full)
    if real == full:
        return True
    inside = None if real is None else inner_path(real, top)
    return inside is not None and (inside == path or may_point_to(path, inside))


def _real_path(descriptor: int, path: str) -> str | None:
    """Return an open file's real path, or None if it is unknown."""
    try:
        real = os.readlink(f"{_DESCRIPTOR_FOLDER}/{descriptor}")
        if real.endswith(_DELETED_SUFFIX) and not os.path.lexists(real):
            return real.removesuffix(_DELETED_SUFFIX)
    except OSError:
        return _resolve(descriptor, path)  # The system has no /proc.
    return real


def _resolve(descriptor: int, path: str) -> str | None:
    try:
        real = os.path.realpath(path, strict=True)
        return real if os.path.samestat(os.lstat(real), os.fstat(descriptor)) else None
    except OSError:
        return None


def open_file(root: Path, path: str) -> int:
    """Open a file of the site, and return its descriptor. `root` must not contain symbolic links.

    Raises OSError if this fails, or if the path contains a forbidden symbolic link.
    """
    top = str(root)
    full = f"{top.rstrip('/')}/{path}"
    for _ in range(_OPEN_ATTEMPTS):
        descriptor = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        is_allowed = False
        try:  # Check after opening, because a link can replace the file at any time.
            is_allowed = _is_allowed(descriptor, full, top, path)
        finally:
            if not is_allowed:
                os.close(descriptor)
        if is_allowed:
            return descriptor
    raise OSError(errno.ELOOP, "was replaced by a symbolic link to a file outside the content", path)


def open_ordinary(root: Path, path: str) -> BufferedReader:
    """Open a regular file of the site.

    Raises OSError if this fails, or if the path contains a forbidden symbolic link.
    """
    descriptor = open_file(root, path)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "not a regular file", path)
    return os.fdopen(descriptor, "rb")


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """Open a folder, and yield its descriptor.

    Raises OSError if this fails, or if the path contains a symbolic link.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if _real_path(descriptor, str(folder)) != str(folder):
            raise OSError(errno.ELOOP, "was replaced by a symbolic link", str(folder))
        yield descriptor
    finally:
        os.close(descriptor)
