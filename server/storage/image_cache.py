"""What is known of the pictures of a site without opening them again: size and hash, by signature.

A damaged or missing record costs time, nothing else. Formats that are missing are made by whoever
calls `make`: an upload at once, pictures that were dropped into the folder in the background.
"""

import json
import os
import threading
from collections.abc import Container
from pathlib import Path
from typing import Any

from server.storage.files import Signature, signature
from server.storage.images import (
    Picture,
    digest,
    format_file,
    format_of,
    kept_formats,
    make_formats,
    measure,
    needs_formats,
)

_VERSION = 1


class ImageCache:
    """The pictures below `uploads`; `folder` is where formats are kept."""

    def __init__(self, uploads: Path, folder: Path) -> None:
        self.uploads, self.folder = uploads, folder
        self._known: dict[str, tuple[Signature, Picture | None, str]] = {}
        self._lock = threading.Lock()
        self._load()

    def facts(self, inside: str) -> tuple[Picture | None, dict[str, Any] | None]:
        """The size of the picture at an upload path, and its formats so far as they are made."""
        picture, key = self._look(inside)
        if not key:
            return picture, None
        return picture, kept_formats(self.folder, key, inside)

    def missing(self, inside: str) -> bool:
        """Whether a picture's formats are still to be made."""
        picture, key = self._look(inside)
        return bool(key) and kept_formats(self.folder, key, inside) is None and picture is not None

    def make(self, inside: str) -> bool:
        """Make the formats of a picture; False where it can't be scaled after all."""
        _, key = self._look(inside)
        if not key:
            return False
        try:
            make_formats(self.folder, key, self.uploads / inside)
        except OSError:
            self._forget_key(inside)
            return False
        self.save()
        return True

    def file_of(self, inside: str, pictures: Container[str]) -> Path | None:
        """The file of a format of one of some pictures, such as `small_a.png`, where that is made."""
        found = format_of(inside)
        if found is None or found[1] not in pictures:
            return None
        _, key = self._look(found[1])
        file = format_file(self.folder, key, found[0], found[1]) if key else None
        return file if file and file.is_file() else None

    def save(self) -> None:
        """Keep what is known for the next start."""
        with self._lock:
            known = {k: [s, [p.width, p.height] if p else None, d] for k, (s, p, d) in self._known.items()}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary = self.folder / f"known.{os.getpid()}"
            temporary.write_text(json.dumps({"version": _VERSION, "known": known}))
            temporary.replace(self.folder / "known.json")
        except OSError:
            pass  # it is a cache

    def _look(self, inside: str) -> tuple[Picture | None, str]:
        path = self.uploads / inside
        try:
            found = signature(os.stat(path))
        except (OSError, ValueError):
            return None, ""
        known = self._known.get(inside)
        if known is None or known[0] != found:
            picture = measure(path)
            key = digest(path) if needs_formats(picture, path.suffix) else ""
            known = (found, picture, key)
            with self._lock:
                self._known[inside] = known
        return known[1], known[2]

    def _forget_key(self, inside: str) -> None:
        with self._lock:
            found, picture, _ = self._known[inside]
            self._known[inside] = (found, picture, "")

    def _load(self) -> None:
        try:
            data = json.loads((self.folder / "known.json").read_bytes())
            if data["version"] != _VERSION:
                return
            for inside, (found, size, key) in data["known"].items():
                picture = Picture(int(size[0]), int(size[1])) if size else None
                at, length, inode = found
                self._known[inside] = ((int(at), int(length), int(inode)), picture, str(key))
        except (OSError, ValueError, KeyError, TypeError):
            self._known = {}
