"""Unpacking of tar archives, with the protection against malicious ones that the Python version has."""

import tarfile
from pathlib import Path


def unpack_archive(archive: Path, folder: Path) -> None:
    """Unpack a tar archive into a folder. Raises OSError and tarfile.TarError."""
    with tarfile.open(archive) as opened:
        # Python 3.11 has filters only since 3.11.4.
        opened.extraction_filter = getattr(tarfile, "data_filter", None)
        opened.extractall(folder)
