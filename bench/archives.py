"""Unpacks tar archives, with protection against malicious archives if the Python version supports it."""

import tarfile
from pathlib import Path


def unpack_archive(archive: Path, folder: Path) -> None:
    """Unpack a tar archive into a folder. Raises OSError and tarfile.TarError."""
    with tarfile.open(archive) as opened:
        # Python before 3.11.4 has no filters.
        opened.extraction_filter = getattr(tarfile, "data_filter", None)
        opened.extractall(folder)
