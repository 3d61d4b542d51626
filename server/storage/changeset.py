"""The files of a change that is being prepared: what they will hold, compared with what they hold now."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from server.errors import ApiError, ConflictError, StorageError
from server.storage.files import MISSING_FILE_ERRORS, Signature, below_file, is_below_file, signature
from server.storage.intent import Write
from server.storage.links import BROKEN_LINK, open_file
from server.storage.read import refuse_unreadable


class Files(Protocol):
    """The files that a change is made of: those of a working tree, or of a commit."""

    def signature(self, path: str) -> Signature | None:
        """The signature of a file; None where there is none. Raises OSError."""

    def read(self, path: str) -> tuple[bytes, Signature]:
        """What is in a file, and its signature at that time. Raises OSError."""

    def is_below_file(self, path: str) -> bool:
        """Whether a file is where a path has a folder."""


class WorkingTree:
    """The files of a site on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def signature(self, path: str) -> Signature | None:
        """See `Files`."""
        try:
            return signature(os.stat(self.root / path))
        except MISSING_FILE_ERRORS:
            return None

    def read(self, path: str) -> tuple[bytes, Signature]:
        """See `Files`."""
        with open(open_file(self.root, path), "rb") as file:
            found = signature(os.fstat(file.fileno()))
            return file.read(), found

    def is_below_file(self, path: str) -> bool:
        """See `Files`."""
        return is_below_file(self.root, path)


class Changeset:
    """Collects new texts and files by path, and reads each file at most once; it writes nothing.

    The signature of every file that was looked at is kept: the journal refuses to replace a file
    that has changed since.
    """

    def __init__(self, root: Path, files: Files | None = None) -> None:
        """`files`: what there is now, where that is not the site's files on disk."""
        self.root = root.resolve()  # Files are read by their real paths; below "." each looks like a link.
        self._files = files or WorkingTree(self.root)
        self._signatures: dict[str, Signature | None] = {}
        self._read: dict[str, bytes] = {}
        self._texts: dict[str, str | None] = {}
        self._sources: dict[str, Path] = {}

    def text(self, path: str) -> str:
        """The text that a file will have.

        Raises ConflictError where there is none or it is not UTF-8, StorageError where it can't be read.
        """
        if path in self._texts:
            text = self._texts[path]
            if text is None:
                raise ConflictError(f"{path} is being removed")
            return text
        try:
            return self._bytes(path).decode()
        except MISSING_FILE_ERRORS as error:
            raise ConflictError(f"{path} was removed meanwhile; try again") from error
        except OSError as error:
            raise _refusal(path, error) from error
        except UnicodeDecodeError as error:
            raise ConflictError(f"{path} is not UTF-8; save it as UTF-8 first") from error

    def exists(self, path: str) -> bool:
        """Whether a file will exist."""
        if path in self._texts:
            return self._texts[path] is not None
        return path in self._sources or self._signature(path) is not None

    def signature(self, path: str) -> Signature | None:
        """The signature of a file when it was last looked at here; None where there is none."""
        return self._signature(path)

    def put(self, path: str, text: str) -> None:
        """Set the text of a file."""
        self._signature(path)
        self._texts[path] = text

    def put_file(self, path: str, source: Path) -> None:
        """Set a file to the content of `source`, which is linked there and may be removed afterwards."""
        self._signature(path)
        self._sources[path] = source

    def delete(self, path: str) -> None:
        """Delete a file."""
        self._signature(path)
        self._texts[path] = None

    def clear(self) -> None:
        """Begin anew: nothing is collected, and nothing known of any file."""
        for known in (self._signatures, self._read, self._texts, self._sources):
            known.clear()

    def adopt(self, other: "Changeset") -> None:
        """Take over all that another one has collected, and the signatures that it has found."""
        self._signatures.update(other._signatures)
        self._read.update(other._read)
        self._texts.update(other._texts)
        self._sources.update(other._sources)

    def repeat(self, writes: Iterable[Write]) -> None:
        """Collect what another changeset has come to, with the signatures that it has found."""
        for write in writes:
            self._signatures[write.path] = write.before
            if write.read is not None:
                self._read[write.path] = write.read
            if write.source is not None:
                self._sources[write.path] = write.source
            else:
                self._texts[write.path] = None if write.data is None else write.data.decode()

    def texts(self) -> list[tuple[str, str]]:
        """The files whose text was set, with that text."""
        return [(path, text) for path, text in self._texts.items() if text is not None]

    @property
    def count(self) -> int:
        """How many files were set or deleted."""
        return len(self._texts) + len(self._sources)

    def changes(self, path: str) -> bool:
        """Whether a file was set or deleted."""
        return path in self._texts or path in self._sources

    @property
    def paths(self) -> set[str]:
        """Every file that was looked at."""
        return set(self._signatures)

    def require_sound(self) -> None:
        """Raise PayloadTooLargeError for a text too large to be read, ConflictError for a file below one."""
        for path, text in self.texts():
            refuse_unreadable(path, text)
        for path in (*self._sources, *(path for path, _ in self.texts())):
            if self._signatures[path] is None and self._files.is_below_file(path):
                raise below_file(path)

    def writes(self) -> list[Write]:
        """The writes that the change comes to; none for a file that holds its text already."""
        writes = [Write(path, None, self._signatures[path], source) for path, source in self._sources.items()]
        for path, text in self._texts.items():
            before = self._signatures[path]
            if text is None:
                if before is not None:
                    writes.append(Write(path, None, before, read=self._read.get(path)))
            elif (data := text.encode()) != (read := self._read.get(path)) or before is None:
                writes.append(Write(path, data, before, read=read))
        return writes

    def _signature(self, path: str) -> Signature | None:
        if path not in self._signatures:
            try:
                self._signatures[path] = self._files.signature(path)
            except OSError as error:
                raise _refusal(path, error) from error
        return self._signatures[path]

    def _bytes(self, path: str) -> bytes:
        if path not in self._read:
            self._read[path], self._signatures[path] = self._files.read(path)
        return self._read[path]


def _refusal(path: str, error: OSError) -> ApiError:
    """The error for a file that can't be read: the disk refuses it, or a link has been put in its place."""
    if error.errno == errno.ELOOP:
        return ConflictError(f"{path} {BROKEN_LINK}")
    return StorageError(f"{path} can't be read: {error.strerror}")
