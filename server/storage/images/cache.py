"""Cache of image dimensions, hashes and variants."""

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
from server.documents.ids import to_nfc
from server.errors import BusyError
from server.paths import STATE_FOLDER, UPLOADS, state_folder
from server.schema.model import PLACEHOLDER
from server.storage.checked_json import read_checked, write_checked
from server.storage.files import FileMark, Signature, file_mark, signature
from server.storage.images.errors import UnresizableError
from server.storage.images.kinds import PICTURE_EXTENSIONS, ImageSize
from server.storage.images.variants import (
    Placeholder,
    cached_variants_and_placeholder,
    digest_of,
    discard_record,
    is_current,
    key_of,
    make_variants,
    read_record,
    should_have_variants,
    split_variant_path,
    sweep_variants,
    variant_file,
)
from server.storage.links import open_ordinary

_VERSION = 6
MAX_READ_AHEAD_IMAGES = 1000  # At most this many results of `measure_in_advance` are cached.
READ_AHEAD_TTL_S = 60.0
# Pauses in seconds after failures that the image did not cause. After one more failure, resizing is retried
# only when the server restarts.
BACKOFFS_S = (1.0, 10.0, 60.0, 300.0)


@dataclass(frozen=True, slots=True)
class Picture:
    """Dimensions of an image, and the key of its variants.

    `size` is None if the file is not an image or its dimensions are unknown.
    """

    size: ImageSize | None
    key: str  # "" if the image needs no variants or can't be resized


NO_PICTURE = Picture(None, "")

# A file's signature, the image's dimensions, and the key of its resized variants ("" if there are none).
_Known = tuple[Signature, ImageSize | None, str]


