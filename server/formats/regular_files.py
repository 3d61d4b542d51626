"""Reading of untrusted files: devices, pipes and very large files are rejected."""

import errno
import os
import stat
from pathlib import Path

MAX_TEXT_BYTES = 16_000_000  # for files that people write, such as schemas and site.yaml


def read_regular_file(path: Path, limit: int = MAX_TEXT_BYTES) -> bytes:
    """Return the bytes of a regular file.

    Raises OSError if the file can't be read, is not a regular file, or is larger than `limit` bytes.
    """
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if status.st_size > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return file.read()
