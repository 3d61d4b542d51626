"""Listing of a site's files, with signatures that detect changes."""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

from server.errors import ConflictError, StorageError
from server.problems import Problem
from server.storage.links import inner_path, link_problem

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})

DIGEST_BYTES = 16

MISSING_FILE_ERRORS = (FileNotFoundError, NotADirectoryError)  # NotADirectoryError: a parent is a file

# mtime in ns, size in bytes, inode, ctime in ns. Programs can set the mtime, but not the ctime.
Signature = tuple[int, int, int, int]
# A signature without the ctime, which changes when a file is renamed or gets another hard link.
FileMark = tuple[int, int, int]


def storage_error(what: str, error: OSError, root: Path) -> StorageError:
    path, reason = str(error.filename or "").removeprefix(f"{root}/"), error.strerror or str(error)
    return StorageError(": ".join(filter(None, (what, path, reason))), {"path": path} if path else {})


@dataclass(slots=True)
class FileListing:
    """Listing of a site's files. `links` maps the paths of symbolic links to their targets.

    `hashes` is the sum of the files' hashes. If `is_summary` is set, `files` is empty.
    """

    files: dict[str, Signature] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unreadable_folders: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    is_summary: bool = False
    hashes: int = 0

    def add(self, path: str, signature: Signature) -> None:
        self.hashes += hash((path, signature))
        if not self.is_summary:
            self.files[path] = signature

    def digest(self) -> int:
        """Return a hash of the listing.

        Hashes are comparable only between processes forked from the same parent.
        """
        return self.hashes + hash(tuple(self.unreadable_folders))

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle a few large objects, because they are unpickled three times as fast as many small ones.
        numbers = list(chain.from_iterable(self.files.values()))
        return _listing_of, (
            "\0".join(self.files),
            numbers,
            self.problems,
            self.unreadable_folders,
            self.links,
            self.hashes,
        )


def _listing_of(
    paths: str,
    numbers: list[int],
    problems: list[Problem],
    unreadable_folders: list[str],
    links: dict[str, str],
    hashes: int,
) -> FileListing:
    signatures = zip(numbers[::4], numbers[1::4], numbers[2::4], numbers[3::4], strict=True)
    files = dict(zip(paths.split("\0"), signatures, strict=True)) if paths else {}
    return FileListing(files, problems, unreadable_folders, links, hashes=hashes)


def signature(status: os.stat_result) -> Signature:
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)


def file_mark(status: os.stat_result) -> FileMark:
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def size_signature(size: int, mtime: int = 0) -> Signature:
    return (mtime, size, 0, 0)


def mtime_ns(signature: Signature) -> int:
    return max(signature[0], signature[3])


def is_below_file(root: Path, path: str) -> bool:
    """Return True if a parent of `path` is a file rather than a folder."""
    try:
        os.lstat(root / path)
    except NotADirectoryError:
        return True
    except OSError:
        return False
    return False


def below_file(path: str) -> ConflictError:
    return ConflictError(
        f"{path} can't be created, because part of its path is a file instead of a folder; move that "
        "file first"
    )


def digest_of(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def signature_of(path: Path | str) -> Signature | None:
    try:
        return signature(os.stat(path))
    except OSError:
        return None


def file_mark_of(path: Path) -> FileMark | None:
    try:
        return file_mark(os.stat(path))
    except OSError:
        return None


def link_mark(path: Path) -> FileMark | None:
    """Return the mark (mtime, size and inode) of a file or of a symbolic link itself.

    Return None if the path does not exist.
    """
    try:
        return file_mark(os.lstat(path))
    except MISSING_FILE_ERRORS:
        return None


# Windows reserves these names for devices, even with a file extension.
DEVICE_NAMES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)


def is_ignored(name: str) -> bool:
    return name.startswith((".", "#")) or name.endswith(("~", ".swp", ".tmp")) or name in SKIPPED_FOLDERS


def is_utf_8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_skipped(path: str) -> bool:
    return not is_utf_8(path) or any(map(is_ignored, path.split("/")))


