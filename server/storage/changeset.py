"""File changes that are written together."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from server.errors import ApiError, ConflictError, StorageError
from server.storage.files import MISSING_FILE_ERRORS, Signature, below_file, is_below_file, signature, walk
from server.storage.intent import Write
from server.storage.links import BROKEN_LINK, open_file
from server.storage.read import require_readable_size


class Files(Protocol):
    """Files in a working tree or a commit."""

    def signature(self, path: str) -> Signature | None:
        """Return the file's signature, or None if the file is missing. Raises OSError."""

    def read(self, path: str) -> tuple[bytes, Signature]:
        """Return the file's bytes and signature. Raises OSError."""

    def is_below_file(self, path: str) -> bool:
        """Return True if a parent of `path` is a file rather than a folder."""

    def list_files(self, folders: Iterable[str]) -> Iterable[str]:
        """Return the files in these folders and their subfolders."""


class WorkingTree:
    """Files on disk in a site's folder."""

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

    def list_files(self, folders: Iterable[str]) -> Iterable[str]:
        return walk(self.root, folders).files


class Changeset:
    """Set of file changes that are written together.

    The write fails if another program has modified one of the changed files, or a file passed to `rely_on`,
    since the changeset first accessed it.
    """

    def __init__(self, root: Path, files: Files | None = None) -> None:
        # If `root` itself were a symbolic link, each file below it would be treated as a link.
        self.root = root.resolve()
        self._files = files or WorkingTree(self.root)
        self._signatures: dict[str, Signature | None] = {}
        self._read: dict[str, bytes] = {}
        self._texts: dict[str, str | None] = {}
        self._sources: dict[str, Path] = {}
        self._relied_on: set[str] = set()

    def text(self, path: str) -> str:
        """Return a file's text with the changes made so far.

        Raises ConflictError if the file is missing, being deleted or not UTF-8, or StorageError if it can't
        be read.
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
            raise ConflictError(f"{path} is not UTF-8; save the file as UTF-8 first") from error

    def exists(self, path: str) -> bool:
        if path in self._texts:
            return self._texts[path] is not None
        return path in self._sources or self._signature(path) is not None

    def list_files(self, folders: Iterable[str]) -> set[str]:
        return set(self._files.list_files(folders))

    def signature(self, path: str) -> Signature | None:
        """Return the signature that a file had when it was first accessed, or None if it did not exist."""
        return self._signature(path)

    def rely_on(self, path: str) -> None:
        """Make the write fail if another program modifies this file first.

        The changeset itself must not change the file.
        """
        self._signature(path)
        self._relied_on.add(path)

    def relied_on(self) -> list[Write]:
        return [
            Write(path, None, self._signatures[path], read=self._read.get(path)) for path in self._relied_on
        ]

    def put(self, path: str, text: str) -> None:
        self._signature(path)
        self._texts[path] = text

    def put_file(self, path: str, source: Path) -> None:
        """Replace a file with the one at `source`, which must exist until the changes are written."""
        self._signature(path)
        self._sources[path] = source

    def delete(self, path: str) -> None:
        self._signature(path)
        self._texts[path] = None

    def clear(self) -> None:
        for collected in (self._signatures, self._read, self._texts, self._sources, self._relied_on):
            collected.clear()

    def adopt(self, other: "Changeset") -> None:
        self._signatures.update(other._signatures)
        self._read.update(other._read)
        self._texts.update(other._texts)
        self._sources.update(other._sources)
        self._relied_on |= other._relied_on

    def repeat(self, writes: Iterable[Write]) -> None:
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
        return set(self._signatures)

    def require_writable(self) -> None:
        """Raise PayloadTooLargeError if a text is too large.

        Raise ConflictError if the parent of a new file is not a folder.
        """
        for path, text in self.texts():
            require_readable_size(path, text)
        for path in (*self._sources, *(path for path, _ in self.texts())):
            if self._signatures[path] is None and self._files.is_below_file(path):
                raise below_file(path)

    def writes(self) -> list[Write]:
        """Return the files to write or delete. Unchanged files are left out."""
        writes = [
            Write(path, None, self._signatures[path], source, source_size=_size_of(source))
            for path, source in self._sources.items()
        ]
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


def _size_of(source: Path) -> int:
    try:
        return source.stat().st_size
    except OSError:  # The write fails later, or the file is in a commit.
        return 0


def _refusal(path: str, error: OSError) -> ApiError:
    if error.errno == errno.ELOOP:
        return ConflictError(f"{path} {BROKEN_LINK}")
    return StorageError(f"{path} can't be read: {error.strerror}")
