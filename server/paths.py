"""Where things are in a site; and the folder .quire/, which holds accounts, keys, caches, locks."""

import errno
from pathlib import Path

FOLDER = ".quire"
SETTINGS = "site.yaml"
TYPES = "content-types"
CONTENT = "content"
UPLOADS = "content/uploads"


def state_folder(root: Path) -> Path:
    """The .quire/ folder of a site, with mode 0700 and ignored by git; made if it is missing.

    Raises OSError, also where it is a link: a link is committed with ease, and could lead to what is served.
    """
    folder = root / FOLDER
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "a link in its place", str(folder))
    folder.mkdir(mode=0o700, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return folder


def cache_folder(root: Path) -> Path | None:
    """The folder of caches, all of which may be deleted; None if it can't be made."""
    try:
        folder = state_folder(root) / "cache"
        folder.mkdir(exist_ok=True)
    except OSError:
        return None
    return folder


def incoming_folder(root: Path) -> Path:
    """The folder of what is being sent to the site, until it is whole. Raises OSError."""
    folder = state_folder(root) / "incoming"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