def walk(root: Path, folders: Iterable[str], *, is_summary: bool = False) -> FileListing:
    """List all files in these folders and their subfolders. If `is_summary` is set, only hash the listing."""
    result = FileListing(is_summary=is_summary)
    top = os.path.realpath(root)
    for folder in folders:
        path = os.path.join(top, folder) if folder else top
        problem = link_problem(path, folder, top)
        if problem:
            result.problems.append(problem)
        elif os.path.isdir(path):
            if os.path.islink(path):
                _note_link(path, folder, top, result)
            _walk_folder(path, folder, (), top, result)
        elif os.path.lexists(path) and not os.path.isfile(path):
            result.problems.append(Problem(folder, None, "the folder can't be read"))
    return result


# `parent_ids` contains the device and inode of each folder above, in order to detect cycles.
def _walk_folder(
    path: str, site_path: str, parent_ids: tuple[tuple[int, int], ...], top: str, result: FileListing
) -> None:
    try:
        status = os.stat(path)
        with os.scandir(path) as listing:
            entries = sorted(listing, key=lambda entry: entry.name, reverse=True)
    except MISSING_FILE_ERRORS:
        return
    except OSError as error:
        result.problems.append(
            Problem(site_path, None, f"the folder can't be read: {error.strerror}", "check its permissions")
        )
        result.unreadable_folders.append(site_path)
        return
    here = (*parent_ids, (status.st_dev, status.st_ino))
    while entries:
        entry = entries.pop()  # Each entry contains the file's status, which is freed at once.
        if not is_ignored(entry.name):
            _walk_entry(entry, f"{site_path}/{entry.name}" if site_path else entry.name, here, top, result)


def _walk_entry(
    entry: "os.DirEntry[str]",
    site_path: str,
    parent_ids: tuple[tuple[int, int], ...],
    top: str,
    result: FileListing,
) -> None:
    if not is_utf_8(site_path):
        name = os.fsencode(site_path).decode(errors="backslashreplace")
        result.problems.append(Problem(name, None, "the file's name is not UTF-8", "rename it"))
        return
    try:
        if entry.is_symlink() and not _link_is_sound(entry, site_path, parent_ids, top, result):
            return
        if entry.is_dir():
            _walk_folder(entry.path, site_path, parent_ids, top, result)
            return
        status = entry.stat()
    except MISSING_FILE_ERRORS:
        return
    except OSError as error:
        result.problems.append(Problem(site_path, None, f"can't be read: {error.strerror}"))
        return
    if stat.S_ISREG(status.st_mode):
        result.add(site_path, signature(status))
    else:
        result.problems.append(
            Problem(site_path, None, "is not a regular file", "remove it from the content folder")
        )


def _link_is_sound(
    entry: "os.DirEntry[str]",
    site_path: str,
    parent_ids: tuple[tuple[int, int], ...],
    top: str,
    result: FileListing,
) -> bool:
    problem = link_problem(entry.path, site_path, top)
    if problem is None and entry.is_dir():
        status = entry.stat()
        if (status.st_dev, status.st_ino) in parent_ids:
            problem = Problem(site_path, None, "is a symbolic link that forms a cycle", "remove the link")
    if problem:
        result.problems.append(problem)
        return False
    _note_link(entry.path, site_path, top, result)
    return True


def _note_link(path: str, site_path: str, top: str, result: FileListing) -> None:
    with suppress(OSError):  # Another process is replacing the link. The next walk will find the new link.
        if target := inner_path(os.path.realpath(path), top):
            result.links[site_path] = target


def with_aliases(paths: Iterable[str], links: Mapping[str, str]) -> set[str]:
    """Return `paths`, and all other paths that lead to the same files through symbolic links."""
    result = set(paths)
    for link, target in links.items():
        result |= {target + path.removeprefix(link) for path in result if _is_below(path, link)}
    for link, target in links.items():
        result |= {link + path.removeprefix(target) for path in result if _is_below(path, target)}
    return result


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def needs_full_walk(root: Path, paths: Iterable[str], problems: Iterable[Problem]) -> bool:
    """Return True if checking these paths requires listing all files, for example because of a link."""
    paths_with_problems = [problem.path for problem in problems]
    return any(
        any(o == path or o.startswith(path + "/") for o in paths_with_problems) or _is_odd(root, path)
        for path in paths
    )


def _is_odd(root: Path, path: str) -> bool:
    full = str(root / path)
    try:
        if not is_utf_8(path) or os.path.realpath(full) != full:
            return True
    except OSError:  # The link was replaced while it was being resolved.
        return True
    return os.path.lexists(full) and not os.path.isfile(full) and not os.path.isdir(full)
