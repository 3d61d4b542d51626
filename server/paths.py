"""The folder .quire/, which holds all that is not content: accounts, keys, caches, locks."""

from pathlib import Path

FOLDER = ".quire"


def state_folder(root: Path) -> Path:
    """The .quire/ folder of a site; made if it is missing, with mode 0700 and ignored by git."""
    folder = root / FOLDER
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
