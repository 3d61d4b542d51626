"""Sizes, hashes and smaller formats of a site's images, kept so that no image is opened twice.

An image is known by its signature; a damaged or missing cache costs time and nothing else. `make`
makes the formats of an image: an upload calls it at once, and a thread in the background calls it
for images that were dropped into the folder.
"""

import os
import posixpath
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from server.documents.document import Document
from server.documents.ids import compose
from server.errors import BusyError
from server.paths import STATE_FOLDER, UPLOADS, state_folder
from server.storage.checked_json import read_checked, write_checked
from server.storage.files import FileMark, Signature, file_mark, signature
from server.storage.images.formats import (
    UnscalableError,
    cached_formats,
    digest_of,
    discard_record,
    format_file,
    format_of,
    key_of,
    make_formats,
    read_record,
    sweep_formats,
)
from server.storage.images.kinds import PICTURE_ENDINGS, ImageSize
from server.storage.images.sizes import needs_formats
from server.storage.links import open_ordinary

_VERSION = 6
MAX_READ_AHEAD_IMAGES = 1000  # Measured images that are remembered until they are put in place.
READ_AHEAD_TTL_S = 60.0
# Seconds to wait after each failure that is not for the picture; after one more, the next start tries again.
BACKOFFS_S = (1.0, 10.0, 60.0, 300.0)


@dataclass(frozen=True, slots=True)
class Picture:
    """The size of a picture, None for a file that is not one; `key` is the hash that its formats are kept
    under, "" if it needs no formats or none can be made.
    """

    size: ImageSize | None
    key: str


NO_PICTURE = Picture(None, "")

# The signature of a file, its size as an image, and the hash that its formats are kept under ("": none).
_Known = tuple[Signature, ImageSize | None, str]


