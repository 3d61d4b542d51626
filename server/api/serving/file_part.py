"""A file, or a part of one, as the body of an answer: it is read from disk as the client takes it."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = 64 * 1024
_RANGE = re.compile(r"bytes (\d+)-(\d+)/")


@dataclass(frozen=True, slots=True)
class FilePart:
    """The bytes of a file from `start` up to, without, `end`; read where it is iterated over."""

    path: Path
    start: int
    end: int

    @classmethod
    def of(cls, path: Path, content_range: str | None) -> "FilePart":
        """The part that a Content-Range header names; without one, the whole file. Raises OSError."""
        found = _RANGE.match(content_range or "")
        if found:
            return cls(path, int(found[1]), int(found[2]) + 1)
        return cls(path, 0, os.stat(path).st_size)

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            file.seek(self.start)
            left = self.end - self.start
            while left > 0 and (block := file.read(min(BLOCK, left))):
                left -= len(block)
                yield block
