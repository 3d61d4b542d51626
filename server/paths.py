"""The folder .quire/: what a site keeps that is not content (accounts, keys, caches, locks)."""

from pathlib import Path

FOLDER = ".quire"


def state_folder(root: Path) -> Path:
    """The site's .quire/ folder, made where it is missing: mode 0700, and ignored by git."""
    folder = root / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return folder


def cache_folder(root: Path) -> Path | None:
    """Where caches are kept, each of which may be deleted; None where nothing can be written."""
    try:
        folder = state_folder(root) / "cache"
        folder.mkdir(exist_ok=True)
    except OSError:
        return None
    return folder
