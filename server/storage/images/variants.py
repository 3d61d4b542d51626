"""Resized variants (formats) of images, stored by image hash."""

import hashlib
import json
import logging
import os
import posixpath
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import quote

from server.errors import BusyError
from server.paths import UPLOADS_URL
from server.storage.checked_json import encode_checked, read_checked
from server.storage.helper_processes import helper, require_running
from server.storage.images.errors import UnresizableError
from server.storage.images.kinds import ImageSize, kilobytes
from server.storage.images.limits import MAX_DECODED_PIXELS
from server.storage.write_lock import WriteLock

# The variants as in Strapi: name, maximum width and maximum height in pixels.
VARIANTS: Mapping[str, tuple[int, int]] = {
    "thumbnail": (245, 156),
    "small": (500, 500),
    "medium": (750, 750),
    "large": (1000, 1000),
}
_SCALED_EXTENSIONS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff")
# JPEGs of any size can be decoded, because they are decoded at reduced dimensions.
_DRAFT_EXTENSIONS = (".jpg", ".jpeg")
MAX_CPU_S = 20  # limit on processor time per image
TIMEOUT_S = 1.5 * MAX_CPU_S  # limit on elapsed time per image
LOCK_TIMEOUT_S = TIMEOUT_S
RETENTION_S = 30 * 86_400.0  # Resized variants that have not been used for this long are deleted.
_RECORD_FILE = "formats.json"
# The key in a record for the image's placeholder and main color, which older records lack.
PLACEHOLDER_KEY = "description"
# The key in a record for the version of the code that created the variants. Variants of other versions are
# created again.
_VERSION_KEY = "version"
_VERSION = 2  # Since version 2, variants contain no comments of their image.
_KEY = re.compile(r"[0-9a-f]{32}")
UNRESIZABLE_STATUS = os.EX_DATAERR  # exit status if the image is damaged or too large
# Exit statuses for failures that the image itself caused.
_UNRESIZABLE_STATUSES = (UNRESIZABLE_STATUS, -signal.SIGXCPU)
# The process that resizes an image imports this package from here.
_IMPORT_FOLDER = Path(__file__).resolve().parents[3]
# Subtypes of image/ that differ from the file name extension.
_SUBTYPES: Mapping[str, str] = {".jpg": "jpeg", ".tif": "tiff"}


log = logging.getLogger("bifolio")


Placeholder = Mapping[str, str]  # an image's placeholder and main color
PLACEHOLDER_FIELDS = ("placeholder", "color")


def should_have_variants(image_size: ImageSize | None, extension: str) -> bool:
    """Return True if an image can be resized and is larger than the smallest variant."""
    if image_size is None or extension.lower() not in _SCALED_EXTENSIONS:
        return False
    if (
        image_size.width * image_size.height > MAX_DECODED_PIXELS
        and extension.lower() not in _DRAFT_EXTENSIONS
    ):
        return False
    width, height = VARIANTS["thumbnail"]
    return image_size.width > width or image_size.height > height


def key_of(file: IO[bytes]) -> str:
    file.seek(0)
    return hashlib.file_digest(cast(BufferedReader, file), "sha256").hexdigest()[:32]


def cached_variants_and_placeholder(
    folder: Path, key: str, upload_path: str
) -> tuple[dict[str, Any] | None, Placeholder | None]:
    try:
        record = read_checked(folder / key / _RECORD_FILE)
        return describe_variants(_sizes(record), upload_path), _placeholder(record)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None, None


def is_current(folder: Path, key: str) -> bool:
    """Return whether an image's variants were created by this version of the code."""
    try:
        return bool(read_checked(folder / key / _RECORD_FILE).get(_VERSION_KEY) == _VERSION)
    except (OSError, ValueError, AttributeError):
        return False


def cached_placeholder(folder: Path, key: str) -> Placeholder | None:
    return cached_variants_and_placeholder(folder, key, "")[1]


def _placeholder(record: Mapping[str, Any]) -> Placeholder | None:
    found = record.get(PLACEHOLDER_KEY)
    return {name: str(found[name]) for name in PLACEHOLDER_FIELDS} if found else None


def _sizes(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in record.items() if name in VARIANTS}


def read_record(folder: Path, key: str) -> dict[str, Any]:
    """Return the width, height, size in bytes and digest of each variant, by name.

    Raises OSError if the image has no variants, or ValueError if their record is damaged.
    """
    return _sizes(read_checked(folder / key / _RECORD_FILE))