class ImageCache:
    """The images of the site at `root`; their formats are kept in `folder`.

    Methods take an upload path: relative to the folder of uploads.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / STATE_FOLDER / "formats"
        self._known: dict[str, _Known] = {}
        self._unscalable = set[str]()  # hashes
        self._failures: dict[str, tuple[int, float]] = {}  # by hash: how many, and when to try again
        self._read_ahead: OrderedDict[FileMark, tuple[str, Picture, float]] = OrderedDict()
        self._verified: dict[Path, FileMark] = {}  # files of formats that were hashed
        self._lock = threading.Lock()
        self._load()

    def read_ahead(self, source: Path, ending: str) -> None:
        """Read a file that is about to become an image here, as by a hard link, with an ending.

        To hash it takes long, and whoever puts it in place holds the write lock of the site.
        """
        try:
            with source.open("rb") as file:
                mark = file_mark(os.fstat(file.fileno()))
                picture = read_picture(file, ending)
        except (OSError, ValueError):  # It is read once it is in place.
            return
        if picture.key:
            with suppress(OSError):
                os.utime(self.folder / picture.key)  # What is needed again is not to be swept just now.
        with self._lock:
            self._read_ahead[mark] = ending.lower(), picture, time.monotonic()
            while len(self._read_ahead) > MAX_READ_AHEAD_IMAGES:
                self._read_ahead.popitem(last=False)

    def facts(self, inside: str) -> tuple[ImageSize | None, dict[str, Any] | None]:
        """The size of an image, and its formats if they are made; None for either where there is none."""
        image_size, key = self._look(inside)
        if not key:
            return image_size, None
        return image_size, cached_formats(self.folder, key, compose(inside))

    def picture(self, inside: str, found: Signature) -> Picture | None:
        """Return what is known of an image with a signature, or None if the file has another one now."""
        self._look(inside)
        known = self._known.get(inside)
        return Picture(known[1], known[2]) if known and known[0] == found else None

    def wanting(self, file: Document) -> bool:
        """Whether the formats of a media file have still to be made, or to be shown.

        Those are to be shown that another process made after the file was read here.
        """
        inside = _inside(file)
        image_size, key = self._look(inside)
        if not key or image_size is None:
            return False
        made = cached_formats(self.folder, key, inside)
        if made is None:
            return self.may_make(key)
        return bool(made) and not file.get("formats")

    def make(self, inside: str) -> bool:
        """Make the formats of an image; False if it can't be scaled, or not now."""
        _, key = self._look(inside)
        try:
            done = self.make_from(key, posixpath.splitext(inside)[1], partial(self._open, inside))
        except UnscalableError:
            self._forget_key(inside, key)
            return False
        if done:
            self.save()
        return done

    def make_from(self, key: str, ending: str, open_file: Callable[[], IO[bytes]]) -> bool:
        """Make the formats of a picture that is kept under a key; False if that can't be done now.

        Raises UnscalableError for a picture of which none can be made.
        """
        if not key or time.monotonic() < self._failures_of(key)[1]:
            return False
        try:
            state_folder(self.root)
            with open_file() as file:
                make_formats(self.folder, key, file, ending)
        except BusyError:
            return False
        except OSError:  # The process was killed, the disk is full or the file was replaced: later, perhaps.
            self._count_failure(key)
            return False
        return True

    def mark(self) -> int:
        """Return a number that changes whenever a process has made formats, and when all are deleted."""
        try:
            return os.stat(self.folder).st_mtime_ns
        except OSError:
            return 0

    def may_make(self, key: str) -> bool:
        """Whether making the formats of a key has not failed too often."""
        return self._failures_of(key)[0] <= len(BACKOFFS_S)

    def file_of(self, inside: str, images: Mapping[str, Document]) -> Path | None:
        """The file of a format (`small_a.png`) of one of some images, which are by key, if it is made."""
        found = format_of(inside)
        if found is None or found[1] not in images:
            return None
        _, key = self._look(_inside(images[found[1]]))
        return self.checked_file(key, found[0], found[1]) if key else None

    def checked_file(self, key: str, name: str, inside: str) -> Path | None:
        """Return the file of a format if it is as it was made; if it is not, all formats are made again.

        A file is hashed once for each of its marks. An error that tells nothing of the
        formats, such as too many open files, leaves them alone.
        """
        file = format_file(self.folder, key, name, inside)
        try:
            entry = read_record(self.folder, key).get(name)
            if entry is None:  # The picture is too small for this format.
                return None
            mark = _mark_of(file)
            is_same = mark is not None and (
                self._verified.get(file) == mark or digest_of(file) == entry["digest"]
            )
        except (IsADirectoryError, ValueError, KeyError, TypeError, AttributeError):
            mark, is_same = None, False
        except OSError:
            return None
        if mark is None or not is_same:
            discard_record(self.folder, key)
            return None
        self._verified[file] = mark
        return file

    def sweep(self, files: Iterable[Document]) -> int:
        """Remove the formats that none of the site's media files has had for long; return of how many."""
        return sweep_formats(self.folder, lambda: {self._last_key(_inside(file)) for file in files})

    def _last_key(self, inside: str) -> str:
        """The hash that the formats of an image are kept under, also while its file can't be read."""
        key = self._look(inside)[1]
        known = self._known.get(inside)
        return key or (known[2] if known else "")

    def save(self) -> None:
        """Write the cache to disk, for the next start."""
        with self._lock:
            known = {k: [s, [p.width, p.height] if p else None, d] for k, (s, p, d) in self._known.items()}
        try:
            state_folder(self.root)
            self.folder.mkdir(exist_ok=True)
            write_checked(self.folder / "known.json", {"version": _VERSION, "known": known})
        except OSError:
            pass  # Without the file, the next start opens the images again.

    def _look(self, inside: str) -> tuple[ImageSize | None, str]:
        """The size of an image, and the hash that its formats are kept under ("" if it needs none)."""
        try:
            found = signature(os.stat(self.root / UPLOADS / inside))
            known = self._known.get(inside)
            if known is None or known[0] != found:
                with self._open(inside) as file:
                    status = os.fstat(file.fileno())  # before it is read: it may change meanwhile
                    found = signature(status)
                    picture = self._picture_of(file, file_mark(status), posixpath.splitext(inside)[1])
                known = found, picture.size, "" if picture.key in self._unscalable else picture.key
                with self._lock:
                    self._known[inside] = known
        except (OSError, ValueError):
            return None, ""
        return known[1], known[2]

    def _picture_of(self, file: BufferedReader, mark: FileMark, ending: str) -> Picture:
        """What is known of an image from before it was put in place, else what is read of it.

        For a short time, its mark tells enough: each hard link that comes or goes changes the ctime.
        """
        with self._lock:
            known = self._read_ahead.get(mark)
        if known and known[0] == ending.lower() and time.monotonic() - known[2] < READ_AHEAD_TTL_S:
            return known[1]
        return read_picture(file, ending)

    def _open(self, inside: str) -> BufferedReader:
        """The file of an image, in whose place nobody can have put a link. Raises OSError."""
        return open_ordinary(self.root, f"{UPLOADS}/{inside}")

    def _failures_of(self, key: str) -> tuple[int, float]:
        """How often making the formats of a hash has failed, and when to try again (time.monotonic)."""
        return self._failures.get(key, (0, 0.0))

    def _count_failure(self, key: str) -> None:
        count = self._failures_of(key)[0]
        pause = BACKOFFS_S[min(count, len(BACKOFFS_S) - 1)]
        self._failures[key] = (count + 1, time.monotonic() + pause)

    def _forget_key(self, inside: str, key: str) -> None:
        """Note that the image with a key can't be scaled, so it is not tried again until it changes."""
        with self._lock:
            self._unscalable.add(key)
            found, image_size, known = self._known[inside]
            if known == key:
                self._known[inside] = (found, image_size, "")

    def _load(self) -> None:
        try:
            data = read_checked(self.folder / "known.json")
            if data["version"] != _VERSION:
                return
            for inside, (found, size, key) in data["known"].items():
                image_size = ImageSize(int(size[0]), int(size[1])) if size else None
                at, length, inode, changed = map(int, found)
                self._known[inside] = ((at, length, inode, changed), image_size, str(key))
        except (OSError, ValueError, KeyError, TypeError):
            self._known = {}


def _mark_of(file: Path) -> FileMark | None:
    """Return the mark of a file, or None if it does not exist."""
    try:
        return file_mark(file.stat())
    except FileNotFoundError:
        return None


def _inside(file: Document) -> str:
    return file.path.removeprefix(f"{UPLOADS}/")


def size_of_image(file: BinaryIO, ending: str) -> ImageSize | None:
    """The size of a picture, by the ending of its name; None of a file that is none."""
    if ending.lower() not in PICTURE_ENDINGS:
        return None
    measure = import_module("server.storage.images.measure").measure  # docs/packages.py, LAZY
    return cast(ImageSize | None, measure(file, ending))


def read_picture(file: IO[bytes], ending: str) -> Picture:
    """Read the size of a picture, and the hash of its bytes if it needs formats.

    Raises OSError and ValueError.
    """
    image_size = size_of_image(cast(BinaryIO, file), ending)
    return Picture(image_size, key_of(file) if needs_formats(image_size, ending) else "")