class ImageCache:
    """Cache of image dimensions and hashes. Paths are relative to content/uploads/."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / STATE_FOLDER / "formats"
        self._known: dict[str, _Known] = {}
        self._unresizable = set[str]()  # keys of images that can't be resized
        self._failures: dict[
            str, tuple[int, float]
        ] = {}  # number of failures and time of the next attempt, by key
        self._read_ahead: OrderedDict[FileMark, tuple[str, Picture, float]] = OrderedDict()
        self._verified: dict[Path, FileMark] = {}  # resized variants whose hash was verified
        self._lock = threading.Lock()
        self._load()

    def measure_in_advance(self, source: Path, extension: str) -> None:
        """Measure and hash an image in advance, so that the write lock is held for less time."""
        try:
            with source.open("rb") as file:
                mark = file_mark(os.fstat(file.fileno()))
                picture = read_picture(file, extension)
        except (OSError, ValueError):  # The image will be measured later, under the lock.
            return
        if picture.key:
            with suppress(OSError):
                os.utime(self.folder / picture.key)  # `sweep` must not delete the variants.
        with self._lock:
            self._read_ahead[mark] = extension.lower(), picture, time.monotonic()
            while len(self._read_ahead) > MAX_READ_AHEAD_IMAGES:
                self._read_ahead.popitem(last=False)

    def describe_image(
        self, upload_path: str
    ) -> tuple[ImageSize | None, dict[str, Any] | None, Placeholder | None]:
        image_size, key = self._cached(upload_path)
        if not key:
            return image_size, None, None
        return image_size, *cached_variants_and_placeholder(self.folder, key, to_nfc(upload_path))

    def picture(self, upload_path: str, signature_: Signature) -> Picture | None:
        self._cached(upload_path)
        cached = self._known.get(upload_path)
        return Picture(cached[1], cached[2]) if cached and cached[0] == signature_ else None

    def needs_variants(self, document: Document, *, placeholders: bool = False) -> bool:
        """Return True if an image's variants must be created, or must be added to its document.

        If `placeholders` is set, also return True if the placeholder and main color are missing.
        """
        upload_path = _upload_path(document)
        image_size, key = self._cached(upload_path)
        if not key or image_size is None:
            return False
        made, placeholder = cached_variants_and_placeholder(self.folder, key, upload_path)
        is_outdated = made is not None and not is_current(self.folder, key)
        if made is None or is_outdated or (placeholders and placeholder is None):
            return self.may_retry(key)
        return (bool(made) and not document.get("formats")) or (
            placeholders and not document.get(PLACEHOLDER)
        )

    def make_variants_of(self, upload_path: str) -> bool:
        _, key = self._cached(upload_path)
        try:
            done = self.make_variants_from_file(
                key, posixpath.splitext(upload_path)[1], partial(self._open, upload_path)
            )
        except UnresizableError:
            self._mark_unresizable(upload_path, key)
            return False
        if done:
            self.save()
        return done

    def make_variants_from_file(self, key: str, extension: str, open_file: Callable[[], IO[bytes]]) -> bool:
        """Create the variants of an image. `key` is the hash of the image.

        Return False if they can't be created now, but a later call may succeed. Raises UnresizableError if no
        call can succeed.
        """
        if not key or time.monotonic() < self._failures_of(key)[1]:
            return False
        try:
            state_folder(self.root)
            with open_file() as file:
                make_variants(self.folder, key, file, extension)
        except BusyError:
            return False
        except OSError:  # A retry may succeed, for example if the disk was full or the file was replaced.
            self._count_failure(key)
            return False
        return True

    def change_counter(self) -> int:
        """Return a number that changes whenever variants are added or deleted."""
        try:
            return os.stat(self.folder).st_mtime_ns
        except OSError:
            return 0

    def may_retry(self, key: str) -> bool:
        return self._failures_of(key)[0] <= len(BACKOFFS_S)

    def find_variant_file(self, upload_path: str, images: Mapping[str, Document]) -> Path | None:
        format_ = split_variant_path(upload_path)
        if format_ is None or format_[1] not in images:
            return None
        _, key = self._cached(_upload_path(images[format_[1]]))
        return self.checked_file(key, format_[0], format_[1]) if key else None

    def checked_file(self, key: str, name: str, upload_path: str) -> Path | None:
        """Return the file of a variant, or None if it is missing or damaged.

        If it is damaged, all variants of the image will be created again. `key` is the hash of the image, and
        `name` is the name of the variant, such as `small`.
        """
        file = variant_file(self.folder, key, name, upload_path)
        try:
            entry = read_record(self.folder, key).get(name)
            if entry is None:  # The image is too small for this variant.
                return None
            mark = _mark_of(file)
            is_same = mark is not None and (
                self._verified.get(file) == mark or digest_of(file) == entry["digest"]
            )
        except (IsADirectoryError, ValueError, KeyError, TypeError, AttributeError):
            mark, is_same = None, False
        except OSError:  # not created yet, or an unrelated error such as too many open files
            return None
        if mark is None or not is_same:
            discard_record(self.folder, key)
            return None
        self._verified[file] = mark
        return file

    def sweep(self, files: Iterable[Document]) -> int:
        """Delete variants that were not used recently and whose image is not in `files`.

        Return the number of images whose variants were deleted.
        """
        return sweep_variants(self.folder, lambda: {self._last_key(_upload_path(file)) for file in files})

    def _last_key(self, upload_path: str) -> str:
        key = self._cached(upload_path)[1]
        cached = self._known.get(upload_path)
        return key or (cached[2] if cached else "")

    def save(self) -> None:
        with self._lock:
            known = {k: [s, [p.width, p.height] if p else None, d] for k, (s, p, d) in self._known.items()}
        try:
            state_folder(self.root)
            self.folder.mkdir(exist_ok=True)
            write_checked(self.folder / "known.json", {"version": _VERSION, "known": known})
        except OSError:
            pass  # If the file can't be saved, the next start reads the images again.

    def _cached(self, upload_path: str) -> tuple[ImageSize | None, str]:
        try:
            signature_ = signature(os.stat(self.root / UPLOADS / upload_path))
            cached = self._known.get(upload_path)
            if cached is None or cached[0] != signature_:
                with self._open(upload_path) as file:
                    # Taken before reading, because the file may change while it is being read.
                    status = os.fstat(file.fileno())
                    signature_ = signature(status)
                    picture = self._picture_of(file, file_mark(status), posixpath.splitext(upload_path)[1])
                cached = signature_, picture.size, "" if picture.key in self._unresizable else picture.key
                with self._lock:
                    self._known[upload_path] = cached
        except (OSError, ValueError):
            return None, ""
        return cached[1], cached[2]

    def _picture_of(self, file: BufferedReader, mark: FileMark, extension: str) -> Picture:
        with self._lock:  # A mark is used as the key, because creating a hard link changes the signature.
            cached = self._read_ahead.get(mark)
        if cached and cached[0] == extension.lower() and time.monotonic() - cached[2] < READ_AHEAD_TTL_S:
            return cached[1]
        return read_picture(file, extension)

    def _open(self, upload_path: str) -> BufferedReader:
        return open_ordinary(self.root, f"{UPLOADS}/{upload_path}")

    def _failures_of(self, key: str) -> tuple[int, float]:
        return self._failures.get(key, (0, 0.0))

    def _count_failure(self, key: str) -> None:
        count = self._failures_of(key)[0]
        pause = BACKOFFS_S[min(count, len(BACKOFFS_S) - 1)]
        self._failures[key] = (count + 1, time.monotonic() + pause)

    def _mark_unresizable(self, upload_path: str, key: str) -> None:
        with self._lock:
            self._unresizable.add(key)
            signature_, image_size, known = self._known[upload_path]
            if known == key:
                self._known[upload_path] = (signature_, image_size, "")

    def _load(self) -> None:
        try:
            data = read_checked(self.folder / "known.json")
            if data["version"] != _VERSION:
                return
            for upload_path, (numbers, size, key) in data["known"].items():
                image_size = ImageSize(int(size[0]), int(size[1])) if size else None
                at, length, inode, changed = map(int, numbers)
                self._known[upload_path] = ((at, length, inode, changed), image_size, str(key))
        except (OSError, ValueError, KeyError, TypeError):
            self._known = {}


def _mark_of(file: Path) -> FileMark | None:
    try:
        return file_mark(file.stat())
    except FileNotFoundError:
        return None


def _upload_path(file: Document) -> str:
    return file.path.removeprefix(f"{UPLOADS}/")


def size_of_image(file: BinaryIO, extension: str) -> ImageSize | None:
    if extension.lower() not in PICTURE_EXTENSIONS:
        return None
    measure = import_module("server.storage.images.measure").measure  # docs/packages.py, LAZY
    return cast(ImageSize | None, measure(file, extension))


def read_picture(file: IO[bytes], extension: str) -> Picture:
    """Measure an image and, if it needs variants, hash it. Raises OSError or ValueError."""
    image_size = size_of_image(cast(BinaryIO, file), extension)
    return Picture(image_size, key_of(file) if should_have_variants(image_size, extension) else "")