def has_all_variants(folder: Path, key: str, extension: str) -> bool:
    """Return True if all variants in the image's record exist and are undamaged."""
    try:
        record = read_record(folder, key)
        return all(
            digest_of(variant_file(folder, key, name, f"x{extension}")) == entry["digest"]
            for name, entry in record.items()
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def describe_variants(record: Mapping[str, Mapping[str, int]], upload_path: str) -> dict[str, Any]:
    return {name: _format_json(name, entry, upload_path) for name, entry in record.items()}


def make_variants(folder: Path, key: str, file: IO[bytes], extension: str) -> None:
    """Create the variants and the placeholder of an image, unless they exist. `key` is the hash of the image.

    Raises UnresizableError if the image can't be resized, BusyError if other images take too long, or
    OSError.
    """
    target = folder / key
    folder.mkdir(exist_ok=True)  # Parents are not created, because the site may have been moved.
    target.mkdir(exist_ok=True)
    with (
        WriteLock(folder / "lock", folder).held(LOCK_TIMEOUT_S),
        tempfile.TemporaryDirectory(dir=folder) as temporary,
    ):
        is_intact = has_all_variants(folder, key, extension)
        if is_intact and cached_placeholder(folder, key) and is_current(folder, key):
            return
        if not is_intact and (target / _RECORD_FILE).exists():
            log.warning(
                "the resized variants of an image in %s are damaged or outdated; creating them again", target
            )
            discard_record(folder, key)
        record = Path(temporary, _RECORD_FILE)
        try:
            formats = json.loads(_run_scaling(file, temporary, extension.lower()))
            for name, entry in _sizes(formats).items():
                entry["digest"] = digest_of(Path(temporary, f"{name}{extension.lower()}"))
            formats[_VERSION_KEY] = _VERSION
            record.write_bytes(encode_checked(formats))
        finally:
            if key_of(file) != key:  # The file has been replaced since the key was computed.
                raise OSError("the image was replaced")
        for path in sorted(Path(temporary).iterdir(), key=record.__eq__):  # The record is moved last.
            if (target / path.name).is_dir():  # Another program created a folder there.
                _remove(target / path.name)
            path.replace(target / path.name)


def discard_record(folder: Path, key: str) -> None:
    record = folder / key / _RECORD_FILE
    if record.exists():
        with suppress(OSError):
            _remove(record)
            os.utime(folder)  # This notifies the jobs (see `ImageCache.change_counter`).


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sweep_variants(folder: Path, find_needed: Callable[[], Set[str]]) -> int:
    """Delete the variants that are not needed and were not used for RETENTION_S.

    `find_needed` returns the keys of the images whose variants are needed. Return the number of images whose
    variants were deleted. Raises OSError.
    """
    removed, oldest = 0, time.time() - RETENTION_S
    try:
        with WriteLock(folder / "lock", folder).held(0.0):
            needed = find_needed()
            for path in list(folder.iterdir()):
                is_left = not _KEY.fullmatch(path.name)  # left by a killed process
                if path.is_dir() and path.name not in needed and (is_left or path.stat().st_mtime < oldest):
                    shutil.rmtree(path, ignore_errors=True)
                    removed += 1
    except (BusyError, FileNotFoundError):
        pass
    return removed


def _run_scaling(file: IO[bytes], folder: str, extension: str) -> bytes:
    """Run `scale` in a separate process, and return its output.

    Raises UnresizableError, or OSError for failures that the image did not cause.
    """
    arguments = (folder, extension, str(MAX_DECODED_PIXELS))
    command = [sys.executable, "-P", "-m", "server.storage.images.scale", *arguments]
    path = os.pathsep.join(filter(None, (str(_IMPORT_FOLDER), os.environ.get("PYTHONPATH"))))
    file.seek(0)
    environment = {**os.environ, "PYTHONPATH": path}
    pipe = subprocess.PIPE
    with helper(command, stdin=file, stdout=pipe, stderr=pipe, env=environment) as process:
        try:
            output, errors = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise OSError(f"scaling took more than {TIMEOUT_S} s") from error
    require_running()
    if status := process.returncode:
        reason = errors.decode(errors="replace").strip() or f"its process ended: {status}"
        raise (UnresizableError if status in _UNRESIZABLE_STATUSES else OSError)(reason)
    return output


def _format_json(name: str, entry: Mapping[str, int], upload_path: str) -> dict[str, Any]:
    folder, file = posixpath.split(upload_path)
    stem, extension = posixpath.splitext(file)
    size = entry["bytes"]
    return {
        "name": f"{name}_{file}",
        "hash": f"{name}_{stem}",
        "ext": extension,
        "mime": f"image/{_SUBTYPES.get(extension.lower(), extension[1:].lower())}",
        "path": None,
        "width": entry["width"],
        "height": entry["height"],
        "size": kilobytes(size),
        "sizeInBytes": size,
        "url": UPLOADS_URL + quote(posixpath.join(folder, f"{name}_{file}")),
    }


def split_variant_path(upload_path: str) -> tuple[str, str] | None:
    """Split `a/small_b.png` into (`small`, `a/b.png`). Return None for other paths."""
    folder, file = posixpath.split(upload_path)
    name, _, rest = file.partition("_")
    return (name, posixpath.join(folder, rest)) if name in VARIANTS and rest else None


def variant_file(folder: Path, key: str, name: str, image_path: str) -> Path:
    return folder / key / f"{name}{posixpath.splitext(image_path)[1].lower()}"
