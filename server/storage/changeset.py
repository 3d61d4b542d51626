"""Changeset: new file contents, collected before they are written."""

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
    """The files that a change is based on: a working tree or a commit."""

    def signature(self, path: str) -> Signature | None:
        """Return a file's signature, or None if the file is missing. Raises OSError."""

    def read(self, path: str) -> tuple[bytes, Signature]:
        """Return a file's content and its signature at that time. Raises OSError."""

    def is_below_file(self, path: str) -> bool:
        """Whether a parent of `path` is a file, so `path` can't be created."""


class WorkingTree:
    """The files of a site on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def signature(self, path: str) -> Signature | None:
        try:
            return signature(os.stat(self.root / path))
        except MISSING_FILE_ERRORS:
            return None

    def read(self, path: str) -> tuple[bytes, Signature]:
        with open(open_file(self.root, path), "rb") as file:
            signature_ = signature(os.fstat(file.fileno()))
            return file.read(), signature_

    def is_below_file(self, path: str) -> bool:
        return is_below_file(self.root, path)


class Changeset:
    """New file contents by path, collected before they are written. Each old file is read at most once.

    The changeset records the signature of every file it checks or reads. The journal rejects the change if
    one of the files to replace has a different signature by then.
    """

    def __init__(self, root: Path, files: Files | None = None) -> None:
        """Create an empty changeset based on `files`, by default the site's files on disk."""
        self.root = root.resolve()  # With a relative root, every file would be mistaken for a link.
        self._files = files or WorkingTree(self.root)
        self._signatures: dict[str, Signature | None] = {}
        self._read: dict[str, bytes] = {}
        self._texts: dict[str, str | None] = {}
        self._sources: dict[str, Path] = {}

    def text(self, path: str) -> str:
        """Return a file's text: the new one, or else the one on disk.

        Raises ConflictError if the file is missing or not UTF-8, StorageError if it can't be read.
        """
        if path in self._texts:
            text = self._texts[path]
            if text is None:
                raise ConflictError(f"{path} is being deleted")
            return text
        try:
            return self._bytes(path).decode()
        except MISSING_FILE_ERRORS as error:
            raise ConflictError(f"{path} was removed during this write; try again") from error
        except OSError as error:
            raise _refusal(path, error) from error
        except UnicodeDecodeError as error:
            raise ConflictError(f"{path} is not UTF-8; save it as UTF-8 first") from error

    def exists(self, path: str) -> bool:
        if path in self._texts:
            return self._texts[path] is not None
        return path in self._sources or self._signature(path) is not None

    def signature(self, path: str) -> Signature | None:
        """Return the signature a file had when it was first checked, or None if it was missing."""
        return self._signature(path)

    def put(self, path: str, text: str) -> None:
        self._signature(path)
        self._texts[path] = text

    def put_file(self, path: str, source: Path) -> None:
        """Set a file's content to the file `source`. The caller may delete `source` after the write."""
        self._signature(path)
        self._sources[path] = source

    def delete(self, path: str) -> None:
        self._signature(path)
        self._texts[path] = None

    def clear(self) -> None:
        for collected in (self._signatures, self._read, self._texts, self._sources):
            collected.clear()

    def adopt(self, other: "Changeset") -> None:
        self._signatures.update(other._signatures)
        self._read.update(other._read)
        self._texts.update(other._texts)
        self._sources.update(other._sources)

    def repeat(self, writes: Iterable[Write]) -> None:
        """Add writes from another changeset, with the signatures recorded there."""
        for write in writes:
            self._signatures[write.path] = write.before
            if write.read is not None:
                self._read[write.path] = write.read
            if write.source is not None:
                self._sources[write.path] = write.source
            else:
                self._texts[write.path] = None if write.data is None else write.data.decode()

    def texts(self) -> list[tuple[str, str]]:
        return [(path, text) for path, text in self._texts.items() if text is not None]

    @property
    def count(self) -> int:
        return len(self._texts) + len(self._sources)

    def changes(self, path: str) -> bool:
        return path in self._texts or path in self._sources

    @property
    def paths(self) -> set[str]:
        """Return all paths that were checked or read."""
        return set(self._signatures)

    def require_sound(self) -> None:
        """Raise PayloadTooLargeError for a text too large to read back, ConflictError if a new file's parent
        is a file.
        """
        for path, text in self.texts():
            refuse_unreadable(path, text)
        for path in (*self._sources, *(path for path, _ in self.texts())):
            if self._signatures[path] is None and self._files.is_below_file(path):
                raise below_file(path)

    def writes(self) -> list[Write]:
        """Return the writes in this change, without unchanged files."""
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
    if error.errno == errno.ELOOP:
        return ConflictError(f"{path} {BROKEN_LINK}")
    return StorageError(f"{path} can't be read: {error.strerror}")
