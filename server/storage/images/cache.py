"""Sizes, hashes and smaller formats of a site's images, kept so that no image is opened twice.

An image is known by its signature; a damaged or missing cache costs time and nothing else. `make`
makes the formats of an image: an upload calls it at once, and a thread in the background calls it
for images that were dropped into the folder.
"""

import hashlib
import json
import os
import posixpath
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

from server.documents.document import Document
from server.documents.ids import composed
from server.errors import BusyError
from server.paths import FOLDER, UPLOADS
from server.storage.durable import replace_file
from server.storage.files import Signature, signature
from server.storage.images.formats import (
    UnscalableError,
    format_file,
    format_of,
    kept_formats,
    make_formats,
    needs_formats,
)
from server.storage.images.kinds import PICTURES, ImageSize
from server.storage.links import open_ordinary

_VERSION = 4
# Seconds to wait after each failure that is not for the picture; after one more, the next start tries again.
RETRIES_S = (1.0, 10.0, 60.0, 300.0)

# The signature of a file, its size as an image, and the hash that its formats are kept under ("": none).
_Known = tuple[Signature, ImageSize | None, str]


class ImageCache:
    """The images of the site at `root`; their formats are kept in `folder`.

    Methods take an upload path: relative to the folder of uploads.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / FOLDER / "formats"
        self._known: dict[str, _Known] = {}
        self._failures: dict[str, tuple[int, float]] = {}  # by hash: how many, and when to try again
        self._lock = threading.Lock()
        self._load()

    def facts(self, inside: str) -> tuple[ImageSize | None, dict[str, Any] | None]:
        """The size of an image, and its formats if they are made; None for either where there is none."""
        image_size, key = self._look(inside)
        if not key:
            return image_size, None
        return image_size, kept_formats(self.folder, key, composed(inside))

    def wanting(self, file: Document) -> bool:
        """Whether the formats of a media file have still to be made, or to be shown.

        Those are to be shown that another process made after the file was read here.
        """
        inside = _inside(file)
        image_size, key = self._look(inside)
        if not key or image_size is None:
            return False
        made = kept_formats(self.folder, key, inside)
        if made is None:
            return self._failed(key)[0] <= len(RETRIES_S)
        return bool(made) and not file.get("formats")

    def make(self, inside: str) -> bool:
        """Make the formats of an image; False if it can't be scaled, or not now."""
        _, key = self._look(inside)
        if not key or time.monotonic() < self._failed(key)[1]:
            return False
        try:
            with self._open(inside) as file:
                make_formats(self.folder, key, file, posixpath.splitext(inside)[1])
        except BusyError:
            return False
        except UnscalableError:
            self._forget_key(inside)
            return False
        except OSError:  # The process was killed, or the disk is full: that may be otherwise later.
            self._count_failure(key)
            return False
        self.save()
        return True

    def file_of(self, inside: str, images: Mapping[str, Document]) -> Path | None:
        """The file of a format (`small_a.png`) of one of some images, which are by key, if it is made."""
        found = format_of(inside)
        if found is None or found[1] not in images:
            return None
        _, key = self._look(_inside(images[found[1]]))
        file = format_file(self.folder, key, found[0], found[1]) if key else None
        return file if file and file.is_file() else None

    def save(self) -> None:
        """Write the cache to disk, for the next start."""
        with self._lock:
            known = {k: [s, [p.width, p.height] if p else None, d] for k, (s, p, d) in self._known.items()}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_file(
                self.folder / "known.json", json.dumps({"version": _VERSION, "known": known}).encode()
            )
        except OSError:
            pass  # Without the file, the next start opens the images again.

    def _look(self, inside: str) -> tuple[ImageSize | None, str]:
        """The size of an image, and the hash that its formats are kept under ("" if it needs none)."""
        try:
            found = signature(os.stat(self.root / UPLOADS / inside))
            known = self._known.get(inside)
            if known is None or known[0] != found:
                with self._open(inside) as file:
                    known = _read(file, posixpath.splitext(inside)[1])
                with self._lock:
                    self._known[inside] = known
        except (OSError, ValueError):
            return None, ""
        return known[1], known[2]

    def _open(self, inside: str) -> BufferedReader:
        """The file of an image, in whose place nobody can have put a link. Raises OSError."""
        return open_ordinary(self.root, f"{UPLOADS}/{inside}")

    def _failed(self, key: str) -> tuple[int, float]:
        """How often making the formats of a hash has failed, and when to try again (time.monotonic)."""
        return self._failures.get(key, (0, 0.0))

    def _count_failure(self, key: str) -> None:
        count = self._failed(key)[0]
        pause = RETRIES_S[min(count, len(RETRIES_S) - 1)]
        self._failures[key] = (count + 1, time.monotonic() + pause)

    def _forget_key(self, inside: str) -> None:
        """Note that an image can't be scaled, so that it is not tried again until it changes."""
        with self._lock:
            found, image_size, _ = self._known[inside]
            self._known[inside] = (found, image_size, "")

    def _load(self) -> None:
        try:
            data = json.loads((self.folder / "known.json").read_bytes())
            if data["version"] != _VERSION:
                return
            for inside, (found, size, key) in data["known"].items():
                image_size = ImageSize(int(size[0]), int(size[1])) if size else None
                at, length, inode = found
                self._known[inside] = ((int(at), int(length), int(inode)), image_size, str(key))
        except (OSError, ValueError, KeyError, TypeError):
            self._known = {}


def _inside(file: Document) -> str:
    return file.path.removeprefix(f"{UPLOADS}/")


def size_of_image(file: BinaryIO, ending: str) -> ImageSize | None:
    """The size of a picture, by the ending of its name; None of a file that is none."""
    if ending.lower() not in PICTURES:
        return None
    measure = import_module("server.storage.images.measure").measure  # docs/packages.py, LAZY
    return cast(ImageSize | None, measure(file, ending))


def _read(file: BufferedReader, ending: str) -> _Known:
    """What there is to know of an opened file."""
    found, key = signature(os.fstat(file.fileno())), ""
    image_size = size_of_image(file, ending)
    if needs_formats(image_size, ending):
        file.seek(0)
        key = hashlib.file_digest(file, "sha256").hexdigest()[:32]
    return found, image_size, key
