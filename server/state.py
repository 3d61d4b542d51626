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
