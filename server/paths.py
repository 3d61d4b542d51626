"""Paths inside a site, and the site's state folder `.bifolio/`, which contains accounts, keys, caches and
locks.
"""

import errno
import stat
from contextlib import suppress
from pathlib import Path

STATE_FOLDER = ".bifolio"
SETTINGS = "site.yaml"
TYPES = "content-types"
CONTENT = "content"
UPLOADS = "content/uploads"
MAX_ATTEMPTS = 5  # attempts to create the state folder while another process deletes it


def state_folder(root: Path) -> Path:
    """Return a site's `.bifolio/` folder. If the folder is missing, create it, private to its owner and
    ignored by git.

    Raises OSError if the folder can't be created, or if `.bifolio` is a symbolic link, because a link could
    have been committed and could point to served files.
    """
    folder = root / STATE_FOLDER
    for attempts_left in reversed(range(MAX_ATTEMPTS)):
        if folder.is_symlink():
            raise OSError(errno.ELOOP, "is a symbolic link", str(folder))
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            keep_private(folder)
            ignore = folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            break
        except (FileNotFoundError, FileExistsError):  # Another process is deleting it.
            if not attempts_left:
                raise
    return folder


def keep_private(path: Path) -> None:
    """Remove all permissions for group and others from a file or folder, if this process owns it."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        with suppress(PermissionError):
            path.chmod(mode & 0o700)


def cache_folder(root: Path) -> Path | None:
    """Return the folder for caches, or None if it can't be created. The files in this folder can be deleted
    at any time.
    """
    try:
        folder = state_folder(root) / "cache"
        folder.mkdir(exist_ok=True)
    except OSError:
        return None
    return folder


def studio_folder(root: Path) -> Path:
    """Return the folder for the owner's keys and sessions. The folder may not exist."""
    return root / STATE_FOLDER / "studio"


def incoming_folder(root: Path) -> Path:
    """Return the folder for incomplete uploads. Raises OSError."""
    folder = state_folder(root) / "incoming"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
