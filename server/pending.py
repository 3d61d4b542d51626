"""The files of a change that is being prepared: texts as they will be, against what is on disk."""

import os
from pathlib import Path

from server.errors import ConflictError
from server.files import Signature, signature
from server.journal import Write


class Pending:
    """Reads files once and collects what is to become of them; nothing is written here."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._found: dict[str, tuple[str | None, Signature | None]] = {}
        self._texts: dict[str, str | None] = {}

    def text(self, path: str) -> str:
        """A file's text as it will be. Raises ConflictError where there is none or it is not UTF-8."""
        text = self._texts[path] if path in self._texts else self._read(path)[0]
        if text is None:
            raise ConflictError(f"{path} was removed meanwhile; try again")
        return text

    def exists(self, path: str) -> bool:
        """Whether a file will be there."""
        return (self._texts[path] if path in self._texts else self._read(path)[0]) is not None

    def put(self, path: str, text: str) -> None:
        """Let a file have this text."""
        self._read(path)
        self._texts[path] = text

    def delete(self, path: str) -> None:
        """Let a file be gone."""
        self._read(path)
        self._texts[path] = None

    @property
    def paths(self) -> set[str]:
        """Every file that was looked at."""
        return set(self._found)

    def writes(self) -> list[Write]:
        """What has to be done, for files that will not be as they are."""
        writes = []
        for path, text in self._texts.items():
            before, found = self._found[path]
            if text != before:
                data = None if text is None else text.encode()
                writes.append(Write(path, data, found))
        return writes

    def _read(self, path: str) -> tuple[str | None, Signature | None]:
        if path not in self._found:
            try:
                with open(self.root / path, "rb") as file:
                    found = signature(os.fstat(file.fileno()))
                    text = file.read().decode()
            except FileNotFoundError:
                self._found[path] = (None, None)
            except UnicodeDecodeError as error:
                raise ConflictError(f"{path} is not UTF-8; save it as UTF-8 first") from error
            else:
                self._found[path] = (text, found)
        return self._found[path]
