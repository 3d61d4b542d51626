"""Size-limited folder of cached files."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

ABANDONED_FILE_AGE_S = 3600.0
# Prefix of files that are still being written, directly in the folder. Cached files are in its subfolders.
NEW_PREFIX = "new-"
_EVICTED_DIVISOR = 10  # When the folder is full, a tenth of it is cleared.


class BoundedFolder:
    """Folder of cached files. When it is full, the oldest files are deleted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._added = sys.maxsize  # bytes added since the size was last computed

    def note_added(self, size: int, max_bytes: int) -> None:
        """Count an added file of `size` bytes.

        Whenever a tenth of `max_bytes` has been added, delete the oldest files if the folder is too large.
        """
        # Computing the size of the folder is slow, so it is not done each time a file is added.
        self._added += size
        if self._added < max_bytes // _EVICTED_DIVISOR:
            return
        self._added = 0
        self._sweep()
        files = []
        for path in self.folder.glob("*/*"):
            with suppress(OSError):
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        total = sum(length for _, length, _ in files)
        if total <= max_bytes:
            return
        goal = max_bytes - max_bytes // _EVICTED_DIVISOR
        for _, length, path in sorted(files)[:-1]:  # Keep the newest file, which is in use.
            if total <= goal:
                break
            with suppress(OSError):
                path.unlink()
            total -= length

    def _sweep(self) -> None:
        for path in self.folder.glob(f"{NEW_PREFIX}*"):
            with suppress(OSError):
                if os.stat(path).st_mtime < time.time() - ABANDONED_FILE_AGE_S:
                    path.unlink()
