"""Where things are in a site; and the folder .bifolio/, which holds accounts, keys, caches, locks."""

import errno
import stat
from contextlib import suppress
from pathlib import Path

STATE_FOLDER = ".bifolio"
SETTINGS = "site.yaml"
TYPES = "content-types"
CONTENT = "content"
UPLOADS = "content/uploads"
MAX_ATTEMPTS = 5  # Attempts to make the state folder while another process deletes it.


def state_folder(root: Path) -> Path:
    """The .bifolio/ folder of a site, which only its owner may read and git ignores; made if it is missing.

    Raises OSError, also where it is a link: a link is committed with ease, and could lead to what is served.
    """
    folder = root / STATE_FOLDER
    for left in reversed(range(MAX_ATTEMPTS)):
        if folder.is_symlink():
            raise OSError(errno.ELOOP, "a link in its place", str(folder))
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            keep_private(folder)
            ignore = folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            break
        except (FileNotFoundError, FileExistsError):  # Somebody is deleting it.
            if not left:
                raise
    return folder


def keep_private(path: Path) -> None:
    """Let only its owner do anything with a file or folder, if the owner is who runs this."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        with suppress(PermissionError):
            path.chmod(mode & 0o700)


def cache_folder(root: Path) -> Path | None:
    """The folder of caches, all of which may be deleted; None if it can't be made."""
    try:
        folder = state_folder(root) / "cache"
        folder.mkdir(exist_ok=True)
    except OSError:
        return None
    return folder


def studio_folder(root: Path) -> Path:
    """The folder of the keys and sessions of the machine's owner, which need not be there."""
    return root / STATE_FOLDER / "studio"


def incoming_folder(root: Path) -> Path:
    """The folder of what is being sent to the site, until it is whole. Raises OSError."""
    folder = state_folder(root) / "incoming"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
