"""The folder of a site, and whether it is still there."""

import os
from pathlib import Path

from server.paths import SETTINGS, TYPES


class SiteFolder:
    """The folder of a site, known by its device and inode: nothing is made in its place while it is gone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._id = _id(root)

    def is_gone(self) -> bool:
        """Return whether the folder is missing, or replaced by one that is not a site.

        Another site in its place, such as a new checkout, is taken for the site from then on.
        """
        found = _id(self.root)
        if found is None:
            return True
        if found != self._id:
            if not ((self.root / SETTINGS).exists() or (self.root / TYPES).is_dir()):
                return True
            self._id = found
        return False


def _id(folder: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino
