"""A site's folder."""

import os
from pathlib import Path

from server.paths import SETTINGS, TYPES


class SiteFolder:
    """The folder of a site. While it is missing, the server must not create anything at its path."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._id = _id(root)

    def is_gone(self) -> bool:
        """Return True if there is no site at the path.

        If a new folder with a site appears there, such as a fresh checkout, it becomes the site's folder.
        """
        current_id = _id(self.root)
        if current_id is None:
            return True
        if current_id != self._id:
            if not ((self.root / SETTINGS).exists() or (self.root / TYPES).is_dir()):
                return True
            self._id = current_id
        return False


def _id(folder: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino
