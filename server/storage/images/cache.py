"""Cache of the sizes, hashes and formats of a site's images, so each image is opened once.

Images are identified by their signature; the cache can be deleted at any time. `make` makes an image's
formats: uploads call it at once, a background job calls it for files dropped into the folder.
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
MAX_READ_AHEAD_IMAGES = 1000  # Images measured before they are put in place.
READ_AHEAD_TTL_S = 60.0
# Pauses after failures that are not the picture's fault; after one more, only a restart tries again.
BACKOFFS_S = (1.0, 10.0, 60.0, 300.0)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture's size, None if the file is not a picture, and its cache key.

    `key` is the hash that identifies its formats, "" if it needs none or none can be made.
    """

    size: ImageSize | None
    key: str


NO_PICTURE = Picture(None, "")

# A file's signature, its size as an image, and the key of its formats ("" for none).
_Known = tuple[Signature, ImageSize | None, str]


class ImageCache:
    """The images of the site at `root`, with their formats in `folder`.

    Methods take paths relative to content/uploads/.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / STATE_FOLDER / "formats"
        self._known: dict[str, _Known] = {}
        self._unscalable = set[str]()  # hashes
        self._failures: dict[str, tuple[int, float]] = {}  # by hash: their number, the next attempt's time
        self._read_ahead: OrderedDict[FileMark, tuple[str, Picture, float]] = OrderedDict()
        self._verified: dict[Path, FileMark] = {}  # format files whose hash was checked
        self._lock = threading.Lock()
        self._load()

    def read_ahead(self, source: Path, ending: str) -> None:
        """Measure and hash a file that is about to be linked into the uploads.

        Hashing takes long, and must not happen under the site's write lock.
        """
        try:
            with source.open("rb") as file:
                mark = file_mark(os.fstat(file.fileno()))
                picture = read_picture(file, ending)
        except (OSError, ValueError):  # It will be read when it is in place.
            return
        if picture.key:
            with suppress(OSError):
                os.utime(self.folder / picture.key)  # Protect its formats from `sweep`.
        with self._lock:
            self._read_ahead[mark] = ending.lower(), picture, time.monotonic()
            while len(self._read_ahead) > MAX_READ_AHEAD_IMAGES:
                self._read_ahead.popitem(last=False)

    def facts(self, inside: str) -> tuple[ImageSize | None, dict[str, Any] | None]:
        """Return an image's size, and its formats if made; None for either if missing."""
        image_size, key = self._look(inside)
        if not key:
            return image_size, None
        return image_size, cached_formats(self.folder, key, compose(inside))

    def picture(self, inside: str, signature_: Signature) -> Picture | None:
        """Return what is cached for an image, or None if its signature has changed."""
        self._look(inside)
        cached = self._known.get(inside)
        return Picture(cached[1], cached[2]) if cached and cached[0] == signature_ else None

    def wanting(self, file: Document) -> bool:
        """Whether a media file's formats are still to be made or, if made by another process, to be shown."""
        inside = _inside(file)
        image_size, key = self._look(inside)
        if not key or image_size is None:
            return False
        made = cached_formats(self.folder, key, inside)
        if made is None:
            return self.may_make(key)
        return bool(made) and not file.get("formats")

    def make(self, inside: str) -> bool:
        """Make an image's formats; False if it can't be scaled, or not now."""
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
        """Make the formats for a picture's key; False if that can't be done now.

        Raises UnscalableError if the picture can't be scaled.
        """
        if not key or time.monotonic() < self._failures_of(key)[1]:
            return False
        try:
            state_folder(self.root)
            with open_file() as file:
                make_formats(self.folder, key, file, ending)
        except BusyError:
            return False
        except OSError:  # It may work later: the process was killed, the disk full or the file replaced.
            self._count_failure(key)
            return False
        return True

    def mark(self) -> int:
        """Return a number that changes when a process makes formats, or all are deleted."""
        try:
            return os.stat(self.folder).st_mtime_ns
        except OSError:
            return 0

    def may_make(self, key: str) -> bool:
        return self._failures_of(key)[0] <= len(BACKOFFS_S)

    def file_of(self, inside: str, images: Mapping[str, Document]) -> Path | None:
        """Return the file of an image's format, such as `small_a.png`, if it is made."""
        format_ = format_of(inside)
        if format_ is None or format_[1] not in images:
            return None
        _, key = self._look(_inside(images[format_[1]]))
        return self.checked_file(key, format_[0], format_[1]) if key else None

    def checked_file(self, key: str, name: str, inside: str) -> Path | None:
        """Return the file of a format if it is undamaged; otherwise have all formats made again.

        A file is hashed once per mark. Unrelated errors, such as too many open files, discard nothing.
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
        """Remove formats unused for long; return for how many pictures."""
        return sweep_formats(self.folder, lambda: {self._last_key(_inside(file)) for file in files})

    def _last_key(self, inside: str) -> str:
        """Return the key of an image's formats, even while its file can't be read."""
        key = self._look(inside)[1]
        cached = self._known.get(inside)
        return key or (cached[2] if cached else "")

    def save(self) -> None:
        with self._lock:
            known = {k: [s, [p.width, p.height] if p else None, d] for k, (s, p, d) in self._known.items()}
        try:
            state_folder(self.root)
            self.folder.mkdir(exist_ok=True)
            write_checked(self.folder / "known.json", {"version": _VERSION, "known": known})
        except OSError:
            pass  # Without the file, the next start reads the images again.

    def _look(self, inside: str) -> tuple[ImageSize | None, str]:
        try:
            signature_ = signature(os.stat(self.root / UPLOADS / inside))
            cached = self._known.get(inside)
            if cached is None or cached[0] != signature_:
                with self._open(inside) as file:
                    status = os.fstat(file.fileno())  # before reading, during which it may change
                    signature_ = signature(status)
                    picture = self._picture_of(file, file_mark(status), posixpath.splitext(inside)[1])
                cached = signature_, picture.size, "" if picture.key in self._unscalable else picture.key
                with self._lock:
                    self._known[inside] = cached
        except (OSError, ValueError):
            return None, ""
        return cached[1], cached[2]

    def _picture_of(self, file: BufferedReader, mark: FileMark, ending: str) -> Picture:
        """Return what `read_ahead` found for an image, or else read it.

        The mark suffices for a short time: the signature's ctime changes with each hard link.
        """
        with self._lock:
            cached = self._read_ahead.get(mark)
        if cached and cached[0] == ending.lower() and time.monotonic() - cached[2] < READ_AHEAD_TTL_S:
            return cached[1]
        return read_picture(file, ending)

    def _open(self, inside: str) -> BufferedReader:
        """Open an image without following a link out of the uploads. Raises OSError."""
        return open_ordinary(self.root, f"{UPLOADS}/{inside}")

    def _failures_of(self, key: str) -> tuple[int, float]:
        return self._failures.get(key, (0, 0.0))

    def _count_failure(self, key: str) -> None:
        count = self._failures_of(key)[0]
        pause = BACKOFFS_S[min(count, len(BACKOFFS_S) - 1)]
        self._failures[key] = (count + 1, time.monotonic() + pause)

    def _forget_key(self, inside: str, key: str) -> None:
        """Note that the image with a key can't be scaled, until its content changes."""
        with self._lock:
            self._unscalable.add(key)
            signature_, image_size, known = self._known[inside]
            if known == key:
                self._known[inside] = (signature_, image_size, "")

    def _load(self) -> None:
        try:
            data = read_checked(self.folder / "known.json")
            if data["version"] != _VERSION:
                return
            for inside, (numbers, size, key) in data["known"].items():
                image_size = ImageSize(int(size[0]), int(size[1])) if size else None
                at, length, inode, changed = map(int, numbers)
                self._known[inside] = ((at, length, inode, changed), image_size, str(key))
        except (OSError, ValueError, KeyError, TypeError):
            self._known = {}


def _mark_of(file: Path) -> FileMark | None:
    try:
        return file_mark(file.stat())
    except FileNotFoundError:
        return None


def _inside(file: Document) -> str:
    return file.path.removeprefix(f"{UPLOADS}/")


def size_of_image(file: BinaryIO, ending: str) -> ImageSize | None:
    """Return a picture's size, by the ending of its name; None if it is not a picture."""
    if ending.lower() not in PICTURE_ENDINGS:
        return None
    measure = import_module("server.storage.images.measure").measure  # docs/packages.py, LAZY
    return cast(ImageSize | None, measure(file, ending))


def read_picture(file: IO[bytes], ending: str) -> Picture:
    """Measure a picture, and hash it if it needs formats. Raises OSError and ValueError."""
    image_size = size_of_image(cast(BinaryIO, file), ending)
    return Picture(image_size, key_of(file) if needs_formats(image_size, ending) else "")
