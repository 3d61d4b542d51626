"""Response body that is read from a file."""

import os
from collections.abc import Iterator
from typing import IO

PART_BYTES = 128 * 1024
# Flag of preadv() that reads only what is in memory. Only Linux has it.
_READ_CACHED: int | None = getattr(os, "RWF_NOWAIT", None)


class FileBody:
    """Response body that is read from a file, starting at the file's current position.

    It is used as `wsgi.file_wrapper` (PEP 3333).
    """

    def __init__(self, file: IO[bytes], suggested_block_bytes: int = 0) -> None:
        self._file = file  # werkzeug suggests 8 kB, which would need 16 times as many calls.

    def __iter__(self) -> Iterator[bytes]:
        while block := self._file.read(PART_BYTES):
            yield block

    def read_cached(self) -> bytes:
        """Return the next bytes of the file if they are in memory.

        Return b"" if they must be read from the disk.
        """
        if _READ_CACHED is None:
            return b""
        buffer, start = bytearray(PART_BYTES), self._file.tell()
        try:
            size = os.preadv(self._file.fileno(), [buffer], start, _READ_CACHED)
        except OSError:  # The part is not in memory, or the file system can't tell.
            return b""
        self._file.seek(start + size)
        del buffer[size:]
        return bytes(buffer)

    def close(self) -> None:
        self._file.close()
