"""Where the links of a site may lead: each only to files of its own kind.

A link comes with a checkout, so that whoever may commit could have Bifolio serve or rewrite what is no
content: keys, accounts, settings. So a link in content/ leads to content/ alone, one in
content/uploads/ to that folder, one in content-types/ to that, and site.yaml to none of them; no link
leads to a hidden name.
`link_problem` tells beforehand what is wrong with a link. What is opened is looked at once more
(`open_file`), since anybody may put a link in the place of a file in between.
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
# What is said of the file of a document in whose place such a link was put.
BROKEN_LINK = "is a link that leads to no content; put the document in its place, or remove it"
_DESCRIPTOR_FOLDER = "/proc/self/fd"  # Linux names the file of an open descriptor here.
_DELETED_SUFFIX = " (deleted)"  # Linux adds this to the path of a file that was removed or replaced.


def link_problem(path: str, shown: str, top: str) -> Problem | None:
    """What is wrong with the links in a path, or None. `shown` is the path in the site at `top`."""
    try:
        target = os.path.realpath(path, strict=True)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return Problem(shown, None, "a link that leads in a circle", "remove it")
        if not os.path.islink(path):
            return None  # It is missing, or may not be read: not a problem of links.
        if error.errno == errno.ENOENT:
            return Problem(shown, None, "a link to nothing", "remove it or restore its target")
        return Problem(shown, None, f"a link that can't be followed: {error.strerror}", "remove it")
    inside = inner_path(target, top)
    if inside is None:
        return Problem(shown, None, "a link out of the site", "copy the file into the site")
    if inside != shown and not may_lead(shown, inside):
        wrong = f"is not in {_kind(shown) or 'the content'}" if shown != SETTINGS else "may not hold settings"
        message = f"a link to {inside or 'the site'}, which {wrong}"
        return Problem(shown, None, message, "put a copy in its place")
    return None


def has_links(top: str, path: str, plain: dict[str, bool]) -> bool:
    """Return whether a path, or a folder on it, may be a link. `plain` caches which folders are not."""
    folder = os.path.dirname(path)
    if folder not in plain:
        full = f"{top}/{folder}" if folder else top
        plain[folder] = os.path.realpath(full) == full
    return not plain[folder] or os.path.islink(f"{top}/{path}")


def may_lead(path: str, target: str) -> bool:
    """Whether a link at a path may lead to a target; both are relative to the site."""
    parts = target.split("/")
    if any(part.startswith(".") for part in parts):
        return False
    kind = _kind(path)
    if path == SETTINGS:
        return bool(target) and not _kind(target)  # What the API writes says nothing of who may do what.
    if kind:
        return target == kind or target.startswith(f"{kind}/")
    return bool(target) and _kind(target) != TYPES and target != SETTINGS


def _kind(path: str) -> str:
    """The folder of the kind of files that a path belongs to; "" for one outside of these folders."""
    return next((kind for kind in _FOLDERS if path == kind or path.startswith(f"{kind}/")), "")


def inner_path(real: str, top: str) -> str | None:
    """A real path relative to the site at `top`, "" for the site itself; None for one outside of it."""
    if real == top:
        return ""
    above = top.rstrip("/") + "/"
    return real.removeprefix(above) if real.startswith(above) else None


def _check_opened(descriptor: int, full: str, top: str, path: str) -> None:
    """Raise OSError where what was opened is not what may be served at a path of the site at `top`.

    It is the opened file that is looked at, so that no link can be put in its place afterwards.
    """
    real = _real_path(descriptor, full)
    if real == full:
        return
    inside = None if real is None else inner_path(real, top)
    if inside is None or (inside != path and not may_lead(path, inside)):
        raise OSError(errno.ELOOP, "a link to what is no content was put in its place", path)


def _real_path(descriptor: int, path: str) -> str | None:
    """The path without links of what is open; None where it is not there any more.

    Where the system does not tell, the path is resolved anew, and has to lead to the very same file.
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
    """A descriptor for reading a file of the site at `root`, which has no links in it. Raises OSError.

    A named pipe is opened as well, without waiting for a writer.
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
    """A file of the site at `root`, open for reading. Raises OSError, also for a folder, pipe or device."""
    descriptor = open_file(root, path)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "no ordinary file", path)
    return os.fdopen(descriptor, "rb")


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """A descriptor of a folder in whose path nothing is a link. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if _real_path(descriptor, str(folder)) != str(folder):
            raise OSError(errno.ELOOP, "a link was put in its place", str(folder))
        yield descriptor
    finally:
        os.close(descriptor)
