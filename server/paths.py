"""Paths inside a site and its state folder `.bifolio/`."""

import errno
import stat
from contextlib import suppress
from pathlib import Path

STATE_FOLDER = ".bifolio"
SETTINGS = "site.yaml"
TYPES = "content-types"
CONTENT = "content"
UPLOADS = "content/uploads"
UPLOADS_URL = "/uploads/"  # prefix of the URL path of each media file
MAX_ATTEMPTS = 5  # attempts to create the state folder while another process deletes it


def state_folder(root: Path) -> Path:
    """Return a site's private folder `.bifolio/`, which is created if necessary.

    Raises OSError if it can't be created or is a symbolic link.
    """
    # A symbolic link could have been committed, and could point to served files.
    folder = root / STATE_FOLDER
    for attempts_left in reversed(range(MAX_ATTEMPTS)):
        if folder.is_symlink():
            raise OSError(errno.ELOOP, "is a symbolic link", str(folder))
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            keep_private(folder)
            ignore = folder / ".gitignore"
            if not ignore.exists():
                with suppress(FileExistsError), ignore.open("x") as file:  # "x" refuses symbolic links.
                    file.write("*\n")
            break
        except (FileNotFoundError, FileExistsError):  # Another process is deleting it.
            if not attempts_left:
                raise
    return folder


def keep_private(path: Path) -> None:
    """Deny other users access to a file or folder. Do nothing if this process does not own it."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        with suppress(PermissionError):
            path.chmod(mode & 0o700)


def folder_in_state(root: Path, name: str) -> Path:
    """Return a folder in `.bifolio/`, which is created if necessary.

    Raises OSError if it can't be created or is a symbolic link.
    """
    folder = state_folder(root) / name
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "is a symbolic link", str(folder))
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def cache_folder(root: Path) -> Path | None:
    """Return the cache folder in `.bifolio/`, or None if it can't be created."""
    try:
        return folder_in_state(root, "cache")
    except OSError:
        return None


def studio_folder(root: Path) -> Path:
    # The folder may not exist.
    return root / STATE_FOLDER / "studio"


def incoming_folder(root: Path) -> Path:
    return folder_in_state(root, "incoming")
